/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs. Stores that a lookup can meet are releases, and its loads acquires: see buffer.c for what that is good for. */
#include "client/slab.h"

#include <stdbool.h>

void hccld_slab_init(struct slab *slab, uint64_t size)
{
	slab->granules = (uint32_t)(size < SLAB_SIZE ? size : SLAB_SIZE) / SLAB_GRANULE;
	for (uint32_t i = 0; i < slab->granules; i++)
		atomic_store_explicit(&slab->granule[i].first, SLAB_UNUSED, memory_order_release);
	slab->free = slab->granules;
	slab->held = 0;
	slab->cursor = 0;
	slab->fails_at = SLAB_GRANULES + 1;
}

static uint32_t granules(uint32_t bytes)
{
	return (bytes + SLAB_GRANULE - 1) / SLAB_GRANULE;
}

/* The first granule of a run of @count unused ones in [from, to), or SLAB_UNUSED. */
static uint32_t search(struct slab *slab, uint32_t from, uint32_t to, uint32_t count)
{
	uint32_t run = 0;

	for (uint32_t i = from; i < to; i++) {
		if (atomic_load_explicit(&slab->granule[i].first, memory_order_relaxed) == SLAB_UNUSED)
			run++;
		else
			run = 0;
		if (run == count)
			return i + 1 - count;
	}
	return SLAB_UNUSED;
}

uint32_t hccld_slab_allocate(struct slab *slab, uint32_t bytes, uint8_t extra)
{
	uint32_t count = granules(bytes), first;

	if (slab->free < count || count >= slab->fails_at)
		return SLAB_UNUSED;
	first = search(slab, slab->cursor, slab->granules, count);
	if (first == SLAB_UNUSED)
		first = search(slab, 0, slab->granules, count);
	if (first == SLAB_UNUSED) {
		slab->fails_at = count;
		return SLAB_UNUSED;
	}
	atomic_store_explicit(&slab->granule[first].bytes, bytes, memory_order_release);
	atomic_store_explicit(&slab->granule[first].extra, extra, memory_order_release);
	slab->granule[first].shared = false;
	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&slab->granule[first + i].first, (uint16_t)first,
				      memory_order_release);
	slab->free -= count;
	slab->cursor = first + count;
	return first;
}

/* What its granules are afterwards. Returns how many there are. */
static uint32_t end(struct slab *slab, uint32_t first, uint16_t mark)
{
	uint32_t count = granules(atomic_load_explicit(&slab->granule[first].bytes, memory_order_relaxed));

	for (uint32_t i = 0; i < count; i++)
		atomic_store_explicit(&slab->granule[first + i].first, mark, memory_order_release);
	return count;
}

void hccld_slab_hold(struct slab *slab, uint32_t first)
{
	slab->held += end(slab, first, SLAB_HELD);
}

void hccld_slab_free(struct slab *slab, uint32_t first)
{
	slab->free += end(slab, first, SLAB_UNUSED);
	slab->fails_at = SLAB_GRANULES + 1;
	slab->cursor = first;
}

_Bool hccld_slab_is_start(struct slab *slab, uint64_t offset)
{
	uint64_t granule = offset / SLAB_GRANULE;

	return granule < SLAB_GRANULES && offset % SLAB_GRANULE == 0 &&
	       atomic_load_explicit(&slab->granule[granule].first, memory_order_relaxed) == granule;
}

int hccld_slab_find(struct slab *slab, uint64_t offset, uint64_t *ret_start, uint64_t *ret_bytes)
{
	uint32_t first;

	if (offset >= SLAB_SIZE)
		return -ENOENT;
	first = atomic_load_explicit(&slab->granule[offset / SLAB_GRANULE].first, memory_order_acquire);
	/* SLAB_UNUSED, SLAB_HELD, or never written */
	if (first >= SLAB_GRANULES)
		return -ENOENT;
	*ret_start = (uint64_t)first * SLAB_GRANULE;
	*ret_bytes = atomic_load_explicit(&slab->granule[first].bytes, memory_order_acquire);
	return *ret_start + *ret_bytes > offset ? 0 : -ENOENT;
}
