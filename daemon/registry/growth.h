/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in which sends of a communicator complete without their receivers (proto/pair.h, P6 and P7): eager pools of ranks, and wide rings
 * of pairs. Each is an extent (pairs.h), and goes with the communicator. Control thread.
 */
#pragma once

#include <stdint.h>

struct comm;
struct extent;

/*
 * The pool @which of @rank: that which there is, or a new one. -ENOENT: a rank has no more than those below; -EINVAL: those below are not
 * there. -ENOBUFS, -EUSERS, -EDQUOT, ... as extent_new().
 */
int growth_pool(struct comm *comm, uint32_t rank, uint32_t which, struct extent **ret_extent);
/* The wide ring from @source to @destination in the same way. -EINVAL: there is no such pair. */
int growth_wide(struct comm *comm, uint32_t source, uint32_t destination, struct extent **ret_extent);
/* Bytes that these take, for texts. */
uint64_t growth_pool_bytes(uint32_t which);
uint64_t growth_wide_bytes(void);

/* From records, after the pairs. -EPROTO. */
int growths_restore(struct comm *comm);
/* What the view has of them. */
void growths_free(struct comm *comm);
