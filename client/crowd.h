/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits, by what it has met lately. One for each thread.
 *
 * Do others want its processor? Where nobody does, spinning costs nothing; else it holds up those whom the thread waits for. A yield that somebody
 * else has used is a switch of the thread, which the kernel counts, so a look now and then tells. Whether a spin has helped does not: one tick of
 * the kernel, or of the daemon, in the middle of it looks as if it had not.
 *
 * Is it woken soon after it has gone to sleep? Then it pays to yield a little longer. Else many ranks on few processors that once sleep go on to
 * do so: each has to be woken before the next one can go on, which takes them all longer than they yield.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#define CROWD_LOOK 16u	/* yields; a spin or two go before each */
#define CROWD_LOOK_CROWDED 64u
#define CROWD_YIELD_MIN_NS 50000u	/* then the price of a sleep is small against the wait */
#define CROWD_YIELD_MAX_NS 400000u
#define CROWD_LONG_NS 4000000u		/* nothing is lost by a sleep */

/* All zero at first. */
struct crowd {
	uint32_t yields;	/* since `switches` was read */
	long switches;
	bool is_crowded;
	uint32_t more_ns;	/* than CROWD_YIELD_MIN_NS */
};

static inline long crowd_switches(void)
{
	struct rusage usage;

	/* a yield that leads to a switch is counted as involuntary */
	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* The thread has yielded. @switches: its number of switches, asked for when needed. */
static inline void crowd_yielded(struct crowd *crowd, long (*switches)(void))
{
	const uint32_t look = crowd->is_crowded ? CROWD_LOOK_CROWDED : CROWD_LOOK;

	if (crowd->yields++ == 0)
		crowd->switches = switches();
	if (crowd->yields < look)
		return;
	crowd->is_crowded = switches() - crowd->switches > (long)look / 4;
	crowd->yields = 0;
}

/* The thread does not yield at all, for that would take too long. */
static inline void crowd_is_certain(struct crowd *crowd)
{
	crowd->is_crowded = true;
	crowd->yields = 0;
}

/* For so long a wait yields before it sleeps. */
static inline uint64_t crowd_yield_ns(const struct crowd *crowd)
{
	return CROWD_YIELD_MIN_NS + crowd->more_ns;
}

/* The thread has slept, and is awake again @wait_ns after it began to yield. */
static inline void crowd_slept(struct crowd *crowd, uint64_t wait_ns)
{
	uint64_t ns = crowd_yield_ns(crowd);

	if (wait_ns < CROWD_YIELD_MAX_NS)
		ns = ns * 2 < CROWD_YIELD_MAX_NS ? ns * 2 : CROWD_YIELD_MAX_NS;
	else if (wait_ns > CROWD_LONG_NS)
		ns = ns / 2 > CROWD_YIELD_MIN_NS ? ns / 2 : CROWD_YIELD_MIN_NS;
	crowd->more_ns = (uint32_t)(ns - CROWD_YIELD_MIN_NS);
}
