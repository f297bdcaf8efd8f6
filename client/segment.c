/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of the daemon, mapped whole. Stateless; any thread. */
#include "client/segment.h"

#include <sys/mman.h>

#include "client/drive.h"
#include "client/error.h"
#include "client/mapping.h"
#include "client/strict.h"

void hccld_segment_unmap(struct hccld_segment *segment)
{
	if (segment->base) {
		hccld_drive_remove_segment(segment);
		hccld_strict_forget(segment->base, segment->size);
		hccld_mapping_free(segment->base, segment->size);
	}
	segment->base = NULL;
}

static void segment_give_back(struct hccld_segment *segment, bool after_imports)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__FreeSegment free_segment = HCCLD__CONTROL__FREE_SEGMENT__INIT;
	struct hccld_session *session;

	hccld_segment_unmap(segment);
	if (hccld_session_get(&session) < 0)
		return;
	free_segment.segment = segment->id;
	free_segment.after_imports = after_imports;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
	request.free_segment = &free_segment;
	(void)hccld_call_simple(session->connection, &request);
}

void hccld_segment_free(struct hccld_segment *segment)
{
	segment_give_back(segment, false);
}

void hccld_segment_free_after_imports(struct hccld_segment *segment)
{
	segment_give_back(segment, true);
}

/* Of a reply that grants a segment: mapped. @size: what it must have at least. */
static int segment_take(struct hccld_call *call, uint64_t size, struct hccld_segment *ret_segment)
{
	const Hccld__Control__AllocateSegmentReply *reply = call->reply->allocate_segment;
	struct hccld_segment segment = { .id = reply->segment, .size = reply->bytes };
	int r;

	if (call->fd_count != 1 || segment.size < size)
		r = hccld_error(CAUSE_PROTOCOL, "hccld's answer to an allocation is malformed");
	else
		r = hccld_map(call->fds[0], segment.size, PROT_READ | PROT_WRITE, &segment.base);
	if (r == 0)
		*ret_segment = segment;
	return r;
}

static int segment_allocate(Hccld__Control__AllocateSegment *allocate, uint64_t size, struct hccld_segment *ret_segment)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct hccld_segment segment = { 0 };
	struct hccld_session *session;
	struct hccld_call call;
	bool granted;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = allocate;
	r = hccld_call_make(session->connection, &request, &call);
	granted = call.reply && call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT;
	if (r == 0)
		r = granted ? segment_take(&call, size, ret_segment)
			    : hccld_error(CAUSE_PROTOCOL, "hccld's answer to an allocation is malformed");
	if (r == 0 && allocate->kind == HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE) {
		r = hccld_strict_protect(ret_segment->base, ret_segment->size);
		if (r < 0)
			hccld_segment_unmap(ret_segment);
	}
	if (r == 0 && !allocate->lazy_rank && allocate->kind != HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__EVENT)
		hccld_drive_add_segment(ret_segment);
	if (r < 0 && granted) {
		segment.id = call.reply->allocate_segment->segment;
		hccld_segment_free(&segment);
	}
	hccld_call_end(&call);
	return r;
}

int hccld_segment_new(struct hccld_context *context, uint32_t kind, uint64_t size, uint64_t asked,
		      struct hccld_segment *ret_segment)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;

	allocate.context = context->id;
	allocate.kind = (Hccld__Control__AllocateSegment__Kind)kind;
	allocate.bytes = size;
	allocate.asked = asked;
	return segment_allocate(&allocate, size, ret_segment);
}

int hccld_segment_new_lazy(struct hccld_context *context, uint64_t rank, uint64_t size, struct hccld_segment *ret_segment)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;

	allocate.context = context->id;
	allocate.kind = HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__DEVICE;
	allocate.bytes = size;
	allocate.lazy_rank = rank;
	return segment_allocate(&allocate, 1, ret_segment);
}
