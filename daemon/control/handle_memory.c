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
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/lazy.h"
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
	uint64_t bytes, asked; /* asked: by the program, for texts */
	int result;
	bool is_node_full;
	uint64_t available; /* bytes of the node, then */
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
		uint64_t available = allocation->available = memory_available();

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

/* What segment_new() said. */
static int allocation_refuse(struct request *request, const struct session *session, int error)
{
	if (error == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, session->quota, QUOTA_DESCRIPTORS, 1);
	if (error == -EDQUOT)
		return request_fail(
			request, CAUSE_LIMIT,
			"this process has %" PRIu32
			" memory segments; a process has at most %u, and the daemon as many descriptors as its limit of open files allows",
			session->segment_slots.used, HCCLD_SEGMENTS_PER_SESSION);
	return error;
}

/* No limit of hccld's is in the way: what is used is this, in all and of hccld's. */
static int node_is_full(struct allocation *allocation)
{
	struct session *session = allocation->session;
	uint64_t bytes = allocation->bytes;
	struct holder *holder;
	struct text text;

	/* not part of what is in use */
	session_refund(session, allocation->device, bytes);
	allocation->bytes = 0;
	text_init(&text, allocation->request->text, sizeof(allocation->request->text));
	text_add(&text, "the node itself, or the control group that hccld runs in, has no memory for the ");
	text_add_bytes(&text, allocation->asked);
	text_add(&text, " that pid %d asks for", session->view.pid);
	if (allocation->available && allocation->available != UINT64_MAX) {
		text_add(&text, ": ");
		text_add_bytes(&text, allocation->available);
		text_add(&text, " of the node are available, ");
		text_add_bytes(&text, NODE_RESERVE);
		text_add(&text, " of which hccld leaves alone");
	}
	text_add(&text, "; hccld's own limit is not in the way: ");
	if (allocation->device == HCCLD_DEVICES_MAX)
		text_add(&text, "its host memory ");
	else
		text_add(&text, "device %" PRIu32 " ", allocation->device);
	account_describe(session_account(session, allocation->device, &holder), &text);
	text_add(&text, "; free memory of the node, or raise MemoryMax= of hccld.service");
	return status_error(allocation->kind == SEGMENT_DEVICE ? CAUSE_MEMORY : CAUSE_HOST_MEMORY);
}

static int allocation_publish(struct allocation *allocation)
{
	struct request *request = allocation->request;
	struct session *session = allocation->session;
	struct context *context = session_context(session, allocation->context);
	struct segment *segment;
	int r;

	if (allocation->is_node_full)
		return node_is_full(allocation);
	if (allocation->result < 0)
		return allocation->result;
	if (session->is_ending || !context)
		return request_fail(request, CAUSE_ABORTED,
				    "the device was reset while memory was allocated on it");
	r = segment_new(context, allocation->kind, &allocation->memory, &segment);
	if (r < 0)
		return allocation_refuse(request, session, r);
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
	if (!is_device)
		return tenants_refuse_host(request, bytes);
	text_init(&text, request->text, sizeof(request->text));
	text_add(&text, "device %" PRIu32 " ", device);
	account_describe(account, &text);
	text_add(&text, "; ");
	text_add_bytes(&text, bytes);
	text_add(&text, " more were asked for by pid %d; raise [devices] device_memory (option --device-memory); hcclctl config says where it is set",
		 session->view.pid);
	return status_error(CAUSE_MEMORY);
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
	allocation->bytes = allocation->asked = bytes;
	allocation->memory.fd = -1;
	return allocation;
}

static int lazy_refuse(struct request *request, const struct session *session, uint64_t bytes, int error)
{
	if (error == -EFBIG)
		return request_fail(request, CAUSE_MEMORY,
				    "HCCL buffers of the processes of uid %" PRIu32 " take %" PRIu64 " GiB of addresses and this one %" PRIu64
				    ", one user may have %llu, which no setting raises; use smaller ones (HCCL_BUFFSIZE, hcclBufferSize) or destroy communicators",
				    session->uid, session->quota->buffer_bytes >> 30, bytes >> 30, HCCLD_BUFFER_BYTES_PER_USER >> 30);
	return allocation_refuse(request, session, error);
}

/* The HCCL buffer of a rank: the one it has, or a new one. */
static int handle_allocate_lazy(struct request *request, struct context *context)
{
	const Hccld__Control__AllocateSegment *allocate = request->message->allocate_segment;
	struct session *session = context->session;
	struct rank *rank = session_rank(session, allocate->lazy_rank);
	struct segment *segment;
	int r;

	if (!rank || rank->context != context)
		return request_fail(request, CAUSE_BAD_HANDLE,
				    "this process has no such rank of a communicator on this device: it was destroyed, or its device was reset");
	if (allocate->kind != HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE)
		return request_fail(request, CAUSE_ARGUMENT, "an HCCL buffer is device memory, not memory of kind %d", (int)allocate->kind);
	if (rank->buffer)
		return allocation_reply(request, rank->buffer);
	/* it takes nothing yet, but where nothing is left nothing of it could be used */
	r = session_charge(session, context->device, PAGE);
	if (r < 0)
		return allocation_exhausted(request, session, context->device, PAGE, r);
	session_refund(session, context->device, PAGE);
	r = allocate->bytes > BYTES_MAX ? -EFBIG : lazy_new(rank, (allocate->bytes + PAGE - 1) / PAGE * PAGE, &segment);
	if (r < 0)
		return lazy_refuse(request, session, allocate->bytes, r);
	control_watch_lazy(request->control);
	r = allocation_reply(request, segment);
	if (r < 0)
		teardown_lost_segment(request->control, segment);
	return r;
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
	if (allocate->bytes == 0 || (allocate->bytes > BYTES_MAX && !allocate->lazy_rank))
		return request_fail(request, CAUSE_ARGUMENT,
				    "%" PRIu64 " bytes: a segment has at least 1", allocate->bytes);
	lazy_look(session->registry);
	if (allocate->lazy_rank)
		return handle_allocate_lazy(request, context);
	bytes = (allocate->bytes + PAGE - 1) / PAGE * PAGE;
	allocation = allocation_new(request, context, (enum segment_kind)allocate->kind, bytes);
	if (!allocation)
		return -ENOMEM;
	if (allocate->asked && allocate->asked < bytes)
		allocation->asked = allocate->asked;
	/*
	 * charged before it exists, so that requests at the same time do not take more than there
	 * is
	 */
	r = session_charge(session, allocation->device, bytes);
	if (r < 0) {
		uint32_t device = allocation->device;
		uint64_t asked = allocation->asked;

		allocation_free(allocation);
		return allocation_exhausted(request, session, device, asked, r);
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

	if (segment && segment->kind == SEGMENT_NOTIFY && !segment->is_import)
		return request_fail(request, CAUSE_ARGUMENT, "notifies are given back by their numbers");
	if (segment && segment->channel)
		return request_fail(request, CAUSE_PERMISSION, "memory that came with a channel goes with the channel");
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
	lazy_look(session->registry);
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
