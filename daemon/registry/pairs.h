/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a communicator: extent 0 with header, members and directory, further extents with
 * pair rings, and what is in place of pair rings (growth.h). Control thread.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "registry/record.h"

struct comm;
struct comm_region;

/* Numbers are in records. */
enum extent_kind {
	EXTENT_REGION = 0, /* extent 0 */
	EXTENT_PAIRS = 1,
	EXTENT_POOL = 2,
	EXTENT_WIDE = 3,
	EXTENT_PAIRS_FIRST = 4, /* struct pair_ring_first, of a daemon of release 0.3 or before */
	EXTENT_KINDS,
};

struct extent_use {
	enum extent_kind kind;
	uint32_t source, peer; /* of a pool and a wide ring; peer: of a pool, which of its rank */
	uint32_t slots;	       /* of a pool, a wide ring and each pair ring */
};

struct extent {
	struct list link;
	uint64_t serial; /* names the descriptor in the store */
	int fd;
	void *base;
	uint64_t bytes;
	uint32_t first, count; /* pair rings, or as many as would be in its place; 0 for extent 0 */
	uint32_t record;       /* RECORD_EXTENT of extent 0 and of EXTENT_PAIRS_FIRST, else RECORD_GROWTH */
	struct extent_use use;
	uint64_t *given; /* of a pool: bits of the ranks that have got it from this process; NULL: none */
};

/*
 * Memory, store and record of one extent, charged to host memory. -ENOBUFS: host memory is
 * exhausted; -EUSERS: the tenant may not have more.
 */
int extent_new(struct comm *comm, const struct extent_use *use, uint64_t bytes, struct extent **ret_extent);
/* The extents of one communicator, from all records. A missing descriptor: -EPROTO. */
int extents_restore(struct comm *comm);
/* Fills extent 0, @region, with the ranks that have joined. */
void comm_region_write(struct comm *comm, struct comm_region *region);
/* Out of store, records and account. */
void extent_remove(struct comm *comm, struct extent *extent);
/* Memory of this process only. */
struct extent *extent_free(struct extent *extent);

/* Makes the ring from @source to @destination unless it is there. -ENOBUFS, -EUSERS, -EDQUOT, ... */
int pairs_open(struct comm *comm, uint32_t source, uint32_t destination);
/*
 * The lowest extent from number @from on that has, or may get, something of @rank: rings from or to it, its pools, and those of ranks that it
 * has a ring from. @given: the client has what is below that number, but for pools of ranks that have become its peers since. NULL: no more.
 */
struct extent *pairs_next_extent(const struct comm *comm, uint32_t rank, uint32_t from, uint32_t given);
/* @rank gets it. -ENOMEM. */
int extent_give(struct extent *extent, const struct comm *comm, uint32_t rank);
/* Bytes that the next ring takes for which there is no room. */
uint64_t pairs_next_bytes(const struct comm *comm);
/* Fills the view from the directory, after the extents have been restored. -EPROTO. */
int pairs_restore(struct comm *comm);
/* Bytes that @source has offered and nobody has received, from the rings; looks at as many as there are ranks. */
uint64_t pairs_pending(const struct comm *comm, uint32_t source);
