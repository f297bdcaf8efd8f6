/* SPDX-License-Identifier: Apache-2.0 */
/* Sends of the process itself: offers in runs, by the kinds of proto/pair.h. */
#include "engine/direct_lane.h"
#include "proto/clock.h"

#define OFFERS_AHEAD 6

enum offered { OFFERED, OFFER_IN_PLACE, OFFER_DECLINED, OFFER_NO_ROOM };

static bool slot_is_free(const void *who, uint32_t peer, uint64_t number)
{
	const struct work *work = who;

	return peer < work->rank->size && eager_is_free(number, work->rank->peers[peer].out, peer_is_gone(work, peer));
}

/* A free slot. False: there is none. */
static bool eager_find(struct work *work, struct eager_place **ret_at, uint32_t *ret_slot)
{
	struct direct_rank *rank = work->rank;

	for (uint32_t n = 0; n < rank->pool_count; n++) {
		uint32_t index = (rank->pool_first + n) % rank->pool_count;

		if (!eager_search(&rank->pools[index], slot_is_free, work, ret_slot))
			continue;
		rank->pool_first = index;
		*ret_at = &rank->pools[index];
		return true;
	}
	return false;
}

/* What is lacked here for what is to be complete without its receiver: a wish, unless the engine alone has it. */
static enum offered room_need(struct work *work, enum direct_need what, uint32_t peer)
{
	if (work->rank->is_unmapped)
		return OFFER_DECLINED;
	work_need(work, what, peer, 0);
	return OFFER_NO_ROOM;
}

/* Only where something is missing: the clock is slow. */
static bool rank_is_full(const struct direct_rank *rank)
{
	return rank->full_until_ns && clock_now_ns() < rank->full_until_ns;
}

/* A copy, so that the send is complete without its receiver. @is_posted: who has asked for it. */
static enum offered offer_eager(struct work *work, const struct item *item, uint64_t number, bool is_posted, struct pair_offer *offer)
{
	const unsigned char *from = own_memory(work, item->segment, item->offset, item->bytes);
	struct eager_place *at;
	uint32_t slot;

	if (!from)
		return OFFER_IN_PLACE;
	if (!eager_find(work, &at, &slot))
		return rank_is_full(work->rank) || (is_posted && work->rank->pool_count) ? OFFER_IN_PLACE : room_need(work, NEED_POOL, item->peer);
	eager_fill(at, slot, item->peer, number, from, item->bytes, offer);
	return OFFERED;
}

/* P2: @item becomes offer @number, which nobody reads yet. */
static inline enum offered offer_write(struct work *work, const struct item *item, struct direct_peer *peer, uint64_t number)
{
	struct pair_offer *slot = pair_slot(peer->out, peer->rest_out, peer->wide_out, number);
	const uint64_t bytes = item->bytes;

	if (!slot)
		return OFFER_DECLINED;
	if (bytes <= HCCLD_INLINE_MAX) {
		const unsigned char *from = own_memory(work, item->segment, item->offset, bytes);

		if (!from)
			return OFFER_DECLINED;
		slot->where = OFFER_INLINE;
		copy_payload(slot->payload, from, bytes);
	} else {
		enum offered offered = OFFER_IN_PLACE;

		if (bytes <= HCCLD_EAGER_MAX) {
			const bool is_posted = atomic_load_explicit(&peer->out->posted, memory_order_relaxed) >= number;

			/*
			 * One copy is less than two, if both run. If they have to take turns on a processor, one that waits for the other to
			 * copy needs a turn of its own afterwards: a ring of ranks would go on by one step for each turn of all. What one
			 * that has gone has asked for is not complete.
			 */
			if (!is_posted || (work->context->copies_sends && !peer_is_gone(work, item->peer)))
				offered = offer_eager(work, item, number, is_posted, slot);
		}
		if (offered == OFFER_NO_ROOM || offered == OFFER_DECLINED)
			return offered;
		if (offered == OFFER_IN_PLACE) {
			slot->where = OFFER_SEGMENT;
			slot->segment = item->segment;
			slot->offset = item->offset;
		}
	}
	CRASH_POINT(117);
	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = item->data_type;
	return OFFERED;
}

/*
 * P8: as many items of a few bytes from @item, number *@index, on as go into one slot; *@index is behind the last then. How many they are; 0:
 * declined. @most: as many have room.
 */
static uint32_t offer_pack(struct work *work, struct item *item, uint32_t *index, struct direct_peer *peer, uint64_t number, uint64_t most)
{
	struct pair_offer *slot = pair_slot(peer->out, peer->rest_out, peer->wide_out, number);
	const uint64_t bytes = item->bytes;
	const uint8_t type = item->data_type;
	uint32_t count = 0;

	if (most > HCCLD_PACK_MAX)
		most = HCCLD_PACK_MAX;
	if (!slot)
		return 0;
	do {
		const unsigned char *from = own_memory(work, item->segment, item->offset, bytes);

		if (!from)
			break;
		copy_payload(slot->payload + count * bytes, from, bytes);
		atomic_store_explicit(&item->number, number + count++, memory_order_relaxed);
		*index = item_next(item, *index);
		if (*index == LANE_END)
			break;
		item = work_item(work, *index);
	} while (count < most && (count + 1) * bytes <= HCCLD_INLINE_MAX && item->bytes == bytes && item->data_type == type &&
		 !atomic_load_explicit(&item->number, memory_order_relaxed));
	slot->where = count > 1 ? OFFER_PACKED : OFFER_INLINE;
	slot->count = (uint8_t)count;
	CRASH_POINT(117);
	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = type;
	return count;
}

static inline bool has_room(const struct direct_peer *peer, uint64_t number)
{
	const struct pair_offer *slot = pair_slot(peer->out, peer->rest_out, peer->wide_out, number);
	const uint64_t tail = atomic_load_explicit(&peer->out->tail, memory_order_relaxed);

	return number <= peer->received + pair_room(peer->out, number) && slot && slot_is_over(slot, peer->received, tail);
}

/* Is there room for offer @number, now or by widening? OFFERED: there is. */
static enum offered send_room(struct work *work, const struct item *item, struct direct_peer *peer, uint64_t number)
{
	if (has_room(peer, number))
		return OFFERED;
	peer->received = atomic_load_explicit(&peer->out->received, memory_order_acquire);
	if (has_room(peer, number))
		return OFFERED;
	if (pair_slot(peer->out, peer->rest_out, peer->wide_out, number)) {
		if (item->bytes > HCCLD_EAGER_MAX || rank_is_full(work->rank) || atomic_load_explicit(&peer->out->wide_from, memory_order_relaxed))
			return OFFER_NO_ROOM;
		if (peer->wide_out) {
			pair_widen(peer->out, peer->wide_index, number);
			return OFFERED;
		}
	} else if (rank_is_full(work->rank)) {
		return OFFER_DECLINED;
	}
	/* also the one that the engine has widened it with */
	return room_need(work, NEED_WIDE, item->peer);
}

/* Offers a run of as many items as the ring takes. False: declined. */
static bool send_issue(struct work *work, struct direct_peer *peer, struct item *head)
{
	struct pair_ring *ring = peer->out;
	uint32_t index = atomic_load_explicit(&head->issue, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), last = tail;
	enum offered offered = OFFERED;

	/* numbers that an engine has given and not offered before it ended */
	if (atomic_load_explicit(&ring->sent, memory_order_relaxed) != tail)
		return false;
	while (index != LANE_END) {
		struct item *item = work_item(work, index);
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

		if (number > tail)
			return false;
		if (!number) {
			offered = send_room(work, item, peer, last + 1);
			if (offered != OFFERED)
				break;
			/* its reader has it: asked for some offers ahead */
			__builtin_prefetch(pair_slot(ring, peer->rest_out, peer->wide_out, last + 1 + OFFERS_AHEAD), 1);
			if (!KEEPS(OFFER_FIRST))
				atomic_store_explicit(&ring->tail, last + 1, memory_order_release);
			if (item->bytes <= PACKED_BYTES_MAX) {
				uint32_t count = offer_pack(work, item, &index, peer, last + 1,
							    peer->received + pair_room(ring, last + 1) - last);

				last += count;
				CRASH_POINT(119);
				offered = count ? OFFERED : OFFER_DECLINED;
				if (!count)
					break;
				continue;
			}
			offered = offer_write(work, item, peer, last + 1);
			if (offered != OFFERED)
				break;
			CRASH_POINT(118);
			atomic_store_explicit(&item->number, ++last, memory_order_relaxed);
			CRASH_POINT(119);
		}
		index = item_next(item, index);
	}
	atomic_store_explicit(&head->issue, index, memory_order_relaxed);
	if (last != tail) {
		CRASH_POINT(120);
		atomic_store_explicit(&ring->sent, last, memory_order_relaxed);
		CRASH_POINT(121);
		/* release: the slots are complete before anybody can see the number */
		atomic_store_explicit(&ring->tail, last, memory_order_release);
		CRASH_POINT(122);
		direct_touch(work->context, peer);
	}
	return offered != OFFER_DECLINED;
}

/* P4 */
static inline bool send_is_done(struct direct_peer *peer, const struct item *item, uint64_t tail)
{
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);
	const struct pair_offer *slot;

	if (!number)
		return false;
	if (number <= peer->received)
		return true;
	if (number <= tail && item->bytes <= HCCLD_INLINE_MAX)
		return true;
	peer->received = atomic_load_explicit(&peer->out->received, memory_order_acquire);
	if (number <= peer->received)
		return true;
	if (number > tail || item->bytes > HCCLD_EAGER_MAX)
		return false;
	slot = pair_slot(peer->out, peer->rest_out, peer->wide_out, number);
	return slot && slot->where == OFFER_EAGER;
}

enum direct_left lane_send_direct(struct work *work, struct item *head)
{
	struct direct_peer *peer = &work->rank->peers[head->peer];
	struct pair_ring *ring = peer->out;
	uint64_t tail;
	uint32_t done;

	if (!ring || atomic_load_explicit(&ring->failed, memory_order_acquire))
		return DIRECT_DECLINED;
	if (work->context->is_thorough && peer_is_gone(work, head->peer))
		return DIRECT_DECLINED;
	if (atomic_load_explicit(&head->issue, memory_order_relaxed) != LANE_END && !send_issue(work, peer, head))
		return DIRECT_DECLINED;
	tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	done = atomic_load_explicit(&head->done, memory_order_relaxed);
	while (done != LANE_END) {
		const struct item *item = work_item(work, done);

		if (!send_is_done(peer, item, tail))
			break;
		done = item_next(item, done);
	}
	CRASH_POINT(123);
	atomic_store_explicit(&head->done, done, memory_order_relaxed);
	return done == LANE_END ? DIRECT_DONE : DIRECT_WAITS;
}
