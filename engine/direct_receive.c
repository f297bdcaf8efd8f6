/* SPDX-License-Identifier: Apache-2.0 */
/* Receives of the process itself: pulling what is offered in runs, and committing it. */
#include "engine/copy.h"
#include "engine/direct_lane.h"

/* P3 */
static void receive_issue(struct work *work, struct pair_ring *ring, struct item *head)
{
	uint32_t index = atomic_load_explicit(&head->issue, memory_order_relaxed);
	uint64_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);

	for (; index != LANE_END; index = item_next(work_item(work, index), index)) {
		struct item *item = work_item(work, index);

		if (!atomic_load_explicit(&item->number, memory_order_relaxed))
			atomic_store_explicit(&item->number, ++posted, memory_order_relaxed);
	}
	CRASH_POINT(124);
	atomic_store_explicit(&ring->posted, posted, memory_order_release);
	CRASH_POINT(125);
	atomic_store_explicit(&head->issue, LANE_END, memory_order_relaxed);
}

const struct direct_segment *direct_peer_segment(const struct direct_rank *rank, uint32_t peer_rank, uint64_t id)
{
	const struct direct_peer *peer = &rank->peers[peer_rank];

	if (atomic_load_explicit(&rank->region->members[peer_rank].retired, memory_order_acquire) != peer->generation)
		return NULL;
	for (uint32_t i = 0; i < peer->mapped_count; i++)
		if (peer->mapped[i].id == id)
			return &peer->mapped[i];
	return NULL;
}

/* Memory of a peer. NULL: not mapped, or not to be mapped. */
static const unsigned char *peer_memory(struct work *work, uint32_t peer_rank, uint64_t id, uint64_t offset, uint64_t bytes)
{
	const struct direct_segment *segment = direct_peer_segment(work->rank, peer_rank, id);

	if (!segment) {
		work_need(work, NEED_SEGMENT, peer_rank, id);
		return NULL;
	}
	if (!segment->base || offset > segment->size || bytes > segment->size - offset)
		return NULL;
	return segment->base + offset;
}

/* A payload in a pool of some rank. NULL: it is not mapped. */
static const unsigned char *pool_memory(struct work *work, uint32_t peer_rank, uint64_t place, uint64_t bytes)
{
	for (uint32_t i = 0; i < work->rank->extent_count; i++) {
		const struct direct_extent *extent = &work->rank->extents[i];

		if (place >= extent->place && place - extent->place < extent->bytes)
			return bytes <= extent->bytes - (place - extent->place) ? extent->base + (place - extent->place) : NULL;
	}
	work_need(work, NEED_EXTENTS, peer_rank, 0);
	return NULL;
}

/* A run of receives that are copied one after the other and committed together. */
struct run {
	uint64_t last;			/* copied so far */
	bool from_segment;		/* some of them */
	/* the packed slot that was read last: our copy of its words, judged */
	const struct pair_offer *pack;
	uint64_t pack_first, pack_end, pack_bytes;
	uint8_t pack_type;
};

enum pull { PULL_DONE, PULL_LATER, PULL_DECLINED };

/* P8: is offer run->last + 1 in a packed slot? False: it is not, or the slot says nonsense. */
static bool pack_find(struct run *run, struct direct_peer *peer)
{
	const uint64_t number = run->last + 1;

	for (uint64_t k = 0; k < HCCLD_PACK_MAX && k < number; k++) {
		const struct pair_offer *slot = pair_slot(peer->in, peer->rest_in, peer->wide_in, number - k);
		uint64_t count, bytes;

		if (!slot || read_once(slot->number) != number - k)
			continue;
		if (read_once(slot->where) != OFFER_PACKED)
			return false;
		count = read_once(slot->count);
		bytes = read_once(slot->bytes);
		if (count <= k || count > HCCLD_PACK_MAX || bytes > HCCLD_INLINE_MAX / count)
			return false;
		run->pack = slot;
		run->pack_first = number - k;
		run->pack_end = number - k + count;
		run->pack_bytes = bytes;
		run->pack_type = read_once(slot->data_type);
		return true;
	}
	return false;
}

/* The same when it is: from there. */
static inline enum pull pack_pull(struct work *work, const struct run *run, const struct item *item)
{
	unsigned char *to;

	if (item->bytes != run->pack_bytes || item->data_type != run->pack_type)
		return PULL_DECLINED;
	to = own_memory(work, item->segment, item->offset, item->bytes);
	if (!to)
		return PULL_DECLINED;
	copy_payload(to, run->pack->payload + (run->last + 1 - run->pack_first) * run->pack_bytes, run->pack_bytes);
	return PULL_DONE;
}

#define SPILL_ITEMS_MAX 256u

/*
 * Do batches like this one of all ranks pass the last cache? Then stores past it are the faster, by a tenth; else they take more than twice the time of
 * stores to lines that the cache has.
 */
static bool batch_spills(struct work *work)
{
	const uint32_t kib = atomic_load_explicit(&work->context->beacon->cache_kib, memory_order_relaxed);
	const uint64_t cache = kib ? kib * 1024ull : HCCLD_CACHE;
	uint64_t bytes = 0;

	if (work->spills != SPILLS_UNKNOWN)
		return work->spills == SPILLS;
	for (uint32_t i = 0; i < work->count && i < SPILL_ITEMS_MAX && bytes <= cache; i++) {
		const struct item *item = work_item(work, i);

		if (item->kind == ITEM_SEND || item->kind == ITEM_RECEIVE)
			bytes += item->bytes;
	}
	work->spills = bytes > cache / work->rank->size ? SPILLS : SPILLS_NOT;
	return work->spills == SPILLS;
}

/* Receive run->last + 1 has its offer. The offer is another process's word: each field is read once. */
static enum pull receive_pull(struct work *work, struct run *run, const struct item *item, struct direct_peer *peer)
{
	const struct pair_offer *slot = pair_slot(peer->in, peer->rest_in, peer->wide_in, run->last + 1);
	const uint64_t bytes = item->bytes;
	const unsigned char *from;
	unsigned char *to;
	uint8_t where;

	if (run->last + 1 < run->pack_end || (bytes <= PACKED_BYTES_MAX && pack_find(run, peer)))
		return pack_pull(work, run, item);
	if (!slot) {
		work_need(work, NEED_EXTENTS, item->peer, 0);
		return PULL_DECLINED;
	}
	to = own_memory(work, item->segment, item->offset, bytes);
	where = read_once(slot->where);
	if (!to || read_once(slot->number) != run->last + 1 || read_once(slot->bytes) != bytes ||
	    read_once(slot->data_type) != item->data_type)
		return PULL_DECLINED;
	if (where == OFFER_INLINE) {
		if (bytes > HCCLD_INLINE_MAX)
			return PULL_DECLINED;
		copy_payload(to, slot->payload, bytes);
		return PULL_DONE;
	}
	if (where == OFFER_EAGER) {
		from = bytes > HCCLD_EAGER_MAX ? NULL : pool_memory(work, item->peer, read_once(slot->place), bytes);
		if (!from)
			return PULL_DECLINED;
		memcpy(to, from, bytes);
		return PULL_DONE;
	}
	work->context->met_large |= bytes > DIRECT_COPY_MAX;
	if (where != OFFER_SEGMENT || bytes > DIRECT_COPY_MAX)
		return PULL_DECLINED;
	if (bytes > work->context->budget)
		return PULL_LATER;
	from = peer_memory(work, item->peer, read_once(slot->segment), read_once(slot->offset), bytes);
	if (!from)
		return PULL_DECLINED;
	work->context->budget -= bytes;
	run->from_segment = true;
	CRASH_POINT(126);
	if (bytes >= HCCLD_STREAM_MIN && batch_spills(work))
		copy_non_temporal(to, from, bytes);
	else
		memcpy(to, from, bytes);
	return PULL_DONE;
}

/*
 * P4. The copies' loads are before the fence, the checks behind it: whoever takes a source away, or fails the pair, stores its word first, and
 * the memory is used again later. So a copy that saw memory in new use sees the word here, and is not committed; and one that is committed
 * has copied what was offered, also if the pair fails between the checks and the store.
 */
static bool receive_commit(struct work *work, const struct run *run, struct direct_peer *peer, uint32_t peer_rank)
{
	const struct comm_region *region = work->rank->region;
	const struct comm_member *member = &region->members[peer_rank];
	struct pair_ring *ring = peer->in;

	CRASH_POINT(127);
	atomic_thread_fence(memory_order_acquire);
	if ((KEEPS(COMMIT_ABORT) && atomic_load_explicit(&region->abort, memory_order_relaxed)) ||
	    (KEEPS(COMMIT_FAILED) && atomic_load_explicit(&ring->failed, memory_order_relaxed)) ||
	    (KEEPS(COMMIT_REVOKED) && atomic_load_explicit(&ring->revoked, memory_order_relaxed) >= run->last))
		return false;
	if (run->from_segment && ((KEEPS(COMMIT_MEMBER) && atomic_load_explicit(&member->word, memory_order_relaxed) != MEMBER_ALIVE) ||
				  (KEEPS(COMMIT_RETIRED) && atomic_load_explicit(&member->retired, memory_order_relaxed) != peer->generation)))
		return false;
	CRASH_POINT(128);
	/* release: whoever sees it sees the bytes, and the source may write its buffer again */
	atomic_store_explicit(&ring->received, run->last, memory_order_release);
	CRASH_POINT(129);
	direct_touch(work->context, peer);
	return true;
}

enum direct_left lane_receive_direct(struct work *work, struct item *head)
{
	const uint32_t peer_rank = head->peer;
	struct direct_peer *peer = &work->rank->peers[peer_rank];
	struct pair_ring *ring = peer->in;
	uint64_t received, tail;
	enum pull pull = PULL_DONE;
	struct run run;
	uint32_t at;

	if (!ring || atomic_load_explicit(&ring->failed, memory_order_acquire))
		return DIRECT_DECLINED;
	if (atomic_load_explicit(&head->issue, memory_order_relaxed) != LANE_END)
		receive_issue(work, ring, head);
	/* the word of the peer before the pair's: what it offered before it went counts */
	if (work->context->is_thorough && peer_is_gone(work, peer_rank))
		return DIRECT_DECLINED;
	received = atomic_load_explicit(&ring->received, memory_order_relaxed);
	/* the offer comes from the peer's core as the tail does: both at once */
	__builtin_prefetch(pair_slot(ring, peer->rest_in, peer->wide_in, received + 1));
	tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	run = (struct run){ .last = received };
	at = atomic_load_explicit(&head->done, memory_order_relaxed);
	while (at != LANE_END) {
		const struct item *item = work_item(work, at);
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

		if (number > received) {
			/* receives commit in number order, whatever their stream */
			if (number != run.last + 1 || number > tail)
				break;
			pull = receive_pull(work, &run, item, peer);
			if (pull != PULL_DONE)
				break;
			run.last = number;
		}
		at = item_next(item, at);
	}
	if (run.last != received && !receive_commit(work, &run, peer, peer_rank))
		return DIRECT_DECLINED;
	CRASH_POINT(130);
	atomic_store_explicit(&head->done, at, memory_order_relaxed);
	if (at == LANE_END)
		return DIRECT_DONE;
	return pull == PULL_DECLINED ? DIRECT_DECLINED : pull == PULL_LATER ? DIRECT_MORE : DIRECT_WAITS;
}
