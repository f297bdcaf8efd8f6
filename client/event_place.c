/* SPDX-License-Identifier: Apache-2.0 */
#include "client/event_place.h"

#include <stdlib.h>

#include "client/error.h"

#define BLOCK_SIZE (16u << 10)
#define BLOCK_PLACES (BLOCK_SIZE / sizeof(struct event_slot))
#define BUSY_LOOKS 8 /* places that wait for their records, looked at per event */

struct event_block {
	struct event_block *next;
	struct hccld_segment segment;
	struct event_place places[BLOCK_PLACES];
};

struct queue {
	struct event_place *first, *last;
};

/* By the program's number of the device. */
static struct pool {
	struct event_block *blocks;
	struct queue free, busy; /* busy: given back before their records are done */
} pools[HCCLD_DEVICES_MAX];

static void queue_push(struct queue *queue, struct event_place *place)
{
	place->next = NULL;
	if (queue->last)
		queue->last->next = place;
	else
		queue->first = place;
	queue->last = place;
}

static struct event_place *queue_pop(struct queue *queue)
{
	struct event_place *place = queue->first;

	if (!place)
		return NULL;
	queue->first = place->next;
	if (!queue->first)
		queue->last = NULL;
	return place;
}

/* Records that are not done, or waits for one that nobody has queued: those must not be answered by another event's. */
static bool place_is_busy(const struct event_place *place)
{
	return hccld_point_is_pending(&place->record) ||
	       place->awaited > atomic_load_explicit(&place->slot->submitted, memory_order_relaxed);
}

static void pool_settle(struct pool *pool)
{
	for (int i = 0; i < BUSY_LOOKS && pool->busy.first; i++) {
		struct event_place *place = queue_pop(&pool->busy);

		queue_push(place_is_busy(place) ? &pool->busy : &pool->free, place);
	}
}

bool event_places_have(const struct hccld_context *context)
{
	struct pool *pool = &pools[context->logical];

	if (!pool->free.first)
		pool_settle(pool);
	return pool->free.first != NULL;
}

int event_block_new(struct hccld_context *context, struct event_block **ret_block)
{
	struct event_block *block = calloc(1, sizeof(*block));
	int r;

	if (!block)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for events");
	r = hccld_segment_new(context, EVENT_SEGMENT_KIND, BLOCK_SIZE, 0, &block->segment);
	if (r < 0) {
		free(block);
		return r;
	}
	for (uint32_t i = 0; i < BLOCK_PLACES; i++) {
		struct event_place *place = &block->places[i];

		place->slot = (struct event_slot *)block->segment.base + i;
		place->segment = block->segment.id;
		place->offset = i * sizeof(struct event_slot);
	}
	*ret_block = block;
	return 0;
}

void event_block_free(struct event_block *block)
{
	hccld_segment_unmap(&block->segment);
	free(block);
}

void event_places_add(struct hccld_context *context, struct event_block *block)
{
	struct pool *pool = &pools[context->logical];

	block->next = pool->blocks;
	pool->blocks = block;
	for (uint32_t i = 0; i < BLOCK_PLACES; i++)
		queue_push(&pool->free, &block->places[i]);
}

struct event_place *event_place_take(struct hccld_context *context)
{
	return event_places_have(context) ? queue_pop(&pools[context->logical].free) : NULL;
}

void event_place_give(struct hccld_context *context, struct event_place *place)
{
	struct pool *pool = &pools[context->logical];

	queue_push(place_is_busy(place) ? &pool->busy : &pool->free, place);
}

void event_places_forget(struct hccld_context *context)
{
	struct pool *pool = &pools[context->logical];

	while (pool->blocks) {
		struct event_block *block = pool->blocks;

		pool->blocks = block->next;
		event_block_free(block);
	}
	pool->free = pool->busy = (struct queue){ 0 };
}
