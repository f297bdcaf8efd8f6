/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a stream that waits: since when. Its age is what time-outs and tools go by. For who owns the context. */
#pragma once

#include "proto/clock.h"
#include "proto/ring.h"

static inline void stream_mark_head(struct stream_ring *ring, uint64_t position)
{
	if (atomic_load_explicit(&ring->head_position, memory_order_relaxed) == position + 1)
		return;
	atomic_store_explicit(&ring->head_since_ns, clock_now_ns(), memory_order_relaxed);
	atomic_store_explicit(&ring->head_position, position + 1, memory_order_release);
}
