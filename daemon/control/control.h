/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread's side of the daemon: sockets, requests, and the calls to the engine that they
 * lead to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/packet.h"

struct listener;
struct loop;
struct loop_timer;
struct loop_wake;
struct registry;
struct scheduler;
struct session;

struct control_options {
	const char *version, *soc_name, *socket_path;
	uint32_t copy_threads;
	bool allow_duplicate_items;
};

struct control {
	struct loop *loop;
	struct registry *registry;
	struct scheduler *scheduler;
	struct control_options options;
	struct listener *listener;
	struct list connections;
	uint32_t connection_count;
	struct loop_wake *wake;
	struct loop_timer *join_timer; /* the earliest deadline of all joins */
	uint64_t started_ns;
	bool is_stopping;     /* the scheduler is being freed: nothing more for the engine */
	struct packet packet; /* the one being read */
};

/*
 * Takes over the sessions that @registry has restored; @listen_fd stays the caller's. Serves when
 * it returns.
 */
int control_new(const struct control_options *options, struct loop *loop, struct registry *registry,
		int listen_fd, struct control **ret_control);
/* Those that can change while it serves: what new sessions get. Strings as at control_new(). */
void control_set_options(struct control *control, const struct control_options *options);
/*
 * Stops serving; sessions stay in the registry and the store. Before loop_free() and
 * registry_free(). Takes NULL.
 */
struct control *control_free(struct control *control);
