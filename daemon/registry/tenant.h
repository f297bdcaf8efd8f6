/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose processes may share memory: a uid in a user namespace, and if so configured in one pod, job
 * or login session. A tenant has a yard and lives while it has sessions. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slots.h"
#include "engine/view.h"
#include "proto/limits.h"

struct quota;
struct registry;
struct record_tenant;

/* Which tenant a process belongs to, as found out when its session starts. */
struct tenant_key {
	uint32_t uid;
	bool is_private;	 /* the uid is nobody's: a tenant of its own */
	uint64_t user_namespace; /* inode; 0: could not be found out, which matches its like */
	char cgroup[HCCLD_CGROUP_MAX]; /* cut, see base/cgroup.h; "": does not count */
};

struct tenant {
	struct list link;
	struct registry *registry;
	uint64_t id;
	struct tenant_key key;
	struct quota *quota;
	uint32_t record, key_record;
	bool has_key_record;
	uint32_t session_count;
	int yard_fd;
	uint64_t yard_bytes;
	struct view_yard view;
	struct slots contexts; /* places in the yard */
	bool is_scheduled;     /* the scheduler knows the yard */
	bool is_leaving;       /* the scheduler is forgetting it: nobody joins any more */
};

/* The tenant of @key, made if need be. -EDQUOT: too many; -EUSERS: too many of one user. */
int tenant_get(struct registry *registry, const struct tenant_key *key,
	       struct tenant **ret_tenant);
/*
 * From its record at @index; takes @yard_fd. Its key is that of a record of its own, see
 * tenant_restore_key(); until then the uid alone.
 */
int tenant_restore(struct registry *registry, uint32_t index, int yard_fd);
/* @index of a record of the kind RECORD_TENANT_KEY. -ENOENT: there is no such tenant. */
int tenant_restore_key(struct registry *registry, uint32_t index);
/*
 * A tenant that release 0.1.0 has made: takes the key of one of its processes, and records it.
 * The cgroup did not count then.
 */
void tenant_adopt_key(struct tenant *tenant, uint64_t user_namespace);
/* Out of registry, store and records, and freed: no sessions, not scheduled. */
void tenant_remove(struct tenant *tenant);
/* Memory of this process only. */
struct tenant *tenant_free(struct tenant *tenant);
