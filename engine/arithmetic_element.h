/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One element: name_op(a, b) on bits, without branches, so that compilers make vectors of loops over them.
 */
#pragma once

#include <string.h>

#include "engine/arithmetic.h"

/* Whatever the rest is built with: packages have -O2, at which gcc makes few vectors. Nobody looks at floating point exceptions. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-trapping-math")
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define INLINE static inline __attribute__((always_inline))

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
		return (signed_type)(bits ^ (((signed_type)bits >> (sizeof(type) * 8 - 1)) & (type)(largest))); \
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
