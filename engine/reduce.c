/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reductions: to = to op from. Executor's thread.
 *
 * A reduction may not run twice over a byte, and its executor may be killed at any store. So it goes by slices: the result of one is made
 * in the scratch behind the stream's ring; `step` says that it is there; only then it is written to its place, which can be done any
 * number of times; `step` says that the slice is done. What a new executor finds: an even step, and the slice's place is as it was (the
 * scratch may be half written: it is made again); an odd one, and the scratch is whole. `step` is set to 0 before `position` names the
 * task, so it is never that of another one. tests/model/tasks.py explores this.
 *
 * Several streams may reduce into one place (ranks that write into a peer's sum, say): their slices come one after the other, each made and
 * written in one go. After a kill engine_recover(), which goes over all contexts before the first is looked at, writes the slice whose result
 * is in a scratch, of which there is one at most: nobody reduces into its place in between, and would be overwritten.
 *
 * A kill cuts the order of the program, and what was stored before it reaches memory: it is the compiler that must keep the order here.
 * Others see the destination when `completed` (release) has passed the task.
 */
#include <errno.h>
#include <string.h>

#include "engine/arithmetic.h"
#include "engine/executor.h"

#define VISIT_BYTES HCCLD_SLICE	/* of one stream in one visit of its context: then others have their turn */
#define BYTES_PER_STEP 512u	/* as for copies */

struct reduction {
	uint64_t bytes;
	uint32_t type, op, width;
	unsigned char *to;
	const unsigned char *from;
	uint64_t missing; /* segment that is not there; 0: none */
};

static bool ranges_overlap(const unsigned char *a, const unsigned char *b, uint64_t bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return x != y && (x < y ? y - x : x - y) < bytes;
}

/* -EPROTO, or 0 with *@ret_cause: why it cannot be done. Everything that a client can write is read once. */
static int reduction_open(struct batch *batch, struct reduction *ret_reduction, enum cause *ret_cause)
{
	struct view_session *session = batch->context->session;
	struct item *item = batch_item(batch, 0), *source = batch_item(batch, 1);
	uint64_t bytes = read_once(item->bytes), to = read_once(item->offset), from;
	uint64_t to_id = read_once(item->segment), from_id;
	struct view_segment *to_segment, *from_segment;

	if (batch->task.item_count != 2 || read_once(item->kind) != ITEM_REDUCE || read_once(source->kind) != ITEM_SOURCE)
		return -EPROTO;
	from = read_once(source->offset);
	from_id = read_once(source->segment);
	to_segment = view_segment_find(session, to_id, to, bytes);
	from_segment = view_segment_find(session, from_id, from, bytes);
	*ret_reduction = (struct reduction){ .bytes = bytes, .type = read_once(item->data_type), .op = read_once(item->peer) };
	*ret_cause = CAUSE_NONE;
	if (!arithmetic_has(ret_reduction->type, ret_reduction->op)) {
		*ret_cause = CAUSE_NOT_SUPPORTED;
		return 0;
	}
	ret_reduction->width = data_type_size(ret_reduction->type);
	if (!to_segment || !from_segment) {
		*ret_cause = CAUSE_NOT_DEVICE_MEMORY;
		ret_reduction->missing = to_segment ? from_id : to_id;
		return 0;
	}
	/* addresses: memory that was imported is the exporter's */
	ret_reduction->to = to_segment->base + to;
	ret_reduction->from = from_segment->base + from;
	if (bytes % ret_reduction->width || ranges_overlap(ret_reduction->to, ret_reduction->from, bytes))
		*ret_cause = CAUSE_ARGUMENT;
	return 0;
}

static int reduction_fail(struct batch *batch, const struct reduction *reduction, enum cause cause)
{
	struct fault fault = { .cause = cause, .direction = ITEM_REDUCE, .local_bytes = reduction->bytes,
			       .local_type = (uint8_t)reduction->type };

	fault_explain_lost(&fault, batch->context->session, reduction->missing);
	stream_fault(batch->ring, &fault);
	return 1;
}

static void scratch_begin(struct reduce_scratch *scratch, uint64_t position)
{
	if (atomic_load_explicit(&scratch->position, memory_order_relaxed) == position + 1)
		return;
	atomic_store_explicit(&scratch->step, 0, memory_order_relaxed);
	CRASH_POINT(32);
	atomic_store_explicit(&scratch->position, position + 1, memory_order_release);
	CRASH_POINT(33);
	atomic_signal_fence(memory_order_seq_cst);
}

/* The slice that @step is at, of @bytes. NULL, or the address at which memory was lost. */
static const void *slice_run(struct batch *batch, const struct reduction *reduction, uint64_t step, uint64_t bytes)
{
	struct reduce_scratch *scratch = stream_scratch(batch->ring);
	uint64_t offset = step / 2 * REDUCE_SLICE;

	batch->engine->host.guard_begin();
	if (step % 2 == 0) {
		arithmetic_run(reduction->type, reduction->op, scratch->result, reduction->to + offset, reduction->from + offset,
			       bytes / reduction->width);
		CRASH_POINT(34);
		atomic_store_explicit(&scratch->step, step + 1, memory_order_release);
		CRASH_POINT(35);
		atomic_signal_fence(memory_order_seq_cst);
	}
	memcpy(reduction->to + offset, scratch->result, bytes);
	CRASH_POINT(36);
	atomic_store_explicit(&scratch->step, (step | 1) + 1, memory_order_release);
	CRASH_POINT(37);
	atomic_signal_fence(memory_order_seq_cst);
	return batch->engine->host.guard_end();
}

/* How much of the reduction is in the slice that @step is at; 0: all are done. */
static uint64_t slice_bytes(const struct reduction *reduction, uint64_t step)
{
	uint64_t slices = reduction->bytes / REDUCE_SLICE + (reduction->bytes % REDUCE_SLICE != 0), left;

	if (step / 2 >= slices)
		return 0;
	left = reduction->bytes - step / 2 * REDUCE_SLICE;
	return left < REDUCE_SLICE ? left : REDUCE_SLICE;
}

void reduce_recover(struct batch *batch)
{
	struct reduce_scratch *scratch = stream_scratch(batch->ring);
	uint64_t step = atomic_load_explicit(&scratch->step, memory_order_relaxed), bytes;
	struct reduction reduction;
	enum cause cause;
	const void *lost;

	if (step % 2 == 0 || atomic_load_explicit(&scratch->position, memory_order_relaxed) != batch->position + 1 ||
	    stream_passes_over(batch->ring, batch->position) || reduction_open(batch, &reduction, &cause) < 0 || cause)
		return;
	bytes = slice_bytes(&reduction, step);
	lost = bytes ? slice_run(batch, &reduction, step, bytes) : NULL;
	/* the first look at it finds that again, and fails it */
	if (lost)
		engine_blame(batch->engine, batch->context->session, NULL, lost);
}

int reduce_run(struct batch *batch)
{
	struct reduce_scratch *scratch = stream_scratch(batch->ring);
	struct reduction reduction;
	enum cause cause;
	int r;

	r = reduction_open(batch, &reduction, &cause);
	if (r < 0)
		return r;
	if (cause)
		return reduction_fail(batch, &reduction, cause);
	scratch_begin(scratch, batch->position);
	for (uint64_t done = 0;; done += REDUCE_SLICE) {
		/* a client can write it: it is judged by what is left */
		uint64_t step = atomic_load_explicit(&scratch->step, memory_order_relaxed);
		uint64_t left = slice_bytes(&reduction, step);
		const void *lost;

		if (!left)
			return 1;
		if (done && (done >= VISIT_BYTES || batch->engine->steps <= 0)) {
			batch->context->starved = true;
			return 0;
		}
		lost = slice_run(batch, &reduction, step, left);
		batch->engine->steps -= (int64_t)(left / BYTES_PER_STEP);
		if (lost) {
			engine_blame(batch->engine, batch->context->session, NULL, lost);
			return reduction_fail(batch, &reduction, CAUSE_MEMORY_FAULT);
		}
	}
}
