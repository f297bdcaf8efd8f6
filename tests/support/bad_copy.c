/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: a machine that copies wrong. The copy of a slice (256 KiB) whose number HCCLD_TEST_BAD_COPY says has one bit wrong.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_BYTES (256u << 10)

static _Atomic int copies;

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
	if (size == SLICE_BYTES && bad && atomic_fetch_add(&copies, 1) + 1 == atoi(bad))
		destination[size / 2] ^= 1;
	return to;
}
