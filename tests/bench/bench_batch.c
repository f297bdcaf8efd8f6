/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hccld on the common workload: bench_batch NP CASE... with one process per rank. A batch is one HcclBatchSendRecv and one
 * aclrtSynchronizeStream. BENCH_MS: length of a repetition.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "ranks.h"
#include "workload.h"

struct cases {
	int count;
	char **texts;
};

static const struct rank *own;
static HcclSendRecvItem *batch;

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
	MUST(HcclBatchSendRecv(batch + first, count, own->comm, own->stream));
	MUST(aclrtSynchronizeStream(own->stream));
}

void contender_barrier(void)
{
	ranks_barrier();
}

uint64_t contender_broadcast(uint64_t value)
{
	return ranks_broadcast(value);
}

uint64_t contender_maximum(uint64_t value)
{
	return ranks_maximum(value);
}

static int run_rank(const struct rank *rank, void *data)
{
	const struct cases *cases = data;
	struct workload workload;

	own = rank;
	workload_init(&workload, "hccld", rank->rank, rank->size, cases->count, cases->texts);
	for (int i = 0; i < 2; i++)
		workload.areas[i] = ranks_memory(workload.area);
	return workload_run(&workload, cases->count, cases->texts) != 0;
}

int main(int argc, char **argv)
{
	struct cases cases = { argc - 2, argv + 2 };
	uint32_t size = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;

	if (size < 2)
		return fprintf(stderr, "usage: bench_batch NP PATTERN[!]:SIZE[:ITEMS]...\n"), 2;
	return ranks_run(size, run_rank, &cases);
}
