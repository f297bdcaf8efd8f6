/* SPDX-License-Identifier: Apache-2.0 */
/* The portable form, and the choice of the best one that the processor can run. */
#include "engine/arithmetic.h"

#include <assert.h>
#include <stdatomic.h>

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

/* Found once. */
static arithmetic_table *best_table(void)
{
	static _Atomic(arithmetic_table *) found;
	arithmetic_table *table = atomic_load_explicit(&found, memory_order_relaxed);

	if (table)
		return table;
	table = &arithmetic_portable;
#ifdef __x86_64__
	if (arithmetic_avx2_runs())
		table = &arithmetic_avx2;
#endif
	atomic_store_explicit(&found, table, memory_order_relaxed);
	return table;
}

void arithmetic_run(uint32_t type, uint32_t op, void *to, const void *a, const void *b, size_t count)
{
	assert(arithmetic_has(type, op));
	(*best_table())[type][op](to, a, b, count);
}
