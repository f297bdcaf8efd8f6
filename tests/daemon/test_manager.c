/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon under a service manager that keeps its descriptors as systemd does: by FDSTORE=1 and FDSTOREREMOVE=1, in a list that may
 * have a name twice, passed to the next process from descriptor 3 on. The manager is this test.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/region.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define STORED_MAX 256
#define BASE 400 /* descriptors of the manager itself stay out of the way of those it passes */

static struct {
	int notify_fd;
	char directory[64], socket[96], notify[96];
	struct {
		char name[32];
		int fd;
	} stored[STORED_MAX];
	int stored_count;
	bool is_ready;
	uint64_t reloading_us; /* MONOTONIC_USEC of the last RELOADING=1 */
	int watchdogs, stored_without_poll;
	pid_t pid;
} manager;

/* As systemd: of one inode one descriptor, else a name may come twice. */
static void manager_store(const char *name, int fd)
{
	struct stat have, new;

	check_eq_int(fstat(fd, &new), 0);
	for (int i = 0; i < manager.stored_count; i++) {
		check_eq_int(fstat(manager.stored[i].fd, &have), 0);
		/* anonymous inodes (eventfd, pidfd before 6.9) are all one */
		if (S_ISREG(new.st_mode) && have.st_dev == new.st_dev && have.st_ino == new.st_ino &&
		    strcmp(manager.stored[i].name, name) == 0) {
			close(fd);
			return;
		}
	}
	check_lt_int(manager.stored_count, STORED_MAX);
	snprintf(manager.stored[manager.stored_count].name, 32, "%s", name);
	manager.stored[manager.stored_count].fd = fcntl(fd, F_DUPFD_CLOEXEC, BASE);
	check_ge_int(manager.stored[manager.stored_count++].fd, BASE);
	close(fd);
}

static void manager_remove(const char *name)
{
	int kept = 0;

	for (int i = 0; i < manager.stored_count; i++) {
		if (strcmp(manager.stored[i].name, name) == 0)
			close(manager.stored[i].fd);
		else
			manager.stored[kept++] = manager.stored[i];
	}
	manager.stored_count = kept;
}

static void manager_obey(char *message, int fd)
{
	const char *name = "stored";
	bool is_store = false, is_remove = false, is_polled = true;
	char *line;

	while ((line = strsep(&message, "\n"))) {
		if (strcmp(line, "READY=1") == 0)
			manager.is_ready = true;
		else if (strcmp(line, "RELOADING=1") == 0)
			manager.is_ready = false;
		else if (strncmp(line, "MONOTONIC_USEC=", 15) == 0)
			manager.reloading_us = strtoull(line + 15, NULL, 10);
		else if (strcmp(line, "WATCHDOG=1") == 0)
			manager.watchdogs++;
		else if (strcmp(line, "FDSTORE=1") == 0)
			is_store = true;
		else if (strcmp(line, "FDSTOREREMOVE=1") == 0)
			is_remove = true;
		else if (strcmp(line, "FDPOLL=0") == 0)
			is_polled = false;
		else if (strncmp(line, "FDNAME=", 7) == 0)
			name = line + 7;
	}
	if (is_remove)
		manager_remove(name);
	if (is_store) {
		check_ge_int(fd, 0);
		/* systemd would drop a session's socket at its hang-up, and an eventfd never */
		check(!is_polled);
		manager_store(name, fd);
	} else if (fd >= 0) {
		close(fd);
	}
}

/* False: nothing has come in time. */
static bool manager_receive(int timeout_ms)
{
	struct pollfd ready = { .fd = manager.notify_fd, .events = POLLIN };
	char message[4096];
	union {
		char space[CMSG_SPACE(sizeof(int)) + 64];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(message) - 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg;
	int fd = -1;
	ssize_t n;

	if (poll(&ready, 1, timeout_ms) <= 0)
		return false;
	n = recvmsg(manager.notify_fd, &msg, MSG_CMSG_CLOEXEC);
	check_gt_int(n, 0);
	message[n] = 0;
	for (cmsg = CMSG_FIRSTHDR(&msg); cmsg; cmsg = CMSG_NXTHDR(&msg, cmsg))
		if (cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS)
			memcpy(&fd, CMSG_DATA(cmsg), sizeof(int));
	manager_obey(message, fd);
	return true;
}

static void manager_exec(const char *const *more)
{
	const char *arguments[16] = { getenv("HCCLD_BINARY"), "--socket", manager.socket, "--device-memory", "64M" };
	char names[8192] = "", number[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < manager.stored_count; i++) {
		check_eq_int(dup2(manager.stored[i].fd, 3 + i), 3 + i);
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i ? ":" : "", manager.stored[i].name);
	}
	for (int i = 0; more[i]; i++)
		arguments[5 + i] = more[i];
	snprintf(number, sizeof(number), "%d", manager.stored_count);
	setenv("LISTEN_FDS", number, 1);
	setenv("LISTEN_FDNAMES", names, 1);
	snprintf(number, sizeof(number), "%d", getpid());
	setenv("LISTEN_PID", number, 1);
	setenv("NOTIFY_SOCKET", manager.notify, 1);
	setenv("WATCHDOG_USEC", "600000", 1);
	execv(arguments[0], (char *const *)arguments);
	_exit(127);
}

static void manager_start(void)
{
	static const char *const none[] = { NULL };

	manager.is_ready = false;
	manager.pid = fork();
	if (manager.pid == 0)
		manager_exec(none);
	for (unsigned i = 0; !manager.is_ready && i < 1000 * test_timeout_scale(); i++)
		manager_receive(10);
	check(manager.is_ready);
}

/* kill -9, and what it had said before counts. */
static void manager_kill(void)
{
	check_eq_int(kill(manager.pid, SIGKILL), 0);
	check_eq_int(waitpid(manager.pid, NULL, 0), manager.pid);
	while (manager_receive(0))
		;
}

static void manager_open(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(manager.directory, sizeof(manager.directory), "/tmp/hccld-test-XXXXXX");
	check_ptr(mkdtemp(manager.directory));
	snprintf(manager.socket, sizeof(manager.socket), "%s/hccld.sock", manager.directory);
	snprintf(manager.notify, sizeof(manager.notify), "%s/notify", manager.directory);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", manager.notify);
	manager.notify_fd = fcntl(fd, F_DUPFD_CLOEXEC, BASE);
	close(fd);
	check_eq_int(bind(manager.notify_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setenv("HCCLD_SOCKET", manager.socket, 1);
}

static void manager_close(void)
{
	int status;

	check_eq_int(kill(manager.pid, SIGTERM), 0);
	check_eq_int(waitpid(manager.pid, &status, 0), manager.pid);
	check_eq_int(status, 0);
	while (manager.stored_count)
		close(manager.stored[--manager.stored_count].fd);
	close(manager.notify_fd);
	unlink(manager.notify);
	unlink(manager.socket);
	check_eq_int(rmdir(manager.directory), 0);
}

static int manager_has(const char *name)
{
	int count = 0;

	for (int i = 0; i < manager.stored_count; i++)
		count += strcmp(manager.stored[i].name, name) == 0;
	return count;
}

TEST_TIMEOUT(sessions_survive_under_a_manager, 60)
{
	struct raw_client client;
	uint64_t context, segment;
	unsigned char *memory;

	manager_open();
	manager_start();
	check_eq_int(manager_has("registry") + manager_has("beacon") + manager_has("event") + manager_has("listen"), 4);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	segment = raw_allocate(&client, context, 8192, (void **)&memory);
	memory[5000] = 7;
	for (int i = 0; i < 2; i++) {
		manager_kill();
		manager_start();
		check_eq_uint(client.beacon->incarnation, (uint32_t)i + 2);
		check_eq_uint(raw_session_count(), 1);
		check_eq_uint(raw_open_context(&client, 0), context);
		check_eq_uint(memory[5000], 7);
	}
	raw_free(&client, segment);
	raw_client_stop(&client);
	raw_wait_for_sessions(0);
	while (manager_receive(50))
		;
	/* only what is the daemon's own */
	check_eq_int(manager.stored_count, 5);
	check_gt_int(manager.watchdogs, 0);
	manager_close();
}

/* Its descriptors have the names of the old ones. */
TEST_TIMEOUT(a_new_registry_after_a_dropped_one_is_kept, 60)
{
	struct raw_client client;

	manager_open();
	manager_start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (int i = 0; i < 3; i++) {
		manager_kill();
		manager_start();
	}
	check_eq_uint(raw_session_count(), 0);
	raw_client_stop(&client);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_open_context(&client, 0);
	manager_kill();
	for (int i = 0; i < manager.stored_count; i++)
		check_eq_int(manager_has(manager.stored[i].name), 1);
	manager_start();
	check_eq_uint(raw_session_count(), 1);
	check_eq_uint(client.beacon->incarnation, 2);
	raw_client_stop(&client);
	manager_close();
}

/* A registry without the rest. */
TEST_TIMEOUT(a_store_that_lacks_something, 60)
{
	static const char *const names[] = { "beacon", "event", "registry", "listen" };
	struct raw_client client;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		manager_open();
		manager_start();
		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		manager_kill();
		manager_remove(names[i]);
		if (strcmp(names[i], "listen") == 0)
			unlink(manager.socket);
		manager_start();
		check_eq_uint(raw_session_count(), strcmp(names[i], "listen") == 0);
		raw_client_stop(&client);
		raw_wait_for_sessions(0);
		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		manager_kill();
		manager_start();
		check_eq_uint(raw_session_count(), 1);
		raw_client_stop(&client);
		manager_close();
	}
}

/* How many of them have ended since the last time; their pids are 0 then. */
static int reap(pid_t *pids, int count)
{
	int ended = 0;

	for (int i = 0; i < count; i++) {
		if (!pids[i] || waitpid(pids[i], NULL, WNOHANG) != pids[i])
			continue;
		pids[i] = 0;
		ended++;
	}
	return ended;
}

/* Started at one time over a socket that somebody has left behind: one of them serves. */
TEST_TIMEOUT(two_daemons_at_a_time, 60)
{
	for (int turn = 0; turn < 15; turn++) {
		static const char *const options[] = { "--no-keeper", "--log-level", "error", NULL };
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), alive = 0;
		struct raw_client client;
		pid_t pids[3];

		manager_open();
		snprintf(address.sun_path, sizeof(address.sun_path), "%s", manager.socket);
		check_eq_int(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
		close(fd);
		manager.is_ready = false;
		for (int i = 0; i < 3; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				freopen("/dev/null", "w", stderr);
				manager_exec(options);
			}
		}
		/* one serves, the others end. What they say is read: the socket holds ten messages, and they wait for room */
		for (int i = 0, ended = 0; (ended < 2 || !manager.is_ready) && i < 3000; i++) {
			ended += reap(pids, 3);
			manager_receive(10);
		}
		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_client_stop(&client);
		for (int i = 0; i < 3; i++) {
			alive += pids[i] != 0;
			manager.pid = pids[i] ? pids[i] : manager.pid;
		}
		check_eq_int(alive, 1);
		manager_close();
	}
}

/* RELOADING=1 with the time, then READY=1. */
TEST_TIMEOUT(a_reload_is_told, 60)
{
	uint64_t before = clock_now_ns() / 1000;

	manager_open();
	manager_start();
	check_eq_int(kill(manager.pid, SIGHUP), 0);
	for (unsigned i = 0; !(manager.reloading_us && manager.is_ready) && i < 1000 * test_timeout_scale(); i++)
		manager_receive(10);
	check_ge_uint(manager.reloading_us, before);
	check_le_uint(manager.reloading_us, clock_now_ns() / 1000);
	check(manager.is_ready);
	manager_close();
}
