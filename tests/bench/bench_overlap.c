/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a transfer goes on while its ranks do something else: bench_overlap [MIB]. Rank 0 posts a receive, computes for as long as the
 * transfer takes alone, and synchronizes; rank 1 has posted its send before and sleeps in aclrtSynchronizeStream. Prints how long that
 * takes against computing alone: 1 if nothing is left to be done after it, 2 if all is; and what the transfer takes beside a rank that
 * computes on, which leaves it a processor less than alone.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "measure.h"
#include "ranks.h"

#define REPEATS 15u
#define SETTLE_US 5000	/* rank 1 sleeps by then */
#define ROUNDS 1000000u
#define BESIDE 4u	/* times as long as the transfer takes alone: it ends meanwhile */

static volatile uint64_t sink;

/* Microseconds that so many rounds take. */
static double compute(uint64_t rounds)
{
	uint64_t start_ns = measure_now_ns(), value = sink;

	for (uint64_t i = 0; i < rounds; i++) {
		value = value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(value));
	}
	sink = value;
	return (double)(measure_now_ns() - start_ns) / 1e3;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/*
 * One transfer of bytes that say which it is; microseconds from rank 0's posting until it has synchronized, with @rounds of computing
 * between, and until rank 1 has. NULL: nobody asks.
 */
static double transfer(const struct rank *rank, char *memory, size_t size, uint64_t rounds, double *ret_sender_us)
{
	static int value;
	HcclSendRecvItem item = { rank->rank ? HCCL_SEND : HCCL_RECV, memory, size, HCCL_DATA_TYPE_INT8, rank->rank ^ 1 };
	uint64_t start_ns, end_ns;

	value++;
	if (rank->rank)
		memset(memory, value, size);
	ranks_barrier();
	if (rank->rank == 0)
		usleep(SETTLE_US);
	start_ns = measure_now_ns();
	MUST(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
	if (rank->rank == 0 && rounds)
		compute(rounds);
	MUST(aclrtSynchronizeStream(rank->stream));
	end_ns = measure_now_ns();
	for (size_t i = 0; rank->rank == 0 && i < size; i++) {
		if (memory[i] != (char)value) {
			fprintf(stderr, "wrong byte at %zu of transfer %d\n", i, value);
			exit(1);
		}
	}
	if (ret_sender_us)
		*ret_sender_us = (double)(ranks_maximum(rank->rank ? end_ns : 0) - ranks_broadcast(start_ns)) / 1e3;
	return (double)(end_ns - start_ns) / 1e3;
}

static double median(double *values)
{
	qsort(values, REPEATS, sizeof(*values), compare);
	return values[REPEATS / 2];
}

static int run_rank(const struct rank *rank, void *data)
{
	const char *name = getenv("BENCH_NAME");
	const size_t size = *(size_t *)data;
	double alone_us[REPEATS], beside_us[REPEATS], computing_us[REPEATS], both_us[REPEATS], ratios[REPEATS], round_us;
	char *memory = ranks_memory(size);

	for (uint32_t i = 0; i < REPEATS; i++) {
		computing_us[i] = rank->rank == 0 ? compute(ROUNDS) : 0;
		transfer(rank, memory, size, 0, NULL);
	}
	round_us = median(computing_us) / ROUNDS;
	/* what the transfer takes alone changes with the machine, so each is compared with the one just before it */
	for (uint32_t i = 0; i < REPEATS; i++) {
		uint64_t rounds;

		alone_us[i] = transfer(rank, memory, size, 0, NULL);
		rounds = rank->rank == 0 ? (uint64_t)(alone_us[i] / round_us) + 1 : 0;
		computing_us[i] = compute(rounds);
		both_us[i] = transfer(rank, memory, size, rounds, NULL);
		transfer(rank, memory, size, BESIDE * rounds, &beside_us[i]);
		ratios[i] = both_us[i] / computing_us[i];
	}
	if (rank->rank == 0)
		printf("overlap peer=%s np=2 case=overlap:%zum alone_us=%.0f beside_us=%.0f computing_us=%.0f both_us=%.0f ratio=%.3f\n",
		       name ? name : "hccld", size >> 20, median(alone_us), median(beside_us), median(computing_us), median(both_us),
		       median(ratios));
	return 0;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 64) << 20;

	if (!size)
		return fprintf(stderr, "usage: bench_overlap [MIB]\n"), 2;
	return ranks_run(2, run_rank, &size);
}
