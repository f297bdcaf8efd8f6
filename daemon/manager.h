/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service manager's protocol, sd_notify and LISTEN_FDS: through libsystemd (manager_systemd.c), or in builds without it by our own
 * few lines (manager_plain.c). The other end is systemd or our own keeper. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Part of the path in NOTIFY_SOCKET that is systemd's own, of the system or of a user. */
#define MANAGER_SYSTEMD "/systemd/notify"

/* 0; -EINVAL and others when NOTIFY_SOCKET names nothing that can be reached. */
int manager_open(void);
void manager_close(void);
/* NOTIFY_SOCKET was set. */
bool manager_is_there(void);
/* Lines of NAME=VALUE, with a descriptor unless @fd is -1. 0 without a manager, too. */
int manager_send(const char *state, int fd);
/*
 * How many descriptors were passed, from 3 on, now CLOEXEC, or a negative errno. @ret_names: as many names, the array and each to be
 * freed; NULL if there are none. Removes the variables from the environment.
 */
int manager_listen(char ***ret_names);
/* What becomes of us once we have ended on SIGTERM. */
enum manager_intent {
	MANAGER_STOPS,	  /* nothing: no manager, or it was asked to stop us */
	MANAGER_RESTARTS, /* the next process gets the store */
	MANAGER_UNKNOWN,  /* systemd does not answer */
};

/* Asks systemd on its bus, for at most some seconds: SIGTERM comes for `systemctl stop` and `restart` alike. */
enum manager_intent manager_intent(void);
/* How often the watchdog wants a sign, 0: never. */
uint64_t manager_watchdog_ms(void);
