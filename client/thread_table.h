/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of threads, for thread.c alone. A place is never given back, so looking at it is always safe; its word says whether a handle
 * is still good, as for communicators (comm.c): generation << 32 | ALIVE | pins. All other fields are written before ALIVE is set, but for
 * parts, which are added. Whoever takes the last pin of a place that is not ALIVE frees it.
 *
 * The lock is held while threads are made and ended, requests included: they wait for nobody but the daemon. So a thread that is being made
 * for a communicator is in the table before that is left, or finds it left.
 */
#pragma once

#include <pthread.h>

#include "client/thread.h"
#include "proto/limits.h"

#define THREAD_ALIVE (1ull << 31)
#define THREAD_PLACES HCCLD_THREADS_PER_SESSION

/* Of this library alone: it exports no data. */
extern __attribute__((visibility("hidden"))) struct hccld_thread hccld_thread_places[THREAD_PLACES];
extern __attribute__((visibility("hidden"))) uint32_t hccld_thread_limit; /* with the lock: places below it may be in use */

/* Returns what unlock is to be given. */
int hccld_threads_lock(void);
void hccld_threads_unlock(int cancel);

uint64_t hccld_thread_handle(const struct hccld_thread *thread);
/* With the lock: the lowest that is free, which keeps searches short. NULL: none is. */
struct hccld_thread *hccld_thread_place_take(void);
/* It is not alive, and nobody has it pinned. */
void hccld_thread_place_free(struct hccld_thread *thread);
/* No longer alive, and pinned by the caller, in one step. False: it was not alive. */
bool hccld_thread_take_life(struct hccld_thread *thread);

static inline bool hccld_thread_is_alive(const struct hccld_thread *thread)
{
	return atomic_load_explicit(&thread->word, memory_order_relaxed) & THREAD_ALIVE;
}
