/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of ranks: fork, surroundings, exec. */
#include "hcclctl/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/cleanup.h"

static void set_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRIu32, value);
	setenv(name, text, 1);
}

/* The directory goes first, wherever else it may stand in the list. */
static void set_library_path(const char *directory)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *list;

	if (!old || !*old) {
		setenv("LD_LIBRARY_PATH", directory, 1);
	} else if (asprintf(&list, "%s:%s", directory, old) >= 0) {
		setenv("LD_LIBRARY_PATH", list, 1);
		free(list);
	}
}

static void set_environment(const struct launch *launch, uint32_t rank)
{
	set_number("RANK_ID", rank);
	set_number("RANK", rank);
	set_number("LOCAL_RANK", rank);
	set_number("RANK_SIZE", launch->rank_count);
	set_number("WORLD_SIZE", launch->rank_count);
	set_number("LOCAL_WORLD_SIZE", launch->rank_count);
	set_number("DEVICE_ID", rank % launch->device_count);
	/* ranks of two runs do not meet, though they read the same rank table */
	setenv("HCCLD_JOB", launch->job, 0);
	if (launch->socket)
		setenv("HCCLD_SOCKET", launch->socket, 1);
	if (launch->library_directory)
		set_library_path(launch->library_directory);
}

/* Rank 0 may read what is piped into us; a terminal cannot be read from a process group in the background. */
static int set_input(uint32_t rank)
{
	int fd;

	if (rank == 0 && !isatty(STDIN_FILENO))
		return 0;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || dup2(fd, STDIN_FILENO) < 0)
		return -errno;
	return 0;
}

/* In the child. Returns only with what went wrong before exec; otherwise the errno of exec goes through @error_fd. */
static void become_rank(const struct launch *launch, const struct rank *rank, pid_t parent,
			int out_fd, int err_fd, int error_fd)
{
	int error = 0;

	setpgid(0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		error = errno;
	if (getppid() != parent)
		_exit(127); /* it died before we asked to be told */
	if (!error && set_input(rank->number) < 0)
		error = errno;
	if (!error && (dup2(out_fd, STDOUT_FILENO) < 0 || dup2(err_fd, STDERR_FILENO) < 0))
		error = errno;
	set_environment(launch, rank->number);
	setrlimit(RLIMIT_NOFILE, &launch->file_limit);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &launch->signal_mask, NULL);
	if (!error) {
		execvp(launch->program[0], launch->program);
		error = errno;
	}
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

int launch_rank(const struct launch *launch, struct rank *rank, int *ret_out, int *ret_err,
		bool *ret_executed)
{
	CLEANUP(close_fdp) int out_read = -1, out_write = -1, err_read = -1, err_write = -1, error_read = -1,
	    error_write = -1;
	pid_t parent = getpid(), pid;
	int ends[2], error;
	ssize_t n;

	*ret_executed = false;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	out_read = ends[0];
	out_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	err_read = ends[0];
	err_write = ends[1];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	error_read = ends[0];
	error_write = ends[1];

	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_rank(launch, rank, parent, out_write, err_write, error_write);
	setpgid(pid, pid); /* whoever comes first */

	close(take_fd(&error_write));
	do {
		n = read(error_read, &error, sizeof(error));
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof(error)) {
		*ret_executed = true;
		waitpid(pid, NULL, 0);
		return -error;
	}
	rank->pid = pid;
	rank->running = true;
	*ret_out = take_fd(&out_read);
	*ret_err = take_fd(&err_read);
	return 0;
}

void launch_signal(const struct rank *rank, int signal)
{
	if (!rank->running)
		return;
	kill(-rank->pid, signal);
	/* it may have gone into another group */
	if (getpgid(rank->pid) != rank->pid)
		kill(rank->pid, signal);
}
