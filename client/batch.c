/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building batches. One pass builds and checks everything at once; only when it stumbles, batch_diagnose() goes over the
 * list again in the order of HCCL's checks, so that the program gets the code and the text that HCCL's order asks for.
 *
 * Lanes: `lanes` of the thread's scratch has one entry per (peer, direction); an entry counts only if it carries the number of the batch
 * being built, so nothing is cleared between batches, and communicators can share it.
 */
#include "client/batch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/buffer.h"
#include "client/error.h"
#include "client/share.h"
#include "proto/cleanup.h"
#include "proto/limits.h"
#include "proto/status.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ITEMS_KEPT 4096u		/* scratch above this is given back when a much smaller batch follows */

static_assert(ITEM_SEND + HCCL_RECV == ITEM_RECEIVE, "the kind is computed from the direction");

struct lane {
	uint32_t batch;			/* number of the batch this entry is of */
	uint32_t last;			/* item that was added last */
};

struct scratch {
	struct item *items;
	uint32_t item_capacity;
	uint32_t lane_capacity;
	struct lane *lanes;		/* peer * 2 + direction */
	uint32_t batch;
};

static __thread struct scratch *thread_scratch;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key;
static bool has_scratch_key;		/* a program may have used up all keys: then a thread's scratch stays when it ends */

/* Element sizes of what point-to-point moves: the entry check of HCCL on A2 and A3. 0: refused. */
static const uint8_t type_sizes[HCCL_DATA_TYPE_INT128 + 1] = {
	[HCCL_DATA_TYPE_INT8] = 1, [HCCL_DATA_TYPE_INT16] = 2, [HCCL_DATA_TYPE_INT32] = 4, [HCCL_DATA_TYPE_FP16] = 2,
	[HCCL_DATA_TYPE_FP32] = 4, [HCCL_DATA_TYPE_INT64] = 8, [HCCL_DATA_TYPE_UINT64] = 8, [HCCL_DATA_TYPE_UINT8] = 1,
	[HCCL_DATA_TYPE_UINT16] = 2, [HCCL_DATA_TYPE_UINT32] = 4, [HCCL_DATA_TYPE_FP64] = 8, [HCCL_DATA_TYPE_BFP16] = 2,
	[HCCL_DATA_TYPE_INT128] = 16,
};

static uint32_t type_size(uint32_t type)
{
	return type < sizeof(type_sizes) ? type_sizes[type] : 0;
}

/* ---- scratch ---- */

static void scratch_free(void *data)
{
	struct scratch *scratch = data;

	thread_scratch = NULL;
	free(scratch->items);
	free(scratch->lanes);
	free(scratch);
}

static void scratch_init(void)
{
	has_scratch_key = pthread_key_create(&scratch_key, scratch_free) == 0;
}

static int no_memory(uint32_t count)
{
	return hccld_error(CAUSE_HOST_MEMORY, "no memory to build a batch of %u items", count);
}

static int scratch_grow_items(struct scratch *scratch, uint32_t count)
{
	uint32_t capacity = count < 64 ? 64 : count;
	struct item *items;

	free(scratch->items);
	scratch->item_capacity = 0;
	scratch->items = NULL;
	if (posix_memalign((void **)&items, HCCLD_CACHE_LINE, capacity * sizeof(*items)) != 0)
		return no_memory(count);
	scratch->items = items;
	scratch->item_capacity = capacity;
	return 0;
}

static int scratch_grow_lanes(struct scratch *scratch, uint32_t count)
{
	free(scratch->lanes);
	scratch->lane_capacity = 0;
	scratch->lanes = calloc(count, sizeof(*scratch->lanes));
	if (!scratch->lanes)
		return no_memory(count);
	scratch->lane_capacity = count;
	scratch->batch = 0;
	return 0;
}

/* Scratch of this thread for @count items and @lane_count lanes, with a new batch number. */
static int scratch_get(uint32_t count, uint32_t lane_count, struct scratch **ret_scratch)
{
	struct scratch *scratch = thread_scratch;
	bool too_large;
	int r;

	if (!scratch) {
		pthread_once(&scratch_once, scratch_init);
		scratch = calloc(1, sizeof(*scratch));
		if (!scratch)
			return no_memory(count);
		thread_scratch = scratch;
		if (has_scratch_key)
			pthread_setspecific(scratch_key, scratch);
	}
	too_large = scratch->item_capacity > ITEMS_KEPT && count < scratch->item_capacity / 16;
	if (count > scratch->item_capacity || too_large) {
		r = scratch_grow_items(scratch, count);
		if (r < 0)
			return r;
	}
	if (lane_count > scratch->lane_capacity) {
		r = scratch_grow_lanes(scratch, lane_count);
		if (r < 0)
			return r;
	}
	if (++scratch->batch == 0) {
		memset(scratch->lanes, 0, scratch->lane_capacity * sizeof(*scratch->lanes));
		scratch->batch = 1;
	}
	*ret_scratch = scratch;
	return 0;
}

/* ---- memory ---- */

/* The place found last: most lists walk through one allocation. Lives for one batch only, so it cannot be stale. */
struct cached_place {
	uintptr_t start;
	uint64_t size;
	uint64_t segment, offset;
};

/* Another allocation than the last. False: no device memory of ours. */
__attribute__((noinline)) static bool place_find(struct cached_place *cache, const void *buffer)
{
	struct hccld_place place;

	if (hccld_share_find(buffer, &place) < 0 || place.memory != HCCLD_MEMORY_DEVICE)
		return false;
	*cache = (struct cached_place){ (uintptr_t)buffer, place.available, place.segment, place.offset };
	return true;
}

/* Is [@buffer, + @bytes) in one allocation? Its place is cache->segment, cache->offset + *ret_distance. */
static inline bool place_holds(struct cached_place *cache, const void *buffer, uint64_t bytes, uint64_t *ret_distance)
{
	uint64_t distance = (uintptr_t)buffer - cache->start;

	if (unlikely(distance >= cache->size)) {
		if (!place_find(cache, buffer))
			return false;
		distance = 0;
	}
	*ret_distance = distance;
	return likely(bytes <= cache->size - distance);
}

/* ---- building ---- */

struct builder {
	const struct hccld_batch_terms *terms;
	const HcclSendRecvItem *list;
	uint32_t count;
	struct scratch *scratch;
	struct item *items;		/* of the scratch */
	uint32_t used;			/* items written */
	uint32_t first_lane, last_lane;	/* heads */
	struct cached_place cache[2];	/* by direction */
};

static inline void item_write(struct item *item, uint32_t index, uint8_t kind, uint8_t type, uint32_t peer, uint64_t bytes,
			      uint64_t segment, uint64_t offset, uint32_t list_index)
{
	*item = (struct item){
		.kind = kind, .data_type = type, .peer = peer, .bytes = bytes, .segment = segment, .offset = offset,
		.next = LANE_END, .next_lane = LANE_END, .issue = index, .done = index, .list_index = list_index,
	};
}

/* @index is the head of a new lane. */
static inline void builder_add_lane(struct builder *builder, uint32_t index)
{
	if (builder->last_lane == LANE_END)
		builder->first_lane = index;
	else
		builder->items[builder->last_lane].next_lane = index;
	builder->last_lane = index;
}

/*
 * Items to and from others; counts those to oneself. False: something is wrong with the list. What the loop uses is in locals: stores
 * to items could change anything behind a pointer, as far as the compiler knows.
 */
static bool builder_add_others(struct builder *builder, uint32_t *ret_self_count)
{
	const HcclSendRecvItem *const list = builder->list, *const end = list + builder->count;
	const uint32_t rank = builder->terms->rank, size = builder->terms->size;
	const bool allow_duplicate_items = builder->terms->allow_duplicate_items;
	const uint32_t batch = builder->scratch->batch;
	struct lane *const lanes = builder->scratch->lanes;
	struct item *const items = builder->items;
	uint32_t self_count = 0, used = 0;

	for (const HcclSendRecvItem *in = list; in < end; in++) {
		const uint32_t direction = (uint32_t)in->sendRecvType, peer = in->remoteRank, type = (uint32_t)in->dataType;
		const uint64_t bytes = in->count * type_size(type);
		struct cached_place *cache = &builder->cache[direction & 1];
		uint64_t distance;
		struct lane *lane;

		if (unlikely(!in->buf || direction > HCCL_RECV || !type_size(type) || in->count > HCCLD_COUNT_MAX || peer >= size))
			return false;
		if (unlikely(peer == rank || bytes == 0)) {
			self_count += peer == rank;
			continue;
		}
		if (!place_holds(cache, in->buf, bytes, &distance))
			return false;
		lane = &lanes[peer * 2 + direction];
		if (lane->batch == batch) {
			if (!allow_duplicate_items)
				return false;
			items[lane->last].next = used;
		} else {
			lane->batch = batch;
			builder_add_lane(builder, used);
		}
		lane->last = used;
		item_write(&items[used], used, (uint8_t)(ITEM_SEND + direction), (uint8_t)type, peer, bytes, cache->segment,
			   cache->offset + distance, (uint32_t)(in - list));
		used++;
	}
	builder->used = used;
	*ret_self_count = self_count;
	return true;
}

/* The next item to oneself in @direction from @from on; count if there is none. */
static uint32_t next_self(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count, uint32_t from,
			  HcclSendRecvType direction)
{
	while (from < count && (list[from].remoteRank != terms->rank || list[from].sendRecvType != direction))
		from++;
	return from;
}

static bool self_items_fit(const HcclSendRecvItem *send, const HcclSendRecvItem *receive)
{
	return send->count == receive->count && send->dataType == receive->dataType;
}

enum overlap { OVERLAP_NONE, OVERLAP_SAME, OVERLAP_PARTIAL };

static enum overlap overlap_of(const void *a, const void *b, uint64_t bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	if (x == y)
		return OVERLAP_SAME;
	return (x < y ? y - x : x - y) < bytes ? OVERLAP_PARTIAL : OVERLAP_NONE;
}

static void builder_add(struct builder *builder, uint8_t kind, uint64_t bytes, uint64_t segment, uint64_t offset, uint32_t list_index)
{
	uint32_t index = builder->used++;

	item_write(&builder->items[index], index, kind, 0, builder->terms->rank, bytes, segment, offset, list_index);
}

/* Copies within this rank: the n-th send to oneself meets the n-th receive. */
static bool builder_add_self(struct builder *builder)
{
	const struct hccld_batch_terms *terms = builder->terms;
	uint32_t s = 0, r = 0;

	for (;; s++, r++) {
		const HcclSendRecvItem *send, *receive;
		struct cached_place *from = &builder->cache[HCCL_SEND], *to = &builder->cache[HCCL_RECV];
		uint64_t bytes, from_distance, to_distance;
		enum overlap overlap;

		s = next_self(terms, builder->list, builder->count, s, HCCL_SEND);
		r = next_self(terms, builder->list, builder->count, r, HCCL_RECV);
		if (s == builder->count || r == builder->count)
			return s == r;
		send = &builder->list[s];
		receive = &builder->list[r];
		if (!self_items_fit(send, receive))
			return false;
		bytes = send->count * type_size((uint32_t)send->dataType);
		if (bytes == 0)
			continue;
		if (!place_holds(from, send->buf, bytes, &from_distance) || !place_holds(to, receive->buf, bytes, &to_distance))
			return false;
		overlap = overlap_of(send->buf, receive->buf, bytes);
		if (overlap == OVERLAP_PARTIAL)
			return false;
		if (overlap == OVERLAP_SAME)
			continue;
		builder_add_lane(builder, builder->used);
		builder_add(builder, ITEM_COPY, bytes, to->segment, to->offset + to_distance, r);
		builder_add(builder, ITEM_SOURCE, bytes, from->segment, from->offset + from_distance, s);
	}
}

/* ---- what is wrong with a list ---- */

struct where {
	char text[96];
};

/* "HcclBatchSendRecv: rank 2, item 3" */
static struct where where(const struct hccld_batch_terms *terms, uint32_t item)
{
	struct where where;

	if (strcmp(terms->operator_name, "HcclBatchSendRecv") == 0)
		snprintf(where.text, sizeof(where.text), "%s: rank %u, item %u", terms->operator_name, terms->rank, item);
	else
		snprintf(where.text, sizeof(where.text), "%s: rank %u", terms->operator_name, terms->rank);
	return where;
}

static const char *direction_name(uint32_t direction)
{
	return direction == HCCL_SEND ? "send to" : "receive from";
}

static int type_error(const struct hccld_batch_terms *terms, uint32_t i, const HcclSendRecvItem *in)
{
	return hccld_error(CAUSE_NOT_SUPPORTED, "%s: dataType is %d (%s), expected one of int8, uint8, int16, uint16, int32, uint32, int64, uint64, fp16, fp32, fp64, bfp16, int128",
			   where(terms, i).text, (int)in->dataType, data_type_name((uint32_t)in->dataType));
}

static int count_error(const struct hccld_batch_terms *terms, uint32_t i, const HcclSendRecvItem *in)
{
	return hccld_error(CAUSE_ARGUMENT, "%s: count is %" PRIu64 ", expected at most %" PRIu64, where(terms, i).text, in->count,
			   (uint64_t)HCCLD_COUNT_MAX);
}

static int peer_error(const struct hccld_batch_terms *terms, const char *parameter, uint32_t i, const HcclSendRecvItem *in)
{
	return hccld_error(CAUSE_ARGUMENT, "%s: %s is %u, expected less than %u, the size of communicator %s", where(terms, i).text,
			   parameter, in->remoteRank, terms->size, terms->comm_name);
}

/* HCCL's first round (items without buffer are left to the second) and second round. */
static int diagnose_values(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!list[i].buf)
			continue;
		if (!type_size((uint32_t)list[i].dataType))
			return type_error(terms, i, &list[i]);
		if (list[i].count > HCCLD_COUNT_MAX)
			return count_error(terms, i, &list[i]);
		if (list[i].remoteRank >= terms->size)
			return peer_error(terms, "remoteRank", i, &list[i]);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!list[i].buf)
			return hccld_error(CAUSE_NULL, "%s: buf is NULL, expected device memory", where(terms, i).text);
		if ((uint32_t)list[i].sendRecvType > HCCL_RECV)
			return hccld_error(CAUSE_ARGUMENT, "%s: sendRecvType is %d, expected HCCL_SEND (0) or HCCL_RECV (1)",
					   where(terms, i).text, (int)list[i].sendRecvType);
	}
	return 0;
}

static int diagnose_self(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	uint32_t s = 0, r = 0;

	for (;; s++, r++) {
		s = next_self(terms, list, count, s, HCCL_SEND);
		r = next_self(terms, list, count, r, HCCL_RECV);
		if (s == count && r == count)
			return 0;
		if (s == count || r == count)
			return hccld_error(CAUSE_ARGUMENT, "%s: remoteRank is %u, the rank itself, without a %s it in the same call; items to oneself come in pairs",
					   where(terms, s == count ? r : s).text, terms->rank, s == count ? "send to" : "receive from");
		if (!self_items_fit(&list[s], &list[r]))
			return hccld_error(CAUSE_ARGUMENT, "%s: sends %" PRIu64 " x %s to the rank itself, item %u receives %" PRIu64 " x %s; expected the same count and dataType",
					   where(terms, s).text, list[s].count, data_type_name((uint32_t)list[s].dataType), r,
					   list[r].count, data_type_name((uint32_t)list[r].dataType));
	}
}

/* Items of count 0 take no part. */
static int diagnose_duplicates(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	CLEANUP(freep) uint32_t *first = NULL;	/* per lane: 1 + index of its first item */

	if (terms->allow_duplicate_items)
		return 0;
	first = calloc(terms->size, 2 * sizeof(*first));
	if (!first)
		return no_memory(count);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t direction = (uint32_t)list[i].sendRecvType, peer = list[i].remoteRank;
		uint32_t *lane = &first[peer * 2 + direction];

		if (peer == terms->rank || list[i].count == 0)
			continue;
		if (*lane)
			return hccld_error(CAUSE_ARGUMENT, "%s: a second %s rank %u, as item %u; one of each kind per peer is allowed in a call. Set HCCLD_ALLOW_DUPLICATE_ITEMS=1 (or start hccld with --allow-duplicate-items; the setting's name is allow_duplicate_items) to have them matched in list order",
					   where(terms, i).text, direction_name(direction), peer, *lane - 1);
		*lane = i + 1;
	}
	return 0;
}

static int diagnose_memory(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bytes = list[i].count * type_size((uint32_t)list[i].dataType);
		char extra[HCCLD_EXTRA_TEXT];
		struct hccld_place place;

		if (bytes == 0)
			continue;
		if (hccld_share_find(list[i].buf, &place) < 0 || place.memory != HCCLD_MEMORY_DEVICE) {
			int r = hccld_share_lost_error(where(terms, i).text, list[i].buf);

			if (r < 0)
				return r;
			return hccld_error(CAUSE_NOT_DEVICE_MEMORY, "%s: buf is not device memory; allocate it with aclrtMalloc",
					   where(terms, i).text);
		}
		if (bytes > place.available && place.joins && hccld_buffer_span(list[i].buf, bytes) >= bytes)
			return hccld_error(CAUSE_NOT_SUPPORTED, "%s: buf goes over the end of one piece of physical memory into another, mapped behind it; %" PRIu64 " bytes are in the first. Map one piece, or pass a buffer within one",
					   where(terms, i).text, place.available);
		if (bytes > place.available)
			return hccld_error(CAUSE_ARGUMENT, "%s: buf is %" PRIu64 " bytes longer than its allocation: count is %" PRIu64 " x %s, from buf to the end of the allocation there are %" PRIu64 " bytes%s",
					   where(terms, i).text, bytes - place.available, list[i].count,
					   data_type_name((uint32_t)list[i].dataType), place.available,
					   hccld_buffer_extra_text(list[i].buf, extra));
	}
	return 0;
}

static int diagnose_overlap(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	uint32_t s = 0, r = 0;

	for (;; s++, r++) {
		s = next_self(terms, list, count, s, HCCL_SEND);
		r = next_self(terms, list, count, r, HCCL_RECV);
		if (s == count || r == count)
			return 0;
		if (overlap_of(list[s].buf, list[r].buf, list[s].count * type_size((uint32_t)list[s].dataType)) == OVERLAP_PARTIAL)
			return hccld_error(CAUSE_ARGUMENT, "%s: sends to the rank itself from a buffer that overlaps a part of item %u's; expected the same buffer or one apart",
					   where(terms, s).text, r);
	}
}

static int batch_diagnose(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count)
{
	int r;

	r = diagnose_values(terms, list, count);
	if (r == 0)
		r = diagnose_self(terms, list, count);
	if (r == 0)
		r = diagnose_duplicates(terms, list, count);
	if (r == 0)
		r = diagnose_memory(terms, list, count);
	if (r == 0)
		r = diagnose_overlap(terms, list, count);
	if (r == 0)
		r = hccld_error(CAUSE_ARGUMENT, "%s: rank %u: the list of items was changed during the call", terms->operator_name,
				terms->rank);
	return r;
}

int hccld_batch_check_one(const struct hccld_batch_terms *terms, const HcclSendRecvItem *item)
{
	const char *peer_name = item->sendRecvType == HCCL_SEND ? "destRank" : "srcRank";

	if (item->count > HCCLD_COUNT_MAX)
		return count_error(terms, 0, item);
	if (!type_size((uint32_t)item->dataType))
		return type_error(terms, 0, item);
	if (item->remoteRank >= terms->size)
		return peer_error(terms, peer_name, 0, item);
	if (item->remoteRank == terms->rank)
		return hccld_error(CAUSE_NOT_SUPPORTED, "%s: %s is %u, the rank itself; HcclBatchSendRecv can send to oneself, with a receive in the same call",
				   where(terms, 0).text, peer_name, terms->rank);
	return 0;
}

int hccld_batch_build(const struct hccld_batch_terms *terms, const HcclSendRecvItem *list, uint32_t count,
		      struct hccld_batch *ret_batch)
{
	struct scratch *scratch = NULL;
	struct builder builder;
	uint32_t self_count = 0;
	int r;

	if (count > HCCLD_BATCH_ITEMS_MAX)
		return hccld_error(CAUSE_ARGUMENT, "%s: rank %u: itemNum is %u, expected at most %u (HCCLD_BATCH_ITEMS_MAX)",
				   terms->operator_name, terms->rank, count, HCCLD_BATCH_ITEMS_MAX);
	r = scratch_get(count, terms->size * 2, &scratch);
	if (r < 0)
		return r;
	builder.scratch = scratch;
	builder.terms = terms;
	builder.list = list;
	builder.count = count;
	builder.items = scratch->items;
	builder.first_lane = builder.last_lane = LANE_END;
	/* nothing in it: the rest need not be cleared, which would take as long as an item */
	builder.cache[HCCL_SEND].size = builder.cache[HCCL_RECV].size = 0;
	if (!builder_add_others(&builder, &self_count) || (self_count && !builder_add_self(&builder)))
		return batch_diagnose(terms, list, count);
	*ret_batch = (struct hccld_batch){ builder.items, builder.used, builder.first_lane };
	return 0;
}
