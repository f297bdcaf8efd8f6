/* SPDX-License-Identifier: Apache-2.0 */
#include "client/notify_task.h"

#include "client/session.h"
#include "client/stream.h"
#include "client/stream_state.h"
#include "proto/feature.h"

static int submit(struct hccld_stream *stream, enum task_kind kind, const struct hccld_notify_place *place, uint32_t mode,
		  uint64_t number, bool clears, uint32_t timeout_ms)
{
	struct task task = { .kind = (uint8_t)kind, .timeout_ms = timeout_ms, .first_lane = LANE_END };
	struct item item = { .kind = ITEM_PLACE,
			     .data_type = (uint8_t)mode,
			     .peer = clears,
			     .segment = place->segment,
			     .offset = place->offset,
			     .next = LANE_END,
			     .next_lane = LANE_END };
	struct hccld_session *session;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "notifies", &session);
	if (r < 0)
		return r;
	atomic_init(&item.number, number);
	return hccld_stream_submit(stream, &task, &item, 1);
}

int hccld_notify_submit_record(struct hccld_stream *stream, const struct hccld_notify_place *place, enum notify_change change,
			       uint32_t value)
{
	return submit(stream, TASK_NOTIFY_RECORD, place, change, value, false, 0);
}

int hccld_notify_submit_wait(struct hccld_stream *stream, const struct hccld_notify_place *place, enum notify_compare compare,
			     uint32_t operand, uint32_t mask, bool clears, uint32_t timeout_ms)
{
	int r = submit(stream, TASK_NOTIFY_WAIT, place, compare, (uint64_t)mask << 32 | operand, clears, timeout_ms);

	/* what it waits for may be another stream of this process */
	if (r == 0)
		hccld_stream_entangle();
	return r;
}

/* ---- what is queued ---- */

/* For hccld_stream_each(), which calls in this thread. */
static _Thread_local struct {
	uint64_t segment;
	bool is_found;
} wanted;

static void stream_look(struct hccld_stream *stream)
{
	const struct stream_ring *ring = stream->ring;
	uint64_t begin = stream_completed(stream), position = begin;
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	while (position < tail && tail - begin <= HCCLD_STREAM_SLOTS) {
		const struct task *task = &ring->slots[position % HCCLD_STREAM_SLOTS].task;
		const struct item *item = &ring->slots[(position + 1) % HCCLD_STREAM_SLOTS].item;

		if ((task->kind == TASK_NOTIFY_RECORD || task->kind == TASK_NOTIFY_WAIT) && item->segment == wanted.segment)
			wanted.is_found = true;
		if (!task->slot_count)
			break;
		position += task->slot_count;
	}
	/* slots were written anew while we looked */
	if (atomic_load_explicit(&ring->tail, memory_order_acquire) - begin > HCCLD_STREAM_SLOTS)
		wanted.is_found = true;
}

bool hccld_notify_is_queued(uint64_t segment)
{
	wanted.segment = segment;
	wanted.is_found = false;
	hccld_stream_each(stream_look);
	return wanted.is_found;
}
