/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed under its keeper while threads make requests and wait for streams: they notice nothing but a pause. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

static _Atomic int stop;
static _Atomic unsigned long rounds;

static void *work(void *arg)
{
	const int value = (int)(intptr_t)arg;
	aclrtStream stream;

	check_ok(aclrtSetDevice(value % 2));
	while (!atomic_load(&stop)) {
		unsigned char *memory = NULL;

		check_ok(aclrtCreateStream(&stream));
		check_ok(aclrtMalloc((void **)&memory, 300000, ACL_MEM_MALLOC_HUGE_FIRST));
		check_ok(aclrtMemsetAsync(memory, 300000, value, 300000, stream));
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_int(memory[299999], value);
		check_ok(aclrtFree(memory));
		check_ok(aclrtDestroyStream(stream));
		atomic_fetch_add(&rounds, 1);
	}
	return NULL;
}

static size_t free_memory(void)
{
	size_t free, total;

	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	return free;
}

static void program(void)
{
	pthread_t threads[4];
	unsigned long before;
	size_t had;

	check_ok(aclrtSetDevice(0));
	had = free_memory();
	for (intptr_t i = 0; i < 4; i++)
		check_eq_int(pthread_create(&threads[i], NULL, work, (void *)(i + 1)), 0);
	sleep(2);
	/* the daemon was killed meanwhile; they are all at work */
	before = atomic_load(&rounds);
	for (int i = 0; atomic_load(&rounds) < before + 100; i++) {
		check_lt_int(i, 10000);
		usleep(1000);
	}
	atomic_store(&stop, 1);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_eq_uint(free_memory(), had);
}

/* The keeper's only child. */
static pid_t worker_of(const struct private_daemon *daemon)
{
	char path[64];
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)daemon->pid,
		 (int)daemon->pid);
	file = fopen(path, "r");
	check_ptr(file);
	check_eq_int(fscanf(file, "%d", &pid), 1);
	fclose(file);
	check_gt_int(pid, 1);
	return pid;
}

TEST(acl_requests_survive_a_restart_of_the_daemon)
{
	const char *options[] = { "--keeper", NULL };
	struct private_daemon daemon;
	int status;
	pid_t pid;

	check_eq_int(private_daemon_start(&daemon, options, NULL), 0);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		program();
		_exit(0);
	}
	usleep(700000);
	kill(worker_of(&daemon), SIGKILL);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check_eq_int(private_daemon_stop(&daemon), 0);
}
