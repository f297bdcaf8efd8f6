/* SPDX-License-Identifier: Apache-2.0 */
/* What both directions of a lane need. */
#include "engine/lane.h"

#include <errno.h>

int lane_open(struct batch *batch, uint32_t head_index, enum item_kind kind, struct lane *lane)
{
	lane->batch = batch;
	lane->comm = batch->rank->comm;
	lane->items = batch->items;
	lane->first = batch->first;
	lane->mask = batch->mask;
	lane->count = batch->task.item_count;
	lane->head = batch_item(batch, head_index);
	lane->kind = kind;
	lane->key = item_key(lane->head);
	lane->rank = batch->rank->rank;
	lane->peer = read_once(lane->head->peer);
	if (lane->peer >= lane->comm->size || lane->peer == lane->rank)
		return -EPROTO;
	lane->source = lane->kind == ITEM_SEND ? lane->rank : lane->peer;
	lane->destination = lane->kind == ITEM_SEND ? lane->peer : lane->rank;
	lane->pair = view_pair_of(lane->comm, lane->source, lane->destination);
	lane->ring = atomic_load_explicit(&lane->pair->ring, memory_order_acquire);
	lane->peer_member = &lane->comm->region->members[lane->peer];
	lane->gate = member_gate(&lane->comm->region->members[lane->rank], lane->peer_member, batch->task.epoch);
	return lane->ring ? 0 : -EPROTO;
}

/* Why items of this lane that are not covered by the pair's words can never be: CAUSE_NONE while they can. */
enum cause lane_peer_cause(const struct lane *lane)
{
	switch (atomic_load_explicit(&lane->peer_member->word, memory_order_acquire)) {
	case MEMBER_DEAD: return CAUSE_PEER_DEAD;
	case MEMBER_LEFT: return CAUSE_PEER_LEFT;
	default: return CAUSE_NONE;
	}
}

bool lane_is_going(const struct lane *lane)
{
	return atomic_load_explicit(&lane->comm->region->members[lane->rank].word, memory_order_acquire) != MEMBER_ALIVE;
}

/* The pair's failure as this end sees it. */
struct fault lane_pair_fault(const struct lane *lane)
{
	struct fault record = *lane->pair->fault, fault;

	if (record.rank == lane->rank)
		return record;
	fault = pair_fault(lane->comm, record.cause == CAUSE_MISMATCH ? CAUSE_MISMATCH : CAUSE_PEER_GAVE_UP, lane->rank, lane->peer,
			   lane->kind);
	fault.local_bytes = record.remote_bytes;
	fault.local_type = record.remote_type;
	fault.remote_bytes = record.local_bytes;
	fault.remote_type = record.local_type;
	fault.number = record.number;
	return fault;
}

/* Ends one item with an error: recorded at the stream and at the rank. */
void lane_item_fail(struct lane *lane, struct item *item, struct fault fault)
{
	fault.item = item->list_index;
	fault.was_earlier = fault.cause == CAUSE_MISMATCH && atomic_load_explicit(&item->number, memory_order_relaxed) != fault.number;
	if (!fault.local_bytes) {
		fault.local_bytes = item->bytes;
		fault.local_type = item->data_type;
	}
	atomic_store_explicit(&item->state, ITEM_FAILED, memory_order_relaxed);
	stream_fault(lane->batch->ring, &fault);
	/* while it lasts, the epoch says so; afterwards all is well */
	if (fault.cause != CAUSE_SUSPENDED)
		member_fault(&lane->comm->region->members[lane->rank], &fault);
}
