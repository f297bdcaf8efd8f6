/* SPDX-License-Identifier: Apache-2.0 */
#include "client/exception.h"

#include <stdatomic.h>
#include <stddef.h>

#include "client/stream_state.h"

static void (*_Atomic program)(void *exception);

void hccld_exception_set(void (*callback)(void *exception))
{
	atomic_store(&program, callback);
}

void hccld_exception_report(const struct hccld_stream *stream, int code)
{
	void (*callback)(void *exception) = atomic_load(&program);
	const struct stream_ring *ring = stream->ring;
	struct hccld_exception exception = { .stream = stream->place, .device = (uint32_t)stream->context->logical,
					     .code = (uint32_t)code };

	if (!callback)
		return;
	exception.task = (uint32_t)atomic_load_explicit(&ring->fault_position, memory_order_relaxed);
	exception.thread = atomic_load_explicit(&ring->fault_thread, memory_order_relaxed);
	callback(&exception);
}
