/* SPDX-License-Identifier: Apache-2.0 */
/* Actions that run when a task is done: a list per stream, in the order of the tasks. Any thread. */
#include "client/stream_state.h"

#include <stdlib.h>

#include "client/error.h"

struct deferred *hccld_deferred_new(const struct hccld_after *after)
{
	struct deferred *deferred = malloc(sizeof(*deferred));

	if (!deferred)
		hccld_error(CAUSE_HOST_MEMORY, "no memory to queue a task");
	else
		deferred->after = *after;
	return deferred;
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

/* Whoever comes here while another thread runs an action waits for it: what is completed must be visible. */
void hccld_deferred_run(struct hccld_stream *stream, uint64_t completed)
{
	int cancel;

	if (atomic_load_explicit(&stream->deferred_position, memory_order_acquire) > completed)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&stream->deferring);
	while (stream->first && stream->first->position <= completed) {
		struct deferred *deferred = deferred_pop(stream);

		deferred->after.action(deferred->after.arg);
		/* only now: a thread that reads the new position takes it for a sign that the action is done */
		atomic_store_explicit(&stream->deferred_position,
				      stream->first ? stream->first->position : STREAM_NEVER,
				      memory_order_release);
		free(deferred);
	}
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
