/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In a libhccld for tests alone: HCCLD_CRASH_POINT=N:COUNT, in the environment or put there later, kills this process (SIGKILL) when a
 * thread comes by point N of the executor (engine/point.h) for the COUNT-th time; N:COUNT:stop stops it (SIGSTOP). The points right before N take longer now and then, so that
 * N is reached which lies behind a race.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/point.h"

#define POINTS_BEFORE 3
#define HELD_UP_US 60

static _Atomic unsigned int passages, held_up;

void engine_crash_point(int point)
{
	const char *text = getenv("HCCLD_CRASH_POINT");
	unsigned int count;
	int chosen, end = 0;

	if (!text || sscanf(text, "%d:%u%n", &chosen, &count, &end) != 2)
		return;
	if (point < chosen && point >= chosen - POINTS_BEFORE && atomic_fetch_add(&held_up, 1) % 4 == 0)
		usleep(HELD_UP_US);
	if (point == chosen && atomic_fetch_add(&passages, 1) + 1 == count)
		kill(getpid(), text[end] ? SIGSTOP : SIGKILL);
}
