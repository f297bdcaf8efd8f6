/* SPDX-License-Identifier: Apache-2.0 */
/* What the executor in this process maps, and asks for: pair rings, memory of peers, room for what is eager. */
#include "client/drive_state.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "client/error.h"
#include "client/mapping.h"
#include "engine/view.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

#define MAPPED_MAX 4096u	/* segments of one peer */
#define MAP_ROUNDS 32		/* each with some extents; what cannot be mapped is no reason to go on for ever */

/* ---- extents: pair rings, and what is in their place ---- */

bool hccld_drive_maps(const struct hccld_comm *comm, uint32_t *ret_pairs)
{
	if (!comm->drive || comm->drive->direct.extent_count == DIRECT_EXTENTS_MAX)
		return false;
	*ret_pairs = comm->drive->pair_count;
	return true;
}

static const struct direct_extent *extent_find(const struct direct_rank *rank, uint64_t index)
{
	uint64_t place = index * PAIR_PLACE;

	for (uint32_t i = 0; i < rank->extent_count; i++) {
		const struct direct_extent *extent = &rank->extents[i];

		if (place >= extent->place && place - extent->place < extent->bytes)
			return extent;
	}
	return NULL;
}

/* What begins at place @index and has @bytes. NULL: it is not mapped. */
static void *place_find(const struct direct_rank *rank, uint64_t index, uint64_t bytes)
{
	const struct direct_extent *extent = extent_find(rank, index);
	uint64_t before = extent ? index * PAIR_PLACE - extent->place : 0;

	return extent && bytes <= extent->bytes - before ? extent->base + before : NULL;
}

/* With hccld_drive_mutex. */
static void extents_map(struct hccld_drive_rank *rank, struct hccld_call *call)
{
	const Hccld__Control__OpenPairsReply *reply = call->reply->open_pairs;

	direct_intrude(&rank->on->direct);
	for (size_t i = 0; i < reply->n_extents && i < call->fd_count && rank->direct.extent_count < DIRECT_EXTENTS_MAX; i++) {
		const Hccld__Control__OpenPairsReply__Extent *extent = reply->extents[i];
		struct direct_extent *mapped = &rank->direct.extents[rank->direct.extent_count];
		void *base;

		/* another thread may have mapped it meanwhile; a pool may come late */
		if (extent_find(&rank->direct, extent->first))
			continue;
		if (extent->bytes < extent->count * (uint64_t)PAIR_PLACE ||
		    hccld_map(call->fds[i], extent->bytes, PROT_READ | PROT_WRITE, &base) < 0) {
			hccld_error_forget();
			break;
		}
		*mapped = (struct direct_extent){ extent->first * (uint64_t)PAIR_PLACE, extent->count * (uint64_t)PAIR_PLACE, base, extent->bytes };
		rank->direct.extent_count++;
		if (rank->pair_count < extent->first + extent->count)
			rank->pair_count = extent->first + extent->count;
	}
	direct_retreat(&rank->on->direct);
}

void hccld_drive_map_pairs(struct hccld_comm *comm, struct hccld_call *call)
{
	pthread_mutex_lock(&hccld_drive_mutex);
	extents_map(comm->drive, call);
	pthread_mutex_unlock(&hccld_drive_mutex);
}

static struct pair_ring *ring_find(const struct direct_rank *rank, uint32_t source, uint32_t destination, struct pair_rest **ret_rest)
{
	_Atomic uint32_t *directory = comm_region_directory((struct comm_region *)rank->region, rank->size);
	uint32_t word = atomic_load_explicit(&directory[(uint64_t)source * rank->size + destination], memory_order_acquire);

	const struct direct_extent *extent = word ? extent_find(rank, word - 1) : NULL;
	uint32_t count, at;

	if (!extent)
		return NULL;
	count = (uint32_t)(extent->bytes / PAIR_PLACE);
	at = word - 1 - (uint32_t)(extent->place / PAIR_PLACE);
	if (at >= pair_extent_rings(count))
		return NULL;
	*ret_rest = pair_extent_rest(extent->base, count, at);
	return (struct pair_ring *)extent->base + at;
}

void hccld_drive_use_pairs(struct hccld_comm *comm, const uint32_t *peers, size_t count)
{
	struct hccld_session *session;

	if (!comm->drive || hccld_session_get(&session) < 0)
		return;
	pthread_mutex_lock(&hccld_drive_mutex);
	direct_intrude(&comm->on->direct);
	for (size_t i = 0; i < count; i++) {
		struct direct_peer *peer = &comm->drive->direct.peers[peers[i]];
		uint32_t index = comm->region->members[peers[i]].context % HCCLD_YARD_CONTEXTS;

		peer->bell.words = &session->yard->contexts[index];
		peer->bell.bit_word = &session->yard->bits[index / 64];
		peer->bell.bit = UINT64_C(1) << index % 64;
		if (!peer->out)
			peer->out = ring_find(&comm->drive->direct, comm->rank, peers[i], &peer->rest_out);
		if (!peer->in)
			peer->in = ring_find(&comm->drive->direct, peers[i], comm->rank, &peer->rest_in);
	}
	direct_retreat(&comm->on->direct);
	pthread_mutex_unlock(&hccld_drive_mutex);
}

/* With hccld_drive_mutex: what the communicator has got since. */
static int extents_request(struct hccld_drive_rank *rank)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__OpenPairs body = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	struct hccld_session *session;
	bool more = true;
	int r;

	r = hccld_session_get(&session);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &body;
	body.rank = rank->direct.handle;
	body.map = true;
	for (int i = 0; r == 0 && more && i < MAP_ROUNDS; i++) {
		struct hccld_call call;

		body.mapped_pairs = rank->pair_count;
		r = hccld_call_make(session->connection, &request, &call);
		more = false;
		if (r == 0 && call.reply->body_case == HCCLD__CONTROL__REPLY__BODY_OPEN_PAIRS) {
			extents_map(rank, &call);
			more = call.reply->open_pairs->more && rank->direct.extent_count < DIRECT_EXTENTS_MAX;
		}
		hccld_call_end(&call);
	}
	return r;
}

/* ---- memory of peers ---- */

void hccld_drive_unmap_peer(struct direct_peer *peer)
{
	for (uint32_t i = 0; i < peer->mapped_count; i++)
		if (peer->mapped[i].base)
			hccld_mapping_free(peer->mapped[i].base, peer->mapped[i].size);
	peer->mapped_count = 0;
}

static int segment_request(const struct hccld_session *session, const struct direct_wish *wish, struct direct_segment *ret_segment)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__MapPeer body = HCCLD__CONTROL__MAP_PEER__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	void *base = NULL;
	int r;

	body.rank = wish->handle;
	body.peer = wish->peer;
	body.segment = wish->segment;
	body.writable = wish->need == NEED_WRITABLE;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MAP_PEER;
	request.map_peer = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r < 0)
		return r;
	if (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_MAP_PEER || call.fd_count != 1)
		return -EPROTO;
	r = hccld_map(call.fds[0], call.reply->map_peer->bytes, body.writable ? PROT_READ | PROT_WRITE : PROT_READ, &base);
	if (r < 0)
		return r;
	ret_segment->is_writable = body.writable;
	ret_segment->base = base;
	ret_segment->size = call.reply->map_peer->bytes;
	return 0;
}

static bool peer_has_room(struct direct_peer *peer)
{
	uint32_t room = peer->mapped_room ? peer->mapped_room * 2 : 4;
	struct direct_segment *mapped;

	if (peer->mapped_count < peer->mapped_room)
		return true;
	mapped = room > MAPPED_MAX ? NULL : realloc(peer->mapped, room * sizeof(*mapped));
	if (!mapped)
		return false;
	peer->mapped = mapped;
	peer->mapped_room = room;
	return true;
}

/* The entry of a segment that is mapped, to be replaced by a mapping that can be written, if there is one. False: there is none. */
static bool peer_replace(struct direct_peer *peer, const struct direct_segment *segment)
{
	for (uint32_t i = 0; i < peer->mapped_count; i++) {
		struct direct_segment *mapped = &peer->mapped[i];

		if (atomic_load(&mapped->id) != atomic_load(&segment->id))
			continue;
		mapped->is_refused = segment->is_refused;
		if (!segment->base)
			return true;
		if (mapped->base)
			hccld_mapping_free(mapped->base, mapped->size);
		mapped->base = segment->base;
		mapped->size = segment->size;
		mapped->is_writable = segment->is_writable;
		return true;
	}
	return false;
}

/* With hccld_drive_mutex, the context intruded. @generation: from before the request. */
static void peer_add(struct direct_peer *peer, uint32_t generation, const struct direct_segment *segment)
{
	if (peer->generation != generation) {
		hccld_drive_unmap_peer(peer);
		peer->generation = generation;
	}
	if (peer_replace(peer, segment))
		return;
	/* too many: they come again one by one */
	if (!peer_has_room(peer)) {
		hccld_drive_unmap_peer(peer);
		if (!peer_has_room(peer))
			return;
	}
	peer->mapped[peer->mapped_count++] = *segment;
}

static void segment_map(struct hccld_drive_rank *rank, const struct direct_wish *wish, const struct hccld_session *session)
{
	const struct comm_member *member = &rank->direct.region->members[wish->peer];
	uint32_t generation = atomic_load_explicit(&member->retired, memory_order_acquire);
	struct direct_segment segment = { .base = NULL };

	/* no text: what cannot be mapped is copied by the engine, and remembered as that (base NULL) */
	if (segment_request(session, wish, &segment) < 0) {
		const struct direct_wish to_read = { NEED_SEGMENT, wish->peer, wish->handle, wish->segment };

		hccld_error_forget();
		segment.is_refused = wish->need == NEED_WRITABLE;
		if (segment.is_refused && segment_request(session, &to_read, &segment) < 0)
			hccld_error_forget();
	}
	atomic_store(&segment.id, wish->segment);
	direct_intrude(&rank->on->direct);
	peer_add(&rank->direct.peers[wish->peer], generation, &segment);
	direct_retreat(&rank->on->direct);
}

/* ---- room ---- */

static int grow_request(const struct hccld_session *session, const struct hccld_drive_rank *rank, const struct direct_wish *wish,
			Hccld__Control__GrowCommReply *ret_reply)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GrowComm body = HCCLD__CONTROL__GROW_COMM__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	int r;

	body.rank = wish->handle;
	body.pool = wish->need == NEED_POOL;
	body.peer = wish->peer;
	body.pools = rank->direct.pool_count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GROW_COMM;
	request.grow_comm = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_GROW_COMM)
		r = -EPROTO;
	if (r == 0)
		*ret_reply = *call.reply->grow_comm;
	return r;
}

static bool pool_add(struct direct_rank *rank, const Hccld__Control__GrowCommReply *reply)
{
	struct eager_place *at = &rank->pools[rank->pool_count];

	if (rank->pool_count == HCCLD_EAGER_POOLS || !reply->slots || reply->slots > HCCLD_EAGER_SLOTS << HCCLD_EAGER_POOLS)
		return false;
	at->pool = place_find(rank, reply->index, eager_pool_size(reply->slots));
	at->place = reply->index * (uint64_t)PAIR_PLACE;
	at->slot_count = reply->slots;
	at->cursor = 0;
	rank->pool_first = rank->pool_count;
	rank->pool_count += at->pool != NULL;
	return at->pool != NULL;
}

/* With hccld_drive_mutex. */
static bool grow(struct hccld_drive_rank *rank, const struct direct_wish *wish, const struct hccld_session *session)
{
	struct direct_peer *peer = &rank->direct.peers[wish->peer];
	Hccld__Control__GrowCommReply reply = HCCLD__CONTROL__GROW_COMM_REPLY__INIT;
	bool is_given = grow_request(session, rank, wish, &reply) == 0, is_mapped = is_given && extents_request(rank) == 0;

	if (!is_mapped)
		hccld_error_forget();
	direct_intrude(&rank->on->direct);
	if (is_mapped && wish->need == NEED_POOL) {
		is_mapped = pool_add(&rank->direct, &reply);
	} else if (is_mapped) {
		peer->wide_index = reply.index;
		peer->wide_out = place_find(&rank->direct, reply.index, sizeof(struct pair_wide));
		is_mapped = peer->wide_out != NULL;
	}
	/* a limit, or what one rank may have: for a while such sends wait for their receivers */
	rank->direct.full_until_ns = is_given ? 0 : clock_now_ns() + HCCLD_ROOM_AGAIN_NS;
	rank->direct.is_unmapped = is_given && !is_mapped;
	direct_retreat(&rank->on->direct);
	return is_mapped;
}

/* A peer has something that is not mapped: its pool, or the wide ring from it. */
static void extents_refresh(struct hccld_drive_rank *rank, uint32_t peer_rank)
{
	struct direct_peer *peer = &rank->direct.peers[peer_rank];

	if (extents_request(rank) < 0)
		hccld_error_forget();
	direct_intrude(&rank->on->direct);
	if (peer->in && !peer->wide_in) {
		uint32_t wide = atomic_load_explicit(&peer->in->wide, memory_order_acquire);

		peer->wide_in = wide ? place_find(&rank->direct, wide - 1, sizeof(struct pair_wide)) : NULL;
	}
	direct_retreat(&rank->on->direct);
}

bool hccld_drive_fulfil(const struct direct_wish *wish)
{
	struct hccld_session *session;
	struct direct_rank *found;
	bool is_fulfilled = false;
	int cancel;

	if (wish->need == NEED_NOTHING || hccld_session_get(&session) < 0)
		return false;
	/* requests are points of cancellation */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&hccld_drive_mutex);
	found = atomic_load(&hccld_drive_process.places[VIEW_INDEX(wish->handle) % HCCLD_RANKS_PER_SESSION].rank);
	if (found && found->handle == wish->handle) {
		struct hccld_drive_rank *rank = (struct hccld_drive_rank *)found;

		is_fulfilled = true;
		if (wish->need == NEED_SEGMENT || wish->need == NEED_WRITABLE)
			segment_map(rank, wish, session);
		else if (wish->need == NEED_EXTENTS)
			extents_refresh(rank, wish->peer);
		else
			is_fulfilled = grow(rank, wish, session);
	}
	pthread_mutex_unlock(&hccld_drive_mutex);
	pthread_setcancelstate(cancel, NULL);
	return is_fulfilled;
}
