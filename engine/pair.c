/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives: one lane of a batch at a time. The order of stores is that of proto/pair.h (P1 to P5); each CRASH_POINT stands
 * between two stores after which a killed executor must be replaceable.
 */
#include <errno.h>
#include <string.h>

#include "engine/executor.h"

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
};

struct fault pair_fault(struct view_comm *comm, enum cause cause, uint32_t rank, uint32_t peer, enum item_kind direction)
{
	const struct comm_member *member = &comm->region->members[peer];

	return (struct fault){
		.cause = cause,
		.rank = rank,
		.peer = peer,
		.peer_pid = atomic_load_explicit(&member->pid, memory_order_relaxed),
		.peer_exit = atomic_load_explicit(&member->exit, memory_order_relaxed),
		.direction = direction,
		.comm = comm->id,
	};
}

void pair_fail(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination, const struct fault *fault)
{
	struct pair_ring *ring = atomic_load_explicit(&view_pair_of(comm, source, destination)->ring, memory_order_acquire);

	if (!ring || atomic_load_explicit(&ring->failed, memory_order_acquire))
		return;
	/* An earlier writer that died between these two left no record: write it again. */
	atomic_store_explicit(&ring->failing, 1, memory_order_relaxed);
	ring->fault = *fault;
	CRASH_POINT(1);
	/* P5: release, so that whoever sees `failed` sees the record. Before `received`, which stays where it is. */
	atomic_store_explicit(&ring->failed, fault->number ? fault->number : 1, memory_order_release);
	CRASH_POINT(2);
	context_dirty(engine, atomic_load_explicit(&comm->contexts[source], memory_order_acquire));
	context_dirty(engine, atomic_load_explicit(&comm->contexts[destination], memory_order_acquire));
}

enum cause pair_commit(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination, uint64_t number,
		       struct view_segment *source_segment)
{
	struct pair_ring *ring = atomic_load_explicit(&view_pair_of(comm, source, destination)->ring, memory_order_acquire);
	uint32_t word;

	/*
	 * The copy's loads are before this fence, the checks behind it: whoever invalidates the source stores its word first and reuses
	 * the memory later, so a copy that saw reused memory sees the word here.
	 */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&comm->region->abort, memory_order_relaxed))
		return CAUSE_ABORTED;
	word = atomic_load_explicit(&comm->region->members[source].word, memory_order_relaxed);
	if (source_segment && word != MEMBER_ALIVE)
		return word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD;
	if (source_segment && atomic_load_explicit(&source_segment->retired, memory_order_relaxed))
		return CAUSE_PEER_MEMORY;
	if (atomic_load_explicit(&ring->revoked, memory_order_relaxed) >= number)
		return CAUSE_PEER_MEMORY;
	CRASH_POINT(3);
	/* P4: the commit. Release: whoever sees it sees the bytes, and the source may write its buffer again. */
	atomic_store_explicit(&ring->received, number, memory_order_release);
	CRASH_POINT(4);
	context_dirty(engine, atomic_load_explicit(&comm->contexts[source], memory_order_acquire));
	context_dirty(engine, atomic_load_explicit(&comm->contexts[destination], memory_order_acquire));
	return CAUSE_NONE;
}

static int lane_open(struct batch *batch, uint32_t head_index, struct lane *lane)
{
	lane->batch = batch;
	lane->comm = batch->rank->comm;
	lane->head = batch_item(batch, head_index);
	lane->kind = lane->head->kind;
	lane->rank = batch->rank->rank;
	lane->peer = lane->head->peer;
	if (lane->peer >= lane->comm->size || lane->peer == lane->rank)
		return -EPROTO;
	lane->source = lane->kind == ITEM_SEND ? lane->rank : lane->peer;
	lane->destination = lane->kind == ITEM_SEND ? lane->peer : lane->rank;
	lane->pair = view_pair_of(lane->comm, lane->source, lane->destination);
	lane->ring = atomic_load_explicit(&lane->pair->ring, memory_order_acquire);
	lane->peer_member = &lane->comm->region->members[lane->peer];
	return lane->ring ? 0 : -EPROTO;
}

/* Item @index of the lane, if it belongs to it. */
static struct item *lane_item(struct lane *lane, uint32_t index)
{
	struct item *item;

	if (index >= lane->batch->task.item_count)
		return NULL;
	item = batch_item(lane->batch, index);
	return item->kind == lane->kind && item->peer == lane->peer ? item : NULL;
}

/* Why items of this lane that are not covered by the pair's words can never be: CAUSE_NONE while they can. */
static enum cause lane_peer_cause(const struct lane *lane)
{
	switch (atomic_load_explicit(&lane->peer_member->word, memory_order_acquire)) {
	case MEMBER_DEAD: return CAUSE_PEER_DEAD;
	case MEMBER_LEFT: return CAUSE_PEER_LEFT;
	default: return CAUSE_NONE;
	}
}

/* The pair's failure as this end sees it. */
static struct fault lane_pair_fault(const struct lane *lane)
{
	struct fault record = lane->ring->fault, fault;

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
static void lane_item_fail(struct lane *lane, uint32_t index, struct item *item, struct fault fault)
{
	fault.item = index;
	if (!fault.local_bytes) {
		fault.local_bytes = item->bytes;
		fault.local_type = item->data_type;
	}
	atomic_store_explicit(&item->state, ITEM_FAILED, memory_order_relaxed);
	stream_fault(lane->batch->ring, &fault);
	member_fault(&lane->comm->region->members[lane->rank], &fault);
}

/* Writes offer @number for @item into the ring (P2, second half). */
static void lane_offer(struct lane *lane, const struct item *item, uint64_t number)
{
	struct pair_offer *slot = &lane->ring->slots[(number - 1) % HCCLD_PAIR_SLOTS];
	uint64_t bytes = item->bytes, offset = item->offset, segment = item->segment;
	struct view_segment *from;

	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = item->data_type;
	slot->where = OFFER_SEGMENT;
	slot->segment = segment;
	slot->offset = offset;
	if (bytes <= HCCLD_INLINE_MAX) {
		from = view_segment_find(lane->batch->context->session, segment, offset, bytes);
		/* memory that is gone: left to the receiver, who finds the segment missing */
		if (from && lane->batch->engine->host.copy(slot->payload, from->base + offset, bytes, 0, false) == 0)
			slot->where = OFFER_INLINE;
		else
			slot->segment = 0;
	}
	CRASH_POINT(5);
	/* release: the slot is complete before anybody can see the number */
	atomic_store_explicit(&lane->ring->tail, number, memory_order_release);
	CRASH_POINT(6);
}

/* Numbers and offers as many items as the ring takes. Returns false on nonsense. */
static bool lane_send_issue(struct lane *lane)
{
	uint32_t index = atomic_load_explicit(&lane->head->issue, memory_order_relaxed), start = index;
	uint64_t tail = atomic_load_explicit(&lane->ring->tail, memory_order_relaxed);
	uint64_t received = atomic_load_explicit(&lane->ring->received, memory_order_acquire), first = tail;

	while (index != LANE_END) {
		struct item *item = lane_item(lane, index);
		uint64_t number;
		uint32_t next;

		if (!item)
			return false;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		if (!number) {
			/* a number assigned and not offered is somebody else's: one at a time (P2) */
			if (tail - received >= HCCLD_PAIR_SLOTS || atomic_load_explicit(&lane->ring->sent, memory_order_relaxed) != tail)
				break;
			number = tail + 1;
			atomic_store_explicit(&item->number, number, memory_order_release);
			CRASH_POINT(7);
			atomic_store_explicit(&lane->ring->sent, number, memory_order_release);
			CRASH_POINT(8);
		}
		if (number > tail) {
			if (number != tail + 1)
				return false;
			lane_offer(lane, item, number);
			tail = number;
		}
		next = item->next;
		if (next <= index)
			return false;
		index = next;
	}
	if (index != start)
		atomic_store_explicit(&lane->head->issue, index, memory_order_relaxed);
	if (tail != first)
		context_dirty(lane->batch->engine, atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire));
	return true;
}

int lane_send(struct batch *batch, uint32_t head_index)
{
	uint64_t failed, received, tail;
	enum cause peer_cause;
	uint32_t done, start;
	struct lane lane;
	int r;

	r = lane_open(batch, head_index, &lane);
	if (r < 0)
		return r;
	/* the words of the peer before the pair's: what it finished before it went counts */
	peer_cause = lane_peer_cause(&lane);
	failed = atomic_load_explicit(&lane.ring->failed, memory_order_acquire);
	if (!failed && !peer_cause && !lane_send_issue(&lane))
		return -EPROTO;
	received = atomic_load_explicit(&lane.ring->received, memory_order_acquire);
	tail = atomic_load_explicit(&lane.ring->tail, memory_order_relaxed);
	start = done = atomic_load_explicit(&lane.head->done, memory_order_relaxed);
	while (done != LANE_END) {
		struct item *item = lane_item(&lane, done);
		uint64_t number;
		uint32_t next;

		if (!item)
			return -EPROTO;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		next = item->next;
		if (next <= done)
			return -EPROTO;
		if (number && (received >= number || (tail >= number && item->bytes <= HCCLD_INLINE_MAX)))
			;	/* P4 */
		else if (failed && (!number || number >= failed))
			lane_item_fail(&lane, done, item, lane_pair_fault(&lane));
		else if (peer_cause)
			lane_item_fail(&lane, done, item, pair_fault(lane.comm, peer_cause, lane.rank, lane.peer, ITEM_SEND));
		else
			break;
		done = next;
	}
	if (done != start) {
		uint32_t issue = atomic_load_explicit(&lane.head->issue, memory_order_relaxed);

		CRASH_POINT(9);
		atomic_store_explicit(&lane.head->done, done, memory_order_relaxed);
		if (issue < done)
			atomic_store_explicit(&lane.head->issue, done, memory_order_relaxed);
	}
	return done == LANE_END;
}

static bool lane_receive_issue(struct lane *lane)
{
	uint32_t index = atomic_load_explicit(&lane->head->issue, memory_order_relaxed), start = index;

	while (index != LANE_END) {
		struct item *item = lane_item(lane, index);
		uint32_t next;

		if (!item)
			return false;
		if (!atomic_load_explicit(&item->number, memory_order_relaxed)) {
			uint64_t number = atomic_load_explicit(&lane->ring->posted, memory_order_relaxed) + 1;

			/* P3: the item before the counter, so that the counter can be rebuilt from items */
			atomic_store_explicit(&item->number, number, memory_order_release);
			CRASH_POINT(10);
			atomic_store_explicit(&lane->ring->posted, number, memory_order_release);
			CRASH_POINT(11);
		}
		next = item->next;
		if (next <= index)
			return false;
		index = next;
	}
	if (index != start)
		atomic_store_explicit(&lane->head->issue, index, memory_order_relaxed);
	return true;
}

/* Fails receive @number of the lane's pair with @cause, as seen from the receiver. */
static void lane_receive_fail(struct lane *lane, enum cause cause, const struct item *item, uint64_t number,
			      const struct pair_offer *offer)
{
	struct fault fault = pair_fault(lane->comm, cause, lane->rank, lane->peer, ITEM_RECEIVE);

	fault.number = number;
	fault.local_bytes = item->bytes;
	fault.local_type = item->data_type;
	if (offer) {
		fault.remote_bytes = offer->bytes;
		fault.remote_type = offer->data_type;
	}
	pair_fail(lane->batch->engine, lane->comm, lane->source, lane->destination, &fault);
	if (offer && cause == CAUSE_MISMATCH && offer->where == OFFER_INLINE) {
		/* that send has completed: its rank learns it by its next call */
		struct fault seen = pair_fault(lane->comm, cause, lane->peer, lane->rank, ITEM_SEND);

		seen.number = number;
		seen.local_bytes = offer->bytes;
		seen.local_type = offer->data_type;
		seen.remote_bytes = item->bytes;
		seen.remote_type = item->data_type;
		member_fault(lane->peer_member, &seen);
	}
}

/* Starts a copy in slices of offer @number into @item. False: no transfer is free. */
static bool lane_receive_large(struct lane *lane, struct item *item, const struct pair_offer *offer, struct view_context *source,
			       struct view_segment *from, struct view_segment *to)
{
	struct engine *engine = lane->batch->engine;
	struct transfer *transfer = transfer_new(engine, lane->batch, item, offer->bytes);

	if (!transfer)
		return false;
	transfer->comm = lane->comm;
	transfer->pair = lane->pair;
	transfer->source = lane->source;
	transfer->destination = lane->destination;
	transfer->number = offer->number;
	transfer->source_session = source->session;
	transfer->source_segment = from;
	transfer->destination_segment = to;
	transfer->from = from->base + offer->offset;
	transfer->to = to->base + item->offset;
	lane->pair->transfer = transfer;
	transfer_queue(engine, transfer);
	return true;
}

/*
 * Receive @number is the next to commit and its offer is there: pulls it. True if the pair's words changed (committed or failed).
 */
static bool lane_receive_pull(struct lane *lane, struct item *item, uint64_t number)
{
	struct engine *engine = lane->batch->engine;
	struct view_segment *to, *from = NULL;
	struct view_context *source;
	struct item wanted = { .bytes = item->bytes, .segment = item->segment, .offset = item->offset, .data_type = item->data_type };
	struct pair_offer offer;
	enum cause cause = CAUSE_NONE;
	int r;

	/* the source's process can write the slot at any time: judge the copy */
	memcpy(&offer, &lane->ring->slots[(number - 1) % HCCLD_PAIR_SLOTS], sizeof(offer));
	if (offer.number != number || (offer.where == OFFER_INLINE && offer.bytes > HCCLD_INLINE_MAX))
		cause = CAUSE_PROTOCOL;
	else if (offer.bytes != wanted.bytes)
		cause = CAUSE_MISMATCH;
	if (!cause && offer.data_type != wanted.data_type && !lane->pair->type_warned) {
		lane->pair->type_warned = true;
		engine->host.type_mismatch(engine->host.data, lane->comm, lane->source, lane->destination, offer.data_type,
					   wanted.data_type);
	}
	to = view_segment_find(lane->batch->context->session, wanted.segment, wanted.offset, wanted.bytes);
	if (!cause && !to)
		cause = CAUSE_NOT_DEVICE_MEMORY;
	if (!cause && offer.where != OFFER_INLINE) {
		source = atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire);
		cause = lane_peer_cause(lane);
		if (!cause && !source)
			cause = CAUSE_PEER_LEFT;
		from = cause ? NULL : view_segment_find(source->session, offer.segment, offer.offset, offer.bytes);
		if (!cause && !from)
			cause = CAUSE_PEER_MEMORY;
		if (!cause && offer.bytes > HCCLD_SMALL_COPY) {
			lane_receive_large(lane, item, &offer, source, from, to);
			return false;
		}
	}
	if (!cause) {
		r = engine->host.copy(to->base + wanted.offset, from ? from->base + offer.offset : offer.payload, offer.bytes, 0, false);
		CRASH_POINT(12);
		cause = r < 0 ? CAUSE_MEMORY_FAULT
			      : pair_commit(engine, lane->comm, lane->source, lane->destination, number, from);
	}
	if (cause)
		lane_receive_fail(lane, cause, item, number, &offer);
	return true;
}

int lane_receive(struct batch *batch, uint32_t head_index)
{
	uint32_t done, start;
	struct lane lane;
	int r;

	r = lane_open(batch, head_index, &lane);
	if (r < 0)
		return r;
	if (!lane_receive_issue(&lane))
		return -EPROTO;
	start = done = atomic_load_explicit(&lane.head->done, memory_order_relaxed);
	while (done != LANE_END) {
		struct item *item = lane_item(&lane, done);
		uint64_t number, received, failed;
		enum cause peer_cause;
		uint32_t next;

		if (!item || !(number = atomic_load_explicit(&item->number, memory_order_relaxed)))
			return -EPROTO;
		next = item->next;
		if (next <= done)
			return -EPROTO;
		peer_cause = lane_peer_cause(&lane);
		failed = atomic_load_explicit(&lane.ring->failed, memory_order_acquire);
		received = atomic_load_explicit(&lane.ring->received, memory_order_relaxed);
		if (received < number && failed && number >= failed) {
			lane_item_fail(&lane, done, item, lane_pair_fault(&lane));
		} else if (received < number) {
			/* receives commit in number order, whatever their stream; one large copy per pair at a time */
			if (number != received + 1 || lane.pair->transfer)
				break;
			if (atomic_load_explicit(&lane.ring->tail, memory_order_acquire) < number) {
				if (!peer_cause)
					break;
				lane_receive_fail(&lane, peer_cause, item, number, NULL);
			} else if (!lane_receive_pull(&lane, item, number)) {
				break;
			}
			continue;	/* look at the words again */
		}
		done = next;
	}
	if (done != start) {
		CRASH_POINT(13);
		atomic_store_explicit(&lane.head->done, done, memory_order_relaxed);
	}
	return done == LANE_END;
}
