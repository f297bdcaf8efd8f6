/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicator region, one per communicator, node and tenant. Extent 0: header, one member block per rank, the directory of pair
 * rings. Further extents: pair rings only. The daemon creates all of them; clients map extent 0 read-only.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/pair.h"

#define COMM_REGION_MAGIC 0x434f4d4du	/* "COMM" */
#define COMM_REGION_VERSION 1u

enum member_word {
	MEMBER_ABSENT = 0,
	MEMBER_ALIVE = 1,
	MEMBER_LEFT = 2,	/* HcclCommDestroy */
	MEMBER_DEAD = 3,	/* its process ended */
};

struct comm_member {
	/* control thread's line */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t word;	/* enum member_word; pid and exit are stored before it */
	uint32_t incarnation;
	_Atomic int32_t pid;		/* for texts only: nothing is decided by it */
	_Atomic int32_t exit;		/* wait status once dead, -1 unknown */
	uint32_t context;		/* index in the tenant's yard */
	uint32_t device;
	/* tasks carry it; even: runs, odd: suspended. Grows by 1 with each HcclCommSuspend and HcclCommResume */
	_Atomic uint32_t epoch;
	/*
	 * Grows before memory of the rank's context that a peer may have mapped is taken away: a copy from it counts only if this, read
	 * after it, is what it was when the mapping was asked for.
	 */
	_Atomic uint32_t retired;
	_Atomic uint64_t suspended_at;	/* number of the newest suspension of this rank, counted in the communicator; 0 = none */
	_Atomic uint64_t resumed_at;	/* the communicator's suspensions when this rank was resumed */
	/* line of the rank's executor */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t barriers;	/* barriers this rank has entered */
	/* asynchronous error of this rank: first one wins. 0 -> 1 (being written) -> 2 (valid); 0 again when the rank is resumed */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t async;
	struct fault fault;
};
static_assert(sizeof(struct comm_member) == 256, "four lines");
static_assert(offsetof(struct comm_member, barriers) == HCCLD_CACHE_LINE, "the control thread's line is one");

#define COMM_QOS_MAX 7u		/* of hcclQos: 0 to this, higher is better */
#define COMM_QOS_DEFAULT 6u	/* if nobody says otherwise */

/* What the program has set; 0 in a region of release 0.1. */
struct comm_settings {
	uint8_t op_expansion_mode;	/* as hcclOpExpansionMode */
	uint8_t deterministic;
	uint8_t retry_levels;		/* bit i: level i */
	uint8_t retry_count;
	uint16_t retry_hold_ms, retry_interval_ms;
	uint32_t buffer_mb;
	uint8_t qos;			/* 1 + hcclQos; 0: not set */
	uint8_t reserved[3];
};
static_assert(sizeof(struct comm_settings) == 16, "layout");

/* Of a communicator's large messages among those of its tenant. What says nothing is no worse than what says the default. */
static inline uint32_t comm_settings_weight(const struct comm_settings *settings)
{
	return settings->qos && settings->qos <= 1 + COMM_QOS_MAX ? settings->qos : 1 + COMM_QOS_DEFAULT;
}

struct comm_region {
	uint32_t magic, version;
	uint32_t size;			/* ranks */
	uint32_t pair_room;		/* the daemon's: numbers of pair rings below this were taken once */
	uint64_t comm;			/* id */
	uint64_t directory_offset;	/* bytes from here: size * size words, [source * size + destination], 1 + pair index or 0 */
	uint64_t parent;		/* id of the communicator that this one is a part of; 0: none */
	struct comm_settings settings;
	_Atomic uint64_t suspensions;	/* of all ranks, ever; control thread */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t abort;	/* reason << 56 | rank << 32 | detail; 0 = none; one compare-and-swap */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t barriers_done;
	_Alignas(HCCLD_CACHE_LINE) struct comm_member members[];
};

static_assert(offsetof(struct comm_region, abort) == HCCLD_CACHE_LINE && sizeof(struct comm_region) == 192, "as in release 0.1");

static inline uint64_t comm_region_size(uint32_t size)
{
	return sizeof(struct comm_region) + size * (uint64_t)sizeof(struct comm_member) + (uint64_t)size * size * sizeof(uint32_t);
}

static inline _Atomic uint32_t *comm_region_directory(struct comm_region *region, uint32_t size)
{
	return (_Atomic uint32_t *)((char *)region + sizeof(struct comm_region) + size * (uint64_t)sizeof(struct comm_member));
}
