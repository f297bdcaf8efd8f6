/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots of pair rings and of eager pools, as both executors see them (proto/pair.h, P6 and P7; tests/model/README.md has the model). For who
 * owns the source's context.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "engine/point.h"
#include "proto/pair.h"

/* One pool, as it is mapped here. What a client can write of it is read once and judged. */
struct eager_place {
	struct eager_pool *pool;
	uint64_t place;			/* of the pool in the communicator's extents */
	uint32_t slot_count;
	uint32_t cursor;		/* where the next search begins */
};

/* How many offers may be in flight, the newest being @number. */
static inline uint64_t pair_room(const struct pair_ring *ring, uint64_t number)
{
	uint64_t wide_from = atomic_load_explicit(&ring->wide_from, memory_order_relaxed);

	return wide_from && number >= wide_from ? HCCLD_PAIR_WIDE_SLOTS : HCCLD_PAIR_SLOTS;
}

/* P8: may it be written? What is above the tail is what an executor that ended has not offered. */
static inline bool slot_is_over(const struct pair_offer *slot, uint64_t received, uint64_t tail)
{
	return slot->number + (slot->where == OFFER_PACKED ? slot->count - 1u : 0) <= received || slot->number > tail;
}

/* The slot of offer @number. @wide may be NULL: none is mapped; NULL then, if it is there. */
static inline struct pair_offer *pair_slot(struct pair_ring *ring, struct pair_rest *rest, struct pair_wide *wide, uint64_t number)
{
	uint64_t wide_from = atomic_load_explicit(&ring->wide_from, memory_order_relaxed);

	if (__builtin_expect(!wide_from || number < wide_from, 1))
		return pair_ring_slot(ring, rest, number);
	return wide ? &wide->slots[(number - 1) % HCCLD_PAIR_WIDE_SLOTS] : NULL;
}

/*
 * P8: a copy of offer @number + @k, which @slot has as one of several, as if it had a slot of its own: inline. False: it has not. Somebody else can
 * write the slot: the copy is to be judged.
 */
static inline bool offer_unpack(const struct pair_offer *slot, uint64_t number, uint64_t k, struct pair_offer *ret_offer)
{
	memcpy(ret_offer, slot, sizeof(*ret_offer));
	if (ret_offer->number != number || ret_offer->where != OFFER_PACKED || ret_offer->count <= k ||
	    ret_offer->bytes > HCCLD_INLINE_MAX / (k + 1))
		return false;
	memmove(ret_offer->payload, ret_offer->payload + k * ret_offer->bytes, ret_offer->bytes);
	ret_offer->number = number + k;
	ret_offer->where = OFFER_INLINE;
	return true;
}

/* P7, of a slot that has offer @number. @ring: of the pair that the head names; NULL: not known here. */
static inline bool eager_is_free(uint64_t number, const struct pair_ring *ring, bool peer_is_gone)
{
	uint64_t failed;

	if (!ring)
		return false;
	failed = atomic_load_explicit(&ring->failed, memory_order_acquire);
	/* acquire: the receiver has read the payload before */
	return atomic_load_explicit(&ring->received, memory_order_acquire) >= number || (failed && failed <= number) || peer_is_gone;
}

static inline unsigned char *eager_payload(const struct eager_place *at, uint32_t slot)
{
	return (unsigned char *)at->pool + eager_payload_offset(at->slot_count, slot);
}

/* Offer @number to @peer is a copy of @bytes from @from in @slot, which is free. */
static inline void eager_fill(const struct eager_place *at, uint32_t slot, uint32_t peer, uint64_t number, const void *from, uint64_t bytes,
			      struct pair_offer *offer)
{
	struct eager_head *head = &at->pool->heads[slot];

	/* nobody takes it for that of another pair meanwhile */
	atomic_store_explicit(&head->number, 0, memory_order_release);
	CRASH_POINT(133);
	atomic_store_explicit(&head->peer, peer, memory_order_release);
	memcpy(eager_payload(at, slot), from, bytes);
	CRASH_POINT(134);
	atomic_store_explicit(&head->number, number, memory_order_release);
	offer->where = OFFER_EAGER;
	offer->place = at->place + eager_payload_offset(at->slot_count, slot);
}

/*
 * A free slot of @at, from where the last search ended on. @is_free: P7 of offer @number to @peer, which can be anything, as far as @who knows.
 * False: there is none.
 */
static inline bool eager_search(struct eager_place *at, bool (*is_free)(const void *who, uint32_t peer, uint64_t number), const void *who,
				uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < at->slot_count; i++) {
		uint32_t slot = (at->cursor + i) % at->slot_count;
		uint64_t number = atomic_load_explicit(&at->pool->heads[slot].number, memory_order_relaxed);

		if (number && !is_free(who, atomic_load_explicit(&at->pool->heads[slot].peer, memory_order_relaxed), number))
			continue;
		at->cursor = slot + 1;
		*ret_slot = slot;
		return true;
	}
	return false;
}

/* P6: offers from @number on are in the wide ring that begins in place @index. */
static inline void pair_widen(struct pair_ring *ring, uint32_t index, uint64_t number)
{
	atomic_store_explicit(&ring->wide, index + 1, memory_order_release);
	CRASH_POINT(46);
	atomic_store_explicit(&ring->wide_from, number, memory_order_release);
}
