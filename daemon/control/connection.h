/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's socket: reads requests, sends replies, notices the end of the process. It ends in a
 * turn of the loop of its own, never below a handler.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/process.h"
#include "proto/control.pb-c.h"

struct control;
struct loop_fd;
struct loop_timer;
struct request;
struct session;
struct user;

enum connection_state {
	CONNECTION_NEW,	   /* no HELLO yet */
	CONNECTION_CLIENT, /* has a session */
	CONNECTION_TOOL,   /* queries only */
	CONNECTION_HUNG,   /* the socket is closed at the other end; its process may be about to end
			    */
	CONNECTION_DYING,  /* the process has ended; how? */
	CONNECTION_FAILED, /* is ended by us */
};

#define RECEIVED_MAX 64u

struct connection {
	struct list link;
	struct control *control;
	struct user *user;
	struct list ready; /* in user->ready while it waits for its turn */
	bool is_queued, is_client;
	bool is_surplus; /* more than its user, or all, may have: gets no session */
	struct process_identity peer;
	uint64_t user_namespace; /* inode, by a descriptor that came with HELLO; 0: none */
	enum connection_state state;
	int fd, pidfd; /* pidfd -1: until there is a session */
	struct loop_fd *watch, *pid_watch;
	struct loop_timer *timer; /* meaning by state */
	struct session *session;
	bool is_reserved; /* lives on the reserve of descriptors: for the administrator's tools */
	bool is_refused;  /* and is nobody's who may: its HELLO is answered with the reason */
	struct list requests; /* being worked on */
	struct list outgoing; /* replies that did not fit into the socket */
	uint64_t received[RECEIVED_MAX]; /* ids of the last requests of a session that was restored */
	uint32_t received_count;	 /* ever */
	uint32_t request_count, outgoing_count;
	size_t unpacked; /* bytes of the messages of its requests */
	uint32_t exit_attempts;
	int32_t exit; /* wait status, -1 unknown */
	bool is_monitor;      /* is sent events */
	uint64_t lost_events; /* that did not fit into its socket */
};

/* A fresh socket; taken in every case. @is_reserved: there is no room for it but in the reserve. */
int connection_new(struct control *control, int fd, bool is_reserved);
/* A session of an earlier process, with the descriptors it was restored with. */
int connection_adopt(struct control *control, struct session *session);
/* The socket's process has its session now; takes @pidfd. */
int connection_bind(struct connection *connection, struct session *session, int pidfd);
/* No HELLO is waited for any more: it is a tool's. */
void connection_set_tool(struct connection *connection);
/* A packet that nobody has asked for. -EAGAIN: no room. */
int connection_push(struct connection *connection, const Hccld__Control__Reply *reply);
/* After a change of what it has to send. */
void connection_set_events(struct connection *connection);
/* Reads up to @packets requests. True: there may be more. */
bool connection_read(struct connection *connection, int packets);
/* It waits for its turn, and need not be told that it is readable. */
void connection_set_queued(struct connection *connection, bool is_queued);
/* Sends and frees the request, now or when there is room. */
void connection_send(struct connection *connection, struct request *request);
/* Ends the connection and its session soon, with a line in the log. */
void connection_fail(struct connection *connection, const char *reason);
/*
 * For an administrator: tells the client @text and frees the connection; its session is the caller's
 * to end. Not from a callback of this connection.
 */
void connection_dismiss(struct connection *connection, const char *text);
/* Memory of this process only. */
struct connection *connection_free(struct connection *connection);

/* "process 'name' (pid 4711)" for the log; valid until the next call. */
const char *connection_name(const struct connection *connection);
