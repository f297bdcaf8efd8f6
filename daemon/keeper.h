/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Without a service manager: a small process that holds the daemon's descriptors and starts it
 * again when it dies.
 */
#pragma once

struct keeper_options {
	const char *socket_path; /* removed in the end */
	int ready_fd;		 /* -1: none */
	/* how this process was started; the worker is too, but for the options about the keeper */
	int argc;
	char **argv;
};

/* The exit status of this process. */
int keeper_run(const struct keeper_options *options);
