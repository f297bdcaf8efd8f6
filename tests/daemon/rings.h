/* SPDX-License-Identifier: Apache-2.0 */
/* The extents of a communicator, as a client maps them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/pair.h"
#include "tests/daemon/scene.h"

#define EXTENTS_MAX 16u

/* The extents that a rank has mapped. */
struct rings {
	uint32_t count, first[EXTENTS_MAX], pairs[EXTENTS_MAX];
	struct pair_ring *bases[EXTENTS_MAX];
};

void rings_free(struct rings *rings);
/* The ring that the directory names; NULL: none, or not mapped. */
struct pair_ring *rings_find(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination);
/* Its slot of offer @number; it is mapped. */
struct pair_offer *rings_slot(const struct rings *rings, const struct scene *scene, uint32_t source, uint32_t destination, uint64_t number);
/* Opens pairs to the ranks from 0 to @count - 1. What came is added to @rings, unless that is NULL; true: there is more. */
bool open_pairs(struct scene *scene, uint32_t rank, uint32_t count, uint32_t mapped, struct rings *rings);
/* Bytes that are sent and not received, as tools see them, and whose most of them are. */
uint64_t listed_pending(uint32_t *ret_pid);
