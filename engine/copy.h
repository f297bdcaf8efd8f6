/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* memcpy with stores past the cache, complete (store fence) when it returns. */
void copy_non_temporal(void *destination, const void *source, size_t bytes);
