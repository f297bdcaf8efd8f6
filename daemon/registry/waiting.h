/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the heads of all streams wait for, read from shared memory that clients can write at any
 * time: everything is copied once and checked, and the work is bounded. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registry/notify.h"

struct channel;
struct comm;
struct context;
struct registry;
struct segment;
struct session;
struct stream;

#define WAITING_CHANNEL 255u /* no task: a request of HcclChannelAcquire, awaited.h */

struct waiting {
	const struct session *session;
	uint32_t kind;		 /* enum task_kind, or WAITING_CHANNEL */
	const struct comm *comm; /* NULL: a copy or fill, or a kind without communicator */
	uint32_t stream;	 /* place in the session region; UINT32_MAX: none */
	uint32_t rank, peer;	 /* peer: UINT32_MAX if there is none; of a barrier the first that is missing, else the next rank */
	int32_t peer_pid;
	uint32_t direction; /* enum item_kind; 0: barrier */
	uint64_t bytes;
	uint64_t age_ms;
	uint64_t number;  /* of the barrier */
	bool is_entering; /* the engine has yet to look at this barrier: the number is what it will get */
	bool is_posted;	 /* the other side is there: data is moving, a host function runs; not if there is a lost_comm */
	/* The communicator that it belongs to, of which `rank` is ours: `comm`; of a notify of a channel or thread, or a kernel of the only rank of
	 * its context, that of the rank. NULL: none, or not known. The `peer` of a notify is who has the other end of the channel. */
	const struct comm *related;
	uint32_t event;	 /* TASK_WAIT_EVENT: its id */
	bool is_begun;	 /* TASK_HOST: it runs */
	bool is_behind;	 /* TASK_HOST: it has not begun, and another one of this stream has before */
	uint32_t blocks; /* TASK_HOST: of a host kernel; 0: it is a function */
	/* A host kernel that runs, and a rank that has ended or is stopped of a communicator of its context: the kernel may wait for that for ever. NULL: none */
	const struct comm *lost_comm;
	uint32_t lost_rank;
	bool lost_is_stopped; /* it has not ended, its process is stopped */
	uint64_t notify; /* TASK_NOTIFY_WAIT: 1 + its id on `device`; 0: one of another process */
	uint32_t device;
	const void *place; /* where it is */
	const struct segment *owner; /* that it is in, of whichever process; NULL: not known, nor is the rest */
	enum notify_purpose purpose;
	uint32_t notify_id, notify_index; /* on the owner's device; in the range that it was handed out with */
	uint32_t value;	/* of it; `number` is what it is compared with (proto/ring.h) */
	uint32_t compare; /* enum notify_compare */
	const struct channel *channel; /* WAITING_CHANNEL */
	uint32_t recorder; /* 1 + the stream that has yet to record it; 0: nobody is to */
	bool is_held;	 /* a send that waits for a limit of its tenant */
	uint64_t cursor; /* grows from one to the next */
};

struct waiting_filter {
	bool all_users;
	uint32_t uid;
	uint64_t after;		   /* cursor of the last one seen */
	uint32_t lanes_per_stream; /* at most */
};

/* Calls @found for each until it returns false. */
void waiting_walk(struct registry *registry, const struct waiting_filter *filter,
		  bool (*found)(void *data, const struct waiting *waiting), void *data);

/* As waiting_walk(), of all streams of one context, then of channels that its ranks acquire. */
void waiting_walk_context(const struct context *context, struct session *session,
			  bool (*found)(void *data, const struct waiting *waiting), void *data);

/* The same of one stream of @session. */
void waiting_walk_stream(struct session *session, const struct stream *stream,
			 bool (*found)(void *data, const struct waiting *waiting), void *data);
/* As its region says. */
int32_t waiting_member_pid(const struct comm *comm, uint32_t rank);
/* Has @rank entered the barrier @number? */
bool waiting_has_entered(const struct comm *comm, uint32_t rank, uint64_t number);

/* What a stream is at. */
struct stream_head {
	const char *kind; /* of the task at the head; NULL: nothing is queued */
	uint64_t age_ms;  /* since it is the head */
	uint32_t queued_tasks;
	bool is_waiting; /* for something that `waiting` tells; first for what is missing */
	struct waiting waiting;
};

void waiting_head(struct session *session, const struct stream *stream,
		  struct stream_head *ret_head);
