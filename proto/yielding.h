/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting by sched_yield(), as long as that is cheap. A yield lets those run who have nothing to do but a little, and who yield in turn. Where
 * somebody wants a core for himself, a yield costs a tick of the scheduler or several (milliseconds; since Linux 6.18 even if the other is
 * of SCHED_IDLE), while one who sleeps is woken at once. So a yield that took long says: for a while spin a little, then sleep.
 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "proto/clock.h"
#include "proto/pause.h"

#ifndef YIELDING_LONG_NS	    /* a test takes 0: every yield is long */
#define YIELDING_LONG_NS 2500000u   /* nobody who yields himself has the core for so long */
#endif
#define YIELDING_PAUSE_NS 10000000u /* for so long we do not yield; twice as long each time that it comes again soon */
#define YIELDING_PAUSE_MAX_NS 640000000u
#define YIELDING_SOON 8u	     /* pauses */
#define YIELDING_SPIN_NS 20000u /* instead; about twice the price of a sleep and a wake-up */
#define YIELDING_SPIN_MIN_NS 1000u /* at least: who runs on another core has answered by then */

/* All zero at first. Any thread, several at a time: it is a hint, and a lost store costs nothing but time. */
struct yielding {
	_Atomic uint64_t not_before_ns, pause_ns;
	_Atomic uint64_t vain_ns;	/* of YIELDING_SPIN_NS, less MIN, which have brought nothing lately */
};

static inline void yielding_was_long(struct yielding *yielding, uint64_t now_ns)
{
	uint64_t pause_ns = atomic_load_explicit(&yielding->pause_ns, memory_order_relaxed);
	uint64_t since_ns = now_ns - atomic_load_explicit(&yielding->not_before_ns, memory_order_relaxed);

	if (!pause_ns || since_ns > YIELDING_SOON * pause_ns)
		pause_ns = YIELDING_PAUSE_NS;
	else if (pause_ns < YIELDING_PAUSE_MAX_NS)
		pause_ns *= 2;
	atomic_store_explicit(&yielding->pause_ns, pause_ns, memory_order_relaxed);
	atomic_store_explicit(&yielding->vain_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&yielding->not_before_ns, now_ns + pause_ns, memory_order_relaxed);
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

/* One step of a wait that began at @since_ns; @now_ns: clock_now_ns(). False: it is time to sleep. */
static inline bool yielding_step(struct yielding *yielding, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t after_ns;

	if (now_ns < atomic_load_explicit(&yielding->not_before_ns, memory_order_relaxed)) {
		cpu_pause();
		return yielding_spin(yielding, now_ns - since_ns);
	}
	sched_yield();
	after_ns = clock_now_ns();
	if (after_ns - now_ns > YIELDING_LONG_NS)
		yielding_was_long(yielding, after_ns);
	return true;
}
