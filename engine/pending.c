/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that are offered and not received, by tenant, and their limit. What would be beyond it is not offered before its receive is posted:
 * nothing is dropped, the sends wait. Counters are private to the executor and come again from the rings. While clients may drive there is
 * no limit, and nothing is counted: nobody here knows what they offer and receive.
 */
#include "engine/executor.h"

/* Only this thread writes it. */
static void share_add(struct view_share *share, uint64_t bytes)
{
	atomic_store_explicit(&share->pending, atomic_load_explicit(&share->pending, memory_order_relaxed) + bytes, memory_order_relaxed);
}

uint64_t pending_bytes(const struct view_pair *pair, struct pair_ring *ring, uint64_t first, uint64_t last)
{
	/* however much the ring's words lie; numbers may wrap */
	uint64_t slots = view_pair_slots(pair, ring, last), bytes = 0;
	uint64_t count = last - first + 1 < slots ? last - first + 1 : slots;

	for (uint64_t i = 0; i < count; i++)
		bytes += view_pair_bytes(pair, ring, first + i);
	return bytes;
}

void pending_hold(struct engine *engine, struct view_context *context)
{
	if (context->held)
		return;
	context->held = true;
	context->held_next = engine->held;
	engine->held = context;
}

bool pending_allows(struct engine *engine, struct view_comm *comm, struct view_context *context, uint64_t bytes)
{
	if (!comm->share || view_share_allows(comm->share, bytes))
		return true;
	pending_hold(engine, context);
	return false;
}

void pending_add(struct engine *engine, struct view_comm *comm, struct view_pair *pair, uint64_t bytes)
{
	if (!comm->share || engine->direct)
		return;
	pair->pending += bytes;
	share_add(comm->share, bytes);
}

/* Contexts of @share, or of all for NULL, look again. */
static void held_wake(struct engine *engine, struct view_share *share)
{
	struct view_context **at = &engine->held;

	while (*at) {
		struct view_context *context = *at;

		if (share && context->share != share) {
			at = &context->held_next;
			continue;
		}
		*at = context->held_next;
		context->held = false;
		context_dirty(engine, context);
	}
}

void pending_drop(struct engine *engine, struct view_comm *comm, struct view_pair *pair, uint64_t bytes)
{
	if (!comm->share || !pair->pending)
		return;
	if (bytes > pair->pending)
		bytes = pair->pending;
	pair->pending -= bytes;
	share_add(comm->share, -bytes);
	if (engine->held)
		held_wake(engine, comm->share);
}

void pending_recount(struct engine *engine, struct view_comm *comm, struct view_pair *pair)
{
	struct pair_ring *ring = atomic_load_explicit(&pair->ring, memory_order_acquire);
	uint64_t received, tail;

	pending_drop(engine, comm, pair, UINT64_MAX);
	if (!ring || engine->direct)
		return;
	received = atomic_load_explicit(&ring->received, memory_order_relaxed);
	/* acquire: the slots of a client's offers */
	tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	if (atomic_load_explicit(view_pair_failed(pair, ring), memory_order_relaxed) || tail - received > view_pair_slots(pair, ring, tail))
		return;
	pending_add(engine, comm, pair, pending_bytes(pair, ring, received + 1, tail));
}

void pending_forget(struct engine *engine, struct view_context *context)
{
	struct view_context **at = &engine->held;

	if (!context->held)
		return;
	while (*at != context)
		at = &(*at)->held_next;
	*at = context->held_next;
	context->held = false;
}

bool engine_has_held(const struct engine *engine)
{
	return engine->held != NULL;
}

void engine_look_at_held(struct engine *engine)
{
	if (!engine->held)
		return;
	held_wake(engine, NULL);
	engine_ring_dirty(engine);
}
