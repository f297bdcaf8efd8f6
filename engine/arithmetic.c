/* SPDX-License-Identifier: Apache-2.0 */
/* The portable form, and the choice of the best one that the processor can run. */
#include "engine/arithmetic.h"

#include <assert.h>

#define LOOP_TARGET
#define LOOP_TABLE static arithmetic_table arithmetic_portable
#include "engine/arithmetic_loops.h"

bool arithmetic_has(uint32_t type, uint32_t op)
{
	return type < ARITHMETIC_TYPES && op < ARITHMETIC_OPS;
}

void arithmetic_run_portable(uint32_t type, uint32_t op, void *to, const void *a, const void *b, size_t count)
{
	assert(arithmetic_has(type, op));
	arithmetic_portable[type][op](to, a, b, count);
}

void arithmetic_run(uint32_t type, uint32_t op, void *to, const void *a, const void *b, size_t count)
{
	assert(arithmetic_has(type, op));
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2")) {
		arithmetic_avx2[type][op](to, a, b, count);
		return;
	}
#endif
	arithmetic_portable[type][op](to, a, b, count);
}
