/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HcclCommSuspend and HcclCommResume: which operations may run while a rank of the communicator is suspended, and how pairs and barriers
 * are emptied, so that they are usable afterwards.
 *
 * A task belongs to the epoch of its rank in which it was submitted; in another epoch it fails. An operation with a suspended peer fails,
 * too, unless the own rank was resumed after the peer was suspended: both have been through the same trouble then, and it waits for
 * the peer to come back. So all ranks may be suspended and resumed in any order, each at its own time.
 */
#include "engine/lane.h"

#define IS_SUSPENDED(epoch) ((epoch) & 1)
#define LOOK_STEPS (1 << 20)	/* of one context */

/* Of the heads of a context, in one suspension. */
enum look {
	LOOK_NONE = 0,
	LOOK_WHOLE = 1,
	LOOK_CUT = 2,
};

enum gate member_gate(const struct comm_member *own, const struct comm_member *peer, uint32_t task_epoch)
{
	if (atomic_load_explicit(&own->epoch, memory_order_acquire) != task_epoch)
		return GATE_ENDED;
	if (!IS_SUSPENDED(atomic_load_explicit(&peer->epoch, memory_order_acquire)) ||
	    atomic_load_explicit(&peer->word, memory_order_acquire) != MEMBER_ALIVE)
		return GATE_OPEN;
	return atomic_load_explicit(&own->resumed_at, memory_order_relaxed) >=
			       atomic_load_explicit(&peer->suspended_at, memory_order_relaxed)
		       ? GATE_HELD
		       : GATE_ENDED;
}

/* A copy that is under way has to end first: engine_rank_suspend() sees to that. */
int lane_end_suspended(struct lane *lane)
{
	uint64_t received = atomic_load_explicit(&lane->ring->received, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&lane->ring->tail, memory_order_relaxed);
	uint32_t done = atomic_load_explicit(&lane->head->done, memory_order_relaxed);

	if (lane->pair->transfer)
		return 0;
	while (done != LANE_END) {
		struct item *item = lane_item(lane, done);
		uint64_t number;
		uint32_t next;

		if (!item)
			return -1;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		next = read_once(item->next);
		if (next <= done)
			return -1;
		/* P4: what was done stays done */
		if (!number || (received < number && !(lane->kind == ITEM_SEND && tail >= number && lane_is_kept(lane, item, number))))
			lane_item_fail(lane, item, pair_fault(lane->comm, CAUSE_SUSPENDED, lane->rank, lane->peer, lane->kind));
		done = next;
	}
	atomic_store_explicit(&lane->head->issue, LANE_END, memory_order_relaxed);
	atomic_store_explicit(&lane->head->done, LANE_END, memory_order_relaxed);
	return 1;
}

/* The member of the barrier because of which it ends; LANE_END: none. */
uint32_t barrier_suspended(const struct view_comm *comm, uint32_t rank, uint32_t task_epoch, uint64_t number)
{
	const struct comm_region *region = comm->region;
	uint32_t found = LANE_END;

	/* the common case costs one look */
	if (!atomic_load_explicit(&region->suspensions, memory_order_acquire))
		return task_epoch ? rank : LANE_END;
	if (atomic_load_explicit(&region->members[rank].epoch, memory_order_acquire) != task_epoch)
		return rank;
	for (uint32_t i = 0; i < comm->size; i++) {
		/* one that is gone and will never enter is the better reason, and found by who looks for those that are missing */
		if (atomic_load_explicit(&region->members[i].word, memory_order_acquire) != MEMBER_ALIVE &&
		    atomic_load_explicit(&region->members[i].barriers, memory_order_relaxed) < number)
			return LANE_END;
		if (member_gate(&region->members[rank], &region->members[i], task_epoch) == GATE_ENDED)
			found = i;
	}
	return found;
}

/* Nothing is in flight: all counters meet where the farthest was, and what had failed is over. */
static void pair_empty(struct view_pair *pair)
{
	struct pair_ring *ring = atomic_load_explicit(&pair->ring, memory_order_acquire);
	uint64_t number;

	if (!ring)
		return;
	number = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	if (number < atomic_load_explicit(&ring->sent, memory_order_relaxed))
		number = atomic_load_explicit(&ring->sent, memory_order_relaxed);
	if (number < atomic_load_explicit(&ring->posted, memory_order_relaxed))
		number = atomic_load_explicit(&ring->posted, memory_order_relaxed);
	/* P1 holds at each step */
	atomic_store_explicit(&ring->sent, number, memory_order_relaxed);
	atomic_store_explicit(&ring->posted, number, memory_order_relaxed);
	atomic_store_explicit(view_pair_failed(pair, ring), 0, memory_order_relaxed);
	atomic_store_explicit(&ring->tail, number, memory_order_release);
	atomic_store_explicit(&ring->received, number, memory_order_release);
}

static void barriers_empty(struct view_comm *comm)
{
	struct comm_region *region = comm->region;
	uint64_t number = atomic_load_explicit(&region->barriers_done, memory_order_relaxed);

	for (uint32_t i = 0; i < comm->size; i++) {
		uint64_t entered = atomic_load_explicit(&region->members[i].barriers, memory_order_relaxed);

		number = entered > number ? entered : number;
	}
	for (uint32_t i = 0; i < comm->size; i++)
		atomic_store_explicit(&region->members[i].barriers, number, memory_order_relaxed);
	atomic_store_explicit(&region->barriers_done, number, memory_order_release);
}

/*
 * The heads of some context were not all looked at, and one may have a number in this pair: nobody could tell later whether it was done
 * before. Better an error than a success: the pair fails, and works again when another suspension finds it empty.
 */
static void pair_void(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination)
{
	struct pair_ring *ring = atomic_load_explicit(&view_pair_of(comm, source, destination)->ring, memory_order_acquire);
	struct fault fault = pair_fault(comm, CAUSE_SUSPENDED, destination, source, ITEM_RECEIVE);

	if (!ring)
		return;
	fault.number = atomic_load_explicit(&ring->received, memory_order_relaxed) + 1;
	pair_fail(engine, comm, source, destination, &fault);
}

/* LOOK_NONE: a client has it, which may not know of the suspension yet. */
static enum look context_look_at_heads(struct engine *engine, struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire);
	int64_t steps = 0;

	if (context->broken || (yard_kind(state) == CONTEXT_IDLE && !context_has_undone(context)))
		return LOOK_WHOLE;
	/* from whatever state somebody has written */
	if (!context_take(engine, context, &state))
		return LOOK_NONE;
	context_give(engine, context, state);
	if (!engine_look_for(engine, context, LOOK_STEPS, &steps))
		return LOOK_NONE;
	return steps < LOOK_STEPS ? LOOK_WHOLE : LOOK_CUT;
}

static void comm_forget_looks(struct view_comm *comm)
{
	for (uint32_t i = 0; i < comm->size; i++) {
		struct view_context *context = atomic_load_explicit(&comm->contexts[i], memory_order_acquire);

		if (context)
			context->looked_at = LOOK_NONE;
	}
}

/*
 * Every head that has to do with @comm finds out: only heads are issued, and heads that have failed end at a look. A look needs the context:
 * those that clients have just now are left out (LOOK_NONE). *@ret_whole: all looks were whole; false: some were left out.
 */
static bool comm_look_at_heads(struct engine *engine, struct view_comm *comm, bool *ret_whole)
{
	bool all = true;

	*ret_whole = true;
	for (uint32_t i = 0; i < comm->size; i++) {
		struct view_context *context = atomic_load_explicit(&comm->contexts[i], memory_order_acquire);

		if (!context)
			continue;
		/* many ranks may share one */
		if (context->looked_at == LOOK_NONE)
			context->looked_at = (uint8_t)context_look_at_heads(engine, context);
		/* a thread that is no more gives nothing back */
		all &= context->looked_at != LOOK_NONE ||
		       atomic_load_explicit(&comm->region->members[i].word, memory_order_acquire) == MEMBER_DEAD;
		*ret_whole &= context->looked_at == LOOK_WHOLE;
	}
	return all;
}

static bool rank_is_whole(struct view_comm *comm, uint32_t rank)
{
	const struct view_context *context = atomic_load_explicit(&comm->contexts[rank], memory_order_acquire);

	return !context || context->looked_at == LOOK_WHOLE;
}

bool engine_rank_suspend(struct engine *engine, struct view_rank *rank)
{
	struct view_comm *comm = rank->comm;
	bool is_whole;

	if (!transfers_cancel_rank(engine, rank))
		return false;
	/* not one that is being called again */
	if (engine->wait->what != rank) {
		comm_forget_looks(comm);
		engine_ring_hard(engine, comm);
	}
	/*
	 * Pairs of living peers are emptied: nobody may be in the middle of one. `suspensions` and the epochs were stored before, and are looked
	 * at by every client that takes a context, behind its fence: it leaves this communicator alone. So one look that was ours is enough.
	 */
	if (!comm_look_at_heads(engine, comm, &is_whole) && engine_may_wait(engine, rank)) {
		engine_ring_dirty(engine);
		return false;
	}
	engine_waited(engine);
	for (uint32_t peer = 0; peer < comm->size; peer++) {
		if (!rank_is_whole(comm, rank->rank) || !rank_is_whole(comm, peer)) {
			pair_void(engine, comm, rank->rank, peer);
			pair_void(engine, comm, peer, rank->rank);
			continue;
		}
		pair_empty(view_pair_of(comm, rank->rank, peer));
		pair_empty(view_pair_of(comm, peer, rank->rank));
	}
	if (is_whole)
		barriers_empty(comm);
	engine_ring_dirty(engine);
	return true;
}

void engine_rank_resume(struct engine *engine, struct view_rank *rank)
{
	struct comm_member *member = &rank->comm->region->members[rank->rank];

	atomic_store_explicit(&member->async, 0, memory_order_release);
	engine_ring_hard(engine, rank->comm);
}
