/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rule R9 of tests/model/README.md: a new executor finds what an old one has left, which may have been killed between any two stores.
 *
 * Clients go on meanwhile. What one of them has (CLIENT) is whole, and stays his: the old executor had left it properly. All else is taken
 * before it is looked at, so that the words of its pairs are nobody else's: those of an executor are on lines of its own side.
 */
#include "engine/executor.h"

/* P2, P3: what is neither offered nor received has a number only in an item; stream_recover() adds those. */
static void rank_recover(struct engine *engine, struct view_rank *rank)
{
	struct view_comm *comm = rank->comm;

	for (uint32_t peer = 0; peer < comm->size; peer++) {
		struct pair_ring *out = atomic_load_explicit(&view_pair_of(comm, rank->rank, peer)->ring, memory_order_acquire);
		struct pair_ring *in = atomic_load_explicit(&view_pair_of(comm, peer, rank->rank)->ring, memory_order_acquire);

		pending_recount(engine, comm, view_pair_of(comm, rank->rank, peer));
		if (out)
			atomic_store_explicit(&out->sent, atomic_load_explicit(&out->tail, memory_order_relaxed), memory_order_relaxed);
		if (in)
			atomic_store_explicit(&in->posted, atomic_load_explicit(&in->received, memory_order_relaxed),
					      memory_order_relaxed);
	}
}

/* The counters of pairs and barriers are at least the numbers that issued items carry; a notify is what a head has announced. */
static void stream_recover(struct engine *engine, struct view_context *context, struct stream_ring *ring)
{
	struct batch batch;
	uint32_t lowest = 0, steps = 0;

	if (batch_open(engine, context, ring, &batch) < 0)
		return;
	if (batch.task.kind == TASK_BARRIER && batch.rank) {
		struct comm_member *member = &batch.rank->comm->region->members[batch.rank->rank];
		uint64_t number = atomic_load_explicit(&batch.task.number, memory_order_relaxed);

		if (number > atomic_load_explicit(&member->barriers, memory_order_relaxed))
			atomic_store_explicit(&member->barriers, number, memory_order_release);
	}
	if (batch.task.kind == TASK_NOTIFY_RECORD || batch.task.kind == TASK_NOTIFY_WAIT)
		notify_recover(&batch);
	if (batch.task.kind == TASK_REDUCE)
		reduce_recover(&batch);
	if (batch.task.kind != TASK_BATCH)
		return;
	for (uint32_t index = batch.task.first_lane; index != LANE_END && index < batch.task.item_count && index >= lowest;) {
		struct item *head = batch_item(&batch, index);
		uint32_t at = index, peer = head->peer, rank, step;
		bool sends = head->kind == ITEM_SEND;
		struct pair_ring *pair;

		lowest = index + 1;
		index = read_once(head->next_lane);
		if (head->kind == ITEM_COPY || head->kind == ITEM_FILL)
			atomic_store_explicit(&head->issue, 0, memory_order_relaxed);	/* the copy that ran is gone */
		if (!batch.rank || (!sends && head->kind != ITEM_RECEIVE) || peer >= batch.rank->comm->size)
			continue;
		rank = batch.rank->rank;
		pair = atomic_load_explicit(&view_pair_of(batch.rank->comm, sends ? rank : peer, sends ? peer : rank)->ring,
					    memory_order_acquire);
		for (; pair && at < batch.task.item_count; at = step) {
			struct item *item = batch_item(&batch, at);
			_Atomic uint64_t *counter = sends ? &pair->sent : &pair->posted;
			uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

			if (!number)
				break;	/* issued in list order */
			if (steps++ > batch.task.item_count)
				return;	/* an item is in one lane: this is nonsense, and the first look at it will say so */
			if (number > atomic_load_explicit(counter, memory_order_relaxed))
				atomic_store_explicit(counter, number, memory_order_release);
			step = read_once(item->next);
			if (step <= at)
				break;
		}
	}
}

static bool is_drivers(enum context_state kind)
{
	return kind == CONTEXT_CLIENT || kind == CONTEXT_SLEEP || kind == CONTEXT_PATIENT;
}

/* False: a client has it. */
static bool recover_take(struct engine *engine, struct view_context *context, uint64_t *ret_state)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire);

	do {
		/* the last daemon let clients drive, whatever this one does */
		if (is_drivers(yard_kind(state)))
			engine->shared = true;
		if (yard_kind(state) == CONTEXT_CLIENT)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&context->words->state, &state, yard_next(state, CONTEXT_ENGINE),
							memory_order_acq_rel, memory_order_acquire));
	*ret_state = yard_next(state, CONTEXT_ENGINE);
	atomic_thread_fence(memory_order_seq_cst);
	return true;
}

static void context_recover(struct engine *engine, struct view_context *context)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);

	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION; i++) {
		struct view_rank *rank = &context->session->ranks[i];

		if (atomic_load_explicit(&rank->handle, memory_order_acquire) && rank->context == context)
			rank_recover(engine, rank);
	}
	for (uint32_t i = 0; i < limit; i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (ring)
			stream_recover(engine, context, ring);
	}
}

void engine_recover(struct engine *engine, struct view_context *context)
{
	uint64_t state;

	chunks_recover(engine, context->yard);
	if (recover_take(engine, context, &state)) {
		bool undone;

		context_recover(engine, context);
		undone = context_has_undone(context);
		if (undone)
			bit_set(context);
		state = yard_next(state, undone ? CONTEXT_LEFT : CONTEXT_IDLE);
		context->left_state = state;
		atomic_store_explicit(&context->words->state, state, memory_order_release);
		/* a task submitted while we looked: its submitter saw that it was ours */
		atomic_thread_fence(memory_order_seq_cst);
		if (!undone && context_has_undone(context)) {
			bit_set(context);
			/* lost: whoever has it looks */
			(void)atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT),
								      memory_order_acq_rel, memory_order_acquire);
		}
	}
	context_wake(context);
}
