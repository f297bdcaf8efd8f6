/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>

int manager_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	/* sd_notify() reads the variable each time: it stays. The daemon starts no programs. */
	return path && *path && path[0] != '/' && path[0] != '@' ? -EINVAL : 0;
}

void manager_close(void)
{
}

bool manager_is_there(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && *path;
}

int manager_send(const char *state, int fd)
{
	int r = sd_pid_notify_with_fds(0, 0, state, &fd, fd >= 0);

	return r < 0 ? r : 0;
}

int manager_listen(char ***ret_names)
{
	const char *count = getenv("LISTEN_FDS");

	*ret_names = NULL;
	/* an empty store is none to us, and -EINVAL to the library */
	return count && strtol(count, NULL, 10) > 0 ? sd_listen_fds_with_names(1, ret_names) : 0;
}

uint64_t manager_watchdog_ms(void)
{
	uint64_t us = 0;

	return sd_watchdog_enabled(1, &us) > 0 ? us / 1000 : 0;
}
