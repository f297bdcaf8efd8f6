/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies in slices. A transfer belongs to the executor alone: after a crash the next executor finds the item issued and not
 * received, and copies again from the start (plain copies may run twice; partial overlap is refused where items are made). Its context is HELD:
 * no client advances it. With some of them threads of clients help (chunk.c): such a transfer is in the queue while it has chunks for slices.
 */
#include <errno.h>
#include <string.h>

#include "engine/executor.h"
#include "engine/far.h"
#include "proto/clock.h"

#define TRANSFERS_FEW 16u
#define TRANSFERS_RESERVED_PART 4

static bool is_exhausted(const struct engine *engine)
{
	return engine->transfers_used == engine->transfers;
}

/* Of the pool, which is not exhausted. */
static struct transfer *transfer_take(struct engine *engine, struct view_context *context)
{
	struct transfer *transfer = engine->free;

	if (transfer)
		engine->free = transfer->next;
	else
		transfer = &engine->pool[engine->transfers_new++];
	engine->transfers_used++;
	memset(transfer, 0, sizeof(*transfer));
	transfer->share = share_of(engine, context);
	transfer->share->transfers++;
	transfer->context = context;
	context->transfers++;
	transfer->all_next = engine->all;
	if (engine->all)
		engine->all->all_previous = transfer;
	engine->all = transfer;
	return transfer;
}

struct transfer *transfer_new(struct engine *engine, struct batch *batch, struct item *item, uint64_t bytes)
{
	const struct view_share *share = share_of(engine, batch->context);
	struct transfer *transfer;

	/* the last of them are for tenants that have few */
	if (is_exhausted(engine) || (share->transfers >= TRANSFERS_FEW &&
			      engine->transfers - engine->transfers_used <= engine->transfers / TRANSFERS_RESERVED_PART)) {
		batch->context->starved = true;
		return NULL;
	}
	transfer = transfer_take(engine, batch->context);
	transfer->ring = batch->ring;
	transfer->item = item;
	transfer->bytes = bytes;
	return transfer;
}

struct transfer *transfer_remain(struct engine *engine, struct view_context *context)
{
	struct transfer *transfer = is_exhausted(engine) ? NULL : transfer_take(engine, context);

	if (transfer)
		transfer->cancelled = true;
	return transfer;
}

static void flow_drop_first(struct engine *engine, struct view_share *share, struct view_flow *flow)
{
	flow->first = flow->first->next;
	if (flow->first)
		return;
	flow->last = NULL;
	fair_remove(&share->current, flow);
	if (!share->current)
		fair_share_remove(&engine->current, share);
}

void transfer_queue(struct engine *engine, struct transfer *transfer)
{
	struct view_share *share = transfer->share;
	struct view_flow *flow = transfer->comm ? &transfer->comm->flow : &share->copies;

	transfer->flow = flow;
	transfer->next = NULL;
	transfer->queued = true;
	engine->backlog += transfer->bytes - transfer->taken;
	if (flow->last) {
		flow->last->next = transfer;
		flow->last = transfer;
		return;
	}
	flow->first = flow->last = transfer;
	flow->weight = transfer->comm ? transfer->comm->weight : VIEW_WEIGHT_NORMAL;
	if (!share->current)
		fair_share_add(&engine->current, share);
	fair_add(&share->current, flow);
}

static void transfer_unqueue(struct engine *engine, struct transfer *transfer)
{
	struct view_flow *flow = transfer->flow;
	struct transfer *previous = NULL;

	if (!transfer->queued)
		return;
	transfer->queued = false;
	engine->backlog -= transfer->bytes - transfer->taken;
	if (flow->first == transfer) {
		flow_drop_first(engine, transfer->share, flow);
		return;
	}
	for (previous = flow->first; previous->next != transfer; previous = previous->next)
		;
	previous->next = transfer->next;
	if (flow->last == transfer)
		flow->last = previous;
}

static void transfer_release(struct engine *engine, struct transfer *transfer)
{
	if (transfer->is_far)
		engine->host.far_forget(engine->host.data, transfer->comm->far->nodes[transfer->source], transfer->to, transfer->bytes);
	if (transfer->pair)
		transfer->pair->transfer = NULL;
	else if (transfer->item)
		atomic_store_explicit(&transfer->item->issue, 0, memory_order_relaxed);
	if (transfer->chunks)
		chunks_release(engine, transfer->chunks);
	if (transfer->all_previous)
		transfer->all_previous->all_next = transfer->all_next;
	else
		engine->all = transfer->all_next;
	if (transfer->all_next)
		transfer->all_next->all_previous = transfer->all_previous;
	transfer->share->transfers--;
	transfer->context->transfers--;
	/* no longer HELD for this one */
	context_dirty(engine, transfer->context);
	engine->transfers_used--;
	transfer->next = engine->free;
	engine->free = transfer;
}

void transfer_offer(struct engine *engine, struct transfer *transfer, uint64_t taken, bool is_offered)
{
	if (transfer->queued && (!is_offered || taken == transfer->bytes))
		transfer_unqueue(engine, transfer);
	if (transfer->queued)
		engine->backlog -= taken - transfer->taken;
	transfer->taken = taken;
	if (!transfer->queued && is_offered && taken < transfer->bytes)
		transfer_queue(engine, transfer);
}

bool transfer_is_held_up(const struct transfer *transfer)
{
	return transfer->chunks && chunks_are_held_up(transfer->chunks, clock_now_ns());
}

/* Nothing is under way any more of what was cancelled: also chunks that clients copy count as slices that are out. */
static bool transfer_is_over(struct engine *engine, struct transfer *transfer)
{
	return !transfer->out && (!transfer->chunks || chunks_are_over(engine, transfer));
}

bool transfer_cancel(struct engine *engine, struct transfer *transfer)
{
	transfer_unqueue(engine, transfer);
	transfer->cancelled = true;
	if (transfer->chunks)
		chunks_close(transfer->chunks);
	if (!transfer_is_over(engine, transfer))
		return false;
	transfer_release(engine, transfer);
	return true;
}

bool transfer_cancel_failed(struct engine *engine, const struct view_pair *pair, uint64_t failed)
{
	struct transfer *transfer = pair->transfer;

	if (!KEEPS(CHUNKS_FAILED))
		return true;
	return !transfer || (!transfer->cancelled && transfer->number < failed) || transfer_cancel(engine, transfer);
}

bool engine_slice_next(struct engine *engine, struct engine_slice *ret_slice)
{
	return engine_slice_next_of(engine, HCCLD_SLICE, ret_slice);
}

bool transfers_cancel_stream(struct engine *engine, const struct view_context *context, const struct stream_ring *ring)
{
	bool gone = true;

	for (struct transfer *t = engine->all, *next; t; t = next) {
		next = t->all_next;
		/* of what has remained nobody knows the stream */
		if (t->ring == ring || (!t->ring && t->context == context))
			gone &= transfer_cancel(engine, t);
	}
	return gone;
}

bool transfers_cancel_rank(struct engine *engine, const struct view_rank *rank)
{
	bool gone = true;

	for (struct transfer *t = engine->all, *next; t; t = next) {
		next = t->all_next;
		if (t->comm == rank->comm && (t->source == rank->rank || t->destination == rank->rank))
			gone &= transfer_cancel(engine, t);
	}
	return gone;
}

/* Of @transfer, which is the first of its flow. False: helpers have the rest of it. */
static bool transfer_slice(struct engine *engine, struct transfer *transfer, uint64_t most, struct engine_slice *ret_slice)
{
	const uint64_t non_temporal_min = engine->cache / HCCLD_NON_TEMPORAL_PART;
	uint64_t at = transfer->taken, bytes = transfer->bytes - at < most ? transfer->bytes - at : most;
	uint32_t chunk = 0;

	if (transfer->chunks && !chunks_next(transfer, most, &at, &bytes, &chunk))
		return false;
	*ret_slice = (struct engine_slice){
		.transfer = transfer,
		.destination = transfer->to + at,
		.source = transfer->from ? transfer->from + at : NULL,
		.bytes = bytes,
		.value = transfer->value,
		.chunk = chunk,
		/* what waits is more than stays in the cache until somebody reads it */
		.non_temporal = transfer->bytes >= non_temporal_min || engine->backlog >= non_temporal_min,
	};
	return true;
}

bool engine_slice_next_of(struct engine *engine, uint64_t most, struct engine_slice *ret_slice)
{
	struct view_share *share;

	while ((share = fair_share_next(&engine->current, most))) {
		struct transfer *transfer = fair_next(&share->current, most)->first;

		if (!transfer_slice(engine, transfer, most, ret_slice)) {
			transfer_unqueue(engine, transfer);
			continue;
		}
		transfer->taken += ret_slice->bytes;
		transfer->out++;
		engine->backlog -= ret_slice->bytes;
		if (transfer->taken >= transfer->bytes) {
			transfer->queued = false;
			flow_drop_first(engine, transfer->share, transfer->flow);
		}
		return true;
	}
	return false;
}

/* All bytes are there: commit, or fail the pair with the reason why not. */
static void transfer_finish(struct engine *engine, struct transfer *transfer)
{
	enum cause cause = transfer->lost ? CAUSE_MEMORY_FAULT : CAUSE_NONE;

	if (transfer->lost)
		engine_blame(engine, transfer->context->session, transfer->source_session, transfer->lost);
	if (!transfer->comm) {
		if (cause) {
			struct fault fault = { .cause = cause, .direction = transfer->from ? ITEM_COPY : ITEM_FILL,
					       .local_bytes = transfer->bytes };

			stream_fault(transfer->ring, &fault);
		}
		/* the cursor of a copy is its commit: it may run again until this is stored */
		CRASH_POINT(20);
		atomic_store_explicit(&transfer->item->done, LANE_END, memory_order_release);
		return;
	}
	if (!cause)
		cause = pair_commit(engine, transfer->comm, atomic_load_explicit(&transfer->pair->ring, memory_order_acquire),
				    transfer->source, transfer->destination, transfer->number, transfer->source_segment);
	if (cause) {
		struct fault fault = pair_fault(transfer->comm, cause, transfer->destination, transfer->source, ITEM_RECEIVE);

		fault.number = transfer->number;
		fault.local_bytes = fault.remote_bytes = transfer->bytes;
		pair_fail(engine, transfer->comm, transfer->source, transfer->destination, &fault);
	}
}

void engine_slice_done(struct engine *engine, const struct engine_slice *slice)
{
	struct transfer *transfer = slice->transfer;

	transfer->out--;
	transfer->copied += slice->bytes;
	if (slice->lost)
		transfer->lost = slice->lost;
	if (transfer->chunks) {
		chunks_done(transfer->chunks, slice->chunk, slice->bytes);
		/* no more is copied of what fails */
		if (slice->lost) {
			transfer_unqueue(engine, transfer);
			chunks_close(transfer->chunks);
		}
	}
	if (transfer->out || !transfer_is_over(engine, transfer))
		return;
	if (!transfer->chunks && !transfer->cancelled && transfer->copied < transfer->bytes)
		return;
	if (!transfer->cancelled)
		transfer_finish(engine, transfer);
	transfer_release(engine, transfer);
	engine_ring_dirty(engine);
}

void transfer_arrived(struct engine *engine, struct transfer *transfer)
{
	transfer_finish(engine, transfer);
	transfer_release(engine, transfer);
}

bool engine_collect_chunks(struct engine *engine)
{
	bool has_ended = false;

	for (struct chunks *at = engine->chunks_used, *next; at; at = next) {
		struct transfer *transfer = chunks_next_used(at, &next);

		/* also while slices are out: who helps, and who does not, shows here */
		if (!chunks_are_over(engine, transfer) || transfer->out)
			continue;
		if (!transfer->cancelled)
			transfer_finish(engine, transfer);
		transfer_release(engine, transfer);
		has_ended = true;
	}
	if (has_ended)
		engine_ring_dirty(engine);
	return has_ended;
}

uint64_t engine_backlog(const struct engine *engine)
{
	return engine->backlog;
}
