/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators: from the root info, which is a key and a secret, through the ranks that join to
 * the region that they share. Control thread.
 *
 * A communicator is kept while the session that asked for the root info lives and nothing came of
 * it yet, while ranks wait in it, and once it is ready while it has ranks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/view.h"
#include "proto/status.h"
#include "registry/pairs.h"
#include "registry/rendezvous.h"

struct quota;
struct registry;
struct segment;
struct session;
struct text;

enum comm_state {
	COMM_JOINING,
	COMM_READY,
	COMM_FAILED, /* who joins later is told why */
};

/* How its ranks have met. */
enum comm_origin {
	COMM_ROOT_INFO = 0,
	COMM_TABLE = 1, /* of ranks */
	COMM_PART = 2,	/* of another communicator */
};

struct told {
	uint64_t session;
	uint32_t rank;
};

/* Ranks that wait, or have waited, apart from those of a communicator: two tables that differ, say. */
struct comm_rival {
	int32_t pid; /* 0: none */
	uint32_t rank, size;
	bool is_over;
};

struct comm {
	struct list link;
	struct registry *registry;
	uint64_t id;
	uint64_t key;	/* 0: it is complete, and the next ranks with its key make another one */
	uint64_t owner; /* id of the session that asked for the root info; 0: it has ended */
	enum comm_origin origin;
	uint64_t parent;	/* COMM_PART: id of the whole */
	uint64_t part;		/* COMM_PART: subCommId */
	uint32_t *part_members; /* COMM_PART: ranks in the whole; NULL: not known */
	uint32_t part_count;	/* of these */
	struct comm_settings settings;
	uint64_t started_ns;
	uint32_t uid;
	uint64_t tenant;     /* id; 0: not known yet, after a restart */
	struct quota *quota; /* a reference; who pays. NULL: not known yet */
	enum comm_state state;
	unsigned char secret[HCCLD_SECRET_BYTES];
	char name[HCCLD_COMM_NAME_MAX], udi[HCCLD_UDI_MAX];
	uint32_t record;
	struct rendezvous rendezvous;
	struct comm_rival rival; /* that has waited */
	enum cause failure;
	char *failure_text;
	uint64_t failed_ns;
	struct told *told; /* who has heard of the failure */
	uint32_t told_count, told_room;
	/* when ready */
	struct view_comm view;
	struct rank **ranks; /* [view.size], NULL: left or dead */
	uint32_t rank_count;
	struct list extents;
	struct extent *newest_pairs; /* the only one that may have room; NULL: there is none */
	uint32_t pair_count;
	uint32_t pair_next; /* 1 + number of the newest ring */
	uint32_t pair_room; /* numbers below this are taken by extents */
	uint64_t memory;    /* of all extents, charged to the host account */
	uint64_t memory_of[EXTENT_KINDS]; /* the same by kind */
	bool lingers, is_retracted; /* growth.h */
	bool is_put_off;		/* what the engine misses was refused the last time, once */
};

struct rank {
	struct list link; /* context->ranks, or a teardown once it is closing */
	struct comm *comm;
	struct session *session;
	struct context *context;
	uint32_t rank;
	uint64_t handle;  /* within the session */
	uint64_t request; /* id of the request that joined */
	uint32_t record;
	bool is_closing;
	struct segment *buffer; /* HCCL buffer, lazy.h; NULL: it has none */
	char name[HCCLD_COMM_NAME_MAX]; /* as its process calls the communicator */
	struct list registrations, channels; /* registration.h, channel.h */
	uint32_t channel_count; /* with those that are closing */
};

/* A root info of @session. -EDQUOT: too many; -EUSERS: more than the tenant may have. */
int comm_new(struct session *session, struct comm **ret_comm);
/*
 * One whose ranks meet without a root info, by @key and @secret (HCCLD_SECRET_BYTES); @session is
 * the first.
 */
int comm_new_meeting(struct session *session, enum comm_origin origin, uint64_t key,
		     const unsigned char *secret, const char *name, struct comm **ret_comm);
int comm_restore(struct registry *registry, uint32_t index, struct comm **ret_comm);
/* After a restart: the tenant of @session has it, and pays. */
void comm_set_tenant(struct comm *comm, const struct session *session);
struct comm *comm_find(struct registry *registry, uint64_t key);

/*
 * All joiners are there: makes the region and the ranks. The joiners stay the caller's. On failure
 * nothing has changed.
 */
int comm_form(struct comm *comm);
/*
 * No rank will come any more. Without a root info it is kept all the same, for ranks that have not
 * heard of it.
 */
void comm_fail(struct comm *comm, enum cause cause, const char *text);
/* The rank of @session has heard of the failure; was it so before? */
void comm_tell(struct comm *comm, const struct session *session, uint32_t rank);
bool comm_was_told(const struct comm *comm, const struct session *session, uint32_t rank);
/* One that has failed is forgotten: the same ranks try again. */
void comm_forget(struct comm *comm);
/* A session ends: failed ones that no process is left for to hear of are forgotten. */
void comms_forget_failed(struct registry *registry);
/* The session that asked for the root info ends. */
void comm_owner_ends(struct comm *comm);
/* Removes it if nothing keeps it. True: it is gone. */
bool comm_collect(struct comm *comm);
/* Memory of this process only. */
struct comm *comm_free(struct comm *comm);

/*
 * The member word, before engine_rank_detach(): MEMBER_LEFT, or MEMBER_DEAD with the wait status.
 */
void rank_announce(struct rank *rank, enum member_word word, int32_t exit);
/*
 * The words of HcclCommSuspend and HcclCommResume, before engine_rank_suspend() and
 * engine_rank_resume(). Twice is as once.
 */
void rank_suspend(struct rank *rank);
void rank_resume(struct rank *rank);
/* From its record; the communicator is restored already. -EPROTO. */
int rank_restore(struct context *context, uint32_t index, struct comm *comm);
/*
 * After engine_rank_detach(): out of records and tables, and freed; the communicator goes with its
 * last rank.
 */
void rank_remove(struct rank *rank);
