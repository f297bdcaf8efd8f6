/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of small numbers: a bit for each in an array of words. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

static inline bool bits_get(const uint64_t *words, uint32_t index)
{
	return words[index / 64] >> (index % 64) & 1;
}

static inline void bits_set(uint64_t *words, uint32_t index)
{
	words[index / 64] |= 1ull << (index % 64);
}

static inline void bits_clear(uint64_t *words, uint32_t index)
{
	words[index / 64] &= ~(1ull << (index % 64));
}
