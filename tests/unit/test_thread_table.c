/* SPDX-License-Identifier: Apache-2.0 */
/* The table of threads: handles that come and go while others look at them. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "client/device.h"
#include "client/error.h"
#include "client/stream.h"
#include "client/thread_table.h"
#include "tests/support/fake_engine.h"
#include "tests/support/test.h"

#define READERS 3
#define ROUNDS 20000u

static struct hccld_stream *stream;
static _Atomic uint64_t newest;
static _Atomic bool is_over;

static struct hccld_thread *thread_make(uint64_t number)
{
	int cancel = hccld_threads_lock();
	struct hccld_thread *thread = hccld_thread_place_take();

	check_ptr(thread);
	thread->stream = stream;
	thread->stream_serial = hccld_stream_serial(stream);
	thread->rank = number;
	thread->comm = ~number;
	atomic_fetch_or_explicit(&thread->word, THREAD_ALIVE, memory_order_release);
	hccld_threads_unlock(cancel);
	return thread;
}

static void *reader(void *arg)
{
	uint64_t *found = arg;

	while (!atomic_load(&is_over)) {
		uint64_t handle = atomic_load(&newest);
		struct hccld_thread *thread;

		if (!handle || hccld_thread_get("f", handle, &thread) < 0)
			continue;
		/* it is whole, and stays so while it is pinned */
		check_eq_uint(thread->rank, ~thread->comm);
		check_eq_uint(hccld_thread_handle(thread), handle);
		hccld_thread_put(thread);
		++*found;
	}
	return NULL;
}

TEST_TIMEOUT(threads_come_and_go_under_those_who_look, 120)
{
	uint64_t found[READERS] = { 0 };
	struct hccld_context *context;
	pthread_t readers[READERS];

	fake_engine_start(false);
	check_eq_int(hccld_context_current(&context), 0);
	check_eq_int(hccld_stream_new(context, &stream), 0);
	for (int i = 0; i < READERS; i++)
		check_eq_int(pthread_create(&readers[i], NULL, reader, &found[i]), 0);
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		struct hccld_thread *thread = thread_make(round);

		atomic_store(&newest, hccld_thread_handle(thread));
		if (round % 100 == 0)
			sched_yield();
		check(hccld_thread_take_life(thread));
		check(!hccld_thread_take_life(thread));
		hccld_thread_put(thread);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	/* places are used again as soon as nobody has them pinned */
	check_le_uint(hccld_thread_limit, READERS + 2);
	check_eq_int(hccld_stream_destroy(stream, true), 0);
	fake_engine_stop();
}

TEST(handles_that_are_none_are_refused)
{
	struct hccld_context *context;
	struct hccld_thread *thread, *found;
	uint64_t handle;

	fake_engine_start(false);
	check_eq_int(hccld_context_current(&context), 0);
	check_eq_int(hccld_stream_new(context, &stream), 0);
	thread = thread_make(1);
	handle = hccld_thread_handle(thread);
	check_eq_int(hccld_thread_get("f", handle, &found), 0);
	check_eq_ptr(found, thread);
	hccld_thread_put(found);
	check_eq_int(hccld_thread_get("f", 0, &found), -EBADF);
	check_eq_int(hccld_thread_get("f", handle + 1, &found), -EBADF);
	check_eq_int(hccld_thread_get("f", handle + (1 << 16), &found), -EBADF);
	check_eq_int(hccld_thread_get("f", handle | 0xffff, &found), -EBADF);
	check_eq_int(hccld_thread_get("f", UINT64_MAX, &found), -EBADF);
	check_eq_int(hccld_thread_get("f", (uint64_t)(uintptr_t)thread, &found), -EBADF);
	/* its stream is another one by now */
	check_eq_int(hccld_stream_destroy(stream, true), 0);
	check_eq_int(hccld_thread_get("f", handle, &found), -EBADF);
	check(hccld_thread_take_life(thread));
	hccld_thread_put(thread);
	thread = thread_make(2);
	check(hccld_thread_handle(thread) != handle);
	fake_engine_stop();
}
