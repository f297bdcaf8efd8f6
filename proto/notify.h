/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies in shared memory: places in a segment of kind NOTIFY, one segment for each context that has any. A notify's id is unique on
 * its device, and its place is at id * sizeof(struct notify_slot). Clients do not map these segments: only executors write them, and
 * tasks name them by ITEM_PLACE; a peer on a channel, or a process that has imported a notify, by its own entry of the memory.
 *
 * One word holds a count of changes and the value. A plain notify has the values 0 and 1: recording sets 1, waiting waits for 1 and
 * sets 0. A counting notify has 32 bits.
 *
 *   N1  Every change adds 1 to the count. A task stores the word that it is about to make in its own `number` before it changes the
 *       notify: whoever runs it again finds by the count whether that has happened (tests/model/notify.py).
 *   N2  There is one executor at a time for all contexts that can reach a notify: the engine thread. So between a task's `number` and its
 *       change nobody else changes the notify; over a kill because all heads that have announced a change make it before anything runs.
 *   N3  A context whose head waits stores 1 + its index in the yard in `waiter` before it looks at the word for the last time; who changes
 *       the word looks at `waiter` afterwards, and rings that context. Both fence in between (R2, R4). Processes of other tenants never
 *       share a notify, so the index means the same to all.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define NOTIFY_SEGMENT_KIND 71u	/* AllocateSegment.Kind */
#define NOTIFY_PAGE 4096u	/* places are backed by pages, when their notifies are handed out */

enum notify_change {
	NOTIFY_SET = 0,		/* as aclrtCntNotifyRecordMode */
	NOTIFY_ADD = 1,
	NOTIFY_OR = 2,
	NOTIFY_AND = 4,
};

enum notify_compare {
	NOTIFY_LESS = 0,	/* as aclrtCntNotifyWaitMode: value < operand */
	NOTIFY_EQUAL = 1,
	NOTIFY_BIGGER = 2,
	NOTIFY_BIGGER_OR_EQUAL = 3,
	NOTIFY_EQUAL_MASKED = 4,	/* (value & mask) == (operand & mask) */
};

struct notify_slot {
	_Atomic uint64_t word;		/* count << 32 | value */
	_Atomic uint32_t waiter;	/* 1 + index of a context in the yard, 0: none */
	/* enum cause, 0: none. Nobody will record it (an end of its channel has gone, or it was freed), and a wait that finds nothing ends with
	 * this. By the control thread; the executor is rung afterwards. 0 again when the id is handed out. */
	_Atomic uint32_t failed;
	uint32_t reserved[12];
};
static_assert(sizeof(struct notify_slot) == 64, "one line");

static inline uint32_t notify_value(uint64_t word)
{
	return (uint32_t)word;
}

/* The word after a change to @value. The count wraps around to 1: a word of 0 is that of a new notify, and no task's announcement. */
static inline uint64_t notify_next(uint64_t word, uint32_t value)
{
	uint32_t count = (uint32_t)(word >> 32) + 1;

	return (uint64_t)(count ? count : 1) << 32 | value;
}

/* Is @word as far as @other, or farther? */
static inline int notify_has_come(uint64_t word, uint64_t other)
{
	return (int32_t)((uint32_t)(word >> 32) - (uint32_t)(other >> 32)) >= 0;
}
