/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over elements, to be compiled for one kind of processor: who includes this defines LOOP_TARGET (an attribute) and LOOP_TABLE (the
 * declaration of the table that it gets). Without branches, and in blocks of a constant length, so that compilers make vectors of them at -O2 too.
 */
#include <string.h>

#include "engine/arithmetic.h"

#define BLOCK 64
#define INLINE static inline __attribute__((always_inline))

/* Elements where a program has put them. */
typedef uint8_t any8 __attribute__((may_alias));
typedef uint16_t any16 __attribute__((may_alias, aligned(1)));
typedef uint32_t any32 __attribute__((may_alias, aligned(1)));
typedef uint64_t any64 __attribute__((may_alias, aligned(1)));

INLINE float float_of(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

INLINE uint32_t bits_of(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

INLINE double double_of(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

INLINE uint64_t bits_of_double(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Subnormal numbers are multiples of 2^-24. */
INLINE float fp16_widen(uint16_t half)
{
	uint32_t size = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
	uint32_t normal = (size << 13) + (112u << 23) + (size >= 0x7c00 ? 112u << 23 : 0);
	uint32_t small = bits_of((float)(int32_t)size * 0x1p-24f);

	return float_of(sign | (size < 0x400 ? small : normal));
}

INLINE uint16_t fp16_round(float value)
{
	uint32_t bits = bits_of(value), size = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
	/* up to the middle, and beyond it by the last bit that stays */
	uint32_t normal = (size + 0xfff + (size >> 13 & 1) - (112u << 23)) >> 13;
	/* the last bit of 0.5 is worth 2^-24: the addition rounds */
	uint32_t small = bits_of(float_of(size) + 0.5f) - 0x3f000000u;
	uint32_t half = sign | (size < 0x38800000u ? small : normal);

	half = size >= 0x477ff000u ? sign | 0x7c00u : half;
	return (uint16_t)(size > 0x7f800000u ? 0x7e00u : half);
}

INLINE float bf16_widen(uint16_t half)
{
	return float_of((uint32_t)half << 16);
}

INLINE uint16_t bf16_round(float value)
{
	uint32_t bits = bits_of(value);
	uint32_t half = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;

	return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : half);
}

INLINE uint32_t fp32_round(float value)
{
	uint32_t bits = bits_of(value);

	return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : bits;
}

INLINE uint64_t fp64_round(double value)
{
	uint64_t bits = bits_of_double(value);

	return (bits & ~(1ull << 63)) > 0x7ff0000000000000u ? 0x7ff8000000000000u : bits;
}

#define FLOAT_SUM_AND_PRODUCT(name, type, widen, round)                          \
	INLINE type name##_sum(type a, type b) { return round(widen(a) + widen(b)); } \
	INLINE type name##_prod(type a, type b) { return round(widen(a) * widen(b)); }

FLOAT_SUM_AND_PRODUCT(fp16, uint16_t, fp16_widen, fp16_round)
FLOAT_SUM_AND_PRODUCT(bf16, uint16_t, bf16_widen, bf16_round)
FLOAT_SUM_AND_PRODUCT(fp32, uint32_t, float_of, fp32_round)
FLOAT_SUM_AND_PRODUCT(fp64, uint64_t, double_of, fp64_round)

/* Bits without sign grow with the number: those of negative ones are turned round, and -0 becomes -1. */
#define FLOAT_COMPARISONS(name, type, signed_type, largest, infinity, nan)                                  \
	INLINE signed_type name##_order(type bits)                                                              \
	{                                                                                                       \
		return (signed_type)((signed_type)bits < 0 ? bits ^ (type)(largest) : bits);                    \
	}                                                                                                       \
	INLINE type name##_or_nan(type a, type b, type result)                                                  \
	{                                                                                                       \
		type x = (type)(a & (type)(largest)), y = (type)(b & (type)(largest));                          \
		type greater = (signed_type)x > (signed_type)y ? x : y;                                         \
		return (signed_type)greater > (signed_type)(infinity) ? (type)(nan) : result;                   \
	}                                                                                                       \
	INLINE type name##_min(type a, type b)                                                                  \
	{                                                                                                       \
		return name##_or_nan(a, b, name##_order(a) < name##_order(b) ? a : b);                          \
	}                                                                                                       \
	INLINE type name##_max(type a, type b)                                                                  \
	{                                                                                                       \
		return name##_or_nan(a, b, name##_order(a) > name##_order(b) ? a : b);                          \
	}

FLOAT_COMPARISONS(fp16, uint16_t, int16_t, 0x7fff, 0x7c00, 0x7e00)
FLOAT_COMPARISONS(bf16, uint16_t, int16_t, 0x7fff, 0x7f80, 0x7fc0)
FLOAT_COMPARISONS(fp32, uint32_t, int32_t, 0x7fffffff, 0x7f800000, 0x7fc00000)
FLOAT_COMPARISONS(fp64, uint64_t, int64_t, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000)

/* @wide: unsigned, and not made signed by promotion. */
#define INTEGER(name, type, bits_type, wide)                                                          \
	INLINE bits_type name##_sum(bits_type a, bits_type b) { return (bits_type)((wide)a + (wide)b); }  \
	INLINE bits_type name##_prod(bits_type a, bits_type b) { return (bits_type)((wide)a * (wide)b); } \
	INLINE bits_type name##_min(bits_type a, bits_type b) { return (type)a < (type)b ? a : b; }       \
	INLINE bits_type name##_max(bits_type a, bits_type b) { return (type)a > (type)b ? a : b; }

INTEGER(int8, int8_t, uint8_t, uint32_t)
INTEGER(int16, int16_t, uint16_t, uint32_t)
INTEGER(int32, int32_t, uint32_t, uint32_t)
INTEGER(int64, int64_t, uint64_t, uint64_t)
INTEGER(uint8, uint8_t, uint8_t, uint32_t)
INTEGER(uint16, uint16_t, uint16_t, uint32_t)
INTEGER(uint32, uint32_t, uint32_t, uint32_t)
INTEGER(uint64, uint64_t, uint64_t, uint64_t)

#define LOOP(name, any, op)                                                                         \
	LOOP_TARGET static void loop_##name##_##op(void *to, const void *from_a, const void *from_b, size_t count) \
	{                                                                                               \
		any *restrict t = to;                                                                   \
		const any *a = from_a, *b = from_b;                                                     \
		for (; count >= BLOCK; count -= BLOCK, t += BLOCK, a += BLOCK, b += BLOCK)              \
			for (size_t i = 0; i < BLOCK; i++)                                              \
				t[i] = name##_##op(a[i], b[i]);                                         \
		for (size_t i = 0; i < count; i++)                                                      \
			t[i] = name##_##op(a[i], b[i]);                                                 \
	}
#define LOOPS(name, any) LOOP(name, any, sum) LOOP(name, any, prod) LOOP(name, any, max) LOOP(name, any, min)

LOOPS(int8, any8)
LOOPS(int16, any16)
LOOPS(int32, any32)
LOOPS(fp16, any16)
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
