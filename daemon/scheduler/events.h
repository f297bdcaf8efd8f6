/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine thread tells the control thread unasked (liars, warnings, what is missing), through a fixed ring with one writer and one reader. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "engine/engine.h"

#define EVENTS 256u	/* a power of two */

struct scheduler_options;

enum event_kind { EVENT_LIAR, EVENT_TYPE_MISMATCH, EVENT_NO_ROOM };

struct event {
	enum event_kind kind;
	const char *what;
	uint64_t object;	/* session or communicator */
	uint32_t source, destination, pools;
	uint8_t source_type, destination_type;
};

struct events {
	const struct scheduler_options *options;	/* who is told */
	struct event ring[EVENTS];
	_Atomic uint32_t head, tail;	/* read by control, written by the engine thread */
};

/* Engine thread. A warning may be lost; of liars, and of what is missing, another look tells again. @data: events */
void event_liar(void *data, struct view_session *session, const char *what);
/* What an engine says goes into @events. */
struct engine_host events_host(struct events *events);
/* Control thread: tells what there is. */
void events_collect(struct events *events);
