/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes the engine thread from its sleep, from any thread of the daemon. */
#pragma once

#include <stdint.h>
#include <unistd.h>

static inline void wake_engine(int event_fd)
{
	uint64_t one = 1;
	ssize_t n = write(event_fd, &one, sizeof(one));

	(void)n;	/* EAGAIN: the counter is full, so it wakes anyway */
}
