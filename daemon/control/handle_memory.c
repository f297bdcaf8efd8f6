/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests about memory. Large segments are made in a worker thread: every page is zeroed and
 * mapped before anyone sees it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/process.h"
#include "base/text.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/request.h"
#include "control/retry.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "control/user.h"
#include "proto/cleanup.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

#define PAGE 4096u
#define JOB_BYTES_MIN (1u << 20)
#define BYTES_MAX (1ull << 46)
#define NODE_RESERVE \
	(256ull      \
	 << 20) /* never take the last of the node's memory: the kernel would kill somebody */

struct allocation {
	struct request *request;
	struct session *session; /* a reference */
	uint64_t context;	 /* id: it may be closed meanwhile */
	enum segment_kind kind;
	uint32_t device; /* whose account is charged */
	struct segment_memory memory;
	uint64_t bytes;
	int result;
	bool is_node_full;
};

static void allocation_free(struct allocation *allocation)
{
	segment_memory_release(&allocation->memory);
	session_unref(allocation->session);
	free(allocation);
}

/* Any thread. */
static void allocation_run(void *arg)
{
	struct allocation *allocation = arg;

	if (allocation->bytes >= JOB_BYTES_MIN) {
		uint64_t available = memory_available();

		if (available < NODE_RESERVE || allocation->bytes > available - NODE_RESERVE) {
			allocation->is_node_full = true;
			allocation->result = -ENOMEM;
			return;
		}
	}
	allocation->result = segment_memory_new(allocation->bytes, &allocation->memory);
	allocation->is_node_full = allocation->result == -ENOMEM;
}

static int allocation_reply(struct request *request, const struct segment *segment)
{
	Hccld__Control__AllocateSegmentReply *reply = &request->body.allocate_segment;

	hccld__control__allocate_segment_reply__init(reply);
	reply->segment = segment->id;
	reply->bytes = segment->memory.bytes;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT;
	request->reply.allocate_segment = reply;
	return request_add_fd(request, segment->memory.fd);
}

static int allocation_publish(struct allocation *allocation)
{
	struct request *request = allocation->request;
	struct session *session = allocation->session;
	struct context *context = session_context(session, allocation->context);
	struct segment *segment;
	int r;

	if (allocation->is_node_full)
		return request_fail(
			request,
			allocation->kind == SEGMENT_DEVICE ? CAUSE_MEMORY : CAUSE_HOST_MEMORY,
			"the node itself, or the control group that hccld runs in, has no %" PRIu64
			" MiB of memory left, though the limits of hccld would allow them",
			allocation->bytes >> 20);
	if (allocation->result < 0)
		return allocation->result;
	if (session->is_ending || !context)
		return request_fail(request, CAUSE_ABORTED,
				    "the device was reset while memory was allocated on it");
	r = segment_new(context, allocation->kind, &allocation->memory, &segment);
	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, session->quota, QUOTA_DESCRIPTORS, 1);
	if (r == -EDQUOT)
		return request_fail(
			request, CAUSE_LIMIT,
			"this process has %" PRIu32
			" memory segments; a process has at most %u, and the daemon as many descriptors as its limit of open files allows",
			session->segment_slots.used, HCCLD_SEGMENTS_PER_SESSION);
	if (r < 0)
		return r;
	/* charged to the segment from here on */
	allocation->bytes = 0;
	r = allocation_reply(request, segment);
	if (r < 0)
		teardown_lost_segment(request->control, segment);
	return r;
}

static void allocation_done(void *arg)
{
	struct allocation *allocation = arg;
	int r = allocation_publish(allocation);

	session_refund(allocation->session, allocation->device, allocation->bytes);
	if (!retry_hold(allocation->request, r))
		request_finish(allocation->request, r);
	allocation_free(allocation);
}

/* @error: what session_charge() said. */
static int allocation_exhausted(struct request *request, struct session *session, uint32_t device,
				uint64_t bytes, int error)
{
	struct holder *holder;
	struct account *account = session_account(session, device, &holder);
	bool is_device = device != HCCLD_DEVICES_MAX;
	struct text text;

	if (error == -EUSERS)
		return tenants_refuse(request, is_device ? CAUSE_MEMORY : CAUSE_HOST_MEMORY,
				      session->quota, QUOTA_MEMORY, bytes);
	text_init(&text, request->text, sizeof(request->text));
	if (is_device)
		text_add(&text, "device %" PRIu32 " ", device);
	else
		text_add(&text, "host memory for pinned buffers, side buffers and communicators ");
	account_describe(account, &text);
	text_add(&text, "; ");
	text_add_bytes(&text, bytes);
	text_add(&text, " more were asked for by pid %d; %s", session->view.pid,
		 is_device ? "raise [devices] device_memory (option --device-memory); hcclctl config says where it is set"
			   : "it is half of the node's memory, or of what hccld's control group may have");
	return status_error(is_device ? CAUSE_MEMORY : CAUSE_HOST_MEMORY);
}

static struct allocation *allocation_new(struct request *request, struct context *context,
					 enum segment_kind kind, uint64_t bytes)
{
	struct allocation *allocation = calloc(1, sizeof(*allocation));

	if (!allocation)
		return NULL;
	allocation->request = request;
	allocation->session = session_ref(context->session);
	allocation->context = context->id;
	allocation->kind = kind;
	allocation->device = segment_device(context, kind);
	allocation->bytes = bytes;
	allocation->memory.fd = -1;
	return allocation;
}

int handle_allocate_segment(struct request *request)
{
	const Hccld__Control__AllocateSegment *allocate = request->message->allocate_segment;
	struct session *session = request_session(request);
	struct context *context = session_context(session, allocate->context);
	struct allocation *allocation;
	uint64_t bytes;
	int r;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	if (!segment_kind_is_known((uint32_t)allocate->kind))
		return request_fail(request, CAUSE_ARGUMENT, "there is no memory of kind %d",
				    (int)allocate->kind);
	if (allocate->bytes == 0 || allocate->bytes > BYTES_MAX)
		return request_fail(request, CAUSE_ARGUMENT,
				    "%" PRIu64 " bytes: a segment has at least 1", allocate->bytes);
	bytes = (allocate->bytes + PAGE - 1) / PAGE * PAGE;
	allocation = allocation_new(request, context, (enum segment_kind)allocate->kind, bytes);
	if (!allocation)
		return -ENOMEM;
	/*
	 * charged before it exists, so that requests at the same time do not take more than there
	 * is
	 */
	r = session_charge(session, allocation->device, bytes);
	if (r < 0) {
		uint32_t device = allocation->device;

		allocation_free(allocation);
		return allocation_exhausted(request, session, device, bytes, r);
	}
	if (bytes >= JOB_BYTES_MIN) {
		user_job(request->control, session->uid, allocation_run, allocation_done,
			 allocation);
	} else {
		allocation_run(allocation);
		allocation_done(allocation);
	}
	return REQUEST_LATER;
}

int handle_free_segment(struct request *request)
{
	struct session *session = request_session(request);
	uint64_t id = request->message->free_segment->segment;
	struct segment *segment = session_segment(session, id);

	if (segment && request->message->free_segment->after_imports &&
	    !list_is_empty(&segment->imports)) {
		segment_orphan(segment);
		return 0;
	}
	if (segment)
		return teardown_segment(request, segment);
	/*
	 * it may have been freed before the daemon was restarted, and the client has not heard of
	 * it
	 */
	if (session->is_restored && session_gave_id(session, id))
		return teardown_again(request);
	return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such memory segment");
}

int handle_memory_info(struct request *request)
{
	Hccld__Control__MemoryInfoReply *reply = &request->body.memory_info;
	struct session *session = request_session(request);
	struct context *context = session_context(session, request->message->memory_info->context);
	const struct account *account;
	uint64_t left;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	account = &session->registry->devices[context->device].memory;
	hccld__control__memory_info_reply__init(reply);
	reply->total = account->total;
	reply->free = account->total > account->used ? account->total - account->used : 0;
	/* programs take a part of what is free: what their limit refuses is not free for them */
	left = quota_left(session->quota, QUOTA_MEMORY);
	if (reply->free > left)
		reply->free = left;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_MEMORY_INFO;
	request->reply.memory_info = reply;
	return 0;
}
