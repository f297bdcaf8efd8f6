/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about vector cores. */
#include <errno.h>
#include <inttypes.h>

#include "base/text.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/request.h"
#include "control/retry.h"
#include "registry/context.h"
#include "registry/cores.h"
#include "registry/registry.h"
#include "registry/session.h"

/* NULL: there is none in this context. */
static struct stream *stream_find(const struct request *request, uint64_t context, uint32_t index)
{
	struct stream *stream = session_stream_at(request_session(request), index);

	return stream && stream->context->id == context ? stream : NULL;
}

static int no_stream(struct request *request)
{
	return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such stream");
}

static int refuse(struct request *request, const struct stream *stream, uint32_t count)
{
	char description[HCCLD_TEXT_MAX / 2];
	struct text text;

	text_init(&text, description, sizeof(description));
	cores_describe(stream->context->session->registry, stream->context->device, &text);
	return request_fail(request, CAUSE_CORES,
			    "a host kernel of %" PRIu32 " blocks needs as many vector cores at once: device %" PRIu32
			    " %s; wait until they have ended, use fewer blocks, or raise [devices] vector_cores_per_device; hcclctl resources shows who holds them",
			    count, stream->context->device, description);
}

int handle_take_cores(struct request *request)
{
	const Hccld__Control__TakeCores *message = request->message->take_cores;
	struct stream *stream = stream_find(request, message->context, message->stream);
	int r;

	if (!stream)
		return no_stream(request);
	if (!message->count)
		return request_fail(request, CAUSE_ARGUMENT, "a host kernel has at least one block");
	r = cores_take(stream, message->count);
	if (r == -ERANGE)
		return request_fail(request, CAUSE_ARGUMENT,
				    "a host kernel of %" PRIu32 " blocks: device %" PRIu32 " has %" PRIu32
				    " vector cores, and can never run it; use fewer blocks, or raise [devices] vector_cores_per_device",
				    message->count, stream->context->device, stream->context->session->registry->cores_per_device);
	if (r == -EXFULL)
		return refuse(request, stream, message->count);
	if (r == -EDQUOT)
		return request_fail(request, CAUSE_LIMIT, "hccld has no room to note who holds vector cores");
	return r;
}

bool cores_are_coming(const struct request *request)
{
	const Hccld__Control__TakeCores *message = request->message->take_cores;
	const struct stream *stream;

	if (request->message->body_case != HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES)
		return false;
	stream = stream_find(request, message->context, message->stream);
	return stream && cores_will_come(stream, message->count - cores_count(stream));
}

bool cores_are_free(const struct request *request)
{
	const Hccld__Control__TakeCores *message = request->message->take_cores;
	const struct stream *stream;

	if (request->message->body_case != HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES)
		return false;
	stream = stream_find(request, message->context, message->stream);
	return stream && cores_have_room(stream, message->count);
}

int handle_give_cores(struct request *request)
{
	const Hccld__Control__GiveCores *message = request->message->give_cores;
	struct stream *stream;

	if (message->holder) {
		struct cores *cores = cores_find(request_session(request), message->holder);

		/* none: it comes again after a restart */
		if (cores)
			cores_free(cores);
	} else {
		stream = stream_find(request, message->context, message->stream);
		if (!stream)
			return no_stream(request);
		cores_give(stream);
	}
	retry_cores(request->control);
	return 0;
}

int handle_keep_cores(struct request *request)
{
	const Hccld__Control__KeepCores *message = request->message->keep_cores;
	struct stream *stream;

	if (!message->holder)
		return request_fail(request, CAUSE_ARGUMENT, "a kernel that keeps vector cores needs a name, and 0 is none");
	/* it comes again after a restart */
	if (cores_find(request_session(request), message->holder))
		return 0;
	stream = stream_find(request, message->context, message->stream);
	if (!stream)
		return no_stream(request);
	if (cores_keep(stream, message->count, message->holder) < 0)
		return request_fail(request, CAUSE_ARGUMENT, "a kernel of stream %" PRIu32 " cannot keep %" PRIu32 " vector cores of %" PRIu32,
				    message->stream, message->count, cores_count(stream));
	retry_cores(request->control);
	return 0;
}
