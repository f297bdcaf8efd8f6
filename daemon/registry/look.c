/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/look.h"

#include <time.h>

#include "proto/clock.h"

#define SHORT_NS 2000000u /* looks that take less are made whenever somebody asks */
#define PART 20u	  /* others take this part of our time at most */

/* Of this thread: that others want the core must not make a look seem long. */
static uint64_t processor_ns(void)
{
	struct timespec time = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

bool look_is_due(const struct look *look)
{
	return look->took_ns <= SHORT_NS || clock_now_ns() - look->looked_ns >= (PART - 1) * look->took_ns;
}

uint64_t look_begin(void)
{
	return processor_ns();
}

void look_end(struct look *look, uint64_t begin_ns)
{
	look->took_ns = processor_ns() - begin_ns;
	look->looked_ns = clock_now_ns();
}
