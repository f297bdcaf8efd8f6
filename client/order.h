/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is before what by way of the daemon, for ThreadSanitizer in the program: it does not see that a synchronized stream has done its
 * kernels. Each stream has an order of its own; once streams wait for each other there is one for all in addition, which hides races
 * between such streams, and makes up none.
 *
 * In a library that is built with ThreadSanitizer there is nothing of it: there what the library itself does has to be enough.
 */
#pragma once

#include "client/stream_state.h"

#if defined(__SANITIZE_THREAD__)
#define ORDER_IS_TOLD 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ORDER_IS_TOLD 0
#endif
#endif
#ifndef ORDER_IS_TOLD
#define ORDER_IS_TOLD 1
#endif

/* The sanitizer's, if the program has it. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

/* Nobody looks at it: its address stands for the order of all streams. */
extern char hccld_order_of_all __attribute__((visibility("hidden")));

/* What this thread has done is before what comes out of the stream. */
static inline void order_release(struct hccld_stream *stream)
{
	if (!ORDER_IS_TOLD || !__tsan_release)
		return;
	__tsan_release(stream);
	__tsan_release(&hccld_order_of_all);
}

/* What the stream has come to is before what this thread does. */
static inline void order_acquire(struct hccld_stream *stream)
{
	if (!ORDER_IS_TOLD || !__tsan_acquire)
		return;
	__tsan_acquire(stream);
	if (hccld_deferred_is_entangled())
		__tsan_acquire(&hccld_order_of_all);
}
