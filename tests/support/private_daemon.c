/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon of one's own for a test. */
#include "private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPTIONS_MAX 32
#define READY_TIMEOUT_MS 20000
#define STOP_TIMEOUT_MS 5000
#define STOP_AGAIN_MS 300

static int fail(const char *what, int error)
{
	fprintf(stderr, "private daemon: %s: %s\n", what, strerror(-error));
	return error;
}

static void remove_directory(const struct private_daemon *daemon)
{
	char command[96];

	if (!daemon->directory[0])
		return;
	snprintf(command, sizeof(command), "rm -rf '%s'", daemon->directory);
	if (system(command) != 0)
		fprintf(stderr, "private daemon: cannot remove %s\n", daemon->directory);
}

static int write_config(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -errno;
	fputs(text, file);
	return fclose(file) == 0 ? 0 : -errno;
}

static void child(const struct private_daemon *daemon, int ready_fd, const char *const *options, const char *config_path)
{
	const char *binary = getenv("HCCLD_BINARY");
	const char *arguments[OPTIONS_MAX + 16];
	char ready[16];
	int n = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(ready_fd, F_SETFD, 0);
	snprintf(ready, sizeof(ready), "%d", ready_fd);
	if (!binary)
		binary = "hccld";
	arguments[n++] = binary;
	arguments[n++] = "--no-keeper";
	arguments[n++] = "--socket";
	arguments[n++] = daemon->socket;
	arguments[n++] = "--ready-fd";
	arguments[n++] = ready;
	if (config_path) {
		arguments[n++] = "--config";
		arguments[n++] = config_path;
	}
	for (int i = 0; options && options[i] && i < OPTIONS_MAX; i++)
		arguments[n++] = options[i];
	arguments[n] = NULL;
	execvp(binary, (char *const *)arguments);
	fprintf(stderr, "private daemon: %s: %s\n", binary, strerror(errno));
	_exit(127);
}

/* A byte: ready. End of file: it ended. */
static int wait_ready(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&poll_fd, 1, READY_TIMEOUT_MS) <= 0)
		return -ETIMEDOUT;
	return read(fd, &byte, 1) == 1 ? 0 : -ECHILD;
}

int private_daemon_start(struct private_daemon *daemon, const char *const *options, const char *config)
{
	char config_path[96];
	int fds[2], r;

	memset(daemon, 0, sizeof(*daemon));
	strcpy(daemon->directory, "/tmp/hccld-test-XXXXXX");
	if (!mkdtemp(daemon->directory)) {
		r = -errno;
		daemon->directory[0] = '\0';
		return fail("cannot make a directory in /tmp", r);
	}
	snprintf(daemon->socket, sizeof(daemon->socket), "%s/hccld.sock", daemon->directory);
	snprintf(config_path, sizeof(config_path), "%s/hccld.conf", daemon->directory);
	r = config ? write_config(config_path, config) : 0;
	if (r < 0)
		return fail(config_path, r);
	if (pipe2(fds, O_CLOEXEC) < 0)
		return fail("pipe", -errno);
	daemon->pid = fork();
	if (daemon->pid == 0)
		child(daemon, fds[1], options, config ? config_path : NULL);
	close(fds[1]);
	r = daemon->pid < 0 ? -EAGAIN : wait_ready(fds[0]);
	close(fds[0]);
	if (r < 0) {
		private_daemon_kill(daemon);
		remove_directory(daemon);
		return fail("it did not become ready", r);
	}
	setenv("HCCLD_SOCKET", daemon->socket, 1);
	return 0;
}

void private_daemon_kill(struct private_daemon *daemon)
{
	if (daemon->pid <= 0)
		return;
	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, NULL, 0);
	daemon->pid = 0;
}

int private_daemon_stop(struct private_daemon *daemon)
{
	int status = -1;

	if (daemon->pid > 0) {
		kill(daemon->pid, SIGTERM);
		for (int waited = 0; waited < STOP_TIMEOUT_MS; waited += 5) {
			if (waitpid(daemon->pid, &status, WNOHANG) == daemon->pid) {
				daemon->pid = 0;
				break;
			}
			status = -1;
			usleep(5000);
			/* what a test has left in flight gets no grace period */
			if (waited == STOP_AGAIN_MS)
				kill(daemon->pid, SIGTERM);
		}
	}
	private_daemon_kill(daemon);
	remove_directory(daemon);
	return status;
}
