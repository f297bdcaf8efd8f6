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

/* What is reduced with what. */
struct side {
	const char *function; /* for texts */
	char *address;
	const struct hccld_place *given; /* NULL: it is looked up */
};

static int side_check(const char *name, const struct side *side, uint64_t bytes, uint32_t type)
{
	const void *address = side->address;
	struct hccld_place place;
	uint32_t width = data_type_size(type);
	char extra[HCCLD_EXTRA_TEXT];
	int r;

	if ((uintptr_t)address % width)
		return hccld_error(CAUSE_ARGUMENT, "%s: %s is %p; expected a multiple of %u, the size of an element of type %s", side->function, name, address,
				   width, data_type_name(type));
	if (side->given)
		return 0;
	if (hccld_share_find(address, &place) < 0) {
		r = hccld_share_lost_error(side->function, address);
		return r < 0 ? r
			     : hccld_error(CAUSE_NOT_DEVICE_MEMORY, "%s: %s is %p, which is not memory of aclrtMalloc or aclrtMallocHost", side->function, name,
					   address);
	}
	if (bytes > place.available && bytes > hccld_buffer_span(address, bytes))
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: %s is %p, whose allocation ends after %" PRIu64 " bytes%s; the reduction has %" PRIu64 " bytes", side->function, name,
				   address, place.available, hccld_buffer_extra_text(address, extra), bytes);
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

/* Where the side is @done bytes behind its start. */
static int side_place(const struct side *side, uint64_t done, struct hccld_place *ret_place)
{
	if (!side->given)
		return hccld_buffer_find(side->address + done, ret_place);
	*ret_place = *side->given;
	ret_place->offset += done;
	ret_place->available -= done;
	return 0;
}

/* A buffer of several mappings has a task for each piece; those begin and end at pages, so no element is cut. */
static int submit_pieces(struct hccld_stream *stream, const struct side *to, const struct side *from, uint64_t bytes, uint32_t type,
			 uint32_t op)
{
	for (uint64_t done = 0, piece; done < bytes; done += piece) {
		struct hccld_place to_place, from_place;
		int r;

		if (side_place(to, done, &to_place) < 0 || side_place(from, done, &from_place) < 0)
			return hccld_error(CAUSE_NOT_DEVICE_MEMORY, "the memory of a reduction was freed while it was queued");
		piece = bytes - done;
		piece = piece < to_place.available ? piece : to_place.available;
		piece = piece < from_place.available ? piece : from_place.available;
		r = submit(stream, &to_place, &from_place, piece, type, op);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check(const struct side *to, const struct side *from, uint64_t bytes, uint32_t type)
{
	const uintptr_t a = (uintptr_t)to->address, b = (uintptr_t)from->address;
	int r;

	if (!a || !b)
		return hccld_error(CAUSE_NULL, "%s: %s is NULL", to->function, a ? "src" : "dst");
	r = side_check("dst", to, bytes, type);
	if (r == 0)
		r = side_check("src", from, bytes, type);
	if (r < 0)
		return r;
	if (a != b && (a < b ? b - a : a - b) < bytes)
		return hccld_error(CAUSE_ARGUMENT,
				   "%s: dst %p and src %p overlap within %" PRIu64 " bytes; they may be the same memory, or not overlap",
				   to->function, to->address, from->address, bytes);
	return 0;
}

int hccld_reduce_submit_at(const char *function, struct hccld_stream *stream, void *to, const struct hccld_place *to_place, const void *from,
			   const struct hccld_place *from_place, uint64_t count, uint32_t type, uint32_t op)
{
	const struct side destination = { function, to, to_place }, source = { function, (char *)(uintptr_t)from, from_place };
	const uint64_t bytes = count * data_type_size(type);
	struct hccld_session *session;
	int r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "reductions", &session);
	if (r < 0)
		return r;
	if (!arithmetic_has(type, op))
		return hccld_error(CAUSE_NOT_SUPPORTED, "%s: reduction %u (HcclReduceOp) of elements of type %s (%u) is not supported; expected sum, min or max of integers or floats of 8 to 64 bit", function, op,
				   data_type_name(type), type);
	if (!count)
		return 0;
	if (count > HCCLD_COUNT_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: count is %" PRIu64 "; expected at most %" PRIu64, function, count, (uint64_t)HCCLD_COUNT_MAX);
	r = check(&destination, &source, bytes, type);
	return r < 0 || !stream ? r : submit_pieces(stream, &destination, &source, bytes, type, op);
}

int hccld_reduce_submit(const char *function, struct hccld_stream *stream, void *to, const void *from, uint64_t count, uint32_t type,
			uint32_t op)
{
	return hccld_reduce_submit_at(function, stream, to, NULL, from, NULL, count, type, op);
}
