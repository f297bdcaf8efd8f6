/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory and where it is mapped, apart from each other: ranges of addresses are reserved, a piece of physical memory is a segment
 * of the daemon, and one piece may be mapped at several addresses. What is mapped is device memory like any other. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/buffer.h"
#include "client/segment.h"
#include "client/share.h"

/* @alignment: 0 for 2 MiB, or a power of two; @expected: a wish. -EINVAL, -ENOBUFS; text set. */
int hccld_virtual_reserve(uint64_t bytes, uint64_t alignment, void *expected, void **ret_base);
/* -EINVAL: not the start of a reserved range, or something is mapped in it. */
int hccld_virtual_release(void *base);

/* Handles are looked up, never followed. Charged to the device of @context. -ENOMEM and others. */
int hccld_physical_new(struct hccld_context *context, enum hccld_memory memory, uint64_t bytes,
		       void **ret_handle);
/* Of memory that came from another process; takes @segment, also when it fails. */
int hccld_physical_import(struct hccld_context *context, enum hccld_memory memory,
			  struct hccld_segment *segment, uint32_t pid, void **ret_handle);
/*
 * One handle less. The memory goes with the last handle and mapping; if other processes have imported it, with their last import.
 * -EBADF.
 */
int hccld_physical_free(void *handle);
/* The handle of what is mapped at an address, counted once more. -EINVAL: nothing is. */
int hccld_physical_retain(const void *address, void **ret_handle);
/* What the handle stands for, for an export. -EBADF, also for what was imported. */
int hccld_physical_segment(void *handle, struct hccld_segment *ret_segment,
			   struct hccld_context **ret_context);

/* Bytes and offset: whole pages. -EBADF, -EINVAL: not in one reserved range, taken, or beyond the end of the memory. */
int hccld_virtual_map(void *address, uint64_t bytes, uint64_t offset, void *handle);
/* Operations in flight go on in the physical memory. -EINVAL: not the start of a mapping. */
int hccld_virtual_unmap(void *address);
/* -EINVAL: @address and @bytes are not those of a mapping. */
int hccld_virtual_check(const void *address, uint64_t bytes);

/* The memory of an imported segment is gone: its mappings are no device memory any more. */
void hccld_virtual_lose(uint64_t segment, struct hccld_loss loss);
/* Does @address lie in a mapping whose memory is lost? @ret_pid: of the process it came from. */
bool hccld_virtual_is_lost(const void *address, struct hccld_lost *ret_lost);
/* The same for a signal handler: false also if it cannot be told now. */
bool hccld_virtual_look(const void *address, struct hccld_lost *ret_lost);
/* Does any of the bytes lie in a reserved range, mapped or not? */
bool hccld_virtual_overlaps(const void *address, uint64_t bytes);
/*
 * The context is about to go: nobody of this process reaches its physical memory by a mapping any more. Host kernels that run find zeros
 * there, until aclrtUnmapMem; without any nothing is there.
 */
void hccld_virtual_revoke(const struct hccld_context *context);
/* The context has gone, and its physical memory with it. Its addresses stay reserved. */
void hccld_virtual_forget(const struct hccld_context *context);
