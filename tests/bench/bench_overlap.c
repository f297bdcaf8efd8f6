/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a transfer goes on while its ranks do something else: bench_overlap [MIB]. Rank 0 posts a receive, computes for as long as the
 * transfer takes alone, and synchronizes; rank 1 has posted its send before and sleeps in aclrtSynchronizeStream. Prints how long that takes
 * against computing alone: 1 if nothing is left to be done after it, 2 if all is.
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

static volatile uint64_t sink;

static uint64_t compute_ns(uint64_t rounds)
{
	uint64_t start_ns = measure_now_ns(), value = sink;

	for (uint64_t i = 0; i < rounds; i++) {
		value = value * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(value));
	}
	sink = value;
	return measure_now_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median_us(uint64_t *values)
{
	qsort(values, REPEATS, sizeof(*values), compare);
	return (double)values[REPEATS / 2] / 1e3;
}

/* One transfer of bytes that say which it is; rank 0: how long from posting to synchronized, with @rounds of computing between. */
static uint64_t transfer_ns(const struct rank *rank, char *memory, size_t size, uint64_t rounds)
{
	static int value;
	HcclSendRecvItem item = { rank->rank ? HCCL_SEND : HCCL_RECV, memory, size, HCCL_DATA_TYPE_INT8, rank->rank ^ 1 };
	uint64_t start_ns;

	value++;
	if (rank->rank)
		memset(memory, value, size);
	ranks_barrier();
	if (rank->rank == 0)
		usleep(SETTLE_US);
	start_ns = measure_now_ns();
	MUST(HcclBatchSendRecv(&item, 1, rank->comm, rank->stream));
	if (rank->rank == 0 && rounds)
		compute_ns(rounds);
	MUST(aclrtSynchronizeStream(rank->stream));
	start_ns = measure_now_ns() - start_ns;
	for (size_t i = 0; rank->rank == 0 && i < size; i++) {
		if (memory[i] != (char)value) {
			fprintf(stderr, "wrong byte at %zu of transfer %d\n", i, value);
			exit(1);
		}
	}
	return start_ns;
}

static int run_rank(const struct rank *rank, void *data)
{
	const char *name = getenv("BENCH_NAME");
	const size_t size = *(size_t *)data;
	uint64_t alone[REPEATS], computing[REPEATS], both[REPEATS], rounds = 1;
	char *memory = ranks_memory(size);
	double alone_us, both_us, computing_us;

	for (uint32_t i = 0; i < REPEATS; i++)
		alone[i] = transfer_ns(rank, memory, size, 0);
	for (uint32_t i = 0; rank->rank == 0 && i < REPEATS; i++)
		computing[i] = compute_ns(ROUNDS);
	if (rank->rank == 0)
		rounds = (uint64_t)(median_us(alone) * ROUNDS / median_us(computing)) + 1;
	for (uint32_t i = 0; i < REPEATS; i++) {
		alone[i] = transfer_ns(rank, memory, size, 0);
		computing[i] = rank->rank == 0 ? compute_ns(rounds) : 0;
		both[i] = transfer_ns(rank, memory, size, rounds);
	}
	alone_us = median_us(alone);
	computing_us = median_us(computing);
	both_us = median_us(both);
	if (rank->rank == 0)
		printf("overlap peer=%s np=2 case=overlap:%zum alone_us=%.0f computing_us=%.0f both_us=%.0f ratio=%.3f\n",
		       name ? name : "hccld", size >> 20, alone_us, computing_us, both_us, both_us / computing_us);
	return 0;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoull(argv[1], NULL, 10) : 64) << 20;

	if (!size)
		return fprintf(stderr, "usage: bench_overlap [MIB]\n"), 2;
	return ranks_run(2, run_rank, &size);
}
