/* SPDX-License-Identifier: Apache-2.0 */
/* The loops for processors with AVX2 and F16C. Empty elsewhere. */
#include "engine/arithmetic.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>

#include "engine/arithmetic_element.h"

#define LOOP_TARGET __attribute__((target("avx2,f16c")))
#define LOOP_TABLE arithmetic_table arithmetic_avx2
#define LOOP_OWN_FP16

LOOP_TARGET INLINE __m256 load_fp16(const unsigned char *from)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
}

/* As fp16_round(): the conversion rounds, keeps subnormal numbers, and any NaN is ours before it. */
LOOP_TARGET INLINE void store_fp16(unsigned char *to, __m256 value)
{
	const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
	__m256 result = _mm256_blendv_ps(value, nan, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));

	_mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(result, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

#define LOOP_FP16(op, combine)                                                                      \
	LOOP_TARGET static void loop_fp16_##op(void *to, const void *from_a, const void *from_b, size_t count) \
	{                                                                                           \
		const unsigned char *a = from_a, *b = from_b;                                       \
		unsigned char *t = to;                                                              \
		uint16_t x, y;                                                                      \
		for (; count >= 8; count -= 8, t += 16, a += 16, b += 16)                           \
			store_fp16(t, combine(load_fp16(a), load_fp16(b)));                         \
		for (; count; count--, t += 2, a += 2, b += 2) {                                    \
			memcpy(&x, a, sizeof(x));                                                   \
			memcpy(&y, b, sizeof(y));                                                   \
			x = fp16_##op(x, y);                                                        \
			memcpy(t, &x, sizeof(x));                                                   \
		}                                                                                   \
	}

LOOP_FP16(sum, _mm256_add_ps)
LOOP_FP16(prod, _mm256_mul_ps)

#include "engine/arithmetic_loops.h"

/* Not every compiler knows f16c by name; the system's part of it is that of avx2. */
bool arithmetic_avx2_runs(void)
{
	unsigned int a, b, c, d;

	return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}
#endif
