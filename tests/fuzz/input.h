/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes of a fuzzer as numbers. Past the end all are 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct input {
	const uint8_t *data;
	size_t size;
};

static inline bool input_is_empty(const struct input *input)
{
	return input->size == 0;
}

static inline uint8_t input_byte(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

/* @bytes of them, lowest first. */
static inline uint64_t input_word(struct input *input, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes; i++)
		value |= (uint64_t)input_byte(input) << (8 * i);
	return value;
}

/* A number near a power of two, or any: what sizes and offsets are compared with. */
static inline uint64_t input_size(struct input *input)
{
	uint8_t kind = input_byte(input);

	if (kind < 64)
		return kind;
	if (kind < 192)
		return (1ull << (kind & 63)) - 1 + input_byte(input) % 3;
	if (kind < 224)
		return input_word(input, 3);
	return input_word(input, 8);
}

/* What must always hold: the fuzzer stops here. */
#define insist(condition)                                                                              \
	do {                                                                                           \
		if (!(condition)) {                                                                    \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
			abort();                                                                       \
		}                                                                                      \
	} while (0)
