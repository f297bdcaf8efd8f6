/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as processes; they meet in memory that all of them share. */
#include "ranks.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "tests/support/private_daemon.h"

#define DEVICES 8
#define RANKS_MAX 1024

static struct meeting {
	HcclRootInfo root;
	_Atomic uint32_t count, generation;
	_Atomic uint64_t value, maxima[2];
} *meeting;

static uint32_t own_rank, rank_count, maximum_calls;

void ranks_barrier(void)
{
	uint32_t generation = atomic_load(&meeting->generation);

	if (atomic_fetch_add(&meeting->count, 1) + 1 == rank_count) {
		atomic_store(&meeting->count, 0);
		atomic_fetch_add(&meeting->generation, 1);
		syscall(SYS_futex, &meeting->generation, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
		return;
	}
	while (atomic_load(&meeting->generation) == generation)
		syscall(SYS_futex, &meeting->generation, FUTEX_WAIT, generation, NULL, NULL, 0);
}

uint64_t ranks_broadcast(uint64_t value)
{
	uint64_t result;

	if (own_rank == 0)
		atomic_store(&meeting->value, value);
	ranks_barrier();
	result = atomic_load(&meeting->value);
	ranks_barrier();
	return result;
}

uint64_t ranks_maximum(uint64_t value)
{
	_Atomic uint64_t *maximum = &meeting->maxima[maximum_calls++ & 1];
	uint64_t old = atomic_load(maximum), result;

	while (value > old && !atomic_compare_exchange_weak(maximum, &old, value))
		;
	ranks_barrier();
	result = atomic_load(maximum);
	ranks_barrier();
	if (own_rank == 0)
		atomic_store(maximum, 0);
	return result;
}

char *ranks_memory(size_t size)
{
	char *memory;

	MUST(aclrtMalloc((void **)&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	measure_populate(memory, size);
	return memory;
}

static int run_rank(int (*body)(const struct rank *rank, void *data), void *data)
{
	struct rank rank = { .rank = own_rank, .size = rank_count };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	measure_place(own_rank);
	MUST(aclrtSetDevice((int32_t)(own_rank % DEVICES)));
	if (own_rank == 0)
		MUST(HcclGetRootInfo(&meeting->root));
	ranks_barrier();
	MUST(HcclCommInitRootInfo(rank_count, &meeting->root, own_rank, &rank.comm));
	MUST(aclrtCreateStream(&rank.stream));
	return body(&rank, data);
}

static int wait_ranks(const pid_t *pids)
{
	int failed = 0;

	for (uint32_t left = rank_count; left > 0;) {
		int status;
		pid_t pid = wait(&status);

		for (uint32_t i = 0; i < rank_count; i++) {
			if (pids[i] != pid)
				continue;
			left--;
			for (uint32_t k = 0; status && !failed && k < rank_count; k++)
				if (pids[k] != pid)
					kill(pids[k], SIGTERM);
			failed |= status != 0;
		}
	}
	return failed;
}

int ranks_run(uint32_t size, int (*body)(const struct rank *rank, void *data), void *data)
{
	struct private_daemon daemon = { 0 };
	bool own_daemon = !getenv("HCCLD_SOCKET");
	static pid_t pids[RANKS_MAX];
	int failed;

	rank_count = size < RANKS_MAX ? size : RANKS_MAX;
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		return 1;
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	if (own_daemon && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	for (own_rank = 0; own_rank < rank_count; own_rank++) {
		pids[own_rank] = fork();
		if (pids[own_rank] == 0)
			exit(run_rank(body, data));
	}
	failed = wait_ranks(pids);
	if (own_daemon)
		private_daemon_stop(&daemon);
	return failed;
}
