/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes of a batch, done by the process whose batch it is: what direct_lane.c, direct_send.c and direct_receive.c share; not for others. Words
 * of pairs in the order of proto/pair.h (P1 to P8); what fails, or looks as if it would, is declined before anything is stored about it.
 */
#pragma once

#include <string.h>

#include "engine/direct.h"
#include "engine/lane.h"
#include "engine/point.h"
#include "engine/view.h"

#define PACKED_BYTES_MAX (HCCLD_INLINE_MAX / 2)	/* of offers that can share a slot */

/* A batch as one pass sees it. */
struct work {
	struct direct_context *context;
	struct direct_rank *rank;
	struct item *items;		/* as in struct batch */
	uint64_t first, mask;
	uint32_t count;
	enum { SPILLS_UNKNOWN, SPILLS_NOT, SPILLS } spills;	/* is it larger than the last cache? */
	/* the segment found last */
	uint64_t segment;
	unsigned char *base;
	uint64_t size;
};

/* The segment @id of this process becomes the one found last. False: the executor here does not know it. */
bool work_find_segment(struct work *work, uint64_t id);
/* What this pass lacks. */
void work_need(struct work *work, enum direct_need what, uint32_t peer, uint64_t segment);

static inline struct item *work_item(const struct work *work, uint32_t index)
{
	return &work->items[(work->first + index) & work->mask];
}

/*
 * The next item of a lane. Indices grow; what does not is memory that the daemon has taken away (its session has ended though the process
 * lives), and read as zeros: then the lane ends here, and what is done next does not matter to anybody.
 */
static inline uint32_t item_next(const struct item *item, uint32_t index)
{
	return item->next > index ? item->next : LANE_END;
}

/* Memory of this process. NULL: it is none that the executor here knows, or the place is not inside it. */
static inline unsigned char *own_memory(struct work *work, uint64_t id, uint64_t offset, uint64_t bytes)
{
	if (id != work->segment && !work_find_segment(work, id))
		return NULL;
	return offset <= work->size && bytes <= work->size - offset ? work->base + offset : NULL;
}

static inline bool peer_is_gone(const struct work *work, uint32_t peer)
{
	return atomic_load_explicit(&work->rank->region->members[peer].word, memory_order_acquire) != MEMBER_ALIVE;
}

/* One lane, @head is its first item. */
enum direct_left lane_send_direct(struct work *work, struct item *head);
enum direct_left lane_receive_direct(struct work *work, struct item *head);
