/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of other nodes: barriers, ends. */
#include "engine/far_inside.h"

#include <errno.h>

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

bool far_rank_tell(struct engine *engine, struct view_comm *comm, uint32_t rank)
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
			far_push_end(engine, far);
	}
	for (uint32_t rank = 0; rank < comm->size; rank++)
		for (uint32_t i = 0; comm->far->ranks[rank].word && !far_rank_tell(engine, comm, rank) && i < comm->far->node_count; i++)
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
			far_pair_fail(engine, far, cause, number, view_pair_bytes(pair_of(far), ring, number));
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
int far_rank_take(struct engine *engine, struct view_comm *comm, const void *node, const struct far_frame *frame)
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

