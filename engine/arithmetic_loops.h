/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over elements, to be compiled for one kind of processor: who includes this defines LOOP_TARGET (an attribute), LOOP_TABLE (the
 * declaration of the table that it gets), and LOOP_OWN_FP16 if it has loops for sums and products of fp16.
 */
#include "engine/arithmetic_element.h"

#define BLOCK 64

/* Elements where a program has put them. */
typedef uint8_t any8 __attribute__((may_alias));
typedef uint16_t any16 __attribute__((may_alias, aligned(1)));
typedef uint32_t any32 __attribute__((may_alias, aligned(1)));
typedef uint64_t any64 __attribute__((may_alias, aligned(1)));

#define LOOP(name, any, op)                                                                         \
	LOOP_TARGET static void loop_##name##_##op(void *to, const void *from_a, const void *from_b, size_t count) \
	{                                                                                               \
		any *restrict t = to;                                                                   \
		const any *a = from_a, *b = from_b;                                                     \
		for (; count >= BLOCK; count -= BLOCK, t += BLOCK, a += BLOCK, b += BLOCK) {            \
			INDEPENDENT                                                                     \
			for (size_t i = 0; i < BLOCK; i++)                                              \
				t[i] = name##_##op(a[i], b[i]);                                         \
		}                                                                                       \
		for (size_t i = 0; i < count; i++)                                                      \
			t[i] = name##_##op(a[i], b[i]);                                                 \
	}
#define LOOPS(name, any) LOOP(name, any, sum) LOOP(name, any, prod) LOOP(name, any, max) LOOP(name, any, min)

LOOPS(int8, any8)
LOOPS(int16, any16)
LOOPS(int32, any32)
#ifdef LOOP_OWN_FP16
LOOP(fp16, any16, max)
LOOP(fp16, any16, min)
#else
LOOPS(fp16, any16)
#endif
LOOPS(fp32, any32)
LOOPS(int64, any64)
LOOPS(uint64, any64)
LOOPS(uint8, any8)
LOOPS(uint16, any16)
LOOPS(uint32, any32)
LOOPS(fp64, any64)
LOOPS(bf16, any16)

#define ROW(name) { loop_##name##_sum, loop_##name##_prod, loop_##name##_max, loop_##name##_min }

/* In the order of HcclDataType. */
LOOP_TABLE = {
	ROW(int8), ROW(int16), ROW(int32), ROW(fp16), ROW(fp32), ROW(int64), ROW(uint64), ROW(uint8), ROW(uint16), ROW(uint32), ROW(fp64),
	ROW(bf16),
};
