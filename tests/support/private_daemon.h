/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon of one's own for a test: own directory, own socket, no keeper. HCCLD_SOCKET of the calling process is set, so the client library
 * in it (and in what it starts) finds the daemon. The daemon dies with the thread that started it.
 */
#pragma once

#include <sys/types.h>

struct private_daemon {
	pid_t pid;
	char directory[64];
	char socket[96];
};

/*
 * Starts hccld (HCCLD_BINARY, else "hccld" of the PATH) and waits until it is ready. @options: further arguments, NULL-terminated, or NULL.
 * @config: text of a configuration file, or NULL. 0 or a negative errno; what went wrong is on stderr.
 */
int private_daemon_start(struct private_daemon *daemon, const char *const *options, const char *config);
/* SIGTERM, then, after 5 s, SIGKILL. The wait status, or -1 if it had to be killed. Removes the directory. */
int private_daemon_stop(struct private_daemon *daemon);
/* kill -9. */
void private_daemon_kill(struct private_daemon *daemon);
