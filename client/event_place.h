/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of events in shared memory (proto/event.h): segments of a context, cut up. A place that is given back is used again when its
 * records are done (E3). With event.c's mutex, but for event_places_reserve().
 */
#pragma once

#include <stdint.h>

#include "client/segment.h"
#include "client/stream.h"
#include "proto/event.h"

struct event_place {
	struct event_place *next;
	struct event_slot *slot;
	uint64_t segment, offset;
	struct hccld_point record; /* the newest */
	uint64_t awaited;	   /* newest version that a wait was queued for */
};

/* Is a place to be had? */
bool event_places_have(const struct hccld_context *context);
/* Asks the daemon for memory for more; without the mutex. */
struct event_block;
int event_block_new(struct hccld_context *context, struct event_block **ret_block);
/* Its segment has gone with the context. */
void event_block_free(struct event_block *block);
/* Takes @block. */
void event_places_add(struct hccld_context *context, struct event_block *block);
/* NULL: none. */
struct event_place *event_place_take(struct hccld_context *context);
void event_place_give(struct hccld_context *context, struct event_place *place);
/* The context has gone, and the segments with it. */
void event_places_forget(struct hccld_context *context);
