/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a stream's tasks when one fails, or when the program wants them gone. Any thread. */
#include <errno.h>
#include <pthread.h>

#include "client/drive.h"
#include "client/error.h"
#include "client/hostfunc.h"
#include "client/stream_state.h"
#include "proto/feature.h"

int hccld_stream_set_failure_mode(struct hccld_stream *stream, uint64_t mode)
{
	struct hccld_session *session;
	int r;

	/* to go on is what every daemon does */
	r = mode ? hccld_session_need(HCCLD_FEATURE_TASKS, "ACL_STOP_ON_FAILURE", &session) : 0;
	if (r == 0)
		atomic_store(&stream->ring->stop_on_failure, (uint32_t)mode);
	return r;
}

uint64_t hccld_stream_failure_mode(const struct hccld_stream *stream)
{
	return atomic_load(&stream->ring->stop_on_failure);
}

int hccld_stream_abort(struct hccld_context *context, struct hccld_stream *stream, bool only_head,
		       uint32_t deadline_ms)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__AbortTasks message = HCCLD__CONTROL__ABORT_TASKS__INIT;
	struct hccld_session *session;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_TASKS, "way to end queued tasks", &session);
	if (r < 0)
		return r;
	message.context = context->id;
	message.stream = stream ? stream->place + 1 : 0;
	message.only_head = only_head;
	message.cause = stream ? CAUSE_STREAM_ABORTED : CAUSE_TASK_ABORTED;
	request.deadline_ms = deadline_ms;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ABORT_TASKS;
	request.abort_tasks = &message;
	hccld_drive_pause(context);
	r = hccld_call_simple(session->connection, &request);
	hccld_drive_resume(context);
	/* the program may free now what a copy was to read */
	hccld_host_await_own();
	return r;
}
