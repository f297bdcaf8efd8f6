/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/far.h"

#include <errno.h>
#include <string.h>

#include "engine/eager.h"
#include "engine/executor.h"

static struct far_pair *far_pair_of(struct view_comm *comm, uint32_t source, uint32_t destination)
{
	struct far_pair *far = &comm->far->pairs[(uint64_t)source * comm->size + destination];

	far->comm = comm;
	far->source = source;
	far->destination = destination;
	return far;
}

static struct view_pair *pair_of(const struct far_pair *far)
{
	return view_pair_of(far->comm, far->source, far->destination);
}

static struct pair_ring *ring_of(const struct far_pair *far)
{
	return atomic_load_explicit(&pair_of(far)->ring, memory_order_acquire);
}

static bool is_here(const struct view_comm *comm, uint32_t rank)
{
	return !comm->far->nodes[rank];
}

static void ring_rank(struct engine *engine, struct view_comm *comm, uint32_t rank)
{
	context_dirty(engine, atomic_load_explicit(&comm->contexts[rank], memory_order_acquire));
}

/* To the node of the end that is not here. False: it has no room now. */
static bool frame_send(struct engine *engine, const struct far_pair *far, enum far_kind kind, uint64_t number, uint64_t attempt, const void *payload,
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
static bool failure_send(struct engine *engine, struct far_pair *far)
{
	const struct view_pair *pair = pair_of(far);
	uint64_t failed = atomic_load_explicit(view_pair_failed(pair, ring_of(far)), memory_order_acquire);

	/* an earlier number may fail after a later one */
	if (!failed || (far->told_failed && far->told_failed <= failed))
		return true;
	if (!frame_send(engine, far, FAR_FAIL, failed, 0, pair->fault, sizeof(*pair->fault)))
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
static void pair_fail_with(struct engine *engine, struct far_pair *far, enum cause cause, uint64_t number, uint64_t bytes)
{
	struct fault fault = pair_fault(far->comm, cause, far->destination, far->source, ITEM_RECEIVE);

	fault.number = number;
	fault.local_bytes = fault.remote_bytes = bytes;
	pair_fail(engine, far->comm, far->source, far->destination, &fault);
}

/* ---- s: offers ---- */

/* What @offer (ours: a copy) has with it. NULL: nothing, it is to be pulled; or (*@ret_bad) nonsense. */
static const void *offer_payload(const struct far_pair *far, const struct pair_offer *offer, bool *ret_bad)
{
	const void *payload = NULL;

	*ret_bad = offer->where != OFFER_SEGMENT;
	if (offer->where == OFFER_INLINE && offer->bytes <= HCCLD_INLINE_MAX)
		payload = offer->payload;
	else if (offer->where == OFFER_EAGER && offer->bytes <= HCCLD_EAGER_MAX)
		payload = view_eager_find(far->comm, far->source, offer->place, offer->bytes);
	*ret_bad &= !payload;
	return payload;
}

/* False: no room. */
static bool offer_send(struct engine *engine, struct far_pair *far, uint64_t number)
{
	const struct view_comm *comm = far->comm;
	struct view_context *context = atomic_load_explicit(&comm->contexts[far->source], memory_order_acquire);
	struct far_frame frame = { .kind = FAR_OFFER, .source = far->source, .destination = far->destination, .number = number };
	struct pair_offer offer;
	const void *payload;
	bool is_bad;

	/* the source's process may be able to write the slot: judge the copy */
	view_offer_read(pair_of(far), ring_of(far), number, &offer);
	payload = offer_payload(far, &offer, &is_bad);
	if (offer.number != number || is_bad) {
		if (context)
			engine->host.liar(engine->host.data, context->session, "an offer");
		pair_fail_with(engine, far, CAUSE_PROTOCOL, number, 0);
		return true;
	}
	frame.data_type = offer.data_type;
	frame.bytes = offer.bytes;
	frame.has_payload = payload != NULL;
	engine->far_sent++;
	if (!engine->host.far_send(engine->host.data, comm->far->nodes[far->destination], comm, &frame, payload, payload ? offer.bytes : 0))
		return false;
	far->taken = number;
	return true;
}

static bool offers_send(struct engine *engine, struct far_pair *far)
{
	struct pair_ring *ring = ring_of(far);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	uint64_t received = atomic_load_explicit(&ring->received, memory_order_relaxed);

	/* F1 */
	while (far->taken < tail && far->taken - received < HCCLD_PAIR_SLOTS) {
		if (atomic_load_explicit(view_pair_failed(pair_of(far), ring), memory_order_acquire))
			break;
		if (!offer_send(engine, far, far->taken + 1))
			return false;
	}
	return true;
}

static int received_take(struct engine *engine, struct far_pair *far, uint64_t number)
{
	struct pair_ring *ring = ring_of(far);
	uint64_t received = atomic_load_explicit(&ring->received, memory_order_relaxed);
	uint64_t bytes;

	if (number < received || number > far->taken)
		return -EPROTO;
	if (number == received)
		return 0;
	bytes = pending_bytes(pair_of(far), ring, received + 1, number);
	/* F2, P4 */
	atomic_store_explicit(&ring->received, number, memory_order_release);
	pending_drop(engine, far->comm, pair_of(far), bytes);
	ring_rank(engine, far->comm, far->source);
	/* there may be offers that had no place at the other node */
	(void)offers_send(engine, far);
	return 0;
}

/* ---- s: what is pulled ---- */

static void push_queue(struct engine *engine, struct far_pair *far)
{
	struct far_pair **at = &engine->pushing;

	if (far->is_queued)
		return;
	while (*at)
		at = &(*at)->next;
	far->next = NULL;
	far->is_queued = true;
	*at = far;
}

static void push_end(struct engine *engine, struct far_pair *far)
{
	struct far_pair **at = &engine->pushing;

	far->pushes = false;
	if (!far->is_queued)
		return;
	while (*at != far)
		at = &(*at)->next;
	*at = far->next;
	far->is_queued = false;
}

static int pull_take(struct engine *engine, struct far_pair *far, uint64_t number, uint64_t attempt)
{
	uint64_t received = atomic_load_explicit(&ring_of(far)->received, memory_order_relaxed);

	/* it may be pulled again: the first receive has failed, and another one has its number after HcclCommResume */
	if (number <= received || number > far->taken)
		return -EPROTO;
	far->pushes = true;
	far->push_number = number;
	far->push_attempt = attempt;
	far->push_at = 0;
	far->push_bytes = view_pair_bytes(pair_of(far), ring_of(far), number);
	push_queue(engine, far);
	return 0;
}

/* Where offer push_number has its bytes, now. NULL: nowhere any more, @ret_cause. *@ret_segment: of a segment. */
static const unsigned char *push_source(const struct far_pair *far, struct view_segment **ret_segment, enum cause *ret_cause)
{
	struct view_comm *comm = far->comm;
	struct view_context *context = atomic_load_explicit(&comm->contexts[far->source], memory_order_acquire);
	uint32_t word = atomic_load_explicit(&comm->region->members[far->source].word, memory_order_acquire);
	struct pair_offer *slot = view_pair_offer(pair_of(far), ring_of(far), far->push_number), offer;

	*ret_segment = NULL;
	*ret_cause = CAUSE_PEER_MEMORY;
	memcpy(&offer, slot, sizeof(offer));
	if (offer.number != far->push_number || offer.bytes != far->push_bytes)
		return NULL;
	if (offer.where == OFFER_EAGER)
		return offer.bytes <= HCCLD_EAGER_MAX ? view_eager_find(comm, far->source, offer.place, offer.bytes) : NULL;
	if (word != MEMBER_ALIVE)
		*ret_cause = word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD;
	if (word != MEMBER_ALIVE || !context || offer.where != OFFER_SEGMENT)
		return NULL;
	*ret_segment = view_segment_find(context->session, offer.segment, offer.offset, offer.bytes);
	return *ret_segment ? (*ret_segment)->base + offer.offset : NULL;
}

/* F4: is what was read of the source so far good? */
static enum cause push_check(const struct far_pair *far, const struct view_segment *segment)
{
	const struct comm_region *region = far->comm->region;
	struct pair_ring *ring = ring_of(far);
	uint64_t failed;

	atomic_thread_fence(memory_order_acquire);
	failed = atomic_load_explicit(view_pair_failed(pair_of(far), ring), memory_order_relaxed);
	if (atomic_load_explicit(&region->abort, memory_order_relaxed))
		return CAUSE_ABORTED;
	if (segment) {
		uint32_t retired = atomic_load_explicit(&segment->retired, memory_order_acquire);
		uint32_t word = atomic_load_explicit(&region->members[far->source].word, memory_order_relaxed);

		if (word != MEMBER_ALIVE)
			return word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD;
		if (retired)
			return CAUSE_PEER_MEMORY;
	}
	if (atomic_load_explicit(&ring->revoked, memory_order_relaxed) >= far->push_number)
		return CAUSE_PEER_MEMORY;
	return failed && failed <= far->push_number ? CAUSE_PEER_GAVE_UP : CAUSE_NONE;
}

/* One frame of it. False: its node has no room; it is still queued. */
static bool push_step(struct engine *engine, struct far_pair *far)
{
	struct far_frame frame = { .kind = FAR_DATA, .source = far->source, .destination = far->destination, .number = far->push_number };
	uint64_t left = far->push_bytes - far->push_at, size = left < FAR_DATA_MAX ? left : FAR_DATA_MAX;
	struct view_segment *segment;
	enum cause cause;
	const unsigned char *from = push_source(far, &segment, &cause);
	const void *lost = NULL;
	bool sent = true;

	frame.bytes = far->push_attempt;
	frame.offset = far->push_at;
	engine->far_sent++;
	if (from && size) {
		engine->host.guard_begin();
		sent = engine->host.far_send(engine->host.data, far->comm->far->nodes[far->destination], far->comm, &frame, from + far->push_at, size);
		lost = engine->host.guard_end();
	}
	if (from)
		cause = lost ? CAUSE_MEMORY_FAULT : push_check(far, segment);
	if (cause) {
		if (lost)
			engine_blame(engine, atomic_load_explicit(&far->comm->contexts[far->source], memory_order_acquire)->session, NULL, lost);
		push_end(engine, far);
		/* the other node hears of it by far_look() */
		pair_fail_with(engine, far, cause, far->push_number, far->push_bytes);
		(void)failure_send(engine, far);
		return true;
	}
	if (!sent)
		return false;
	far->push_at += size;
	if (far->push_at < far->push_bytes)
		return true;
	if (!frame_send(engine, far, FAR_END, far->push_number, far->push_attempt, NULL, 0))
		return false;
	push_end(engine, far);
	return true;
}

bool far_push(struct engine *engine, uint64_t bytes)
{
	bool has_moved = false;

	/* one frame of each in turn: nobody waits for a large one */
	for (struct far_pair *far = engine->pushing, *next; far && bytes; far = next) {
		next = far->next;
		if (!push_step(engine, far))
			continue;
		has_moved = true;
		bytes -= bytes < FAR_DATA_MAX ? bytes : FAR_DATA_MAX;
	}
	engine_ring_dirty(engine);
	return has_moved;
}

void far_retire(struct engine *engine, struct view_session *session)
{
	for (struct far_pair *far = engine->pushing, *next; far; far = next) {
		struct view_context *context = atomic_load_explicit(&far->comm->contexts[far->source], memory_order_acquire);
		struct view_segment *segment;
		enum cause cause;

		next = far->next;
		if ((context && context->session != session) || push_source(far, &segment, &cause))
			continue;
		push_end(engine, far);
		pair_fail_with(engine, far, cause, far->push_number, far->push_bytes);
		(void)failure_send(engine, far);
	}
	engine_ring_dirty(engine);
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
	far->wants_pull = !frame_send(engine, far, FAR_PULL, transfer->number, transfer->attempt, NULL, 0);
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
	    !frame_send(engine, far, FAR_PULL, transfer->number, transfer->attempt, NULL, 0))
		return false;
	far->wants_pull = false;
	if (received <= far->told)
		return true;
	if (!frame_send(engine, far, FAR_RECEIVED, received, 0, NULL, 0))
		return false;
	far->told = received;
	return true;
}

/* ---- ranks ---- */

/* To all nodes. False: one has no room; those before it hear it twice. */
static bool rank_send(struct engine *engine, const struct view_comm *comm, enum far_kind kind, uint32_t rank, uint64_t number, uint64_t bytes)
{
	const struct far_frame frame = { .kind = (uint8_t)kind, .source = rank, .number = number, .bytes = bytes };

	engine->far_sent++;
	for (uint32_t i = 0; i < comm->far->node_count; i++)
		if (!engine->host.far_send(engine->host.data, comm->far->each[i], comm, &frame, NULL, 0))
			return false;
	return true;
}

static bool rank_tell(struct engine *engine, struct view_comm *comm, uint32_t rank)
{
	struct far_rank *far = &comm->far->ranks[rank];
	uint64_t barriers = atomic_load_explicit(&comm->region->members[rank].barriers, memory_order_acquire);

	if (barriers > far->told_barriers) {
		if (!rank_send(engine, comm, FAR_BARRIER, rank, barriers, 0))
			return false;
		far->told_barriers = barriers;
	}
	if (!far->word)
		return true;
	if (!rank_send(engine, comm, FAR_MEMBER, rank, far->word, (uint32_t)far->exit))
		return false;
	far->word = 0;
	return true;
}

void far_leave(struct engine *engine, struct view_comm *comm, uint32_t rank, uint32_t word, int32_t exit)
{
	comm->far->ranks[rank].word = word;
	comm->far->ranks[rank].exit = exit;
	(void)far_look(engine, comm, rank);
}

void far_go(struct engine *engine, struct view_comm *comm)
{
	const struct far_frame frame = { .kind = FAR_GONE };

	for (struct far_pair *far = engine->pushing, *next; far; far = next) {
		next = far->next;
		if (far->comm == comm)
			push_end(engine, far);
	}
	for (uint32_t rank = 0; rank < comm->size; rank++)
		for (uint32_t i = 0; comm->far->ranks[rank].word && !rank_tell(engine, comm, rank) && i < comm->far->node_count; i++)
			engine->host.far_fail(engine->host.data, comm->far->each[i]);
	for (uint32_t i = 0; i < comm->far->node_count; i++)
		if (!engine->host.far_send(engine->host.data, comm->far->each[i], comm, &frame, NULL, 0))
			engine->host.far_fail(engine->host.data, comm->far->each[i]);
}

static void member_set(struct engine *engine, struct view_comm *comm, uint32_t rank, uint32_t word, int32_t exit)
{
	struct comm_member *member = &comm->region->members[rank];

	if (atomic_load_explicit(&member->word, memory_order_relaxed) != MEMBER_ALIVE)
		return;
	atomic_store_explicit(&member->exit, exit, memory_order_relaxed);
	atomic_store_explicit(&member->word, word, memory_order_seq_cst);
	engine_ring_hard(engine, comm);
}

/* What @rank has offered and will never send: its receivers hear of it. */
static void offers_end(struct engine *engine, struct view_comm *comm, uint32_t rank)
{
	enum cause cause = atomic_load_explicit(&comm->region->members[rank].word, memory_order_relaxed) == MEMBER_LEFT ? CAUSE_PEER_LEFT :
														       CAUSE_PEER_DEAD;

	for (uint32_t peer = 0; peer < comm->size; peer++) {
		struct far_pair *far = is_here(comm, peer) ? far_pair_of(comm, rank, peer) : NULL;
		struct pair_ring *ring = far ? ring_of(far) : NULL;
		uint64_t tail = ring ? atomic_load_explicit(&ring->tail, memory_order_relaxed) : 0;

		for (uint64_t number = ring ? atomic_load_explicit(&ring->received, memory_order_acquire) + 1 : 1; number <= tail; number++) {
			if (view_pair_offer(pair_of(far), ring, number)->where != OFFER_FAR)
				continue;
			pair_fail_with(engine, far, cause, number, view_pair_bytes(pair_of(far), ring, number));
			break;
		}
	}
}

void far_lose(struct engine *engine, struct view_comm *comm, const void *node)
{
	for (uint32_t rank = 0; rank < comm->size; rank++) {
		if (comm->far->nodes[rank] != node)
			continue;
		member_set(engine, comm, rank, MEMBER_DEAD, -1);
		offers_end(engine, comm, rank);
	}
	engine_ring_dirty(engine);
}

/* FAR_BARRIER, FAR_MEMBER, FAR_GONE */
static int rank_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame)
{
	const uint32_t rank = frame->source;

	if (frame->kind == FAR_GONE) {
		far_lose(engine, comm, node);
		return 0;
	}
	if (rank >= comm->size || comm->far->nodes[rank] != node)
		return -EPROTO;
	if (frame->kind == FAR_MEMBER) {
		if (frame->number != MEMBER_LEFT && frame->number != MEMBER_DEAD)
			return -EPROTO;
		member_set(engine, comm, rank, (uint32_t)frame->number, (int32_t)frame->bytes);
		return 0;
	}
	if (frame->number < atomic_load_explicit(&comm->region->members[rank].barriers, memory_order_relaxed))
		return -EPROTO;
	atomic_store_explicit(&comm->region->members[rank].barriers, frame->number, memory_order_release);
	for (uint32_t peer = 0; peer < comm->size; peer++)
		if (is_here(comm, peer))
			ring_rank(engine, comm, peer);
	return 0;
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
			is_all &= offers_send(engine, out) && failure_send(engine, out);
		if (ring_of(in))
			is_all &= receives_tell(engine, in) && failure_send(engine, in);
	}
	return is_all && rank_tell(engine, comm, rank);
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
	case FAR_PULL: return pull_take(engine, far, frame->number, frame->bytes);
	case FAR_DATA: return data_take(engine, far, frame, payload, size);
	case FAR_END: return end_take(engine, far, frame);
	case FAR_RECEIVED: return received_take(engine, far, frame->number);
	default: return -EPROTO;
	}
}

int far_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame, const void *payload, size_t size)
{
	struct far_pair *far;
	int r;

	if (frame->kind == FAR_BARRIER || frame->kind == FAR_MEMBER || frame->kind == FAR_GONE) {
		r = rank_take(engine, comm, node, frame);
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
