/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. A record gives the event's place the next version, a wait asks for the version of the record queued last. Which version that
 * is is decided with `mutex`, a record's when its task has room in the ring already: a version that a wait asks for always comes.
 *
 * Threads of this process never look at the place but for its time: an event is complete when the stream that records it has passed the
 * task, or has ended. So a device may be reset, and its memory go, while a thread waits.
 */
#include "client/event.h"

#include <errno.h>
#include <pthread.h>

#include "client/device.h"
#include "client/error.h"
#include "client/event_place.h"
#include "client/stream.h"
#include "client/table.h"
#include "proto/feature.h"

#define WAITS_KEPT 4u	 /* for hccld_event_query_waits(): the newest */
#define HANDLES_SPARE 256u /* free entries that a destroyed handle stays unknown for */

struct hccld_event {
	_Atomic bool is_alive;
	uint32_t id;
	bool has_time, is_extended, is_recorded; /* is_recorded: a record was queued since it was made or reset */
	struct hccld_context *context;
	uint64_t context_id;
	struct event_place *place;
	struct hccld_point waits[WAITS_KEPT];
	uint32_t wait_count;
	struct hccld_event *next; /* free entries */
};

static struct hccld_event events[EVENTS_MAX] HCCLD_TABLE;
/* Of all that follows. Lock order: a stream's `submitting`, then this. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct hccld_event *free_first, *free_last;
static _Atomic uint32_t wait_timeout_ms;
static uint32_t limit, free_count; /* entries below `limit` have been used */

/* ---- entries ---- */

/* With `mutex`. Entries come back in the order they went, but memory stays as small as the program's use of it. */
static struct hccld_event *entry_take(void)
{
	struct hccld_event *event;

	if ((free_count < HANDLES_SPARE && limit < EVENTS_MAX) || !free_first) {
		if (limit == EVENTS_MAX)
			return NULL;
		event = &events[limit];
		event->id = limit++;
		return event;
	}
	event = free_first;
	free_first = event->next;
	if (!free_first)
		free_last = NULL;
	free_count--;
	return event;
}

static void entry_give(struct hccld_event *event)
{
	event->next = NULL;
	if (free_last)
		free_last->next = event;
	else
		free_first = event;
	free_last = event;
	free_count++;
}

static bool is_open(const struct hccld_event *event)
{
	return event->place && hccld_context_is_open(event->context, event->context_id);
}

/* Locks `mutex` if it returns 0. */
static int event_lock(void *handle, struct hccld_event **ret_event)
{
	uintptr_t distance = (uintptr_t)handle - (uintptr_t)events;
	struct hccld_event *event = NULL;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (distance >= sizeof(events) || distance % sizeof(events[0]))
		return hccld_error(CAUSE_BAD_HANDLE, "event is %p: that is no event of this process", handle);
	event = &events[distance / sizeof(events[0])];
	pthread_mutex_lock(&mutex);
	if (event->is_alive) {
		*ret_event = event;
		return 0;
	}
	pthread_mutex_unlock(&mutex);
	return hccld_error(CAUSE_BAD_HANDLE, "event is %p: that is no event of this process, or it was destroyed", handle);
}

/* The same for an event that can be used. */
static int event_lock_open(void *handle, struct hccld_event **ret_event)
{
	int r = event_lock(handle, ret_event);

	if (r < 0 || is_open(*ret_event))
		return r;
	pthread_mutex_unlock(&mutex);
	return hccld_error(CAUSE_BAD_HANDLE, "event %u has ended with its device, which was reset", (*ret_event)->id);
}

/* ---- made and destroyed ---- */

/* Locks `mutex` if it returns 0; there is a place then. */
static int place_lock(struct hccld_context *context, uint64_t context_id)
{
	struct event_block *block;
	int r;

	for (;;) {
		pthread_mutex_lock(&mutex);
		if (hccld_context_is_open(context, context_id) && event_places_have(context))
			return 0;
		pthread_mutex_unlock(&mutex);
		if (!hccld_context_is_open(context, context_id))
			return hccld_error(CAUSE_NO_CONTEXT, "device %d was reset while an event was made on it", context->logical);
		r = event_block_new(context, &block);
		if (r < 0)
			return r;
		pthread_mutex_lock(&mutex);
		if (hccld_context_is_open(context, context_id))
			event_places_add(context, block);
		else
			event_block_free(block);
		pthread_mutex_unlock(&mutex);
	}
}

static int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

int hccld_event_new(struct hccld_context *context, bool has_time, bool is_extended, void **ret_handle)
{
	const uint64_t context_id = context->id;
	struct hccld_session *session;
	struct hccld_event *event;
	uint32_t id;
	int cancel, r;

	r = hccld_session_need(HCCLD_FEATURE_TASKS, "events", &session);
	if (r < 0)
		return r;
	cancel = cancel_off();
	r = place_lock(context, context_id);
	if (r == 0) {
		event = entry_take();
		if (event) {
			id = event->id;
			*event = (struct hccld_event){ .id = id, .has_time = has_time, .is_extended = is_extended,
						       .context = context, .context_id = context_id };
			event->place = event_place_take(context);
			atomic_store_explicit(&event->place->slot->id, id, memory_order_relaxed);
			event->is_alive = true;
			*ret_handle = event;
		} else {
			r = hccld_error(CAUSE_EVENTS, "this process has %u events, the most it can have", EVENTS_MAX);
		}
		pthread_mutex_unlock(&mutex);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_event_destroy(void *handle)
{
	struct hccld_event *event = NULL;
	int r;

	r = event_lock(handle, &event);
	if (r < 0)
		return r;
	event->is_alive = false;
	if (is_open(event))
		event_place_give(event->context, event->place);
	event->place = NULL;
	entry_give(event);
	pthread_mutex_unlock(&mutex);
	return 0;
}

void hccld_event_forget(struct hccld_context *context)
{
	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < limit; i++)
		if (events[i].context == context)
			events[i].place = NULL;
	event_places_forget(context);
	pthread_mutex_unlock(&mutex);
}

/* ---- tasks ---- */

/* A task on its way into the ring. */
struct making {
	struct hccld_event *event;
	struct hccld_stream *stream;
	struct event_place *spare;
	struct item item;
};

/* With `mutex`: E3: records of the place wait in another stream, and no wait has been promised this place. */
static bool needs_other_place(const struct hccld_event *event, const struct hccld_stream *stream)
{
	const struct event_place *place = event->place;

	return place->record.stream != stream && hccld_point_is_pending(&place->record) &&
	       place->awaited <= atomic_load_explicit(&place->slot->submitted, memory_order_relaxed);
}

static void item_aim(struct item *item, const struct event_place *place, uint64_t version)
{
	item->segment = place->segment;
	item->offset = place->offset;
	atomic_store_explicit(&item->number, version, memory_order_relaxed);
}

static void record_make(void *arg, uint64_t position, uint64_t end)
{
	struct making *making = arg;
	struct hccld_event *event = making->event;
	struct event_place *place;
	uint64_t version;

	pthread_mutex_lock(&mutex);
	if (event->is_alive && is_open(event)) {
		if (making->spare && needs_other_place(event, making->stream)) {
			place = event->place;
			event->place = making->spare;
			making->spare = NULL;
			atomic_store_explicit(&event->place->slot->id, event->id, memory_order_relaxed);
			event_place_give(event->context, place);
		}
		place = event->place;
		version = atomic_load_explicit(&place->slot->submitted, memory_order_relaxed) + 1;
		atomic_store_explicit(&place->slot->submitted, version, memory_order_relaxed);
		atomic_store_explicit(&place->slot->stream, hccld_stream_id(making->stream) + 1, memory_order_relaxed);
		place->record = hccld_point_of(making->stream, end);
		event->is_recorded = true;
		item_aim(&making->item, place, version);
	}
	pthread_mutex_unlock(&mutex);
}

static int event_submit(struct making *making, enum task_kind kind, uint32_t timeout_ms,
			void (*make)(void *arg, uint64_t position, uint64_t end))
{
	struct task task = { .kind = (uint8_t)kind, .timeout_ms = timeout_ms, .first_lane = LANE_END };
	struct hccld_making hook = { make, making };

	making->item.kind = ITEM_PLACE;
	making->item.next = making->item.next_lane = LANE_END;
	return hccld_stream_submit_made(making->stream, &task, &making->item, 1, &hook);
}

/* Both handles are judged, the event's first. The event may go as soon as this returns: it is locked, and looked for, again. */
static int making_begin(void *handle, void *stream_handle, struct making *making)
{
	int r = event_lock_open(handle, &making->event);

	if (r < 0)
		return r;
	pthread_mutex_unlock(&mutex);
	return hccld_stream_get(stream_handle, &making->stream);
}

int hccld_event_record(void *handle, void *stream_handle)
{
	struct making making = { 0 };
	struct hccld_context *context;
	uint64_t context_id;
	int cancel, r;
	bool busy;

	r = making_begin(handle, stream_handle, &making);
	if (r < 0)
		return r;
	cancel = cancel_off();
	r = event_lock_open(handle, &making.event);
	if (r == 0) {
		context = making.event->context;
		context_id = making.event->context_id;
		busy = needs_other_place(making.event, making.stream);
		pthread_mutex_unlock(&mutex);
		if (busy)
			r = place_lock(context, context_id);
		if (busy && r == 0) {
			making.spare = event_place_take(context);
			pthread_mutex_unlock(&mutex);
		}
	}
	if (r == 0) {
		r = event_submit(&making, TASK_RECORD, 0, record_make);
		if (making.spare) {
			pthread_mutex_lock(&mutex);
			if (hccld_context_is_open(context, context_id))
				event_place_give(context, making.spare);
			pthread_mutex_unlock(&mutex);
		}
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

int hccld_event_reset(void *handle, void *stream_handle)
{
	struct hccld_stream *stream;
	struct hccld_event *event = NULL;
	int r;

	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	pthread_mutex_unlock(&mutex);
	r = hccld_stream_get(stream_handle, &stream);
	if (r < 0)
		return r;
	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	event->is_recorded = false;
	pthread_mutex_unlock(&mutex);
	return 0;
}

/* The place and version are known; the point is for hccld_event_query_waits(). */
static void wait_make(void *arg, uint64_t position, uint64_t end)
{
	struct making *making = arg;
	struct hccld_event *event = making->event;

	pthread_mutex_lock(&mutex);
	if (event->is_alive)
		event->waits[event->wait_count++ % WAITS_KEPT] = hccld_point_of(making->stream, end);
	pthread_mutex_unlock(&mutex);
}

/* With `mutex`: what the stream has to wait for. False: nothing. */
static bool wait_aim(struct making *making)
{
	struct hccld_event *event = making->event;
	struct event_place *place = event->place;
	uint64_t version = atomic_load_explicit(&place->slot->submitted, memory_order_relaxed);

	if (event->is_recorded) {
		if (place->record.stream == making->stream || !hccld_point_is_pending(&place->record))
			return false;
	} else if (event->is_extended) {
		return false;
	} else {
		version++;
	}
	if (place->awaited < version)
		place->awaited = version;
	item_aim(&making->item, place, version);
	return true;
}

int hccld_event_wait(void *handle, void *stream_handle, uint32_t timeout_ms)
{
	struct making making = { 0 };
	bool waits;
	int r;

	r = making_begin(handle, stream_handle, &making);
	if (r < 0)
		return r;
	r = event_lock_open(handle, &making.event);
	if (r < 0)
		return r;
	waits = wait_aim(&making);
	pthread_mutex_unlock(&mutex);
	hccld_stream_entangle();
	return waits ? event_submit(&making, TASK_WAIT_EVENT, timeout_ms, wait_make) : 0;
}

uint32_t hccld_event_wait_timeout(void)
{
	return atomic_load_explicit(&wait_timeout_ms, memory_order_relaxed);
}

void hccld_event_set_wait_timeout(uint32_t timeout_ms)
{
	atomic_store_explicit(&wait_timeout_ms, timeout_ms, memory_order_relaxed);
}

/* ---- questions ---- */

int hccld_event_query(void *handle)
{
	struct hccld_event *event = NULL;
	struct hccld_point point;
	bool recorded, extended;
	int r;

	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	point = event->place->record;
	recorded = event->is_recorded;
	extended = event->is_extended;
	pthread_mutex_unlock(&mutex);
	if (!recorded)
		return extended;
	if (hccld_point_is_pending(&point))
		return 0;
	hccld_stream_run_all_deferred();
	return 1;
}

int hccld_event_query_waits(void *handle)
{
	struct hccld_event *event = NULL;
	bool done;
	int r;

	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	done = !event->is_recorded || !hccld_point_is_pending(&event->place->record);
	for (uint32_t i = 0; i < WAITS_KEPT; i++)
		done &= !hccld_point_is_pending(&event->waits[i]);
	pthread_mutex_unlock(&mutex);
	if (done)
		hccld_stream_run_all_deferred();
	return done;
}

int hccld_event_synchronize(void *handle, int64_t timeout_ms)
{
	struct hccld_event *event = NULL;
	struct hccld_point point;
	bool recorded, extended;
	uint32_t id;
	int r;

	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	point = event->place->record;
	recorded = event->is_recorded;
	extended = event->is_extended;
	id = event->id;
	pthread_mutex_unlock(&mutex);
	if (!recorded)
		return extended ? 0 : hccld_error(CAUSE_ARGUMENT, "event %u was not recorded: call aclrtRecordEvent before", id);
	r = hccld_point_wait(&point, timeout_ms);
	if (r == -ETOOMANYREFS)
		return hccld_error(CAUSE_EVENT_TIMEOUT, "event %u was not recorded within %lld ms; hcclctl waiting shows what its stream waits for",
				   id, (long long)timeout_ms);
	return r;
}

/* With `mutex`. */
static int time_of(const struct hccld_event *event, uint64_t *ret_ns)
{
	if (!event->has_time)
		return hccld_error(CAUSE_TIMESTAMP, "event %u was made without ACL_EVENT_TIME_LINE", event->id);
	if (!event->is_recorded || hccld_point_is_pending(&event->place->record))
		return hccld_error(CAUSE_TIMESTAMP, "event %u %s: synchronize it, or its stream, before", event->id,
				   event->is_recorded ? "is not complete" : "was not recorded");
	*ret_ns = atomic_load_explicit(&event->place->slot->recorded_ns, memory_order_relaxed);
	if (*ret_ns)
		return 0;
	return hccld_error(CAUSE_TIMESTAMP, "event %u has no time: the stream that was to record it was destroyed", event->id);
}

int hccld_event_time(void *handle, uint64_t *ret_ns)
{
	struct hccld_event *event = NULL;
	int r;

	r = event_lock_open(handle, &event);
	if (r < 0)
		return r;
	r = time_of(event, ret_ns);
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_event_elapsed(void *start, void *end, uint64_t *ret_ns)
{
	uint64_t from = 0, to = 0;
	int r;

	r = hccld_event_time(start, &from);
	if (r == 0)
		r = hccld_event_time(end, &to);
	if (r < 0)
		return r;
	if (to < from)
		return hccld_error(CAUSE_TIME_REVERSED, "the end event was recorded %.3f ms before the start event",
				   (double)(from - to) / 1e6);
	*ret_ns = to - from;
	return 0;
}

int hccld_event_id(void *handle, uint32_t *ret_id)
{
	struct hccld_event *event = NULL;
	int r;

	r = event_lock(handle, &event);
	if (r < 0)
		return r;
	*ret_id = event->id;
	pthread_mutex_unlock(&mutex);
	return 0;
}

uint32_t hccld_event_room(void)
{
	uint32_t room;

	pthread_mutex_lock(&mutex);
	room = EVENTS_MAX - limit + free_count;
	pthread_mutex_unlock(&mutex);
	return room;
}
