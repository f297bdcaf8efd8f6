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
	struct item *items;		/* as in struct batch */
	uint64_t first, mask, key;
	uint32_t count;
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

struct fault pair_fault(struct view_comm *comm, enum cause cause, uint32_t rank, uint32_t peer, enum item_kind direction)
{
	const struct comm_member *member = &comm->region->members[peer];
	struct fault fault = {
		.cause = cause,
		.rank = rank,
		.peer = peer,
		.peer_pid = atomic_load_explicit(&member->pid, memory_order_relaxed),
		.peer_exit = atomic_load_explicit(&member->exit, memory_order_relaxed),
		.direction = direction,
		.comm = comm->id,
	};

	if ((cause == CAUSE_PEER_LEFT || cause == CAUSE_PEER_GAVE_UP) &&
	    atomic_load_explicit(&member->async, memory_order_acquire) == 2) {
		const struct fault *theirs = &member->fault;
		bool is_first = !theirs->first_cause;

		fault.first_cause = is_first ? theirs->cause : theirs->first_cause;
		/* a death is named by the dead, anything else by whom it met */
		fault.first_rank = !is_first ? theirs->first_rank : theirs->cause == CAUSE_PEER_DEAD ? theirs->peer : theirs->rank;
		fault.first_pid = is_first ? theirs->peer_pid : theirs->first_pid;
		fault.first_exit = is_first ? theirs->peer_exit : theirs->first_exit;
	}
	return fault;
}

void pair_fail(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination, const struct fault *fault)
{
	struct pair_ring *ring = atomic_load_explicit(&view_pair_of(comm, source, destination)->ring, memory_order_acquire);

	uint64_t number = fault->number ? fault->number : 1, failed;

	if (!ring)
		return;
	/* an earlier number may fail after a later one (that of another stream, say): then everything from there on has failed */
	failed = atomic_load_explicit(&ring->failed, memory_order_acquire);
	if (failed && failed <= number)
		return;
	/* An earlier writer that died between these two left no record: write it again. */
	atomic_store_explicit(&ring->failing, 1, memory_order_relaxed);
	ring->fault = *fault;
	CRASH_POINT(1);
	/* P5: release, so that whoever sees `failed` sees the record. Before `received`, which stays where it is. */
	atomic_store_explicit(&ring->failed, number, memory_order_release);
	CRASH_POINT(2);
	context_dirty(engine, atomic_load_explicit(&comm->contexts[source], memory_order_acquire));
	context_dirty(engine, atomic_load_explicit(&comm->contexts[destination], memory_order_acquire));
}

enum cause pair_commit(struct engine *engine, struct view_comm *comm, struct pair_ring *ring, uint32_t source, uint32_t destination,
		       uint64_t number, struct view_segment *source_segment)
{
	/*
	 * The copies' loads are before this fence, the checks behind it: whoever invalidates the source stores its word first and reuses
	 * the memory later, so a copy that saw reused memory sees the word here.
	 */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&comm->region->abort, memory_order_relaxed))
		return CAUSE_ABORTED;
	if (source_segment) {
		uint32_t word = atomic_load_explicit(&comm->region->members[source].word, memory_order_relaxed);

		if (word != MEMBER_ALIVE)
			return word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD;
		if (atomic_load_explicit(&source_segment->retired, memory_order_relaxed))
			return CAUSE_PEER_MEMORY;
	}
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

/* @kind: what the head's was when it was looked at; it may say something else by now. */
static int lane_open(struct batch *batch, uint32_t head_index, enum item_kind kind, struct lane *lane)
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
static inline __attribute__((always_inline)) struct item *lane_item(struct lane *lane, uint32_t index)
{
	struct item *item = &lane->items[(lane->first + index) & lane->mask];

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
static void lane_item_fail(struct lane *lane, struct item *item, struct fault fault)
{
	fault.item = item->list_index;
	if (!fault.local_bytes) {
		fault.local_bytes = item->bytes;
		fault.local_type = item->data_type;
	}
	atomic_store_explicit(&item->state, ITEM_FAILED, memory_order_relaxed);
	stream_fault(lane->batch->ring, &fault);
	member_fault(&lane->comm->region->members[lane->rank], &fault);
}

/* Writes offer @number for @item into its slot; guarded. */
static void lane_offer(struct lane *lane, const struct item *item, uint64_t number)
{
	struct pair_offer *slot = &lane->ring->slots[(number - 1) % HCCLD_PAIR_SLOTS];
	uint64_t bytes = item->bytes, offset = item->offset, segment = item->segment;
	struct view_segment *from;

	slot->number = number;
	slot->bytes = bytes;
	slot->data_type = item->data_type;
	slot->where = OFFER_SEGMENT;
	if (bytes <= HCCLD_INLINE_MAX) {
		from = view_segment_find(lane->batch->context->session, segment, offset, bytes);
		if (from) {
			slot->where = OFFER_INLINE;
			copy_payload(slot->payload, from->base + offset, bytes);
			return;
		}
		segment = 0;	/* memory that is gone: the receiver finds nothing there */
	}
	slot->segment = segment;
	slot->offset = offset;
}

/* The payloads of offers from @first on were copied from memory that was lost. */
static void lane_offers_spoil(struct lane *lane, uint64_t first, uint64_t last)
{
	for (uint64_t number = first; number <= last; number++) {
		struct pair_offer *slot = &lane->ring->slots[(number - 1) % HCCLD_PAIR_SLOTS];

		if (slot->where == OFFER_INLINE) {
			slot->where = OFFER_SEGMENT;
			slot->segment = 0;
		}
	}
}

/* P2: numbers and offers a run of as many items as the ring takes. False on nonsense. */
static bool lane_send_issue(struct lane *lane)
{
	struct engine *engine = lane->batch->engine;
	uint32_t index = atomic_load_explicit(&lane->head->issue, memory_order_relaxed), start = index;
	uint64_t tail = atomic_load_explicit(&lane->ring->tail, memory_order_relaxed), last = tail;
	uint64_t sent = atomic_load_explicit(&lane->ring->sent, memory_order_relaxed);
	uint64_t limit = atomic_load_explicit(&lane->ring->received, memory_order_acquire) + HCCLD_PAIR_SLOTS;
	bool sane = true;
	const void *lost;

	engine->host.guard_begin();
	while (index != LANE_END) {
		struct item *item = lane_item(lane, index);
		uint64_t number;
		uint32_t next;

		if (!(sane = item != NULL))
			break;
		number = atomic_load_explicit(&item->number, memory_order_relaxed);
		if (number > tail || !number) {
			if (last >= limit || (!number && last < sent))
				break;	/* no room, or numbers that another lane was given and has not offered */
			if (number && !(sane = number == last + 1))
				break;
			last++;
			if (!number) {
				atomic_store_explicit(&item->number, last, memory_order_release);
				CRASH_POINT(7);
			}
			lane_offer(lane, item, last);
		}
		next = item->next;
		if (!(sane = next > index))
			break;
		index = next;
	}
	lost = engine->host.guard_end();
	if (lost) {
		lane_offers_spoil(lane, tail + 1, last);
		engine_blame(engine, lane->batch->context->session, NULL, lost);
	}
	if (last != tail) {
		if (last > sent)
			atomic_store_explicit(&lane->ring->sent, last, memory_order_release);
		CRASH_POINT(5);
		/* release: the slots are complete before anybody can see the number */
		atomic_store_explicit(&lane->ring->tail, last, memory_order_release);
		CRASH_POINT(6);
		context_dirty(engine, atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire));
	}
	CRASH_POINT(8);
	if (index != start)
		atomic_store_explicit(&lane->head->issue, index, memory_order_relaxed);
	return sane;
}

int lane_send(struct batch *batch, uint32_t head_index)
{
	uint64_t failed, received, tail;
	enum cause peer_cause;
	uint32_t done, start;
	struct lane lane;
	int r;

	r = lane_open(batch, head_index, ITEM_SEND, &lane);
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
			lane_item_fail(&lane, item, lane_pair_fault(&lane));
		else if (peer_cause)
			lane_item_fail(&lane, item, pair_fault(lane.comm, peer_cause, lane.rank, lane.peer, ITEM_SEND));
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
			       struct view_segment *from, struct view_segment *to, uint64_t to_offset)
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
	transfer->to = to->base + to_offset;
	lane->pair->transfer = transfer;
	transfer_queue(engine, transfer);
	return true;
}

/* A run of receives that are copied one after the other and committed together. */
struct run {
	uint64_t first, last;			/* committed before it; copied so far */
	struct view_segment *source;		/* where it pulls from; NULL: inline offers only so far */
	const struct item *failed_item;		/* ended by `cause` */
	struct pair_offer offer;		/* of that item */
	enum cause cause;
	bool full;				/* the next one cannot join */
};

/* Offer @offer (ours: a copy) is in a segment of the source. */
static void run_pull_segment(struct lane *lane, struct run *run, struct item *item, const struct pair_offer *offer,
			     struct view_segment *to, uint64_t to_offset)
{
	struct view_context *source = atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire);
	struct view_segment *from = NULL;

	run->cause = lane_peer_cause(lane);
	if (!run->cause && !source)
		run->cause = CAUSE_PEER_LEFT;
	if (!run->cause && !(from = view_segment_find(source->session, offer->segment, offer->offset, offer->bytes)))
		run->cause = CAUSE_PEER_MEMORY;
	if (run->cause)
		return;
	if (offer->bytes > HCCLD_SMALL_COPY) {
		/* alone, and not here */
		if (run->last == run->first)
			lane_receive_large(lane, item, offer, source, from, to, to_offset);
		run->full = true;
		return;
	}
	if (run->source && run->source != from) {
		run->full = true;
		return;
	}
	run->source = from;
	memcpy(to->base + to_offset, from->base + offer->offset, offer->bytes);
	run->last++;
}

/* Receive run->last + 1 has its offer: copies it if it may join the run. */
static void run_pull(struct lane *lane, struct run *run, struct item *item)
{
	struct view_segment *to;
	uint64_t bytes = item->bytes, offset = item->offset, segment = item->segment;
	uint8_t type = item->data_type;
	struct pair_offer *offer = &run->offer;

	/* the source's process may be able to write the slot: judge the copy */
	memcpy(offer, &lane->ring->slots[run->last % HCCLD_PAIR_SLOTS], sizeof(*offer));
	if (offer->number != run->last + 1 || (offer->where == OFFER_INLINE && offer->bytes > HCCLD_INLINE_MAX))
		run->cause = CAUSE_PROTOCOL;
	else if (offer->bytes != bytes)
		run->cause = CAUSE_MISMATCH;
	else if (!(to = view_segment_find(lane->batch->context->session, segment, offset, bytes)))
		run->cause = CAUSE_NOT_DEVICE_MEMORY;
	else if (offer->where == OFFER_INLINE) {
		copy_payload(to->base + offset, offer->payload, bytes);
		run->last++;
	} else {
		run_pull_segment(lane, run, item, offer, to, offset);
	}
	if (run->cause)
		run->failed_item = item;
	else if (offer->data_type != type && !lane->pair->type_warned) {
		struct engine_host *host = &lane->batch->engine->host;

		lane->pair->type_warned = true;
		host->type_mismatch(host->data, lane->comm, lane->source, lane->destination, offer->data_type, type);
	}
}

/*
 * Pulls and commits what is there for the lane from item @index on. True if the pair's words changed: look again. @index is moved past
 * what is received.
 */
static bool lane_receive_run(struct lane *lane, uint32_t *index)
{
	struct engine *engine = lane->batch->engine;
	uint64_t tail = atomic_load_explicit(&lane->ring->tail, memory_order_acquire);
	uint64_t received = atomic_load_explicit(&lane->ring->received, memory_order_relaxed);
	struct run run = { .first = received, .last = received };
	uint32_t at = *index;
	struct item *item = NULL;
	const void *lost;

	if (lane->pair->transfer)
		return false;	/* one large copy per pair at a time */
	engine->host.guard_begin();
	while (at != LANE_END && !run.cause && !run.full && (item = lane_item(lane, at)) != NULL && item->next > at) {
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);

		if (number != run.last + 1 || number > tail)
			break;
		run_pull(lane, &run, item);
		if (run.last == number)
			at = item->next;
	}
	CRASH_POINT(12);
	lost = engine->host.guard_end();
	if (lost) {
		struct view_context *source = atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire);

		engine_blame(engine, lane->batch->context->session, source ? source->session : NULL, lost);
		run.cause = CAUSE_MEMORY_FAULT;
		run.failed_item = batch_item(lane->batch, *index);
		run.offer.bytes = run.failed_item->bytes;
		run.last = received;
	}
	if (run.last != received) {
		enum cause cause = pair_commit(engine, lane->comm, lane->ring, lane->source, lane->destination, run.last, run.source);

		if (cause) {
			run.cause = cause;
			run.failed_item = batch_item(lane->batch, *index);
			run.last = received;
		} else {
			*index = at;
		}
	}
	if (run.cause)
		lane_receive_fail(lane, run.cause, run.failed_item, run.last + 1, &run.offer);
	return run.cause || run.last != received;
}

int lane_receive(struct batch *batch, uint32_t head_index)
{
	uint32_t done, start;
	struct lane lane;
	int r;

	r = lane_open(batch, head_index, ITEM_RECEIVE, &lane);
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
		if (received >= number) {
			done = next;
		} else if (failed && number >= failed) {
			lane_item_fail(&lane, item, lane_pair_fault(&lane));
			done = next;
		} else if (number != received + 1) {
			break;	/* receives commit in number order, whatever their stream */
		} else if (!lane_receive_run(&lane, &done)) {
			/* nothing more can come from a peer that is gone */
			if (!peer_cause || lane.pair->transfer || atomic_load_explicit(&lane.ring->tail, memory_order_acquire) >= number)
				break;
			lane_receive_fail(&lane, peer_cause, item, number, NULL);
		}
	}
	if (done != start) {
		CRASH_POINT(13);
		atomic_store_explicit(&lane.head->done, done, memory_order_relaxed);
	}
	return done == LANE_END;
}
