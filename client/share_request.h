/* SPDX-License-Identifier: Apache-2.0 */
/* What share.c asks the daemon. Stateless; any thread. All set the text of an error. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/buffer.h"
#include "client/segment.h"

/* What came with an import: the part, and a mapping of the pages it lies in. */
struct imported {
	struct hccld_segment segment;
	char *start;
	uint64_t bytes;
	enum hccld_memory memory;
	uint32_t pid;
};

/* @key_bytes: 8 or HCCLD_KEY_BYTES_MAX, written to @ret_key. */
int hccld_share_request_export(uint64_t segment, uint64_t offset, uint64_t bytes, bool any_process,
			       uint8_t *ret_key, uint32_t key_bytes);
/* The caller's to give back by hccld_segment_free(). */
int hccld_share_request_import(const uint8_t *key, uint32_t key_bytes,
			       struct hccld_context *context, struct imported *ret_imported);
/* Of a key of HCCLD_KEY_BYTES_MAX bytes. @lose: those who have imported by it lose the memory. */
int hccld_share_request_end(const uint8_t *key, bool lose);
