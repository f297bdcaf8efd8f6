/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a communicator as processes, for hccld's side of the benchmarks. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "hccl/hccl.h"

struct rank {
	uint32_t rank, size;
	HcclComm comm;
	aclrtStream stream;
};

#define MUST(call)                                                                                                                     \
	do {                                                                                                                           \
		int result_ = (int)(call);                                                                                             \
		if (result_) {                                                                                                         \
			const char *text_ = aclGetRecentErrMsg();                                                                      \
			fprintf(stderr, "%s: %d %s\n", #call, result_, text_ ? text_ : "");                                            \
			exit(1);                                                                                                       \
		}                                                                                                                      \
	} while (0)

/*
 * Runs @body in @size processes, rank r on device r % 8 and where measure_place() puts it. Uses the daemon of HCCLD_SOCKET, else one of its
 * own. 0 if every body returned 0; the first that does not ends the others.
 */
int ranks_run(uint32_t size, int (*body)(const struct rank *rank, void *data), void *data);
/* Device memory as BENCH_HUGE wants it, present and zero. */
char *ranks_memory(size_t size);

/* Of all ranks, in a body. They cost nothing while one waits. */
void ranks_barrier(void);
/* Rank 0's value; the largest value. */
uint64_t ranks_broadcast(uint64_t value);
uint64_t ranks_maximum(uint64_t value);
