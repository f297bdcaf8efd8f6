/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper while threads are made, used and ended: nothing is lost, nothing is done twice, nothing stays. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/private_daemon.h"
#include "tests/support/thread.h"
#include "tests/support/worker.h"

#define COUNT 4096u
#define KILLS 2 /* a third within 10 s, and the daemon forgets everything */
#define DAEMONS 5

static pid_t keeper;
static uint32_t delay_us; /* before the first kill */
static _Atomic bool is_over;

static void kill_daemon(void)
{
	worker_replace(keeper);
	(void)job_free_memory();
}

/* At some moment of what the case does meanwhile. */
static void *killer(void *arg)
{
	(void)arg;
	check_ok(aclrtSetDevice(0));
	for (int i = 0; i < KILLS; i++) {
		usleep(delay_us * (1 + (useconds_t)i));
		kill_daemon();
	}
	atomic_store(&is_over, true);
	return NULL;
}

/* With a limit on streams and a device with few notifies: what stayed of a kill would be missing soon. */
static void run(void (*body)(void))
{
	static const char *const options[] = { "--keeper",	       "--streams-per-tenant", "9", "--notifies-per-device", "40",
					       "--log-level",	       "warning",	       NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	keeper = daemon.pid;
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		check_ok(aclrtSetDevice(0));
		body();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}

static void run_all(void (*body)(void))
{
	for (uint32_t i = 0; i < DAEMONS; i++) {
		delay_us = 30000 + i * 17041;
		run(body);
	}
}

/* ---- threads are there afterwards, and what is queued goes on ---- */

static void survive(void)
{
	const uint32_t notifies = 2;
	ThreadHandle threads[2], wrapped, alone;
	unsigned char *memory = job_memory(64, 5);
	HcclComm comm = job_alone();
	aclrtStream stream;

	check_ok(aclrtCreateStream(&stream));
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 2, 2, threads));
	check_ok(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 2, &wrapped));
	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &notifies, &alone));
	/* the chain: each waits for the one before */
	check_ok(HcommThreadNotifyWaitOnThread(threads[1], 1, 0));
	check_ok(HcommThreadNotifyRecordOnThread(threads[1], wrapped, 0));
	check_ok(HcommThreadNotifyWaitOnThread(wrapped, 0, 0));
	check_ok(HcommThreadNotifyRecordOnThread(wrapped, alone, 1));
	check_ok(HcommThreadNotifyWaitOnThread(alone, 1, 0));
	check_ok(HcommLocalCopyOnThread(alone, memory + 32, memory, 16));
	kill_daemon();
	check_ok(HcommThreadNotifyRecordOnThread(threads[0], threads[1], 1));
	check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(alone), 10000));
	check_eq_int(memory[47], 5);
	/* made of an earlier daemon's, they go as others do */
	check_ok(HcommThreadFree(&alone, 1));
	check_ok(HcclCommDestroy(comm));
	kill_daemon();
	check_ok(aclrtDestroyStream(stream));
	for (int i = 0; i < 20; i++) {
		comm = job_alone();
		check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 8, 5, (ThreadHandle[8]){ 0 }));
		check_ok(HcclCommDestroy(comm));
	}
}

TEST_TIMEOUT(threads_survive_restarts_of_the_daemon, 60)
{
	run(survive);
}

/* ---- while they come and go ---- */

static void churn(void)
{
	const uint32_t notifies[3] = { 5, 0, 5 };
	ThreadHandle threads[3], of_comm[3];
	uint32_t rounds = 0;
	pthread_t thread;
	HcclComm comm;

	check_eq_int(pthread_create(&thread, NULL, killer, NULL), 0);
	for (; !atomic_load(&is_over) || rounds < 100; rounds++) {
		comm = job_alone();
		check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 3, notifies, threads));
		check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 3, 5, of_comm));
		check_ok(HcommThreadNotifyRecordOnThread(threads[0], of_comm[2], 4));
		check_ok(HcommThreadNotifyWaitOnThread(of_comm[2], 4, 20));
		check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(of_comm[2]), 20000));
		if (rounds % 2)
			check_ok(HcommThreadFree(threads, 3));
		check_ok(HcclCommDestroy(comm));
		if (rounds % 2 == 0)
			check_ok(HcommThreadFree(threads, 3));
	}
	pthread_join(thread, NULL);
	/* all that there may be can be had */
	comm = job_alone();
	check_ok(HcclThreadAcquire(comm, COMM_ENGINE_CPU, 8, 5, (ThreadHandle[8]){ 0 }));
	check_ok(HcclCommDestroy(comm));
}

TEST_TIMEOUT(nothing_stays_of_threads_that_a_kill_met, 120)
{
	run_all(churn);
}

/* ---- while they work: sums that are made once and copies that come after them ---- */

static void work(void)
{
	const uint32_t notifies[2] = { 1, 1 };
	int32_t *sum = job_memory(COUNT * sizeof(*sum), 0), *ones = job_memory(COUNT * sizeof(*ones), 0);
	int32_t *copy = job_memory(COUNT * sizeof(*copy), 0);
	ThreadHandle threads[2];
	uint32_t rounds = 0;
	pthread_t thread;

	for (uint32_t i = 0; i < COUNT; i++)
		ones[i] = (int32_t)i % 5;
	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 2, notifies, threads));
	check_eq_int(pthread_create(&thread, NULL, killer, NULL), 0);
	for (; !atomic_load(&is_over) || rounds < 1000; rounds++) {
		/* the one adds, the other copies what has been added, the first goes on when that is done */
		check_ok(HcommLocalReduceOnThread(threads[0], sum, ones, COUNT, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
		check_ok(HcommThreadNotifyRecordOnThread(threads[0], threads[1], 0));
		check_ok(HcommThreadNotifyWaitOnThread(threads[1], 0, 20));
		check_ok(HcommLocalCopyOnThread(threads[1], copy, sum, COUNT * sizeof(*sum)));
		check_ok(HcommThreadNotifyRecordOnThread(threads[1], threads[0], 0));
		check_ok(HcommThreadNotifyWaitOnThread(threads[0], 0, 20));
		if (rounds % 64)
			continue;
		check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(threads[0]), 20000));
		for (uint32_t i = 0; i < COUNT; i++)
			if (copy[i] != (int32_t)((rounds + 1) * (i % 5)) || sum[i] != copy[i])
				test_fail(__FILE__, __LINE__, "round %u, element %u: %d and %d", rounds, i, sum[i], copy[i]);
	}
	check_ok(aclrtSynchronizeStreamWithTimeout(thread_stream(threads[0]), 20000));
	for (uint32_t i = 0; i < COUNT; i++)
		check_eq_int(sum[i], (int32_t)(rounds * (i % 5)));
	pthread_join(thread, NULL);
	check_ok(HcommThreadFree(threads, 2));
}

TEST_TIMEOUT(primitives_are_done_once, 120)
{
	run_all(work);
}
