/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper: speaks the part of sd_notify that the daemon needs, does nothing else, and so has
 * nothing to die of. One thread, one poll().
 */
#include "daemon/keeper.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/keeper_store.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

#define QUICK_MS 10000
#define BACK_OFF_FIRST_MS 100 /* from the third quick death on, doubled each time */
#define BACK_OFF_MAX_MS 5000
#define MESSAGE_MAX 4096
#define MESSAGE_FDS_MAX 64
#define QUEUED_MAX 8192 /* more messages than a socket holds (net.unix.max_dgram_qlen) */

struct keeper {
	const struct keeper_options *options;
	char **argv; /* of the worker */
	char binary[PATH_MAX];
	char notify_address[64];
	int notify_fd, signal_fd, ready_fd;
	sigset_t old_mask;
	struct keeper_store store;
	pid_t worker; /* 0: none runs */
	uint64_t started_ms, start_at_ms;
	uint32_t quick_deaths;
	bool was_ready, is_stopping;
};

static int keeper_failed(const char *what)
{
	int error = errno;

	log_error("keeper: %s failed: %s", what, strerror(error));
	return -error;
}

/* An abstract address that the kernel picks: nothing in the file system to leave behind. */
static int keeper_bind(struct keeper *keeper)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	int on = 1;

	keeper->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (keeper->notify_fd < 0)
		return keeper_failed("socket");
	if (setsockopt(keeper->notify_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return keeper_failed("SO_PASSCRED");
	if (bind(keeper->notify_fd, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0)
		return keeper_failed("bind");
	if (getsockname(keeper->notify_fd, (struct sockaddr *)&address, &size) < 0)
		return keeper_failed("getsockname");
	snprintf(keeper->notify_address, sizeof(keeper->notify_address), "@%.*s",
		 (int)(size - offsetof(struct sockaddr_un, sun_path) - 1), address.sun_path + 1);
	return 0;
}

static int keeper_block_signals(struct keeper *keeper)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &mask, &keeper->old_mask) < 0)
		return keeper_failed("sigprocmask");
	keeper->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	return keeper->signal_fd < 0 ? keeper_failed("signalfd") : 0;
}

/* As many descriptors as the worker may have. */
static void keeper_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* what does not fit is not kept, and said */
}

/* The worker is started like us, but as worker; readiness goes through us. */
static int keeper_make_argv(struct keeper *keeper)
{
	int argc = keeper->options->argc, n = 0;
	char **argv = keeper->options->argv;

	keeper->argv = calloc((size_t)argc + 2, sizeof(*keeper->argv));
	if (!keeper->argv)
		return -ENOMEM;
	for (int i = 0; i < argc; i++) {
		bool has_value = i + 1 < argc && strcmp(argv[i], "--ready-fd") == 0;

		if (has_value)
			i++;
		else if (strncmp(argv[i], "--ready-fd=", 11) != 0)
			keeper->argv[n++] = argv[i];
	}
	/* the last one counts, whatever stands before it */
	keeper->argv[n++] = (char *)"--no-keeper";
	return 0;
}

_Noreturn static void worker_exec(struct keeper *keeper, pid_t keeper_pid)
{
	/* first: SIGTERM, so that it stops like on request */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != keeper_pid)
		_exit(EXIT_FAILURE);
	/* it handles it once it can */
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &keeper->old_mask, NULL);
	/* later its number may belong to a stored descriptor */
	if (keeper->options->ready_fd >= 0 && !keeper->was_ready)
		close(keeper->options->ready_fd);
	if (setenv("NOTIFY_SOCKET", keeper->notify_address, 1) < 0 ||
	    setenv("HCCLD_WORKER", "1", 1) < 0 ||
	    keeper_store_pass(&keeper->store) < 0)
		_exit(EXIT_FAILURE);
	/* by its name: an upgrade has put a new one there */
	execv(keeper->binary, keeper->argv);
	execv("/proc/self/exe", keeper->argv);
	keeper_failed("starting hccld");
	_exit(127);
}

static void keeper_start(struct keeper *keeper)
{
	pid_t keeper_pid = getpid();
	pid_t pid = fork();

	if (pid == 0)
		worker_exec(keeper, keeper_pid);
	keeper->started_ms = clock_now_ms();
	if (pid < 0) {
		keeper_failed("fork");
		keeper->start_at_ms = keeper->started_ms + BACK_OFF_MAX_MS;
		return;
	}
	keeper->worker = pid;
	keeper->start_at_ms = UINT64_MAX;
}

static void keeper_ready(struct keeper *keeper)
{
	if (keeper->ready_fd >= 0 && write(keeper->ready_fd, "1\n", 2) < 0)
		keeper_failed("write to --ready-fd");
	close_fdp(&keeper->ready_fd);
	keeper->was_ready = true;
}

/* One datagram of the worker: lines of NAME=VALUE. Takes what it uses of @fds. */
static void keeper_obey(struct keeper *keeper, char *message, int *fds, size_t fd_count)
{
	bool is_store = false, is_remove = false;
	const char *name = "stored";
	char *line;
	int r = 0;

	while ((line = strsep(&message, "\n"))) {
		if (strcmp(line, "READY=1") == 0)
			keeper_ready(keeper);
		else if (strcmp(line, "FDSTORE=1") == 0)
			is_store = true;
		else if (strcmp(line, "FDSTOREREMOVE=1") == 0)
			is_remove = true;
		else if (strncmp(line, "FDNAME=", 7) == 0)
			name = line + 7;
	}
	if (is_remove)
		keeper_store_remove(&keeper->store, name);
	for (size_t i = 0; is_store && i < fd_count; i++) {
		r = keeper_store_add(&keeper->store, name, take_fd(&fds[i]));
		if (r < 0)
			log_error("keeper: descriptor '%.64s' is not kept: %s", name, strerror(-r));
	}
}

/* The sender by the kernel's word; its descriptors into @fds. */
static pid_t message_read_control(struct msghdr *msg, int *fds, size_t *ret_count)
{
	pid_t sender = 0;

	*ret_count = 0;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET)
			continue;
		if (cmsg->cmsg_type == SCM_CREDENTIALS) {
			struct ucred credentials;

			memcpy(&credentials, CMSG_DATA(cmsg), sizeof(credentials));
			sender = credentials.pid;
		} else if (cmsg->cmsg_type == SCM_RIGHTS) {
			size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

			/* the control buffer has room for no more than this */
			memcpy(fds, CMSG_DATA(cmsg), count * sizeof(int));
			*ret_count = count;
		}
	}
	return sender;
}

/* False: nothing is there. */
static bool keeper_receive(struct keeper *keeper)
{
	char message[MESSAGE_MAX + 1];
	union {
		char space[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX) +
			   CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = message, .iov_len = MESSAGE_MAX };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	int fds[sizeof(control.space) / sizeof(int)];
	size_t fd_count;
	pid_t sender;
	ssize_t n;

	n = recvmsg(keeper->notify_fd, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EINTR;
	sender = message_read_control(&msg, fds, &fd_count);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		log_error("keeper: a message was cut off: too long, or out of descriptors");
	message[n] = 0;
	/* anybody on this node may send to the address: only the worker is heard */
	if (keeper->worker && sender == keeper->worker && !(msg.msg_flags & MSG_TRUNC))
		keeper_obey(keeper, message, fds, fd_count);
	for (size_t i = 0; i < fd_count; i++)
		close_fdp(&fds[i]);
	return true;
}

static void keeper_schedule(struct keeper *keeper)
{
	uint64_t now = clock_now_ms(), wait_ms = 0;

	if (now - keeper->started_ms > QUICK_MS)
		keeper->quick_deaths = 0;
	else
		keeper->quick_deaths++;
	if (keeper->quick_deaths > 2) {
		uint32_t doublings = keeper->quick_deaths - 3;

		wait_ms = doublings > 6 ? BACK_OFF_MAX_MS : BACK_OFF_FIRST_MS << doublings;
		if (wait_ms > BACK_OFF_MAX_MS)
			wait_ms = BACK_OFF_MAX_MS;
	}
	keeper->start_at_ms = now + wait_ms;
	if (wait_ms)
		log_warning("keeper: the next start is in %" PRIu64 " ms", wait_ms);
}

/* The worker has ended. -1: go on; else our own exit status. */
static int keeper_bury(struct keeper *keeper, int status)
{
	/*
	 * what it had sent before counts: descriptors it was about to rely on. Bounded: others may
	 * go on sending
	 */
	for (int i = 0; i < QUEUED_MAX && keeper_receive(keeper); i++)
		;
	log_debug("keeper: worker %d has ended", keeper->worker);
	keeper->worker = 0;
	/* an end by its own decision: on request, or because it could not start */
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || !keeper->was_ready))
		return WEXITSTATUS(status);
	/* killed by what we passed on: it was not there yet to obey */
	if (keeper->is_stopping && WIFSIGNALED(status) &&
	    (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT))
		return EXIT_SUCCESS;
	if (keeper->is_stopping)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (WIFSIGNALED(status))
		log_error(
			"keeper: hccld was killed by signal %d; it is started again with its %" PRIu32
			" descriptors",
			WTERMSIG(status), keeper->store.count);
	else
		log_error("keeper: hccld has ended with status %d; it is started again",
			  WEXITSTATUS(status));
	keeper_schedule(keeper);
	return -1;
}

/* Asked to stop, or to tell the worker something. -1: go on; else our exit status. */
static int keeper_forward(struct keeper *keeper, int number)
{
	if (number != SIGHUP)
		keeper->is_stopping = true;
	if (keeper->worker)
		kill(keeper->worker, number);
	else if (keeper->is_stopping)
		return EXIT_SUCCESS; /* between two workers */
	return -1;
}

/* -1: go on; else our exit status. */
static int keeper_read_signals(struct keeper *keeper)
{
	struct signalfd_siginfo info;
	int status, result = -1;

	while (result < 0 && read(keeper->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGCHLD)
			result = keeper_forward(keeper, (int)info.ssi_signo);
		else if (keeper->worker &&
			 waitpid(keeper->worker, &status, WNOHANG) == keeper->worker)
			result = keeper_bury(keeper, status);
	}
	return result;
}

static int keeper_loop(struct keeper *keeper)
{
	struct pollfd fds[] = { { .fd = keeper->notify_fd, .events = POLLIN },
				{ .fd = keeper->signal_fd, .events = POLLIN } };
	int result = -1;

	while (result < 0) {
		uint64_t now = clock_now_ms();
		int wait_ms = -1;

		if (!keeper->worker && now >= keeper->start_at_ms)
			keeper_start(keeper);
		if (!keeper->worker)
			wait_ms = keeper->start_at_ms > now ? (int)(keeper->start_at_ms - now) : 0;
		if (poll(fds, 2, wait_ms) < 0 && errno != EINTR)
			return keeper_failed("poll") < 0;
		if (fds[0].revents)
			keeper_receive(keeper);
		if (fds[1].revents)
			result = keeper_read_signals(keeper);
	}
	return result;
}

static void keeper_deinit(struct keeper *keeper)
{
	keeper_store_clear(&keeper->store);
	close_fdp(&keeper->notify_fd);
	close_fdp(&keeper->signal_fd);
	close_fdp(&keeper->ready_fd);
	free(keeper->argv);
}

int keeper_run(const struct keeper_options *options)
{
	CLEANUP(keeper_deinit) struct keeper keeper = {
		.options = options, .notify_fd = -1, .signal_fd = -1, .ready_fd = options->ready_fd
	};
	int status;

	keeper_raise_limit();
	signal(SIGPIPE, SIG_IGN);
	if (readlink("/proc/self/exe", keeper.binary, sizeof(keeper.binary) - 1) < 0)
		keeper_failed("readlink of /proc/self/exe");
	/* not a name that ps shows for two processes */
	prctl(PR_SET_NAME, "hccld-keeper");
	if (keeper_block_signals(&keeper) < 0 || keeper_bind(&keeper) < 0 ||
	    keeper_make_argv(&keeper) < 0)
		return EXIT_FAILURE;
	status = keeper_loop(&keeper);
	/* the worker leaves it to us: we might have started another one on it */
	if (keeper.was_ready)
		unlink(options->socket_path);
	return status;
}
