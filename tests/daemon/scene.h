/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon with a keeper, two clients, and a communicator of theirs. */
#pragma once

#include <stdint.h>

#include "proto/region.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"

#define STRANGER 61001u
#define RANKS_MAX 128u

/* The first rank is the first client's, the rest the second's. */
struct scene {
	struct private_daemon daemon;
	struct raw_client clients[2];
	uint64_t contexts[2], ranks[RANKS_MAX];
	uint32_t size;
	struct comm_region *region; /* read-only */
};

/* @features: of both clients. */
void scene_start(struct scene *scene, uint32_t size, uint64_t features);
void scene_stop(struct scene *scene);
/* Another communicator of the same clients and size: @scene is a copy of one that was started. */
void scene_join(struct scene *scene);
/* Kills the worker and waits until the next one serves. */
void scene_kill_worker(void);
/* Another user for the calling process; users can reach the daemon. */
void scene_open_to_strangers(const struct scene *scene);
void scene_become_stranger(void);
