/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of all times in shared memory and of all deadlines: CLOCK_MONOTONIC, the same for every process of this boot. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Some milliseconds late, and for a tenth of the price. */
static inline uint64_t clock_coarse_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t clock_now_ms(void)
{
	return clock_now_ns() / 1000000u;
}
