/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of this process: handles, creation, end. A handle is the address of an entry of `streams`, which is looked up and never
 * followed. Entries are used round and round, so that a destroyed handle stays unknown for thousands of creations.
 */
#include "client/stream_state.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "client/current.h"
#include "client/device.h"
#include "client/drive.h"
#include "client/error.h"
#include "client/hostfunc.h"
#include "client/table.h"

#define HANDLES 8192u

static struct hccld_stream streams[HANDLES] HCCLD_TABLE;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static uint32_t next_handle;
static uint64_t serial;
static struct hccld_stream *by_place[HCCLD_STREAMS_PER_SESSION] HCCLD_TABLE;
static uint32_t place_limit; /* places below it may be in use */

/* ---- handles ---- */

int hccld_stream_handle_error(void *handle)
{
	return hccld_error(CAUSE_BAD_HANDLE,
			   "stream is %p: that is no stream of this process, or it was destroyed",
			   handle);
}

/* With `mutex`: an entry for a new stream, or NULL. */
static struct hccld_stream *entry_take(void)
{
	for (uint32_t i = 0; i < HANDLES; i++) {
		struct hccld_stream *stream = &streams[next_handle];

		next_handle = (next_handle + 1) % HANDLES;
		if (atomic_load(&stream->state) == STREAM_FREE)
			return stream;
	}
	return NULL;
}

/* With `mutex`. */
static void stream_publish(struct hccld_stream *stream, struct hccld_context *context,
			   uint32_t place, struct stream_ring *ring, bool is_of_thread)
{
	stream->place = place;
	stream->context = context;
	stream->is_of_thread = is_of_thread;
	/* a thread ends with its communicator, not with a context that the program has made */
	stream->owner = is_of_thread ? 0 : hccld_context_owner(context);
	stream->ring = ring;
	atomic_store(&stream->serial, ++serial);
	atomic_store(&stream->is_full, false);
	atomic_store(&stream->held, 0);
	stream->settings = (struct hccld_stream_settings){ 0 };
	stream->host_first = stream->host_last = stream->host_running = NULL;
	stream->host_thread = 0;
	atomic_store(&stream->tail, atomic_load(&ring->tail));
	pthread_mutex_init(&stream->submitting, NULL);
	pthread_mutex_init(&stream->deferring, NULL);
	atomic_store(&stream->deferred_position, STREAM_NEVER);
	stream->first = stream->last = NULL;
	hccld_drive_add_stream(context, ring);
	by_place[place] = stream;
	if (place >= place_limit)
		place_limit = place + 1;
	atomic_store_explicit(&stream->state, STREAM_ALIVE, memory_order_release);
}

static int destroy_request(struct hccld_session *session, uint32_t place)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DestroyStream destroy = HCCLD__CONTROL__DESTROY_STREAM__INIT;

	destroy.stream = place;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM;
	request.destroy_stream = &destroy;
	return hccld_call_simple(session->connection, &request);
}

static int create_request(struct hccld_session *session, uint64_t context, uint32_t *ret_place)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	struct hccld_call call;
	int r;

	create.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM ||
		       call.reply->create_stream->stream >= HCCLD_STREAMS_PER_SESSION))
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to creating a stream is malformed");
	if (r == 0)
		*ret_place = call.reply->create_stream->stream;
	hccld_call_end(&call);
	return r;
}

static int ring_check(const struct stream_ring *ring)
{
	if (ring->magic == STREAM_MAGIC && ring->version == STREAM_VERSION && ring->slot_count == HCCLD_STREAM_SLOTS)
		return 0;
	return hccld_error(CAUSE_PROTOCOL, "the ring of a new stream is malformed");
}

/* -ENXIO: the context that had @id has gone, and the stream with it. After other errors the stream is still to be given back. */
static int stream_enter(struct hccld_session *session, struct hccld_context *context, uint64_t id, uint32_t place, bool is_of_thread,
			struct hccld_stream **ret_stream)
{
	struct stream_ring *ring = session_stream(session->region, place);
	struct hccld_stream *stream;
	bool is_open;
	int r;

	r = ring_check(ring);
	if (r < 0)
		return r;
	pthread_mutex_lock(&mutex);
	/* a device that another thread resets is closed before its streams are listed: they have this one, or we see it closed */
	is_open = hccld_context_is_open(context, id);
	stream = is_open ? entry_take() : NULL;
	if (stream)
		stream_publish(stream, context, place, ring, is_of_thread);
	pthread_mutex_unlock(&mutex);
	if (!is_open)
		return hccld_error(CAUSE_NO_CONTEXT, "device %d was reset while a stream was made on it", context->logical);
	if (!stream)
		return hccld_error(CAUSE_STREAMS,
				   "this process has %u streams, the most it can have", HANDLES);
	*ret_stream = stream;
	return 0;
}

int hccld_stream_new(struct hccld_context *context, struct hccld_stream **ret_stream)
{
	const uint64_t id = context->id;
	struct hccld_session *session;
	uint32_t place = 0;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	r = create_request(session, id, &place);
	if (r < 0)
		return r;
	r = stream_enter(session, context, id, place, false, ret_stream);
	if (r < 0 && r != -ENXIO)
		(void)destroy_request(session, place);
	return r;
}

int hccld_stream_adopt(struct hccld_context *context, uint64_t id, uint32_t place, struct hccld_stream **ret_stream)
{
	struct hccld_session *session;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	if (place >= HCCLD_STREAMS_PER_SESSION)
		return hccld_error(CAUSE_PROTOCOL, "hccld's answer to creating a thread is malformed");
	return stream_enter(session, context, id, place, true, ret_stream);
}

/* The stream of @context in @slot, which is made on first use. */
static int slot_get(struct hccld_context *context, _Atomic(struct hccld_stream *) *slot, struct hccld_stream **ret_stream)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	struct hccld_stream *stream;
	int cancel, r = 0;

	*ret_stream = atomic_load_explicit(slot, memory_order_acquire);
	if (*ret_stream && stream_is_alive(*ret_stream))
		return 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&making);
	stream = atomic_load(slot);
	/* one that ended with its device can be left over if the reset came in between */
	if (!stream || !stream_is_alive(stream)) {
		r = hccld_stream_new(context, &stream);
		if (r == 0)
			atomic_store_explicit(slot, stream, memory_order_release);
	}
	pthread_mutex_unlock(&making);
	pthread_setcancelstate(cancel, NULL);
	*ret_stream = stream;
	return r;
}

static int default_stream_get(struct hccld_stream **ret_stream)
{
	struct hccld_context *context;
	int r;

	r = hccld_context_current(&context);
	return r < 0 ? r : slot_get(context, hccld_context_stream_slot(context), ret_stream);
}

int hccld_stream_get_inner(struct hccld_context *context, struct hccld_stream **ret_stream)
{
	return slot_get(context, &context->inner_stream, ret_stream);
}

int hccld_stream_get(void *handle, struct hccld_stream **ret_stream)
{
	uintptr_t distance = (uintptr_t)handle - (uintptr_t)streams;
	int r;

	if (!handle)
		return default_stream_get(ret_stream);
	r = hccld_session_check_fork();
	if (r < 0)
		return r;
	if (distance >= sizeof(streams) || distance % sizeof(streams[0]) ||
	    !stream_is_alive(&streams[distance / sizeof(streams[0])]))
		return hccld_stream_handle_error(handle);
	*ret_stream = &streams[distance / sizeof(streams[0])];
	return 0;
}

uint32_t hccld_stream_id(const struct hccld_stream *stream)
{
	return stream->place;
}

uint64_t hccld_stream_serial(const struct hccld_stream *stream)
{
	return atomic_load_explicit(&stream->serial, memory_order_relaxed);
}

bool hccld_stream_is(const struct hccld_stream *stream, uint64_t number)
{
	return stream_is_alive(stream) && hccld_stream_serial(stream) == number;
}

uint32_t hccld_stream_fault_count(const struct hccld_stream *stream)
{
	return stream_is_alive(stream) ? atomic_load_explicit(&stream->ring->fault_count, memory_order_acquire) : 0;
}

bool hccld_stream_fault(const struct hccld_stream *stream, uint32_t known, struct fault *ret_fault)
{
	if (hccld_stream_fault_count(stream) == known)
		return false;
	/* a new one is written over it only when this one was told: what is read then is of the one or the other */
	memcpy(ret_fault, &stream->ring->fault, sizeof(*ret_fault));
	return true;
}

struct hccld_stream_settings *hccld_stream_settings(struct hccld_stream *stream)
{
	return &stream->settings;
}

uint32_t hccld_stream_room(void)
{
	uint32_t room = HCCLD_STREAMS_PER_SESSION;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < place_limit; i++)
		room -= by_place[i] != NULL;
	pthread_mutex_unlock(&mutex);
	return room;
}

void hccld_stream_each(void (*found)(struct hccld_stream *stream))
{
	struct hccld_stream *list[HCCLD_STREAMS_PER_SESSION];
	uint32_t count = 0;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < place_limit; i++)
		if (by_place[i] && stream_is_alive(by_place[i]))
			list[count++] = by_place[i];
	pthread_mutex_unlock(&mutex);
	for (uint32_t i = 0; i < count; i++)
		found(list[i]);
}

struct hccld_context *hccld_stream_context(struct hccld_stream *stream)
{
	return stream->context;
}

/* ---- ending ---- */

/* The daemon has let go of the stream, which is ENDED or STOPPED. */
static void stream_finish(struct hccld_stream *stream, uint64_t completed)
{
	hccld_deferred_finish(stream, completed);
	pthread_mutex_lock(&mutex);
	if (by_place[stream->place] == stream)
		by_place[stream->place] = NULL;
	atomic_store_explicit(&stream->state, STREAM_FREE, memory_order_release);
	pthread_mutex_unlock(&mutex);
}

static bool stream_end(struct hccld_stream *stream, enum stream_state state)
{
	uint32_t alive = STREAM_ALIVE;

	return atomic_compare_exchange_strong(&stream->state, &alive, state);
}

/* The stream is no longer ALIVE: until no thread writes into its ring, which is about to belong to somebody else. */
static void await_submitters(struct hccld_stream *stream)
{
	/* those that wait for room */
	hccld_stream_wake_sleepers(stream->context);
	pthread_mutex_lock(&stream->submitting);
	pthread_mutex_unlock(&stream->submitting);
}

bool hccld_stream_close(struct hccld_stream *stream, uint64_t *ret_completed)
{
	/* while it is still among all */
	if (hccld_deferred_is_entangled())
		hccld_stream_run_all_deferred();
	if (!stream_end(stream, STREAM_ENDED))
		return false;
	await_submitters(stream);
	hccld_drive_remove_stream(stream->context, stream->ring);
	hccld_host_stop(stream);
	/* before the daemon takes it: afterwards the ring is no memory of ours */
	*ret_completed = stream_completed(stream);
	return true;
}

void hccld_stream_closed(struct hccld_stream *stream, uint64_t completed)
{
	/* events that it was to record count as recorded now */
	hccld_stream_wake_sleepers(stream->context);
	stream_finish(stream, completed);
}

void hccld_stream_finish_work(struct hccld_stream *stream)
{
	/* a host function of the stream itself does not wait, which is no error of the caller's */
	if (hccld_stream_wait_until(stream, STREAM_NEVER) == -EDEADLK)
		hccld_error_forget();
	hccld_host_drain(stream);
}

int hccld_stream_destroy(void *handle, bool force)
{
	struct hccld_session *session;
	struct hccld_stream *stream;
	uint64_t completed;
	int cancel, r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	r = hccld_stream_get(handle, &stream);
	if (r < 0)
		return r;
	if (stream->is_of_thread)
		return hccld_error(CAUSE_ARGUMENT,
				   "stream is %p, which belongs to a thread of HcclThreadAcquire or HcommThreadAlloc: it ends with the communicator, or by HcommThreadFree",
				   handle);
	/* errors in flight that nobody asked for go with the stream */
	if (!force)
		hccld_stream_finish_work(stream);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (hccld_stream_close(stream, &completed)) {
		r = destroy_request(session, stream->place);
		hccld_stream_closed(stream, completed);
	} else {
		r = hccld_stream_handle_error(handle);
	}
	pthread_setcancelstate(cancel, NULL);
	return r;
}

static uint32_t streams_of(struct hccld_context *context, enum stream_state state,
			   struct hccld_stream *ret_streams[HCCLD_STREAMS_PER_SESSION])
{
	uint32_t count = 0;

	pthread_mutex_lock(&mutex);
	for (uint32_t i = 0; i < place_limit; i++)
		if (by_place[i] && by_place[i]->context == context &&
		    atomic_load(&by_place[i]->state) == state)
			ret_streams[count++] = by_place[i];
	pthread_mutex_unlock(&mutex);
	return count;
}

void hccld_stream_destroy_owned(struct hccld_context *context, uint64_t owner)
{
	struct hccld_stream *list[HCCLD_STREAMS_PER_SESSION];
	uint32_t count = streams_of(context, STREAM_ALIVE, list);

	for (uint32_t i = 0; i < count; i++)
		if (list[i]->owner == owner)
			(void)hccld_stream_destroy(list[i], false);
}

int hccld_stream_wait_all(struct hccld_context *context, int64_t timeout_ms)
{
	struct hccld_stream *list[HCCLD_STREAMS_PER_SESSION];
	uint32_t count = streams_of(context, STREAM_ALIVE, list);
	uint64_t deadline = hccld_deadline(timeout_ms);
	const uint64_t id = context->id;
	int r = 0;

	for (uint32_t i = 0; i < count; i++) {
		int error = hccld_stream_wait_until(list[i], deadline);

		if (error == -ETOOMANYREFS)
			return hccld_stream_timeout_error(timeout_ms);
		/* a stream that another thread has destroyed is none of the device's any more */
		if (error == -ECANCELED && hccld_context_is_open(context, id)) {
			hccld_error_forget();
			continue;
		}
		if (error < 0 && r == 0)
			r = error;
	}
	return r;
}

void hccld_stream_stop_all(struct hccld_context *context)
{
	struct hccld_stream *list[HCCLD_STREAMS_PER_SESSION];
	uint32_t count = streams_of(context, STREAM_ALIVE, list);
	uint64_t until = clock_now_ns() + 2 * STREAM_SLEEP_MS * UINT64_C(1000000);

	atomic_store(&context->default_stream, NULL);
	atomic_store(&context->inner_stream, NULL);
	for (uint32_t i = 0; i < count; i++)
		if (stream_end(list[i], STREAM_STOPPED)) {
			await_submitters(list[i]);
			hccld_drive_remove_stream(context, list[i]->ring);
			hccld_host_stop(list[i]);
			hccld_deferred_run(list[i], stream_completed(list[i]));
		}
	/* the words belong to somebody else afterwards: nobody may still have to take himself out of `sleepers` */
	while (atomic_load(&context->words->sleepers) && clock_now_ns() < until) {
		hccld_stream_wake_sleepers(context);
		sched_yield();
	}
}

void hccld_stream_end_all(struct hccld_context *context)
{
	struct hccld_stream *list[HCCLD_STREAMS_PER_SESSION];
	uint32_t count = streams_of(context, STREAM_STOPPED, list);

	for (uint32_t i = 0; i < count; i++)
		stream_finish(list[i], 0);
	hccld_stream_forget_sides(context);
}
