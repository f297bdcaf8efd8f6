/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of reductions: pure functions on memory, the same result to the bit in vector and portable form and on every machine.
 *
 *   integers   sum and product wrap around. Min and max compare as the type says.
 *   fp16, bf16 are made fp32, computed, and rounded to nearest, ties to even. Sums of either, and products of fp16, are what rounding the
 *              exact result once gives.
 *   fp32, fp64 IEEE 754, rounded to nearest, ties to even. Subnormal numbers are kept.
 *   NaN        if an operand is one, and where there is no number (inf - inf, 0 * inf), the result is the quiet NaN without sign and
 *              payload (0x7e00, 0x7fc0, 0x7fc00000, 0x7ff8000000000000): also for min and max.
 *   zero       min and max take -0 for less than +0; sum: -0 only if both are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of HcclReduceOp. */
enum arithmetic_op {
	ARITHMETIC_SUM = 0,
	ARITHMETIC_PROD = 1,
	ARITHMETIC_MAX = 2,
	ARITHMETIC_MIN = 3,
	ARITHMETIC_OPS
};

#define ARITHMETIC_TYPES 12u	/* HcclDataType: 0 to 11 */

typedef void (*arithmetic_loop)(void *to, const void *a, const void *b, size_t count);
typedef const arithmetic_loop arithmetic_table[ARITHMETIC_TYPES][ARITHMETIC_OPS];

/* @type: HcclDataType. */
bool arithmetic_has(uint32_t type, uint32_t op);
/* to[i] = a[i] op b[i], whatever the alignment. @a and @b may be the same or overlap; @to overlaps with neither. Only for what it has. */
void arithmetic_run(uint32_t type, uint32_t op, void *to, const void *a, const void *b, size_t count);
/* By the machine's lowest common denominator, for tests. */
void arithmetic_run_portable(uint32_t type, uint32_t op, void *to, const void *a, const void *b, size_t count);
#ifdef __x86_64__
extern arithmetic_table arithmetic_avx2;
/* Slow. */
bool arithmetic_avx2_runs(void);
#endif
