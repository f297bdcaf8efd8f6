/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copy and fill. The synchronous ones are plain memory accesses of this thread, or, with HCCLD_STRICT_DEVICE, tasks that
 * it waits for. The others are tasks of a stream; what the engine cannot
 * reach (memory of the program that did not come from aclrtMallocHost) goes through staging memory: a source is copied when the call
 * is made, a destination is written before anybody learns that the stream has got there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hccld_place;
struct hccld_stream;

/* Values of aclrtMemcpyKind. */
enum hccld_copy_kind {
	HCCLD_COPY_HOST_TO_HOST = 0,
	HCCLD_COPY_HOST_TO_DEVICE = 1,
	HCCLD_COPY_DEVICE_TO_HOST = 2,
	HCCLD_COPY_DEVICE_TO_DEVICE = 3,
	HCCLD_COPY_DEFAULT = 4,
	HCCLD_COPY_HOST_TO_BUFFER_TO_DEVICE = 5,
	HCCLD_COPY_INNER_DEVICE = 6,
	HCCLD_COPY_INTER_DEVICE = 7,
};

/*
 * aclrtMemcpy. Checks in this order: NULL (-EFAULT), counts (-EINVAL), equal addresses (0), @kind (-EFAULT if unknown), addresses
 * against @kind and the ends of their allocations (-EINVAL, -ESPIPE), current device (-ENXIO).
 */
int hccld_memory_copy(void *destination, size_t destination_max, const void *source, size_t count,
		      int kind);
/* aclrtMemcpyAsync: the same checks, then the stream's handle (NULL: default stream); overlapping ranges are -EINVAL. */
int hccld_memory_copy_async(void *destination, size_t destination_max, const void *source,
			    size_t count, int kind, void *stream);
/*
 * In the stream; both are memory that the engine reaches, of this process or shared with it (-ESPIPE), and do not overlap. @count > 0.
 * Whose place is given is not looked for. @stream NULL: looks whether it can be done.
 */
int hccld_memory_copy_on(const char *function, void *destination, const struct hccld_place *destination_place, const void *source,
			 const struct hccld_place *source_place, uint64_t count, struct hccld_stream *stream);
/* aclrtMemcpy2d: all rows are checked before one is copied. */
int hccld_memory_copy_rows(const char *function, void *destination, size_t destination_pitch, const void *source,
			   size_t source_pitch, size_t width, size_t height, int kind);
/* aclrtMemcpy2dAsync: all rows are checked before one is queued; the rows of the ranges may lie between each other, but not overlap. */
int hccld_memory_copy_rows_async(const char *function, void *destination, size_t destination_pitch, const void *source,
				 size_t source_pitch, size_t width, size_t height, int kind, void *stream);
int hccld_memory_fill(void *address, size_t max, int value, size_t count);
int hccld_memory_fill_async(void *address, size_t max, int value, size_t count, void *stream);
