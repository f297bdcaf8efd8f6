/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread's side of the daemon: sockets, requests, and the calls to the engine that they
 * lead to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/packet.h"
#include "proto/yard.h"
#include "scheduler/scheduler.h"

struct cluster;
struct listener;
struct loop;
struct loop_timer;
struct loop_wake;
struct registry;
struct scheduler;
struct session;

/* A setting for people; strings are valid until the next call. */
struct control_setting {
	const char *section, *key, *initial, *help; /* of the program: always valid */
	const char *value, *where, *allowed;
	bool is_reloadable;
	uint32_t origin; /* Setting.Origin of control.proto */
};

/* What the configuration knows, which is above this layer. */
struct control_hooks {
	void *data;
	/* False: there are no more. */
	bool (*setting)(void *data, size_t index, struct control_setting *ret_setting);
	/* The files that were read, a line each. */
	const char *(*files)(void *data);
	void (*set_log_level)(void *data, uint32_t level, uint32_t uid);
};

struct control_options {
	struct control_hooks hooks;
	const char *version, *soc_name, *socket_path;
	uint32_t copy_threads;
	bool allow_duplicate_items;
	struct cluster *cluster; /* the caller's */
	/* these may change at any time */
	enum beacon_path local_path;
	bool tenant_has_cgroup;
	uint32_t connections_per_user, requests_per_user;
};

struct control {
	struct loop *loop;
	struct registry *registry;
	struct scheduler *scheduler;
	struct control_options options;
	struct listener *listener;
	struct list connections;
	uint32_t connection_count, reserved_count;
	struct list users;
	uint32_t user_count, client_users; /* client_users: with sessions */
	struct list turns;	       /* of users whose connections wait to be read */
	struct loop_timer *turn_timer; /* user.h */
	struct loop_wake *wake;
	struct list held; /* requests, retry.h */
	struct loop_timer *retry_timer;
	uint64_t retry_ns;	/* when that comes; 0: it does not */
	bool is_retry_of_all;	/* then */
	uint32_t ending_count; /* sessions that are about to end, or ending */
	struct loop_timer *lazy_timer; /* while there are HCCL buffers */
	struct loop_timer *notify_timer; /* notifies.h */
	struct scheduler_call notify_ring;
	bool is_notify_ringing, is_notify_timed; /* they are under way */
	uint64_t notify_after;	/* id of the last session that was looked at */
	struct loop_timer *growth_timer; /* growth_watch.h */
	struct scheduler_call growth_pass, growth_look;
	bool is_growth_passing, is_growth_timed; /* they are under way */
	bool is_growth_looked_for, is_growth_looked_for_again;
	uint64_t growth_comm; /* with which rank of which communicator the next look begins; 0: the first */
	uint32_t growth_rank;
	struct list channel_waits;	  /* channel_wait.h */
	struct loop_timer *channel_timer; /* the earliest deadline of these */
	struct loop_timer *join_timer; /* the earliest deadline of all joins */
	uint64_t started_ns;
	bool is_stopping;     /* the scheduler is being freed: nothing more for the engine */
	bool is_leaving;      /* SIGTERM: nothing new is begun */
	uint64_t leave_ns;    /* when what is left then is ended */
	struct packet packet; /* the one being read */
	uint32_t probe_count;	/* pings that the engine, or another node, has not answered */
	uint32_t monitor_count; /* connections that are sent events */
};

/*
 * Takes over the sessions that @registry has restored; @listen_fd stays the caller's. Serves when
 * it returns.
 */
int control_new(const struct control_options *options, struct loop *loop, struct registry *registry,
		int listen_fd, struct control **ret_control);
/* There is an HCCL buffer: what is touched of it is looked at from time to time. */
void control_watch_lazy(struct control *control);
/* Those that can change while it serves: what new sessions get. Strings as at control_new(). */
void control_set_options(struct control *control, const struct control_options *options);
/*
 * Stops serving; sessions stay in the registry and the store. Before loop_free() and
 * registry_free(). Takes NULL.
 */
struct control *control_free(struct control *control);
