/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weighted deficit round robin over the flows that have something to copy. Pure: no time, no shared memory. A flow that runs empty
 * leaves the list and loses what it had saved, so that idling earns nothing.
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

struct view_flow *fair_next(struct view_flow **current, uint64_t slice)
{
	struct view_flow *flow = *current;

	if (!flow)
		return NULL;
	if (flow->deficit <= 0) {
		/* its turn begins */
		flow->deficit += (int64_t)(slice * (flow->weight ? flow->weight : 1));
		if (flow->deficit <= 0)
			flow->deficit = (int64_t)slice;
	}
	flow->deficit -= (int64_t)slice;
	if (flow->deficit <= 0)
		*current = flow->next;
	return flow;
}
