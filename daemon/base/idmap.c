/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing, linear probing, removal by shifting back: no tombstones, so it never degrades.
 */
#include "base/idmap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct idmap_entry {
	uint64_t id; /* 0: free */
	void *value;
};

static size_t idmap_home(const struct idmap *map, uint64_t id)
{
	/* ids are counters or random: a multiplicative hash spreads both */
	return (size_t)((id * 0x9e3779b97f4a7c15ull) >> 32) & (map->capacity - 1);
}

static size_t idmap_find(const struct idmap *map, uint64_t id)
{
	size_t i = idmap_home(map, id);

	while (map->entries[i].id && map->entries[i].id != id)
		i = (i + 1) & (map->capacity - 1);
	return i;
}

void idmap_deinit(struct idmap *map)
{
	free(map->entries);
	memset(map, 0, sizeof(*map));
}

static int idmap_grow(struct idmap *map)
{
	struct idmap larger = { .capacity = map->capacity ? map->capacity * 2 : 16,
				.count = map->count };

	larger.entries = calloc(larger.capacity, sizeof(*larger.entries));
	if (!larger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->entries[i].id)
			larger.entries[idmap_find(&larger, map->entries[i].id)] = map->entries[i];
	free(map->entries);
	*map = larger;
	return 0;
}

int idmap_set(struct idmap *map, uint64_t id, void *value)
{
	size_t i;
	int r;

	assert(id && value);
	if ((map->count + 1) * 4 > map->capacity * 3) {
		r = idmap_grow(map);
		if (r < 0)
			return r;
	}
	i = idmap_find(map, id);
	if (!map->entries[i].id)
		map->count++;
	map->entries[i] = (struct idmap_entry){ .id = id, .value = value };
	return 0;
}

void *idmap_get(const struct idmap *map, uint64_t id)
{
	if (!map->capacity || !id)
		return NULL;
	return map->entries[idmap_find(map, id)].value;
}

void *idmap_remove(struct idmap *map, uint64_t id)
{
	size_t hole, i;
	void *value;

	if (!map->capacity || !id)
		return NULL;
	hole = idmap_find(map, id);
	value = map->entries[hole].value;
	if (!value)
		return NULL;
	for (i = (hole + 1) & (map->capacity - 1); map->entries[i].id;
	     i = (i + 1) & (map->capacity - 1)) {
		size_t home = idmap_home(map, map->entries[i].id);

		/* an entry may move back only if its home is not behind the hole */
		if (((i - home) & (map->capacity - 1)) < ((i - hole) & (map->capacity - 1)))
			continue;
		map->entries[hole] = map->entries[i];
		hole = i;
	}
	map->entries[hole] = (struct idmap_entry){ 0 };
	map->count--;
	return value;
}
