/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program under ThreadSanitizer with libraries that are not: it knows the order that streams make between kernels, host functions and
 * threads that synchronize, and still tells of what has none.
 */
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccld/host_kernel.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

enum { WORDS = 1000, RACES = 66 };

static void add(uint32_t block, uint32_t blocks, void *args)
{
	uint32_t *words = *(uint32_t **)args;

	for (uint32_t i = block; i < WORDS; i += blocks)
		words[i]++;
}

/* The words of a kernel go to other blocks in the next one. */
static void add_reversed(uint32_t block, uint32_t blocks, void *args)
{
	add(blocks - 1 - block, blocks, args);
}

static void touch(volatile uint32_t *words)
{
	words[WORDS / 2] += 0;
}

static void add_as_function(void *args)
{
	add(0, 1, args);
}

static void launch(HccldHostKernel kernel, uint32_t *words, aclrtStream stream)
{
	check_ok(HccldLaunchHostKernel(kernel, 4, &words, sizeof(words), stream));
}

static void one_stream(aclrtStream stream, uint32_t *words)
{
	uint32_t host[WORDS] = { 0 };

	for (uint32_t round = 1; round <= 20; round++) {
		check_ok(aclrtMemcpy(words, sizeof(host), host, sizeof(host), ACL_MEMCPY_HOST_TO_DEVICE));
		touch(words);
		launch(add, words, stream);
		launch(add_reversed, words, stream);
		check_ok(aclrtLaunchHostFunc(stream, add_as_function, &words));
		launch(add_reversed, words, stream);
		check_ok(aclrtSynchronizeStream(stream));
		touch(words);
		check_ok(aclrtMemcpy(host, sizeof(host), words, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST));
		check_eq_uint(host[WORDS - 1], 4 * round);
	}
}

static void two_streams(aclrtStream stream, aclrtStream other, uint32_t *words)
{
	aclrtEvent event, last;
	aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;

	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtCreateEvent(&last));
	launch(add, words, stream);
	check_ok(aclrtRecordEvent(event, stream));
	check_ok(aclrtStreamWaitEvent(other, event));
	launch(add_reversed, words, other);
	check_ok(aclrtRecordEvent(last, other));
	check_ok(aclrtSynchronizeEvent(last));
	touch(words);
	launch(add, words, stream);
	check_ok(aclrtRecordEvent(event, stream));
	while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE)
		check_ok(aclrtQueryEventStatus(event, &status));
	touch(words);
	check_ok(aclrtDestroyEvent(event));
	check_ok(aclrtDestroyEvent(last));
}

static uint32_t *setting(aclrtStream streams[2])
{
	uint32_t *words;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtMalloc((void **)&words, WORDS * sizeof(*words), ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtCreateStream(&streams[0]));
	check_ok(aclrtCreateStream(&streams[1]));
	return words;
}

static void in_order(void)
{
	aclrtStream streams[2];
	uint32_t *words = setting(streams);

	one_stream(streams[0], words);
	two_streams(streams[0], streams[1], words);
}

static _Atomic bool gate;

static void add_later(uint32_t block, uint32_t blocks, void *args)
{
	/* relaxed: no order */
	while (!atomic_load_explicit(&gate, memory_order_relaxed))
		sched_yield();
	add(block, blocks, args);
}

/* The order of one stream is none of another. */
static void without_order(void)
{
	aclrtStream streams[2];
	uint32_t *words = setting(streams);

	launch(add_later, words, streams[0]);
	check_ok(aclrtSynchronizeStream(streams[1]));
	touch(words);
	atomic_store_explicit(&gate, true, memory_order_relaxed);
	check_ok(aclrtSynchronizeStream(streams[0]));
}

static int status_of(void (*body)(void))
{
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		body();
		exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(private_daemon_stop(&daemon), 0);
	return status;
}

TEST_TIMEOUT(the_order_of_streams_is_no_race, 60)
{
	check_eq_int(status_of(in_order), 0);
}

TEST_TIMEOUT(what_has_no_order_is_one, 60)
{
	check_eq_int(status_of(without_order), RACES << 8);
}
