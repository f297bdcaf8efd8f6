/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors by name, as copies; taking one leaves it in the store, as with the keeper. */
#include "tests/fuzz/memory_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "registry/store.h"

#define ENTRIES 512u

static struct entry {
	char name[STORE_NAME_MAX];
	int fd;
	bool is_wanted; /* added or taken by this process */
} entries[ENTRIES];
static unsigned int count;

static struct entry *entry_find(const char *name)
{
	for (unsigned int i = 0; i < count; i++)
		if (strcmp(entries[i].name, name) == 0)
			return &entries[i];
	return NULL;
}

static void store_remove_entry(void *data, const char *name)
{
	struct entry *entry = entry_find(name);

	if (!entry)
		return;
	close(entry->fd);
	count--;
	*entry = entries[count];
}

static int store_add_entry(void *data, const char *name, int fd)
{
	int copy;

	store_remove_entry(data, name);
	if (count == ENTRIES)
		return -EDQUOT;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (copy < 0)
		return -EDQUOT;
	entries[count] = (struct entry){ .fd = copy, .is_wanted = true };
	strcpy(entries[count++].name, name);
	return 0;
}

static int store_take_entry(void *data, const char *name)
{
	struct entry *entry = entry_find(name);

	if (!entry || entry->is_wanted)
		return -ENOENT;
	entry->is_wanted = true;
	return fcntl(entry->fd, F_DUPFD_CLOEXEC, 3);
}

const struct descriptor_store *memory_store(void)
{
	static const struct descriptor_store store = {
		.add = store_add_entry, .remove = store_remove_entry, .take = store_take_entry
	};

	return &store;
}

unsigned int memory_store_count(void)
{
	return count;
}

void memory_store_restart(void)
{
	for (unsigned int i = 0; i < count; i++)
		entries[i].is_wanted = false;
}

void memory_store_drop_rest(void)
{
	for (unsigned int i = count; i-- > 0;)
		if (!entries[i].is_wanted)
			store_remove_entry(NULL, entries[i].name);
}
