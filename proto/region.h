/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicator region, one per communicator, node and tenant. Extent 0: header, one member block per rank, the directory of pair
 * rings. Further extents: pair rings only. The daemon creates all of them; clients map extent 0 read-only.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
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
	/* line of the rank's executor */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t barriers;	/* barriers this rank has entered */
	/* asynchronous error of this rank: first one wins. 0 -> 1 (being written) -> 2 (valid) */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t async;
	struct fault fault;
};
static_assert(sizeof(struct comm_member) == 256, "four lines");

struct comm_region {
	uint32_t magic, version;
	uint32_t size;			/* ranks */
	uint32_t reserved;
	uint64_t comm;			/* id */
	uint64_t directory_offset;	/* bytes from here: size * size words, [source * size + destination], 1 + pair index or 0 */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t abort;	/* reason << 56 | rank << 32 | detail; 0 = none; one compare-and-swap */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint64_t barriers_done;
	_Alignas(HCCLD_CACHE_LINE) struct comm_member members[];
};

static inline uint64_t comm_region_size(uint32_t size)
{
	return sizeof(struct comm_region) + size * (uint64_t)sizeof(struct comm_member) + (uint64_t)size * size * sizeof(uint32_t);
}

static inline _Atomic uint32_t *comm_region_directory(struct comm_region *region, uint32_t size)
{
	return (_Atomic uint32_t *)((char *)region + sizeof(struct comm_region) + size * (uint64_t)sizeof(struct comm_member));
}
