/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the heads of all streams wait for, read from shared memory that clients can write at any
 * time: everything is copied once and checked, and the work is bounded. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct comm;
struct context;
struct registry;
struct session;
struct stream;

struct waiting {
	const struct session *session;
	uint32_t kind;		 /* enum task_kind */
	const struct comm *comm; /* NULL: a copy or fill, or a kind without communicator */
	uint32_t stream;	 /* place in the session region */
	uint32_t rank, peer;	 /* peer: UINT32_MAX if there is none; of a barrier the first that is missing, else the next rank */
	int32_t peer_pid;
	uint32_t direction; /* enum item_kind; 0: barrier */
	uint64_t bytes;
	uint64_t age_ms;
	uint64_t number;  /* of the barrier */
	bool is_entering; /* the engine has yet to look at this barrier: the number is what it will get */
	bool is_posted;	 /* the other side is there: data is moving, a host function runs; not if there is a lost_comm */
	uint32_t event;	 /* TASK_WAIT_EVENT: its id */
	bool is_begun;	 /* TASK_HOST: it runs */
	uint32_t blocks; /* TASK_HOST: of a host kernel; 0: it is a function */
	/* A host kernel that runs, and a rank that has ended of a communicator of its context: the kernel may wait for that for ever. NULL: none */
	const struct comm *lost_comm;
	uint32_t lost_rank;
	uint64_t notify; /* TASK_NOTIFY_WAIT: 1 + its id on `device`; 0: one of another process */
	uint32_t device;
	const void *place; /* where it is */
	uint32_t value;	/* of it; `number` is what it is compared with (proto/ring.h) */
	uint32_t compare; /* enum notify_compare */
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

/* As waiting_walk(), of all streams of one context. */
void waiting_walk_context(const struct context *context, struct session *session,
			  bool (*found)(void *data, const struct waiting *waiting), void *data);

/* The same of one stream of @session. */
void waiting_walk_stream(struct session *session, const struct stream *stream,
			 bool (*found)(void *data, const struct waiting *waiting), void *data);
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
