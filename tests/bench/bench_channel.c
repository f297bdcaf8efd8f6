/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flag that goes to and fro between two ranks by store and load: bench_channel [ROUNDS], through a channel's memory and through plain shared
 * memory, in turns of one run, between threads and between processes. Prints the median and the 99th percentile of a round trip of both, and
 * the ratio of the medians. Against the daemon of HCCLD_SOCKET, else one of its own.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_res.h"
#include "measure.h"
#include "tests/support/private_daemon.h"

#define ROUNDS_DEFAULT 200000u
#define TURN 1000u	/* round trips before the other memory has its turn */
#define SPINS 2000u	/* then somebody else needs the core */
#define AREA 4096u
#define LINE 64u

enum path { CHANNEL, PLAIN, PATHS };

static struct meeting {
	HcclRootInfo root;
	_Atomic uint32_t root_ready;
	_Alignas(LINE) _Atomic uint64_t plain[2][LINE / sizeof(uint64_t)];
} *meeting;

static uint32_t rounds = ROUNDS_DEFAULT;
static const char *mode;

#define MUST(call)                                                                                             \
	do {                                                                                                   \
		int result_ = (int)(call);                                                                     \
		if (result_) {                                                                                 \
			const char *text_ = aclGetRecentErrMsg();                                              \
			fprintf(stderr, "rank %u: %s: %d %s\n", rank, #call, result_, text_ ? text_ : "");     \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

static void await(const _Atomic uint64_t *flag, uint64_t value)
{
	for (uint32_t spins = 0; atomic_load_explicit(flag, memory_order_acquire) != value;) {
		if (++spins % SPINS == 0)
			sched_yield();
	}
}

/* One turn; rank 0 takes the times. */
static void go(uint32_t rank, _Atomic uint64_t *own, _Atomic uint64_t *other, uint64_t *value, uint32_t *samples)
{
	for (uint32_t i = 0; i < TURN; i++) {
		uint64_t start, next = ++*value;

		if (rank) {
			await(own, next);
			atomic_store_explicit(other, next, memory_order_release);
			continue;
		}
		start = measure_now_ns();
		atomic_store_explicit(other, next, memory_order_release);
		await(own, next);
		samples[i] = (uint32_t)(measure_now_ns() - start);
	}
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(uint32_t *const samples[PATHS], size_t count)
{
	for (int path = 0; path < PATHS; path++)
		qsort(samples[path], count, sizeof(uint32_t), compare);
	printf("%-9s  channel p50 %5u ns  p99 %6u ns   plain p50 %5u ns  p99 %6u ns   p50 ratio %.2f\n", mode, samples[CHANNEL][count / 2],
	       samples[CHANNEL][count * 99 / 100], samples[PLAIN][count / 2], samples[PLAIN][count * 99 / 100],
	       (double)samples[CHANNEL][count / 2] / samples[PLAIN][count / 2]);
	fflush(stdout);
}

/* The channel to the other rank. */
static _Atomic uint64_t *connect_to(uint32_t rank, HcclComm comm, void *area)
{
	CommMem mem = { COMM_MEM_TYPE_DEVICE, area, AREA }, *mems;
	HcclMemHandle handle;
	HcclChannelDesc desc;
	ChannelHandle channel;
	uint32_t count;
	char **tags;

	MUST(HcclCommMemReg(comm, "flags", &mem, &handle));
	MUST(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = rank ^ 1;
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	desc.memHandles = &handle;
	desc.memHandleNum = 1;
	MUST(HcclChannelAcquire(comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	MUST(HcclChannelGetRemoteMems(comm, channel, &count, &mems, &tags));
	return mems[0].addr;
}

static void *run_rank(void *data)
{
	const uint32_t rank = (uint32_t)(uintptr_t)data;
	const uint32_t turns = rounds / TURN ? rounds / TURN : 1;
	uint32_t *samples[PATHS];
	_Atomic uint64_t *other;
	uint64_t values[PATHS] = { 0, 0 };
	HcclComm comm;
	void *area;

	MUST(aclrtSetDevice((int32_t)rank));
	if (rank == 0) {
		MUST(HcclGetRootInfo(&meeting->root));
		atomic_store(&meeting->root_ready, 1);
	}
	while (!atomic_load(&meeting->root_ready))
		usleep(100);
	MUST(HcclCommInitRootInfo(2, &meeting->root, rank, &comm));
	MUST(aclrtMalloc(&area, AREA, ACL_MEM_MALLOC_HUGE_FIRST));
	memset(area, 0, AREA);
	for (int path = 0; path < PATHS; path++) {
		samples[path] = calloc((size_t)turns * TURN, sizeof(uint32_t));
		if (!samples[path])
			exit(1);
	}
	other = connect_to(rank, comm, area);
	for (uint32_t turn = 0; turn < turns; turn++) {
		go(rank, area, other, &values[CHANNEL], samples[CHANNEL] + (size_t)turn * TURN);
		go(rank, meeting->plain[rank], meeting->plain[rank ^ 1], &values[PLAIN], samples[PLAIN] + (size_t)turn * TURN);
	}
	if (rank == 0)
		report(samples, (size_t)turns * TURN);
	free(samples[CHANNEL]);
	free(samples[PLAIN]);
	MUST(HcclCommDestroy(comm));
	return NULL;
}

static int run_threads(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_rank, (void *)(uintptr_t)1))
		return 1;
	run_rank(NULL);
	pthread_join(thread, NULL);
	return 0;
}

static int run_processes(void)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return 1;
	run_rank((void *)(uintptr_t)(pid == 0));
	if (pid == 0)
		_exit(0);
	return waitpid(pid, &status, 0) != pid || status;
}

/* In a process of its own, which no daemon knows yet. */
static int run(const char *name, int (*body)(void))
{
	int status;
	pid_t pid;

	mode = name;
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(body());
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

int main(int argc, char **argv)
{
	struct private_daemon daemon;
	bool is_own = !getenv("HCCLD_SOCKET");
	int failed;

	if (argc > 1)
		rounds = (uint32_t)atoi(argv[1]);
	if (is_own && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	failed = run("threads", run_threads) || run("processes", run_processes);
	if (is_own)
		private_daemon_stop(&daemon);
	return failed;
}
