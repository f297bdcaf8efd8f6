/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of the process itself, and copies within a rank. */
#include "engine/direct_lane.h"

bool work_find_segment(struct work *work, uint64_t id)
{
	const struct direct_segment *segment = &work->context->process->places[VIEW_INDEX(id) % HCCLD_SEGMENTS_PER_SESSION].segment;

	if (!id || atomic_load_explicit(&segment->id, memory_order_acquire) != id)
		return false;
	work->segment = id;
	work->base = segment->base;
	work->size = segment->size;
	return true;
}

void work_need(struct work *work, enum direct_need what, uint32_t peer, uint64_t segment)
{
	/* more room can wait, what is needed to go on cannot */
	if (work->context->wish.need == NEED_NOTHING || what <= NEED_EXTENTS)
		work->context->wish = (struct direct_wish){ what, peer, work->rank->handle, segment };
}

/* ---- copies within the rank ---- */

static enum direct_left lane_copy_direct(struct work *work, uint32_t index, struct item *head)
{
	const struct item *source = head->kind == ITEM_COPY ? work_item(work, index + 1) : NULL;
	const unsigned char *from = NULL;
	unsigned char *to;

	/* `issue`: the engine has begun it */
	if (head->bytes > HCCLD_SMALL_COPY || atomic_load_explicit(&head->issue, memory_order_relaxed) == LANE_END ||
	    (source && source->kind != ITEM_SOURCE))
		return DIRECT_DECLINED;
	if (source)
		from = own_memory(work, source->segment, source->offset, head->bytes);
	to = own_memory(work, head->segment, head->offset, head->bytes);
	if ((source && !from) || !to)
		return DIRECT_DECLINED;
	if (source)
		memmove(to, from, head->bytes);
	else
		memset(to, (int)(head->peer & 0xff), head->bytes);
	CRASH_POINT(131);
	atomic_store_explicit(&head->done, LANE_END, memory_order_release);
	CRASH_POINT(132);
	return DIRECT_DONE;
}

/* ---- batches ---- */

enum direct_left direct_batch(struct direct_context *context, struct stream_ring *ring, const struct task *task, struct direct_rank *rank)
{
	struct work work = {
		.context = context, .rank = rank, .items = &ring->slots[0].item, .mask = HCCLD_STREAM_SLOTS - 1, .count = task->item_count,
		.first = (uint64_t)((const union stream_slot *)task - ring->slots) + 1,
	};
	const uint32_t count = work.count;
	enum direct_left left = DIRECT_DONE;

	if (task->side) {
		work.items = (struct item *)own_memory(&work, task->side, 0, count * (uint64_t)sizeof(struct item));
		work.first = 0;
		work.mask = UINT64_MAX;
		if (!work.items)
			return DIRECT_DECLINED;
	}
	for (uint32_t index = task->first_lane, next; index < count; index = next) {
		struct item *head = work_item(&work, index);
		enum direct_left of_lane = DIRECT_DONE;

		next = head->next_lane > index ? head->next_lane : LANE_END;
		if (atomic_load_explicit(&head->done, memory_order_relaxed) == LANE_END)
			continue;
		if (head->kind == ITEM_RECEIVE && rank)
			of_lane = lane_receive_direct(&work, head);
		else if (head->kind == ITEM_SEND && rank)
			of_lane = lane_send_direct(&work, head);
		else if (head->kind == ITEM_COPY || head->kind == ITEM_FILL)
			of_lane = lane_copy_direct(&work, index, head);
		else
			of_lane = DIRECT_DECLINED;
		left = of_lane > left ? of_lane : left;
	}
	return left;
}

/* ---- what heads wait for ---- */

static uint64_t lane_inputs(const struct direct_rank *rank, const struct item *head)
{
	const uint32_t peer_rank = read_once(head->peer);
	const struct pair_ring *ring;
	uint64_t sum;

	if (peer_rank >= rank->size)
		return 0;
	ring = head->kind == ITEM_SEND ? rank->peers[peer_rank].out : rank->peers[peer_rank].in;
	sum = atomic_load_explicit(&rank->region->members[peer_rank].word, memory_order_relaxed);
	if (ring)
		sum += atomic_load_explicit(&ring->failed, memory_order_relaxed) +
		       atomic_load_explicit(head->kind == ITEM_SEND ? &ring->received : &ring->tail, memory_order_acquire);
	return sum;
}

/* Another thread may drive meanwhile, and items change under us: then the sum is of no use, and whatever is read must lead nowhere. */
static uint64_t batch_inputs(const struct direct_context *context, const struct stream_ring *ring, uint64_t completed)
{
	const struct task *task = &ring->slots[completed % HCCLD_STREAM_SLOTS].task;
	const uint32_t count = read_once(task->item_count);
	const uint64_t side = read_once(task->side);
	const struct direct_rank *rank = atomic_load_explicit(&context->process->places[VIEW_INDEX(task->rank) % HCCLD_RANKS_PER_SESSION].rank,
							      memory_order_acquire);
	struct work work = { .context = (struct direct_context *)context, .items = (struct item *)&ring->slots[0].item,
			     .first = completed + 1, .mask = HCCLD_STREAM_SLOTS - 1 };
	uint64_t sum;

	if (!rank || rank->handle != task->rank)
		return 0;
	sum = atomic_load_explicit(&rank->region->abort, memory_order_relaxed) +
	      atomic_load_explicit(&rank->region->suspensions, memory_order_relaxed) +
	      atomic_load_explicit(&rank->region->members[rank->rank].word, memory_order_relaxed);
	if (side) {
		work.items = (struct item *)own_memory(&work, side, 0, count * (uint64_t)sizeof(struct item));
		work.first = 0;
		work.mask = UINT64_MAX;
	}
	for (uint32_t index = read_once(task->first_lane), next; work.items && index < count; index = next) {
		const struct item *head = work_item(&work, index);

		if (atomic_load_explicit(&head->done, memory_order_relaxed) != LANE_END && head->kind <= ITEM_RECEIVE)
			sum += lane_inputs(rank, head);
		next = read_once(head->next_lane);
		if (next <= index)
			break;
	}
	return sum;
}

uint64_t direct_inputs(const struct direct_context *context)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < atomic_load_explicit(&context->ring_limit, memory_order_acquire); i++) {
		const struct stream_ring *ring = atomic_load_explicit(&context->rings[i], memory_order_acquire);
		uint64_t completed, tail;

		if (!ring)
			continue;
		tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
		completed = atomic_load_explicit(&ring->completed, memory_order_relaxed);
		sum += tail;
		if (completed != tail && ring->slots[completed % HCCLD_STREAM_SLOTS].task.kind == TASK_BATCH)
			sum += batch_inputs(context, ring, completed);
	}
	return sum;
}
