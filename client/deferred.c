/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Actions that run when a task is done: a list per stream, in the order of the tasks. Streams that wait for one another may write the same
 * memory of the program one after the other: as soon as there are such, what is due runs in the order in which it was queued. Any thread.
 */
#include "client/stream_state.h"

#include <stdlib.h>

#include "client/error.h"
#include "client/order.h"

struct deferred *hccld_deferred_new(const struct hccld_after *after)
{
	struct deferred *deferred = malloc(sizeof(*deferred));

	if (!deferred)
		hccld_error(CAUSE_HOST_MEMORY, "no memory to queue a task");
	else
		deferred->after = *after;
	return deferred;
}

static _Atomic bool entangled;
char hccld_order_of_all;
static _Atomic uint64_t last_order;
/* What the look at all streams has found: the due action that was queued first. */
static _Thread_local struct hccld_stream *oldest;
static _Thread_local uint64_t oldest_order;

void hccld_stream_entangle(void)
{
	atomic_store_explicit(&entangled, true, memory_order_relaxed);
}

bool hccld_deferred_is_entangled(void)
{
	return atomic_load_explicit(&entangled, memory_order_relaxed);
}

/* With `deferring`. */
static struct deferred *deferred_pop(struct hccld_stream *stream)
{
	struct deferred *deferred = stream->first;

	stream->first = deferred->next;
	if (!stream->first)
		stream->last = NULL;
	return deferred;
}

/* With `deferring`. */
static void run_first(struct hccld_stream *stream)
{
	struct deferred *deferred = deferred_pop(stream);

	deferred->after.action(deferred->after.arg);
	/* only now: a thread that reads the new position takes it for a sign that the action is done */
	atomic_store_explicit(&stream->deferred_position,
			      stream->first ? stream->first->position : STREAM_NEVER,
			      memory_order_release);
	free(deferred);
}

/* Waits for an action that another thread runs. */
static void look(struct hccld_stream *stream)
{
	uint64_t completed;

	if (atomic_load_explicit(&stream->deferred_position, memory_order_acquire) == STREAM_NEVER)
		return;
	completed = stream_completed(stream);
	pthread_mutex_lock(&stream->deferring);
	if (stream->first && stream->first->position <= completed && stream->first->order < oldest_order) {
		oldest = stream;
		oldest_order = stream->first->order;
	}
	pthread_mutex_unlock(&stream->deferring);
}

static bool find_oldest(void)
{
	uint64_t before = UINT64_MAX;

	oldest = NULL;
	oldest_order = UINT64_MAX;
	hccld_stream_each(look);
	/* what the task of this one has waited for may have become due behind our back: it is seen now */
	while (oldest_order < before) {
		before = oldest_order;
		hccld_stream_each(look);
	}
	return oldest != NULL;
}

void hccld_stream_run_all_deferred(void)
{
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (find_oldest()) {
		pthread_mutex_lock(&oldest->deferring);
		if (oldest->first && oldest->first->order == oldest_order)
			run_first(oldest);
		pthread_mutex_unlock(&oldest->deferring);
	}
	pthread_setcancelstate(cancel, NULL);
}

/* Whoever comes here while another thread runs an action waits for it: what is completed must be visible. */
void hccld_deferred_run(struct hccld_stream *stream, uint64_t completed)
{
	int cancel;

	if (atomic_load_explicit(&stream->deferred_position, memory_order_acquire) > completed)
		return;
	if (hccld_deferred_is_entangled())
		hccld_stream_run_all_deferred();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&stream->deferring);
	while (stream->first && stream->first->position <= completed)
		run_first(stream);
	pthread_mutex_unlock(&stream->deferring);
	pthread_setcancelstate(cancel, NULL);
}

/* The stream is over: actions up to @completed run, the others are cancelled. */
void hccld_deferred_finish(struct hccld_stream *stream, uint64_t completed)
{
	hccld_deferred_run(stream, completed);
	pthread_mutex_lock(&stream->deferring);
	while (stream->first) {
		struct deferred *deferred = deferred_pop(stream);

		deferred->after.cancel(deferred->after.arg);
		free(deferred);
	}
	atomic_store(&stream->deferred_position, STREAM_NEVER);
	pthread_mutex_unlock(&stream->deferring);
}

void hccld_deferred_push(struct hccld_stream *stream, struct deferred *deferred)
{
	pthread_mutex_lock(&stream->deferring);
	deferred->next = NULL;
	deferred->order = atomic_fetch_add_explicit(&last_order, 1, memory_order_relaxed);
	if (stream->last)
		stream->last->next = deferred;
	else
		stream->first = deferred;
	stream->last = deferred;
	if (stream->first == deferred)
		atomic_store_explicit(&stream->deferred_position, deferred->position,
				      memory_order_release);
	pthread_mutex_unlock(&stream->deferring);
}
