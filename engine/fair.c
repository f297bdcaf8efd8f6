/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted deficit round robin over what has something to copy, on two levels: tenants, and the flows of each. Pure: no time, no shared
 * memory. Who runs empty leaves the list and loses what it had saved, so that idling earns nothing.
 */
#include "engine/executor.h"

void fair_add(struct view_flow **current, struct view_flow *flow)
{
	flow->deficit = 0;
	if (!*current) {
		flow->next = flow->previous = flow;
		*current = flow;
		return;
	}
	/* behind everybody else: just before the one whose turn it is */
	flow->next = *current;
	flow->previous = (*current)->previous;
	flow->previous->next = flow;
	flow->next->previous = flow;
}

void fair_remove(struct view_flow **current, struct view_flow *flow)
{
	if (flow->next == flow) {
		*current = NULL;
	} else {
		flow->previous->next = flow->next;
		flow->next->previous = flow->previous;
		if (*current == flow)
			*current = flow->next;
	}
	flow->next = flow->previous = NULL;
	flow->deficit = 0;
}

/*
 * A turn is worth @quantum bytes. False: it does not pay for the debt of the turns before, so this one is passed over. What is taken then
 * may be more than is left: that is the next turn's debt.
 */
static bool turn_begin(int64_t *deficit, uint64_t quantum)
{
	if (*deficit <= 0)
		*deficit += (int64_t)quantum;
	return *deficit > 0;
}

/* A debt is a slice at most, so this ends: in the eighth round at the latest. */
struct view_flow *fair_next(struct view_flow **current, uint64_t slice)
{
	struct view_flow *flow = *current;

	if (!flow)
		return NULL;
	while (!turn_begin(&flow->deficit, HCCLD_SLICE / 8 * (flow->weight ? flow->weight : 1)))
		flow = flow->next;
	flow->deficit -= (int64_t)slice;
	*current = flow->deficit > 0 ? flow : flow->next;
	return flow;
}

void fair_share_add(struct view_share **current, struct view_share *share)
{
	share->deficit = 0;
	if (!*current) {
		share->next = share->previous = share;
		*current = share;
		return;
	}
	share->next = *current;
	share->previous = (*current)->previous;
	share->previous->next = share;
	share->next->previous = share;
}

void fair_share_remove(struct view_share **current, struct view_share *share)
{
	if (share->next == share) {
		*current = NULL;
	} else {
		share->previous->next = share->next;
		share->next->previous = share->previous;
		if (*current == share)
			*current = share->next;
	}
	share->next = share->previous = NULL;
	share->deficit = 0;
}

uint32_t share_weight(const struct view_share *share)
{
	uint32_t weight = atomic_load_explicit(&share->weight, memory_order_relaxed);

	return weight ? weight : 1;
}

struct view_share *fair_share_next(struct view_share **current, uint64_t slice)
{
	struct view_share *share = *current;

	if (!share)
		return NULL;
	while (!turn_begin(&share->deficit, (uint64_t)HCCLD_SLICE * share_weight(share)))
		share = share->next;
	share->deficit -= (int64_t)slice;
	*current = share->deficit > 0 ? share : share->next;
	return share;
}
