/* SPDX-License-Identifier: Apache-2.0 */
/* Who has yet to record a notify that a stream waits for. Reads shared memory as waiting.c does. Control thread. */
#pragma once

#include <stdint.h>

struct session;
struct stream;
struct waiting;

struct recorder {
	struct session *session;
	const struct stream *stream;
};

/* The first stream of the tenant's processes that has a task queued that records it. NULL: none, or *@left tasks were looked at. */
struct recorder recorder_find(const struct waiting *waiting, uint32_t *left);
