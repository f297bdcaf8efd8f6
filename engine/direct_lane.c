/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes of a batch, done by the process whose batch it is. Words of pairs in the order of proto/pair.h (P1 to P5); what fails, or looks as if
 * it would, is declined before anything is stored about it.
 */
#include <string.h>

#include "engine/copy.h"
#include "engine/direct.h"
#include "engine/lane.h"
#include "engine/point.h"
#include "engine/view.h"

/* A batch as one pass sees it. */
struct work {
	struct direct_context *context;
	struct direct_rank *rank;
	struct item *items;		/* as in struct batch */
	uint64_t first, mask;
	/* the segment found last */
	uint64_t segment;
	unsigned char *base;
	uint64_t size;
};

#define OFFERS_AHEAD 6

static inline struct item *work_item(const struct work *work, uint32_t index)
{
	return &work->items[(work->first + index) & work->mask];
}

/*
 * The next item of a lane. Indices grow; what does not is memory that the daemon has taken away (its session has ended though the process
 * lives), and read as zeros: then the lane ends here, and what is done next does not matter to anybody.
 */
static inline uint32_t item_next(const struct item *item, uint32_t index)
{
	return item->next > index ? item->next : LANE_END;
}

static __attribute__((noinline)) bool segment_find(struct work *work, uint64_t id)
{
	const struct direct_segment *segment = &work->context->process->segments[VIEW_INDEX(id) % HCCLD_SEGMENTS_PER_SESSION];

	if (!id || atomic_load_explicit(&segment->id, memory_order_acquire) != id)
		return false;
	work->segment = id;
	work->base = segment->base;
	work->size = segment->size;
	return true;
}

/* Memory of this process. NULL: it is none that the executor here knows, or the place is not inside it. */
static inline unsigned char *own_memory(struct work *work, uint64_t id, uint64_t offset, uint64_t bytes)
{
	if (id != work->segment && !segment_find(work, id))
		return NULL;
	return offset <= work->size && bytes <= work->size - offset ? work->base + offset : NULL;
}

/* ---- sends ---- */

static void need(struct work *work, enum direct_need what, uint32_t peer, uint64_t segment)
{
	/* more room can wait, what is needed to go on cannot */
	if (work->context->wish.need == NEED_NOTHING || what <= NEED_EXTENTS)
		work->context->wish = (struct direct_wish){ what, peer, work->rank->handle, segment };
}

enum offered { OFFERED, OFFER_DECLINED, OFFER_NO_ROOM };

static bool peer_is_gone(const struct work *work, uint32_t peer)
{
	return atomic_load_explicit(&work->rank->region->members[peer].word, memory_order_acquire) != MEMBER_ALIVE;
}

/* A free slot. False: there is none. */
static bool eager_find(struct work *work, struct eager_place **ret_at, uint32_t *ret_slot)
{
	struct direct_rank *rank = work->rank;

	for (uint32_t n = 0; n < rank->pool_count; n++) {
		struct eager_place *at = &rank->pools[(rank->pool_first + n) % rank->pool_count];

		for (uint32_t i = 0; i < at->slot_count; i++) {
			uint32_t slot = (at->cursor + i) % at->slot_count;
			uint64_t number = atomic_load_explicit(&at->pool->heads[slot].number, memory_order_relaxed);
			uint32_t peer = atomic_load_explicit(&at->pool->heads[slot].peer, memory_order_relaxed);

			if (peer >= rank->size || !eager_is_free(number, rank->peers[peer].out, number && peer_is_gone(work, peer)))
				continue;
			at->cursor = slot + 1;
			rank->pool_first = (rank->pool_first + n) % rank->pool_count;
			*ret_at = at;
			*ret_slot = slot;
			return true;
		}
	}
	return false;
}

/* A copy that its receiver has not asked for yet, so that it is complete without him. */
static enum offered offer_eager(struct work *work, const struct item *item, uint64_t number, struct pair_offer *offer)
{
	const unsigned char *from = own_memory(work, item->segment, item->offset, item->bytes);
	struct eager_place *at;
	uint32_t slot;

	if (!from)
		return OFFER_DECLINED;
	if (!eager_find(work, &at, &slot)) {
		if (work->rank->is_full)
			return OFFER_DECLINED;
		need(work, NEED_POOL, item->peer, 0);
		return OFFER_NO_ROOM;
	}
	eager_fill(at, slot, item->peer, number, from, item->bytes, offer);
	return OFFERED;
}

/* P2: @item becomes offer @number, which nobody reads yet. */
static inline enum offered offer_write(struct work *work, const struct item *item, struct direct_peer *peer, uint64_t number)
{
	struct pair_offer *slot = pair_slot(peer->out, peer->wide_out, number);
	const uint64_t bytes = item->bytes;

	if (!slot)
		return OFFER_DECLINED;
	if (bytes <= HCCLD_INLINE_MAX) {
		const unsigned char *from = own_memory(work, item->segment, item->offset, bytes);

		if (!from)
			return OFFER_DECLINED;
		slot->where = OFFER_INLINE;
		copy_payload(slot->payload, from, bytes);
	} else {
		enum offered offered = OFFER_DECLINED;

		if (bytes <= HCCLD_EAGER_MAX && atomic_load_explicit(&peer->out->posted, memory_order_relaxed) < number)
			offered = offer_eager(work, item, number, slot);
		if (offered == OFFER_NO_ROOM)
			return offered;
		if (offered == OFFER_DECLINED) {
			slot->where = OFFER_SEGMENT;
			slot->segment = item->segment;
			slot->offset = item->offset;
		}
	}
	CRASH_POINT(117);
	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = item->data_type;
	return OFFERED;
}

/* P6: from offer @number on. */
static void widen(struct direct_peer *peer, uint64_t number)
{
	if (!peer->wide_out || atomic_load_explicit(&peer->out->wide_from, memory_order_relaxed))
		return;
	atomic_store_explicit(&peer->out->wide, peer->wide_index + 1, memory_order_release);
	atomic_store_explicit(&peer->out->wide_from, number, memory_order_release);
}

/* Is there room for offer @number, now or by widening? */
static bool send_room(struct work *work, const struct item *item, struct direct_peer *peer, uint64_t number)
{
	const uint64_t room = pair_room(peer->out, number);

	if (number <= peer->received + room)
		return true;
	peer->received = atomic_load_explicit(&peer->out->received, memory_order_acquire);
	if (number <= peer->received + room)
		return true;
	if (item->bytes > HCCLD_EAGER_MAX || work->rank->is_full || atomic_load_explicit(&peer->out->wide_from, memory_order_relaxed))
		return false;
	if (!peer->wide_out) {
		need(work, NEED_WIDE, item->peer, 0);
		return false;
	}
	widen(peer, number);
	return true;
}

/* Offers a run of as many items as the ring takes. False: declined. */
static bool send_issue(struct work *work, struct direct_peer *peer, struct item *head)
{
	struct pair_ring *ring = peer->out;
	uint32_t index = atomic_load_explicit(&head->issue, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed), last = tail;
	enum offered offered = OFFERED;

	/* numbers that an engine has given and not offered before it ended */
	if (atomic_load_explicit(&ring->sent, memory_order_relaxed) != tail)
		return false;
	while (index != LANE_END) {
		struct item *item = work_item(work, index);
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

		if (number > tail)
			return false;
		if (!number) {
			if (!send_room(work, item, peer, last + 1))
				break;
			/* its reader has it: asked for some offers ahead */
			__builtin_prefetch(pair_slot(ring, peer->wide_out, last + 1 + OFFERS_AHEAD), 1);
			if (!KEEPS(OFFER_FIRST))
				atomic_store_explicit(&ring->tail, last + 1, memory_order_release);
			offered = offer_write(work, item, peer, last + 1);
			if (offered != OFFERED)
				break;
			CRASH_POINT(118);
			atomic_store_explicit(&item->number, ++last, memory_order_relaxed);
			CRASH_POINT(119);
		}
		index = item_next(item, index);
	}
	atomic_store_explicit(&head->issue, index, memory_order_relaxed);
	if (last != tail) {
		CRASH_POINT(120);
		atomic_store_explicit(&ring->sent, last, memory_order_relaxed);
		CRASH_POINT(121);
		/* release: the slots are complete before anybody can see the number */
		atomic_store_explicit(&ring->tail, last, memory_order_release);
		CRASH_POINT(122);
		direct_touch(work->context, peer);
	}
	return offered != OFFER_DECLINED;
}

/* P4 */
static inline bool send_is_done(struct direct_peer *peer, const struct item *item, uint64_t tail)
{
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);
	const struct pair_offer *slot;

	if (!number)
		return false;
	if (number <= peer->received)
		return true;
	if (number <= tail && item->bytes <= HCCLD_INLINE_MAX)
		return true;
	peer->received = atomic_load_explicit(&peer->out->received, memory_order_acquire);
	if (number <= peer->received)
		return true;
	if (number > tail || item->bytes > HCCLD_EAGER_MAX)
		return false;
	slot = pair_slot(peer->out, peer->wide_out, number);
	return slot && slot->where == OFFER_EAGER;
}

static enum direct_left lane_send_direct(struct work *work, struct item *head)
{
	struct direct_peer *peer = &work->rank->peers[head->peer];
	struct pair_ring *ring = peer->out;
	uint64_t tail;
	uint32_t done;

	if (!ring || atomic_load_explicit(&ring->failed, memory_order_acquire))
		return DIRECT_DECLINED;
	if (work->context->is_thorough && peer_is_gone(work, head->peer))
		return DIRECT_DECLINED;
	if (atomic_load_explicit(&head->issue, memory_order_relaxed) != LANE_END && !send_issue(work, peer, head))
		return DIRECT_DECLINED;
	tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	done = atomic_load_explicit(&head->done, memory_order_relaxed);
	while (done != LANE_END) {
		const struct item *item = work_item(work, done);

		if (!send_is_done(peer, item, tail))
			break;
		done = item_next(item, done);
	}
	CRASH_POINT(123);
	atomic_store_explicit(&head->done, done, memory_order_relaxed);
	return done == LANE_END ? DIRECT_DONE : DIRECT_WAITS;
}

/* ---- receives ---- */

/* P3 */
static void receive_issue(struct work *work, struct pair_ring *ring, struct item *head)
{
	uint32_t index = atomic_load_explicit(&head->issue, memory_order_relaxed);
	uint64_t posted = atomic_load_explicit(&ring->posted, memory_order_relaxed);

	for (; index != LANE_END; index = item_next(work_item(work, index), index)) {
		struct item *item = work_item(work, index);

		if (!atomic_load_explicit(&item->number, memory_order_relaxed))
			atomic_store_explicit(&item->number, ++posted, memory_order_relaxed);
	}
	CRASH_POINT(124);
	atomic_store_explicit(&ring->posted, posted, memory_order_release);
	CRASH_POINT(125);
	atomic_store_explicit(&head->issue, LANE_END, memory_order_relaxed);
}

/* Memory of a peer. NULL: not mapped, or not to be mapped. */
static const unsigned char *peer_memory(struct work *work, uint32_t peer_rank, uint64_t id, uint64_t offset, uint64_t bytes)
{
	struct direct_peer *peer = &work->rank->peers[peer_rank];

	if (atomic_load_explicit(&work->rank->region->members[peer_rank].retired, memory_order_acquire) == peer->generation) {
		for (uint32_t i = 0; i < peer->mapped_count; i++) {
			const struct direct_segment *segment = &peer->mapped[i];

			if (segment->id != id)
				continue;
			if (!segment->base || offset > segment->size || bytes > segment->size - offset)
				return NULL;
			return segment->base + offset;
		}
	}
	need(work, NEED_SEGMENT, peer_rank, id);
	return NULL;
}

/* A payload in a pool of some rank. NULL: it is not mapped. */
static const unsigned char *pool_memory(struct work *work, uint32_t peer_rank, uint64_t place, uint64_t bytes)
{
	for (uint32_t i = 0; i < work->rank->extent_count; i++) {
		const struct direct_extent *extent = &work->rank->extents[i];

		if (place >= extent->place && place - extent->place < extent->bytes)
			return bytes <= extent->bytes - (place - extent->place) ? extent->base + (place - extent->place) : NULL;
	}
	need(work, NEED_EXTENTS, peer_rank, 0);
	return NULL;
}

/* A run of receives that are copied one after the other and committed together. */
struct run {
	uint64_t last;			/* copied so far */
	bool from_segment;		/* some of them */
};

enum pull { PULL_DONE, PULL_LATER, PULL_DECLINED };

/* Receive run->last + 1 has its offer. The offer is another process's word: each field is read once. */
static enum pull receive_pull(struct work *work, struct run *run, const struct item *item, struct direct_peer *peer)
{
	const struct pair_offer *slot = pair_slot(peer->in, peer->wide_in, run->last + 1);
	const uint64_t bytes = item->bytes;
	const unsigned char *from;
	unsigned char *to;
	uint8_t where;

	if (!slot) {
		need(work, NEED_EXTENTS, item->peer, 0);
		return PULL_DECLINED;
	}
	to = own_memory(work, item->segment, item->offset, bytes);
	where = read_once(slot->where);
	if (!to || read_once(slot->number) != run->last + 1 || read_once(slot->bytes) != bytes ||
	    read_once(slot->data_type) != item->data_type)
		return PULL_DECLINED;
	if (where == OFFER_INLINE) {
		if (bytes > HCCLD_INLINE_MAX)
			return PULL_DECLINED;
		copy_payload(to, slot->payload, bytes);
		return PULL_DONE;
	}
	if (where == OFFER_EAGER) {
		from = bytes > HCCLD_EAGER_MAX ? NULL : pool_memory(work, item->peer, read_once(slot->place), bytes);
		if (!from)
			return PULL_DECLINED;
		memcpy(to, from, bytes);
		return PULL_DONE;
	}
	if (where != OFFER_SEGMENT || bytes > DIRECT_COPY_MAX)
		return PULL_DECLINED;
	if (bytes > work->context->budget)
		return PULL_LATER;
	from = peer_memory(work, item->peer, read_once(slot->segment), read_once(slot->offset), bytes);
	if (!from)
		return PULL_DECLINED;
	work->context->budget -= bytes;
	run->from_segment = true;
	CRASH_POINT(126);
	if (bytes >= HCCLD_NON_TEMPORAL_MIN)
		copy_non_temporal(to, from, bytes);
	else
		memcpy(to, from, bytes);
	return PULL_DONE;
}

/*
 * P4. The copies' loads are before the fence, the checks behind it: whoever takes a source away, or fails the pair, stores its word first, and
 * the memory is used again later. So a copy that saw memory in new use sees the word here, and is not committed; and one that is committed
 * has copied what was offered, also if the pair fails between the checks and the store.
 */
static bool receive_commit(struct work *work, const struct run *run, struct direct_peer *peer, uint32_t peer_rank)
{
	const struct comm_region *region = work->rank->region;
	const struct comm_member *member = &region->members[peer_rank];
	struct pair_ring *ring = peer->in;

	CRASH_POINT(127);
	atomic_thread_fence(memory_order_acquire);
	if ((KEEPS(COMMIT_ABORT) && atomic_load_explicit(&region->abort, memory_order_relaxed)) ||
	    (KEEPS(COMMIT_FAILED) && atomic_load_explicit(&ring->failed, memory_order_relaxed)) ||
	    (KEEPS(COMMIT_REVOKED) && atomic_load_explicit(&ring->revoked, memory_order_relaxed) >= run->last))
		return false;
	if (run->from_segment && ((KEEPS(COMMIT_MEMBER) && atomic_load_explicit(&member->word, memory_order_relaxed) != MEMBER_ALIVE) ||
				  (KEEPS(COMMIT_RETIRED) && atomic_load_explicit(&member->retired, memory_order_relaxed) != peer->generation)))
		return false;
	CRASH_POINT(128);
	/* release: whoever sees it sees the bytes, and the source may write its buffer again */
	atomic_store_explicit(&ring->received, run->last, memory_order_release);
	CRASH_POINT(129);
	direct_touch(work->context, peer);
	return true;
}

static enum direct_left lane_receive_direct(struct work *work, struct item *head)
{
	const uint32_t peer_rank = head->peer;
	struct direct_peer *peer = &work->rank->peers[peer_rank];
	struct pair_ring *ring = peer->in;
	uint64_t received, tail;
	enum pull pull = PULL_DONE;
	struct run run;
	uint32_t at;

	if (!ring || atomic_load_explicit(&ring->failed, memory_order_acquire))
		return DIRECT_DECLINED;
	if (atomic_load_explicit(&head->issue, memory_order_relaxed) != LANE_END)
		receive_issue(work, ring, head);
	/* the word of the peer before the pair's: what it offered before it went counts */
	if (work->context->is_thorough && peer_is_gone(work, peer_rank))
		return DIRECT_DECLINED;
	received = atomic_load_explicit(&ring->received, memory_order_relaxed);
	/* the offer comes from the peer's core as the tail does: both at once */
	__builtin_prefetch(pair_slot(ring, peer->wide_in, received + 1));
	tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	run = (struct run){ .last = received };
	at = atomic_load_explicit(&head->done, memory_order_relaxed);
	while (at != LANE_END) {
		const struct item *item = work_item(work, at);
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

		if (number > received) {
			/* receives commit in number order, whatever their stream */
			if (number != run.last + 1 || number > tail)
				break;
			pull = receive_pull(work, &run, item, peer);
			if (pull != PULL_DONE)
				break;
			run.last = number;
		}
		at = item_next(item, at);
	}
	if (run.last != received && !receive_commit(work, &run, peer, peer_rank))
		return DIRECT_DECLINED;
	CRASH_POINT(130);
	atomic_store_explicit(&head->done, at, memory_order_relaxed);
	if (at == LANE_END)
		return DIRECT_DONE;
	return pull == PULL_DECLINED ? DIRECT_DECLINED : pull == PULL_LATER ? DIRECT_MORE : DIRECT_WAITS;
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
		.context = context, .rank = rank, .items = &ring->slots[0].item, .mask = HCCLD_STREAM_SLOTS - 1,
		.first = (uint64_t)((const union stream_slot *)task - ring->slots) + 1,
	};
	const uint32_t count = task->item_count;
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
	const struct direct_rank *rank = atomic_load_explicit(&context->process->ranks[VIEW_INDEX(task->rank) % HCCLD_RANKS_PER_SESSION],
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
