/* SPDX-License-Identifier: Apache-2.0 */
#include "client/reduce.h"

#include <inttypes.h>
#include <stdbool.h>

#include "client/buffer.h"
#include "client/error.h"
#include "client/share.h"
#include "client/stream.h"
#include "engine/arithmetic.h"
#include "proto/feature.h"
#include "proto/status.h"

static int side_check(const char *name, const void *address, uint64_t bytes, uint32_t type, struct hccld_place *ret_place)
{
	uint32_t width = data_type_size(type);
	int r;

	if ((uintptr_t)address % width)
		return hccld_error(CAUSE_ARGUMENT, "%s is %p; expected a multiple of %u, the size of an element of type %s", name, address,
				   width, data_type_name(type));
	if (hccld_share_find(address, ret_place) < 0) {
		r = hccld_share_lost_error("reduction", address);
		return r < 0 ? r
			     : hccld_error(CAUSE_NOT_DEVICE_MEMORY, "%s is %p, which is not memory of aclrtMalloc or aclrtMallocHost", name,
					   address);
	}
	if (bytes > ret_place->available && bytes > hccld_buffer_span(address, bytes))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s is %p, whose allocation ends after %" PRIu64 " bytes; the reduction has %" PRIu64 " bytes", name,
				   address, ret_place->available, bytes);
	return 0;
}

/* One task: both sides are in one piece of memory each. */
static int submit(struct hccld_stream *stream, const struct hccld_place *to, const struct hccld_place *from, uint64_t bytes,
		  uint32_t type, uint32_t op)
{
	struct task task = { .kind = TASK_REDUCE, .first_lane = LANE_END };
	struct item items[2] = { { .kind = ITEM_REDUCE,
				   .data_type = (uint8_t)type,
				   .peer = op,
				   .bytes = bytes,
				   .segment = to->segment,
				   .offset = to->offset,
				   .next = LANE_END,
				   .next_lane = LANE_END },
				 { .kind = ITEM_SOURCE,
				   .data_type = (uint8_t)type,
				   .bytes = bytes,
				   .segment = from->segment,
				   .offset = from->offset,
				   .next = LANE_END,
				   .next_lane = LANE_END } };

	return hccld_stream_submit(stream, &task, items, 2);
}

/* A buffer of several mappings has a task for each piece; those begin and end at pages, so no element is cut. */
static int submit_pieces(struct hccld_stream *stream, char *to, const char *from, uint64_t bytes, uint32_t type, uint32_t op)
{
	while (bytes) {
		struct hccld_place to_place, from_place;
		uint64_t piece = bytes;
		int r;

		if (hccld_buffer_find(to, &to_place) < 0 || hccld_buffer_find(from, &from_place) < 0)
			return hccld_error(CAUSE_NOT_DEVICE_MEMORY, "the memory of a reduction was freed while it was queued");
		piece = piece < to_place.available ? piece : to_place.available;
		piece = piece < from_place.available ? piece : from_place.available;
		r = submit(stream, &to_place, &from_place, piece, type, op);
		if (r < 0)
			return r;
		to += piece;
		from += piece;
		bytes -= piece;
	}
	return 0;
}

static int check(const void *to, const void *from, uint64_t count, uint32_t type)
{
	const uint64_t bytes = count * data_type_size(type);
	const uintptr_t a = (uintptr_t)to, b = (uintptr_t)from;
	struct hccld_place place;
	int r;

	if (!to || !from)
		return hccld_error(CAUSE_NULL, "%s is NULL", to ? "src" : "dst");
	r = side_check("dst", to, bytes, type, &place);
	if (r == 0)
		r = side_check("src", from, bytes, type, &place);
	if (r < 0)
		return r;
	if (a != b && (a < b ? b - a : a - b) < bytes)
		return hccld_error(CAUSE_ARGUMENT,
				   "dst %p and src %p overlap within %" PRIu64 " bytes; they may be the same memory, or not overlap", to, from,
				   bytes);
	return 0;
}

int hccld_reduce_submit(struct hccld_stream *stream, void *to, const void *from, uint64_t count, uint32_t type, uint32_t op)
{
	struct hccld_session *session;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "reductions", &session);
	if (r < 0)
		return r;
	if (!arithmetic_has(type, op))
		return hccld_error(CAUSE_NOT_SUPPORTED, "the reduction %u of elements of type %s (%u) is not there", op, data_type_name(type),
				   type);
	if (!count)
		return 0;
	if (count > HCCLD_COUNT_MAX)
		return hccld_error(CAUSE_ARGUMENT, "count is %" PRIu64 "; expected at most %" PRIu64, count, (uint64_t)HCCLD_COUNT_MAX);
	r = check(to, from, count, type);
	return r < 0 ? r : submit_pieces(stream, to, from, count * data_type_size(type), type, op);
}
