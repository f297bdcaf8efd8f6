/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a rank has registered: a part of a segment of its session under a tag. Nobody else sees it until a channel (channel.h)
 * exchanges it. It goes with its rank, or with its segment. Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/limits.h"

struct rank;
struct registry;
struct segment;

struct registration {
	struct list link; /* rank->registrations, by growing id */
	struct rank *rank;
	uint64_t id;
	uint64_t segment; /* id within the session; that may be gone */
	uint64_t offset, bytes;
	uint32_t record;
	uint32_t channel_count; /* complete ones that exchange it */
	char tag[HCCLD_TAG_MAX];
};

/*
 * What the rank has registered of these bytes, or of some of them: NULL if nothing. *@ret_is_same: all of them, and under @tag.
 */
struct registration *registration_overlap(const struct rank *rank, uint64_t segment,
					  uint64_t offset, uint64_t bytes, const char *tag,
					  bool *ret_is_same);
/* -EUSERS: the tenant may have no more; -EDQUOT: the registry has no room. */
int registration_new(struct rank *rank, const struct segment *segment, uint64_t offset,
		     uint64_t bytes, const char *tag, struct registration **ret_registration);
/* NULL: @rank has none with that id. */
struct registration *registration_find(const struct rank *rank, uint64_t id);
/* Its segment, or NULL if that is gone. */
struct segment *registration_segment(const struct registration *registration);
/* Out of records and counts, and freed. */
void registration_remove(struct registration *registration);
void registrations_remove(struct rank *rank);
/* After all ranks. */
int registration_restore(struct registry *registry, uint32_t index);
/* Memory of this process only. */
void registrations_free(struct rank *rank);
