/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody probably meant to write. */
#pragma once

#define SPELLING_LENGTH_MAX 31

/* Edits (insert, delete, replace, swap neighbours) from @a to @b; UINT32_MAX if one has more than SPELLING_LENGTH_MAX characters. */
unsigned int spelling_distance(const char *a, const char *b);
