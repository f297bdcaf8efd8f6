/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes of the last cache; a guess, where the system does not say. */
uint64_t copy_cache(void);

/* memcpy with stores past the cache, complete (store fence) when it returns. */
void copy_non_temporal(void *destination, const void *source, size_t bytes);
