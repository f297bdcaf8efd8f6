/* SPDX-License-Identifier: Apache-2.0 */
/* SIGTERM to the daemon with work in flight: a grace period, then errors that name the stop; memory stays; nothing new is begun. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/job.h"
#include "tests/support/private_daemon.h"

static struct private_daemon daemon_of_test;
static HcclComm comms[2];
static aclrtStream streams[2];
static char *memory;

/* The session ends with its process. */
static void alone(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		body();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Rank 0 waits for rank 1, which sends nothing. */
static void start(const char *grace)
{
	const char *const options[] = { "--stop-grace", grace, NULL };
	int32_t devices[] = { 0, 1 };

	check_eq_int(private_daemon_start(&daemon_of_test, options, NULL), 0);
	check_ok(HcclCommInitAll(2, devices, comms));
	for (int i = 0; i < 2; i++) {
		check_ok(aclrtSetDevice(i));
		check_ok(aclrtCreateStream(&streams[i]));
	}
	check_ok(aclrtSetDevice(0));
	memory = job_memory(100, 7);
	check_ok(HcclRecv(memory, 100, HCCL_DATA_TYPE_INT8, 1, comms[0], streams[0]));
}

static void await_end(double seconds)
{
	double give_up = now() + seconds;
	int status = -1;

	while (waitpid(daemon_of_test.pid, &status, WNOHANG) == 0) {
		check(now() < give_up);
		usleep(5000);
	}
	daemon_of_test.pid = 0;
	check_eq_int(status, 0);
	private_daemon_stop(&daemon_of_test);
}

/* Until the daemon has noticed the signal. */
static void await_refusal(void)
{
	for (int i = 0; i < 400 * (int)test_timeout_scale(); i++) {
		if (HcclSend(memory, 10, HCCL_DATA_TYPE_INT8, 1, comms[0], streams[0]) != HCCL_SUCCESS) {
			check_ptr(strstr(aclGetRecentErrMsg(), "takes no new work"));
			return;
		}
		usleep(5000);
	}
	check(false);
}

static void stop_in_flight(void)
{
	HcclRootInfo root;
	aclrtStream stream;
	double begin;

	start("800ms");
	begin = now();
	kill(daemon_of_test.pid, SIGTERM);
	await_refusal();
	check_fails(HcclGetRootInfo(&root), HCCL_E_UNAVAIL, "is being stopped");
	check_fails(HcclGetRootInfo(&root), HCCL_E_UNAVAIL, "Solution: Start the program again once");
	check(aclrtCreateStream(&stream) != ACL_SUCCESS);
	check_fails(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_LOST_HEARTBEAT, "stopped by SIGTERM");
	check(now() - begin >= 0.7);
	await_end(0.8 * 20);
	/* what was mapped stays, and is harmless */
	memory[0]++;
	check_eq_int(memory[99], memory[98]);
	check_fails(HcclGetRootInfo(&root), HCCL_E_UNAVAIL, "stopped by SIGTERM");
	check_fails(HcclGetRootInfo(&root), HCCL_E_UNAVAIL, "Solution: Start hccld again");
}

TEST(stop_with_work_in_flight)
{
	alone(stop_in_flight);
}

static void stop_twice(void)
{
	double begin;

	start("10min");
	kill(daemon_of_test.pid, SIGTERM);
	await_refusal();
	begin = now();
	kill(daemon_of_test.pid, SIGTERM);
	await_end(20 * test_timeout_scale());
	check_fails(aclrtSynchronizeStream(streams[0]), ACL_ERROR_RT_LOST_HEARTBEAT, "stopped by SIGTERM");
	check(now() - begin < 20 * test_timeout_scale());
}

TEST(second_signal_stops_at_once)
{
	alone(stop_twice);
}

/* A copy that has been queued before the signal is made. */
static void stop_and_finish(void)
{
	const uint64_t bytes = 64 << 20;
	char *from, *to;

	start("30s");
	check_ok(HcclSend(job_memory(100, 8), 100, HCCL_DATA_TYPE_INT8, 0, comms[1], streams[1]));
	check_ok(aclrtSynchronizeStream(streams[0]));
	from = job_memory(bytes, 1);
	to = job_memory(bytes, 2);
	check_ok(aclrtMemcpyAsync(to, bytes, from, bytes, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[0]));
	kill(daemon_of_test.pid, SIGTERM);
	check_ok(aclrtSynchronizeStream(streams[0]));
	check_eq_int(memcmp(from, to, bytes), 0);
	await_end(20 * test_timeout_scale());
}

TEST(stop_lets_work_finish)
{
	alone(stop_and_finish);
}

/* However often it is told: one that ends well says so. */
TEST_TIMEOUT(many_signals_end_the_daemon_as_one_does, 60)
{
	for (int i = 0; i < 20; i++) {
		struct private_daemon daemon;
		int status = -1;

		check_eq_int(private_daemon_start(&daemon, NULL, NULL), 0);
		while (waitpid(daemon.pid, &status, WNOHANG) == 0) {
			kill(daemon.pid, SIGTERM);
			usleep(300);
		}
		check_eq_int(status, 0);
		daemon.pid = 0;
		check_eq_int(private_daemon_stop(&daemon), -1); /* nothing is left but the directory */
	}
}
