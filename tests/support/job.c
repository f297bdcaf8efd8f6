/* SPDX-License-Identifier: Apache-2.0 */
/* Programs under test in a test case. */
#include "tests/support/job.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/private_daemon.h"

#define PROCESSES_MAX 64
#define RANKS_MAX 256

/* Shared by all processes of a job. */
struct job {
	HcclRootInfo root;
	uint32_t count;
	_Atomic uint32_t met;
	_Atomic uint32_t killed[PROCESSES_MAX];	/* is going to be */
};

static struct job *job;
static uint32_t own_index, meetings;
static const char *const *daemon_options;

void job_check(const char *file, int line, const char *call, int got, int result, const char *part)
{
	const char *text = got ? aclGetRecentErrMsg() : "";

	if (got != result)
		test_fail(file, line, "%s: %d, expected %d: %s", call, got, result, text ? text : "(no text)");
	if (part && (!text || !strstr(text, part)))
		test_fail(file, line, "%s: %d, expected a text with \"%s\": %s", call, got, part, text ? text : "(no text)");
}

void job_set_options(const char *const *options)
{
	daemon_options = options;
}

static void start(struct private_daemon *daemon)
{
	if (private_daemon_start(daemon, daemon_options, NULL) < 0)
		test_fail(__FILE__, __LINE__, "no daemon");
}

static void stop(struct private_daemon *daemon)
{
	int status = private_daemon_stop(daemon);

	check_msg(status == 0, "the daemon ended with wait status 0x%x", (unsigned int)status);
}

void job_run(void (*body)(void))
{
	struct private_daemon daemon;
	int status;
	pid_t pid;

	start(&daemon);
	fflush(NULL);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	stop(&daemon);
	check_msg(status == 0, "the program ended with wait status 0x%x", (unsigned int)status);
}

void job_run_with(const char *name, const char *value, void (*body)(void))
{
	setenv(name, value, 1);
	job_run(body);
	unsetenv(name);
}

void job_run_processes(uint32_t count, void (*body)(uint32_t index, HcclRootInfo *shared))
{
	struct private_daemon daemon;
	pid_t pids[PROCESSES_MAX];
	int bad = 0;

	check_le_uint(count, (unsigned int)PROCESSES_MAX);
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(job != MAP_FAILED);
	job->count = count;
	start(&daemon);
	fflush(NULL);
	for (uint32_t i = 0; i < count; i++) {
		pids[i] = fork();
		check_ge_int(pids[i], 0);
		if (pids[i] == 0) {
			own_index = i;
			body(i, &job->root);
			_exit(0);
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		int status;

		check_eq_int(waitpid(pids[i], &status, 0), pids[i]);
		if (status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&job->killed[i]))) {
			fprintf(stderr, "process %u ended with wait status 0x%x\n", i, (unsigned int)status);
			bad++;
		}
	}
	stop(&daemon);
	check_eq_int(bad, 0);
	munmap(job, sizeof(*job));
}

void job_expect_kill(void)
{
	atomic_store(&job->killed[own_index], 1);
}

void job_meet(void)
{
	uint32_t wanted = ++meetings * job->count;

	atomic_fetch_add(&job->met, 1);
	while (atomic_load(&job->met) < wanted)
		usleep(200);
}

struct job_rank job_join(const HcclRootInfo *root, uint32_t rank, uint32_t size, int32_t device)
{
	struct job_rank result = { .rank = rank, .size = size, .device = device };

	check_ok(aclrtSetDevice(device));
	check_ok(HcclCommInitRootInfo(size, root, rank, &result.comm));
	check_ok(aclrtCreateStream(&result.stream));
	return result;
}

void job_leave(struct job_rank *rank)
{
	check_ok(aclrtDestroyStream(rank->stream));
	check_ok(HcclCommDestroy(rank->comm));
}

HcclComm job_alone(void)
{
	HcclRootInfo root;
	HcclComm comm;

	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfo(1, &root, 0, &comm));
	return comm;
}

struct job_thread {
	pthread_t id;
	struct job_rank rank;
	const HcclRootInfo *root;
	void (*body)(struct job_rank *rank);
};

static void *thread_main(void *data)
{
	struct job_thread *thread = data;
	void *user = thread->rank.data;

	thread->rank = job_join(thread->root, thread->rank.rank, thread->rank.size, thread->rank.device);
	thread->rank.data = user;
	thread->body(&thread->rank);
	job_leave(&thread->rank);
	return NULL;
}

void job_ranks(uint32_t size, uint32_t device_count, void (*body)(struct job_rank *rank), void *data)
{
	static struct job_thread threads[RANKS_MAX];
	HcclRootInfo root;

	check_le_uint(size, (unsigned int)RANKS_MAX);
	check_ok(HcclGetRootInfo(&root));
	for (uint32_t i = 0; i < size; i++) {
		threads[i] = (struct job_thread){
			.root = &root, .body = body,
			.rank = { .rank = i, .size = size, .device = (int32_t)(i % device_count), .data = data },
		};
		check_eq_int(pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
	}
	for (uint32_t i = 0; i < size; i++)
		pthread_join(threads[i].id, NULL);
}

size_t job_free_memory(void)
{
	size_t free, total;

	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
	check_le_uint(free, total);
	return free;
}

void *job_memory(uint64_t size, int value)
{
	void *memory = NULL;

	check_ok(aclrtMalloc(&memory, size, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtMemset(memory, size, value, size));
	return memory;
}
