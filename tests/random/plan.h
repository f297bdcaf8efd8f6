/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the random test does, as a pure function of the seed: every rank computes the same plan for itself, so ranks need nothing but the
 * seed in common.
 *
 * A world is a set of ranks on devices, with communicators over some of them, and lives for some windows. A window is a few rounds; a round
 * is one batch of one communicator: each member with messages in it makes one call. Rounds of one stream are posted in their order, rounds
 * of different streams in any order; after a window each rank synchronizes its streams and looks at every byte.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PLAN_RANKS 16
#define PLAN_DEVICES 8
#define PLAN_COMMS 3
#define PLAN_STREAMS 3
#define PLAN_ROUNDS 6		/* of a window */
#define PLAN_MESSAGES 512	/* of a round */

struct plan_random {
	uint64_t state;
};

/* A generator of its own for what the numbers name. */
struct plan_random plan_random_of(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
uint64_t plan_next(struct plan_random *random);
/* 0 .. limit - 1 */
uint32_t plan_below(struct plan_random *random, uint32_t limit);
bool plan_chance(struct plan_random *random, uint32_t percent);

struct plan_comm {
	uint32_t size;
	uint32_t member[PLAN_RANKS];		/* rank of the world, by rank of the communicator */
	int32_t rank[PLAN_RANKS];		/* the other way round; -1: not a member */
	uint32_t stream[PLAN_RANKS];		/* which of its streams a rank of the world uses for this communicator */
};

struct plan_world {
	uint64_t seed;
	uint32_t index;
	uint32_t rank_count, device_count, comm_count;
	uint32_t window_count;
	uint32_t device[PLAN_RANKS];
	uint64_t arena;				/* bytes a rank may send, and receive, in one window */
	struct plan_comm comms[PLAN_COMMS];
};

/* @rank_count, @device_count: 0 = random. */
void plan_world(uint64_t seed, uint32_t index, uint32_t rank_count, uint32_t device_count, struct plan_world *ret_world);

struct plan_message {
	uint32_t source, destination;		/* ranks of the communicator */
	uint64_t bytes;
	uint64_t key;				/* of its contents */
	uint8_t send_type, receive_type;	/* HcclDataType; sizes fit */
	bool sends, receives;			/* a message of 0 bytes may have one side alone */
};

enum plan_kind { PLAN_BATCH, PLAN_SINGLE, PLAN_BARRIER };

struct plan_round {
	enum plan_kind kind;
	uint32_t comm;
	uint32_t message_count;
	struct plan_message messages[PLAN_MESSAGES];
};

struct plan_window {
	uint32_t round_count;
	struct plan_round rounds[PLAN_ROUNDS];
};

void plan_window(const struct plan_world *world, uint32_t index, struct plan_window *ret_window);
/* Bytes per element of what the test uses; 13 types. */
uint32_t plan_type_size(uint8_t type);
