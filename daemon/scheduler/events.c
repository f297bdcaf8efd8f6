/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/events.h"

#include "scheduler/scheduler.h"

/* ---- engine thread ---- */

/* False: the ring is full. */
static bool event_put(struct events *events, const struct event *event)
{
	uint32_t tail = atomic_load_explicit(&events->tail, memory_order_relaxed);

	if (tail - atomic_load_explicit(&events->head, memory_order_acquire) == EVENTS)
		return false;
	events->ring[tail % EVENTS] = *event;
	atomic_store_explicit(&events->tail, tail + 1, memory_order_release);
	events->options->notify(events->options->data);
	return true;
}

void event_liar(void *data, struct view_session *session, const char *what)
{
	struct event event = { .kind = EVENT_LIAR, .what = what, .object = session->id };

	event_put(data, &event);
}

static void event_type_mismatch(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint8_t source_type,
				uint8_t destination_type)
{
	struct event event = { .kind = EVENT_TYPE_MISMATCH, .object = comm->id, .source = source, .destination = destination,
			       .source_type = source_type, .destination_type = destination_type };

	event_put(data, &event);
}

static bool event_no_room(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint32_t pools)
{
	struct event event = { .kind = EVENT_NO_ROOM, .object = comm->id, .source = source, .destination = destination, .pools = pools };

	return event_put(data, &event);
}

struct engine_host events_host(struct events *events)
{
	return (struct engine_host){ .data = events, .liar = event_liar, .type_mismatch = event_type_mismatch,
				     .no_room = events->options->no_room ? event_no_room : NULL };
}

/* ---- control thread ---- */

/* False: the ring is empty. */
static bool event_take(struct events *events, struct event *ret_event)
{
	uint32_t head = atomic_load_explicit(&events->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&events->tail, memory_order_acquire))
		return false;
	*ret_event = events->ring[head % EVENTS];
	atomic_store_explicit(&events->head, head + 1, memory_order_release);
	return true;
}

void events_collect(struct events *events)
{
	const struct scheduler_options *options = events->options;
	struct event event;

	while (event_take(events, &event)) {
		switch (event.kind) {
		case EVENT_LIAR:
			options->liar(options->data, event.object, event.what);
			break;
		case EVENT_TYPE_MISMATCH:
			options->type_mismatch(options->data, event.object, event.source, event.destination, event.source_type,
					       event.destination_type);
			break;
		case EVENT_NO_ROOM:
			options->no_room(options->data, event.object, event.source, event.destination, event.pools);
			break;
		}
	}
}
