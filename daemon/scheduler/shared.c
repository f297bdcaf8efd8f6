/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/shared.h"

#include <poll.h>
#include <sched.h>

#include "engine/direct.h"
#include "engine/engine.h"

#define SHARED_MIN DIRECT_COPY_MAX
#ifndef SHARED_CHUNK	/* tests take less */
#define SHARED_CHUNK HCCLD_SLICE
#endif
#define NARROW_CORES 4	/* with less, those who help need the cores more than our threads */

void shared_start(struct engine *engine)
{
	cpu_set_t set;
	bool is_narrow = sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) < NARROW_CORES;

	engine_share_copies(engine, SHARED_MIN, SHARED_CHUNK, is_narrow);
}

/* As the kernel says: a system call, but it is asked of a process only that has been told to end, or is about to. */
bool shared_has_ended(void *data, const struct view_session *session)
{
	struct pollfd process = { .fd = session->pidfd, .events = POLLIN };

	(void)data;
	return !session->pidfd || poll(&process, 1, 0) != 0;
}
