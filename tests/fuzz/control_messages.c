/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are right in form, made of the fuzzer's bytes. */
#include <string.h>

#include "proto/limits.h"
#include "tests/fuzz/control_case.h"

void numbers_add(struct numbers *numbers, uint64_t value)
{
	numbers->values[numbers->next++ % NUMBERS] = value;
}

void numbers_learn(struct numbers *numbers, const Hccld__Control__Reply *reply)
{
	switch (reply->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT:
		numbers_add(numbers, reply->open_context->context);
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		numbers_add(numbers, reply->allocate_segment->segment);
		break;
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		numbers_add(numbers, reply->join_comm->rank);
		break;
	case HCCLD__CONTROL__REPLY__BODY_LIST:
		numbers_add(numbers, reply->list->next);
		break;
	case HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO:
		numbers->key = reply->get_root_info->key;
		memcpy(numbers->secret, reply->get_root_info->secret.data, sizeof(numbers->secret));
		break;
	default:
		break;
	}
}

uint64_t numbers_take(const struct numbers *numbers, struct input *input)
{
	uint8_t kind = input_byte(input);

	/* the latest is 0, and the likeliest ones are near it */
	if (kind < 160)
		return numbers->values[(numbers->next + 2 * NUMBERS - 1 - (kind < 96 ? kind / 2 % 8 : kind % NUMBERS)) % NUMBERS];
	if (kind < 224)
		return kind - 160u;
	return input_size(input);
}

struct parts {
	Hccld__Control__Request request;
	const struct numbers *numbers;
	struct input *input;
};

#define START(parts, name, field, upper)                                               \
	Hccld__Control__##name message = HCCLD__CONTROL__##upper##__INIT;              \
	(parts)->request.body_case = HCCLD__CONTROL__REQUEST__BODY_##upper;            \
	(parts)->request.field = &message

#define PACK(parts, data) hccld__control__request__pack(&(parts)->request, data)

static size_t pack_open_context(struct parts *parts, unsigned char *data)
{
	START(parts, OpenContext, open_context, OPEN_CONTEXT);
	message.device = input_byte(parts->input) % 3;
	return PACK(parts, data);
}

static size_t pack_close_context(struct parts *parts, unsigned char *data)
{
	START(parts, CloseContext, close_context, CLOSE_CONTEXT);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_create_stream(struct parts *parts, unsigned char *data)
{
	START(parts, CreateStream, create_stream, CREATE_STREAM);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_destroy_stream(struct parts *parts, unsigned char *data)
{
	START(parts, DestroyStream, destroy_stream, DESTROY_STREAM);
	message.stream = (uint32_t)input_size(parts->input);
	return PACK(parts, data);
}

static size_t pack_allocate_segment(struct parts *parts, unsigned char *data)
{
	START(parts, AllocateSegment, allocate_segment, ALLOCATE_SEGMENT);
	message.context = numbers_take(parts->numbers, parts->input);
	message.kind = (Hccld__Control__AllocateSegment__Kind)(input_byte(parts->input) % 4);
	message.bytes = input_size(parts->input);
	return PACK(parts, data);
}

static size_t pack_free_segment(struct parts *parts, unsigned char *data)
{
	START(parts, FreeSegment, free_segment, FREE_SEGMENT);
	message.segment = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_memory_info(struct parts *parts, unsigned char *data)
{
	START(parts, MemoryInfo, memory_info, MEMORY_INFO);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_get_root_info(struct parts *parts, unsigned char *data)
{
	START(parts, GetRootInfo, get_root_info, GET_ROOT_INFO);
	return PACK(parts, data);
}

/* Texts: nothing, a short one, one at the limit, one that is no UTF-8. */
static char *some_text(struct input *input, char *buffer, size_t size)
{
	static const size_t lengths[] = { 0, 1, 16, HCCLD_COMM_NAME_MAX - 1, HCCLD_COMM_NAME_MAX, 200 };
	uint8_t kind = input_byte(input);
	size_t length = lengths[kind % 6];

	if (length >= size)
		length = size - 1;
	memset(buffer, kind & 0x80 ? 0xc3 : 'n', length);
	buffer[length] = 0;
	return buffer;
}

static size_t pack_join_comm(struct parts *parts, unsigned char *data)
{
	START(parts, JoinComm, join_comm, JOIN_COMM);
	struct input *input = parts->input;
	uint8_t mode = input_byte(input);
	char name[256], udi[256];

	message.key = mode & 0x80 ? input_word(input, 8) : parts->numbers->key;
	message.secret.data = (uint8_t *)parts->numbers->secret;
	message.secret.len = mode & 0x40 ? input_byte(input) % 33 : 32;
	message.rank = mode & 0x20 ? (uint32_t)input_size(input) : mode % 3;
	message.size = mode & 0x10 ? (uint32_t)input_size(input) : 1 + mode / 4 % 3;
	message.context = numbers_take(parts->numbers, input);
	message.name = some_text(input, name, sizeof(name));
	message.udi = some_text(input, udi, sizeof(udi));
	parts->request.deadline_ms = 1;
	return PACK(parts, data);
}

static size_t pack_leave_comm(struct parts *parts, unsigned char *data)
{
	START(parts, LeaveComm, leave_comm, LEAVE_COMM);
	message.rank = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_open_pairs(struct parts *parts, unsigned char *data)
{
	START(parts, OpenPairs, open_pairs, OPEN_PAIRS);
	uint32_t peers[16];
	uint8_t counts;

	message.rank = numbers_take(parts->numbers, parts->input);
	counts = input_byte(parts->input);
	for (size_t i = 0; i < 16; i++) {
		uint8_t peer = input_byte(parts->input);

		peers[i] = peer < 250 ? peer % 4 : (uint32_t)input_size(parts->input);
	}
	message.n_send_to = counts % 16;
	message.n_receive_from = counts / 16;
	message.send_to = message.receive_from = peers;
	return PACK(parts, data);
}

static size_t pack_status(struct parts *parts, unsigned char *data)
{
	START(parts, Status, status, STATUS);
	return PACK(parts, data);
}

static size_t pack_list(struct parts *parts, unsigned char *data)
{
	START(parts, List, list, LIST);
	uint8_t mode = input_byte(parts->input);

	message.kind = (Hccld__Control__List__Kind)(mode % 5);
	message.after = mode & 0x80 ? numbers_take(parts->numbers, parts->input) : 0;
	return PACK(parts, data);
}

size_t message_hello(struct input *input, uint64_t id, unsigned char *data)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	uint8_t mode = input_byte(input);
	char text[256];

	hello.magic = mode & 0x80 ? (uint32_t)input_word(input, 4) : HCCLD_MAGIC;
	hello.version_low = mode & 0x40 ? (uint32_t)input_size(input) : HCCLD_VERSION_LOW;
	hello.version_high = mode & 0x40 ? (uint32_t)input_size(input) : HCCLD_VERSION_HIGH;
	hello.features = mode & 0x20 ? input_word(input, 8) : 0;
	hello.role = mode % 4 == 3 ? HCCLD__CONTROL__HELLO__ROLE__TOOL : HCCLD__CONTROL__HELLO__ROLE__CLIENT;
	hello.library = hello.process = some_text(input, text, sizeof(text));
	request.id = id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	return hccld__control__request__pack(&request, data);
}

size_t message_make(struct input *input, const struct numbers *numbers, uint64_t id, unsigned char *data)
{
	static size_t (*const makers[])(struct parts *parts, unsigned char *data) = {
		pack_open_context, pack_create_stream,	pack_allocate_segment, pack_get_root_info, pack_join_comm,
		pack_open_pairs,   pack_leave_comm,	pack_free_segment,     pack_destroy_stream, pack_close_context,
		pack_memory_info,  pack_status,		pack_list,
	};
	struct parts parts = { .request = HCCLD__CONTROL__REQUEST__INIT, .numbers = numbers, .input = input };
	uint8_t which = input_byte(input);

	/* now and then an id that was used before */
	parts.request.id = which & 0x80 ? id - 1 : id;
	return makers[which % (sizeof(makers) / sizeof(makers[0]))](&parts, data);
}
