/* SPDX-License-Identifier: Apache-2.0 */
#include "client/value.h"

#include "client/buffer.h"
#include "client/error.h"
#include "client/stream.h"
#include "proto/feature.h"

static int value_submit(enum task_kind kind, void *address, uint64_t value, uint32_t comparison, void *handle)
{
	struct task task = { .kind = (uint8_t)kind, .first_lane = LANE_END };
	struct item item = { .kind = ITEM_PLACE, .data_type = (uint8_t)comparison, .next = LANE_END, .next_lane = LANE_END };
	struct hccld_session *session;
	struct hccld_stream *stream;
	struct hccld_place place;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_TASKS, "tasks that write values and wait for them", &session);
	if (r == 0)
		r = hccld_stream_get(handle, &stream);
	if (r < 0)
		return r;
	if ((uintptr_t)address % sizeof(uint64_t))
		return hccld_error(CAUSE_ARGUMENT, "devAddr is %p; expected a multiple of 8", address);
	if (hccld_buffer_find(address, &place) < 0 || place.available < sizeof(uint64_t)) {
		r = hccld_buffer_freed_error(CAUSE_NOT_DEVICE_MEMORY, "devAddr", address);
		return r < 0 ? r
			     : hccld_error(CAUSE_NOT_DEVICE_MEMORY, "devAddr is %p, which is not 8 bytes of memory of aclrtMalloc", address);
	}
	item.segment = place.segment;
	item.offset = place.offset;
	atomic_init(&item.number, value);
	return hccld_stream_submit(stream, &task, &item, 1);
}

int hccld_value_write(void *address, uint64_t value, void *stream)
{
	return value_submit(TASK_WRITE, address, value, 0, stream);
}

int hccld_value_wait(void *address, uint64_t value, uint32_t comparison, void *stream)
{
	int r = value_submit(TASK_WAIT_VALUE, address, value, comparison, stream);

	if (r == 0)
		hccld_stream_entangle();
	return r;
}
