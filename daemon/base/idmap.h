/* SPDX-License-Identifier: Apache-2.0 */
/* Map from a 64-bit id (never 0) to a pointer it does not own. Zeroed memory is an empty map. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct idmap {
	struct idmap_entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

void idmap_deinit(struct idmap *map);
/* Adds or replaces. -ENOMEM. */
int idmap_set(struct idmap *map, uint64_t id, void *value);
void *idmap_get(const struct idmap *map, uint64_t id);
/* The value that was there, or NULL. */
void *idmap_remove(struct idmap *map, uint64_t id);
