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
 *       and its slot is inline.
 *   P5  a failed pair stays failed: the record, then failed = k (release): items with numbers >= k end with that cause.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/ring.h"

enum offer_where {
	OFFER_INLINE = 1,
	OFFER_SEGMENT = 2,
};

struct pair_offer {
	uint64_t number;
	uint64_t bytes;
	uint8_t data_type;
	uint8_t where;			/* enum offer_where */
	uint8_t reserved[6];
	union {
		unsigned char payload[HCCLD_INLINE_MAX];
		struct {
			uint64_t segment;	/* id within the source's session */
			uint64_t offset;
		};
	};
};
static_assert(sizeof(struct pair_offer) == 64, "one line");

struct pair_ring {
	/* source's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t tail;	/* newest offer that can be read */
	_Atomic uint64_t sent;		/* newest number given to a send */
	_Atomic uint64_t revoked;	/* offers up to here are no longer valid */
	_Atomic uint64_t wants;
	/* destination's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t received;
	_Atomic uint64_t posted;	/* newest number given to a receive */
	/* transport's line (pairs between nodes) */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t landed;
	/* failure: written once */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t failed;	/* first number that failed; 0 = none */
	_Atomic uint32_t failing;	/* whoever raises it from 0 writes the record */
	uint32_t reserved;
	struct fault fault;		/* as seen by the destination: rank = destination, peer = source */
	_Alignas(HCCLD_CACHE_LINE) struct pair_offer slots[HCCLD_PAIR_SLOTS];
};
static_assert(sizeof(struct pair_ring) == 64 * (5 + HCCLD_PAIR_SLOTS), "no holes");
