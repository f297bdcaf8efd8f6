/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the random test of primitives does, as a pure function of the seed, with the result known: every rank computes the steps of all
 * ranks, follows its own, and compares its memory with what the model says.
 *
 * Lines are what runs in order: the threads of each rank, and the one that its communicator has for what is queued without a thread. A
 * step of a line that touches what one of another line touches is ordered behind it by a notify, an event, or by the host, unless the two
 * add to the same place in the same way: then the sum is the same in either order. Each notify is recorded and awaited once in a window,
 * and is 0 again for the next one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"

#define STEPS_RANKS 6u
#define STEPS_THREADS 3u
#define STEPS_LINES (STEPS_THREADS + 1)		/* of a rank; the last has no handle */
#define STEPS_AREAS 4u				/* HCCL buffer, registered device memory, registered host memory, memory of its own */
#define STEPS_HOST_AREA 2u
#define STEPS_SHARED_AREAS 3u			/* what peers reach */
#define STEPS_AREA (300u << 10)			/* bytes: more than one slice of a reduction */
#define STEPS_NOTIFIES 21u			/* of a thread, and of an end of a channel */
#define STEPS_EVENTS 8u				/* of a rank */
#define STEPS_MAX 400u				/* of a window */

enum step_kind {
	STEP_MOVE,		/* from one place to another; one of them is the line's own rank's */
	STEP_SET,		/* aclrtMemsetAsync */
	STEP_KERNEL,		/* a host kernel adds `value` to each byte, `index` blocks */
	STEP_SEND,		/* HcclSend, and next the other rank's HcclRecv; both on the first thread, in the order in which they match */
	STEP_RECEIVE,
	STEP_RECORD,		/* the notify `index` of line `other`, of another rank by the channel */
	STEP_WAIT,		/* for the own notify `index`, which `other` records */
	STEP_EVENT_RECORD,
	STEP_EVENT_WAIT,
	STEP_HOST,		/* the program waits until the line has nothing left */
};

struct step_place {
	uint32_t rank, area;
	uint64_t offset;
};

struct step {
	enum step_kind kind;
	uint32_t rank, line;
	uint32_t other_rank, other_line, index;
	struct step_place to, from;
	uint64_t bytes;
	bool reduces, by_stream, notifies, more;	/* by_stream: aclrtMemcpyAsync; notifies: with a record; more: one batch with the next */
	uint8_t type, op, value;
};

struct steps {
	uint32_t count;
	struct step steps[STEPS_MAX];
};

/* The steps of a window of @ranks ranks, in an order that is one of those that they may run in. */
void steps_plan(uint64_t seed, uint32_t window, uint32_t ranks, struct steps *ret_steps);
/* @memory: STEPS_AREAS areas of each rank. */
void steps_apply(const struct steps *steps, unsigned char *memory);
static inline unsigned char *steps_at(unsigned char *memory, uint32_t rank, uint32_t area)
{
	return memory + ((uint64_t)rank * STEPS_AREAS + area) * STEPS_AREA;
}
