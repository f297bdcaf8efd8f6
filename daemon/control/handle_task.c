/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about queued tasks: they act on the engine thread, between two steps. */
#include <errno.h>
#include <stdlib.h>

#include "control/control.h"
#include "control/dispatch.h"
#include "control/request.h"
#include "proto/clock.h"
#include "registry/context.h"
#include "registry/session.h"
#include "scheduler/scheduler.h"

/*
 * Calls of a session run in the order they are made: what takes the context or a stream of it away comes after this one, so that both outlive it.
 */
struct ending {
	struct scheduler_call call;
	struct request *request;
	struct session *session; /* a reference */
	struct view_context *context;
	struct stream_ring *ring; /* NULL: all streams */
	uint32_t cause;
	uint32_t next; /* place of the stream to go on with */
	bool only_head;
};

/* Engine thread. A stream can take as long as a million items at its head. */
static bool abort_run(struct engine *engine, void *arg)
{
	struct ending *ending = arg;
	uint32_t limit = atomic_load_explicit(&ending->context->stream_limit, memory_order_acquire);
	uint64_t since_ns = clock_now_ns();

	for (; ending->next < limit; ending->next++) {
		struct stream_ring *ring =
			atomic_load_explicit(&ending->context->streams[ending->next], memory_order_acquire);

		if (!ring || (ending->ring && ending->ring != ring))
			continue;
		ending->call.has_more = clock_now_ns() - since_ns > SCHEDULER_CALL_NS;
		if (ending->call.has_more)
			return false;
		if (!engine_stream_drop(engine, ending->context, ring, ending->only_head,
					ending->cause))
			return false;
	}
	return true;
}

static void abort_done(void *arg)
{
	struct ending *ending = arg;

	request_finish(ending->request, 0);
	session_unref(ending->session);
	free(ending);
}

int handle_abort_tasks(struct request *request)
{
	const Hccld__Control__AbortTasks *message = request->message->abort_tasks;
	struct session *session = request_session(request);
	struct context *context = session_context(session, message->context);
	struct stream *stream = NULL;
	struct ending *ending;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	if (message->cause != CAUSE_TASK_ABORTED && message->cause != CAUSE_STREAM_ABORTED)
		return request_fail(request, CAUSE_ARGUMENT, "tasks cannot be ended with cause %u", message->cause);
	if (message->stream) {
		stream = session_stream_at(session, message->stream - 1);
		if (!stream || stream->context != context)
			return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such stream");
	}
	ending = calloc(1, sizeof(*ending));
	if (!ending)
		return -ENOMEM;
	*ending = (struct ending){ .call = { .run = abort_run, .done = abort_done, .arg = ending, .line = &session->line },
				 .request = request,
				 .session = session_ref(session),
				 .context = &context->view,
				 .ring = stream ? stream->ring : NULL,
				 .cause = message->cause,
				 .only_head = message->only_head };
	scheduler_call(request->control->scheduler, &ending->call);
	return REQUEST_LATER;
}
