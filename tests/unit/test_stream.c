/* SPDX-License-Identifier: Apache-2.0 */
/* Submitting, waiting, copies and fills, against the engine of tests/support/fake_engine.c. */
#include "client/stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/buffer.h"
#include "client/error.h"
#include "client/memory.h"
#include "tests/support/fake_engine.h"
#include "tests/support/test.h"

static struct hccld_stream *stream_make(void)
{
	struct hccld_stream *stream;

	check_eq_int(hccld_stream_new(fake_context(), &stream), 0);
	return stream;
}

static char *memory_make(enum hccld_memory memory, size_t size)
{
	void *pointer;

	check_eq_int(hccld_buffer_allocate(fake_context(), memory, size, 0, &pointer), 0);
	memset(pointer, 0, size);
	return pointer;
}

/* A task that sets one byte of device memory. */
static int set(struct hccld_stream *stream, char *address, int value)
{
	return hccld_memory_fill_async(address, 1, value, 1, stream);
}

static void check_all(const char *memory, int value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		check_msg(memory[i] == (char)value, "byte %zu is %d, not %d", i, memory[i], value);
}

TEST(stream_copies_between_memory_the_engine_reaches)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 300000);
	char *other = memory_make(HCCLD_MEMORY_DEVICE, 300000);
	char *host = memory_make(HCCLD_MEMORY_HOST, 300000);

	fake_engine_start(false);
	check_eq_int(hccld_memory_fill_async(host, 300000, 'h', 300000, stream), 0);
	check_eq_int(hccld_memory_copy_async(device, 300000, host, 300000,
					     HCCLD_COPY_HOST_TO_DEVICE, stream),
		     0);
	check_eq_int(hccld_memory_copy_async(other, 300000, device, 300000,
					     HCCLD_COPY_DEVICE_TO_DEVICE, stream),
		     0);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_all(other, 'h', 300000);
	check_eq_uint(fake_engine_tasks(), 3);
	fake_engine_stop();
}

TEST(stream_takes_a_pageable_source_at_the_call)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 20 << 20), *host = malloc(20 << 20);

	check_ptr(host);
	fake_engine_start(true);
	memset(host, 1, 20 << 20);
	check_eq_int(hccld_memory_copy_async(device, 20 << 20, host, 20 << 20, HCCLD_COPY_DEFAULT,
					     stream),
		     0);
	memset(host, 2, 20 << 20);
	fake_engine_hold(false);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_all(device, 1, 20 << 20);
	fake_engine_stop();
	free(host);
}

TEST(stream_writes_a_pageable_destination_before_it_reports_completion)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 20 << 20), *host = calloc(1, 20 << 20);
	uint32_t segments = fake_segments();

	check_ptr(host);
	fake_engine_start(true);
	check_eq_int(hccld_memory_fill_async(device, 20 << 20, 7, 20 << 20, stream), 0);
	check_eq_int(hccld_memory_copy_async(host, 20 << 20, device, 20 << 20,
					     HCCLD_COPY_DEVICE_TO_HOST, stream),
		     0);
	check_eq_int(hccld_stream_query(stream), 0);
	check_all(host, 0, 20 << 20);
	fake_engine_hold(false);
	while (hccld_stream_query(stream) == 0)
		;
	check_all(host, 7, 20 << 20);
	check_eq_uint(fake_segments(), segments);
	fake_engine_stop();
	free(host);
}

TEST(stream_fills_and_copies_memory_of_the_program)
{
	struct hccld_stream *stream = stream_make();
	char a[1000] = { 0 }, b[1000] = { 0 };

	fake_engine_start(false);
	check_eq_int(hccld_memory_fill_async(a, 1000, 5, 1000, stream), 0);
	/* reads what the fill has yet to write */
	check_eq_int(hccld_memory_copy_async(b, 1000, a, 1000, HCCLD_COPY_HOST_TO_HOST, stream), 0);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_all(a, 5, 1000);
	check_all(b, 5, 1000);
	fake_engine_stop();
}

TEST(stream_copy_from_where_an_earlier_copy_still_writes)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 2000), host[1000];

	fake_engine_start(false);
	for (int i = 1; i < 100; i++) {
		check_eq_int(hccld_memory_fill_async(device, 1000, i, 1000, stream), 0);
		check_eq_int(hccld_memory_copy_async(host, 1000, device, 1000, HCCLD_COPY_DEFAULT,
						     stream),
			     0);
		check_eq_int(hccld_memory_copy_async(device + 1000, 500, host + 500, 500,
						     HCCLD_COPY_DEFAULT, stream),
			     0);
		check_eq_int(hccld_stream_wait(stream, -1), 0);
		check_all(device + 1000, i, 500);
	}
	fake_engine_stop();
}

TEST(stream_ring_wraps)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 10000);

	fake_engine_start(false);
	for (int i = 0; i < 10000; i++)
		check_eq_int(set(stream, device + i, i), 0);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	for (int i = 0; i < 10000; i++)
		check_eq_int(device[i], (char)i);
	check_eq_uint(fake_engine_tasks(), 10000);
	fake_engine_stop();
}

static _Atomic uint32_t submitted;

static void *submit_many(void *arg)
{
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);

	for (int i = 0; i < 1000; i++) {
		check_eq_int(set(arg, device, i), 0);
		atomic_fetch_add(&submitted, 1);
	}
	return NULL;
}

TEST(stream_full_ring_blocks_and_drops_nothing)
{
	struct hccld_stream *stream = stream_make();
	pthread_t thread;

	fake_engine_start(true);
	check_eq_int(pthread_create(&thread, NULL, submit_many, stream), 0);
	while (atomic_load(&submitted) < HCCLD_STREAM_SLOTS / 2)
		usleep(1000);
	usleep(100000);
	/* two slots each */
	check_eq_uint(atomic_load(&submitted), HCCLD_STREAM_SLOTS / 2);
	check_eq_int(hccld_stream_query(stream), 0);
	fake_engine_hold(false);
	pthread_join(thread, NULL);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_eq_uint(fake_engine_tasks(), 1000);
	fake_engine_stop();
}

TEST(stream_takes_tasks_of_many_threads)
{
	struct hccld_stream *stream = stream_make();
	pthread_t threads[4];

	fake_engine_start(false);
	for (unsigned int i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, submit_many, stream), 0);
	for (unsigned int i = 0; i < 20; i++)
		check_eq_int(hccld_stream_wait(stream, -1), 0);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_eq_uint(fake_engine_tasks(), 4000);
	fake_engine_stop();
}

static void *wait_for(void *arg)
{
	check_eq_int(hccld_stream_wait(arg, -1), 0);
	return NULL;
}

TEST(stream_wakes_all_its_sleepers)
{
	struct hccld_stream *stream = stream_make(), *other = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 2);
	pthread_t threads[6];

	fake_engine_start(true);
	check_eq_int(set(stream, device, 1), 0);
	check_eq_int(set(other, device + 1, 1), 0);
	for (unsigned int i = 0; i < 6; i++)
		check_eq_int(pthread_create(&threads[i], NULL, wait_for, i % 2 ? stream : other),
			     0);
	usleep(50000);
	fake_engine_hold(false);
	for (unsigned int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	check_eq_uint(atomic_load(&fake_context()->words->sleepers), 0);
	fake_engine_stop();
}

TEST(stream_wait_ends_at_its_time)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);

	fake_engine_start(true);
	check_eq_int(hccld_stream_wait(stream, 0), 0);
	check_eq_int(set(stream, device, 1), 0);
	check_eq_int(hccld_stream_wait(stream, 0), -ETOOMANYREFS);
	check_eq_int(hccld_stream_wait(stream, 30), -ETOOMANYREFS);
	check_str_contains(hccld_error_take(), "30 ms");
	check_eq_int(hccld_stream_wait_all(fake_context(), 30), -ETOOMANYREFS);
	check_eq_int(hccld_acl_result(-ETOOMANYREFS), 507046);
	fake_engine_hold(false);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	fake_engine_stop();
}

TEST(stream_reports_an_error_in_flight_once)
{
	const struct fault fault = {
		.cause = CAUSE_MISMATCH, .rank = 2, .peer = 5, .direction = ITEM_RECEIVE, .comm = 9
	};
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);

	hccld_comm_name_add(9, "the_name");
	fake_engine_start(false);
	fake_engine_fail(&fault);
	check_eq_int(set(stream, device, 1), 0);
	while (hccld_stream_query(stream) == 0)
		;
	check_eq_int(hccld_stream_wait(stream, -1), -EILSEQ);
	check_str_contains(hccld_error_take(), "communicator the_name");
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	/* also by a synchronize of the device */
	fake_engine_fail(&fault);
	check_eq_int(set(stream, device, 1), 0);
	check_eq_int(hccld_stream_wait_all(fake_context(), -1), -EILSEQ);
	check_eq_int(hccld_stream_wait_all(fake_context(), -1), 0);
	fake_engine_stop();
}

TEST(stream_puts_items_of_a_large_task_beside_the_ring)
{
	struct hccld_stream *stream = stream_make();
	const uint32_t count = 3000;
	struct item *items = calloc(count, sizeof(*items));
	char *device = memory_make(HCCLD_MEMORY_DEVICE, count);
	struct hccld_place place;

	check_ptr(items);
	check_eq_int(hccld_buffer_find(device, &place), 0);
	for (uint32_t i = 0; i < count; i++)
		items[i] = (struct item){ .kind = ITEM_FILL,
					  .peer = i,
					  .bytes = 1,
					  .segment = place.segment,
					  .offset = place.offset + i };
	fake_engine_start(false);
	for (unsigned int round = 0; round < 20; round++) {
		struct task task = { .kind = TASK_BATCH };

		check_eq_int(hccld_stream_submit(stream, &task, items, round % 2 ? count : 300), 0);
	}
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	for (uint32_t i = 0; i < count; i++)
		check_eq_int(device[i], (char)i);
	/* the device memory and the few buffers that are kept */
	check_le_uint(fake_segments(), 1 + 4);
	fake_engine_stop();
	free(items);
}

static void count_up(void *arg)
{
	(*(unsigned int *)arg)++;
}

TEST(stream_runs_deferred_actions_in_order_and_once)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);
	unsigned int before = 0, after = 0;

	fake_engine_start(true);
	check_eq_int(hccld_stream_defer(stream, count_up, &before), 0);
	check_eq_int(hccld_stream_query(stream), 1);
	check_eq_uint(before, 1);
	check_eq_int(set(stream, device, 1), 0);
	check_eq_int(hccld_stream_defer(stream, count_up, &after), 0);
	check_eq_int(hccld_stream_query(stream), 0);
	check_eq_uint(after, 0);
	fake_engine_hold(false);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_eq_int(hccld_stream_wait(stream, -1), 0);
	check_eq_uint(after, 1);
	fake_engine_stop();
}

TEST(stream_handle_is_unknown_after_its_end)
{
	struct hccld_stream *stream = stream_make(), *found;
	void *old = stream;
	int local;

	check_eq_int(hccld_stream_get(stream, &found), 0);
	check_eq_ptr(found, stream);
	check_eq_int(hccld_stream_get((char *)stream + 1, &found), -EBADF);
	check_eq_int(hccld_stream_get(&local, &found), -EBADF);
	check_eq_int(hccld_stream_get((void *)UINTPTR_MAX, &found), -EBADF);
	check_eq_int(hccld_stream_destroy(stream, false), 0);
	check_eq_int(hccld_stream_get(old, &found), -EBADF);
	check_str_contains(hccld_error_take(), "destroyed");
	check_eq_int(hccld_stream_destroy(old, false), -EBADF);
	/* nor does it become the next one's */
	for (unsigned int i = 0; i < 2000; i++) {
		stream = stream_make();
		check(stream != old);
		check_eq_int(hccld_stream_destroy(stream, true), 0);
	}
}

TEST(stream_destroy_waits_and_force_does_not)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 8), host[8] = { 0 };
	uint32_t segments = fake_segments();

	fake_engine_start(false);
	check_eq_int(hccld_memory_fill_async(device, 8, 3, 8, stream), 0);
	check_eq_int(hccld_memory_copy_async(host, 8, device, 8, HCCLD_COPY_DEFAULT, stream), 0);
	check_eq_int(hccld_stream_destroy(stream, false), 0);
	check_all(host, 3, 8);

	stream = stream_make();
	fake_engine_hold(true);
	check_eq_int(hccld_memory_fill_async(device, 8, 4, 8, stream), 0);
	check_eq_int(hccld_memory_copy_async(host, 8, device, 8, HCCLD_COPY_DEFAULT, stream), 0);
	check_eq_int(hccld_stream_destroy(stream, true), 0);
	check_all(host, 3, 8);
	/* staging memory has gone back all the same: at most one slab of it is kept */
	check_le_uint(fake_segments(), segments + 1);
	fake_engine_stop();
}

static void *wait_for_the_end(void *arg)
{
	check_eq_int(hccld_stream_wait(arg, -1), -ECANCELED);
	return NULL;
}

TEST(stream_end_releases_its_waiters)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);
	pthread_t threads[3];

	fake_engine_start(true);
	check_eq_int(set(stream, device, 1), 0);
	for (unsigned int i = 0; i < 3; i++)
		check_eq_int(pthread_create(&threads[i], NULL, wait_for_the_end, stream), 0);
	usleep(20000);
	hccld_stream_stop_all(fake_context());
	check_eq_uint(atomic_load(&fake_context()->words->sleepers), 0);
	for (unsigned int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	hccld_stream_end_all(fake_context());
	fake_engine_stop();
}

TEST(stream_wait_notices_that_the_daemon_has_gone)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1);

	fake_engine_start(true);
	check_eq_int(set(stream, device, 1), 0);
	fake_hang_up();
	check_eq_int(hccld_stream_wait(stream, -1), -ENOTCONN);
	check_eq_int(hccld_acl_result(-ENOTCONN), 507010);
	fake_engine_stop();
}

/* A program that waits a little, does something else, and comes again. */
TEST(stream_short_waits_notice_that_the_daemon_has_gone)
{
	struct hccld_stream *stream = stream_make();

	fake_engine_start(true);
	check_eq_int(set(stream, memory_make(HCCLD_MEMORY_DEVICE, 1), 1), 0);
	check_eq_int(hccld_stream_wait(stream, 10), -ETOOMANYREFS);
	fake_hang_up();
	check_eq_int(hccld_stream_wait(stream, 10), -ENOTCONN);
	check_eq_int(hccld_stream_wait(stream, 0), -ENOTCONN);
	fake_engine_stop();
}

static void on_signal(int signal)
{
}

/* A profiler's timer: no sleep ever lasts. */
TEST(stream_wait_under_signals_notices_that_the_daemon_has_gone)
{
	const struct itimerval often = { { .tv_usec = 10000 }, { .tv_usec = 10000 } };
	const struct sigaction action = { .sa_handler = on_signal };
	struct hccld_stream *stream = stream_make();

	fake_engine_start(true);
	check_eq_int(set(stream, memory_make(HCCLD_MEMORY_DEVICE, 1), 1), 0);
	check_eq_int(sigaction(SIGALRM, &action, NULL), 0);
	check_eq_int(setitimer(ITIMER_REAL, &often, NULL), 0);
	fake_hang_up();
	check_eq_int(hccld_stream_wait(stream, -1), -ENOTCONN);
	check_eq_int(setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL), 0);
	fake_engine_stop();
}

TEST(memory_checks_come_in_the_order_of_cann)
{
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1024), host[1024];

	/* -EFAULT is 100000, -EINVAL and -ESPIPE are 107000 */
	check_eq_int(hccld_memory_copy(NULL, 0, host, 0, 99), -EFAULT);
	check_eq_int(hccld_memory_copy(device, 0, NULL, 0, 99), -EFAULT);
	check_eq_int(hccld_memory_copy(device, 1024, device, 0, 99), -EINVAL);
	check_eq_int(hccld_memory_copy(device, 0, device, 1, 99), -EINVAL);
	check_eq_int(hccld_memory_copy(device, 10, device, 11, 99), -EINVAL);
	check_eq_int(hccld_memory_copy(device, 10, device, 10, 99), 0);
	check_eq_int(hccld_memory_copy(device, 10, host, 10, 99), -EFAULT);
	check_eq_int(hccld_memory_copy(device, 10, host, 10, -1), -EFAULT);
	check_eq_int(hccld_memory_copy(device, 10, device + 20, 10, HCCLD_COPY_INNER_DEVICE),
		     -EFAULT);
	check_eq_int(hccld_memory_copy(device, 10, device + 20, 10, HCCLD_COPY_INTER_DEVICE),
		     -EFAULT);
	check_eq_int(hccld_memory_copy(host, 10, device, 10, HCCLD_COPY_HOST_TO_DEVICE), -ESPIPE);
	check_str_contains(hccld_error_take(), "dst");
	check_eq_int(hccld_memory_copy(device, 10, device + 20, 10, HCCLD_COPY_HOST_TO_DEVICE),
		     -EINVAL);
	check_eq_int(hccld_memory_copy(device, 10, host, 10, HCCLD_COPY_DEVICE_TO_HOST), -EINVAL);
	check_eq_int(hccld_memory_copy(host, 10, host + 20, 10, HCCLD_COPY_DEVICE_TO_HOST),
		     -ESPIPE);
	check_eq_int(hccld_memory_copy(device, 2000, host, 1025, HCCLD_COPY_HOST_TO_DEVICE),
		     -EINVAL);
	check_str_contains(hccld_error_take(), "1024");
	check_eq_int(hccld_memory_copy(device + 1000, 2000, host, 25, HCCLD_COPY_DEFAULT), -EINVAL);
	check_eq_int(hccld_memory_copy(device + 1000, 2000, host, 24, HCCLD_COPY_DEFAULT), 0);
	check_eq_int(hccld_memory_copy(device, 10, host, 10, HCCLD_COPY_HOST_TO_BUFFER_TO_DEVICE),
		     0);
	check_eq_int(hccld_memory_copy(device, 10, device + 5, 10, HCCLD_COPY_DEVICE_TO_DEVICE), 0);
	check_eq_int(hccld_memory_fill(NULL, 0, 0, 0), -EFAULT);
	check_eq_int(hccld_memory_fill(device, 10, 0, 0), -EINVAL);
	check_eq_int(hccld_memory_fill(device, 10, 0, 11), -EINVAL);
	check_eq_int(hccld_memory_fill(device, 2000, 0, 1025), -EINVAL);
	check_eq_int(hccld_memory_fill(device, 1024, 0xabcd, 1024), 0);
	check_all(device, 0xcd, 1024);
}

TEST(memory_checks_of_tasks)
{
	struct hccld_stream *stream = stream_make();
	char *device = memory_make(HCCLD_MEMORY_DEVICE, 1024), host[1024] = { 0 };

	fake_engine_start(false);
	check_eq_int(hccld_memory_copy_async(device, 10, device + 5, 10,
					     HCCLD_COPY_DEVICE_TO_DEVICE, stream),
		     -EINVAL);
	check_str_contains(hccld_error_take(), "overlap");
	check_eq_int(hccld_memory_copy_async(device, 10, device, 10, HCCLD_COPY_DEVICE_TO_DEVICE,
					     stream),
		     0);
	check_eq_int(hccld_memory_copy_async(device, 10, device + 10, 10, HCCLD_COPY_INNER_DEVICE,
					     stream),
		     0);
	check_eq_int(hccld_memory_copy_async(device, 10, host, 10, 8, stream), -EFAULT);
	check_eq_int(hccld_memory_copy_async(device, 2000, host, 1025, HCCLD_COPY_DEFAULT, stream),
		     -EINVAL);
	check_eq_int(hccld_memory_copy_async(device, 10, host, 10, HCCLD_COPY_DEFAULT, host),
		     -EBADF);
	check_eq_int(hccld_memory_copy_async(device, 10, device, 10, HCCLD_COPY_DEFAULT, host),
		     -EBADF);
	check_eq_int(hccld_memory_fill_async(device, 10, 0, 11, stream), -EINVAL);
	check_eq_int(hccld_memory_fill_async(NULL, 10, 0, 11, stream), -EFAULT);
	/* the default stream */
	check_eq_int(hccld_memory_fill_async(device, 10, 9, 10, NULL), 0);
	check_eq_int(hccld_stream_wait_all(fake_context(), -1), 0);
	check_all(device, 9, 10);
	fake_engine_stop();
}
