/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a segment that small allocations share, in granules. One thread changes a slab at a time (buffer.c's lock); any thread may
 * look up meanwhile, also in a slab that has just been put to another use: what it reads then is thrown away (buffer.c).
 */
#pragma once

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#define SLAB_GRANULE 512u
#define SLAB_SIZE (2u << 20)
/* All pages are real, and most processes need few, so the first two are small, if what is asked for is not more than a quarter of it. */
#define SLAB_SIZE_FIRST (16u << 10)
#define SLAB_SIZE_SECOND (64u << 10)
#define SLAB_GRANULES (SLAB_SIZE / SLAB_GRANULE)
#define SLAB_ALLOCATION_MAX (256u << 10) /* from here on: a segment of its own */
#define SLAB_UNUSED 0xffffu
#define SLAB_HELD 0xfffeu /* freed, and not to be used again: see hccld_slab_hold() */

struct record;

struct slab_granule {
	_Atomic uint16_t first; /* of the allocation that has the granule; SLAB_UNUSED, SLAB_HELD */
	/* at the first granule of an allocation */
	_Atomic uint8_t extra;	/* what of it nobody has asked for */
	_Bool shared;		/* others may have mapped its pages */
	_Atomic uint32_t bytes; /* its size */
};

/* As long as its granules are few, few of its pages are touched. */
struct slab {
	uint32_t granules;   /* there are; those behind them are never used */
	uint32_t free, held; /* granules */
	uint32_t cursor;     /* where the last search ended */
	uint32_t fails_at;   /* no run of so many granules since the last free */
	struct record *record; /* of buffer.c */
	struct slab *next;
	struct slab_granule granule[SLAB_GRANULES];
};

/* All unused. @size: SLAB_SIZE at most. */
void hccld_slab_init(struct slab *slab, uint64_t size);
/* The first granule of a new allocation, SLAB_UNUSED if there is no room. @extra: how many of @bytes the program has not asked for. */
uint32_t hccld_slab_allocate(struct slab *slab, uint32_t bytes, uint8_t extra);
/* @first: as returned. */
void hccld_slab_free(struct slab *slab, uint32_t first);
/*
 * The same for memory that other processes may have mapped. What they have cannot be taken from them one allocation at a time, and nobody
 * here learns when they let go of it; so the place is given to no other allocation, and goes with the whole slab.
 */
void hccld_slab_hold(struct slab *slab, uint32_t first);
/* Does no allocation live in it? */
static inline _Bool hccld_slab_is_empty(const struct slab *slab)
{
	return slab->free + slab->held == slab->granules;
}
/* Is @offset, in bytes, the start of an allocation? */
_Bool hccld_slab_is_start(struct slab *slab, uint64_t offset);
/* The allocation around @offset: its start, in bytes, and size. -ENOENT: there is none. */
int hccld_slab_find(struct slab *slab, uint64_t offset, uint64_t *ret_start, uint64_t *ret_bytes);
