/* SPDX-License-Identifier: Apache-2.0 */
/* Taking objects away. */
#include "control/teardown_take.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memfd.h"
#include "control/channel_wait.h"
#include "control/control.h"
#include "control/growth_watch.h"
#include "control/join.h"
#include "control/meeting.h"
#include "control/notifies.h"
#include "control/remnants.h"
#include "control/request.h"
#include "control/retry.h"
#include "control/tenants.h"
#include "control/user.h"
#include "proto/clock.h"
#include "proto/region.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/remnant.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/thread.h"
#include "scheduler/scheduler.h"

#define JOB_BYTES_MIN (1u << 20) /* freeing more than this is left to a worker thread */

/*
 * The first four lists are what the engine still has; run() moves their members to the second four:
 * it may be called again, and goes on where it was.
 */
struct teardown {
	struct list link; /* session->teardowns */
	struct scheduler_call call;
	struct control *control;
	struct session *session; /* a reference */
	struct request *request; /* NULL: nobody waits */
	struct list streams, ranks, contexts, segments;
	struct list channels; /* closed; what they have brought is in `segments` */
	struct list free_streams, free_ranks, free_contexts, free_segments;
	struct notifies *notifies;   /* closed; the pass of the engine is all that they need; NULL: none */
	struct list threads; /* their streams are among the others; their notifies need a pass of the engine */
	struct rank *suspended, *resumed; /* that rank, and nothing is taken away */
	const void *settle; /* memory whose copies end, though its segment stays; NULL: none */
	uint64_t settle_bytes;
	bool is_session; /* all of it */
};

struct teardown *teardown_make(struct control *control, struct session *session,
			       struct request *request)
{
	struct teardown *teardown = calloc(1, sizeof(*teardown));

	if (!teardown)
		return NULL;
	list_init(&teardown->link);
	list_init(&teardown->streams);
	list_init(&teardown->ranks);
	list_init(&teardown->contexts);
	list_init(&teardown->segments);
	list_init(&teardown->channels);
	list_init(&teardown->free_streams);
	list_init(&teardown->free_ranks);
	list_init(&teardown->free_contexts);
	list_init(&teardown->free_segments);
	list_init(&teardown->threads);
	teardown->control = control;
	teardown->session = session_ref(session);
	teardown->request = request;
	return teardown;
}

static void move(struct list *to, struct list *node)
{
	list_remove(node);
	list_append(to, node);
}

/* Engine thread. A stream can take as long as a million items at its head. */
static bool run_streams(struct teardown *teardown, struct engine *engine)
{
	uint64_t since_ns = clock_now_ns();

	list_for_each(struct stream, stream, &teardown->streams, link) {
		if (!engine_stream_detach(engine, &stream->context->view, stream->ring))
			return false;
		move(&teardown->free_streams, &stream->link);
		teardown->call.has_more = clock_now_ns() - since_ns > SCHEDULER_CALL_NS;
		if (teardown->call.has_more)
			return false;
	}
	return true;
}

static struct view_rank *rank_view(struct rank *rank)
{
	return &rank->session->view.ranks[VIEW_INDEX(rank->handle)];
}

static bool run_ranks(struct teardown *teardown, struct engine *engine)
{
	list_for_each(struct rank, rank, &teardown->ranks, link) {
		if (!engine_rank_detach(engine, rank_view(rank)))
			return false;
		move(&teardown->free_ranks, &rank->link);
	}
	return true;
}

static bool run_contexts(struct teardown *teardown, struct engine *engine)
{
	list_for_each(struct context, context, &teardown->contexts, link) {
		if (!engine_context_detach(engine, &context->view))
			return false;
		context_unpublish(context);
		move(&teardown->free_contexts, &context->link);
	}
	return true;
}

static bool run_segments(struct teardown *teardown, struct engine *engine)
{
	struct view_session *view = &teardown->session->view;

	list_for_each(struct segment, segment, &teardown->segments, link) {
		if (!engine_segment_detach(engine, view, segment->id))
			return false;
		segment_unpublish(segment);
		move(&teardown->free_segments, &segment->link);
	}
	return true;
}

static bool teardown_run(struct engine *engine, void *arg)
{
	struct teardown *teardown = arg;

	if (teardown->suspended)
		return engine_rank_suspend(engine, rank_view(teardown->suspended));
	if (teardown->resumed)
		engine_rank_resume(engine, rank_view(teardown->resumed));
	return run_streams(teardown, engine) && run_ranks(teardown, engine) &&
	       run_contexts(teardown, engine) && run_segments(teardown, engine) &&
	       ((list_is_empty(&teardown->channels) && list_is_empty(&teardown->threads)) || engine_retired_detach(engine)) &&
	       (!teardown->settle ||
		engine_memory_detach(engine, teardown->settle, teardown->settle_bytes));
}

/* A worker thread, or the loop when there is little to do: nobody else knows these objects now. */
static void teardown_free_memory(void *arg)
{
	struct teardown *teardown = arg;

	list_for_each(struct segment, segment, &teardown->free_segments, link)
		segment_release(segment);
	if (teardown->is_session) {
		/* the process may still map it, and drive over it: remnant.h */
		if (!teardown->session->leaves_remnant)
			memfd_punch(teardown->session->region_fd, 0, SESSION_REGION_SIZE);
		return;
	}
	list_for_each(struct stream, stream, &teardown->free_streams, link)
		stream_punch(stream);
}

static void teardown_done(void *arg);

/* The daemon stops and the engine is gone already: nothing is in use any more. */
static void teardown_without_engine(struct teardown *teardown)
{
	list_splice(&teardown->free_streams, &teardown->streams);
	list_splice(&teardown->free_ranks, &teardown->ranks);
	list_splice(&teardown->free_contexts, &teardown->contexts);
	list_splice(&teardown->free_segments, &teardown->segments);
	teardown_done(teardown);
}

/* Starts the first of the session's teardowns. */
static void teardown_next(struct control *control, struct session *session)
{
	struct teardown *teardown;

	if (list_is_empty(&session->teardowns))
		return;
	teardown = list_entry(session->teardowns.next, struct teardown, link);
	if (control->is_stopping) {
		teardown_without_engine(teardown);
		return;
	}
	teardown->call = (struct scheduler_call){ .run = teardown_run,
						  .done = teardown_done,
						  .arg = teardown, .line = &session->line };
	scheduler_call(control->scheduler, &teardown->call);
}

/* Takes a segment out of the records, and the orphan that it was the last import of. */
static void segment_finish(struct control *control, struct segment *segment)
{
	struct segment *origin = segment->origin;

	segment_remove(segment);
	if (origin && origin->is_orphan && !origin->is_closing && list_is_empty(&origin->imports))
		teardown_lost_segment(control, origin);
}

static void session_lose_notifies(struct session *session)
{
	for (uint32_t i = 0; i < session->registry->device_count; i++)
		if (session->contexts[i])
			notifies_lose(session->contexts[i]);
}

static bool frees_notifies(const struct teardown *teardown)
{
	return teardown->notifies || !list_is_empty(&teardown->threads) || !list_is_empty(&teardown->channels);
}

static void teardown_finish(void *arg)
{
	struct teardown *teardown = arg;
	struct session *session = teardown->session;
	bool has_freed = frees_notifies(teardown);

	list_for_each(struct stream, stream, &teardown->free_streams, link)
		stream_remove(stream);
	list_for_each(struct thread, thread, &teardown->threads, link)
		thread_remove(thread);
	list_for_each(struct segment, segment, &teardown->free_segments, link)
		segment_finish(teardown->control, segment);
	list_for_each(struct channel, channel, &teardown->channels, link)
		channel_remove(channel);
	list_for_each(struct rank, rank, &teardown->free_ranks, link) {
		registrations_remove(rank);
		rank_remove(rank);
	}
	list_for_each(struct context, context, &teardown->free_contexts, link)
		context_remove(context);
	if (teardown->notifies)
		notifies_free(teardown->notifies);
	/* once, however many there were: all that is queued is looked at */
	if (has_freed)
		notifies_collect(session);
	if (has_freed && !teardown->control->is_stopping)
		notifies_watch(teardown->control);
	if (!teardown->control->is_stopping)
		growth_watch(teardown->control);
	if (teardown->request)
		request_finish(teardown->request, 0);
	list_remove(&teardown->link);
	teardown_next(teardown->control, session);
	if (teardown->is_session) {
		struct tenant *tenant = session->tenant;

		if (session->leaves_remnant)
			remnants_add(teardown->control, session);
		session_remove(session);
		tenants_collect(teardown->control, tenant);
		session_gone(teardown->control, session);
	}
	session_unref(session);
	free(teardown);
}

static void teardown_done(void *arg)
{
	struct teardown *teardown = arg;
	uint64_t bytes = teardown->is_session ? JOB_BYTES_MIN : 0;

	teardown->session->leaves_remnant =
		teardown->is_session && !list_is_empty(&teardown->free_contexts) && session_leaves_remnant(teardown->session);
	list_for_each(struct segment, segment, &teardown->free_segments, link)
		bytes += segment->memory.bytes;
	if (bytes >= JOB_BYTES_MIN) {
		user_job(teardown->control, teardown->session->uid, teardown_free_memory,
			 teardown_finish, teardown);
	} else {
		teardown_free_memory(teardown);
		teardown_finish(teardown);
	}
}

static void stream_close(struct teardown *teardown, struct stream *stream);

void teardown_take_thread(struct teardown *teardown, struct thread *thread)
{
	struct stream *stream = thread->stream;

	move(&teardown->threads, &thread->link);
	if (thread->notifies && !thread->notifies->is_closing)
		notifies_close(thread->notifies);
	stream->thread_count--;
	if (thread->is_own_stream && !stream->is_closing)
		stream_close(teardown, stream);
}

/* Each may take others with it. */
static void threads_close(struct teardown *teardown, const struct context *context, uint64_t rank, const struct stream *stream)
{
	struct thread *thread;

	while ((thread = thread_first(context, rank, stream)))
		teardown_take_thread(teardown, thread);
}

void teardown_take_segment(struct teardown *teardown, struct segment *segment)
{
	segment->is_closing = true;
	segment_retire(segment);
	move(&teardown->segments, &segment->link);
}

/* With what it has brought; after the words that say why. */
static void channel_take(struct teardown *teardown, struct channel *channel)
{
	struct channel *other;

	channel_close(channel, &other);
	list_for_each(struct segment, import, &channel->imports, channel_link)
		if (!import->is_closing)
			teardown_take_segment(teardown, import);
	move(&teardown->channels, &channel->link);
	channel_settled(channel);
	if (other)
		channel_settled(other);
}

void teardown_take_rank(struct teardown *teardown, struct rank *rank, enum member_word word,
		       int32_t exit)
{
	rank->is_closing = true;
	rank_announce(rank, word, exit);
	if (rank->buffer)
		teardown_take_segment(teardown, rank->buffer);
	list_for_each(struct channel, channel, &rank->channels, link)
		channel_take(teardown, channel);
	channels_forsake(teardown->control, rank);
	threads_close(teardown, rank->context, rank->handle, NULL);
	move(&teardown->ranks, &rank->link);
}

static void stream_close(struct teardown *teardown, struct stream *stream)
{
	stream->is_closing = true;
	move(&teardown->streams, &stream->link);
	if (stream->thread_count)
		threads_close(teardown, stream->context, 0, stream);
}

/*
 * With all that is in it. The words of ranks first: what is read from retired memory must not
 * commit.
 */
static void context_take(struct teardown *teardown, struct context *context, enum member_word word,
			 int32_t exit)
{
	context_close(context);
	list_for_each(struct rank, rank, &context->ranks, link)
		teardown_take_rank(teardown, rank, word, exit);
	list_for_each(struct segment, segment, &context->segments, link)
		teardown_take_segment(teardown, segment);
	list_for_each(struct stream, stream, &context->streams, link)
		stream_close(teardown, stream);
	move(&teardown->contexts, &context->link);
}

void teardown_start(struct teardown *teardown)
{
	struct session *session = teardown->session;
	bool is_first = list_is_empty(&session->teardowns);

	session_lose_notifies(session);
	list_append(&session->teardowns, &teardown->link);
	if (is_first)
		teardown_next(teardown->control, session);
}

int teardown_stream(struct request *request, struct stream *stream)
{
	struct teardown *teardown =
		teardown_make(request->control, stream->context->session, request);

	if (!teardown)
		return -ENOMEM;
	stream_close(teardown, stream);
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_thread(struct request *request, struct thread *thread)
{
	struct teardown *teardown =
		teardown_make(request->control, thread->context->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown_take_thread(teardown, thread);
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_segment(struct request *request, struct segment *segment)
{
	struct teardown *teardown =
		teardown_make(request->control, segment->context->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown_take_segment(teardown, segment);
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_rank(struct request *request, struct rank *rank)
{
	struct teardown *teardown = teardown_make(request->control, rank->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown_take_rank(teardown, rank, MEMBER_LEFT, -1);
	meetings_check(request->control);
	teardown_start(teardown);
	return REQUEST_LATER;
}

void teardown_take_notifies(struct teardown *teardown, struct notifies *notifies)
{
	notifies_close(notifies);
	teardown->notifies = notifies;
	/* who waits by an import looks again, and finds it lost */
	teardown->settle = notify_slot_at(notifies->context, notifies->first);
	teardown->settle_bytes = notifies->count * sizeof(struct notify_slot);
	teardown_start(teardown);
}

int teardown_notifies(struct request *request, struct notifies *notifies)
{
	struct teardown *teardown =
		teardown_make(request->control, notifies->context->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown_take_notifies(teardown, notifies);
	return REQUEST_LATER;
}

int teardown_suspended(struct request *request, struct rank *rank)
{
	struct teardown *teardown = teardown_make(request->control, rank->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown->suspended = rank;
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_resumed(struct request *request, struct rank *rank)
{
	struct teardown *teardown = teardown_make(request->control, rank->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown->resumed = rank;
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_context(struct request *request, struct context *context)
{
	struct teardown *teardown = teardown_make(request->control, context->session, request);

	if (!teardown)
		return -ENOMEM;
	joins_abort(request->control, context->session, context, -1);
	context_take(teardown, context, MEMBER_LEFT, -1);
	meetings_check(request->control);
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_channels(struct request *request, struct session *session, struct channel **channels,
		      size_t count)
{
	struct teardown *teardown = teardown_make(request->control, session, request);

	if (!teardown)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		channel_take(teardown, channels[i]);
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_settle(struct request *request, struct segment *segment, uint64_t offset,
		    uint64_t bytes)
{
	struct teardown *teardown =
		teardown_make(request->control, segment->context->session, request);

	if (!teardown)
		return -ENOMEM;
	teardown->settle = (const unsigned char *)segment->memory.base + offset;
	teardown->settle_bytes = bytes;
	teardown_start(teardown);
	return REQUEST_LATER;
}

int teardown_again(struct request *request)
{
	struct teardown *teardown =
		teardown_make(request->control, request_session(request), request);

	if (!teardown)
		return -ENOMEM;
	teardown_start(teardown);
	return REQUEST_LATER;
}

void teardown_take_session(void *arg)
{
	struct teardown *teardown = arg;
	struct session *session = teardown->session;

	for (uint32_t i = 0; i < session->registry->device_count; i++)
		if (session->contexts[i])
			context_take(teardown, session->contexts[i], MEMBER_DEAD, session->exit);
	meetings_check(teardown->control);
	teardown->is_session = true;
	teardown_start(teardown);
}
