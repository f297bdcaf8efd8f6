/* SPDX-License-Identifier: Apache-2.0 */
/* Host kernels against the engine of tests/support/fake_engine.c: threads, order, ends. */
#include "client/kernel.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "client/error.h"
#include "client/stream.h"
#include "client/stream_state.h"
#include "tests/support/fake_engine.h"
#include "tests/support/test.h"

enum { STREAMS = 4, BLOCKS = 6, LAUNCHES = 50 };

static struct hccld_stream *stream_make(void)
{
	struct hccld_stream *stream;

	check_eq_int(hccld_stream_new(fake_context(), &stream), 0);
	return stream;
}

struct work {
	uint32_t *words; /* a word per block; what the kernel before has written is seen without locks */
	_Atomic uint32_t *came;
	uint32_t number, together;
};

static void work(uint32_t block, uint32_t blocks, void *args)
{
	const struct work *work = args;

	check_eq_uint(blocks, BLOCKS);
	/* all blocks of all streams of this round */
	atomic_fetch_add(work->came, 1);
	while (atomic_load(work->came) < (work->number + 1) * work->together)
		sched_yield();
	check_eq_uint(work->words[block], work->number);
	work->words[block]++;
}

static void launch_rounds(uint32_t streams)
{
	static uint32_t words[STREAMS][BLOCKS];
	static _Atomic uint32_t came;
	struct hccld_stream *list[STREAMS];

	fake_engine_start(false);
	for (uint32_t i = 0; i < streams; i++)
		list[i] = stream_make();
	for (uint32_t round = 0; round < LAUNCHES; round++)
		for (uint32_t i = 0; i < streams; i++) {
			struct work args = { words[i], &came, round, streams * BLOCKS };

			check_eq_int(hccld_kernel_launch(list[i], work, BLOCKS, &args, sizeof(args)), 0);
		}
	for (uint32_t i = 0; i < streams; i++) {
		check_eq_int(hccld_stream_wait(list[i], -1), 0);
		for (uint32_t b = 0; b < BLOCKS; b++)
			check_eq_uint(words[i][b], LAUNCHES);
		check_eq_int(hccld_stream_destroy(list[i], false), 0);
	}
	fake_engine_stop();
}

TEST_TIMEOUT(kernels_run_in_order_with_all_their_blocks, 60)
{
	launch_rounds(1);
}

TEST_TIMEOUT(kernels_of_streams_run_at_the_same_time, 60)
{
	launch_rounds(STREAMS);
}

static _Atomic bool gate;

static void wait_for_gate(uint32_t block, uint32_t blocks, void *args)
{
	while (!atomic_load(&gate))
		usleep(100);
}

static void count(uint32_t block, uint32_t blocks, void *args)
{
	atomic_fetch_add(*(_Atomic uint32_t **)args, 1);
}

TEST_TIMEOUT(kernels_of_streams_that_end_leave_threads_for_others, 60)
{
	static _Atomic uint32_t runs;
	_Atomic uint32_t *at = &runs;

	fake_engine_start(false);
	for (int i = 0; i < 5; i++) {
		struct hccld_stream *stream = stream_make();

		check_eq_int(hccld_kernel_launch(stream, wait_for_gate, BLOCKS, NULL, 0), 0);
		check_eq_int(hccld_kernel_launch(stream, count, BLOCKS, &at, sizeof(at)), 0);
		usleep(5000);
		check_eq_int(hccld_stream_destroy(stream, true), 0);
	}
	for (int i = 0; i < 5; i++) {
		struct hccld_stream *stream = stream_make();

		check_eq_int(hccld_kernel_launch(stream, count, BLOCKS, &at, sizeof(at)), 0);
		check_eq_int(hccld_stream_destroy(stream, false), 0);
	}
	check_eq_uint(runs, 5 * BLOCKS);
	atomic_store(&gate, true);
	fake_engine_stop();
}

static void *launch_and_end(void *arg)
{
	_Atomic uint32_t runs = 0, *at = &runs;

	for (uint32_t i = 0; i < 30; i++) {
		struct hccld_stream *stream = stream_make();

		for (uint32_t k = 1; k <= BLOCKS; k++)
			check_eq_int(hccld_kernel_launch(stream, count, k, &at, sizeof(at)), 0);
		if (i % 8 == 0) {
			check_eq_int(hccld_stream_wait(stream, -1), 0);
			usleep(25000); /* its cores go back */
			check_eq_int(hccld_kernel_launch(stream, count, BLOCKS, &at, sizeof(at)), 0);
			runs -= BLOCKS;
		}
		check_eq_int(hccld_stream_destroy(stream, false), 0);
		check_eq_uint(runs, (i + 1) * BLOCKS * (BLOCKS + 1) / 2);
	}
	return arg;
}

TEST_TIMEOUT(kernels_launched_by_many_threads, 60)
{
	pthread_t threads[4];

	fake_engine_start(false);
	for (int i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, launch_and_end, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	fake_engine_stop();
}

enum { ROUNDS = 20000 };

struct late {
	struct hccld_stream *stream;
	_Atomic uint32_t begun, over;
};

static void *launch_too_late(void *data)
{
	struct late *late = data;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		while (atomic_load(&late->begun) < round)
			sched_yield();
		for (int i = 0; i < 5; i++)
			check_lt_int(hccld_kernel_launch(late->stream, count, 1, NULL, 0), 0);
		atomic_store(&late->over, round);
	}
	return NULL;
}

TEST(a_launch_that_comes_too_late_is_not_taken_off_what_is_queued)
{
	struct late late = { 0 };
	pthread_t thread;

	fake_engine_start(false);
	late.stream = stream_make();
	check_eq_int(hccld_stream_destroy(late.stream, false), 0);
	check_eq_int(pthread_create(&thread, NULL, launch_too_late, &late), 0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		atomic_store(&late.begun, round);
		/* what ends the stream counts from 0, at any moment */
		for (uint32_t i = 0; i < round % 50; i++)
			hccld_kernel_forget(late.stream, 0);
		while (atomic_load(&late.over) < round)
			sched_yield();
		check_eq_uint(late.stream->kernels.queued, 0);
	}
	pthread_join(thread, NULL);
	fake_engine_stop();
}
