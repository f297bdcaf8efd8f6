/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/spelling.h"

#include <stdint.h>
#include <string.h>

unsigned int spelling_distance(const char *a, const char *b)
{
	unsigned int rows[3][SPELLING_LENGTH_MAX + 1] = { 0 };
	size_t a_size = strlen(a), b_size = strlen(b);

	if (a_size > SPELLING_LENGTH_MAX || b_size > SPELLING_LENGTH_MAX)
		return UINT32_MAX;
	for (size_t j = 0; j <= b_size; j++)
		rows[1][j] = (unsigned int)j;
	for (size_t i = 1; i <= a_size; i++) {
		memmove(rows[0], rows[1], sizeof(rows[0]));
		if (i > 1)
			memcpy(rows[1], rows[2], sizeof(rows[0]));
		rows[2][0] = (unsigned int)i;
		for (size_t j = 1; j <= b_size; j++) {
			unsigned int best = rows[1][j - 1] + (a[i - 1] != b[j - 1]);

			if (rows[1][j] + 1 < best)
				best = rows[1][j] + 1;
			if (rows[2][j - 1] + 1 < best)
				best = rows[2][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[0][j - 2] + 1 < best)
				best = rows[0][j - 2] + 1;
			rows[2][j] = best;
		}
	}
	return a_size ? rows[2][b_size] : (unsigned int)b_size;
}
