/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hccld on the common workload: bench_batch NP CASE... with one process per rank, rank r on device r % 8. A batch is one HcclBatchSendRecv
 * and one aclrtSynchronizeStream. Uses the daemon of HCCLD_SOCKET, else one of its own. BENCH_MS: length of a repetition.
 */
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "tests/support/private_daemon.h"
#include "workload.h"

#define DEVICES 8
#define RANKS_MAX 1024

/* In memory that all ranks share. */
struct meeting {
	HcclRootInfo root;
	_Atomic uint32_t count, generation;
	_Atomic uint64_t value, maxima[2];
};

static struct meeting *meeting;
static uint32_t own_rank, rank_count, maximum_calls;
static HcclComm comm;
static aclrtStream stream;
static HcclSendRecvItem *batch;

#define MUST(call)                                                                                                                     \
	do {                                                                                                                           \
		int result_ = (int)(call);                                                                                             \
		if (result_) {                                                                                                         \
			const char *text_ = aclGetRecentErrMsg();                                                                      \
			fprintf(stderr, "rank %u: %s: %d %s\n", own_rank, #call, result_, text_ ? text_ : "");                         \
			exit(1);                                                                                                       \
		}                                                                                                                      \
	} while (0)

void contender_prepare(const struct workload_item *items, uint32_t count)
{
	free(batch);
	batch = calloc(count, sizeof(*batch));
	for (uint32_t i = 0; i < count; i++)
		batch[i] = (HcclSendRecvItem){
			items[i].sends ? HCCL_SEND : HCCL_RECV, items[i].buffer, items[i].size, HCCL_DATA_TYPE_INT8, items[i].peer,
		};
}

void contender_batch(uint32_t first, uint32_t count)
{
	MUST(HcclBatchSendRecv(batch + first, count, comm, stream));
	MUST(aclrtSynchronizeStream(stream));
}

void contender_barrier(void)
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

uint64_t contender_broadcast(uint64_t value)
{
	uint64_t result;

	if (own_rank == 0)
		atomic_store(&meeting->value, value);
	contender_barrier();
	result = atomic_load(&meeting->value);
	contender_barrier();
	return result;
}

uint64_t contender_maximum(uint64_t value)
{
	_Atomic uint64_t *maximum = &meeting->maxima[maximum_calls++ & 1];
	uint64_t old = atomic_load(maximum), result;

	while (value > old && !atomic_compare_exchange_weak(maximum, &old, value))
		;
	contender_barrier();
	result = atomic_load(maximum);
	contender_barrier();
	if (own_rank == 0)
		atomic_store(maximum, 0);
	return result;
}

static int run_rank(int case_count, char **cases)
{
	const char *ms = getenv("BENCH_MS"), *name = getenv("BENCH_NAME");
	struct workload workload = {
		.name = name ? name : "hccld", .rank = own_rank, .size = rank_count, .area = workload_area(rank_count, case_count, cases),
		.repetition_ns = (ms ? strtoul(ms, NULL, 10) : 40) * 1000000ul, .repetitions = 3,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	MUST(aclrtSetDevice((int32_t)(own_rank % DEVICES)));
	for (int i = 0; i < 2; i++) {
		MUST(aclrtMalloc((void **)&workload.areas[i], workload.area, ACL_MEM_MALLOC_HUGE_FIRST));
		memset(workload.areas[i], 0, workload.area);
	}
	if (own_rank == 0)
		MUST(HcclGetRootInfo(&meeting->root));
	contender_barrier();
	MUST(HcclCommInitRootInfo(rank_count, &meeting->root, own_rank, &comm));
	MUST(aclrtCreateStream(&stream));
	return workload_run(&workload, case_count, cases);
}

/* Waits for all ranks; the first that fails ends the others. */
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

int main(int argc, char **argv)
{
	struct private_daemon daemon = { 0 };
	bool own_daemon = !getenv("HCCLD_SOCKET");
	static pid_t pids[RANKS_MAX];
	int failed;

	rank_count = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	if (rank_count < 2 || rank_count > RANKS_MAX)
		return fprintf(stderr, "usage: bench_batch NP PATTERN:SIZE:ITEMS...\n"), 2;
	meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (meeting == MAP_FAILED)
		return 1;
	setenv("HCCLD_ALLOW_DUPLICATE_ITEMS", "1", 1);
	if (own_daemon && private_daemon_start(&daemon, NULL, NULL) < 0)
		return 1;
	for (own_rank = 0; own_rank < rank_count; own_rank++) {
		pids[own_rank] = fork();
		if (pids[own_rank] == 0)
			exit(run_rank(argc - 2, argv + 2));
	}
	failed = wait_ranks(pids);
	if (own_daemon)
		private_daemon_stop(&daemon);
	return failed;
}
