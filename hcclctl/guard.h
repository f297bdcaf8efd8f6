/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A private daemon and the process that watches over it. The guard is a forked child of ours: it makes the directory of the socket, starts
 * the daemon, and when we let go or die, however, it stops the daemon by its pid and removes the directory.
 */
#pragma once

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

struct guard_options {
	const char *daemon; /* program */
	char **arguments;   /* for the daemon, without the socket; ends with NULL */
	const char *socket; /* NULL: in a new directory of its own */
};

/* What the guard tells through report_fd. */
struct guard_report {
	enum { GUARD_READY, GUARD_FAILED, GUARD_ENDED } event;
	pid_t daemon;
	int value; /* FAILED: errno of exec; ENDED: status as of waitpid() */
};

struct guard {
	pid_t pid;   /* 0: there is none */
	int life_fd; /* the guard acts when this closes */
	int report_fd;
	int log_fd; /* what the daemon prints */
	char socket[PATH_MAX];
	char directory[PATH_MAX]; /* "": none to remove */
};

/* Starts guard and daemon; the first report says whether the daemon came up. */
int guard_start(const struct guard_options *options, struct guard *guard);
/* Lets go: the daemon is stopped. The end of guard->pid says when all is cleaned up. */
void guard_release(struct guard *guard);
