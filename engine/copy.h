/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the last cache; 0: not known. */
uint64_t copy_cache(void);
/* From how many bytes on, of one copy or of all that wait, copy_non_temporal is the faster: a part of the last cache. */
uint64_t copy_non_temporal_min(void);

/* memcpy with stores past the cache, complete (store fence) when it returns. */
void copy_non_temporal(void *destination, const void *source, size_t bytes);
