/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapping with guards is made within reserved addresses, so there is no moment at which something else could come to lie beside it.
 * Guards of neighbours are one mapping in the kernel, so each mapping costs about two. Which ones have guards is in a table.
 */
#include "client/mapping.h"

#include "client/table.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define GUARDED_MAX 8192u /* an eighth of the mappings that a process can have, with the usual vm.max_map_count */
#define BUCKETS 1024u
#define NONE 0u

/* Places of the table, by number from 1 on. */
static struct {
	uintptr_t base;
	uint16_t next;
} places[GUARDED_MAX + 1] HCCLD_TABLE;
static uint16_t buckets[BUCKETS];
static uint16_t first_spare, used_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static uint16_t *bucket_of(uintptr_t base)
{
	return &buckets[((uint64_t)base >> 12) * UINT64_C(0x9e3779b97f4a7c15) >> 54];
}

/* False: there are as many as there may be. */
static bool remember(uintptr_t base)
{
	uint16_t *bucket = bucket_of(base), place;

	pthread_mutex_lock(&mutex);
	place = first_spare;
	if (place != NONE)
		first_spare = places[place].next;
	else if (used_count < GUARDED_MAX)
		place = ++used_count;
	if (place != NONE) {
		places[place].base = base;
		places[place].next = *bucket;
		*bucket = place;
	}
	pthread_mutex_unlock(&mutex);
	return place != NONE;
}

/* True: it was there. */
static bool forget(uintptr_t base)
{
	uint16_t *at = bucket_of(base), place;

	pthread_mutex_lock(&mutex);
	while ((place = *at) != NONE && places[place].base != base)
		at = &places[place].next;
	if (place != NONE) {
		*at = places[place].next;
		places[place].next = first_spare;
		first_spare = place;
	}
	pthread_mutex_unlock(&mutex);
	return place != NONE;
}

/* With both guards. */
static uint64_t guarded_size(uint64_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page + 2 * HCCLD_GUARD;
}

static void *map(void *address, int fd, uint64_t offset, uint64_t size, int protection, int flags)
{
	flags |= fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
	return mmap(address, size, protection, flags, fd, (off_t)offset);
}

static void keep_private(void *base, uint64_t size)
{
	(void)madvise(base, size, MADV_DONTFORK);
	(void)madvise(base, size, MADV_DONTDUMP);
}

/* NULL: there is no room for guards. */
static void *map_guarded(int fd, uint64_t offset, uint64_t size, int protection)
{
	const uint64_t whole = guarded_size(size);
	char *reserved = map(NULL, -1, 0, whole, PROT_NONE, 0);
	char *base = reserved + HCCLD_GUARD;

	if (reserved == MAP_FAILED)
		return NULL;
	if (map(base, fd, offset, size, protection, MAP_FIXED) == MAP_FAILED || !remember((uintptr_t)base)) {
		munmap(reserved, whole);
		return NULL;
	}
	keep_private(reserved, whole);
	return base;
}

void *hccld_mapping_new(int fd, uint64_t offset, uint64_t size, int protection)
{
	void *base = map_guarded(fd, offset, size, protection);

	if (base)
		return base;
	base = map(NULL, fd, offset, size, protection, 0);
	if (base == MAP_FAILED)
		return NULL;
	keep_private(base, size);
	return base;
}

void hccld_mapping_free(const volatile void *base, uint64_t size)
{
	char *start = (char *)(uintptr_t)base;

	if (forget((uintptr_t)base))
		munmap(start - HCCLD_GUARD, guarded_size(size));
	else
		munmap(start, size);
}
