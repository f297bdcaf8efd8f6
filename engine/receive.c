/* SPDX-License-Identifier: Apache-2.0 */
/* Receives: numbering (P3), pulling what is offered in runs, committing them together (P4). */
#include <errno.h>

#include "engine/far.h"
#include "engine/lane.h"

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
		next = read_once(item->next);
		if (next <= index)
			return false;
		index = next;
	}
	if (index != start) {
		atomic_store_explicit(&lane->head->issue, index, memory_order_relaxed);
		/* what the peer holds back for its tenant's limit may go to these */
		if (lane->batch->engine->held)
			context_dirty(lane->batch->engine, atomic_load_explicit(&lane->comm->contexts[lane->peer], memory_order_acquire));
	}
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
	if (offer && cause == CAUSE_MISMATCH && offer->where != OFFER_SEGMENT) {
		/* that send has completed: its rank learns it by its next call */
		struct fault seen = pair_fault(lane->comm, cause, lane->peer, lane->rank, ITEM_SEND);

		seen.was_complete = 1;
		seen.number = number;
		seen.local_bytes = offer->bytes;
		seen.local_type = offer->data_type;
		seen.remote_bytes = item->bytes;
		seen.remote_type = item->data_type;
		member_fault(lane->peer_member, &seen);
	}
}

/* One of @offer into @to, which the pair has from here on. NULL: none is free. */
static struct transfer *lane_transfer(struct lane *lane, struct item *item, const struct pair_offer *offer, struct view_segment *to,
				      uint64_t to_offset)
{
	struct transfer *transfer = transfer_new(lane->batch->engine, lane->batch, item, offer->bytes);

	if (!transfer)
		return NULL;
	transfer->comm = lane->comm;
	transfer->pair = lane->pair;
	transfer->source = lane->source;
	transfer->destination = lane->destination;
	transfer->number = offer->number;
	transfer->destination_segment = to;
	transfer->to = to->base + to_offset;
	lane->pair->transfer = transfer;
	return transfer;
}

/* Starts a copy in slices of offer @number into @item. False: no transfer is free. */
static bool lane_receive_large(struct lane *lane, struct item *item, const struct pair_offer *offer, struct view_context *source,
			       struct view_segment *from, struct view_segment *to, uint64_t to_offset)
{
	struct engine *engine = lane->batch->engine;
	struct transfer *transfer = lane_transfer(lane, item, offer, to, to_offset);

	if (!transfer)
		return false;
	transfer->source_session = source->session;
	transfer->source_segment = from;
	transfer->from = from->base + offer->offset;
	chunks_open(engine, transfer, offer);
	/* it is in the queue as far as it is for us */
	if (transfer->chunks)
		(void)chunks_are_over(engine, transfer);
	else
		transfer_queue(engine, transfer);
	return true;
}

/* The same of what another node has (engine/far.h). */
static bool lane_receive_far(struct lane *lane, struct item *item, const struct pair_offer *offer, struct view_segment *to, uint64_t to_offset)
{
	struct transfer *transfer = lane_transfer(lane, item, offer, to, to_offset);

	if (!transfer)
		return false;
	transfer->is_far = true;
	far_pull(lane->batch->engine, lane->comm, lane->source, lane->destination);
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

	if (source && source->session)
		from = view_segment_find(source->session, offer->segment, offer->offset, offer->bytes);
	/* behind it: if the memory has gone with its owner, his word was stored before, and is the reason */
	run->cause = lane_peer_cause(lane);
	if (!run->cause && !source)
		run->cause = CAUSE_PEER_LEFT;
	if (!run->cause && !from)
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
	lane->batch->engine->steps -= (int64_t)(offer->bytes / 512);
	memmove(to->base + to_offset, from->base + offer->offset, offer->bytes);
	run->last++;
}

/* Offer @offer (ours: a copy) is in a pool, which stays whatever becomes of the source. */
static void run_pull_eager(struct lane *lane, struct run *run, const struct pair_offer *offer, unsigned char *to)
{
	const unsigned char *from = offer->bytes > HCCLD_EAGER_MAX ? NULL : view_eager_find(lane->comm, lane->source, offer->place, offer->bytes);

	if (!from) {
		run->cause = CAUSE_PROTOCOL;
		return;
	}
	memcpy(to, from, offer->bytes);
	lane->batch->engine->steps -= (int64_t)(offer->bytes / 512);
	run->last++;
}

/* Receive run->last + 1 has its offer: copies it if it may join the run. */
static void run_pull(struct lane *lane, struct run *run, struct item *item)
{
	struct view_segment *to;
	uint64_t bytes = read_once(item->bytes), offset = read_once(item->offset), segment = read_once(item->segment);
	uint8_t type = item->data_type;
	struct pair_offer *offer = &run->offer;

	/* the source's process may be able to write the slot: judge the copy */
	view_offer_read(lane->pair, lane->ring, run->last + 1, offer);
	if (offer->number != run->last + 1 || (offer->where == OFFER_INLINE && offer->bytes > HCCLD_INLINE_MAX))
		run->cause = CAUSE_PROTOCOL;
	else if (offer->bytes != bytes)
		run->cause = CAUSE_MISMATCH;
	else if (!(to = view_segment_find(lane->batch->context->session, segment, offset, bytes))) {
		/* a rank that is going loses its memory before its tasks: what takes those away says why they end */
		run->full = lane_is_going(lane);
		run->cause = run->full ? CAUSE_NONE : CAUSE_NOT_DEVICE_MEMORY;
	} else if (offer->where == OFFER_INLINE) {
		copy_payload(to->base + offset, offer->payload, bytes);
		run->last++;
	} else if (offer->where == OFFER_EAGER) {
		run_pull_eager(lane, run, offer, to->base + offset);
	} else if (offer->where == OFFER_FAR && lane->comm->far && lane->comm->far->nodes[lane->peer]) {
		if (run->last == run->first)
			lane_receive_far(lane, item, offer, to, offset);
		run->full = true;
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
	while (at != LANE_END && !run.cause && !run.full && (item = lane_item(lane, at)) != NULL) {
		uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);
		uint32_t next = read_once(item->next);

		if (next <= at || number != run.last + 1 || number > tail)
			break;
		run_pull(lane, &run, item);
		if (run.last == number)
			at = next;
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
	if (lane.gate == GATE_ENDED)
		return lane_end_suspended(&lane);
	/* what has failed by now, after HCCL_EXEC_TIMEOUT say, goes on to its end */
	if (lane.gate == GATE_HELD && !atomic_load_explicit(view_pair_failed(lane.pair, lane.ring), memory_order_acquire))
		return 0;
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
		next = read_once(item->next);
		if (next <= done)
			return -EPROTO;
		peer_cause = lane_peer_cause(&lane);
		failed = atomic_load_explicit(view_pair_failed(lane.pair, lane.ring), memory_order_acquire);
		received = atomic_load_explicit(&lane.ring->received, memory_order_relaxed);
		if (received >= number) {
			done = next;
		} else if (failed && number >= failed) {
			if (!transfer_cancel_failed(batch->engine, lane.pair, failed))
				break;
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
