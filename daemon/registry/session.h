/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client process and the tables of what it owns. References are held by whatever works on the
 * session's objects outside the loop (jobs, calls to the engine); the memory goes when the session
 * was removed and nobody holds one. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/line.h"
#include "base/list.h"
#include "base/slots.h"
#include "engine/view.h"
#include "proto/limits.h"
#include "registry/account.h"
#include "registry/look.h"
#include "registry/quota.h"

struct context;
struct rank;
struct record_session;
struct registry;
struct segment;
struct stream;
struct tenant;

/* One table, as in each the first few are used. */
struct session_place {
	struct stream *stream;	 /* by place in the region */
	struct segment *segment; /* by VIEW_INDEX() of its id */
	struct rank *rank;	 /* by VIEW_INDEX() of its handle */
};

struct session {
	struct list link; /* in registry->sessions until session_remove() */
	struct registry *registry;
	struct tenant *tenant;
	struct quota *quota;	     /* a reference: it outlives the tenant */
	uint64_t held[QUOTA_KINDS];  /* charged to the quota, see session_take() */
	struct view_session view; /* id, pid, region and the engine's tables */
	uint32_t uid, version;
	uint32_t features; /* HCCLD_FEATURE_... that client and daemon have */
	uint64_t started_ns;
	char process[HCCLD_PROCESS_NAME_MAX], library[40];
	uint32_t record;
	int region_fd;
	struct context *contexts[HCCLD_DEVICES_MAX]; /* by device; closing ones are not here */
	struct session_place *places;
	struct slots stream_slots, segment_slots, rank_slots;
	struct holder *holders; /* per device, then host memory */
	struct list joiners;	/* joins that wait for other ranks */
	struct list teardowns;	/* control/teardown.h: one at a time */
	struct line line;	/* of the calls about it */
	struct list cores;	/* cores.h */
	struct look notify_look; /* of notifies_collect() */
	uint32_t joiner_count, root_infos;
	uint32_t export_count, thread_count;
	uint32_t channel_waiters; /* control/channel_wait.h: what its requests wait for */
	uint32_t references;
	int32_t exit; /* wait status once it has ended, -1 unknown */
	bool is_socket_stored;
	bool is_restored;			/* by this process from the registry */
	bool is_broken;				/* restored in part only: it has to end */
	int restored_socket_fd, restored_pidfd; /* until control takes them */
	int pidfd;				/* when its connection is gone; -1: the connection has it */
	bool leaves_remnant;			/* remnant.h: as it ends */
	bool is_going;				/* about to end, or ending: control->ending_count */
	bool is_ending;				/* no new objects */
	void *owner;				/* control's connection; NULL when that is gone */
};

struct session_identity {
	int32_t pid;
	uint32_t uid, version, features;
	const char *process, *library; /* as the client sent them */
};

/*
 * A new session: region, descriptors in the store, record. @socket_fd and @pidfd stay the caller's.
 * -EUSERS: the tenant has as many as it may; -EDQUOT: no room or no descriptors; others from making
 * memory.
 */
int session_new(struct registry *registry, struct tenant *tenant,
		const struct session_identity *identity, int socket_fd, int pidfd,
		struct session **ret_session);
/*
 * From its record at @index, with its descriptors from the store. -ENOENT: one of them is missing; *ret_pidfd is that of one that had
 * ended, as its missing socket says, or else -1.
 */
int session_restore(struct registry *registry, struct tenant *tenant, uint32_t index,
		    struct session **ret_session, int *ret_pidfd);
/*
 * Out of registry, store and records; all its objects are gone already. Drops the registry's
 * reference.
 */
void session_remove(struct session *session);
/*
 * The store's copy of the socket goes, so that the client sees a hang-up: when the session ends.
 */
void session_unstore_socket(struct session *session);
/*
 * Memory of this process only, with all objects: after session_remove(), or when the daemon stops.
 */
struct session *session_free(struct session *session);

struct session *session_ref(struct session *session);
void session_unref(struct session *session);

/* An id for the object at @index, recorded as used before it returns. */
uint64_t session_next_id(struct session *session, uint32_t index);
/* Has @id been given by this session, now or earlier? */
bool session_gave_id(const struct session *session, uint64_t id);

struct context *session_context(struct session *session, uint64_t id); /* NULL: none */
struct segment *session_segment(struct session *session, uint64_t id);
struct rank *session_rank(struct session *session, uint64_t handle);
struct stream *session_stream_at(struct session *session, uint32_t index);

/* @device: a device, or HCCLD_DEVICES_MAX for host memory. */
struct account *session_account(struct session *session, uint32_t device,
				struct holder **ret_holder);
/* -EDQUOT: the device, or host memory, has no more; -EUSERS: the tenant may not have more. */
int session_charge(struct session *session, uint32_t device, uint64_t bytes);
/* What exists already: after a restart. */
void session_force(struct session *session, uint32_t device, uint64_t bytes);
void session_refund(struct session *session, uint32_t device, uint64_t bytes);
uint64_t session_memory(const struct session *session);

/* Counts @amount more against the session's tenant. -EDQUOT: the limit is reached. */
int session_take(struct session *session, enum quota_kind kind, uint64_t amount);
/* What exists already: after a restart. */
void session_take_back(struct session *session, enum quota_kind kind, uint64_t amount);
void session_give(struct session *session, enum quota_kind kind, uint64_t amount);
