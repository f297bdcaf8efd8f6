/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a communicator: extent 0 with header, members and directory, further extents with
 * pair rings. Control thread.
 */
#pragma once

#include <stdint.h>

#include "base/list.h"

struct comm;
struct comm_region;

struct extent {
	struct list link;
	uint64_t serial; /* names the descriptor in the store */
	int fd;
	void *base;
	uint64_t bytes;
	uint32_t first, count; /* pair rings; 0 for extent 0 */
	uint32_t record;
};

/*
 * Memory, store and record of one extent, charged to host memory. -ENOBUFS: host memory is
 * exhausted; -EUSERS: the tenant may not have more. @count 0: extent 0.
 */
int extent_new(struct comm *comm, uint32_t count, uint64_t bytes, struct extent **ret_extent);
/* Takes @fd. */
int extent_restore(struct comm *comm, uint32_t index, int fd);
/* Fills extent 0, @region, with the ranks that have joined. */
void comm_region_write(struct comm *comm, struct comm_region *region);
/* Out of store, records and account. */
void extent_remove(struct comm *comm, struct extent *extent);
/* Memory of this process only. */
struct extent *extent_free(struct extent *extent);

/* Makes the ring from @source to @destination unless it is there. -ENOBUFS, -EUSERS, -EDQUOT, ... */
int pairs_open(struct comm *comm, uint32_t source, uint32_t destination);
/* The extent with the ring of the lowest number from @from on that is from or to @rank; NULL: there is no such ring. */
struct extent *pairs_next_extent(const struct comm *comm, uint32_t rank, uint32_t from);
/* Bytes that the next ring takes for which there is no room. */
uint64_t pairs_next_bytes(const struct comm *comm);
/* Fills the view from the directory, after the extents have been restored. -EPROTO. */
int pairs_restore(struct comm *comm);
/* Bytes that @source has offered and nobody has received, from the rings; looks at as many as there are ranks. */
uint64_t pairs_pending(const struct comm *comm, uint32_t source);
