/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the control thread and the engine thread: calls go in through a lock-free stack (pushed by control, taken as a whole and turned
 * round), come back through another; events (liars, warnings) through a fixed ring with one writer and one reader.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/scheduler.h"

#define EVENTS 256u	/* a power of two */

struct event {
	bool is_liar;
	const char *what;
	uint64_t object;	/* session or communicator */
	uint32_t source, destination;
	uint8_t source_type, destination_type;
};

struct event_ring {
	struct event events[EVENTS];
	_Atomic uint32_t head, tail;	/* read by control, written by the engine thread */
};

/* False: it is full. */
static inline bool event_ring_put(struct event_ring *ring, const struct event *event)
{
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	if (tail - atomic_load_explicit(&ring->head, memory_order_acquire) == EVENTS)
		return false;
	ring->events[tail % EVENTS] = *event;
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return true;
}

/* False: it is empty. */
static inline bool event_ring_take(struct event_ring *ring, struct event *ret_event)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
		return false;
	*ret_event = ring->events[head % EVENTS];
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}

static inline void call_push(_Atomic(struct scheduler_call *) *stack, struct scheduler_call *call)
{
	call->next = atomic_load_explicit(stack, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(stack, &call->next, call, memory_order_release, memory_order_relaxed))
		;
}

static inline struct scheduler_call *call_take_all(_Atomic(struct scheduler_call *) *stack)
{
	struct scheduler_call *call = atomic_exchange_explicit(stack, NULL, memory_order_acquire), *in_order = NULL;

	while (call) {
		struct scheduler_call *next = call->next;

		call->next = in_order;
		in_order = call;
		call = next;
	}
	return in_order;
}
