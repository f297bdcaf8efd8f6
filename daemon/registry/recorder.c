/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/recorder.h"

#include <string.h>

#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

/* By the address, under which importers have it, too. */
static bool task_records(struct session *session, const struct stream_ring *ring, uint64_t position, const struct task *task,
			 const void *place)
{
	const struct view_segment *segment;
	struct item item;

	if (task->kind != TASK_NOTIFY_RECORD || task->item_count != 1 || task->side)
		return false;
	memcpy(&item, &ring->slots[(position + 1) & (HCCLD_STREAM_SLOTS - 1)].item, sizeof(item));
	segment = view_notify_find(&session->view, item.segment, item.offset);
	return segment && segment->base + item.offset == place;
}

static bool find_in_stream(struct session *session, const struct stream *stream, const void *place, uint32_t *left)
{
	const struct stream_ring *ring = stream->ring;
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (tail - position > HCCLD_STREAM_SLOTS)
		return false;
	while (position < tail && *left) {
		struct task task;

		--*left;
		memcpy(&task, &ring->slots[position & (HCCLD_STREAM_SLOTS - 1)].task, sizeof(task));
		if (task_records(session, ring, position, &task, place))
			return true;
		position += task.slot_count ? task.slot_count : 1;
	}
	return false;
}

struct recorder recorder_find(const struct waiting *waiting, uint32_t *left)
{
	struct registry *registry = waiting->session->registry;

	list_for_each(struct session, session, &registry->sessions, link) {
		if (session->tenant != waiting->session->tenant)
			continue;
		for (uint32_t i = 0; session->stream_slots.used && i < HCCLD_STREAMS_PER_SESSION; i++) {
			const struct stream *stream = session_stream_at(session, i);

			if (stream && find_in_stream(session, stream, waiting->place, left))
				return (struct recorder){ session, stream };
		}
	}
	return (struct recorder){ 0 };
}
