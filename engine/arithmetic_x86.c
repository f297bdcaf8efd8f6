/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for processors with AVX2. Empty elsewhere. */
#include "engine/arithmetic.h"

#ifdef __x86_64__
#define LOOP_TARGET __attribute__((target("avx2")))
#define LOOP_TABLE arithmetic_table arithmetic_avx2
#include "engine/arithmetic_loops.h"
#endif
