/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where descriptors survive the daemon: systemd's descriptor store or the keeper's, behind
 * callbacks. Names are short (they all travel in one environment variable): a letter for the kind
 * and an id, or one of the fixed names below. Where letter and id would make a fixed name, the
 * letter is a capital: segment 32090 is "More".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct descriptor_store {
	void *data;
	/*
	 * The descriptor stays the caller's. -EDQUOT: the store is full. Returns only when the
	 * store will have it, whatever happens to us.
	 */
	int (*add)(void *data, const char *name, int fd);
	void (*remove)(void *data, const char *name);
	/*
	 * A descriptor that an earlier process of this daemon has stored; the caller's from now on.
	 * -ENOENT.
	 */
	int (*take)(void *data, const char *name);
};

/*
 * All names with a separator each: one string of the environment has at most 128 KiB (and execve()
 * fails beyond).
 */
#define STORE_NAMES_SIZE_MAX (120u << 10)

#define STORE_REGISTRY "registry"
#define STORE_REGISTRY_MORE "more"
#define STORE_BEACON "beacon"
#define STORE_EVENT "event"
#define STORE_LISTEN "listen"

enum store_kind {
	STORE_YARD = 'y',
	STORE_SOCKET = 's',
	STORE_PIDFD = 'p',
	STORE_REGION = 'r',
	STORE_SEGMENT = 'm',
	STORE_EXTENT = 'e',
};

#define STORE_NAME_MAX 32u

static inline bool store_name_is_fixed(const char *name)
{
	static const char *const fixed[] = { STORE_REGISTRY, STORE_REGISTRY_MORE, STORE_BEACON, STORE_EVENT, STORE_LISTEN };

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		if (strcmp(name, fixed[i]) == 0)
			return true;
	return false;
}

static inline const char *store_name(char name[STORE_NAME_MAX], enum store_kind kind, uint64_t id)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char *p = name + STORE_NAME_MAX - 1;

	*p = 0;
	do {
		*--p = digits[id % 36];
		id /= 36;
	} while (id);
	*--p = (char)kind;
	if (store_name_is_fixed(p))
		*p = (char)(kind - 'a' + 'A');
	return p;
}

static inline int store_add(const struct descriptor_store *store, enum store_kind kind, uint64_t id,
			    int fd)
{
	char name[STORE_NAME_MAX];

	return store->add(store->data, store_name(name, kind, id), fd);
}

static inline void store_remove(const struct descriptor_store *store, enum store_kind kind,
				uint64_t id)
{
	char name[STORE_NAME_MAX];

	store->remove(store->data, store_name(name, kind, id));
}

static inline int store_take(const struct descriptor_store *store, enum store_kind kind,
			     uint64_t id)
{
	char name[STORE_NAME_MAX];

	return store->take(store->data, store_name(name, kind, id));
}
