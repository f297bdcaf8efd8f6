/* SPDX-License-Identifier: Apache-2.0 */
/* Sends: numbering and offering runs of items (P2), finding them done. */
#include <errno.h>

#include "engine/eager.h"
#include "engine/lane.h"
#include "proto/clock.h"

static bool slot_is_free(const void *who, uint32_t peer, uint64_t number)
{
	const struct lane *lane = who;

	return peer < lane->comm->size &&
	       eager_is_free(number, atomic_load_explicit(&view_pair_of(lane->comm, lane->rank, peer)->ring, memory_order_acquire),
			     atomic_load_explicit(&lane->comm->region->members[peer].word, memory_order_acquire) != MEMBER_ALIVE);
}

/* A slot of an eager pool. */
struct eager_slot {
	const struct eager_place *pool;	/* NULL: none */
	uint32_t slot;
};

/* There is no room for what would be complete with it. True: there may be some soon, and the context looks again then. */
static bool lane_ask_room(struct lane *lane, _Atomic uint8_t *room, uint32_t destination, uint32_t pools)
{
	struct engine *engine = lane->batch->engine;
	/* acquire: the pool or ring that has been made */
	uint8_t state = atomic_load_explicit(room, memory_order_acquire);

	if (!engine->host.no_room)
		return false;
	if (state == ROOM_REFUSED && clock_now_ns() < atomic_load_explicit(&lane->comm->room_again_ns, memory_order_relaxed))
		return false;
	pending_hold(engine, lane->batch->context);
	if (state == ROOM_ASKED)
		return true;
	atomic_store_explicit(room, ROOM_ASKED, memory_order_relaxed);
	if (!engine->host.no_room(engine->host.data, lane->comm, lane->rank, destination, pools))
		atomic_store_explicit(room, ROOM_UNASKED, memory_order_relaxed);
	return true;
}

/*
 * A slot for a copy of @item, if it is of the size for it and its receiver has not asked for it yet: complete without him. False: not now, but
 * there may be one soon.
 */
static bool lane_find_slot(struct lane *lane, const struct item *item, uint64_t number, struct eager_slot *ret_slot)
{
	struct view_pools *pools = lane->comm->pools ? atomic_load_explicit(&lane->comm->pools[lane->rank], memory_order_acquire) : NULL;
	uint32_t count = pools ? atomic_load_explicit(&pools->count, memory_order_acquire) : 0;
	uint64_t bytes = read_once(item->bytes);

	*ret_slot = (struct eager_slot){ .pool = NULL };
	if (bytes <= HCCLD_INLINE_MAX || bytes > HCCLD_EAGER_MAX ||
	    atomic_load_explicit(&lane->ring->posted, memory_order_relaxed) >= number)
		return true;
	for (uint32_t i = 0; i < count; i++) {
		if (!eager_search(&pools->pools[i], slot_is_free, lane, &ret_slot->slot))
			continue;
		ret_slot->pool = &pools->pools[i];
		return true;
	}
	return !lane->comm->pool_rooms || !lane_ask_room(lane, &lane->comm->pool_rooms[lane->rank], lane->rank, count);
}

static bool lane_has_place(const struct lane *lane, uint64_t number, uint64_t received, uint64_t tail)
{
	return number <= received + view_pair_slots(lane->pair, lane->ring, number) &&
	       slot_is_over(view_pair_offer(lane->pair, lane->ring, number), received, tail);
}

/* Is there a place in the ring for offer @number, now or by widening it? */
static bool lane_has_room(struct lane *lane, const struct item *item, uint64_t number, uint64_t received, uint64_t tail)
{
	if (lane_has_place(lane, number, received, tail))
		return true;
	if (read_once(item->bytes) > HCCLD_EAGER_MAX || lane->pair->is_first ||
	    atomic_load_explicit(&lane->ring->wide_from, memory_order_relaxed))
		return false;
	if (atomic_load_explicit(&lane->pair->wide, memory_order_acquire)) {
		pair_widen(lane->ring, lane->pair->wide_index, number);
		return lane_has_place(lane, number, received, tail);
	}
	lane_ask_room(lane, &lane->pair->wide_room, lane->peer, 0);
	return false;
}

/* Writes offer @number for @item into its place; guarded. */
static void lane_offer(struct lane *lane, const struct item *item, uint64_t number, const struct eager_slot *eager)
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
			if (eager->pool) {
				eager_fill(eager->pool, eager->slot, lane->peer, number, from->base + offset, bytes, slot);
				return;
			}
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
		struct eager_slot eager;
		uint64_t number;
		uint32_t next;

		if (!(sane = item != NULL))
			break;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		if (number > tail || !number) {
			/* not numbers that another lane was given and has not offered */
			if ((!number && last < sent) || !lane_has_room(lane, item, last + 1, received, tail))
				break;
			if ((number && !(sane = number == last + 1)) ||
			    !lane_may_offer(lane, last + 1, offered + read_once(item->bytes)) || !lane_find_slot(lane, item, last + 1, &eager))
				break;
			last++;
			if (!number) {
				atomic_store_explicit(&item->number, last, memory_order_release);
				CRASH_POINT(7);
			}
			lane_offer(lane, item, last, &eager);
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
