/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events in shared memory: places in a segment of kind EVENT, which belongs to a context and ends with it. Any stream of the session may
 * record an event or wait for it. `recorded` is a version that only grows.
 *
 *   E1  A record task carries the version it gives, a wait the version it needs, both fixed when they are submitted. So both may be run
 *       any number of times, and a daemon killed between any two stores loses nothing.
 *   E2  recorded_ns is stored before `recorded` (release).
 *   E3  Record tasks of one place that are not done are all in one stream, hence are done in the order of their versions: the client
 *       takes another place for an event that is recorded elsewhere meanwhile. A place serves another event when its records are done.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define EVENT_SEGMENT_KIND 70u	/* AllocateSegment.Kind */

struct event_slot {
	/* executor */
	_Atomic uint64_t recorded;
	_Atomic uint64_t recorded_ns;	/* CLOCK_MONOTONIC, of the newest record */
	/* client */
	_Atomic uint64_t submitted;	/* newest version given to a record task */
	_Atomic uint32_t stream;	/* 1 + place of the stream of that task, 0: none; for tools */
	_Atomic uint32_t id;		/* aclrtGetEventId; for tools */
	uint64_t reserved[4];
};
static_assert(sizeof(struct event_slot) == 64, "one line");
