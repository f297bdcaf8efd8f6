/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The yard: one region per tenant, mapped by all its processes and by the daemon. Per context two lines: the state line (who
 * advances the context) and the peer line, which is quiet while the context is busy. One bit per context tells the engine to look.
 * tests/model/README.md has the ten rules for these words; code and model change together.
 *
 * The beacon is a page of its own that clients map read-only: the engine's `awake` and the daemon's incarnation.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/copies.h"
#include "proto/limits.h"

#define YARD_MAGIC 0x59415244u	/* "YARD" */
#define YARD_VERSION 1u

enum context_state {
	CONTEXT_IDLE = 0,	/* free, nothing undone */
	CONTEXT_LEFT = 1,	/* free, the engine must look */
	CONTEXT_CLIENT = 2,	/* owned by a thread of the client */
	CONTEXT_ENGINE = 3,	/* owned by the daemon's engine */
	CONTEXT_SLEEP = 4,	/* free, a thread of the client sleeps on `news` and will drive */
	CONTEXT_PARKED = 5,	/* free, the engine found nothing to do */
	/* free, undone, and a thread of the client may be back in a moment: the engine takes it at its second look, a tick later */
	CONTEXT_PATIENT = 6,
	/* the engine's, which has copies of it under way: no client takes it. Whoever has news for it sets its bit, and leaves the state alone */
	CONTEXT_HELD = 7,
};

/* state: kind in the low 8 bits, a version above, so that a compare-and-swap never mistakes a later state for an earlier one. */
static inline enum context_state yard_kind(uint64_t state)
{
	return (enum context_state)(state & 0xff);
}

static inline uint64_t yard_next(uint64_t state, enum context_state kind)
{
	return ((state >> 8) + 1) << 8 | (uint64_t)kind;
}

struct yard_context {
	/* state line: written by whoever takes or leaves the context */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t state;
	/* peer line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t asleep;	/* 1: state may be SLEEP or PARKED */
	_Atomic uint32_t sleepers;	/* threads that sleep on `news` or are about to; written by the client */
	_Atomic uint32_t news;		/* futex word */
};
static_assert(sizeof(struct yard_context) == 2 * HCCLD_CACHE_LINE, "two lines");

struct yard {
	uint32_t magic, version;
	uint32_t context_count;
	uint32_t reserved;
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t bits[HCCLD_YARD_CONTEXTS / 64];
	struct yard_context contexts[HCCLD_YARD_CONTEXTS];
};
static_assert(sizeof(struct yard) == 64 + HCCLD_YARD_CONTEXTS / 8 + HCCLD_YARD_CONTEXTS * 128, "no holes");

/* The whole of it. One that a daemon of release 0.3 or before has made ends with its contexts. */
struct yard_region {
	struct yard yard;
	struct copy_table copies;
};

struct beacon {
	uint32_t magic, version;
	_Atomic uint32_t awake;		/* enum beacon_awake */
	_Atomic uint32_t incarnation;	/* grows with each start of the daemon: a request without reply is sent again */
	_Atomic uint32_t stopping;	/* enum beacon_stopping; 0 in memory of daemons that do not know it */
	_Atomic uint32_t local_path;	/* enum beacon_path; the same */
	_Atomic uint32_t cache_kib;	/* of the last cache; 0: not known */
	_Atomic uint32_t contexts;	/* that are open, of all tenants: so many may want a processor; 0 in memory of daemons that do not know it */
};

/* What the engine does by itself. Who has set a bit and finds less than he needs writes its eventfd. */
enum beacon_awake {
	BEACON_ASLEEP = 0,	/* nothing */
	BEACON_AWAKE = 1,	/* looks at the bits again and again */
	BEACON_PATROL = 2,	/* looks at them every tick: enough for who is PATIENT */
};

/* Who moves the bytes between two processes of one tenant. May change at any time. */
enum beacon_path {
	PATH_ENGINE = 0,	/* the engine alone: no thread of a client takes a context */
	PATH_DIRECT = 1,	/* the clients, while they submit or wait */
};

enum beacon_stopping {
	BEACON_SERVES = 0,
	BEACON_STOPPING = 1,	/* no new work is taken; what is in flight may finish */
	BEACON_STOPPED = 2,	/* the daemon has ended on request; sockets hang up */
};

/* May a thread of the client take a context in this state (R3)? */
static inline int yard_is_free(uint64_t state)
{
	const unsigned int kinds = 1u << CONTEXT_IDLE | 1u << CONTEXT_LEFT | 1u << CONTEXT_SLEEP | 1u << CONTEXT_PARKED | 1u << CONTEXT_PATIENT;

	return kinds >> (state & 31) & 1;
}

/* @beacon may be NULL. */
static inline int beacon_is_stopping(const struct beacon *beacon)
{
	return beacon && atomic_load_explicit(&beacon->stopping, memory_order_relaxed) != BEACON_SERVES;
}
