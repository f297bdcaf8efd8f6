/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair ring carries offers from one source rank to one destination rank; the unit of FIFO matching: send number k meets receive number
 * k. One producer (the source's executor), one consumer (the destination's), one line per writer.
 *
 * Invariants:
 *   P1  received <= tail <= sent; posted >= received; tail - received <= HCCLD_PAIR_SLOTS; all only grow.
 *   P2  source stores, in this order: item.number = tail + 1, ... (a run of items of one lane), payloads and slots, sent, tail (release).
 *       Numbers assigned and not offered all belong to one lane, in list order, so sent can be rebuilt as max(tail, numbers of the
 *       head tasks' items); nobody else assigns while sent > tail.
 *   P3  destination stores item.number = k, then posted = k; posted is rebuilt as max(received, numbers of the head tasks' items).
 *   P4  `received` = k (release) is the only commit of the receives up to k: their copies are done, then a fence, then abort word,
 *       source member, segment and `revoked` were found clear. Receive k is done iff received >= k. Send k is done iff received >= k, or tail >= k
 *       and its slot is inline or eager.
 *   P5  a failed pair stays failed: the record, then failed = k (release): items with numbers >= k end with that cause.
 *   P6  `wide` and `wide_from` are written once, in this order, while `wide_from` > tail: offers from that number on are in the wide ring,
 *       and as many as it has slots may be in flight then. Who sees tail >= wide_from sees both.
 *   P7  a slot of an eager pool is free iff its number is 0, or its pair has received that number, or failed at or before it, or its destination is
 *       gone. Its owner stores head.number = 0, peer, payload, number
 *       (release), then the offer, then tail. A receiver reads the payload, then finds abort word, `failed` and `revoked` clear, then commits.
 *   P8  offers in one slot are in that of the first; those of the others keep what they had. A slot is written again only when the last offer
 *       in it is received.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/ring.h"

enum offer_where {
	OFFER_INLINE = 1,
	OFFER_SEGMENT = 2,
	OFFER_EAGER = 3,		/* feature direct: a copy in a pool of the communicator, which outlives its sender */
	OFFER_FAR = 5,			/* at its source's node: the executor pulls it (engine/far.h) */
	OFFER_PACKED = 4,		/* feature direct: `count` payloads of `bytes` each, one behind the other, of offers `number`, + 1, ... (P8) */
};

struct pair_offer {
	uint64_t number;
	uint64_t bytes;
	uint8_t data_type;
	uint8_t where;			/* enum offer_where */
	uint8_t count;			/* of OFFER_PACKED */
	uint8_t reserved[5];
	union {
		unsigned char payload[HCCLD_INLINE_MAX];
		struct {
			uint64_t segment;	/* id within the source's session */
			uint64_t offset;
		};
		uint64_t place;		/* of OFFER_EAGER: bytes from the first place of the communicator on, as if all extents were one */
	};
};
static_assert(sizeof(struct pair_offer) == 64, "one line");

struct pair_ring {
	/* source's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t tail;	/* newest offer that can be read */
	_Atomic uint64_t sent;		/* newest number given to a send */
	_Atomic uint64_t revoked;	/* offers up to here are no longer valid */
	_Atomic uint64_t wants;
	_Atomic uint64_t wide_from;	/* first number whose offer is in the wide ring; 0: none */
	_Atomic uint32_t wide;		/* 1 + number of the place where the wide ring begins */
	uint32_t reserved_source;
	/* destination's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t received;
	_Atomic uint64_t posted;	/* newest number given to a receive */
	/*
	 * Quiet: first number that failed; 0 = none. Written by the daemon's engine only. Both ends look at it in each pass, and each of the lines
	 * above is written by one of them all the time, so that the other would wait for it.
	 */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t failed;
	_Alignas(HCCLD_CACHE_LINE) struct pair_offer slots[HCCLD_PAIR_SLOTS_NEAR];
};
static_assert(sizeof(struct pair_ring) == 64 * (3 + HCCLD_PAIR_SLOTS_NEAR), "no holes");

/*
 * The other slots of a pair ring. Most pairs of a large communicator never send much: what they use is close together, and the pages of the rest
 * are never touched.
 */
struct pair_rest {
	struct pair_offer slots[HCCLD_PAIR_SLOTS - HCCLD_PAIR_SLOTS_NEAR];
};

#define PAIR_PLACE (sizeof(struct pair_ring) + sizeof(struct pair_rest)) /* bytes that a pair ring takes in an extent, and the unit of its places */

/*
 * An extent of @count places has as many rings as this says, behind them the rests, and behind these as many struct fault: the records of
 * their failures as seen by the destination (rank = destination, peer = source), which nobody but the daemon looks at. They are not in the
 * rings, which every process maps.
 */
static inline uint32_t pair_extent_rings(uint32_t count)
{
	const uint32_t records = PAIR_PLACE / sizeof(struct fault);

	return count - (count + records) / (records + 1);
}

static inline struct pair_rest *pair_extent_rest(void *extent, uint32_t count, uint32_t index)
{
	return (struct pair_rest *)((struct pair_ring *)extent + pair_extent_rings(count)) + index;
}

static inline struct fault *pair_extent_fault(void *extent, uint32_t count, uint32_t index)
{
	return (struct fault *)pair_extent_rest(extent, count, pair_extent_rings(count)) + index;
}

/* The slot of offer @number, as long as it is not in a wide ring. */
static inline struct pair_offer *pair_ring_slot(struct pair_ring *ring, struct pair_rest *rest, uint64_t number)
{
	uint64_t at = (number - 1) % HCCLD_PAIR_SLOTS;

	return at < HCCLD_PAIR_SLOTS_NEAR ? &ring->slots[at] : &rest->slots[at - HCCLD_PAIR_SLOTS_NEAR];
}

/*
 * The same in communicators that a daemon of release 0.3 or before has made, in its extents. The daemon alone maps them; the first two lines are
 * as above as far as they go.
 */
struct pair_ring_first {
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t tail;
	_Atomic uint64_t sent;
	_Atomic uint64_t revoked;
	_Atomic uint64_t wants;
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t received;
	_Atomic uint64_t posted;
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t landed;
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t failed;
	_Atomic uint32_t failing;
	uint32_t reserved;
	struct fault fault;
	_Alignas(HCCLD_CACHE_LINE) struct pair_offer slots[HCCLD_PAIR_SLOTS_FIRST];
};
static_assert(sizeof(struct pair_ring_first) == 64 * (5 + HCCLD_PAIR_SLOTS_FIRST), "no holes");
static_assert(offsetof(struct pair_ring_first, posted) == offsetof(struct pair_ring, posted), "so are these");

/*
 * What a pair is given when its receiver lags far behind. It lies in an extent of its own, and has the numbers of as many places as it takes,
 * so that one number names each place in the extents of a communicator.
 */
struct pair_wide {
	struct pair_offer slots[HCCLD_PAIR_WIDE_SLOTS];
};

/* Of one rank, for what it sends; in an extent of its own, as above. A rank may have several. */
#define EAGER_MAGIC 0x45414752u		/* "EAGR" */

struct eager_head {
	_Atomic uint64_t number;	/* of the pair; 0: free */
	_Atomic uint32_t peer;		/* destination */
	uint32_t reserved;
};

struct eager_pool {
	uint32_t magic;
	uint32_t rank;			/* source */
	uint32_t slot_count;
	uint32_t reserved;
	_Alignas(HCCLD_CACHE_LINE) struct eager_head heads[];	/* [slot_count], then the payloads, each HCCLD_EAGER_MAX bytes */
};

static inline uint64_t eager_payload_offset(uint32_t slot_count, uint32_t slot)
{
	uint64_t heads = sizeof(struct eager_pool) + slot_count * (uint64_t)sizeof(struct eager_head);

	return (heads + HCCLD_CACHE_LINE - 1) / HCCLD_CACHE_LINE * HCCLD_CACHE_LINE + slot * (uint64_t)HCCLD_EAGER_MAX;
}

static inline uint64_t eager_pool_size(uint32_t slot_count)
{
	return eager_payload_offset(slot_count, slot_count);
}
