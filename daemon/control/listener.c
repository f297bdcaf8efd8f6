/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accepts connections. Out of descriptors it takes some more from the reserve, for the administrator's tools,
 * and for telling others why they are refused. When that is not possible either it pauses: the socket would
 * stay readable and the loop would spin.
 */
#include "control/listener.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/loop.h"
#include "control/connection.h"
#include "control/control.h"
#include "proto/clock.h"
#include "proto/limits.h"

#define ACCEPTS_PER_TURN 32
#define PAUSE_MS 100
#define BREATH_MS 4
#define TELL_NS 10000000000u
#define REFUSED_MAX 8u	 /* connections at a time that are there to be refused for lack of descriptors */
#define RESERVED_MAX 24u /* all that live on the reserve of descriptors */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct listener {
	struct control *control;
	int fd;
	struct loop_fd *watch;
	struct loop_timer *timer;
	uint32_t refused; /* since it was told */
	uint64_t told_ns;
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

/* Takes @fd. */
static void listener_add(struct listener *listener, int fd, bool is_reserved)
{
	uint64_t now = clock_now_ns();

	if (connection_new(listener->control, fd, is_reserved) == 0)
		return;
	/* who is refused tries again, and again */
	if (listener->refused++ && now - listener->told_ns < TELL_NS)
		return;
	log_warning("%u connections were refused: there are as many as their users may have",
		    listener->refused);
	listener->told_ns = now;
	listener->refused = 0;
}

/* The oldest of those that are only there to be refused goes, so that the next one hears the reason, too. */
static void listener_make_room(struct control *control)
{
	uint32_t refused = 0;

	list_for_each(struct connection, connection, &control->connections, link)
		refused += connection->is_refused && connection->state != CONNECTION_FAILED;
	if (refused < REFUSED_MAX)
		return;
	list_for_each(struct connection, connection, &control->connections, link) {
		if (!connection->is_refused || connection->state == CONNECTION_FAILED)
			continue;
		connection_fail(connection, "there is no room for it");
		return;
	}
}

/* False: no more in this turn. */
static bool listener_accept(struct listener *listener)
{
	struct control *control = listener->control;
	bool is_reserved;
	int fd;

	if (control->connection_count >= HCCLD_CONNECTIONS_MAX) {
		listener_pause(listener, "there are as many as hccld serves");
		return false;
	}
	if (control->reserved_count >= RESERVED_MAX) {
		listener_pause(listener, "even the descriptors in reserve are used");
		return false;
	}
	fd = descriptors_accept(listener->fd, &is_reserved);
	if (fd == -EAGAIN)
		return false;
	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM || fd == -ENOBUFS) {
		listener_pause(listener, strerror(-fd));
		return false;
	}
	if (fd < 0)
		return true;
	if (is_reserved)
		listener_make_room(control);
	listener_add(listener, fd, is_reserved);
	/* what is to be closed is closed between two turns */
	return !is_reserved;
}

static void listener_ready(void *data, int events)
{
	struct listener *listener = data;

	(void)events;
	/* those who are there go on, however many come */
	if (listener->control->client_users) {
		loop_fd_set(listener->watch, 0);
		loop_timer_start(listener->timer, BREATH_MS, 0);
	}
	for (int i = 0; i < ACCEPTS_PER_TURN; i++)
		if (!listener_accept(listener))
			return;
}

int listener_new(struct control *control, int fd, struct listener **ret_listener)
{
	struct listener *listener = calloc(1, sizeof(*listener));
	int r;

	if (!listener)
		return -ENOMEM;
	listener->control = control;
	listener->fd = fd;
	/* HELLO has a descriptor; release 0.1.0 has switched them off, and its socket may be inherited */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 1 }, sizeof(int));
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
