/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Engine contexts: blocks of memory that an operator keeps under (communicator, engine, tag) from one call to the next. Those of the host's
 * engines are ordinary memory, those of the device's are device memory. They stay at their address until they are destroyed, by themselves
 * or with the communicator. Any thread.
 */
#pragma once

#include <stdint.h>

struct hccld_comm;

/* Which one. @tag: at most HCCLD_TAG_MAX - 1 bytes. */
struct hccld_engine_key {
	int engine; /* CommEngine */
	const char *tag;
};

/* Zeroed. @bytes > 0. -EINVAL: it exists; -ENOMEM, -ENOBUFS: there is no memory for it; -EBADF: the device was reset. Texts set. */
int hccld_engine_context_new(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t bytes, void **ret_memory);
/* -EINVAL: there is none; -EBADF: it went with its device. */
int hccld_engine_context_get(struct hccld_comm *comm, const struct hccld_engine_key *key, void **ret_memory, uint64_t *ret_bytes);
/* -EINVAL: there is none, or it ends before @offset + @bytes. */
int hccld_engine_context_write(struct hccld_comm *comm, const struct hccld_engine_key *key, uint64_t offset, const void *source,
			       uint64_t bytes);
int hccld_engine_context_free(struct hccld_comm *comm, const struct hccld_engine_key *key);
/* -EINVAL: device memory of one, which aclrtFree must leave. Text set, with @function. Fast if there is none. */
int hccld_engine_context_check_free(const char *function, const void *memory);
/* All: the communicator has no pins and is no longer alive. */
void hccld_engine_contexts_end(struct hccld_comm *comm);
