/* SPDX-License-Identifier: Apache-2.0 */
/* The guard process of a private daemon. guard_start() and guard_release() run in hcclctl, everything else in the guard. */
#include "hcclctl/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/cleanup.h"

#define STOP_TIMEOUT_MS 10000 /* from SIGTERM to SIGKILL */
#define READY_FD 3	      /* in the daemon */

/* Ends of the pipes as the guard has them. */
struct watch {
	const struct guard_options *options;
	const struct guard *guard;
	int life_fd, report_fd, log_fd, ready_fd, signal_fd;
	pid_t daemon;
	int status;
	bool ended;
};

static int make_directory(char directory[PATH_MAX])
{
	const char *bases[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp" };
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		/* the socket's path must fit into its address */
		if (!bases[i] || bases[i][0] != '/' ||
		    strlen(bases[i]) > sizeof(((struct sockaddr_un *)0)->sun_path) - 32)
			continue;
		snprintf(directory, PATH_MAX, "%s/hccld-XXXXXX", bases[i]);
		if (mkdtemp(directory)) /* 0700 */
			return 0;
		r = -errno;
	}
	directory[0] = '\0';
	return r;
}

/* The directory holds what the daemon made: files and sockets. */
static void remove_directory(const char *path)
{
	DIR *directory = path[0] ? opendir(path) : NULL;
	struct dirent *entry;

	if (!directory)
		return;
	while ((entry = readdir(directory)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			unlinkat(dirfd(directory), entry->d_name, 0);
	closedir(directory);
	rmdir(path);
}

static void tell(const struct watch *watch, int event, int value)
{
	struct guard_report report = { .event = event, .daemon = watch->daemon, .value = value };

	if (write(watch->report_fd, &report, sizeof(report)) < 0)
		return; /* hcclctl is gone; the life pipe says so too */
}

/* In the child that becomes the daemon. Writes errno to @error_fd if that fails. */
static void become_daemon(const struct watch *watch, int ready_fd, int error_fd)
{
	char *arguments[64] = { (char *)watch->options->daemon, (char *)"--socket",
				(char *)watch->guard->socket, (char *)"--ready-fd", (char *)"3" };
	static const char *const foreign[] = { "HCCLD_SOCKET", "NOTIFY_SOCKET", "LISTEN_FDS",
					       "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_USEC" };
	size_t count = 5;
	sigset_t none;
	int error;

	for (char **next = watch->options->arguments; *next && count < 63; next++)
		arguments[count++] = *next;
	arguments[count] = NULL;
	/* what is meant for another daemon */
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		unsetenv(foreign[i]);
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGTERM); /* if somebody kills the guard */
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* error_fd may be READY_FD itself */
	error_fd = fcntl(error_fd, F_DUPFD_CLOEXEC, READY_FD + 1);
	if (dup2(watch->log_fd, STDOUT_FILENO) >= 0 && dup2(watch->log_fd, STDERR_FILENO) >= 0 &&
	    error_fd >= 0) {
		if (ready_fd == READY_FD ? fcntl(ready_fd, F_SETFD, 0) >= 0
					 : dup2(ready_fd, READY_FD) >= 0)
			execv(arguments[0], arguments);
	}
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* 0, or the negative errno of exec. */
static int start_daemon(struct watch *watch)
{
	CLEANUP(close_fdp) int error_read = -1, error_write = -1, ready_read = -1, ready_write = -1;
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	error_read = ends[0];
	error_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	ready_read = ends[0];
	ready_write = ends[1];

	watch->daemon = fork();
	if (watch->daemon < 0)
		return -errno;
	if (watch->daemon == 0)
		become_daemon(watch, ready_write, error_write);
	close(take_fd(&error_write));
	if (read(error_read, &error, sizeof(error)) == (ssize_t)sizeof(error)) {
		waitpid(watch->daemon, NULL, 0);
		return -error;
	}
	watch->ready_fd = take_fd(&ready_read);
	return 0;
}

static void reap(struct watch *watch)
{
	struct signalfd_siginfo info;

	if (read(watch->signal_fd, &info, sizeof(info)) < 0)
		return;
	if (waitpid(watch->daemon, &watch->status, WNOHANG) == watch->daemon)
		watch->ended = true;
}

/* Until the daemon ends or hcclctl does. */
static void follow(struct watch *watch)
{
	while (!watch->ended) {
		struct pollfd fds[] = {
			{ .fd = watch->signal_fd, .events = POLLIN },
			{ .fd = watch->life_fd, .events = POLLIN },
			{ .fd = watch->ready_fd, .events = POLLIN },
		};
		char ready;

		if (poll(fds, 3, -1) < 0)
			continue;
		if (fds[2].revents) {
			if (read(watch->ready_fd, &ready, 1) == 1)
				tell(watch, GUARD_READY, 0);
			close(watch->ready_fd);
			watch->ready_fd = -1;
		}
		if (fds[0].revents)
			reap(watch);
		if (fds[1].revents)
			return;
	}
}

static void stop(struct watch *watch)
{
	int waited_ms = 0;

	kill(watch->daemon, SIGTERM);
	while (!watch->ended) {
		struct pollfd fd = { .fd = watch->signal_fd, .events = POLLIN };

		if (poll(&fd, 1, 100) > 0) {
			reap(watch);
		} else {
			waited_ms += 100;
			if (waited_ms == STOP_TIMEOUT_MS)
				kill(watch->daemon, SIGKILL);
		}
	}
}

/* Descriptors that are of no use to the guard must not stay open in it: somebody may wait for their end. */
static void close_others(struct watch *watch)
{
	int keep[] = { watch->life_fd, watch->report_fd, watch->log_fd, watch->guard->log_fd,
		       watch->signal_fd };
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		int fd = atoi(entry->d_name);
		bool kept = fd <= STDERR_FILENO || fd == dirfd(directory);

		for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
			kept = kept || fd == keep[i];
		if (!kept)
			close(fd);
	}
	if (directory)
		closedir(directory);
}

static void guard_main(struct watch *watch)
{
	int null_fd, r;
	sigset_t set;

	setsid();
	prctl(PR_SET_NAME, "hcclctl-guard");
	sigfillset(&set);
	sigprocmask(SIG_SETMASK, &set, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	watch->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null_fd, fd);
	close_others(watch);

	r = watch->signal_fd < 0 ? -EMFILE : start_daemon(watch);
	if (r < 0) {
		tell(watch, GUARD_FAILED, -r);
	} else {
		/* guard->log_fd stays open here so that the daemon can go on writing when hcclctl was killed. */
		close(watch->log_fd);
		follow(watch);
		if (watch->ended)
			tell(watch, GUARD_ENDED, watch->status);
		else
			stop(watch);
	}
	remove_directory(watch->guard->directory);
	_exit(0);
}

static int choose_socket(const struct guard_options *options, struct guard *guard)
{
	int r;

	if (options->socket) {
		if (strlen(options->socket) >= sizeof(guard->socket))
			return -ENAMETOOLONG;
		strcpy(guard->socket, options->socket);
		return 0;
	}
	r = make_directory(guard->directory);
	if (r < 0)
		return r;
	snprintf(guard->socket, sizeof(guard->socket), "%.4000s/hccld.sock", guard->directory);
	return 0;
}

int guard_start(const struct guard_options *options, struct guard *guard)
{
	CLEANUP(close_fdp) int life_read = -1, life_write = -1, report_read = -1, report_write = -1, log_read = -1,
	    log_write = -1;
	struct watch watch = { .options = options, .guard = guard, .ready_fd = -1, .signal_fd = -1 };
	int ends[2], r;

	memset(guard, 0, sizeof(*guard));
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	life_read = ends[0];
	life_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	report_read = ends[0];
	report_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	log_read = ends[0];
	log_write = ends[1];
	r = choose_socket(options, guard);
	if (r < 0)
		return r;

	guard->log_fd = log_read;
	guard->pid = fork();
	if (guard->pid < 0) {
		r = -errno;
		guard->pid = 0;
		remove_directory(guard->directory);
		return r;
	}
	if (guard->pid == 0) {
		watch.life_fd = life_read;
		watch.report_fd = report_write;
		watch.log_fd = log_write;
		guard_main(&watch);
	}
	guard->life_fd = take_fd(&life_write);
	guard->report_fd = take_fd(&report_read);
	guard->log_fd = take_fd(&log_read);
	return 0;
}

void guard_release(struct guard *guard)
{
	if (guard->pid && guard->life_fd >= 0)
		close(take_fd(&guard->life_fd));
}
