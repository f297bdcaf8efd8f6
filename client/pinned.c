/* SPDX-License-Identifier: Apache-2.0 */
/* The list of registered host memory. */
#include "client/pinned.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "client/error.h"
#include "client/session.h"

struct range {
	struct range *next;
	const char *start;
	uint64_t bytes;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;

/* With `mutex`: where the range that shares something with [@start, + @bytes) hangs, or NULL. */
static struct range **range_find(const char *start, uint64_t bytes)
{
	for (struct range **at = &ranges; *at; at = &(*at)->next)
		if (start < (*at)->start + (*at)->bytes && (*at)->start < start + bytes)
			return at;
	return NULL;
}

int hccld_pinned_add(void *start, uint64_t bytes)
{
	struct range *range = calloc(1, sizeof(*range));
	bool is_new;

	if (!range)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to register memory");
	range->start = start;
	range->bytes = bytes;
	pthread_mutex_lock(&mutex);
	is_new = !range_find(start, bytes);
	if (is_new) {
		range->next = ranges;
		ranges = range;
	}
	pthread_mutex_unlock(&mutex);
	if (is_new)
		return 0;
	free(range);
	return hccld_error(CAUSE_HOST_REGISTERED,
			   "memory of [%p, + %" PRIu64 ") is registered already; call aclrtHostUnregister first",
			   start, bytes);
}

static int unknown(const void *address)
{
	return hccld_error(CAUSE_HOST_NOT_REGISTERED,
			   "the memory at %p was not registered by aclrtHostRegister", address);
}

int hccld_pinned_remove(void *start)
{
	struct range *range = NULL, **at;

	pthread_mutex_lock(&mutex);
	at = range_find(start, 1);
	if (at && (*at)->start == start) {
		range = *at;
		*at = range->next;
	}
	pthread_mutex_unlock(&mutex);
	if (!range)
		return unknown(start);
	free(range);
	return 0;
}

int hccld_pinned_find(const void *address)
{
	bool found;

	pthread_mutex_lock(&mutex);
	found = range_find(address, 1) != NULL;
	pthread_mutex_unlock(&mutex);
	return found ? 0 : unknown(address);
}
