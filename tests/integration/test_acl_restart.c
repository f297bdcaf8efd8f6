/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper while threads make requests and wait for streams: they notice nothing but a pause. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/worker.h"

static _Atomic int stop;
static _Atomic unsigned long rounds;

static void *work(void *arg)
{
	const int value = (int)(intptr_t)arg;
	aclrtStream stream;

	check_ok(aclrtSetDevice(value % 2));
	while (!atomic_load(&stop)) {
		unsigned char *memory = NULL;

		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtMalloc((void **)&memory, 300000, ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtMemsetAsync(memory, 300000, value, 300000, stream));
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_int(memory[299999], value);
		check_ok(aclrtFree(memory));
		check_ok(aclrtDestroyStream(stream));
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void program(void)
{
	pthread_t threads[4];
	unsigned long before;
	size_t had;

	check_ok(aclrtSetDevice(0));
	had = job_free_memory();
	for (intptr_t i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	sleep(2);
	/* the daemon was killed meanwhile; they are all at work */
	before = atomic_load(&rounds);
	for (int i = 0; atomic_load(&rounds) < before + 100; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq_uint(job_free_memory(), had);
}

/* ---- events and host functions that are pending ---- */

#define CHAIN 40

struct chain {
	unsigned char *memory;
	uint32_t calls[CHAIN], count;
};

struct link {
	struct chain *chain;
	uint32_t number;
};

static void link_call(void *arg)
{
	struct link *link = arg;

	link->chain->calls[link->chain->count++] = link->number;
	link->chain->memory[0] = (unsigned char)link->number;
	usleep(link->number % 8 ? 0 : 2000);
}

/* Two streams in turn, each waits for the other's event; a host function in each; every one must run once, in order. */
static void *work_in_chains(void *arg)
{
	const int device = (int)(intptr_t)arg % 2;
	struct link links[CHAIN];
	struct chain chain;
	aclrtStream streams[2];
	aclrtEvent event;
	float ms;
	aclrtEvent start;

	check_ok(aclrtSetDevice(device));
	chain.memory = job_memory(2 * CHAIN, 0);
	check_ok(aclrtCreateStream(&streams[0]));
	check_ok(aclrtCreateStream(&streams[1]));
	check_ok(aclrtCreateEvent(&event));
	check_ok(aclrtCreateEvent(&start));
	while (!atomic_load(&stop)) {
		chain.count = 0;
		check_ok(aclrtRecordEvent(start, streams[0]));
		for (uint32_t i = 0; i < CHAIN; i++) {
			aclrtStream stream = streams[i % 2];

			links[i] = (struct link){ &chain, i };
			if (i)
				check_ok(aclrtStreamWaitEvent(stream, event));
			check_ok(aclrtLaunchHostFunc(stream, link_call, &links[i]));
			/* what the function has written */
			check_ok(aclrtMemcpyAsync(chain.memory + 1 + i, 1, chain.memory, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
			check_ok(aclrtRecordEvent(event, stream));
		}
		check_ok(aclrtSynchronizeEvent(event));
		check_ok(aclrtEventElapsedTime(&ms, start, event));
		check_eq_uint(chain.count, CHAIN);
		for (uint32_t i = 0; i < CHAIN; i++) {
			check_eq_uint(chain.calls[i], i);
			check_eq_uint(chain.memory[1 + i], i);
		}
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static void chains(void)
{
	unsigned long before;
	pthread_t threads[3];

	for (intptr_t i = 0; i < 3; i++)
		check_eq_int(pthread_create(&threads[i], NULL, work_in_chains, (void *)i), 0);
	sleep(2);
	before = atomic_load(&rounds);
	for (int i = 0; atomic_load(&rounds) < before + 10; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* ---- what may not be done twice ---- */

#define SUMS (16u << 20)	/* elements */

/* Additions in place, one after the other, all the time: not one is lost or made twice. */
static void reductions(void)
{
	uint32_t *to, *from, count = 0;
	aclrtStream stream;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	to = job_memory(SUMS * 4ull, 0);
	from = job_memory(SUMS * 4ull, 0);
	for (uint32_t i = 0; i < SUMS; i++)
		from[i] = i * 2654435761u | 1;
	for (time_t end = time(NULL) + 3; time(NULL) < end; count += 2) {
		check_ok(aclrtReduceAsync(to, from, SUMS * 4ull, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_UINT32, stream, NULL));
		check_ok(aclrtReduceAsync(to, from, SUMS * 4ull, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_UINT32, stream, NULL));
		check_ok(aclrtSynchronizeStream(stream));
	}
	for (uint32_t i = 0; i < SUMS; i++)
		check_eq_uint(to[i], count * from[i]);
	check_gt_int(count, 2);
}

/* @body in a process, whose daemon is killed @kills times within its first 1.5 s. */
static void run_under_kills(void (*body)(void), int kills)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	for (int i = 0; i < kills; i++) {
		usleep(700000);
		worker_kill(daemon.pid);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

TEST_TIMEOUT(acl_events_and_host_functions_survive_restarts, 60)
{
	run_under_kills(chains, 2);
}

TEST_TIMEOUT(acl_reductions_survive_restarts, 60)
{
	run_under_kills(reductions, 2);
}

TEST(acl_requests_survive_a_restart_of_the_daemon)
{
	run_under_kills(program, 1);
}
