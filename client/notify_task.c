/* SPDX-License-Identifier: Apache-2.0 */
#include "client/notify_task.h"

#include "client/session.h"
#include "client/stream.h"
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
