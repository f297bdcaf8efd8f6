/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What engine_case.c has of pair rings beyond themselves: eager pools and wide rings, as the daemon makes them and clients of the source
 * write in them; offers that the executor did not make; and the words of all these that the liar changes.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "engine/eager.h"
#include "tests/fuzz/engine_case.h"
#include "tests/fuzz/input.h"
#include "tests/support/rig.h"

#define RANKS 3u
#define POOLS 2u
#define POOL_SLOTS 4u /* of the first; the second has twice as many */

static _Atomic(struct view_pools *) pools_of[RANKS];
static struct view_pools pools[RANKS];
static struct pair_wide *wides[RANKS][RANKS];

static void pool_add(uint32_t rank)
{
	uint32_t count = atomic_load(&pools[rank].count), slots = POOL_SLOTS << count;
	struct eager_place *view = &pools[rank].pools[count];

	if (count == POOLS)
		return;
	if (!view->pool)
		view->pool = malloc(eager_pool_size(slots)); /* that size, for AddressSanitizer */
	insist(view->pool);
	memset(view->pool, 0, eager_pool_size(slots));
	view->pool->magic = EAGER_MAGIC;
	view->pool->rank = rank;
	view->pool->slot_count = view->slot_count = slots;
	view->place = (1 + rank * POOLS + count) * 1000ull * PAIR_PLACE;
	view->cursor = 0;
	atomic_store(&pools[rank].count, count + 1);
}

/* P6, as the source's process does it while it has the context. */
static void room_widen(struct rig *rig, uint32_t source, uint32_t destination)
{
	struct view_pair *pair = view_pair_of(&rig->comm, source, destination);
	struct pair_ring *ring = rig_pair(rig, source, destination);
	struct pair_wide **wide = &wides[source][destination];

	if (atomic_load(&pair->wide))
		return;
	if (!*wide)
		*wide = malloc(sizeof(**wide));
	insist(*wide);
	memset(*wide, 0, sizeof(**wide));
	atomic_store(&pair->wide, *wide);
	if (!atomic_load(&ring->wide_from))
		pair_widen(ring, 4999, atomic_load(&ring->tail) + 1);
}

void room_grow(struct rig *rig, uint8_t which)
{
	static const uint8_t pairs[][2] = { { 0, 1 }, { 0, 2 }, { 1, 2 }, { 1, 0 }, { 2, 0 } };

	if (which % 8 < RANKS)
		pool_add(which % 8);
	else
		room_widen(rig, pairs[which % 8 - RANKS][0], pairs[which % 8 - RANKS][1]);
}

void room_start(struct rig *rig, uint8_t which)
{
	rig->comm.pools = pools_of;
	for (uint32_t i = 0; i < RANKS; i++) {
		atomic_store(&pools[i].count, 0);
		atomic_store(&pools_of[i], &pools[i]);
		for (uint32_t j = 0; j < RANKS; j++)
			atomic_store(&view_pair_of(&rig->comm, i, j)->wide, NULL);
	}
	for (uint8_t i = 0; i < 8; i++)
		if (which >> i & 1)
			room_grow(rig, i);
}

void room_restart(void)
{
	for (uint32_t i = 0; i < RANKS; i++)
		for (uint32_t k = 0; k < POOLS; k++)
			pools[i].pools[k].cursor = 0;
}

static const struct eager_place *liar_pool(uint8_t which)
{
	uint32_t count = atomic_load(&pools[0].count);

	return count ? &pools[0].pools[which % count] : NULL;
}

/* Of the payloads of the liar's pools, or near them, or anywhere. */
static uint64_t some_payload(struct input *input)
{
	uint8_t mode = input_byte(input);
	const struct eager_place *pool = liar_pool(mode / 32);

	if (!pool || mode % 8 == 0)
		return input_size(input);
	if (mode % 8 == 1)
		return pool->place + input_size(input);
	if (mode % 8 == 2) /* of an honest rank, if it has one */
		return pools[1].pools[0].place + eager_payload_offset(POOL_SLOTS, 0);
	return pool->place + eager_payload_offset(pool->slot_count, mode / 8 % pool->slot_count) + (mode % 8 == 3 ? input_byte(input) : 0);
}

void room_put_offer(struct rig *rig, struct input *input)
{
	uint32_t peer = 1 + input_byte(input) % 2;
	struct pair_ring *ring = rig_pair(rig, 0, peer);
	uint64_t tail = atomic_load(&ring->tail);
	struct pair_offer offer = { .number = input_byte(input) % 8 ? tail + 1 : input_size(input),
				    .bytes = input_size(input),
				    .data_type = input_byte(input),
				    .where = input_byte(input) % 4 };

	if (offer.where == OFFER_SEGMENT) {
		offer.segment = liar_segment_id(input);
		offer.offset = input_size(input);
	} else if (offer.where == OFFER_EAGER) {
		offer.place = some_payload(input);
	} else {
		for (unsigned int i = 0; i < HCCLD_INLINE_MAX; i++)
			offer.payload[i] = input_byte(input);
	}
	memcpy(view_pair_offer(view_pair_of(&rig->comm, 0, peer), ring, tail + 1), &offer, sizeof(offer));
	atomic_store(&ring->sent, tail + 1);
	atomic_store(&ring->tail, tail + 1);
}

unsigned char *room_place(struct rig *rig, uint8_t which, uint32_t word)
{
	uint32_t peer = 1 + which % 2;
	struct pair_wide *wide = atomic_load(&view_pair_of(&rig->comm, 0, peer)->wide);
	const struct eager_place *pool = liar_pool(which / 2);

	switch (which / 8 % 4) {
	case 0: /* heads, then the first payload */
		if (pool)
			return (unsigned char *)pool->pool + word % eager_payload_offset(pool->slot_count, 1) / 8 * 8;
		break;
	case 1:
		if (wide)
			return (unsigned char *)wide + word % (64 * sizeof(struct pair_offer)) / 8 * 8;
		break;
	case 2: /* where the wide ring begins, too */
		return (unsigned char *)rig_pair(rig, 0, peer) + word % 64 / 4 * 4;
	}
	/* what a destination writes: its line, and that a pair has failed */
	return (unsigned char *)rig_pair(rig, peer, 0) + offsetof(struct pair_ring, received) + word % 24 / 4 * 4;
}
