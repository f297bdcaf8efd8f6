/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's descriptors by name. What the worker says about them is checked: it may be out of
 * its mind when it dies.
 */
#pragma once

#include <stdint.h>

#define KEEPER_NAME_MAX 64u

struct keeper_store {
	struct kept *first[1024]; /* hash of names */
	uint32_t count;
	uint64_t names_size; /* of LISTEN_FDNAMES: all names and a separator each */
};

/*
 * Takes @fd in every case. A name that is there already gets the new descriptor. -EINVAL: a bad
 * name; -EDQUOT: too many; -ENOMEM.
 */
int keeper_store_add(struct keeper_store *store, const char *name, int fd);
void keeper_store_remove(struct keeper_store *store, const char *name);
void keeper_store_clear(struct keeper_store *store);
/*
 * In a child that will exec: puts all descriptors at 3 and up, inheritable, and sets LISTEN_FDS,
 * LISTEN_PID and LISTEN_FDNAMES. Every other descriptor from 3 on is for this process to lose.
 */
int keeper_store_pass(struct keeper_store *store);
