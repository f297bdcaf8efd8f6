/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process that the engine can reach: from an address of the program to (segment, offset). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "proto/status.h"

enum hccld_memory { HCCLD_MEMORY_DEVICE, HCCLD_MEMORY_HOST };

/*
 * @size > 0, of which the program has not asked for @extra. Small allocations share a segment. Zero-filled only when fresh from the
 * daemon. -ENOMEM: device memory exhausted.
 */
int hccld_buffer_allocate(struct hccld_context *context, enum hccld_memory memory, size_t size, uint8_t extra, void **ret_pointer);
/*
 * Another process is about to be offered memory around @address. A small allocation shares pages with others, and keeps its place when it
 * is freed: whoever has them mapped would write into what comes after it. Does nothing for memory that has its own segment, or is none.
 */
void hccld_buffer_share(const void *address);
/* -EINVAL: not the start of an allocation of this kind. */
int hccld_buffer_check(enum hccld_memory memory, const void *pointer);
int hccld_buffer_free(enum hccld_memory memory, void *pointer);

struct hccld_place {
	uint64_t segment, offset;
	enum hccld_memory memory;
	uint64_t available;		/* bytes from the address to the end of its allocation */
	bool is_mapping;		/* of hccld_buffer_add() */
	bool joins;
};
/* Any thread, fast. -ENOENT: not memory of ours (no text is set). */
int hccld_buffer_find(const void *address, struct hccld_place *ret_place);
/*
 * Memory that somebody else has mapped: part of a segment from @offset on. It is found like an allocation, but cannot be freed as one.
 * -EDQUOT; text set.
 */
struct hccld_mapping {
	void *base;
	uint64_t bytes, segment, offset;
	enum hccld_memory memory;
	struct hccld_context *context;
	bool joins;			/* what is adjacent and joins, too, makes one buffer with it */
};
int hccld_buffer_add(const struct hccld_mapping *mapping);
/* @base: as added. Nothing happens if it is not there any more. */
void hccld_buffer_remove(void *base);
/*
 * Is @address in device memory that this process has freed, and that nothing has taken the place of? Sets the text that says so, and returns the
 * error of @cause; else 0: it is not, or that is not known any more.
 */
int hccld_buffer_freed_error(enum cause cause, const char *function, const void *address);
/* The allocation or mapping around an address, and the program's number of its device (-1: it was reset). -ENOENT (no text). */
int hccld_buffer_range(const void *address, void **ret_start, uint64_t *ret_bytes, int32_t *ret_device);
/* The same for a signal handler: takes no lock, and gives up when the index is being changed. @bytes 0: it is in no allocation. */
struct hccld_allocation {
	void *start;
	uint64_t bytes;
	uint8_t extra; /* of @bytes: nobody has asked for them */
	int32_t device;
	enum hccld_memory memory;
	bool is_mapping; /* of hccld_buffer_add() */
};
bool hccld_buffer_look(const void *address, struct hccld_allocation *ret_allocation);
/*
 * For an address in none: the allocation or mapping in whose guard (mapping.h) it is, behind the end or before the start. @bytes 0: only
 * what small allocations share is known.
 */
bool hccld_buffer_look_beside(const void *address, struct hccld_allocation *ret_allocation);
/* " (with 60 more than the 100 that were asked for)", or "": why an allocation is longer than the program knows. */
#define HCCLD_EXTRA_TEXT 80
const char *hccld_buffer_extra_text(const void *address, char buffer[HCCLD_EXTRA_TEXT]);
/* How many bytes from @address on are ours, counting adjacent mappings; enough to tell whether @bytes are. */
uint64_t hccld_buffer_span(const void *address, uint64_t bytes);
/*
 * The context is about to go (aclrtResetDevice): host memory of the program becomes ordinary memory at the same addresses, with what is
 * in it, and stays until it is freed.
 */
void hccld_buffer_keep_host(struct hccld_context *context);
/* The context has gone, and its device memory with it. */
void hccld_buffer_forget(struct hccld_context *context);
/* Bytes of the context's segments that no allocation uses: free memory in the eyes of the program. */
uint64_t hccld_buffer_idle(struct hccld_context *context);
