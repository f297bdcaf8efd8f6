/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator as a host kernel: every rank gives every other one number. A block for each peer stores it in the peer's memory, then
 * raises a flag there (release), and waits for the flag of that peer (acquire) before it reads what came with it.
 *
 *   cc flags.c -o flags -I$ASCEND_HOME_PATH/include -L$ASCEND_HOME_PATH/lib64 -Wl,--no-as-needed -lhccl -lascendcl -lhcomm -lhccld
 *   hcclctl run -n 4 -- ./flags $(mktemp -u)
 */
#include <sched.h>
#include <stdatomic.h>

#include "example.h"
#include "hccld/host_kernel.h"

/* In device memory. A flag has a cache line of its own. */
struct area {
	struct {
		_Alignas(64) _Atomic uint64_t flag;
		uint64_t number;
	} from[RANKS_MAX];
	_Atomic uint64_t sum;
};

struct arguments {
	uint32_t rank;
	uint64_t turn;	/* flags count turns, so nobody has to lower them */
	struct area *areas[RANKS_MAX];
};

static void exchange(uint32_t block, uint32_t block_count, void *data)
{
	const struct arguments *arguments = data;
	struct area *mine = arguments->areas[arguments->rank], *theirs = arguments->areas[block];

	(void)block_count;
	theirs->from[arguments->rank].number = 100 * arguments->turn + arguments->rank;
	/* release: who sees the flag sees the number */
	atomic_store_explicit(&theirs->from[arguments->rank].flag, arguments->turn, memory_order_release);
	while (atomic_load_explicit(&mine->from[block].flag, memory_order_acquire) < arguments->turn)
		sched_yield();
	atomic_fetch_add_explicit(&mine->sum, mine->from[block].number, memory_order_relaxed);
}

int main(int argc, char **argv)
{
	struct job job = { 0 };
	struct arguments arguments = { 0 };
	uint64_t sum = 0, expected = 0;

	TRY(argc != 2);
	job_begin(&job, argv[1]);
	job_connect(&job, COMM_ENGINE_AIV, sizeof(struct area), 0);
	arguments.rank = job.rank;
	for (uint32_t i = 0; i < job.size; i++)
		arguments.areas[i] = job.areas[i];
	for (arguments.turn = 1; arguments.turn <= 3; arguments.turn++) {
		TRY(HccldLaunchHostKernel(exchange, job.size, &arguments, sizeof(arguments), job.stream));
		/* the next turn writes over the numbers: not before all have read them */
		TRY(HcclBarrier(job.comm, job.stream));
		for (uint32_t i = 0; i < job.size; i++)
			expected += 100 * arguments.turn + i;
	}
	TRY(aclrtSynchronizeStream(job.stream));
	/* host code copies; it does not touch device memory */
	TRY(aclrtMemcpy(&sum, sizeof(sum), &arguments.areas[job.rank]->sum, sizeof(sum), ACL_MEMCPY_DEVICE_TO_HOST));
	printf("rank %u of %u: the sum is %llu\n", job.rank, job.size, (unsigned long long)sum);
	job_end(&job);
	return sum != expected;
}
