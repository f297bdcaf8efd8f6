/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's descriptors by name. */
#include "daemon/keeper_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/cleanup.h"
#include "registry/store.h"

#define FIRST_FD 3

struct kept {
	struct kept *next;
	int fd;
	char name[KEEPER_NAME_MAX];
};

static struct kept **store_bucket(struct keeper_store *store, const char *name)
{
	uint32_t hash = 2166136261u;

	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	return &store->first[hash % (sizeof(store->first) / sizeof(store->first[0]))];
}

static struct kept **store_find(struct keeper_store *store, const char *name)
{
	struct kept **at = store_bucket(store, name);

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

static int name_check(const char *name)
{
	if (!*name || strlen(name) >= KEEPER_NAME_MAX)
		return -EINVAL;
	for (const char *p = name; *p; p++)
		if (*p <= ' ' || *p >= 0x7f || *p == ':')
			return -EINVAL;
	return 0;
}

int keeper_store_add(struct keeper_store *store, const char *name, int fd)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	struct kept *kept;
	struct kept **at;

	if (name_check(name) < 0)
		return -EINVAL;
	at = store_find(store, name);
	if (*at) {
		close((*at)->fd);
		(*at)->fd = take_fd(&owned_fd);
		return 0;
	}
	if (store->names_size + strlen(name) + 1 > STORE_NAMES_SIZE_MAX)
		return -EDQUOT;
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	strcpy(kept->name, name);
	kept->fd = take_fd(&owned_fd);
	*at = kept;
	store->count++;
	store->names_size += strlen(name) + 1;
	return 0;
}

static void store_drop(struct keeper_store *store, struct kept **at)
{
	struct kept *kept = *at;

	*at = kept->next;
	store->count--;
	store->names_size -= strlen(kept->name) + 1;
	close(kept->fd);
	free(kept);
}

void keeper_store_remove(struct keeper_store *store, const char *name)
{
	struct kept **at = store_find(store, name);

	if (*at)
		store_drop(store, at);
}

void keeper_store_clear(struct keeper_store *store)
{
	for (size_t i = 0; i < sizeof(store->first) / sizeof(store->first[0]); i++)
		while (store->first[i])
			store_drop(store, &store->first[i]);
}

/*
 * fds[i] to FIRST_FD + i, with one spare descriptor: what stands in the way and is still to be
 * moved goes elsewhere first. A store that is as large as the limit allows can so be passed.
 */
static int fds_arrange(int *fds, uint32_t count)
{
	int last = FIRST_FD + (int)count;

	for (uint32_t i = 0; i < count; i++) {
		int target = FIRST_FD + (int)i;

		if (fds[i] == target) {
			if (fcntl(target, F_SETFD, 0) < 0)
				return -errno;
			continue;
		}
		for (uint32_t k = i + 1; k < count; k++) {
			if (fds[k] != target)
				continue;
			fds[k] = fcntl(target, F_DUPFD_CLOEXEC, last);
			if (fds[k] < 0)
				return -errno;
		}
		if (dup2(fds[i], target) < 0)
			return -errno;
		close(fds[i]);
	}
	return 0;
}

static int store_set_environment(uint32_t count, const char *names)
{
	char number[16];

	snprintf(number, sizeof(number), "%u", count);
	if (setenv("LISTEN_FDS", number, 1) < 0 || setenv("LISTEN_FDNAMES", names, 1) < 0)
		return -ENOMEM;
	snprintf(number, sizeof(number), "%d", getpid());
	return setenv("LISTEN_PID", number, 1) < 0 ? -ENOMEM : 0;
}

int keeper_store_pass(struct keeper_store *store)
{
	CLEANUP(freep) int *fds = calloc(store->count + 1, sizeof(*fds));
	CLEANUP(freep) char *names = calloc(1, store->names_size + 1);
	uint32_t count = 0;
	size_t length = 0;
	int r;

	if (!fds || !names)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(store->first) / sizeof(store->first[0]); i++) {
		for (const struct kept *kept = store->first[i]; kept; kept = kept->next) {
			fds[count++] = kept->fd;
			length += (size_t)sprintf(names + length, "%s%s", length ? ":" : "",
						  kept->name);
		}
	}
	r = fds_arrange(fds, count);
	if (r < 0)
		return r;
	return store_set_environment(count, names);
}
