/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that wait for longer than their tasks allow. */
#include "engine/executor.h"

/* A client can have a million lanes in each stream: more is for the next look at ages, each of which takes all the time it needs. */
#define LATE_LANES_MAX 16384u	/* of one tenant */
#define LATE_LANES_MIN 64u	/* of each context, whatever others of the tenant have used */

/* What the lane of @head waits for ends, unless it is moving. */
static void lane_time_out(struct batch *batch, struct item *head, uint64_t waited_ms)
{
	struct view_comm *comm = batch->rank->comm;
	uint32_t rank = batch->rank->rank, peer = read_once(head->peer);
	uint32_t done = atomic_load_explicit(&head->done, memory_order_relaxed);
	bool sends = head->kind == ITEM_SEND;
	uint32_t source = sends ? rank : peer, destination = sends ? peer : rank;
	const struct transfer *transfer;
	struct fault fault;
	struct item *item;

	if (done >= batch->task.item_count || (!sends && head->kind != ITEM_RECEIVE) || peer >= comm->size)
		return;
	transfer = view_pair_of(comm, source, destination)->transfer;
	/* one that is held up ends for its sender; for its receiver when nobody writes any more */
	if (transfer && !transfer_is_held_up(transfer))
		return;
	item = batch_item(batch, done);
	fault = pair_fault(comm, CAUSE_EXEC_TIMEOUT, rank, peer, sends ? ITEM_SEND : ITEM_RECEIVE);
	fault.item = item->list_index;
	fault.local_bytes = item->bytes;
	fault.local_type = item->data_type;
	fault.waited_ms = waited_ms;
	fault.number = atomic_load_explicit(&item->number, memory_order_relaxed);
	if (!fault.number) {
		struct pair_ring *ring = atomic_load_explicit(&view_pair_of(comm, source, destination)->ring, memory_order_acquire);

		if (!ring)
			return;
		fault.number = atomic_load_explicit(&ring->tail, memory_order_relaxed) + 1;
	}
	pair_fail(batch->engine, comm, source, destination, &fault);
}

/* What the lanes of a head wait for ends with CAUSE_EXEC_TIMEOUT. False: *@left was not enough, the next look goes on from there. */
static bool batch_time_out(struct batch *batch, uint64_t waited_ms, uint32_t *left)
{
	struct view_context *context = batch->context;
	bool goes_on = context->late_ring == batch->ring && context->late_position == batch->position;
	uint32_t index = goes_on ? context->late_lane : batch->task.first_lane, lowest = 0;

	for (context->late_ring = NULL; index != LANE_END && index < batch->task.item_count && index >= lowest; --*left) {
		struct item *head = batch_item(batch, index);

		if (!*left) {
			context->late_ring = batch->ring;
			context->late_position = batch->position;
			context->late_lane = index;
			return false;
		}
		lowest = index + 1;
		index = read_once(head->next_lane);
		lane_time_out(batch, head, waited_ms);
	}
	return true;
}

static void barrier_time_out(struct batch *batch, uint64_t waited_ms)
{
	struct task *slot = &batch->ring->slots[batch->position % HCCLD_STREAM_SLOTS].task;
	struct comm_region *region = batch->rank->comm->region;
	struct fault fault;
	uint32_t peer = 0;

	while (peer + 1 < batch->rank->comm->size &&
	       atomic_load_explicit(&region->members[peer].barriers, memory_order_relaxed) >=
		       atomic_load_explicit(&slot->number, memory_order_relaxed))
		peer++;
	fault = pair_fault(batch->rank->comm, CAUSE_EXEC_TIMEOUT, batch->rank->rank, peer, 0);
	fault.waited_ms = waited_ms;
	stream_fault(batch->ring, &fault);
	member_fault(&region->members[batch->rank->rank], &fault);
	atomic_store_explicit(&slot->outcome, 1, memory_order_relaxed);
	context_dirty(batch->engine, batch->context);
}

/* False: *@left was not enough. */
static bool stream_check_timeout(struct engine *engine, struct view_context *context, struct stream_ring *ring, uint64_t now_ns,
				 uint32_t *left)
{
	struct batch batch;
	uint64_t since;

	if (!ring || batch_open(engine, context, ring, &batch) < 0 || !batch.task.timeout_ms)
		return true;
	if (atomic_load_explicit(&ring->head_position, memory_order_relaxed) != batch.position + 1)
		return true;
	since = atomic_load_explicit(&ring->head_since_ns, memory_order_relaxed);
	if (now_ns < since || (now_ns - since) / 1000000 < batch.task.timeout_ms)
		return true;
	if (!batch.rank)
		meeting_time_out(&batch, batch.task.timeout_ms);
	else if (batch.task.kind == TASK_BATCH)
		return batch_time_out(&batch, (now_ns - since) / 1000000, left);
	else if (batch.task.kind == TASK_BARRIER)
		barrier_time_out(&batch, (now_ns - since) / 1000000);
	return true;
}

/* By words that anybody may read at any time; what they say is judged again when the context is ours. */
static bool stream_may_be_late(struct stream_ring *ring, uint64_t now_ns)
{
	uint64_t completed = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t since_ns = atomic_load_explicit(&ring->head_since_ns, memory_order_relaxed);
	uint64_t limit_ms;

	if (atomic_load_explicit(&ring->tail, memory_order_acquire) == completed ||
	    atomic_load_explicit(&ring->head_position, memory_order_acquire) != completed + 1 || now_ns < since_ns)
		return false;
	limit_ms = read_once(ring->slots[completed % HCCLD_STREAM_SLOTS].task.timeout_ms);
	return limit_ms && (now_ns - since_ns) / 1000000 >= limit_ms;
}

static bool context_may_be_late(struct view_context *context, uint64_t now_ns)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);

	for (uint32_t i = 0; i < limit && !context->broken; i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (ring && stream_may_be_late(ring, now_ns))
			return true;
	}
	return false;
}

static void context_check_timeouts(struct engine *engine, struct view_context *context, uint64_t now_ns)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);
	uint32_t first = context->late_stream < limit ? context->late_stream : 0, left, used;
	struct view_share *share = share_of(engine, context);

	if (share->late_ns != now_ns) {
		share->late_ns = now_ns;
		share->late_left = LATE_LANES_MAX;
	}
	left = LATE_LANES_MIN + share->late_left;
	for (uint32_t n = 0; n < limit && !context->broken; n++) {
		uint32_t i = first + n < limit ? first + n : first + n - limit;

		context->late_stream = i;
		if (!stream_check_timeout(engine, context, atomic_load_explicit(&context->streams[i], memory_order_acquire), now_ns, &left))
			break;
	}
	used = LATE_LANES_MIN + share->late_left - left;
	share->late_left -= used < share->late_left ? used : share->late_left;
}

/*
 * A client that takes the context in the middle would write the cursors and words that are judged here: so what may be too old is taken first,
 * and then left for the visit that ends its heads. A peer that is driven meanwhile is no danger: `failed` is written by this thread alone, and
 * its executor looks at it between a copy and `received`, which it stores or not; both ends look at `received` before `failed`. What was
 * received at that very moment can be an error at the sender all the same, whose time was over.
 */
void engine_check_timeouts(struct engine *engine, struct view_context *context, uint64_t now_ns)
{
	uint64_t state;

	if (!context_may_be_late(context, now_ns) || !context_take(engine, context, &state))
		return;
	context_check_timeouts(engine, context, now_ns);
	context_give(engine, context, state);
	engine_ring_dirty(engine);
}
