/* SPDX-License-Identifier: Apache-2.0 */
/* What a test and the allocator of its daemon share (fail_malloc.c). */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct fail_malloc {
	_Atomic int64_t countdown; /* 1: the next allocation fails, 2: the one after it; 0 or less: none does */
	_Atomic uint64_t failed;
};
