/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/engine/reference.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

/* 113 bits: more than twice those of fp64, so that rounding a sum to them first changes nothing */
#ifdef __x86_64__
typedef __float128 wide;
#else
typedef long double wide;
#endif

enum { SUM, PROD, MAX, MIN };

struct format {
	int exponent_bits, fraction_bits;
};

static const struct format fp16 = { 5, 10 }, bf16 = { 8, 7 }, fp32 = { 8, 23 }, fp64 = { 11, 52 };

struct number {
	bool is_nan, is_infinite, is_negative;
	wide size;
};

/* By its bits: sign, 15 bits of exponent, 112 of fraction. */
static wide power_of_two(int exponent)
{
	uint64_t words[2] = { 0, (uint64_t)(exponent + 16383) << 48 };
	wide power;

	static_assert(sizeof(wide) == 16, "IEEE binary128");
	memcpy(&power, words, sizeof(power));
	return power;
}

static int bias_of(const struct format *format)
{
	return (1 << (format->exponent_bits - 1)) - 1;
}

static struct number decode(const struct format *format, uint64_t bits)
{
	uint64_t fraction = bits & ((1ull << format->fraction_bits) - 1);
	int top = (1 << format->exponent_bits) - 1, exponent = (int)(bits >> format->fraction_bits) & top;
	struct number number = { .is_negative = bits >> (format->fraction_bits + format->exponent_bits) & 1 };

	if (exponent == top) {
		number.is_nan = fraction;
		number.is_infinite = !fraction;
		return number;
	}
	if (exponent)
		fraction |= 1ull << format->fraction_bits;
	else
		exponent = 1;
	number.size = (wide)fraction * power_of_two(exponent - bias_of(format) - format->fraction_bits);
	return number;
}

/* The exponent of the largest power of two that is not greater. */
static int exponent_of(wide size)
{
	uint64_t words[2];

	memcpy(words, &size, sizeof(words));
	return (int)(words[1] >> 48 & 0x7fff) - 16383;
}

/* To the nearest, ties to even. */
static uint64_t encode(const struct format *format, struct number number)
{
	uint64_t sign = (uint64_t)number.is_negative << (format->fraction_bits + format->exponent_bits);
	uint64_t infinity = (uint64_t)((1 << format->exponent_bits) - 1) << format->fraction_bits;
	int exponent, lowest = 1 - bias_of(format);
	uint64_t whole;
	wide scaled, rest;

	if (number.is_nan)
		return infinity | 1ull << (format->fraction_bits - 1);
	if (number.is_infinite)
		return sign | infinity;
	if (number.size == 0)
		return sign;
	exponent = exponent_of(number.size) > lowest ? exponent_of(number.size) : lowest;
	scaled = number.size * power_of_two(format->fraction_bits - exponent);
	whole = (uint64_t)scaled;
	rest = scaled - (wide)whole;
	if (rest > 0.5 || (rest == 0.5 && whole % 2))
		whole++;
	if (whole >> (format->fraction_bits + 1)) {
		whole /= 2;
		exponent++;
	}
	if (exponent > bias_of(format))
		return sign | infinity;
	/* without the leading bit it is subnormal */
	if (whole >> format->fraction_bits)
		return sign | (uint64_t)(exponent - lowest + 1) << format->fraction_bits | (whole - (1ull << format->fraction_bits));
	return sign | whole;
}

static struct number sum_of(struct number a, struct number b)
{
	struct number sum = { .is_nan = a.is_infinite && b.is_infinite && a.is_negative != b.is_negative,
			      .is_infinite = a.is_infinite || b.is_infinite };
	wide exact = (a.is_negative ? -a.size : a.size) + (b.is_negative ? -b.size : b.size);

	if (sum.is_infinite)
		sum.is_negative = a.is_infinite ? a.is_negative : b.is_negative;
	else
		sum.is_negative = exact < 0 || (a.size == 0 && b.size == 0 && a.is_negative && b.is_negative);
	sum.size = exact < 0 ? -exact : exact;
	return sum;
}

static struct number product_of(struct number a, struct number b)
{
	return (struct number){ .is_nan = (a.is_infinite && !b.is_infinite && b.size == 0) || (b.is_infinite && !a.is_infinite && a.size == 0),
				.is_infinite = a.is_infinite || b.is_infinite,
				.is_negative = a.is_negative != b.is_negative,
				.size = a.size * b.size };
}

/* -0 is less than +0. */
static bool is_less(struct number a, struct number b)
{
	if (a.is_negative != b.is_negative)
		return a.is_negative;
	if (a.is_infinite || b.is_infinite)
		return a.is_negative ? a.is_infinite && !b.is_infinite : !a.is_infinite && b.is_infinite;
	return a.is_negative ? a.size > b.size : a.size < b.size;
}

static uint64_t float_result(const struct format *format, uint32_t op, uint64_t a_bits, uint64_t b_bits)
{
	struct number a = decode(format, a_bits), b = decode(format, b_bits), result;

	if (a.is_nan || b.is_nan)
		return encode(format, (struct number){ .is_nan = true });
	if (op == MIN || op == MAX)
		return is_less(a, b) == (op == MIN) ? a_bits : b_bits;
	result = op == SUM ? sum_of(a, b) : product_of(a, b);
	/* by way of fp32 */
	if (format->fraction_bits < fp32.fraction_bits)
		result = decode(&fp32, encode(&fp32, result));
	return encode(format, result);
}

static uint64_t integer_result(int width, bool is_signed, uint32_t op, uint64_t a, uint64_t b)
{
	uint64_t mask = width == 64 ? UINT64_MAX : (1ull << width) - 1, top = 1ull << (width - 1), result = 0;

	if (op == MIN || op == MAX) {
		/* signed ones in the order of unsigned ones */
		uint64_t x = is_signed ? a ^ top : a, y = is_signed ? b ^ top : b;

		return (x < y) == (op == MIN) ? a : b;
	}
	if (op == SUM)
		return (a + b) & mask;
	for (int bit = 0; bit < width; bit++)
		if (b >> bit & 1)
			result += a << bit;
	return result & mask;
}

uint64_t reference_of(uint32_t type, uint32_t op, uint64_t a, uint64_t b)
{
	switch (type) {
	case 0: return integer_result(8, true, op, a, b);
	case 1: return integer_result(16, true, op, a, b);
	case 2: return integer_result(32, true, op, a, b);
	case 3: return float_result(&fp16, op, a, b);
	case 4: return float_result(&fp32, op, a, b);
	case 5: return integer_result(64, true, op, a, b);
	case 6: return integer_result(64, false, op, a, b);
	case 7: return integer_result(8, false, op, a, b);
	case 8: return integer_result(16, false, op, a, b);
	case 9: return integer_result(32, false, op, a, b);
	case 10: return float_result(&fp64, op, a, b);
	default: return float_result(&bf16, op, a, b);
	}
}
