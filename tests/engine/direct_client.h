/* SPDX-License-Identifier: Apache-2.0 */
/* The process of one rank of a rig, with its executor. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "engine/direct.h"
#include "tests/support/rig.h"

struct client {
	struct direct_process process;
	struct direct_context direct;
	struct direct_rank rank;
	struct direct_peer peers[RIG_RANKS_MAX];
	struct direct_segment mapped[RIG_RANKS_MAX];
	_Atomic bool owned, intruded;	/* as the test sees it: a thread drives, another one changes tables */
};

/* free() is enough. */
static inline struct client *client_new(struct rig *rig, uint32_t index, const struct beacon *beacon, int event_fd)
{
	struct client *client = aligned_alloc(HCCLD_CACHE_LINE, (sizeof(*client) + 63) / 64 * 64);
	struct rig_rank *me = &rig->ranks[index];

	memset(client, 0, sizeof(*client));
	client->direct.bell.words = me->context->words;
	client->direct.bell.bit_word = me->context->bit_word;
	client->direct.bell.bit = me->context->bit;
	client->direct.beacon = beacon;
	client->direct.event_fd = event_fd;
	client->direct.process = &client->process;
	client->direct.copies = rig->copies;
	client->direct.index = me->context->index;
	for (uint32_t s = 0; s < RIG_STREAMS; s++)
		direct_add_ring(&client->direct, me->streams[s]);
	client->process.places[VIEW_INDEX(me->segment)].segment.base = me->memory;
	client->process.places[VIEW_INDEX(me->segment)].segment.size = RIG_MEMORY;
	atomic_store(&client->process.places[VIEW_INDEX(me->segment)].segment.id, me->segment);
	client->rank = (struct direct_rank){ .handle = me->handle, .region = rig->comm.region, .rank = index, .size = rig->size, .peers = client->peers,
					      .full_until_ns = UINT64_MAX };
	atomic_store(&client->process.places[VIEW_INDEX(me->handle)].rank, &client->rank);
	atomic_store(&client->process.rank_limit, VIEW_INDEX(me->handle) + 1);
	for (uint32_t i = 0; i < rig->size; i++) {
		struct rig_rank *peer = &rig->ranks[i];

		client->peers[i].bell.words = peer->context->words;
		client->peers[i].bell.bit_word = peer->context->bit_word;
		client->peers[i].bell.bit = peer->context->bit;
		if (i == index)
			continue;
		client->peers[i].out = rig_pair(rig, index, i);
		client->peers[i].rest_out = view_pair_of(&rig->comm, index, i)->rest;
		client->peers[i].in = rig_pair(rig, i, index);
		client->peers[i].rest_in = view_pair_of(&rig->comm, i, index)->rest;
		client->mapped[i].base = peer->memory;
		client->mapped[i].size = RIG_MEMORY;
		client->mapped[i].is_writable = true;
		atomic_store(&client->mapped[i].id, peer->segment);
		client->peers[i].mapped = &client->mapped[i];
		client->peers[i].mapped_count = 1;
	}
	return client;
}

/* ---- eager pools ---- */

#define CLIENT_POOL_SLOTS 8u

/* A pool for each of the @clients, all those of @rig: both executors know it. Before any of them runs. */
struct client_pools {
	_Atomic(struct view_pools *) table[RIG_RANKS_MAX];
	struct view_pools views[RIG_RANKS_MAX];
	void *memory[RIG_RANKS_MAX];
};

static inline void client_pools_init(struct client_pools *pools, struct rig *rig, struct client *const *clients)
{
	const uint64_t bytes = eager_pool_size(CLIENT_POOL_SLOTS);

	memset(pools, 0, sizeof(*pools));
	for (uint32_t i = 0; i < rig->size; i++) {
		uint64_t place = (uint64_t)(i + 1) << 24;

		pools->memory[i] = aligned_alloc(HCCLD_CACHE_LINE, (bytes + 63) / 64 * 64);
		memset(pools->memory[i], 0, bytes);
		pools->views[i].pools[0] = (struct eager_place){ .place = place, .pool = pools->memory[i],
							      .slot_count = CLIENT_POOL_SLOTS };
		pools->views[i].count = 1;
		pools->table[i] = &pools->views[i];
		clients[i]->rank.pools[0] = (struct eager_place){ .pool = pools->memory[i], .place = place, .slot_count = CLIENT_POOL_SLOTS };
		clients[i]->rank.pool_count = 1;
		for (uint32_t reader = 0; reader < rig->size; reader++)
			clients[reader]->rank.extents[clients[reader]->rank.extent_count++] =
				(struct direct_extent){ .place = place, .bytes = bytes, .base = pools->memory[i], .size = bytes };
	}
	rig->comm.pools = pools->table;
}

static inline void client_pools_deinit(struct client_pools *pools, struct rig *rig)
{
	rig->comm.pools = NULL;
	for (uint32_t i = 0; i < rig->size; i++)
		free(pools->memory[i]);
}
