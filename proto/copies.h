/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies that are under way and shared: behind the contexts of a yard. The daemon's engine opens a record for a receive, and ends it; who
 * copies which chunk of it is in a word per chunk: the engine, a thread of the receiver's process, or one of the sender's, while they wait.
 * tests/model/README.md, "Chunk claims", is the contract; C1 to C8 in comments are its rules.
 *
 * Every process of the tenant can write here. The engine takes nothing from here but claims, and judges these; who helps judges fields against
 * what it has mapped. So a liar spoils data of its own tenant.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "proto/limits.h"

enum copy_claim {
	CLAIM_NONE = 0,		/* as memory is at first */
	CLAIM_FREE = 1,
	CLAIM_DONE = 2,
	CLAIM_CLOSED = 3,	/* will not be copied: the receive fails */
	/* owners: alone to write the chunk */
	CLAIM_RECEIVER = 4,
	CLAIM_SENDER = 5,
	CLAIM_ENGINE = 6,
};

/* A claim: kind in the low 8 bits, generation of the record above. */
static inline uint64_t copy_claim_word(uint64_t generation, enum copy_claim claim)
{
	return generation << 8 | (uint64_t)claim;
}

static inline enum copy_claim copy_claim_kind(uint64_t word)
{
	return (enum copy_claim)(word & 0xff);
}

static inline uint64_t copy_claim_generation(uint64_t word)
{
	return word >> 8;
}

/* Fields are stored before claims are FREE (release), and change only when none is any more: who has claimed a chunk has read the right ones. */
struct copy_record {
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t generation;	/* grows with each use; never 0 */
	_Atomic uint64_t comm, number;				/* of the communicator, of the receive in its pair */
	_Atomic uint32_t source, destination;			/* ranks */
	_Atomic uint32_t source_context, destination_context;	/* in the yard */
	_Atomic uint64_t bytes, chunk_bytes;
	_Atomic uint32_t past_cache;				/* 1: too large for caches */
	/* ids within the sessions of their owners */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t source_segment;
	_Atomic uint64_t source_offset, destination_segment, destination_offset;
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t claims[HCCLD_COPY_CHUNKS];
};

struct copy_table {
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t active;	/* a bit for each record that is open */
	struct copy_record records[HCCLD_COPIES];
};
static_assert(HCCLD_COPIES <= 64, "one word");
static_assert(sizeof(struct copy_table) == 64 + HCCLD_COPIES * (128 + HCCLD_COPY_CHUNKS * 8), "no holes");

/* From @chunk on what is in it; 0: there is no such chunk. Sizes may be lies. */
static inline uint64_t copy_chunk_size(uint64_t bytes, uint64_t chunk_bytes, uint32_t chunk)
{
	uint64_t at = chunk_bytes * chunk;

	if (!chunk_bytes || chunk >= HCCLD_COPY_CHUNKS || chunk_bytes > UINT64_MAX / HCCLD_COPY_CHUNKS || at >= bytes)
		return 0;
	return bytes - at < chunk_bytes ? bytes - at : chunk_bytes;
}
