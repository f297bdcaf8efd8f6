/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is made of, for control_messages.c and those beside it. */
#pragma once

#include "tests/fuzz/control_case.h"

struct parts {
	Hccld__Control__Request request;
	const struct numbers *numbers;
	struct input *input;
};

/* Texts: nothing, a short one, one at the limit, one that is no UTF-8. */
char *some_text(struct input *input, char *buffer, size_t size);

#define START(parts, name, field, upper)                                               \
	Hccld__Control__##name message = HCCLD__CONTROL__##upper##__INIT;              \
	(parts)->request.body_case = HCCLD__CONTROL__REQUEST__BODY_##upper;            \
	(parts)->request.field = &message

/* A context, and a stream, most likely one that there is. */
#define START_ON_STREAM(parts, Name, field, CASE)                                                 \
	START(parts, Name, field, CASE); uint8_t mode = input_byte((parts)->input);               \
	message.context = numbers_take((parts)->numbers, (parts)->input);                         \
	message.stream = mode & 0x80 ? (uint32_t)input_size((parts)->input) : mode % 4

#define PACK(parts, data) hccld__control__request__pack(&(parts)->request, data)

/* control_resources.c */
size_t pack_register_memory(struct parts *parts, unsigned char *data);
size_t pack_unregister_memory(struct parts *parts, unsigned char *data);
size_t pack_offer_channels(struct parts *parts, unsigned char *data);
size_t pack_await_channels(struct parts *parts, unsigned char *data);
size_t pack_describe_channel(struct parts *parts, unsigned char *data);
size_t pack_close_channels(struct parts *parts, unsigned char *data);
size_t pack_map_import(struct parts *parts, unsigned char *data);
size_t pack_create_notifies(struct parts *parts, unsigned char *data);
size_t pack_free_notifies(struct parts *parts, unsigned char *data);
size_t pack_reset_notifies(struct parts *parts, unsigned char *data);
size_t pack_create_thread(struct parts *parts, unsigned char *data);
size_t pack_destroy_thread(struct parts *parts, unsigned char *data);
size_t pack_take_cores(struct parts *parts, unsigned char *data);
size_t pack_give_cores(struct parts *parts, unsigned char *data);
size_t pack_keep_cores(struct parts *parts, unsigned char *data);
