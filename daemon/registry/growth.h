/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room in which sends of a communicator complete without their receivers (proto/pair.h, P6 and P7): eager pools of ranks, and wide rings
 * of pairs. Each is an extent (pairs.h), and goes with the communicator, or when its rank is gone and all that it had offered is received.
 * Control thread.
 */
#pragma once

#include <stdbool.h>
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
/*
 * What the engine misses (no_room() of struct scheduler_options): a pool of @source more than @pools, or with another rank for @destination the wide
 * ring to that. The answer is in the view: made, or refused for the reason that is returned. @is_coming: memory may be free soon; -EAGAIN: for want
 * of it there is no answer, and the engine asks again at its next beat.
 */
int growth_answer(struct comm *comm, uint32_t source, uint32_t destination, uint32_t pools, bool is_coming);
/* Bytes that these take, for texts. */
uint64_t growth_pool_bytes(uint32_t which);
uint64_t growth_wide_bytes(void);

/* Publishes those among the extents that have been restored, after the pairs. -EPROTO. */
int growths_restore(struct comm *comm);
/* What the view has of them. */
void growths_free(struct comm *comm);

/* A rank is gone, and may have left some of it: it is looked after (comm->lingers). */
void growths_linger(struct comm *comm);
/*
 * Takes that of gone ranks which nobody will read any more out of the view (comm->is_retracted). Looks at some ranks, from @from on; says with
 * which to go on, or the size of the communicator. growths_reclaim() when the engine has been through a pass since.
 */
uint32_t growths_retract(struct comm *comm, uint32_t from);
void growths_reclaim(struct comm *comm);
