/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number for a content that must be told from other contents of the same user: FNV-1a with 128 bits. It protects from chance, not from
 * malice: forging one takes seconds, so whoever compares digests compares tenants, too. Pure functions.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define DIGEST_BYTES 16u

struct digest {
	unsigned __int128 value;
};

static inline struct digest digest_new(void)
{
	return (struct digest){ (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d };
}

static inline void digest_add(struct digest *digest, const void *data, size_t size)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		digest->value = (digest->value ^ bytes[i]) * prime;
}

static inline void digest_add_number(struct digest *digest, uint64_t number)
{
	digest_add(digest, &number, sizeof(number));
}

/* With its NUL, so that "ab" and "c" differ from "a" and "bc". */
static inline void digest_add_text(struct digest *digest, const char *text)
{
	digest_add(digest, text, strlen(text) + 1);
}

static inline void digest_write(const struct digest *digest, unsigned char ret_bytes[DIGEST_BYTES])
{
	memcpy(ret_bytes, &digest->value, DIGEST_BYTES);
}
