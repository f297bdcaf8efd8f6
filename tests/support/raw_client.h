/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the control protocol without the client library: one socket, requests as they are on
 * the wire. Every function fails the test case when the protocol is not kept; what a test expects
 * to be refused goes through raw_call().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/control.pb-c.h"
#include "proto/packet.h"
#include "proto/ring.h"
#include "proto/yard.h"

struct raw_client {
	int fd;
	uint64_t next_id;
	uint64_t session;
	uint32_t device_count;
	void *region; /* struct session_region */
	struct yard *yard;
	const struct beacon *beacon;
	int event_fd;
};

struct raw_reply {
	Hccld__Control__Reply *message;
	struct packet packet; /* descriptors that were not taken are closed by raw_reply_free() */
};

/* HCCLD_SOCKET. Connected, no HELLO yet. */
int raw_connect(void);
/* With HELLO and mapped regions; @role TOOL: HELLO only. */
void raw_client_start(struct raw_client *client, Hccld__Control__Hello__Role role);
/* The same as a client that has @features (proto/feature.h); raw_client_start() has none. */
void raw_client_start_with(struct raw_client *client, Hccld__Control__Hello__Role role,
			   uint64_t features);
/* Closes socket and mappings; twice is as once. */
void raw_client_stop(struct raw_client *client);

/* Sends one request (its id is set) without waiting. Returns the id. */
uint64_t raw_send(struct raw_client *client, Hccld__Control__Request *request);
/*
 * The next reply. @ret_reply: freed by raw_reply_free(). 0 or -ECONNRESET when the daemon has hung
 * up.
 */
int raw_receive(struct raw_client *client, struct raw_reply *ret_reply);
/* Sends and receives; no other request may be under way. */
void raw_call(struct raw_client *client, Hccld__Control__Request *request,
	      struct raw_reply *ret_reply);
void raw_reply_free(struct raw_reply *reply);

/* Requests that must succeed. */
uint64_t raw_open_context(struct raw_client *client, uint32_t device);
void raw_close_context(struct raw_client *client, uint64_t context);
uint32_t raw_create_stream(struct raw_client *client, uint64_t context);
void raw_destroy_stream(struct raw_client *client, uint32_t stream);
/* @ret_base: mapped, or NULL if not wanted. */
uint64_t raw_allocate(struct raw_client *client, uint64_t context, uint64_t bytes, void **ret_base);
void raw_free(struct raw_client *client, uint64_t segment);
/* Of the context's device, in bytes. @ret_total: NULL if not wanted. */
uint64_t raw_free_memory(struct raw_client *client, uint64_t context, uint64_t *ret_total);

struct raw_root {
	uint64_t key;
	unsigned char secret[HCCLD_SECRET_BYTES];
	char name[HCCLD_COMM_NAME_MAX];
};
void raw_root_info(struct raw_client *client, struct raw_root *ret_root);
/*
 * Sends the request to join; the reply comes by raw_receive(). @deadline_ms 0: the daemon's
 * default.
 */
uint64_t raw_join_send(struct raw_client *client, const struct raw_root *root, uint32_t rank,
		       uint32_t size, uint64_t context, uint32_t deadline_ms);
void raw_leave(struct raw_client *client, uint64_t rank);
void raw_open_pair(struct raw_client *client, uint64_t rank, uint32_t send_to);

/*
 * A communicator of two: rank 0 is @client's, rank 1 a forked process, which has joined when this
 * returns, and exits with @status, or waits for ever (-1). Returns its pid; *ret_region is mapped,
 * raw_rank_region_free() undoes that.
 */
struct comm_region;
pid_t raw_fork_rank(struct raw_client *client, int status, const struct comm_region **ret_region);
void raw_rank_region_free(const struct comm_region *region);

/* A status report, of a tool's connection of its own. Freed by raw_reply_free(). */
void raw_status(struct raw_reply *ret_reply);
uint32_t raw_session_count(void);
/* Waits until there are as many. */
void raw_wait_for_sessions(uint32_t count);
/* hcclctl kill: answered when the session has ended. */
void raw_kill_session(uint64_t session);
