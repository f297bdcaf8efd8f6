/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: the items of one batch with the same peer and direction. What send.c and receive.c share; not for others. Every field of an item
 * is read once and then judged: its client can change it at any time.
 */
#pragma once

#include <string.h>

#include "engine/executor.h"

/* May operations run between two ranks, as far as HcclCommSuspend goes? */
enum gate {
	GATE_OPEN,
	GATE_HELD,	/* wait: the peer will be resumed */
	GATE_ENDED,	/* fail */
};

/* What a lane works on. */
struct lane {
	struct batch *batch;
	struct view_comm *comm;
	struct view_pair *pair;
	struct pair_ring *ring;
	struct item *head;
	uint32_t rank, peer;		/* own rank, the other end */
	uint32_t source, destination;
	enum item_kind kind;
	struct comm_member *peer_member;
	struct item *items;		/* as in struct batch */
	uint64_t first, mask, key;
	uint32_t count;
	enum gate gate;
};

/* Kind and peer of an item as one word: its first eight bytes without type and state. */
static inline uint64_t item_key(const struct item *item)
{
	static const struct item mask = { .kind = 0xff, .peer = 0xffffffff };
	uint64_t word, of_mask;

	memcpy(&word, item, sizeof(word));
	memcpy(&of_mask, &mask, sizeof(of_mask));
	return word & of_mask;
}

/* Item @index of the lane, if it belongs to it. */
static inline __attribute__((always_inline)) struct item *lane_item(struct lane *lane, uint32_t index)
{
	struct item *item = &lane->items[(lane->first + index) & lane->mask];

	/* its client wrote it on another core: asked for some items ahead, a batch of 64 x 8 B takes 3 % less time */
	__builtin_prefetch(&lane->items[(lane->first + index + 6) & lane->mask], 1);
	lane->batch->steps++;
	return index < lane->count && item_key(item) == lane->key ? item : NULL;
}

/* memcpy of an inline payload, without the call. */
static inline void copy_payload(unsigned char *to, const unsigned char *from, uint64_t bytes)
{
	uint64_t word;

	if (bytes < 8) {
		for (uint64_t i = 0; i < bytes; i++)
			to[i] = from[i];
		return;
	}
	for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
		memcpy(&word, from + i, 8);
		memcpy(to + i, &word, 8);
	}
	memcpy(&word, from + bytes - 8, 8);
	memcpy(to + bytes - 8, &word, 8);
}

/* Is offer @number of @item, which is below the pair's tail and not received, complete without its source (P4)? */
static inline bool lane_is_kept(const struct lane *lane, const struct item *item, uint64_t number)
{
	uint64_t bytes = read_once(item->bytes);

	return bytes <= HCCLD_INLINE_MAX ||
	       (bytes <= HCCLD_EAGER_MAX && view_pair_offer(lane->pair, lane->ring, number)->where == OFFER_EAGER);
}

/* @kind: what the head's was when it was looked at; it may say something else by now. 0 or -EPROTO. */
int lane_open(struct batch *batch, uint32_t head_index, enum item_kind kind, struct lane *lane);
/* Why items of this lane that are not covered by the pair's words can never be: CAUSE_NONE while they can. */
enum cause lane_peer_cause(const struct lane *lane);
/* The own rank has left, or its process has ended: its tasks are about to be taken away. */
bool lane_is_going(const struct lane *lane);
/* The pair's failure as this end sees it. */
struct fault lane_pair_fault(const struct lane *lane);
/* suspend.c. @task_epoch: of the task, whose rank is @own. */
enum gate member_gate(const struct comm_member *own, const struct comm_member *peer, uint32_t task_epoch);
/* GATE_ENDED: the lane's items end. As lane_send() and lane_receive(). */
int lane_end_suspended(struct lane *lane);
/* Ends one item with an error: recorded at the stream and at the rank. */
void lane_item_fail(struct lane *lane, struct item *item, struct fault fault);
