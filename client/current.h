/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread works with: the default context of the device it has set, or a context that the program has made itself. The latter has a
 * default stream of its own and ends the streams made in it; memory and communicators belong to the device in either case.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "client/session.h"

/* aclrtCreateContext: a reference to the device, and the current context of this thread from now on. -ENODEV, -EDQUOT. */
int hccld_context_create(int32_t logical, void **ret_handle);
/* Waits for the streams made in it and ends them. -ENXIO: unknown; -EINVAL: a default context. */
int hccld_context_destroy(void *handle);
/* Of this thread; -ENXIO: unknown, or its device was reset. */
int hccld_context_set_current(void *handle);
/* -ENXIO: this thread has none. */
int hccld_context_get_current(void **ret_handle);

/* For stream.c: where the default stream for NULL is kept, and which context a new stream belongs to (0: a default one). */
_Atomic(struct hccld_stream *) *hccld_context_stream_slot(struct hccld_context *context);
uint64_t hccld_context_owner(const struct hccld_context *context);
