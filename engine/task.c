/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks of one stream, in order. Only the head runs; `completed` is its only commit. Everything read from the ring is a client's word:
 * copied once, checked, then used.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "engine/executor.h"
#include "engine/head.h"
#include "proto/clock.h"

#define TASKS_PER_VISIT 64	/* then others get their turn */
#define TASK_STEPS 4
#define BYTES_PER_STEP 512u
/* An honest lane looks at each of its items to number it, to run it and to find it done, and once more where it stops. */
#define STEPS_MAX(item_count) (8 * (uint64_t)(item_count) + 64)

int batch_open(struct engine *engine, struct view_context *context, struct stream_ring *ring, struct batch *ret_batch)
{
	uint64_t completed = atomic_load_explicit(&ring->completed, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct view_segment *side;
	struct task *task = &ret_batch->task;

	if (completed == tail)
		return -EAGAIN;
	if (tail - completed > HCCLD_STREAM_SLOTS)
		return -EPROTO;
	ret_batch->engine = engine;
	ret_batch->context = context;
	ret_batch->ring = ring;
	ret_batch->position = completed;
	ret_batch->steps = ret_batch->steps_charged = 0;
	ret_batch->items = &ring->slots[0].item;
	ret_batch->first = completed + 1;
	ret_batch->mask = HCCLD_STREAM_SLOTS - 1;
	memcpy(task, &ring->slots[completed % HCCLD_STREAM_SLOTS].task, sizeof(*task));
	if (task->slot_count == 0 || task->slot_count > tail - completed || task->item_count > 2 * HCCLD_BATCH_ITEMS_MAX)
		return -EPROTO;
	if (task->side) {
		if (task->slot_count != 1)
			return -EPROTO;
		side = view_segment_find(context->session, task->side, 0, (uint64_t)task->item_count * sizeof(struct item));
		/* memory that was imported may begin at any byte, and its owner takes it away */
		if (!side || side->is_import)
			return -EPROTO;
		ret_batch->items = (struct item *)side->base;
		ret_batch->first = 0;
		ret_batch->mask = UINT64_MAX;
	} else if (task->slot_count != task->item_count + 1) {
		return -EPROTO;
	}
	ret_batch->rank = view_rank_find(context->session, task->rank);
	if (ret_batch->rank && ret_batch->rank->context != context)
		return -EPROTO;
	return 0;
}

void stream_fault(struct stream_ring *ring, const struct fault *fault)
{
	uint32_t count = atomic_load_explicit(&ring->fault_count, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&ring->completed, memory_order_relaxed);

	/* I5; first: a crash in between finds the head failing again */
	if (atomic_load_explicit(&ring->stop_on_failure, memory_order_relaxed) &&
	    !atomic_load_explicit(&ring->stopped, memory_order_relaxed))
		atomic_store_explicit(&ring->stopped, head + 1, memory_order_relaxed);
	CRASH_POINT(29);
	/* I4: one at a time; the first stays until the program was told */
	if (atomic_load_explicit(&ring->fault_seen, memory_order_acquire) != count)
		return;
	ring->fault = *fault;
	atomic_store_explicit(&ring->fault_position, head, memory_order_relaxed);
	atomic_store_explicit(&ring->fault_thread, ring->slots[head % HCCLD_STREAM_SLOTS].task.thread, memory_order_relaxed);
	atomic_store_explicit(&ring->fault_count, count + 1, memory_order_release);
}

void member_fault(struct comm_member *member, const struct fault *fault)
{
	/* 1 is what a writer leaves that was killed: write again */
	if (atomic_load_explicit(&member->async, memory_order_relaxed) == 2)
		return;
	atomic_store_explicit(&member->async, 1, memory_order_relaxed);
	member->fault = *fault;
	atomic_store_explicit(&member->async, 2, memory_order_release);
}

void fault_explain_lost(struct fault *fault, struct view_session *session, uint64_t id)
{
	const struct view_segment *segment = &session->segments[VIEW_INDEX(id) % HCCLD_SEGMENTS_PER_SESSION];
	enum cause cause = CAUSE_PEER_MEMORY;
	struct fault of_peer;
	uint32_t word;

	/* acquire: the owner is there before the segment is retired */
	if (!id || atomic_load_explicit(&segment->id, memory_order_acquire) != id || !segment->is_import ||
	    !atomic_load_explicit(&segment->retired, memory_order_acquire))
		return;
	fault->cause = cause;
	fault->loss = segment->loss;
	if (!segment->comm) {
		fault->peer_pid = segment->loss_pid;
		fault->peer_exit = segment->loss_exit;
		return;
	}
	word = atomic_load_explicit(&segment->comm->region->members[segment->peer].word, memory_order_acquire);
	if (word != MEMBER_ALIVE)
		cause = word == MEMBER_DEAD ? CAUSE_PEER_DEAD : CAUSE_PEER_LEFT;
	of_peer = pair_fault(segment->comm, cause, segment->rank, segment->peer, fault->direction);
	of_peer.loss = fault->loss;
	of_peer.item = fault->item;
	of_peer.local_bytes = fault->local_bytes;
	of_peer.local_type = fault->local_type;
	*fault = of_peer;
}

/* The place that ITEM_COPY @index copies from. -EPROTO: there is none. */
static int copy_source(struct batch *batch, uint32_t index, struct view_segment **ret_segment, uint64_t bytes, uint64_t *ret_offset)
{
	struct item *slot;

	if (index + 1 >= batch->task.item_count)
		return -EPROTO;
	slot = batch_item(batch, index + 1);
	if (slot->kind != ITEM_SOURCE)
		return -EPROTO;
	*ret_offset = read_once(slot->offset);
	*ret_segment = view_segment_find(batch->context->session, slot->segment, *ret_offset, bytes);
	return 0;
}

/* Ends a copy, with an error unless @cause is CAUSE_NONE; @missing: the segment that is not there, or 0. Its cursor is its commit: until then it may run again. */
static int copy_end(struct batch *batch, struct item *item, uint64_t bytes, enum cause cause, uint64_t missing)
{
	struct fault fault = { .cause = cause, .item = item->list_index, .local_bytes = bytes };

	fault.direction = item->kind == ITEM_FILL ? ITEM_FILL : ITEM_COPY;
	/* with a communicator it is a pair of items to oneself */
	if (batch->rank) {
		fault.comm = batch->rank->comm->id;
		fault.rank = fault.peer = batch->rank->rank;
	}
	fault_explain_lost(&fault, batch->context->session, missing);
	if (cause)
		stream_fault(batch->ring, &fault);
	CRASH_POINT(14);
	atomic_store_explicit(&item->done, LANE_END, memory_order_release);
	return 1;
}

/* A copy or fill: one item in its own lane, the source's place in the slot behind it. */
static int lane_copy(struct batch *batch, uint32_t index)
{
	struct item *item = batch_item(batch, index);
	struct view_session *session = batch->context->session;
	struct view_segment *destination, *source = NULL;
	uint64_t bytes = read_once(item->bytes), to = read_once(item->offset), from = 0;
	int value = (int)(item->peer & 0xff);
	bool fills = item->kind == ITEM_FILL;
	struct transfer *transfer;

	if (atomic_load_explicit(&item->issue, memory_order_relaxed) == LANE_END)
		return 0;	/* being copied */
	if (!fills && copy_source(batch, index, &source, bytes, &from) < 0)
		return -EPROTO;
	destination = view_segment_find(session, item->segment, to, bytes);
	if (!destination || (!fills && !source))
		return copy_end(batch, item, bytes, CAUSE_NOT_DEVICE_MEMORY,
				destination ? read_once(batch_item(batch, index + 1)->segment) : read_once(item->segment));
	if (bytes <= HCCLD_SMALL_COPY) {
		const void *lost;

		batch->engine->steps -= (int64_t)(bytes / BYTES_PER_STEP);
		batch->engine->host.guard_begin();
		if (source)
			memmove(destination->base + to, source->base + from, bytes);
		else
			memset(destination->base + to, value, bytes);
		lost = batch->engine->host.guard_end();
		if (lost)
			engine_blame(batch->engine, session, NULL, lost);
		return copy_end(batch, item, bytes, lost ? CAUSE_MEMORY_FAULT : CAUSE_NONE, 0);
	}
	transfer = transfer_new(batch->engine, batch, item, bytes);
	if (!transfer)
		return 0;
	transfer->source_session = session;
	transfer->source_segment = source;
	transfer->destination_segment = destination;
	transfer->to = destination->base + to;
	transfer->from = source ? source->base + from : NULL;
	transfer->value = value;
	atomic_store_explicit(&item->issue, LANE_END, memory_order_relaxed);
	transfer_queue(batch->engine, transfer);
	return 0;
}

/* The communicator was destroyed under the task. */
static int batch_abort(struct batch *batch)
{
	struct fault fault = { .cause = CAUSE_ABORTED };

	stream_fault(batch->ring, &fault);
	return 1;
}

/* Begins with the first lane, or where the last visit has left this batch. *@ret_waits: a lane before that waits. */
static uint32_t batch_begin(struct batch *batch, bool *ret_waits)
{
	struct view_context *context = batch->context;
	bool goes_on = context->cut_ring == batch->ring && context->cut_position == batch->position;

	*ret_waits = goes_on && context->cut_waits;
	if (goes_on)
		batch->steps = batch->steps_charged = context->cut_steps;
	else
		context->cut_news = false;
	context->cut_ring = NULL;
	return goes_on ? context->cut_lane : batch->task.first_lane;
}

/* The visit's steps are used up before lane @index. */
static void batch_cut(struct batch *batch, uint32_t index, bool waits)
{
	struct view_context *context = batch->context;

	context->cut_ring = batch->ring;
	context->cut_position = batch->position;
	context->cut_steps = batch->steps;
	context->cut_lane = index;
	context->cut_waits = waits;
	context->starved = true;
}

/* The steps since the last call go to the visit. True: it has none left. */
static bool batch_charge(struct batch *batch)
{
	batch->engine->steps -= (int64_t)(batch->steps - batch->steps_charged) + 1;
	batch->steps_charged = batch->steps;
	return batch->engine->steps <= 0;
}

/* 1: all items are finished, 0: not yet, -EPROTO. */
static int batch_run(struct batch *batch)
{
	const struct task *task = &batch->task;
	uint32_t index, lowest;
	bool waits, is_whole;

	if (task->rank && !batch->rank)
		return batch_abort(batch);
	index = lowest = batch_begin(batch, &waits);
	is_whole = index == task->first_lane;
	while (index != LANE_END) {
		struct item *head;
		uint32_t next;
		int r = 1;

		if (index >= task->item_count || index < lowest)
			return -EPROTO;
		head = batch_item(batch, index);
		next = read_once(head->next_lane);
		if (atomic_load_explicit(&head->done, memory_order_acquire) != LANE_END) {
			uint8_t kind = read_once(head->kind);

			if (kind == ITEM_COPY || kind == ITEM_FILL)
				r = lane_copy(batch, index);
			else if (kind == ITEM_SEND && batch->rank)
				r = lane_send(batch, index);
			else if (kind == ITEM_RECEIVE && batch->rank)
				r = lane_receive(batch, index);
			else
				r = -EPROTO;
			/* lanes that share items would cost their product */
			if (r < 0 || batch->steps > STEPS_MAX(task->item_count))
				return -EPROTO;
		}
		waits |= r == 0;
		lowest = index + 1;
		index = next;
		if (batch_charge(batch) && index != LANE_END) {
			batch_cut(batch, index, waits);
			return 0;
		}
	}
	batch->context->meets |= waits;
	/* what has come for a lane that an earlier visit has looked at */
	if (waits && !is_whole && batch->context->cut_news)
		batch->context->starved = true;
	return !waits;
}

/* The barrier cannot end because of rank @peer. */
static int barrier_give_up(struct batch *batch, struct task *slot, enum cause cause, uint32_t peer)
{
	struct view_comm *comm = batch->rank->comm;
	struct fault fault = pair_fault(comm, cause, batch->rank->rank, peer, 0);

	stream_fault(batch->ring, &fault);
	if (cause != CAUSE_SUSPENDED)
		member_fault(&comm->region->members[batch->rank->rank], &fault);
	atomic_store_explicit(&slot->outcome, 1, memory_order_relaxed);
	return 1;
}

static bool barrier_is_suspended(struct batch *batch, struct task *slot)
{
	const struct comm_member *own = &batch->rank->comm->region->members[batch->rank->rank];
	uint64_t number = atomic_load_explicit(&slot->number, memory_order_relaxed);
	uint32_t peer;

	/* not issued: the next one */
	if (!number)
		number = atomic_load_explicit(&own->barriers, memory_order_relaxed) + 1;
	peer = barrier_suspended(batch->rank->comm, batch->rank->rank, batch->task.epoch, number);

	return peer != LANE_END && barrier_give_up(batch, slot, CAUSE_SUSPENDED, peer);
}

/*
 * A rank enters barrier n by storing n in its member block; the barrier is over when all members have entered. Whoever enters last
 * finds that out (a fence between its store and its look at the others) and tells everybody; a second look at any later visit gives the
 * same answer, so a crash in between costs nothing.
 */
static int barrier_run(struct batch *batch)
{
	struct view_comm *comm;
	struct comm_region *region;
	struct task *slot = &batch->ring->slots[batch->position % HCCLD_STREAM_SLOTS].task;
	struct comm_member *member;
	uint64_t number;
	uint32_t missing = LANE_END;

	if (!batch->rank)
		return batch_abort(batch);
	if (atomic_load_explicit(&slot->outcome, memory_order_relaxed))
		return 1;
	comm = batch->rank->comm;
	region = comm->region;
	member = &region->members[batch->rank->rank];
	number = atomic_load_explicit(&slot->number, memory_order_relaxed);
	if (number && atomic_load_explicit(&region->barriers_done, memory_order_acquire) >= number)
		return 1;
	if (barrier_is_suspended(batch, slot))
		return 1;
	if (!number) {
		number = atomic_load_explicit(&member->barriers, memory_order_relaxed) + 1;
		atomic_store_explicit(&slot->number, number, memory_order_release);
		CRASH_POINT(15);
	}
	if (atomic_load_explicit(&member->barriers, memory_order_relaxed) < number) {
		atomic_store_explicit(&member->barriers, number, memory_order_release);
		CRASH_POINT(16);
	}
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < comm->size; i++) {
		uint32_t word = atomic_load_explicit(&region->members[i].word, memory_order_acquire);

		if (atomic_load_explicit(&region->members[i].barriers, memory_order_acquire) >= number)
			continue;
		missing = i;
		if (word != MEMBER_ALIVE)
			return barrier_give_up(batch, slot, word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD, i);
	}
	batch->engine->steps -= comm->size / 4;
	if (missing != LANE_END)
		return 0;
	atomic_store_explicit(&region->barriers_done, number, memory_order_release);
	CRASH_POINT(17);
	for (uint32_t i = 0; i < comm->size; i++)
		context_dirty(batch->engine, atomic_load_explicit(&comm->contexts[i], memory_order_acquire));
	return 1;
}

static bool is_dropped(const struct stream_ring *ring, uint64_t position)
{
	return position < atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

bool stream_passes_over(const struct stream_ring *ring, uint64_t position)
{
	uint64_t stopped = atomic_load_explicit(&ring->stopped, memory_order_relaxed);

	return is_dropped(ring, position) || (stopped && position >= stopped);
}

/* 1: the head is finished, 0: not yet, -EPROTO: nonsense. */
static int task_run(struct batch *batch)
{
	/* events are recorded all the same: others may wait for them */
	if (__builtin_expect(stream_passes_over(batch->ring, batch->position), 0) && batch->task.kind != TASK_RECORD) {
		if (is_dropped(batch->ring, batch->position))
			stream_abort(batch->engine, batch->context, batch->ring);
		return 1;
	}
	switch (batch->task.kind) {
	case TASK_BATCH:
		return batch_run(batch);
	case TASK_BARRIER:
		return barrier_run(batch);
	case TASK_REDUCE:
		return reduce_run(batch);
	default:
		return meeting_run(batch);
	}
}

bool stream_advance(struct engine *engine, struct view_context *context, struct stream_ring *ring)
{
	bool completed = false;
	struct batch batch;
	int r = 0;

	for (int i = 0; i < TASKS_PER_VISIT && (i == 0 || engine->steps > 0); i++) {
		engine->steps -= TASK_STEPS;
		r = batch_open(engine, context, ring, &batch);
		if (r == -EAGAIN)
			return completed;
		if (r == 0)
			r = task_run(&batch);
		if (r < 0) {
			context->broken = true;
			engine->host.liar(engine->host.data, context->session, "a task that makes no sense");
			return completed;
		}
		if (r == 0) {
			stream_mark_head(ring, batch.position);
			return completed;
		}
		CRASH_POINT(18);
		/* I2: the commit of the task. Release: the waiter sees the bytes it brought. */
		atomic_store_explicit(&ring->completed, batch.position + batch.task.slot_count, memory_order_release);
		CRASH_POINT(19);
		completed = true;
		/* what it has written may be what another stream of the process waits for */
		if (__builtin_expect(context->session->watchers != NULL, 0))
			session_ring_pollers(engine, context->session);
	}
	context->starved = true;	/* not at the end: come back */
	return completed;
}
