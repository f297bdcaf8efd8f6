/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that processes of a tenant share. An export is a key to a part of a segment; an import is a segment of another session in the
 * same memory, which has no descriptor and no account of its own. The owner decides: when its segment is retired, all imports are lost.
 * Control thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "proto/limits.h"
#include "proto/status.h"

struct context;
struct registry;
struct segment;
struct session;

struct export {
	struct list link; /* segment->exports */
	struct segment *segment;
	uint64_t offset, bytes;
	uint64_t request; /* id of the request that made it: it may come again */
	uint32_t record;
	uint32_t key_bytes;
	bool any_process;
	unsigned char key[HCCLD_KEY_BYTES_MAX];
};

/*
 * @key_bytes: 8 or HCCLD_KEY_BYTES_MAX. -EDQUOT: the session or the registry has no room for more; -EUSERS: the user
 * has too many.
 */
int export_new(struct segment *segment, uint64_t offset, uint64_t bytes, uint32_t key_bytes,
	       bool any_process, uint64_t request, struct export **ret_export);
/* Of all sessions; NULL: there is none. */
struct export *export_find(const struct registry *registry, const void *key, size_t key_bytes);
/* -EDQUOT: more than HCCLD_EXPORT_PIDS_MAX; nothing was added. */
int export_allow(struct export *export, const int32_t *pids, size_t count);
bool export_allows(const struct export *export, int32_t pid);
/* Record, key and object. Imports stay. */
void export_end(struct export *export);
int export_restore(struct registry *registry, uint32_t index);

/* -EDQUOT: no place for another segment; -EUSERS: the user has too many. */
int import_new(struct context *context, struct export *export, uint64_t request,
	       struct segment **ret_segment);
/*
 * What a channel brings: @bytes at @offset of @origin, a segment of any kind, for the end with the id @channel. The same errors.
 */
int import_new_of_channel(struct context *context, struct segment *origin, uint64_t offset,
			  uint64_t bytes, uint64_t channel, uint32_t position,
			  struct segment **ret_segment);
/*
 * Nothing commits from it any more, and its owner hears of it: its memory goes, or is not meant for it any more, for the reason @loss.
 * LOSS_ENDED: the process of its memory, as its session says.
 */
void import_lose(struct segment *import, enum loss loss);
/* After all segments. An import whose memory is gone is lost. */
int import_restore(struct registry *registry, uint32_t index);
/* Takes an import off its owner's list: it goes, or is lost. */
void import_unlink(struct segment *import);

/* The memory of @segment goes: its keys and imports. */
void share_end(struct segment *segment);
/* The same for the notifies in it that are closed. */
void share_end_notifies(struct segment *segment);
/* The imports by one key are lost. */
void share_lose(const struct export *export);
