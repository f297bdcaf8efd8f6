/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a world of the random test: a thread or a process. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "hccl/hccl_types.h"
#include "plan.h"

/* In memory that all ranks share, also those of other processes. */
struct rank_shared {
	_Atomic uint32_t failed;
	_Atomic uint32_t root_ready[PLAN_COMMS];
	HcclRootInfo roots[PLAN_COMMS];
	_Atomic uint64_t bytes_checked, calls;
};

/* @window_count: how many windows of the world to run. Ends the process with status 1 on the first error, which it names on stderr. */
void rank_run(const struct plan_world *world, uint32_t rank, uint32_t window_count, struct rank_shared *shared);
