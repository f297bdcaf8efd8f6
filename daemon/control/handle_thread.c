/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about threads of programs' own operators. */
#include <errno.h>
#include <inttypes.h>

#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/notifies.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/thread.h"

#define ENGINES 6u	   /* CommEngine */
#define NOTIFIES_MAX 1024u /* of one thread; the client allows less */

static int thread_reply(struct request *request, const struct thread *thread)
{
	Hccld__Control__CreateThreadReply *reply = &request->body.create_thread;

	hccld__control__create_thread_reply__init(reply);
	reply->thread = thread->id;
	reply->stream = thread->stream->index;
	if (thread->notifies) {
		reply->notify_segment = thread->context->notifies.segment->id;
		reply->first_notify = thread->notifies->first;
	}
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_CREATE_THREAD;
	request->reply.create_thread = reply;
	return 0;
}

static int thread_check(struct request *request, struct context *context, struct stream **ret_stream)
{
	const Hccld__Control__CreateThread *message = request->message->create_thread;
	struct session *session = request_session(request);
	const struct rank *rank = message->rank ? session_rank(session, message->rank) : NULL;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	if (message->rank && !rank)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
	if (rank && rank->context != context)
		return request_fail(request, CAUSE_ARGUMENT, "a thread is on the device of its communicator");
	if (message->engine >= ENGINES || message->notify_count > NOTIFIES_MAX)
		return request_fail(request, CAUSE_ARGUMENT,
				    "a thread of engine %" PRIu32 " with %" PRIu32 " notifies; there are engines below %u, and at most %u notifies",
				    message->engine, message->notify_count, ENGINES, NOTIFIES_MAX);
	*ret_stream = message->stream ? session_stream_at(session, message->stream - 1) : NULL;
	if (message->stream && (!*ret_stream || (*ret_stream)->context != context))
		return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such stream on the device");
	return 0;
}

static int thread_refuse(struct request *request, const struct session *session, int r)
{
	if (r == -ENFILE)
		return request_fail(request, CAUSE_LIMIT, "this process has %u threads of communicators, the most that a process can have",
				    HCCLD_THREADS_PER_SESSION);
	if (r == -EMFILE)
		return request_fail(request, CAUSE_LIMIT,
				    "the processes of uid %" PRIu32 " have %u threads of communicators, which is the most that one user may",
				    session->uid, HCCLD_THREADS_PER_USER);
	return tenants_refuse_stream(request, session, r);
}

static int thread_make(struct request *request, struct context *context, struct stream *stream, struct thread **ret_thread)
{
	const Hccld__Control__CreateThread *message = request->message->create_thread;
	struct thread_wish wish = { .rank = message->rank,
				    .request = request->message->id,
				    .engine = message->engine,
				    .stream = stream };
	int r;

	if (message->notify_count) {
		r = notifies_get(request, context, message->notify_count, NOTIFY_OF_THREAD, 0, &wish.notifies);
		if (r < 0)
			return r;
	}
	r = thread_new(context, &wish, ret_thread);
	if (r < 0 && wish.notifies) {
		/* nobody has heard of them: no task can name one */
		notifies_close(wish.notifies);
		notifies_free(wish.notifies);
		notifies_collect(context->session);
	}
	return r < 0 ? thread_refuse(request, context->session, r) : 0;
}

int handle_create_thread(struct request *request)
{
	struct context *context =
		session_context(request_session(request), request->message->create_thread->context);
	struct stream *stream = NULL;
	struct thread *thread;
	int r;

	r = thread_check(request, context, &stream);
	if (r < 0)
		return r;
	thread = thread_again(context, request->message->id);
	if (!thread) {
		r = thread_make(request, context, stream, &thread);
		if (r < 0)
			return r;
	}
	return thread_reply(request, thread);
}

int handle_destroy_thread(struct request *request)
{
	struct session *session = request_session(request);
	uint64_t id = request->message->destroy_thread->thread;
	struct thread *thread = thread_find(session, id);

	if (thread)
		return teardown_thread(request, thread);
	/* it may have been destroyed before the daemon was restarted, and the client has not heard of it */
	if (session->is_restored && session_gave_id(session, id))
		return teardown_again(request);
	return request_fail(request, CAUSE_NOT_FOUND, "this process has no such thread: it ended with its stream, communicator or device");
}
