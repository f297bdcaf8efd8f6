/* SPDX-License-Identifier: Apache-2.0 */
/* The words of suspended ranks in the communicator region (proto/region.h). Control thread. */
#include "proto/region.h"
#include "registry/comm.h"

void rank_suspend(struct rank *rank)
{
	struct comm_region *region = rank->comm->view.region;
	struct comm_member *member = &region->members[rank->rank];
	uint32_t epoch = atomic_load_explicit(&member->epoch, memory_order_relaxed);
	uint64_t number = atomic_load_explicit(&region->suspensions, memory_order_relaxed) + 1;

	if (epoch & 1)
		return;
	atomic_store_explicit(&region->suspensions, number, memory_order_relaxed);
	atomic_store_explicit(&member->suspended_at, number, memory_order_relaxed);
	/* whoever sees the epoch finds the number */
	atomic_store_explicit(&member->epoch, epoch + 1, memory_order_release);
}

void rank_resume(struct rank *rank)
{
	struct comm_region *region = rank->comm->view.region;
	struct comm_member *member = &region->members[rank->rank];
	uint32_t epoch = atomic_load_explicit(&member->epoch, memory_order_relaxed);

	if (!(epoch & 1))
		return;
	atomic_store_explicit(&member->resumed_at,
			      atomic_load_explicit(&region->suspensions, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&member->epoch, epoch + 1, memory_order_release);
}
