/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket to the daemon: requests and their replies. Any thread may call; several may wait at a time, each for its own reply (a request
 * that takes minutes holds up nobody). Whoever waits first reads the socket and hands replies to the others; there is no thread of ours.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/control.pb-c.h"
#include "proto/packet.h"

struct hccld_connection;

/* A request in flight. */
struct hccld_call {
	uint64_t id;
	Hccld__Control__Reply *reply;	/* freed by hccld_call_end() */
	int fds[HCCLD_PACKET_FDS_MAX];	/* taken ones are set to -1 */
	uint32_t fd_count;
	bool fds_lost;			/* by this process; what the reply grants is there, and the caller's to give back */
	/* private to connection.c */
	bool done;
	int error;
	void *packed;
	uint32_t packed_size, incarnation, patience_ms;
	uint64_t give_up_ns, lost_ns;
	struct hccld_call *next;
};

/* Socket path: HCCLD_SOCKET, else /run/hccld/hccld.sock, else hccld/hccld.sock below XDG_RUNTIME_DIR. Writes at most @size bytes. */
int hccld_socket_path(char *path, size_t size);

/*
 * Connects and says HELLO. @role: CLIENT or TOOL. On success the descriptors of the reply are the caller's (@ret_hello holds them).
 * -ENOTCONN: nobody listens; the thread's error text names the path and says how to start a daemon. -EPROTONOSUPPORT: versions.
 */
int hccld_connection_new(Hccld__Control__Hello__Role role, struct hccld_call *ret_hello, struct hccld_connection **ret_connection);
struct hccld_connection *hccld_connection_free(struct hccld_connection *connection);
/* The child of a fork: closes the descriptor without a word to the daemon. Async-signal-safe. */
void hccld_connection_abandon(struct hccld_connection *connection);

/* After the session's beacon is mapped: lets waits notice a restart of the daemon, and send again what had no reply. */
void hccld_connection_set_beacon(struct hccld_connection *connection, const void *beacon);

/*
 * hccld_call_start() sends @request (id is filled in), hccld_call_wait() blocks until its reply is there. 0, or a negative errno: the
 * reply's cause (the thread's error text is set from reply->text), -ENOTCONN when the daemon is gone. Every started call must be ended.
 */
int hccld_call_start(struct hccld_connection *connection, Hccld__Control__Request *request, struct hccld_call *call);
int hccld_call_wait(struct hccld_connection *connection, struct hccld_call *call);
void hccld_call_end(struct hccld_call *call);
/* Both. The call must be ended whatever this returns. */
static inline int hccld_call_make(struct hccld_connection *connection, Hccld__Control__Request *request, struct hccld_call *call)
{
	int r = hccld_call_start(connection, request, call);

	return r < 0 ? r : hccld_call_wait(connection, call);
}
/* All three for requests whose reply has nothing of interest. */
int hccld_call_simple(struct hccld_connection *connection, Hccld__Control__Request *request);
/*
 * Sets the thread's error: the daemon is gone, or has ended the session; then with what it said last. @when: "" or more words, such as
 * " while the stream had work". Returns -ENOTCONN.
 */
int hccld_connection_gone_error(struct hccld_connection *connection, const char *when);
/*
 * A tool that uses the connection in one thread: the next packet that no request has asked for (id 0). @timeout_ms -1: waits for ever.
 * -ETIMEDOUT; -ENOTCONN when the daemon is gone, without an error text. The caller ends @ret_call.
 */
int hccld_connection_pushed(struct hccld_connection *connection, int timeout_ms, struct hccld_call *ret_call);
/* The other side has hung up (checked without blocking). */
bool hccld_connection_is_gone(struct hccld_connection *connection);
