/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts connections. Out of descriptors it pauses: the socket would stay readable and the loop
 * would spin.
 */
#include "control/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/log.h"
#include "base/loop.h"
#include "control/connection.h"
#include "control/control.h"
#include "proto/limits.h"

#define CONNECTIONS_MAX (HCCLD_SESSIONS_MAX + 256u)
#define ACCEPTS_PER_TURN 32
#define PAUSE_MS 100

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct listener {
	struct control *control;
	int fd;
	struct loop_fd *watch;
	struct loop_timer *timer;
};

static void listener_pause(struct listener *listener, const char *reason)
{
	log_warning("no new connections for %u ms: %s", PAUSE_MS, reason);
	loop_fd_set(listener->watch, 0);
	loop_timer_start(listener->timer, PAUSE_MS, 0);
}

static void listener_resume(void *data)
{
	struct listener *listener = data;

	loop_fd_set(listener->watch, LOOP_READ);
}

static void listener_ready(void *data, int events)
{
	struct listener *listener = data;

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd;

		if (listener->control->connection_count >= CONNECTIONS_MAX) {
			listener_pause(listener, "there are as many as hccld serves");
			return;
		}
		fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)) {
			listener_pause(listener, strerror(errno));
			return;
		}
		if (fd >= 0 && connection_new(listener->control, fd) < 0)
			log_warning("a connection was refused");
	}
}

int listener_new(struct control *control, int fd, struct listener **ret_listener)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	listener->control = control;
	listener->fd = fd;
	/*
	 * No request has descriptors; from Linux 6.16 on nobody can send any. Connections inherit
	 * it. Before, connection.c deals with them.
	 */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
	r = loop_timer_new(control->loop, listener_resume, listener, &listener->timer);
	if (r == 0)
		r = loop_fd_new(control->loop, fd, LOOP_READ, listener_ready, listener,
				&listener->watch);
	if (r < 0) {
		listener_free(listener);
		return r;
	}
	*ret_listener = listener;
	return 0;
}

struct listener *listener_free(struct listener *listener)
{
	if (!listener)
		return NULL;
	loop_fd_free(listener->watch);
	loop_timer_free(listener->timer);
	free(listener);
	return NULL;
}
