/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions to the bit: the portable and the best form of this processor against the reference. */
#include "engine/arithmetic.h"

#include <stdlib.h>
#include <string.h>

#include "proto/status.h"
#include "tests/engine/reference.h"
#include "tests/support/test.h"

#define INT8 0u
#define INT16 1u
#define INT32 2u
#define FP16 3u
#define FP32 4u
#define INT64 5u
#define UINT64 6u
#define UINT8 7u
#define UINT16 8u
#define UINT32 9u
#define FP64 10u
#define BF16 11u
#define MANY 65536u

static unsigned char a[MANY * 8], b[MANY * 8], result[MANY * 8], portable[MANY * 8];

static void put(unsigned char *array, uint32_t type, size_t index, uint64_t bits)
{
	/* little-endian, as all that we run on */
	memcpy(array + index * data_type_size(type), &bits, data_type_size(type));
}

static uint64_t get(const unsigned char *array, uint32_t type, size_t index)
{
	uint64_t bits = 0;

	memcpy(&bits, array + index * data_type_size(type), data_type_size(type));
	return bits;
}

/* The first @count elements of @a and @b. */
static void compare(uint32_t type, uint32_t op, size_t count)
{
	memset(result, 0x5a, sizeof(result));
	memset(portable, 0x5a, sizeof(portable));
	arithmetic_run(type, op, result, a, b, count);
	arithmetic_run_portable(type, op, portable, a, b, count);
	check(memcmp(result, portable, sizeof(result)) == 0);
	for (size_t i = 0; i < count; i++) {
		uint64_t x = get(a, type, i), y = get(b, type, i), expected = reference_of(type, op, x, y);

		check_msg(get(result, type, i) == expected, "%s, op %u: %#llx and %#llx give %#llx, not %#llx", data_type_name(type), op,
			  (unsigned long long)x, (unsigned long long)y, (unsigned long long)get(result, type, i),
			  (unsigned long long)expected);
	}
	for (size_t i = count * data_type_size(type); i < sizeof(result); i++)
		check(result[i] == 0x5a);
}

/* Each of @values with each. */
static void compare_pairs(uint32_t type, const uint64_t *values, size_t count)
{
	check(count * count <= MANY);
	for (size_t i = 0; i < count * count; i++) {
		put(a, type, i, values[i / count]);
		put(b, type, i, values[i % count]);
	}
	for (uint32_t op = 0; op < ARITHMETIC_OPS; op++)
		compare(type, op, count * count);
}

TEST(all_pairs_of_8_bits)
{
	static const uint32_t types[] = { INT8, UINT8 };
	uint64_t values[256];

	for (size_t i = 0; i < 256; i++)
		values[i] = i;
	for (size_t i = 0; i < 2; i++)
		compare_pairs(types[i], values, 256);
}

/* All values of 16 bits with each of @partners, on either side. */
static void compare_halves(uint32_t type, const uint16_t *partners, size_t count)
{
	for (size_t p = 0; p < count; p++) {
		for (uint32_t i = 0; i < MANY; i++) {
			put(p % 2 ? b : a, type, i, i);
			put(p % 2 ? a : b, type, i, partners[p]);
		}
		for (uint32_t op = 0; op < ARITHMETIC_OPS; op++)
			compare(type, op, MANY);
	}
}

TEST(all_values_of_16_bit_integers)
{
	static const uint16_t partners[] = { 0, 1, 2, 3, 0x7f, 0xff, 0x100, 0x5555, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xaaaa, 0xfffe, 0xffff };

	compare_halves(INT16, partners, sizeof(partners) / sizeof(partners[0]));
	compare_halves(UINT16, partners, sizeof(partners) / sizeof(partners[0]));
}

TEST(all_values_of_fp16)
{
	/* zeros, subnormal and normal at their borders, 1 and its neighbours, ties, the largest, infinities, quiet and signalling NaN */
	static const uint16_t partners[] = { 0x0000, 0x8000, 0x0001, 0x8001, 0x0200, 0x03ff, 0x83ff, 0x0400, 0x0401, 0x1400, 0x2e66,
					     0x3800, 0x3bff, 0x3c00, 0x3c01, 0xbc00, 0x4248, 0x5bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
					     0x7e00, 0x7c01, 0xffff };

	compare_halves(FP16, partners, sizeof(partners) / sizeof(partners[0]));
}

TEST(all_values_of_bf16)
{
	static const uint16_t partners[] = { 0x0000, 0x8000, 0x0001, 0x8001, 0x0040, 0x007f, 0x807f, 0x0080, 0x0081, 0x1f80, 0x3dcc,
					     0x3f00, 0x3f7f, 0x3f80, 0x3f81, 0xbf80, 0x4049, 0x7e7f, 0x7f7f, 0xff7f, 0x7f80, 0xff80,
					     0x7fc0, 0x7f81, 0xffff };

	compare_halves(BF16, partners, sizeof(partners) / sizeof(partners[0]));
}

TEST(edges_of_32_and_64_bits)
{
	static const uint64_t words[] = { 0, 1, 2, 3, 0xffff, 0x10000, 0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe,
					  0xffffffff, 0x55555555, 0xaaaaaaaa };
	static const uint64_t longs[] = { 0, 1, 3, 0xffffffff, 0x100000000, 0x7ffffffffffffffe, 0x7fffffffffffffff, 0x8000000000000000,
					  0x8000000000000001, 0xfffffffffffffffe, 0xffffffffffffffff, 0x5555555555555555 };
	static const uint64_t singles[] = { 0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x00800001, 0x33800000,
					    0x34000000, 0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0xbf800000,
					    0x40490fdb, 0x4b7fffff, 0x4b800000, 0x4b800001, 0x7effffff, 0x7f7fffff, 0xff7fffff,
					    0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff };
	static const uint64_t doubles[] = { 0, 0x8000000000000000, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
					    0x3ca0000000000000, 0x3cb0000000000000, 0x3fefffffffffffff, 0x3ff0000000000000,
					    0x3ff0000000000001, 0xbff0000000000000, 0x400921fb54442d18, 0x4340000000000000,
					    0x4340000000000001, 0x7fefffffffffffff, 0xffefffffffffffff, 0x7ff0000000000000,
					    0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000001, 0x7ff0000000000001 };

	compare_pairs(INT32, words, sizeof(words) / sizeof(words[0]));
	compare_pairs(UINT32, words, sizeof(words) / sizeof(words[0]));
	compare_pairs(INT64, longs, sizeof(longs) / sizeof(longs[0]));
	compare_pairs(UINT64, longs, sizeof(longs) / sizeof(longs[0]));
	compare_pairs(FP32, singles, sizeof(singles) / sizeof(singles[0]));
	compare_pairs(FP64, doubles, sizeof(doubles) / sizeof(doubles[0]));
}

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33 ^ random_state << 20;
}

/* Floating point numbers whose exponents are near one another, too: those whose sums round. */
TEST(random_values)
{
	random_state = test_seed();
	for (uint32_t type = 0; type < ARITHMETIC_TYPES; type++) {
		for (size_t i = 0; i < MANY / 4; i++) {
			uint64_t x = next_random(), y = next_random();

			if (i % 2 && type == FP32)
				y = (x & 0x7f800000) ^ (y & 0x81ffffff);
			if (i % 2 && type == FP64)
				y = (x & 0x7ff0000000000000) ^ (y & 0x803fffffffffffff);
			put(a, type, i, x);
			put(b, type, i, y);
		}
		for (uint32_t op = 0; op < ARITHMETIC_OPS; op++)
			compare(type, op, MANY / 4);
	}
}

/* Every length around a block, from and to any byte; nothing else is written. */
TEST(lengths_and_alignments)
{
	random_state = 1;
	for (size_t i = 0; i < 4096; i++) {
		a[i] = (unsigned char)next_random();
		b[i] = (unsigned char)next_random();
	}
	for (uint32_t type = 0; type < ARITHMETIC_TYPES; type++) {
		for (size_t count = 0; count < 140; count += count < 70 ? 1 : 13) {
			size_t to = count % 9, from_a = count % 5, from_b = count % 7, bytes = count * data_type_size(type);

			for (uint32_t op = 0; op < ARITHMETIC_OPS; op++) {
				memset(result, 0x5a, 4096);
				arithmetic_run(type, op, result + to, a + from_a, b + from_b, count);
				for (size_t i = 0; i < count; i++)
					check(get(result + to, type, i) ==
					      reference_of(type, op, get(a + from_a, type, i), get(b + from_b, type, i)));
				for (size_t i = 0; i < 4096; i++)
					check((i >= to && i < to + bytes) || result[i] == 0x5a);
			}
		}
	}
}

TEST(the_same_memory_twice)
{
	for (uint32_t type = 0; type < ARITHMETIC_TYPES; type++) {
		memset(a, 0x3c, 2048);
		arithmetic_run(type, ARITHMETIC_SUM, result, a, a, 100);
		for (size_t i = 0; i < 100; i++)
			check(get(result, type, i) == reference_of(type, ARITHMETIC_SUM, get(a, type, i), get(a, type, i)));
	}
}

TEST(what_there_is)
{
	for (uint32_t type = 0; type < 20; type++)
		for (uint32_t op = 0; op < 6; op++)
			check(arithmetic_has(type, op) == (type < 12 && op < 4));
	check(!arithmetic_has(UINT32_MAX, 0) && !arithmetic_has(0, UINT32_MAX));
}
