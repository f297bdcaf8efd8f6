/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls between the control thread and the engine thread: they go in through a lock-free stack (pushed by control, taken as a whole and turned
 * round), and come back through another.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/scheduler.h"

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
