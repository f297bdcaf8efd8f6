/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the processes of one user, with tenant = uid+cgroup of one user in one cgroup, hold in all,
 * and how much they may. User namespaces make no difference here: a user can make any number of
 * them, and each would bring a full set of limits. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/view.h"
#include "proto/limits.h"
#include "registry/weights.h"

struct registry;
struct session;
struct text;

enum quota_kind {
	QUOTA_MEMORY, /* bytes: segments of all kinds, stream rings, communicator regions */
	QUOTA_SESSIONS,
	QUOTA_STREAMS,
	QUOTA_NOTIFIES,
	QUOTA_COMMS,	   /* with root infos that wait for ranks */
	QUOTA_DESCRIPTORS, /* of the daemon: sessions, segments, regions */
	QUOTA_REGISTRATIONS,
	QUOTA_CHANNELS,	   /* ends of channels */
	QUOTA_PENDING,	   /* bytes that are offered and not received: counted and held back by the engine */
	QUOTA_KINDS
};

/* UINT64_MAX: no limit. May change at any time; what is held stays. */
struct quota_limits {
	uint64_t values[QUOTA_KINDS];
	char weights[WEIGHTS_MAX]; /* of tenants, weights.h */
};

struct quota {
	struct list link; /* registry->quotas */
	struct registry *registry;
	uint64_t serial; /* grows along the list */
	uint32_t uid;
	char cgroup[HCCLD_CGROUP_MAX];
	uint64_t used[QUOTA_KINDS];
	/* no settings: of tables of the daemon's that one user must not fill (HCCLD_*_PER_USER) */
	uint32_t exports, imports, tenants, contexts, ranks, joiners, threads;
	uint64_t buffer_bytes; /* address space of HCCL buffers */
	struct view_share share; /* of the engine */
	uint32_t references;
};

/* Name of a kind for people and JSON, its setting in [limits], and whether it counts bytes. */
const char *quota_name(enum quota_kind kind);
const char *quota_setting(enum quota_kind kind);
bool quota_is_bytes(enum quota_kind kind);

/* The quota of @uid and @cgroup, made if need be, with a reference. NULL: out of memory. */
struct quota *quota_get(struct registry *registry, uint32_t uid, const char *cgroup);
struct quota *quota_ref(struct quota *quota);
/* Takes NULL. Freed with its last reference. */
struct quota *quota_unref(struct quota *quota);

/* -EDQUOT: more than the limit. */
int quota_charge(struct quota *quota, enum quota_kind kind, uint64_t amount);
/* How much more would be granted. */
uint64_t quota_left(const struct quota *quota, enum quota_kind kind);
/* Would @amount more be refused? */
bool quota_is_short(const struct quota *quota, enum quota_kind kind, uint64_t amount);
/* What exists already: after a restart, whatever the limit says now. */
void quota_force(struct quota *quota, enum quota_kind kind, uint64_t amount);
void quota_refund(struct quota *quota, enum quota_kind kind, uint64_t amount);

/* What is used of it now. */
uint64_t quota_used(const struct quota *quota, enum quota_kind kind);
/* Other limits, for all quotas there are and will be. */
void quotas_set_limits(struct registry *registry, const struct quota_limits *limits);
/* How much of it @session holds; communicators: ranks in them and unused root infos. */
uint64_t quota_held(const struct session *session, enum quota_kind kind);
/* The session that holds most, or NULL. */
struct session *quota_top(const struct quota *quota, enum quota_kind kind);
/* Is a send of @bytes held back because there are too many pending bytes? And why, in words. */
bool quota_holds_back(const struct quota *quota, uint64_t bytes);
void quota_describe_held(const struct quota *quota, struct text *text);
/* "uid 1000" or "uid 1000 in /slurm/uid_1000/job_42" */
void quota_describe_owner(const struct quota *quota, struct text *text);
/*
 * "memory of uid 1000: 12 of 12 GiB used, 1 GiB asked; most is held by pid 4711 train (8 GiB), ...;
 * raise [limits] memory_per_tenant; hcclctl config says where it is set"
 */
void quota_describe(const struct quota *quota, enum quota_kind kind, uint64_t asked,
		    struct text *text);
