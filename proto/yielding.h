/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting by sched_yield(), as long as that is cheap. A yield lets those run who have nothing to do but a little, and who yield in turn. Where
 * somebody wants a core for himself, a yield costs a tick of the scheduler or several (milliseconds; since Linux 6.18 even if the other is
 * of SCHED_IDLE), while one who sleeps is woken at once. So a yield that took long says: for a while spin a little, then sleep.
 *
 * Long is what so many others as may take turns with us on the core do not explain, if each runs as long as we do between two yields. Many that
 * sleep, and are woken by each of those whom they wait for, take ten times as long as many that yield.
 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "proto/clock.h"
#include "proto/pause.h"

#ifndef YIELDING_LONG_NS	    /* a test takes 0: every yield is long */
#define YIELDING_LONG_NS 2500000u   /* at least */
#endif
#define YIELDING_TURN_MAX_NS 1000000u /* of one: more is copied by others than those who yield */
#define YIELDING_TURNS 4u	     /* times what others explain */
#define YIELDING_PAUSE_NS 10000000u /* for so long we do not yield; the more, the longer that has been going on */
#define YIELDING_PAUSE_MAX_NS 640000000u
#define YIELDING_PAUSE_PART 2u	     /* of the time since it began */
#define YIELDING_SOON 8u	     /* pauses: what comes later is another beginning */
#define YIELDING_SPIN_NS 20000u /* instead; about twice the price of a sleep and a wake-up */
#define YIELDING_SPIN_MIN_NS 1000u /* at least: who runs on another core has answered by then */

/* All zero at first. Any thread, several at a time: it is a hint, and a lost store costs nothing but time. */
struct yielding {
	_Atomic uint64_t not_before_ns, pause_ns, began_ns;
	_Atomic uint64_t vain_ns;	/* of YIELDING_SPIN_NS, less MIN, which have brought nothing lately */
	_Atomic uint64_t after_ns, turn_ns; /* the last yield was over; how long we run between two, the longest lately */
};

static inline void yielding_was_long(struct yielding *yielding, uint64_t now_ns)
{
	uint64_t pause_ns = atomic_load_explicit(&yielding->pause_ns, memory_order_relaxed);
	uint64_t since_ns = now_ns - atomic_load_explicit(&yielding->not_before_ns, memory_order_relaxed);
	uint64_t began_ns = atomic_load_explicit(&yielding->began_ns, memory_order_relaxed);

	if (!pause_ns || since_ns > YIELDING_SOON * pause_ns) {
		began_ns = now_ns;
		atomic_store_explicit(&yielding->began_ns, now_ns, memory_order_relaxed);
	}
	pause_ns = (now_ns - began_ns) / YIELDING_PAUSE_PART;
	if (pause_ns < YIELDING_PAUSE_NS)
		pause_ns = YIELDING_PAUSE_NS;
	if (pause_ns > YIELDING_PAUSE_MAX_NS)
		pause_ns = YIELDING_PAUSE_MAX_NS;
	atomic_store_explicit(&yielding->pause_ns, pause_ns, memory_order_relaxed);
	atomic_store_explicit(&yielding->vain_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&yielding->not_before_ns, now_ns + pause_ns, memory_order_relaxed);
}

/* What a yield at @now_ns may take, if @others may take turns with us on the core. */
static inline uint64_t yielding_bound(struct yielding *yielding, uint32_t others, uint64_t now_ns)
{
	uint64_t turn_ns = now_ns - atomic_load_explicit(&yielding->after_ns, memory_order_relaxed);
	uint64_t last_ns = atomic_load_explicit(&yielding->turn_ns, memory_order_relaxed), bound_ns;

	if (turn_ns > YIELDING_TURN_MAX_NS)
		turn_ns = YIELDING_TURN_MAX_NS;
	if (turn_ns < last_ns - last_ns / 8)
		turn_ns = last_ns - last_ns / 8;
	atomic_store_explicit(&yielding->turn_ns, turn_ns, memory_order_relaxed);
	bound_ns = (uint64_t)YIELDING_TURNS * others * turn_ns;
	return bound_ns > YIELDING_LONG_NS ? bound_ns : YIELDING_LONG_NS;
}

/*
 * Where one waits for somebody who wants the same core, spinning is what he waits for: each time that it was in vain it is half as long,
 * until the next pause.
 */
static inline bool yielding_spin(struct yielding *yielding, uint64_t spun_ns)
{
	uint64_t vain_ns = atomic_load_explicit(&yielding->vain_ns, memory_order_relaxed);

	if (spun_ns + vain_ns < YIELDING_SPIN_NS)
		return true;
	atomic_store_explicit(&yielding->vain_ns, vain_ns + (YIELDING_SPIN_NS - YIELDING_SPIN_MIN_NS - vain_ns + 1) / 2, memory_order_relaxed);
	return false;
}

/* Somebody else wants the core for himself. */
static inline bool yielding_is_paused(const struct yielding *yielding, uint64_t now_ns)
{
	return now_ns < atomic_load_explicit(&yielding->not_before_ns, memory_order_relaxed);
}

/* One step of a wait that began at @since_ns; @now_ns: clock_now_ns(). @others: as above, 0 if that is not known. False: it is time to sleep. */
static inline bool yielding_step(struct yielding *yielding, uint32_t others, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t bound_ns, after_ns;

	if (yielding_is_paused(yielding, now_ns)) {
		cpu_pause();
		return yielding_spin(yielding, now_ns - since_ns);
	}
	bound_ns = yielding_bound(yielding, others, now_ns);
	sched_yield();
	after_ns = clock_now_ns();
	atomic_store_explicit(&yielding->after_ns, after_ns, memory_order_relaxed);
	if (after_ns - now_ns > bound_ns)
		yielding_was_long(yielding, after_ns);
	return true;
}
