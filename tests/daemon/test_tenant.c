/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants: who shares memory with whom, by what evidence, and that nothing stays of those who left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;

static void start(void)
{
	static const char *const options[] = { "--log-level", "error", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Descriptors of the daemon whose target contains @part. */
static int count_fds(const char *part)
{
	char path[300], target[256];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", private_daemon.pid);
	dir = opendir(path);
	check_ptr(dir);
	while ((entry = readdir(dir))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", private_daemon.pid, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = 0;
		count += n > 0 && strstr(target, part) != NULL;
	}
	closedir(dir);
	return count;
}

static void wait_for_fds(const char *part, int count)
{
	for (unsigned tries = 0; tries < 250 * test_timeout_scale(); tries++) {
		if (count_fds(part) == count)
			return;
		usleep(20000);
	}
	check_eq_int(count_fds(part), count);
}

/* HELLO with descriptors; the reply, if one came. */
static int hello_with(const int *fds, size_t count, Hccld__Control__Hello__Role role,
		      struct raw_reply *ret_reply, int *ret_fd)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client client = { .fd = raw_connect() };

	hello.magic = HCCLD_MAGIC;
	hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
	hello.process = "tenant";
	hello.role = role;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	request.id = 1;
	*ret_fd = client.fd;
	check_eq_int(packet_send(client.fd, &request.base, fds, count, 0), 0);
	return raw_receive(&client, ret_reply);
}

static int open_namespace(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	check_msg(fd >= 0, "%s: %s", path, strerror(errno));
	return fd;
}

TEST(only_a_user_namespace_may_come_with_hello)
{
	int good, fd, pipes[2], bad[4], all;
	struct raw_reply reply;

	start();
	good = open_namespace("user");
	check_eq_int(pipe2(pipes, O_CLOEXEC), 0);
	bad[0] = pipes[0];
	bad[1] = open_namespace("mnt");
	bad[2] = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	bad[3] = eventfd(0, EFD_CLOEXEC);
	check_eq_int(hello_with(&good, 1, HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply, &fd), 0);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	close(fd);
	wait_for_fds("hccld-session", 0);
	all = count_fds("");
	for (int i = 0; i < 4; i++) {
		check_eq_int(hello_with(&bad[i], 1, HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply, &fd),
			     -ECONNRESET);
		close(fd);
	}
	/* two, and one of a tool */
	check_eq_int(hello_with((int[]){ good, good }, 2, HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply,
				&fd),
		     -ECONNRESET);
	close(fd);
	check_eq_int(hello_with(&good, 1, HCCLD__CONTROL__HELLO__ROLE__TOOL, &reply, &fd),
		     -ECONNRESET);
	close(fd);
	/* what was about to close when they were counted may have closed since */
	for (unsigned tries = 0; count_fds("") > all && tries < 250 * test_timeout_scale(); tries++)
		usleep(20000);
	check_le_int(count_fds(""), all);
	for (int i = 0; i < 4; i++)
		close(bad[i]);
	close(pipes[1]);
	close(good);
	stop();
}

/* After HELLO no descriptor is taken, whether the kernel or we see to it. */
TEST(later_requests_have_no_descriptors)
{
	Hccld__Control__GetRootInfo body = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	int fd;
	struct raw_client client, other;
	struct raw_reply reply;

	start();
	fd = open_namespace("user");
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &body;
	request.id = 99;
	if (packet_send(client.fd, &request.base, &fd, 1, 0) == 0)
		check_eq_int(raw_receive(&client, &reply), -ECONNRESET);
	raw_open_context(&other, 0);
	check_eq_int(count_fds("user:["), 0);
	close(fd);
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

/* A tenant's yard goes with its last process, and comes again. */
TEST(tenants_go_with_their_last_session)
{
	struct raw_client clients[2];

	start();
	for (int turn = 0; turn < 20; turn++) {
		raw_client_start(&clients[0], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_client_start(&clients[1], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_create_stream(&clients[1], raw_open_context(&clients[1], 0));
		check_eq_int(count_fds("hccld-yard"), 1);
		raw_client_stop(&clients[turn % 2]);
		raw_open_context(&clients[(turn + 1) % 2], 1);
		raw_client_stop(&clients[(turn + 1) % 2]);
		if (turn % 4 == 3)
			wait_for_fds("hccld-yard", 0);
	}
	wait_for_fds("hccld-yard", 0);
	stop();
}

/* The same user in another namespace: neither a common yard nor a common communicator. */
TEST(user_namespaces_are_apart)
{
	struct raw_client client, other;
	struct raw_reply reply;
	struct raw_root root;
	pid_t pid;
	int status;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&client, &root);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) < 0)
			_exit(77);
		raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_join_send(&other, &root, 0, 2, raw_open_context(&other, 0), 1000);
		check_eq_int(raw_receive(&other, &reply), 0);
		check_eq_uint(reply.message->cause, CAUSE_PERMISSION);
		check_str_contains(reply.message->text, "another user namespace");
		raw_reply_free(&reply);
		raw_client_stop(&other);
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		raw_client_stop(&client);
		stop();
		test_skip("no user namespace can be made here");
	}
	check_eq_int(status, 0);
	wait_for_fds("hccld-yard", 1);
	/* and one that is there is joined */
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	wait_for_fds("hccld-yard", 1);
	raw_client_stop(&other);
	raw_client_stop(&client);
	stop();
}

#define NAMESPACES 30 /* the kernel lets them be 32 deep */
#define PROCESSES (HCCLD_TENANTS_PER_USER / NAMESPACES + 1)

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(77);
	close(fd);
}

/* In which another one can be made: the user has a number in it. */
static void enter_namespace(void)
{
	char uids[32], gids[32];

	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		_exit(77);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", uids);
	write_file("/proc/self/gid_map", gids);
}

/* Sessions in one namespace within the other, until the daemon has had enough of that. Writes a byte for each, and '!' in the end. */
static void take_tenants(int out)
{
	for (int i = 0; i < NAMESPACES; i++) {
		struct raw_reply reply;
		uint32_t cause;
		int fd;

		enter_namespace();
		check_eq_int(hello_with(NULL, 0, HCCLD__CONTROL__HELLO__ROLE__CLIENT, &reply, &fd), 0);
		cause = reply.message->cause;
		if (cause) {
			check_eq_uint(cause, CAUSE_LIMIT);
			check_str_contains(reply.message->text, "256 user namespaces");
		}
		raw_reply_free(&reply);
		check_eq_int((int)write(out, cause ? "!" : "1", 1), 1);
		if (cause)
			break;
	}
	pause();
	_exit(1);
}

/* Nobody else could come in if a user had them all. */
TEST(one_user_cannot_take_all_tenants)
{
	struct raw_client client, other;
	pid_t pids[PROCESSES];
	uint32_t count = 1;
	int pipes[2], status;
	char byte = 0;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		check_eq_int(pipe2(pipes, O_CLOEXEC), 0);
		pids[i] = fork();
		if (pids[i] == 0)
			take_tenants(pipes[1]);
		close(pipes[1]);
		for (int j = 0; j < NAMESPACES && byte != '!'; j++) {
			if (read(pipes[0], &byte, 1) != 1) {
				check_eq_int(waitpid(pids[i], &status, 0), pids[i]);
				check_eq_int(status, 77 << 8);
				for (uint32_t k = 0; k < i; k++)
					kill(pids[k], SIGKILL);
				raw_client_stop(&client);
				stop();
				test_skip("no user namespace can be made here");
			}
			count += byte == '1';
		}
		close(pipes[0]);
	}
	check_eq_int(byte, '!');
	check_eq_uint(count, HCCLD_TENANTS_PER_USER);
	/* those that are there take more processes in */
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&other);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		check_eq_int(waitpid(pids[i], &status, 0), pids[i]);
	}
	wait_for_fds("hccld-yard", 1);
	raw_client_stop(&client);
	stop();
}

#define DEVICES 64u
#define FULL_YARDS (HCCLD_CONTEXTS_PER_USER / HCCLD_YARD_CONTEXTS)

static uint32_t open_context(struct raw_client *client, uint32_t device)
{
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t cause;

	open.device = device;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

/* All contexts of a tenant of its own. Writes '1' when it has them, '!' if it may not have the first. */
static void take_contexts(int out)
{
	struct raw_client client;

	enter_namespace();
	for (uint32_t i = 0; i < HCCLD_YARD_CONTEXTS; i++) {
		uint32_t cause;

		/* the session before stays */
		if (i % DEVICES == 0)
			raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		cause = open_context(&client, i % DEVICES);
		if (cause && i == 0) {
			check_eq_uint(cause, CAUSE_LIMIT);
			check_eq_int((int)write(out, "!", 1), 1);
			pause();
		}
		check_eq_uint(cause, 0);
	}
	check_eq_int((int)write(out, "1", 1), 1);
	pause();
	_exit(1);
}

TEST(one_user_cannot_take_all_contexts)
{
	static const char *const options[] = { "--devices", "64", "--device-memory", "64M", "--log-level", "error", NULL };
	pid_t pids[FULL_YARDS + 1];
	char answers[FULL_YARDS + 1];
	int pipes[2], status;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	for (uint32_t i = 0; i <= FULL_YARDS; i++) {
		check_eq_int(pipe2(pipes, O_CLOEXEC), 0);
		pids[i] = fork();
		if (pids[i] == 0)
			take_contexts(pipes[1]);
		close(pipes[1]);
		answers[i] = 0;
		(void)!read(pipes[0], &answers[i], 1);
		close(pipes[0]);
	}
	for (uint32_t i = 0; i <= FULL_YARDS; i++) {
		kill(pids[i], SIGKILL);
		check_eq_int(waitpid(pids[i], &status, 0), pids[i]);
		if (status == 77 << 8) {
			stop();
			test_skip("no user namespace can be made here");
		}
		check_eq_int(answers[i], i < FULL_YARDS ? '1' : '!');
	}
	wait_for_fds("hccld-yard", 0);
	stop();
}
