/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon without descriptors: a new process is told so in words, the administrator's tool is served, the daemon does not spin, and
 * serves everybody again when there is room. And a self-test that fails.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define LIMIT 300 /* open files of the daemon */
#define FILLERS_MAX 320

static struct private_daemon private_daemon;
static int fillers[FILLERS_MAX];
static int filler_count;

static int hello(Hccld__Control__Hello__Role role, struct raw_reply *ret_reply)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Hello body = HCCLD__CONTROL__HELLO__INIT;
	struct raw_client client = { .fd = raw_connect() };

	body.magic = HCCLD_MAGIC;
	body.version_low = HCCLD_VERSION_LOW;
	body.version_high = HCCLD_VERSION_HIGH;
	body.library = (char *)"test";
	body.process = (char *)"test";
	body.role = role;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &body;
	request.id = 1;
	ret_reply->message = NULL;
	if (packet_send(client.fd, &request.base, NULL, 0, 0) < 0 || raw_receive(&client, ret_reply) < 0) {
		close(client.fd);
		return -1;
	}
	return client.fd;
}

static void start(void)
{
	static const char *const options[] = { "--device-memory", "64M", "--log-level", "error", "--copy-threads", "0", NULL };
	struct rlimit limit;

	check_eq_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	check_eq_int(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 1024, limit.rlim_max }), 0);
	/* the daemon raises its soft limit to the hard one; ours stays above */
	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	check_eq_int(prlimit(private_daemon.pid, RLIMIT_NOFILE, &(struct rlimit){ LIMIT - 32, LIMIT }, NULL), 0);
}

/*
 * Tools that stay, until there is no room: until every one of @times clients in a row is told so. What a client had is given back some
 * time after it has gone, so that there may be room after the first of them.
 */
static void fill(int times)
{
	struct raw_reply reply;
	int fd, refused = 0;

	while (refused < times) {
		if (refused == 0) {
			check_lt_int(filler_count, LIMIT - 32);
			fd = hello(HCCLD__CONTROL__HELLO__ROLE__TOOL, &reply);
			check_ge_int(fd, 0);
			raw_reply_free(&reply);
			fillers[filler_count++] = fd;
		}
		fd = hello(HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply);
		check_ge_int(fd, 0);
		close(fd);
		refused = reply.message->cause == CAUSE_LIMIT ? refused + 1 : 0;
		raw_reply_free(&reply);
	}
}

static double cpu_seconds(void)
{
	struct timespec time;
	clockid_t clock;

	check_eq_int(clock_getcpuclockid(private_daemon.pid, &clock), 0);
	check_eq_int(clock_gettime(clock, &time), 0);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

TEST(out_of_descriptors)
{
	struct raw_reply reply;
	double before;
	int fd, silent[40];

	start();
	fill(12);
	/* who connects and says nothing does not keep the tools out for longer than it may say nothing */
	for (int i = 0; i < 40; i++)
		silent[i] = raw_connect();
	before = cpu_seconds();
	fd = hello(HCCLD__CONTROL__HELLO__ROLE__TOOL, &reply);
	check_ge_int(fd, 0);
	check_eq_uint(reply.message->cause, CAUSE_NONE);
	raw_reply_free(&reply);
	close(fd);
	sleep(1);
	check(cpu_seconds() - before < 1.0);
	for (int i = 0; i < 40; i++)
		close(silent[i]);
	for (int i = 0; i < filler_count; i++)
		close(fillers[i]);
	filler_count = 0;
	for (int i = 0; i < 200; i++) {
		uint32_t cause;

		fd = hello(HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply);
		cause = fd >= 0 ? reply.message->cause : CAUSE_LIMIT;
		if (fd >= 0) {
			raw_reply_free(&reply);
			close(fd);
		}
		if (cause == CAUSE_NONE)
			break;
		check_lt_int(i, 199);
		usleep(50000);
	}
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Runs hccld as @command does and gives what it writes. Without --foreground timeout sends SIGCONT, too, which holds up LeakSanitizer for ever. */
static int run(const char *command, char *output, size_t size)
{
	FILE *file = popen(command, "re");
	size_t n;

	check_ptr(file);
	n = fread(output, 1, size - 1, file);
	output[n] = 0;
	return pclose(file);
}

/* One of these limits ends in the self-test: which depends on what the test itself was started with. */
TEST(self_test_without_descriptors)
{
	char command[512], output[4096];

	for (int limit = 7; limit < 20; limit++) {
		snprintf(command, sizeof(command), "(ulimit -n %d; exec timeout --foreground 3 %s --no-keeper --socket /tmp/hccld-selftest-%d) 2>&1",
			 limit, getenv("HCCLD_BINARY"), getpid());
		if (run(command, output, sizeof(output)) && strstr(output, "the self-test of device 0 failed: no descriptor is left"))
			return;
	}
	check(false);
}

/* A slice of device 3's goes wrong: three slices for each. */
TEST(self_test_with_wrong_bytes)
{
	char command[512], output[4096];
	int status;

	if (!getenv("HCCLD_BAD_COPY"))
		return; /* under a sanitizer, which has copies of its own */
	snprintf(command, sizeof(command),
		 "HCCLD_TEST_BAD_COPY=10 LD_PRELOAD=%s timeout --foreground 20 %s --no-keeper --socket /tmp/hccld-selftest-%d --copy-threads 0 2>&1",
		 getenv("HCCLD_BAD_COPY"), getenv("HCCLD_BINARY"), getpid());
	status = run(command, output, sizeof(output));
	check(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	check_ptr(strstr(output, "the self-test of device 3 failed: a copy has left wrong bytes"));
}

/* What it opens instead of the standard descriptors is not written to by its log. */
TEST(closed_standard_descriptors)
{
	char path[64], ready[16], byte;
	struct raw_client client;
	int status, fds[2];
	pid_t pid;

	snprintf(path, sizeof(path), "/tmp/hccld-closed-%d", getpid());
	setenv("HCCLD_SOCKET", path, 1);
	check_eq_int(pipe(fds), 0);
	snprintf(ready, sizeof(ready), "%d", fds[1]);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		execl(getenv("HCCLD_BINARY"), "hccld", "--no-keeper", "--log-level", "debug", "--ready-fd", ready, NULL);
		_exit(127);
	}
	close(fds[1]);
	check_eq_int(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_free(&client, raw_allocate(&client, raw_open_context(&client, 0), 100000, NULL));
	raw_client_stop(&client);
	check_eq_int(kill(pid, SIGTERM), 0);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	check(access(path, F_OK) < 0);
}
