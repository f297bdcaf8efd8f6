/* SPDX-License-Identifier: Apache-2.0 */
/* What far.c, far_send.c and far_rank.c share; not for others. */
#pragma once

#include "engine/eager.h"
#include "engine/executor.h"
#include "engine/far.h"

static inline struct far_pair *far_pair_of(struct view_comm *comm, uint32_t source, uint32_t destination)
{
	struct far_pair *far = &comm->far->pairs[(uint64_t)source * comm->size + destination];

	far->comm = comm;
	far->source = source;
	far->destination = destination;
	return far;
}

static inline struct view_pair *pair_of(const struct far_pair *far)
{
	return view_pair_of(far->comm, far->source, far->destination);
}

static inline struct pair_ring *ring_of(const struct far_pair *far)
{
	return atomic_load_explicit(&pair_of(far)->ring, memory_order_acquire);
}

static inline bool is_here(const struct view_comm *comm, uint32_t rank)
{
	return !comm->far->nodes[rank];
}

static inline void ring_rank(struct engine *engine, struct view_comm *comm, uint32_t rank)
{
	context_dirty(engine, atomic_load_explicit(&comm->contexts[rank], memory_order_acquire));
}

/* far.c */
/* To the node of the end that is not here. False: it has no room now. */
bool far_frame_send(struct engine *engine, const struct far_pair *far, enum far_kind kind, uint64_t number, uint64_t attempt, const void *payload,
		    size_t size);
/* The other node hears of the pair's failure, once. False: it has no room. */
bool far_failure_send(struct engine *engine, struct far_pair *far);
/* As seen by the receiver, who reports. */
void far_pair_fail(struct engine *engine, struct far_pair *far, enum cause cause, uint64_t number, uint64_t bytes);

/* far_send.c: the source's node */
bool far_offers_send(struct engine *engine, struct far_pair *far);
int far_received_take(struct engine *engine, struct far_pair *far, uint64_t number);
int far_pull_take(struct engine *engine, struct far_pair *far, uint64_t number, uint64_t attempt);
/* Nothing more of what is pulled. */
void far_push_end(struct engine *engine, struct far_pair *far);

/* far_rank.c */
/* What the other nodes do not know of the rank. False: one has no room. */
bool far_rank_tell(struct engine *engine, struct view_comm *comm, uint32_t rank);
/* FAR_BARRIER, FAR_MEMBER, FAR_GONE */
int far_rank_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame);
