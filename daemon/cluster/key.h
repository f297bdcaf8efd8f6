/* SPDX-License-Identifier: Apache-2.0 */
/* The key that all nodes share, from a file. */
#pragma once

#include <stddef.h>

#define KEY_BYTES_MIN 16u
#define KEY_BYTES_MAX 4096u

struct key {
	size_t size;
	unsigned char data[KEY_BYTES_MAX];
};

/*
 * Reads it: a regular file that belongs to root or to the user of this process and that nobody else may read or write; white space at its end does not
 * count. -EINVAL, or why it cannot be read: @problem says it in a sentence that ends without a period.
 */
int key_read(const char *path, struct key *ret_key, char *problem, size_t problem_size);
/* Leaves nothing of it in memory. */
void key_wipe(struct key *key);
