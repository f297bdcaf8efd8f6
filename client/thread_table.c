/* SPDX-License-Identifier: Apache-2.0 */
#include "client/thread_table.h"

#include <errno.h>

#include "client/error.h"
#include "client/stream.h"
#include "client/table.h"
#include "proto/channel.h"

#define PINS (THREAD_ALIVE - 1)
#define HANDLE_MARK 0x5448ull /* top 16 bits: no address of a program looks like this */
#define GENERATION_MASK 0xffffffffull

struct hccld_thread hccld_thread_places[THREAD_PLACES] HCCLD_TABLE;
uint32_t hccld_thread_limit;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

int hccld_threads_lock(void)
{
	int cancel;

	/* cancellation would leave the lock behind */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	return cancel;
}

void hccld_threads_unlock(int cancel)
{
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
}

uint64_t hccld_thread_handle(const struct hccld_thread *thread)
{
	uint64_t generation = atomic_load_explicit(&thread->word, memory_order_relaxed) >> 32;

	return HANDLE_MARK << 48 | (generation & GENERATION_MASK) << 16 | (uint64_t)(thread - hccld_thread_places);
}

const char *hccld_engine_name(uint32_t engine)
{
	return channel_engine_name(engine);
}

static int handle_error(const char *function, uint64_t handle)
{
	return hccld_error(CAUSE_BAD_HANDLE,
			   "%s: thread is %#llx: that is no thread of this process, or it ended with its communicator, stream or device",
			   function, (unsigned long long)handle);
}

int hccld_thread_get(const char *function, uint64_t handle, struct hccld_thread **ret_thread)
{
	const uint64_t generation = handle >> 16 & GENERATION_MASK;
	struct hccld_thread *thread;
	uint64_t word;
	int r = hccld_session_check_fork();

	if (r < 0)
		return r;
	if (handle >> 48 != HANDLE_MARK || (handle & 0xffff) >= THREAD_PLACES)
		return handle_error(function, handle);
	thread = &hccld_thread_places[handle & 0xffff];
	word = atomic_load_explicit(&thread->word, memory_order_relaxed);
	do {
		if (word >> 32 != generation || !(word & THREAD_ALIVE))
			return handle_error(function, handle);
		/* acquire: the fields are as they were when THREAD_ALIVE was set */
	} while (!atomic_compare_exchange_weak_explicit(&thread->word, &word, word + 1, memory_order_acquire, memory_order_relaxed));
	if (!hccld_stream_is(thread->stream, thread->stream_serial)) {
		hccld_thread_put(thread);
		return handle_error(function, handle);
	}
	*ret_thread = thread;
	return 0;
}

void hccld_thread_place_free(struct hccld_thread *thread)
{
	uint64_t generation = (atomic_load_explicit(&thread->word, memory_order_relaxed) >> 32) + 1;

	atomic_store_explicit(&thread->word, (generation & GENERATION_MASK) << 32, memory_order_relaxed);
	/* release: whoever takes the place finds the generation */
	atomic_store_explicit(&thread->is_taken, false, memory_order_release);
}

void hccld_thread_put(struct hccld_thread *thread)
{
	/* release: our reads of the fields come before the place is freed; acquire: whoever frees sees all others done */
	uint64_t word = atomic_fetch_sub_explicit(&thread->word, 1, memory_order_acq_rel);

	if (!(word & THREAD_ALIVE) && (word & PINS) == 1)
		hccld_thread_place_free(thread);
}

struct hccld_thread *hccld_thread_place_take(void)
{
	for (uint32_t i = 0; i < THREAD_PLACES; i++) {
		struct hccld_thread *thread = &hccld_thread_places[i];

		if (atomic_load_explicit(&thread->is_taken, memory_order_acquire))
			continue;
		atomic_store_explicit(&thread->is_taken, true, memory_order_relaxed);
		if (i >= hccld_thread_limit)
			hccld_thread_limit = i + 1;
		return thread;
	}
	return NULL;
}

bool hccld_thread_take_life(struct hccld_thread *thread)
{
	uint64_t word = atomic_load_explicit(&thread->word, memory_order_relaxed);

	do {
		if (!(word & THREAD_ALIVE))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&thread->word, &word, (word & ~THREAD_ALIVE) + 1, memory_order_acq_rel,
							memory_order_relaxed));
	return true;
}
