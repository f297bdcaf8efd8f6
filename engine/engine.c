/* SPDX-License-Identifier: Apache-2.0 */
/* The engine object, and taking views back. Executor's thread only. */
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/copy.h"
#include "engine/executor.h"
#include "proto/cleanup.h"

int engine_new(const struct engine_host *host, uint32_t transfers, struct engine **ret_engine)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return -ENOMEM;
	engine->host = *host;
	engine->wait = &engine->own_wait;
	engine->cache = copy_cache();
	engine->pool = calloc(transfers, sizeof(*engine->pool));
	if (!engine->pool) {
		free(engine);
		return -ENOMEM;
	}
	engine->transfers = transfers;
	*ret_engine = engine;
	return 0;
}

void engine_set_direct(struct engine *engine, bool is_direct)
{
	engine->direct = is_direct;
	engine->shared |= is_direct;
}

void engine_share(struct engine *engine, struct view_context *context)
{
	uint64_t state;

	/* it has been left as if nobody else could take it */
	if (context->transfers && context_take(engine, context, &state))
		context_give(engine, context, state);
}

void engine_recount(struct engine *engine, struct view_context *context)
{
	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION; i++) {
		struct view_rank *rank = &context->session->ranks[i];

		if (!atomic_load_explicit(&rank->handle, memory_order_acquire) || rank->context != context)
			continue;
		for (uint32_t peer = 0; peer < rank->comm->size; peer++)
			pending_recount(engine, rank->comm, view_pair_of(rank->comm, rank->rank, peer));
	}
	engine_ring_dirty(engine);
}

void engine_tick(struct engine *engine)
{
	engine->tick++;
}

bool engine_met_patient(struct engine *engine)
{
	bool met = engine->met_patient;

	engine->met_patient = false;
	return met;
}

bool engine_polls(const struct engine *engine)
{
	return engine->pollers != NULL;
}

struct engine *engine_free(struct engine *engine)
{
	if (!engine)
		return NULL;
	chunks_free_all(engine);
	free(engine->pool);
	free(engine);
	return NULL;
}

static bool session_owns(const struct view_session *session, const void *address)
{
	for (uint32_t i = 0; i < HCCLD_SEGMENTS_PER_SESSION; i++) {
		const struct view_segment *segment = &session->segments[i];
		uintptr_t base = (uintptr_t)segment->base;

		if (atomic_load_explicit(&segment->id, memory_order_acquire) && !segment->is_import && (uintptr_t)address >= base &&
		    (uintptr_t)address - base < segment->size)
			return true;
	}
	return false;
}

void engine_blame(struct engine *engine, struct view_session *a, struct view_session *b, const void *address)
{
	if (session_owns(a, address))
		engine->host.liar(engine->host.data, a, "memory of a segment was taken away, or the node had none for it");
	else if (b && session_owns(b, address))
		engine->host.liar(engine->host.data, b, "memory of a segment was taken away, or the node had none for it");
}

static bool item_is_issued(const struct item *item)
{
	return atomic_load_explicit(&item->number, memory_order_relaxed) != 0;
}

void stream_abort(struct engine *engine, struct view_context *context, struct stream_ring *ring)
{
	struct batch batch;
	uint32_t index, lowest = 0;

	if (batch_open(engine, context, ring, &batch) < 0 || batch.task.kind != TASK_BATCH || !batch.rank)
		return;
	/* a rank that died or left says so itself, by its word: that is the cause its peers are to hear */
	if (atomic_load_explicit(&batch.rank->comm->region->members[batch.rank->rank].word, memory_order_acquire) != MEMBER_ALIVE)
		return;
	for (index = batch.task.first_lane; index != LANE_END;) {
		struct item *head, *item;
		uint32_t done, peer, rank = batch.rank->rank;
		bool sends;

		if (index < lowest || index >= batch.task.item_count)
			return;
		lowest = index + 1;
		head = batch_item(&batch, index);
		sends = head->kind == ITEM_SEND;
		peer = read_once(head->peer);
		done = atomic_load_explicit(&head->done, memory_order_relaxed);
		index = read_once(head->next_lane);
		if ((!sends && head->kind != ITEM_RECEIVE) || done >= batch.task.item_count || peer >= batch.rank->comm->size)
			continue;
		item = batch_item(&batch, done);
		if (item_is_issued(item)) {
			struct fault fault = pair_fault(batch.rank->comm, CAUSE_ABORTED, rank, peer, sends ? ITEM_SEND : ITEM_RECEIVE);

			fault.number = atomic_load_explicit(&item->number, memory_order_relaxed);
			pair_fail(engine, batch.rank->comm, sends ? rank : peer, sends ? peer : rank, &fault);
		}
	}
}

/*
 * Whoever asks for it has let go of the stream before: no client advances it, whatever it does with others of the context. Pairs may be
 * driven at their other ends: failing one writes what only this executor writes.
 */
bool engine_stream_detach(struct engine *engine, struct view_context *context, struct stream_ring *ring)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);

	if (!transfers_cancel_stream(engine, context, ring))
		return false;
	for (uint32_t i = 0; i < limit; i++) {
		if (atomic_load_explicit(&context->streams[i], memory_order_acquire) != ring)
			continue;
		stream_abort(engine, context, ring);
		stream_record_dropped(engine, context, ring, atomic_load_explicit(&ring->tail, memory_order_acquire));
		/* its place will be another stream's */
		if (context->cut_ring == ring)
			context->cut_ring = NULL;
		if (context->late_ring == ring)
			context->late_ring = NULL;
		atomic_store_explicit(&context->streams[i], NULL, memory_order_release);
	}
	engine_ring_dirty(engine);
	return true;
}

static bool segment_holds(const struct view_segment *segment, const void *address)
{
	return (uintptr_t)address >= (uintptr_t)segment->base && (uintptr_t)address - (uintptr_t)segment->base < segment->size;
}

/*
 * By the entry; of memory that goes, also by address: others may have imported it under entries of their own, which are retired too. A
 * copy that is cancelled without need starts again.
 */
static bool segment_is_used(const struct view_segment *segment, const struct transfer *transfer)
{
	if (transfer->source_segment == segment || transfer->destination_segment == segment)
		return true;
	if (segment->is_import)
		return false;
	/* in a side buffer the cursors of a copy under way are in it */
	return segment_holds(segment, transfer->item) || segment_holds(segment, transfer->to) || segment_holds(segment, transfer->from);
}

bool engine_segment_detach(struct engine *engine, struct view_session *session, uint64_t id)
{
	struct view_segment *segment = &session->segments[VIEW_INDEX(id)];
	bool gone = true;

	/* `retired` is set: nothing new starts, and no receive that pulled from here commits any more */
	for (struct transfer *t = engine->all, *next; t; t = next) {
		next = t->all_next;
		if (segment_is_used(segment, t)) {
			context_dirty(engine, t->context);
			gone &= transfer_cancel(engine, t);
		}
	}
	/* waits for events and notifies in it end */
	session_ring_watchers(engine, session);
	notify_ring_all(engine);
	engine_ring_dirty(engine);
	return gone;
}

bool engine_memory_detach(struct engine *engine, const void *base, uint64_t bytes)
{
	const uintptr_t start = (uintptr_t)base, end = start + bytes;
	bool gone = true;

	for (struct transfer *t = engine->all, *next; t; t = next) {
		uintptr_t to = (uintptr_t)t->to, from = (uintptr_t)t->from;

		next = t->all_next;
		if ((to < end && start < to + t->bytes) || (from && from < end && start < from + t->bytes)) {
			context_dirty(engine, t->context);
			gone &= transfer_cancel(engine, t);
		}
	}
	notify_ring_all(engine);
	engine_ring_dirty(engine);
	return gone;
}

static bool is_retired(const struct view_segment *segment)
{
	return segment && atomic_load_explicit(&segment->retired, memory_order_acquire);
}

bool engine_retired_detach(struct engine *engine)
{
	bool gone = true;

	for (struct transfer *t = engine->all, *next; t; t = next) {
		next = t->all_next;
		if (is_retired(t->source_segment) || is_retired(t->destination_segment)) {
			context_dirty(engine, t->context);
			gone &= transfer_cancel(engine, t);
		}
	}
	notify_ring_all(engine);
	engine_ring_dirty(engine);
	return gone;
}

bool engine_rank_detach(struct engine *engine, struct view_rank *rank)
{
	struct view_comm *comm = rank->comm;

	if (!transfers_cancel_rank(engine, rank))
		return false;
	if (engine->wait->what == rank)
		engine_waited(engine);
	for (uint32_t peer = 0; peer < comm->size; peer++) {
		pending_drop(engine, comm, view_pair_of(comm, rank->rank, peer), UINT64_MAX);
		pending_drop(engine, comm, view_pair_of(comm, peer, rank->rank), UINT64_MAX);
	}
	engine_ring_dirty(engine);
	engine_ring_hard(engine, comm);
	/* tasks of the own streams that name this rank end as aborted from now on */
	atomic_store_explicit(&rank->handle, 0, memory_order_release);
	atomic_store_explicit(&comm->contexts[rank->rank], NULL, memory_order_release);
	return true;
}

bool engine_context_detach(struct engine *engine, struct view_context *context)
{
	bool gone = true;

	for (struct transfer *t = engine->all, *next; t; t = next) {
		next = t->all_next;
		if (t->context == context)
			gone &= transfer_cancel(engine, t);
	}
	if (!gone)
		return false;
	context_unwatch(engine, context);
	context_forget_notifies(engine, context);
	pending_forget(engine, context);
	if (context->dirty) {
		struct view_context **at = &engine->dirty;

		while (*at != context)
			at = &(*at)->dirty_next;
		*at = context->dirty_next;
		context->dirty = false;
	}
	return true;
}
