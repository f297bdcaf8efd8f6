/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about notifies. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/notifies.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "scheduler/scheduler.h"

#define PAGE 4096u

static int refuse_device(struct request *request, const struct context *context, uint32_t count)
{
	struct text text;

	text_init(&text, request->text, sizeof(request->text));
	notifies_describe(context->session->registry, context->device, count, &text);
	return status_error(CAUSE_NOTIFIES);
}

int notifies_refuse(struct request *request, const struct context *context, uint32_t count, int r)
{
	struct session *session = context->session;

	if (r == -ENOSPC)
		return refuse_device(request, context, count);
	if (r == -EUSERS && quota_is_short(session->quota, QUOTA_NOTIFIES, count))
		return tenants_refuse(request, CAUSE_NOTIFIES, session->quota, QUOTA_NOTIFIES, count);
	if (r == -EUSERS && quota_is_short(session->quota, QUOTA_MEMORY, PAGE))
		return tenants_refuse(request, CAUSE_HOST_MEMORY, session->quota, QUOTA_MEMORY, PAGE);
	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, session->quota, QUOTA_DESCRIPTORS, 1);
	if (r == -EDQUOT)
		return request_fail(request, CAUSE_LIMIT,
				    "hccld has no room for more notifies of this process: it has %" PRIu32 " of %u memory segments",
				    session->segment_slots.used, HCCLD_SEGMENTS_PER_SESSION);
	if (r == -ENOBUFS)
		return tenants_refuse_host(request, PAGE);
	if (r == -ENOMEM)
		return request_fail(request, CAUSE_HOST_MEMORY,
				    "no memory for the places of notifies: the node, or the control group that hccld runs in, is full");
	return r;
}

int notifies_get(struct request *request, struct context *context, uint32_t count, enum notify_purpose purpose, uint32_t part,
		 struct notifies **ret_notifies)
{
	const struct notifies_wish wish = {
		.count = count, .purpose = purpose, .request = request->message->id, .part = part
	};
	int r = notifies_new(context, &wish, ret_notifies);

	return r < 0 ? notifies_refuse(request, context, count, r) : 0;
}

int handle_create_notifies(struct request *request)
{
	const Hccld__Control__CreateNotifies *message = request->message->create_notifies;
	Hccld__Control__CreateNotifiesReply *reply = &request->body.create_notifies;
	struct context *context = session_context(request_session(request), message->context);
	struct notifies *notifies;
	int r;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	if (message->count == 0)
		return request_fail(request, CAUSE_ARGUMENT, "0 notifies: at least 1 is to be asked for");
	if (message->purpose != HCCLD__CONTROL__CREATE_NOTIFIES__PURPOSE__PLAIN &&
	    message->purpose != HCCLD__CONTROL__CREATE_NOTIFIES__PURPOSE__COUNTING)
		return request_fail(request, CAUSE_ARGUMENT, "there are no notifies of kind %d", (int)message->purpose);
	r = notifies_get(request, context, message->count, (enum notify_purpose)message->purpose, 0, &notifies);
	if (r < 0)
		return r;
	hccld__control__create_notifies_reply__init(reply);
	reply->segment = context->notifies.segment->id;
	reply->first = notifies->first;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_CREATE_NOTIFIES;
	request->reply.create_notifies = reply;
	return 0;
}

int handle_free_notifies(struct request *request)
{
	const Hccld__Control__FreeNotifies *message = request->message->free_notifies;
	struct session *session = request_session(request);
	struct context *context = session_context(session, message->context);
	struct notifies *notifies;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	notifies = notifies_find(context, message->first);
	/* it comes again after a restart: they are going, or have gone, maybe to a request that is younger (ids of requests grow) */
	if (session->is_restored && (!notifies || notifies->is_closing || notifies->request > request->message->id))
		return teardown_again(request);
	if (!notifies || notifies->is_closing || notifies->purpose > NOTIFY_COUNTING)
		return request_fail(request, CAUSE_BAD_HANDLE, "this process has no notifies that begin with %" PRIu32, message->first);
	return teardown_notifies(request, notifies);
}

/*
 * On the engine thread, so that a change that a task is making is before or after it, and counts (N1, N2). Calls of a session run in
 * the order they are made: what takes the context away comes after this one.
 */
struct resetting {
	struct scheduler_call call;
	struct request *request;
	struct session *session; /* a reference */
	struct view_context *context;
	uint64_t segment;
	size_t count;
	uint32_t ids[];
};

static bool reset_run(struct engine *engine, void *arg)
{
	struct resetting *resetting = arg;

	for (size_t i = 0; i < resetting->count; i++)
		(void)engine_notify_reset(engine, resetting->context, resetting->segment,
					  resetting->ids[i] * sizeof(struct notify_slot));
	return true;
}

static void reset_done(void *arg)
{
	struct resetting *resetting = arg;

	request_finish(resetting->request, 0);
	session_unref(resetting->session);
	free(resetting);
}

static int reset(struct request *request, struct context *context, const uint32_t *ids, size_t count)
{
	struct resetting *resetting = calloc(1, sizeof(*resetting) + count * sizeof(*ids));

	if (!resetting)
		return -ENOMEM;
	*resetting = (struct resetting){ .call = { .run = reset_run, .done = reset_done, .arg = resetting, .line = &context->session->line },
					 .request = request,
					 .session = session_ref(context->session),
					 .context = &context->view,
					 .segment = context->notifies.segment->id,
					 .count = count };
	memcpy(resetting->ids, ids, count * sizeof(*ids));
	scheduler_call(request->control->scheduler, &resetting->call);
	return REQUEST_LATER;
}

int handle_reset_notifies(struct request *request)
{
	const Hccld__Control__ResetNotifies *message = request->message->reset_notifies;
	struct context *context = session_context(request_session(request), message->context);

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	/* all or none */
	for (size_t i = 0; i < message->n_ids; i++) {
		const struct notifies *notifies = notifies_of(context, message->ids[i]);

		if (!notifies || notifies->purpose == NOTIFY_COUNTING)
			return request_fail(request, CAUSE_BAD_HANDLE, "this process has no notify %" PRIu32 " that can be reset",
					    message->ids[i]);
	}
	return message->n_ids ? reset(request, context, message->ids, message->n_ids) : 0;
}
