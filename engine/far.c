/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of pairs between nodes: failures, the destination's node, and who is asked for what. */
#include "engine/far_inside.h"

#include <errno.h>
#include <string.h>

/* To the node of the end that is not here. False: it has no room now. */
bool far_frame_send(struct engine *engine, const struct far_pair *far, enum far_kind kind, uint64_t number, uint64_t attempt, const void *payload,
		       size_t size)
{
	const struct view_comm *comm = far->comm;
	void *node = comm->far->nodes[is_here(comm, far->source) ? far->destination : far->source];
	const struct far_frame frame = {
		.kind = (uint8_t)kind, .source = far->source, .destination = far->destination, .number = number, .bytes = attempt
	};

	engine->far_sent++;
	return engine->host.far_send(engine->host.data, node, comm, &frame, payload, size);
}

/* ---- what has failed ---- */

/* The other node hears of it, once. */
bool far_failure_send(struct engine *engine, struct far_pair *far)
{
	const struct view_pair *pair = pair_of(far);
	uint64_t failed = atomic_load_explicit(view_pair_failed(pair, ring_of(far)), memory_order_acquire);

	/* an earlier number may fail after a later one */
	if (!failed || (far->told_failed && far->told_failed <= failed))
		return true;
	if (!far_frame_send(engine, far, FAR_FAIL, failed, 0, pair->fault, sizeof(*pair->fault)))
		return false;
	far->told_failed = failed;
	return true;
}

/* That send has completed: its rank learns it by its next call. */
static void mismatch_tell(const struct far_pair *far, const struct fault *fault)
{
	const struct pair_offer *slot = view_pair_offer(pair_of(far), ring_of(far), fault->number);
	struct fault seen = pair_fault(far->comm, CAUSE_MISMATCH, far->source, far->destination, ITEM_SEND);

	if (slot->where == OFFER_SEGMENT)
		return;
	seen.was_complete = 1;
	seen.number = fault->number;
	seen.local_bytes = fault->remote_bytes;
	seen.local_type = fault->remote_type;
	seen.remote_bytes = fault->local_bytes;
	seen.remote_type = fault->local_type;
	member_fault(&far->comm->region->members[far->source], &seen);
}

static int failure_take(struct engine *engine, struct far_pair *far, const struct far_frame *frame, const void *payload, size_t size)
{
	struct fault fault;

	if (size != sizeof(fault) || !frame->number)
		return -EPROTO;
	memcpy(&fault, payload, sizeof(fault));
	/* the receiver's view, as in the record of each pair */
	fault.number = frame->number;
	fault.comm = far->comm->id;
	if (fault.rank >= far->comm->size || fault.peer >= far->comm->size || !fault.cause)
		return -EPROTO;
	if (!far->told_failed || frame->number < far->told_failed)
		far->told_failed = frame->number;
	if (fault.cause == CAUSE_MISMATCH && is_here(far->comm, far->source))
		mismatch_tell(far, &fault);
	pair_fail(engine, far->comm, far->source, far->destination, &fault);
	return 0;
}

/* As seen by the receiver, who reports. */
void far_pair_fail(struct engine *engine, struct far_pair *far, enum cause cause, uint64_t number, uint64_t bytes)
{
	struct fault fault = pair_fault(far->comm, cause, far->destination, far->source, ITEM_RECEIVE);

	fault.number = number;
	fault.local_bytes = fault.remote_bytes = bytes;
	pair_fail(engine, far->comm, far->source, far->destination, &fault);
}

/* ---- d: offers ---- */

static bool slot_is_free(const void *who, uint32_t peer, uint64_t number)
{
	struct view_comm *comm = ((const struct far_pair *)who)->comm;

	return peer < comm->size &&
	       eager_is_free(number, atomic_load_explicit(&view_pair_of(comm, ((const struct far_pair *)who)->source, peer)->ring, memory_order_acquire),
			     atomic_load_explicit(&comm->region->members[peer].word, memory_order_acquire) != MEMBER_ALIVE);
}

/* F3. False: there is no room for a copy. */
static bool offer_keep(struct far_pair *far, const void *payload, struct pair_offer *offer)
{
	struct view_pools *pools = far->comm->pools ? atomic_load_explicit(&far->comm->pools[far->source], memory_order_acquire) : NULL;
	uint32_t count = pools ? atomic_load_explicit(&pools->count, memory_order_acquire) : 0, slot;

	for (uint32_t i = 0; i < count; i++) {
		if (!eager_search(&pools->pools[i], slot_is_free, far, &slot))
			continue;
		eager_fill(&pools->pools[i], slot, far->destination, offer->number, payload, offer->bytes, offer);
		return true;
	}
	return false;
}

static int offer_take(struct engine *engine, struct far_pair *far, const struct far_frame *frame, const void *payload, size_t size)
{
	struct pair_ring *ring = ring_of(far);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	uint64_t received = atomic_load_explicit(&ring->received, memory_order_acquire);
	struct pair_offer *slot = view_pair_offer(pair_of(far), ring, frame->number);

	if (frame->number != tail + 1 || (frame->has_payload ? size != frame->bytes || size > HCCLD_EAGER_MAX : size != 0))
		return -EPROTO;
	/* F1: what is not free is a lie of that node, or of the process here, which may be able to write `received` */
	if (frame->number - received > HCCLD_PAIR_SLOTS)
		return -EPROTO;
	slot->number = frame->number;
	slot->bytes = frame->bytes;
	slot->data_type = frame->data_type;
	slot->where = OFFER_FAR;
	if (frame->has_payload && size <= HCCLD_INLINE_MAX) {
		slot->where = OFFER_INLINE;
		memcpy(slot->payload, payload, size);
	} else if (frame->has_payload) {
		(void)offer_keep(far, payload, slot);
	}
	atomic_store_explicit(&ring->sent, frame->number, memory_order_release);
	/* P2: release: the slot is complete before anybody can see the number */
	atomic_store_explicit(&ring->tail, frame->number, memory_order_release);
	ring_rank(engine, far->comm, far->destination);
	return 0;
}

/* ---- d: what is pulled ---- */

void far_pull(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination)
{
	struct far_pair *far = far_pair_of(comm, source, destination);
	struct transfer *transfer = pair_of(far)->transfer;

	transfer->copied = 0;
	transfer->attempt = ++far->attempts;
	far->wants_pull = !far_frame_send(engine, far, FAR_PULL, transfer->number, transfer->attempt, NULL, 0);
}

void far_again(struct engine *engine, const void *node)
{
	for (struct transfer *transfer = engine->all; transfer; transfer = transfer->all_next)
		if (transfer->is_far && transfer->comm->far->nodes[transfer->source] == node)
			far_pull(engine, transfer->comm, transfer->source, transfer->destination);
}

/* The receive that @frame is for; NULL: it has ended, and what comes of it is too late. */
static struct transfer *pulled(const struct far_pair *far, const struct far_frame *frame)
{
	struct transfer *transfer = pair_of(far)->transfer;

	return transfer && transfer->is_far && transfer->number == frame->number && transfer->attempt == frame->bytes ? transfer : NULL;
}

static bool is_of_node(const struct view_comm *comm, const void *node, const struct far_frame *frame)
{
	const uint32_t source = frame->source, destination = frame->destination;

	return source < comm->size && destination < comm->size && is_here(comm, source) != is_here(comm, destination) &&
	       comm->far->nodes[is_here(comm, source) ? destination : source] == node && frame->number;
}

/* Whose data @frame has. NULL: nobody's any more, or it is a lie. */
static struct transfer *placed_for(struct view_comm *comm, const void *node, const struct far_frame *frame, size_t size)
{
	struct transfer *transfer;

	if (!is_of_node(comm, node, frame) || frame->kind != FAR_DATA || is_here(comm, frame->source))
		return NULL;
	transfer = pulled(far_pair_of(comm, frame->source, frame->destination), frame);
	return transfer && frame->offset == transfer->copied && size && size <= transfer->bytes - transfer->copied ? transfer : NULL;
}

void *far_place(struct view_comm *comm, const void *node, const struct far_frame *frame, size_t size)
{
	const struct transfer *transfer = placed_for(comm, node, frame, size);

	return transfer ? transfer->to + frame->offset : NULL;
}

int far_placed(struct view_comm *comm, const void *node, const struct far_frame *frame, size_t size)
{
	struct transfer *transfer = placed_for(comm, node, frame, size);

	if (transfer)
		transfer->copied += size;
	return 0;
}

void far_missed(struct view_comm *comm, const void *node, const struct far_frame *frame)
{
	struct transfer *transfer = placed_for(comm, node, frame, 1);

	if (transfer)
		transfer->lost = transfer->to + frame->offset;
}

static int data_take(struct engine *engine, struct far_pair *far, const struct far_frame *frame, const void *payload, size_t size)
{
	struct transfer *transfer = pulled(far, frame);
	const void *lost;

	if (!transfer)
		return 0;
	if (frame->offset != transfer->copied || !size || size > transfer->bytes - transfer->copied)
		return -EPROTO;
	engine->host.guard_begin();
	memcpy(transfer->to + frame->offset, payload, size);
	lost = engine->host.guard_end();
	if (lost)
		transfer->lost = lost;
	transfer->copied += size;
	return 0;
}

static int end_take(struct engine *engine, struct far_pair *far, const struct far_frame *frame)
{
	struct transfer *transfer = pulled(far, frame);

	if (!transfer)
		return 0;
	/* what had no memory was passed over */
	if (transfer->copied != transfer->bytes && !transfer->lost)
		return -EPROTO;
	transfer_arrived(engine, transfer);
	return 0;
}

static bool receives_tell(struct engine *engine, struct far_pair *far)
{
	uint64_t received = atomic_load_explicit(&ring_of(far)->received, memory_order_acquire);
	const struct transfer *transfer = pair_of(far)->transfer;

	if (far->wants_pull && transfer && transfer->is_far &&
	    !far_frame_send(engine, far, FAR_PULL, transfer->number, transfer->attempt, NULL, 0))
		return false;
	far->wants_pull = false;
	if (received <= far->told)
		return true;
	if (!far_frame_send(engine, far, FAR_RECEIVED, received, 0, NULL, 0))
		return false;
	far->told = received;
	return true;
}

/* ---- both ---- */

bool far_look(struct engine *engine, struct view_comm *comm, uint32_t rank)
{
	bool is_all = true;

	/* what it has sent comes before its end */
	for (uint32_t peer = 0; peer < comm->size; peer++) {
		struct far_pair *out, *in;

		if (is_here(comm, peer))
			continue;
		out = far_pair_of(comm, rank, peer);
		in = far_pair_of(comm, peer, rank);
		if (ring_of(out))
			is_all &= far_offers_send(engine, out) && far_failure_send(engine, out);
		if (ring_of(in))
			is_all &= receives_tell(engine, in) && far_failure_send(engine, in);
	}
	return is_all && far_rank_tell(engine, comm, rank);
}

bool far_context_look(struct engine *engine, struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_relaxed), sent = engine->far_sent;
	bool is_all = true;

	/* as who leaves a context PARKED: whoever rings from here on sets the bit again, and what came before is seen below */
	bit_clear(context);
	atomic_store_explicit(&context->words->asleep, 1, memory_order_relaxed);
	atomic_store_explicit(&context->words->state, yard_next(state, CONTEXT_PARKED), memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	for (struct view_far *far = context->yard->fars; far; far = far->next)
		for (uint32_t rank = 0; rank < far->comm->size; rank++)
			if (is_here(far->comm, rank))
				is_all &= far_look(engine, far->comm, rank);
	engine_ring_dirty(engine);
	if (!is_all)
		bit_set(context);
	return engine->far_sent != sent;
}

static int frame_take(struct engine *engine, struct far_pair *far, const struct far_frame *frame, const void *payload, size_t size)
{
	bool is_source = is_here(far->comm, far->source);

	if (frame->kind == FAR_FAIL)
		return failure_take(engine, far, frame, payload, size);
	if (is_source != (frame->kind == FAR_PULL || frame->kind == FAR_RECEIVED))
		return -EPROTO;
	switch (frame->kind) {
	case FAR_OFFER: return offer_take(engine, far, frame, payload, size);
	case FAR_PULL: return far_pull_take(engine, far, frame->number, frame->bytes);
	case FAR_DATA: return data_take(engine, far, frame, payload, size);
	case FAR_END: return end_take(engine, far, frame);
	case FAR_RECEIVED: return far_received_take(engine, far, frame->number);
	default: return -EPROTO;
	}
}

int far_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame, const void *payload, size_t size)
{
	struct far_pair *far;
	int r;

	if (frame->kind == FAR_BARRIER || frame->kind == FAR_MEMBER || frame->kind == FAR_GONE) {
		r = far_rank_take(engine, comm, node, frame);
		engine_ring_dirty(engine);
		return r;
	}
	if (!is_of_node(comm, node, frame))
		return -EPROTO;
	far = far_pair_of(comm, frame->source, frame->destination);
	if (!ring_of(far))
		return -EPROTO;
	r = frame_take(engine, far, frame, payload, size);
	engine_ring_dirty(engine);
	return r;
}
