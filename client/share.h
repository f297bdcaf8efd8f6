/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that several processes use: keys and handles for memory of this process, and memory of others that was imported by them. The
 * exporter decides: when it frees the memory or ends, imports read as zeros and are no device memory any more. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/buffer.h"
#include "client/session.h"
#include "proto/limits.h"

#define HCCLD_KEY_TEXT (2 * HCCLD_KEY_BYTES_MAX + 1) /* a key as text, with the NUL */

/* Why memory that was imported is gone, as the daemon says. */
struct hccld_loss {
	uint32_t kind; /* enum loss */
	int32_t exit;
};

/* Such memory. */
struct hccld_lost {
	void *start;
	uint64_t bytes;
	uint32_t pid; /* whose it was */
	struct hccld_loss loss;
};

/* ---- keys as text ---- */

void hccld_share_key_format(const uint8_t *key, char ret_text[HCCLD_KEY_TEXT]);
/* @maker: the function that writes such keys, for the text. -EINVAL. */
int hccld_share_key_parse(const char *maker, const char *text, uint8_t *ret_key);

/* ---- keys of allocations (aclrtIpcMem*) ---- */

/* -EINVAL: not @bytes of one allocation; -EDQUOT. */
int hccld_share_export(const void *address, uint64_t bytes, bool any_process,
		       char ret_key[HCCLD_KEY_TEXT]);
/* The memory, mapped; a further import by the same key gives the same address. -ENOENT, -EACCES. */
int hccld_share_import(const char *key, void **ret_address);
/* One import less, or, if there is none, the end of the export. -ENOENT. */
int hccld_share_close(const char *key);
/* -ENOENT: not an export of this process. */
int hccld_share_allow(const char *key, const int32_t *pids, size_t count);
/* 0 if the key is an export or an import of this process. -ENOENT. */
int hccld_share_check_key(const char *key);
/* Before aclrtFree: what was exported of the allocation that starts at @address is so no longer. Fast if nothing is. */
void hccld_share_freeing(void *address);

/* ---- handles of physical memory (virtual.h) ---- */

/* @key: 8 or HCCLD_KEY_BYTES_MAX bytes. */
int hccld_share_export_physical(void *handle, bool any_process, uint8_t *ret_key,
				uint32_t key_bytes);
int hccld_share_import_physical(const uint8_t *key, uint32_t key_bytes,
				struct hccld_context *context, void **ret_handle);
int hccld_share_allow_key(const uint8_t *key, uint32_t key_bytes, const int32_t *pids,
			  size_t count);

/* ---- memory that is gone ---- */

/* Takes what was lost since the last call out of the index of device memory. One load if nothing was. */
void hccld_share_refresh(void);
/*
 * How often this process has lost memory, and the same again if that has changed since: for who could not be told in between, because
 * nobody knew his memory.
 */
uint32_t hccld_share_lost_count(void);
void hccld_share_refresh_since(uint32_t count);
/* hccld_buffer_find() after that: what was lost is not found. */
int hccld_share_find(const void *address, struct hccld_place *ret_place);
/* Was the memory at @address lost, or freed by this process? Sets the text that says so, and returns -ESTALE or -ESPIPE; else 0. */
int hccld_share_lost_error(const char *function, const void *address);
/* Lost memory of a key or handle that is mapped at @address; for a signal handler: false also if it cannot be told now. */
bool hccld_share_look(const void *address, struct hccld_lost *ret_lost);
/* The context is about to go: host kernels that run do not reach what was imported into it any more. */
void hccld_share_revoke(const struct hccld_context *context);
/* The context has gone, with all imports into it and all exports of its memory. */
void hccld_share_forget(struct hccld_context *context);
