/* SPDX-License-Identifier: Apache-2.0 */
/* Sends: numbering and offering runs of items (P2), finding them done. */
#include <errno.h>

#include "engine/eager.h"
#include "engine/lane.h"

static bool pool_find(struct lane *lane, struct view_pool *pool, uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < pool->slot_count; i++) {
		uint32_t slot = (pool->cursor + i) % pool->slot_count;
		uint64_t number = atomic_load_explicit(&pool->pool->heads[slot].number, memory_order_relaxed);
		uint32_t peer = atomic_load_explicit(&pool->pool->heads[slot].peer, memory_order_relaxed);

		/* its client can have written anything */
		if (number && peer >= lane->comm->size)
			continue;
		if (number && !eager_is_free(number, atomic_load_explicit(&view_pair_of(lane->comm, lane->rank, peer)->ring, memory_order_acquire),
					     atomic_load_explicit(&lane->comm->region->members[peer].word, memory_order_acquire) != MEMBER_ALIVE))
			continue;
		pool->cursor = slot + 1;
		*ret_slot = slot;
		return true;
	}
	return false;
}

/* A copy of what the receiver has not asked for yet, if there is a slot for it: complete without him. */
static bool lane_offer_eager(struct lane *lane, uint64_t number, const void *from, uint64_t bytes, struct pair_offer *offer)
{
	struct view_pools *pools = lane->comm->pools ? atomic_load_explicit(&lane->comm->pools[lane->rank], memory_order_acquire) : NULL;
	uint32_t count = pools ? atomic_load_explicit(&pools->count, memory_order_acquire) : 0, slot;

	if (!count || atomic_load_explicit(&lane->ring->posted, memory_order_relaxed) >= number)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct view_pool *pool = &pools->pools[i];
		const struct eager_place at = { .pool = pool->pool, .place = pool->place, .slot_count = pool->slot_count };

		if (!pool_find(lane, pool, &slot))
			continue;
		eager_fill(&at, slot, lane->peer, number, from, bytes, offer);
		return true;
	}
	return false;
}

/* Writes offer @number for @item into its slot; guarded. */
static void lane_offer(struct lane *lane, const struct item *item, uint64_t number)
{
	struct pair_offer *slot = view_pair_offer(lane->pair, lane->ring, number);
	uint64_t bytes = read_once(item->bytes), offset = read_once(item->offset), segment = read_once(item->segment);
	struct view_segment *from;

	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = item->data_type;
	slot->where = OFFER_SEGMENT;
	if (bytes <= HCCLD_EAGER_MAX) {
		from = view_segment_find(lane->batch->context->session, segment, offset, bytes);
		if (from && bytes > HCCLD_INLINE_MAX) {
			if (lane_offer_eager(lane, number, from->base + offset, bytes, slot))
				return;
		} else if (from) {
			slot->where = OFFER_INLINE;
			copy_payload(slot->payload, from->base + offset, bytes);
			return;
		}
	}
	if (bytes <= HCCLD_INLINE_MAX) {
		segment = 0;	/* memory that is gone: the receiver finds nothing there */
	}
	slot->segment = segment;
	slot->offset = offset;
}

/* The payloads of offers from @first on were copied from memory that was lost. */
static void lane_offers_spoil(struct lane *lane, uint64_t first, uint64_t last)
{
	for (uint64_t i = 0; i < last - first + 1 && i < HCCLD_PAIR_WIDE_SLOTS; i++) {
		struct pair_offer *slot = view_pair_offer(lane->pair, lane->ring, first + i);

		if (slot->where != OFFER_SEGMENT) {
			slot->where = OFFER_SEGMENT;
			slot->segment = 0;
		}
	}
}

/* May offer @number go, which makes it @bytes more? What is waited for does not lie about: without it nobody might receive any more. */
static bool lane_may_offer(struct lane *lane, uint64_t number, uint64_t bytes)
{
	return atomic_load_explicit(&lane->ring->posted, memory_order_acquire) >= number ||
	       pending_allows(lane->batch->engine, lane->comm, lane->batch->context, bytes);
}

/* P2: numbers and offers a run of as many items as the ring takes. False on nonsense. */
static bool lane_send_issue(struct lane *lane)
{
	struct engine *engine = lane->batch->engine;
	uint32_t index = atomic_load_explicit(&lane->head->issue, memory_order_relaxed), start = index;
	uint64_t tail = atomic_load_explicit(&lane->ring->tail, memory_order_relaxed), last = tail;
	uint64_t sent = atomic_load_explicit(&lane->ring->sent, memory_order_relaxed);
	const uint64_t received = atomic_load_explicit(&lane->ring->received, memory_order_acquire);
	uint64_t offered = 0;
	bool sane = true;
	const void *lost;

	engine->host.guard_begin();
	while (index != LANE_END) {
		struct item *item = lane_item(lane, index);
		uint64_t number;
		uint32_t next;

		if (!(sane = item != NULL))
			break;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		if (number > tail || !number) {
			if (last >= received + view_pair_slots(lane->pair, lane->ring, last + 1) || (!number && last < sent) ||
			    !slot_is_over(view_pair_offer(lane->pair, lane->ring, last + 1), received, tail))
				break;	/* no room, or numbers that another lane was given and has not offered */
			if (number && !(sane = number == last + 1))
				break;
			if (!lane_may_offer(lane, last + 1, offered + read_once(item->bytes)))
				break;
			last++;
			if (!number) {
				atomic_store_explicit(&item->number, last, memory_order_release);
				CRASH_POINT(7);
			}
			lane_offer(lane, item, last);
			offered += view_pair_offer(lane->pair, lane->ring, last)->bytes;
		}
		next = read_once(item->next);
		if (!(sane = next > index))
			break;
		index = next;
	}
	lost = engine->host.guard_end();
	if (lost) {
		lane_offers_spoil(lane, tail + 1, last);
		engine_blame(engine, lane->batch->context->session, NULL, lost);
	}
	if (last != tail) {
		pending_add(engine, lane->comm, lane->pair, offered);
		if (last > sent)
			atomic_store_explicit(&lane->ring->sent, last, memory_order_release);
		CRASH_POINT(5);
		/* release: the slots are complete before anybody can see the number */
		atomic_store_explicit(&lane->ring->tail, last, memory_order_release);
		CRASH_POINT(6);
		context_dirty(engine, atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire));
	}
	CRASH_POINT(8);
	if (index != start)
		atomic_store_explicit(&lane->head->issue, index, memory_order_relaxed);
	return sane;
}

int lane_send(struct batch *batch, uint32_t head_index)
{
	uint64_t failed, received, tail;
	enum cause peer_cause;
	uint32_t done, start;
	struct lane lane;
	int r;

	r = lane_open(batch, head_index, ITEM_SEND, &lane);
	if (r < 0)
		return r;
	if (lane.gate == GATE_ENDED)
		return lane_end_suspended(&lane);
	/* what has failed by now, after HCCL_EXEC_TIMEOUT say, goes on to its end */
	if (lane.gate == GATE_HELD && !atomic_load_explicit(view_pair_failed(lane.pair, lane.ring), memory_order_acquire))
		return 0;
	/* the words of the peer before the pair's: what it finished before it went counts */
	peer_cause = lane_peer_cause(&lane);
	failed = atomic_load_explicit(view_pair_failed(lane.pair, lane.ring), memory_order_acquire);
	if (!failed && !peer_cause && !lane_send_issue(&lane))
		return -EPROTO;
	received = atomic_load_explicit(&lane.ring->received, memory_order_acquire);
	tail = atomic_load_explicit(&lane.ring->tail, memory_order_relaxed);
	start = done = atomic_load_explicit(&lane.head->done, memory_order_relaxed);
	while (done != LANE_END) {
		struct item *item = lane_item(&lane, done);
		uint64_t number;
		uint32_t next;

		if (!item)
			return -EPROTO;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		next = read_once(item->next);
		if (next <= done)
			return -EPROTO;
		if (number && (received >= number || (tail >= number && lane_is_kept(&lane, item, number))))
			;	/* P4 */
		else if (failed && (!number || number >= failed))
			lane_item_fail(&lane, item, lane_pair_fault(&lane));
		else if (peer_cause)
			lane_item_fail(&lane, item, pair_fault(lane.comm, peer_cause, lane.rank, lane.peer, ITEM_SEND));
		else
			break;
		done = next;
	}
	if (done != start) {
		uint32_t issue = atomic_load_explicit(&lane.head->issue, memory_order_relaxed);

		CRASH_POINT(9);
		atomic_store_explicit(&lane.head->done, done, memory_order_relaxed);
		if (issue < done)
			atomic_store_explicit(&lane.head->issue, done, memory_order_relaxed);
	}
	return done == LANE_END;
}
