/* SPDX-License-Identifier: Apache-2.0 */
/* fork, exec, the end of the daemon: what happens to a session from outside. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

extern char **environ;

static void check_child(pid_t pid)
{
	int status;

	check_ge_int(pid, 0);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}

static void forked_child(unsigned char *memory, aclrtStream stream)
{
	char host[8] = { 0 };
	int32_t device;
	void *more;

	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtMalloc(&more, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL,
		    "forked");
	check_fails(aclrtFree(memory), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtMemcpy(host, 8, memory, 8, ACL_MEMCPY_DEFAULT), ACL_ERROR_RT_CONTEXT_NULL,
		    "forked");
	check_fails(aclrtMemsetAsync(memory, 8, 0, 8, stream), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtSynchronizeStream(stream), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclrtDestroyStream(stream), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclInit(NULL), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_fails(aclFinalize(), ACL_ERROR_RT_CONTEXT_NULL, "forked");
	check_null(aclrtGetSocName());
	check_str_contains(aclGetRecentErrMsg(), "forked");
}

static _Atomic int stop;

/* No requests in here: what their memory hangs on is a stack that the child does not have. */
static void *busy(void *arg)
{
	check_ok(aclrtSetDevice(0));
	while (!atomic_load(&stop)) {
		check_ok(aclrtMemsetAsync(arg, 1000, 1, 1000, NULL));
		check_ok(aclrtSynchronizeStream(NULL));
	}
	return NULL;
}

static void fork_with_session(void)
{
	unsigned char *memory;
	aclrtStream stream;
	pthread_t thread;

	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(aclrtSynchronizeStream(NULL));
	memory = job_memory(8, 1);
	/* locks may be held at the moment of the fork */
	check_eq_int(pthread_create(&thread, NULL, busy, job_memory(1000, 0)), 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			forked_child(memory, stream);
#ifdef __SANITIZE_ADDRESS__
			/* its leak check would wait for an allocator lock that the other thread held at the fork */
			_exit(0);
#endif
			exit(0); /* with all handlers: they touch nothing of ours */
		}
		check_child(pid);
		check_ok(aclrtMemsetAsync(memory, 8, i, 8, stream));
		check_ok(aclrtSynchronizeStream(stream));
		check_eq_int(memory[7], i);
	}
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
}

TEST(acl_child_of_a_fork_has_no_session)
{
	job_run(fork_with_session);
}

static void fork_before_session(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			check_ok(aclrtSetDevice(0));
			check_ok(aclrtMemset(job_memory(8, 1), 8, 2, 8));
			_exit(0);
		}
		check_child(pid);
	}
	check_ok(aclrtSetDevice(0));
}

TEST(acl_fork_before_the_first_call_is_fine)
{
	job_run(fork_before_session);
}

/* Descriptors beyond the standard ones that a program started by us finds. */
static void spawn(void)
{
	char *const arguments[] = {
		"sh", "-c",
		"for fd in /proc/self/fd/*; do case $(readlink $fd) in *memfd*|*eventfd*|socket:*) exit 1;; esac; done",
		NULL
	};
	pid_t pid;

	check_ok(aclrtSetDevice(0));
	job_memory(1 << 20, 1);
	check_eq_int(posix_spawn(&pid, "/bin/sh", NULL, NULL, arguments, environ), 0);
	check_child(pid);
	check_ok(aclrtMemset(job_memory(8, 1), 8, 2, 8));
}

TEST(acl_leaves_no_descriptors_to_programs_it_starts)
{
	job_run(spawn);
}

static void *synchronize(void *arg)
{
	check_fails(aclrtSynchronizeStream(arg), ACL_ERROR_RT_LOST_HEARTBEAT, "hccld");
	return NULL;
}

/* The daemon is killed while a thread waits for a receive that nobody serves. */
static void daemon_killed(void)
{
	struct private_daemon daemon;
	HcclComm comms[2];
	int32_t devices[2] = { 0, 1 };
	aclrtStream stream;
	pthread_t thread;
	uint32_t count;

	check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
	check_ok(HcclCommInitAll(2, devices, comms));
	check_ok(aclrtSetDevice(0));
	check_ok(aclrtCreateStream(&stream));
	check_ok(HcclRecv(job_memory(64, 0), 64, HCCL_DATA_TYPE_INT8, 1, comms[0], stream));
	check_eq_int(pthread_create(&thread, NULL, synchronize, stream), 0);
	usleep(50000);
	private_daemon_kill(&daemon);
	pthread_join(thread, NULL);
	check_ok(aclrtGetDeviceCount(&count));
	check_fails(aclrtCreateStream(&stream), ACL_ERROR_RT_LOST_HEARTBEAT, "has ended");
	check_fails(aclrtResetDeviceForce(0), ACL_ERROR_RT_LOST_HEARTBEAT, NULL);
	private_daemon_stop(&daemon);
}

TEST(acl_waits_end_when_the_daemon_is_gone_for_good)
{
	pid_t pid = fork();

	if (pid == 0) {
		daemon_killed();
		_exit(0);
	}
	check_child(pid);
}

static void on_signal(int signal)
{
}

/* A daemon that is slow to accept: its backlog is filled by connections of nobody. */
static void *accept_late(void *arg)
{
	const int listener = *(int *)arg;
	struct pollfd pollfd = { .fd = listener, .events = POLLIN };
	sigset_t all;

	sigfillset(&all);
	check_eq_int(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
	usleep(300000);
	while (poll(&pollfd, 1, 500) > 0)
		close(accept(listener, NULL, NULL));
	close(listener);
	return NULL;
}

static void connect_under_signals(void)
{
	const struct itimerval often = { { .tv_usec = 10000 }, { .tv_usec = 10000 } };
	const struct sigaction action = { .sa_handler = on_signal };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;
	pthread_t thread;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", test_path("socket"));
	check_eq_int(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq_int(listen(listener, 1), 0);
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	setenv("HCCLD_SOCKET", address.sun_path, 1);
	check_eq_int(pthread_create(&thread, NULL, accept_late, &listener), 0);
	check_eq_int(sigaction(SIGALRM, &action, NULL), 0);
	check_eq_int(setitimer(ITIMER_REAL, &often, NULL), 0);
	/* it gets through, and finds that this is no daemon */
	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_LOST_HEARTBEAT, "has ended");
	pthread_join(thread, NULL);
}

TEST(acl_connects_under_signals)
{
	pid_t pid = fork();

	if (pid == 0) {
		connect_under_signals();
		_exit(0);
	}
	check_child(pid);
}

#define DESCRIPTORS 24

/* Opens all that the process may have, but @spare. */
static int exhaust(int spare, int fds[DESCRIPTORS])
{
	int count = 0;

	while ((fds[count] = dup(STDERR_FILENO)) >= 0)
		count++;
	while (spare-- > 0)
		close(fds[--count]);
	return count;
}

static void close_all(const int *fds, int count)
{
	while (count > 0)
		close(fds[--count]);
}

/* A process with too many files open is told so, and goes on when it has closed some. */
static void without_descriptors(void)
{
	int fds[DESCRIPTORS], count;
	size_t free_bytes, total;
	HcclRootInfo root;
	HcclComm comm;
	void *memory;

	check_eq_int(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ DESCRIPTORS, DESCRIPTORS }), 0);
	count = exhaust(0, fds);
	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_INTERNAL_ERROR, "Too many open files");
	close_all(fds, count);
	/* enough for a socket, not for what comes through it */
	count = exhaust(2, fds);
	check_fails(aclrtSetDevice(0), ACL_ERROR_RT_OVER_LIMIT, "ulimit -n");
	close_all(fds, count);
	check_ok(aclrtSetDevice(0));
	check_ok(HcclGetRootInfo(&root));
	count = exhaust(0, fds);
	check_fails(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_OVER_LIMIT, "ulimit -n");
	check_fails(HcclCommInitRootInfo(1, &root, 0, &comm), HCCL_E_UNAVAIL, "ulimit -n");
	close_all(fds, count);
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
	check_eq_uint(free_bytes, total);
	check_ok(aclrtMalloc(&memory, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(HcclGetRootInfo(&root));
	check_ok(HcclCommInitRootInfo(1, &root, 0, &comm));
}

TEST(acl_goes_on_after_it_had_no_descriptors)
{
	job_run(without_descriptors);
}
