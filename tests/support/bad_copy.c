/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a machine that copies wrong. The copy of a slice (256 KiB, also in pieces) whose number HCCLD_TEST_BAD_COPY says has one bit
 * wrong.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES (256u << 10)
#define PIECE_BYTES (32u << 10)	/* at least */

static _Atomic size_t copied;

__attribute__((visibility("default"))) void *memmove(void *to, const void *from, size_t size)
{
	const char *bad = getenv("HCCLD_TEST_BAD_COPY");
	const unsigned char *source = from;
	unsigned char *destination = to;

	if (destination <= source || destination >= source + size)
		for (size_t i = 0; i < size; i++)
			destination[i] = source[i];
	else
		for (size_t i = size; i-- > 0;)
			destination[i] = source[i];
	if (size >= PIECE_BYTES && bad && atomic_fetch_add(&copied, size) == (size_t)(atoi(bad) - 1) * SLICE_BYTES)
		destination[size / 2] ^= 1;
	return to;
}
