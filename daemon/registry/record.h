/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: what must outlive this process, as records in a memfd that is in the descriptor
 * store. Tables of fixed places, one per kind. A record becomes valid by its last word and invalid
 * by clearing it, so that a process killed between any two stores leaves records that are either
 * whole or not there. Nobody but the daemon maps it. Control thread.
 *
 * A daemon reads the records of the releases before it (upgrade in place keeps sessions). So a struct
 * never changes, and a kind of record comes at the end. The kinds of the first release are in a memfd
 * whose size is fixed for ever; later ones are in a second one, which has room, and which says where
 * each table is. A release that does not know the second one goes on without it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/limits.h"

enum record_kind {
	RECORD_TENANT,
	RECORD_SESSION,
	RECORD_CONTEXT,
	RECORD_STREAM,
	RECORD_SEGMENT,
	RECORD_COMM,
	RECORD_RANK,
	RECORD_EXTENT,
	RECORD_FIRST_KINDS, /* those of release 0.1.0 */
	RECORD_DRAIN = RECORD_FIRST_KINDS,
	RECORD_TENANT_KEY,
	RECORD_EXPORT,
	RECORD_IMPORT,
	RECORD_NOTIFIES,
	RECORD_THREAD,
	RECORD_REGISTRATION,
	RECORD_CHANNEL,
	RECORD_CORES,
	RECORD_LAZY,
	RECORD_GROWTH,
	RECORD_NODE,
	RECORD_KINDS
};

/*
 * Each ends with `valid`, which records_add() writes. Ids are the daemon's unless said otherwise.
 */
struct record_tenant {
	uint64_t id;
	uint32_t uid, reserved;
	_Atomic uint64_t valid;
};

struct record_session {
	uint64_t id, tenant;
	uint64_t started_ns;
	/* of ids within the session: grows, stored before the id is used */
	_Atomic uint64_t generation;
	int32_t pid;
	uint32_t uid, version;
	uint32_t features; /* HCCLD_FEATURE_... that both sides have; 0 of release 0.1.0 */
	char process[HCCLD_PROCESS_NAME_MAX];
	char library[40];
	_Atomic uint64_t valid;
};

struct record_context {
	uint64_t session, id; /* id within the session */
	uint32_t device, yard_index;
	_Atomic uint64_t valid;
};

struct record_stream {
	uint64_t session, context;
	uint32_t index, reserved;
	_Atomic uint64_t valid;
};

struct record_segment {
	uint64_t session, context;
	uint64_t id;	 /* within the session */
	uint64_t serial; /* names the descriptor */
	uint64_t bytes;
	uint32_t kind;
	_Atomic uint32_t retired; /* enum segment_retired */
	_Atomic uint64_t valid;
};

enum segment_retired {
	SEGMENT_RETIRED = 1, /* it is being freed: the next process goes on with that */
	SEGMENT_ORPHAN = 2,  /* it goes with the last import of it */
};

struct record_comm {
	uint64_t id, key, owner; /* owner: session that asked for the root info */
	uint64_t started_ns;
	uint32_t uid;
	_Atomic uint32_t size; /* stored before `ready` */
	_Atomic uint32_t ready;
	uint32_t origin; /* enum comm_origin; 0 in records of release 0.1 */
	unsigned char secret[HCCLD_SECRET_BYTES];
	char name[HCCLD_COMM_NAME_MAX];
	char udi[HCCLD_UDI_MAX];
	_Atomic uint64_t valid;
};

struct record_rank {
	uint64_t comm, session, context;
	uint64_t handle;  /* within the session */
	uint64_t request; /* id of the request that joined: it may come again */
	uint32_t rank, reserved;
	char name[HCCLD_COMM_NAME_MAX];
	_Atomic uint64_t valid;
};

struct record_extent {
	uint64_t comm, serial; /* serial names the descriptor */
	uint64_t bytes;
	uint32_t first, count; /* pair rings (struct pair_ring_first), 0 for the extent with the header */
	_Atomic uint64_t valid;
};

/* An administrator lets no new programs in. At most one. */
struct record_drain {
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t uid;	   /* who */
	int32_t pid;
	_Atomic uint64_t valid;
};

/* What makes a tenant beside the uid. None: a tenant of 0.1.0. */
struct record_tenant_key {
	uint64_t tenant;
	uint64_t user_namespace; /* inode; 0: unknown */
	uint32_t is_private, reserved;
	char cgroup[HCCLD_CGROUP_MAX];
	_Atomic uint64_t valid;
};

struct record_export {
	uint64_t session, segment; /* id within the session */
	uint64_t offset, bytes;
	uint64_t request; /* id of the request that made it: it may come again */
	uint32_t key_bytes, any_process;
	uint32_t reserved;
	_Atomic uint32_t pid_count; /* stored after pids */
	unsigned char key[HCCLD_KEY_BYTES_MAX];
	int32_t pids[HCCLD_EXPORT_PIDS_MAX];
	_Atomic uint64_t valid;
};

enum import_state {
	IMPORT_ALIVE = 0,
	IMPORT_LOST = 1,    /* its memory is gone */
	IMPORT_CLOSING = 2, /* it is being freed */
};

/* In `kind`: it came with a channel, whose id is in `export_id`; `request` is its position there (channel.h). */
#define IMPORT_OF_CHANNEL 0x100u

struct record_import {
	uint64_t session, context;
	uint64_t id;			 /* within the session */
	uint64_t origin_session, origin; /* whose memory it is */
	uint64_t export_id;
	uint64_t offset, bytes;
	uint64_t request;
	uint32_t kind;
	_Atomic uint32_t state; /* enum import_state */
	_Atomic uint64_t valid;
};

/* Notifies of a context that were made together. */
struct record_notifies {
	uint64_t session, context;
	uint64_t request; /* id of the request that made them: it may come again */
	uint32_t first, count;
	uint32_t purpose; /* enum notify_purpose */
	uint32_t part;	  /* of the request */
	_Atomic uint32_t is_closing;
	uint32_t reserved;
	_Atomic uint64_t valid;
};

struct record_thread {
	uint64_t session, context;
	uint64_t id, rank; /* within the session; rank 0: none */
	uint64_t request;  /* id of the request that made it: it may come again */
	uint32_t engine, stream, first_notify, notify_count;
	uint32_t is_own_stream, reserved; /* made with it, and goes with it */
	_Atomic uint64_t valid;
};

struct record_registration {
	uint64_t session;
	uint64_t id;		/* of the daemon: it grows along the list of a rank */
	uint64_t rank, segment; /* within the session */
	uint64_t offset, bytes;
	char tag[HCCLD_TAG_MAX];
	_Atomic uint64_t valid;
};

/* One end of a channel; the imports that it has brought are found by its id. */
struct record_channel {
	uint64_t session;
	uint64_t id;	       /* of the daemon */
	uint64_t rank, buffer; /* within the session */
	uint32_t peer, engine, protocol;
	uint32_t first_notify, notify_count;
	uint32_t registration_count;
	_Atomic uint32_t state; /* enum channel_state */
	uint32_t reserved;
	uint64_t registrations[HCCLD_CHANNEL_MEMORIES_MAX]; /* their ids, as offered */
	_Atomic uint64_t valid;
};

/* Vector cores that a stream holds, or a kernel that has outlived its stream. */
struct record_cores {
	uint64_t session, context;
	uint32_t stream, device;
	_Atomic uint32_t count;
	uint32_t reserved;
	_Atomic uint64_t rank;	   /* within the session, when the stream went; 0: none */
	_Atomic uint64_t since_ns; /* CLOCK_MONOTONIC, of that */
	_Atomic uint64_t holder;   /* the session's name for the kernel; 0: the stream holds them. Stored after all of this */
	_Atomic uint64_t valid;
};

/* The HCCL buffer of a rank, beside the record of its segment; written before that and removed after it. */
struct record_lazy {
	uint64_t session;
	uint64_t segment, rank; /* within the session */
	_Atomic uint64_t valid;
};

/* An extent of a communicator, but for extent 0 and pair rings as release 0.3 had them. */
struct record_growth {
	uint64_t comm, serial; /* serial names the descriptor */
	uint64_t bytes;
	uint32_t first, count; /* pair rings that would be in its place */
	uint32_t kind;	       /* enum extent_kind */
	uint32_t source, peer; /* of a pool and a wide ring; peer: of a pool, which of its rank */
	uint32_t slots;	       /* of a pool, a wide ring and each pair ring */
	_Atomic uint64_t valid;
};

/* Which node this is to others, as long as there is this registry. At most one. */
struct record_node {
	uint64_t id;
	_Atomic uint64_t valid;
};

struct records;

/*
 * @fd >= 0: a registry of an earlier process, which is checked (-EPROTO: not one of this layout).
 * @more_fd: what belongs to it of later kinds; -1: it is of release 0.1.0, which has none. Both -1: a
 * new one. The descriptors are taken in every case.
 */
int records_new(int fd, int more_fd, struct records **ret_records);
struct records *records_free(struct records *records);
int records_fd(const struct records *records);
int records_more_fd(const struct records *records);

/* A number that was never used, also by earlier processes. */
uint64_t records_next_id(struct records *records);
/*
 * Writes all of the kind's struct but `valid`, then `valid`. -EDQUOT: the table is full; -ENOMEM:
 * no memory behind it.
 */
int records_add(struct records *records, enum record_kind kind, const void *content,
		uint32_t *ret_index);
void records_remove(struct records *records, enum record_kind kind, uint32_t index);
/* The valid record or NULL. */
void *records_get(struct records *records, enum record_kind kind, uint32_t index);
/* Indices below this may be valid. */
uint32_t records_limit(const struct records *records, enum record_kind kind);

/* Bytes that are backed. */
uint64_t records_bytes(const struct records *records);

/*
 * How many processes in a row this registry has ended within 10 s of their start: counts this
 * start. records_settled() after that time resets it.
 */
uint32_t records_count_start(struct records *records);
void records_settled(struct records *records);
