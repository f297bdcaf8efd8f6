/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/growth.h"

#include <errno.h>
#include <stdlib.h>

#include "engine/view.h"
#include "proto/clock.h"
#include "proto/pair.h"
#include "registry/comm.h"
#include "registry/pairs.h"
#include "registry/registry.h"

#define LOOKS_MAX 64u /* each at as many pairs as there are ranks */

static uint32_t pool_slots(uint32_t which)
{
	return HCCLD_EAGER_SLOTS << which;
}

uint64_t growth_pool_bytes(uint32_t which)
{
	return eager_pool_size(pool_slots(which < HCCLD_EAGER_POOLS ? which : HCCLD_EAGER_POOLS - 1));
}

uint64_t growth_wide_bytes(void)
{
	return sizeof(struct pair_wide);
}

/* Of a rank, made if there are none. NULL: out of memory. */
static struct view_pools *pools_of(struct comm *comm, uint32_t rank)
{
	struct view_pools *pools = atomic_load_explicit(&comm->view.pools[rank], memory_order_relaxed);

	if (pools)
		return pools;
	pools = calloc(1, sizeof(*pools));
	if (pools)
		atomic_store_explicit(&comm->view.pools[rank], pools, memory_order_release);
	return pools;
}

/* The engine uses it from here on. A header that a client has changed changes nothing: nobody but clients of that rank reads it. */
static void pool_publish(struct view_pools *pools, struct extent *extent)
{
	struct eager_place *view = &pools->pools[extent->use.peer];
	struct eager_pool *pool = extent->base;

	pool->rank = extent->use.source;
	pool->slot_count = extent->use.slots;
	pool->magic = EAGER_MAGIC;
	*view = (struct eager_place){ .pool = pool,
				      .place = extent->first * (uint64_t)PAIR_PLACE,
				      .slot_count = extent->use.slots };
	atomic_store_explicit(&pools->count, extent->use.peer + 1, memory_order_release);
}

static void wide_publish(struct comm *comm, struct extent *extent)
{
	struct view_pair *pair = view_pair_of(&comm->view, extent->use.source, extent->use.peer);

	pair->wide_index = extent->first;
	atomic_store_explicit(&pair->wide, extent->base, memory_order_release);
}

static struct extent *growth_find(const struct comm *comm, enum extent_kind kind, uint32_t source, uint32_t peer)
{
	list_for_each(struct extent, extent, &comm->extents, link)
		if (extent->use.kind == kind && extent->use.source == source && extent->use.peer == peer)
			return extent;
	return NULL;
}

int growth_pool(struct comm *comm, uint32_t rank, uint32_t which, struct extent **ret_extent)
{
	struct view_pools *pools;
	uint32_t count;
	int r;

	if (which >= HCCLD_EAGER_POOLS)
		return -ENOENT;
	pools = pools_of(comm, rank);
	if (!pools)
		return -ENOMEM;
	count = atomic_load_explicit(&pools->count, memory_order_relaxed);
	if (which > count)
		return -EINVAL;
	if (which < count) {
		*ret_extent = growth_find(comm, EXTENT_POOL, rank, which);
		return 0;
	}
	r = extent_new(comm, &(struct extent_use){ EXTENT_POOL, rank, which, pool_slots(which) }, growth_pool_bytes(which), ret_extent);
	if (r == 0)
		pool_publish(pools, *ret_extent);
	return r;
}

int growth_wide(struct comm *comm, uint32_t source, uint32_t destination, struct extent **ret_extent)
{
	const struct view_pair *pair;
	int r;

	if (destination >= comm->view.size)
		return -EINVAL;
	pair = view_pair_of(&comm->view, source, destination);
	if (!atomic_load_explicit(&pair->ring, memory_order_relaxed))
		return -EINVAL;
	if (atomic_load_explicit(&pair->wide, memory_order_relaxed)) {
		*ret_extent = growth_find(comm, EXTENT_WIDE, source, destination);
		return 0;
	}
	r = extent_new(comm, &(struct extent_use){ EXTENT_WIDE, source, destination, HCCLD_PAIR_WIDE_SLOTS }, growth_wide_bytes(), ret_extent);
	if (r == 0)
		wide_publish(comm, *ret_extent);
	return r;
}

int growth_answer(struct comm *comm, uint32_t source, uint32_t destination, uint32_t pools, bool is_coming)
{
	struct extent *extent;
	int r = source == destination ? growth_pool(comm, source, pools, &extent) : growth_wide(comm, source, destination, &extent);
	_Atomic uint8_t *room = source == destination ? &comm->view.pool_rooms[source] : &view_pair_of(&comm->view, source, destination)->wide_room;

	if (is_coming && (r == -EUSERS || r == -ENOBUFS || r == -ENOMEM)) {
		atomic_store_explicit(room, ROOM_UNASKED, memory_order_release);
		return -EAGAIN;
	}
	if (r < 0)
		atomic_store_explicit(&comm->view.room_again_ns, clock_now_ns() + HCCLD_ROOM_AGAIN_NS, memory_order_relaxed);
	/* release: what has been made is before it */
	atomic_store_explicit(room, r < 0 ? ROOM_REFUSED : ROOM_UNASKED, memory_order_release);
	return r;
}

/* @extent is of this kind, as its record says: does it fit the communicator, and is it large enough? */
static bool growth_is_sane(const struct comm *comm, const struct extent *extent)
{
	const struct extent_use *use = &extent->use;

	if (use->source >= comm->view.size)
		return false;
	if (use->kind == EXTENT_WIDE)
		return use->peer < comm->view.size && use->slots == HCCLD_PAIR_WIDE_SLOTS && extent->bytes >= sizeof(struct pair_wide) &&
		       atomic_load_explicit(&view_pair_of((struct view_comm *)&comm->view, use->source, use->peer)->ring,
					    memory_order_relaxed);
	return use->kind == EXTENT_POOL && use->peer < HCCLD_EAGER_POOLS && use->slots && extent->bytes >= eager_pool_size(use->slots);
}

/* Those of the kind, of pools the ones with this number: they are published in order. */
static int growths_publish(struct comm *comm, enum extent_kind kind, uint32_t which)
{
	list_for_each(struct extent, extent, &comm->extents, link) {
		struct view_pools *pools;

		if (extent->use.kind != kind || (kind == EXTENT_POOL && extent->use.peer != which))
			continue;
		if (kind == EXTENT_WIDE) {
			wide_publish(comm, extent);
			continue;
		}
		pools = pools_of(comm, extent->use.source);
		if (!pools)
			return -ENOMEM;
		if (atomic_load_explicit(&pools->count, memory_order_relaxed) != which)
			return -EPROTO;
		pool_publish(pools, extent);
	}
	return 0;
}

static int growths_publish_all(struct comm *comm)
{
	int r = growths_publish(comm, EXTENT_WIDE, 0);

	for (uint32_t which = 0; r == 0 && which < HCCLD_EAGER_POOLS; which++)
		r = growths_publish(comm, EXTENT_POOL, which);
	return r;
}

int growths_restore(struct comm *comm)
{
	list_for_each(struct extent, extent, &comm->extents, link)
		if ((extent->use.kind == EXTENT_POOL || extent->use.kind == EXTENT_WIDE) && !growth_is_sane(comm, extent))
			return -EPROTO;
	if (comm->view.region->pair_room > comm->pair_room)
		comm->pair_room = comm->view.region->pair_room;
	growths_linger(comm);
	return growths_publish_all(comm);
}

void growths_linger(struct comm *comm)
{
	if (!comm->memory_of[EXTENT_POOL] && !comm->memory_of[EXTENT_WIDE])
		return;
	comm->lingers = true;
	comm->registry->growths_linger = true;
}

/* Is there an offer in the pair from a rank that is gone which its destination may still receive? */
static bool pair_is_drained(const struct view_pair *pair, struct pair_ring *ring)
{
	uint64_t failed = atomic_load_explicit(view_pair_failed(pair, ring), memory_order_acquire);
	uint64_t last = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (failed && failed - 1 < last)
		last = failed - 1;
	/* acquire: what was received has been read */
	return atomic_load_explicit(&ring->received, memory_order_acquire) >= last;
}

/* Takes what @rank, which is gone, has left out of the view, if it is needed no more. */
static void rank_retract(struct comm *comm, uint32_t rank)
{
	struct view_pools *pools = atomic_load_explicit(&comm->view.pools[rank], memory_order_relaxed);
	bool has_any = pools && atomic_load_explicit(&pools->count, memory_order_relaxed);

	for (uint32_t peer = 0; peer < comm->view.size; peer++) {
		const struct view_pair *pair = view_pair_of(&comm->view, rank, peer);
		struct pair_ring *ring = atomic_load_explicit(&pair->ring, memory_order_relaxed);

		has_any |= atomic_load_explicit(&pair->wide, memory_order_relaxed) != NULL;
		if (!ring || !comm->ranks[peer] || pair_is_drained(pair, ring))
			continue;
		comm->lingers = true;
		return;
	}
	if (!has_any)
		return;
	comm->is_retracted = true;
	if (pools)
		atomic_store_explicit(&pools->count, 0, memory_order_release);
	for (uint32_t peer = 0; peer < comm->view.size; peer++)
		if (atomic_load_explicit(&view_pair_of(&comm->view, rank, peer)->wide, memory_order_relaxed))
			atomic_store_explicit(&view_pair_of(&comm->view, rank, peer)->wide, NULL, memory_order_release);
}

uint32_t growths_retract(struct comm *comm, uint32_t from)
{
	uint32_t rank = from;

	if (from == 0)
		comm->lingers = false;
	for (uint32_t looks = 0; rank < comm->view.size && looks < LOOKS_MAX; rank++) {
		if (comm->ranks[rank])
			continue;
		rank_retract(comm, rank);
		looks++;
	}
	return rank;
}

/* Not in the view any more? */
static bool extent_is_retracted(const struct comm *comm, const struct extent *extent)
{
	const struct view_pools *pools;

	if (extent->use.kind == EXTENT_WIDE)
		return !atomic_load_explicit(&view_pair_of((struct view_comm *)&comm->view, extent->use.source, extent->use.peer)->wide,
					     memory_order_relaxed);
	if (extent->use.kind != EXTENT_POOL)
		return false;
	pools = atomic_load_explicit(&comm->view.pools[extent->use.source], memory_order_relaxed);
	return !atomic_load_explicit(&pools->count, memory_order_relaxed);
}

void growths_reclaim(struct comm *comm)
{
	comm->is_retracted = false;
	/* a client may know what is at these numbers */
	comm->view.region->pair_room = comm->pair_room;
	atomic_thread_fence(memory_order_seq_cst);
	/* the last pool of a rank first: the next process finds no gap */
	for (uint32_t which = HCCLD_EAGER_POOLS; which-- > 0;)
		list_for_each(struct extent, extent, &comm->extents, link)
			if (extent->use.kind == EXTENT_POOL && extent->use.peer == which && extent_is_retracted(comm, extent))
				extent_remove(comm, extent);
	list_for_each(struct extent, extent, &comm->extents, link)
		if (extent->use.kind == EXTENT_WIDE && extent_is_retracted(comm, extent))
			extent_remove(comm, extent);
}

void growths_free(struct comm *comm)
{
	for (uint32_t i = 0; comm->view.pools && i < comm->view.size; i++)
		free(atomic_load_explicit(&comm->view.pools[i], memory_order_relaxed));
	free(comm->view.pools);
	free(comm->view.pool_rooms);
}
