/* SPDX-License-Identifier: Apache-2.0 */
/* A client's socket. */
#include "control/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/discard.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/namespace.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/monitor.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/user.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "proto/packet.h"
#include "registry/registry.h"
#include "registry/session.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

#define HELLO_DEADLINE_MS 10000u
#define HELLO_DEADLINE_RESERVED_MS 1000u
#define HANG_UP_GRACE_MS \
	200u /* from the closing of a dying process's sockets to the end of the process */
#define EXIT_ATTEMPTS 10u
#define EXIT_RETRY_MS 5u
#define SURPLUS_MAX 64u
#define SESSION_END_NS 200000u /* what taking a session down costs, about */

const char *connection_name(const struct connection *connection)
{
	static char name[128];

	snprintf(name, sizeof(name), "process '%s' (pid %d)",
		 connection->session ? connection->session->process : "?", connection->peer.pid);
	return name;
}

/* Nobody waits for their replies any more; those being worked on are freed when they finish. */
static void connection_drop_requests(struct connection *connection)
{
	list_for_each(struct request, request, &connection->outgoing, link) {
		request->connection = NULL;
		request_free(request);
	}
	list_for_each(struct request, request, &connection->requests, link) {
		request->connection = NULL;
		list_remove(&request->link);
	}
}

struct connection *connection_free(struct connection *connection)
{
	if (!connection)
		return NULL;
	if (!list_is_empty(&connection->link)) {
		connection->control->connection_count--;
		connection->control->reserved_count -= connection->is_reserved;
	}
	if (connection->is_monitor)
		connection->control->monitor_count--;
	list_remove(&connection->link);
	list_remove(&connection->ready);
	connection_drop_requests(connection);
	loop_fd_free(connection->watch);
	loop_fd_free(connection->pid_watch);
	loop_timer_free(connection->timer);
	if (connection->session) {
		connection->session->owner = NULL;
		connection->session->pidfd = take_fd(&connection->pidfd);
	}
	close_fdp(&connection->fd);
	close_fdp(&connection->pidfd);
	if (connection->user) {
		if (connection->is_client)
			user_count_client(connection->user, -1);
		connection->user->connections--;
		user_collect(connection->user);
	}
	free(connection);
	return NULL;
}

static void connection_freep(struct connection **connection)
{
	connection_free(*connection);
}

/* Only from callbacks of the connection's own watches and timer. */
static void connection_end(struct connection *connection)
{
	struct control *control = connection->control;
	struct session *session = connection->session;
	int32_t status = connection->exit;

	if (session)
		user_charge(connection->user, SESSION_END_NS);
	connection_free(connection);
	if (session)
		session_end(control, session, status);
}

/* The session's last packet, if the client knows such packets. What it does not take now is lost. */
static void connection_farewell(struct connection *connection, const char *text)
{
	Hccld__Control__Reply reply = HCCLD__CONTROL__REPLY__INIT;
	Hccld__Control__Farewell farewell = HCCLD__CONTROL__FAREWELL__INIT;

	if (!connection->session || !(connection->session->features & HCCLD_FEATURE_TOOLS))
		return;
	reply.cause = CAUSE_DAEMON_GONE;
	reply.text = (char *)text;
	reply.body_case = HCCLD__CONTROL__REPLY__BODY_FAREWELL;
	reply.farewell = &farewell;
	(void)packet_send(connection->fd, &reply.base, NULL, 0, MSG_DONTWAIT);
}

void connection_dismiss(struct connection *connection, const char *text)
{
	connection_farewell(connection, text);
	connection_free(connection);
}

static void connection_set_going(struct connection *connection, enum connection_state state)
{
	connection->state = state;
	if (connection->session)
		session_going(connection->control, connection->session);
}

void connection_fail(struct connection *connection, const char *reason)
{
	const struct log_fields fields = { .event = EVENT_LIAR_ENDED,
					   .session = connection->session ? connection->session->view.id : 0,
					   .pid = connection->peer.pid,
					   .is_frequent = true };

	if (connection->state >= CONNECTION_HUNG)
		return;
	log_event(LOG_LEVEL_NOTICE, &fields, "%s: %s; its connection ends",
		  connection_name(connection), reason);
	if (connection->session)
		monitor_session(connection->control, "cut-off", connection->session, reason);
	connection_farewell(connection, reason);
	connection_set_going(connection, CONNECTION_FAILED);
	loop_fd_set(connection->watch, 0);
	loop_timer_start(connection->timer, 0, 0);
}

static void connection_find_exit(struct connection *connection)
{
	int r = process_exit_status(connection->pidfd, connection->peer.pid, &connection->exit);

	if (r == -EAGAIN && connection->exit_attempts++ < EXIT_ATTEMPTS)
		loop_timer_start(connection->timer, EXIT_RETRY_MS, 0);
	else
		connection_end(connection);
}

static void pidfd_ready(void *data, int events)
{
	struct connection *connection = data;

	(void)events;
	connection_set_going(connection, CONNECTION_DYING);
	loop_fd_set(connection->watch, 0);
	loop_fd_set(connection->pid_watch, 0);
	connection_find_exit(connection);
}

static void timer_due(void *data)
{
	struct connection *connection = data;

	switch (connection->state) {
	case CONNECTION_NEW:
		connection_fail(connection, "it has sent no HELLO in time");
		break;
	case CONNECTION_DYING:
		connection_find_exit(connection);
		break;
	case CONNECTION_HUNG: /* the process lives, but no copy of the socket does */
	case CONNECTION_FAILED:
		connection_end(connection);
		break;
	case CONNECTION_CLIENT:
	case CONNECTION_TOOL:
		break;
	}
}

static void connection_hung_up(struct connection *connection)
{
	bool has_process = connection->pid_watch;

	connection_set_going(connection, has_process ? CONNECTION_HUNG : CONNECTION_FAILED);
	loop_fd_set(connection->watch, 0);
	loop_timer_start(connection->timer, has_process ? HANG_UP_GRACE_MS : 0, 0);
}

void connection_set_events(struct connection *connection)
{
	/* who does not read its replies is not read either */
	if (connection->state <= CONNECTION_TOOL)
		loop_fd_set(connection->watch, connection->outgoing_count ? LOOP_WRITE :
			    (connection->is_queued ? 0 : LOOP_READ) |
				    (connection->lost_events ? LOOP_WRITE : 0));
}

/* 0: sent. -EAGAIN: no room. The rest is fatal for the connection. */
static int connection_try(struct connection *connection, struct request *request)
{
	return packet_send(connection->fd, &request->reply.base, request->fds, request->fd_count,
			   MSG_DONTWAIT);
}

/* A reply that cannot be sent is lost, and somebody waits for it for ever: the connection ends. */
static void connection_check_sent(struct connection *connection, int r)
{
	/* after a hang-up the reader finds it */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET && r != -ENOTCONN)
		connection_fail(connection, "a reply could not be sent");
}

void connection_send(struct connection *connection, struct request *request)
{
	int r = connection->outgoing_count ? -EAGAIN : connection_try(connection, request);

	/* as many as there can be requests (dispatch.c): all ranks of a communicator may be one client's */
	if (r == -EAGAIN) {
		list_remove(&request->link);
		list_append(&connection->outgoing, &request->link);
		connection->outgoing_count++;
		connection_set_events(connection);
		return;
	}
	connection_check_sent(connection, r);
	request_free(request);
}

static void connection_flush(struct connection *connection)
{
	list_for_each(struct request, request, &connection->outgoing, link) {
		int r = connection_try(connection, request);

		if (r == -EAGAIN)
			break;
		connection_check_sent(connection, r);
		connection->outgoing_count--;
		request_free(request);
	}
}

int connection_push(struct connection *connection, const Hccld__Control__Reply *reply)
{
	int r;

	if (connection->state > CONNECTION_TOOL)
		return -ENOTCONN;
	r = connection->outgoing_count ? -EAGAIN :
					 packet_send(connection->fd, &reply->base, NULL, 0, MSG_DONTWAIT);
	return r;
}

/* HELLO may have one descriptor: of the process's user namespace. False: the connection ends. */
static bool connection_take_namespace(struct connection *connection, struct packet *packet)
{
	if (connection->state == CONNECTION_NEW && packet->fd_count == 1 &&
	    namespace_of_fd(packet->fds[0], &connection->user_namespace) == 0) {
		packet_close(packet);
		return true;
	}
	discard_fds(packet->fds, packet->fd_count);
	packet->fd_count = 0;
	connection_fail(connection, connection->state == CONNECTION_NEW
					    ? "it has sent a descriptor that is no user namespace"
					    : "it has sent descriptors, which no request has");
	return false;
}

bool connection_read(struct connection *connection, int packets)
{
	struct packet *packet = &connection->control->packet;

	for (int i = 0; i < packets; i++) {
		int r;

		if (connection->state > CONNECTION_TOOL || connection->outgoing_count)
			return false;
		r = packet_receive(connection->fd, packet, MSG_DONTWAIT);
		if (r == -EAGAIN)
			return false;
		if (r == -EPROTO) {
			connection_fail(connection, "it has sent a truncated packet");
			return false;
		}
		if (r == -EMFILE && !connection->is_reserved) {
			/* the descriptor of its HELLO is lost: it is refused, and told so */
			connection->is_reserved = true;
			connection->control->reserved_count++;
		}
		if (r < 0 && r != -EMFILE) {
			connection_hung_up(connection);
			return false;
		}
		if (packet->fd_count && !connection_take_namespace(connection, packet))
			return false;
		dispatch_packet(connection, packet);
	}
	return connection->state <= CONNECTION_TOOL && !connection->outgoing_count;
}

void connection_set_queued(struct connection *connection, bool is_queued)
{
	connection->is_queued = is_queued;
	connection_set_events(connection);
}

static void connection_ready(void *data, int events)
{
	struct connection *connection = data;

	if (events & LOOP_WRITE)
		connection_flush(connection);
	if ((events & LOOP_WRITE) && connection->lost_events)
		monitor_tell_lost(connection);
	if ((events & LOOP_READ) && !connection->is_queued)
		user_readable(connection);
	/* also after an error, which has ended the watch: the rest is read, down to the hang-up */
	connection_set_events(connection);
}

static int connection_make(struct control *control, int fd, struct connection **ret_connection)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(connection_freep) struct connection *connection = calloc(1, sizeof(*connection));
	int r;

	if (!connection)
		return -ENOMEM;
	list_init(&connection->link);
	list_init(&connection->requests);
	list_init(&connection->outgoing);
	list_init(&connection->ready);
	connection->control = control;
	connection->pidfd = -1;
	connection->exit = -1;
	connection->fd = take_fd(&owned_fd);
	r = process_peer(connection->fd, &connection->peer);
	if (r < 0)
		return r;
	connection->user = user_get(control, connection->peer.uid);
	if (!connection->user)
		return -ENOMEM;
	connection->user->connections++;
	r = loop_timer_new(control->loop, timer_due, connection, &connection->timer);
	if (r < 0)
		return r;
	r = loop_fd_new(control->loop, connection->fd, LOOP_READ, connection_ready, connection,
			&connection->watch);
	if (r < 0)
		return r;
	list_append(&control->connections, &connection->link);
	control->connection_count++;
	*ret_connection = take_ptr(&connection);
	return 0;
}

/*
 * More than there may be get as far as HELLO, to be told why, but only a few at a time. -EDQUOT.
 */
static int connection_admit(struct connection *connection)
{
	const struct control *control = connection->control;
	const struct user *user = connection->user;
	uint32_t limit = control->options.connections_per_user;
	uint32_t places = HCCLD_CONNECTIONS_MAX - HCCLD_RESERVE;

	if (user_is_special(user))
		return 0;
	connection->is_surplus = user->connections > limit ||
				 control->connection_count > places - SURPLUS_MAX;
	return user->connections > limit + SURPLUS_MAX || control->connection_count > places
		       ? -EDQUOT
		       : 0;
}

int connection_new(struct control *control, int fd, bool is_reserved)
{
	struct connection *connection;
	int r;

	r = connection_make(control, fd, &connection);
	if (r < 0)
		return r;
	r = connection_admit(connection);
	if (r < 0) {
		connection_free(connection);
		return r;
	}
	connection->is_reserved = is_reserved;
	control->reserved_count += is_reserved;
	connection->is_refused = is_reserved && connection->peer.uid != 0 &&
				 connection->peer.uid != geteuid();
	loop_timer_start(connection->timer,
			 is_reserved ? HELLO_DEADLINE_RESERVED_MS : HELLO_DEADLINE_MS, 0);
	return 0;
}

/* From Linux 6.16 on; before, connection_read() deals with them. */
static void connection_refuse_fds(struct connection *connection)
{
	(void)setsockopt(connection->fd, SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
}

int connection_bind(struct connection *connection, struct session *session, int pidfd)
{
	int r;

	assert(connection->state == CONNECTION_NEW);
	connection->pidfd = session->view.pidfd = pidfd;
	r = loop_fd_new(connection->control->loop, pidfd, LOOP_READ, pidfd_ready, connection,
			&connection->pid_watch);
	if (r < 0)
		return r;
	connection->session = session;
	session->owner = connection;
	connection->is_client = true;
	user_count_client(connection->user, 1);
	connection->state = CONNECTION_CLIENT;
	connection_refuse_fds(connection);
	loop_timer_stop(connection->timer);
	return 0;
}

void connection_set_tool(struct connection *connection)
{
	connection->state = CONNECTION_TOOL;
	connection_refuse_fds(connection);
	loop_timer_stop(connection->timer);
}

int connection_adopt(struct control *control, struct session *session)
{
	struct connection *connection;
	int r;

	r = connection_make(control, take_fd(&session->restored_socket_fd), &connection);
	if (r < 0)
		return r;
	r = connection_bind(connection, session, take_fd(&session->restored_pidfd));
	if (r < 0) {
		connection_free(connection);
		return r;
	}
	if (session->is_broken)
		connection_fail(connection, "it could not be restored in full");
	return 0;
}
