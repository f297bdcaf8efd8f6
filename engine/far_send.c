/* SPDX-License-Identifier: Apache-2.0 */
/* The source's node: offers that go out, and what is pulled of them. */
#include "engine/far_inside.h"

#include <errno.h>
#include <string.h>

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
		far_pair_fail(engine, far, CAUSE_PROTOCOL, number, 0);
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

bool far_offers_send(struct engine *engine, struct far_pair *far)
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

int far_received_take(struct engine *engine, struct far_pair *far, uint64_t number)
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
	(void)far_offers_send(engine, far);
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

void far_push_end(struct engine *engine, struct far_pair *far)
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

int far_pull_take(struct engine *engine, struct far_pair *far, uint64_t number, uint64_t attempt)
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
		far_push_end(engine, far);
		/* the other node hears of it by far_look() */
		far_pair_fail(engine, far, cause, far->push_number, far->push_bytes);
		(void)far_failure_send(engine, far);
		return true;
	}
	if (!sent)
		return false;
	far->push_at += size;
	if (far->push_at < far->push_bytes)
		return true;
	if (!far_frame_send(engine, far, FAR_END, far->push_number, far->push_attempt, NULL, 0))
		return false;
	far_push_end(engine, far);
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
		far_push_end(engine, far);
		far_pair_fail(engine, far, cause, far->push_number, far->push_bytes);
		(void)far_failure_send(engine, far);
	}
	engine_ring_dirty(engine);
}

