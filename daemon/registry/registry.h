/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that exists in this daemon, and the two memories every client sees: the beacon and the
 * engine's eventfd. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/idmap.h"
#include "base/list.h"
#include "proto/yard.h"
#include "registry/account.h"
#include "registry/look.h"
#include "registry/quota.h"
#include "registry/record.h"
#include "registry/store.h"
#include "proto/clock.h"

struct comm;

struct device {
	struct account memory;
	uint32_t contexts, streams, notifies;
	uint64_t notify_bits[HCCLD_NOTIFIES_MAX / 64]; /* ids that are taken */
	uint32_t channels; /* ends */
	uint32_t cores; /* that streams hold */
};

struct registry_options {
	uint32_t device_count;
	uint64_t device_memory; /* per device */
	uint64_t host_memory;	/* pinned host memory, side buffers, communicator regions */
	uint32_t notifies;	/* per device */
	uint32_t cores_per_device;
	struct quota_limits limits;
};

struct registry {
	struct records *records;
	const struct descriptor_store *store;
	struct device *devices;
	uint32_t device_count;
	uint32_t notifies_per_device, cores_per_device;
	struct account host;
	struct holder comm_holder;	      /* communicator regions, in `host` */
	bool growths_linger;		      /* some communicator has what a rank that is gone has left (growth.h) */
	struct list tenants, sessions, comms; /* by growing id */
	struct list remnants; /* remnant.h */
	struct list quotas;
	struct list lazy; /* HCCL buffers, lazy.h */
	struct look lazy_look;
	uint64_t quota_serial;
	struct quota_limits limits; /* of each tenant; may change at any time */
	struct idmap session_ids, comm_ids, comm_keys;
	struct idmap export_keys; /* share.h */
	struct idmap registration_ids, channel_ids;
	uint32_t session_count, remnant_count, comm_count, stream_count;
	uint32_t undecided_notifies; /* ranges that are given back, and may have waits for which no record can come */
	bool failed_notifies;	     /* such waits are to end: the engine is to ring them, control/notifies.h */
	uint32_t failed_meetings; /* comm.h: kept for ranks that have not heard of it */
	int beacon_fd, event_fd;
	int beacon_read_only_fd; /* for clients */
	struct beacon *beacon;
	uint32_t root_infos; /* numbers the names of communicators */
	char node[64];
	/* set by who wants to know: a communicator that was ready goes */
	void *data;
	void (*comm_gone)(void *data, const struct comm *comm);
};

/*
 * Takes over what the store has of an earlier process: records, beacon, eventfd, not the objects
 * (registry_restore() in restore.h). A registry that cannot be used is reported and replaced.
 * *ret_inherited: something was taken over.
 */
int registry_new(const struct registry_options *options, const struct descriptor_store *store,
		 struct registry **ret_registry, bool *ret_inherited);
/*
 * No new sessions and communicators, until registry_undrain(); later processes find it in the
 * records. -ENOMEM.
 */
int registry_drain(struct registry *registry, uint32_t uid, int32_t pid);
void registry_undrain(struct registry *registry);
/* Who drains, and since when; NULL: nobody. */
const struct record_drain *registry_draining(const struct registry *registry);

/* Frees the objects of this process; the store and the records are left as they are. Takes NULL. */
struct registry *registry_free(struct registry *registry);


/* The id of this node, which is made when it is first asked for and stays as long as the registry. */
int registry_node(struct registry *registry, uint64_t *ret_node);
/* Some stream of a process that is there has a task that is not finished. A client can lie about that. */
bool registry_has_work(const struct registry *registry);
/* What clients find when they submit, or when the socket has hung up. */
void registry_set_stopping(struct registry *registry, enum beacon_stopping stopping);
/* Who moves the bytes between processes of a tenant: what clients find. The engine thread writes it, scheduler_set_path(). */
enum beacon_path registry_path(const struct registry *registry);
