/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/worker.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/support/test.h"

#define TRIES_MAX 20000 /* of a millisecond */

/* 0: there is none. */
static pid_t find(pid_t keeper)
{
	char path[64];
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)keeper, (int)keeper);
	file = fopen(path, "r");
	check_ptr(file);
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return pid;
}

static pid_t await_other(pid_t keeper, pid_t old)
{
	pid_t pid;

	for (int i = 0; (pid = find(keeper)) == old || pid == 0; i++) {
		check_lt_int(i, TRIES_MAX);
		usleep(1000);
	}
	check_gt_int(pid, 1);
	return pid;
}

pid_t worker_of(pid_t keeper)
{
	return await_other(keeper, 0);
}

void worker_kill(pid_t keeper)
{
	check_eq_int(kill(worker_of(keeper), SIGKILL), 0);
}

void worker_replace(pid_t keeper)
{
	pid_t old = worker_of(keeper);

	check_eq_int(kill(old, SIGKILL), 0);
	await_other(keeper, old);
}
