/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the program has registered. Any memory can be copied from and to as it is, so this is a list that keeps the calls
 * honest, and nothing else. Any thread.
 */
#pragma once

#include <stdint.h>

/* -EEXIST: it shares something with a range that is registered. */
int hccld_pinned_add(void *start, uint64_t bytes);
/* -ENOMEDIUM: not the start of a registered range. */
int hccld_pinned_remove(void *start);
/* 0 if the address is in a registered range. -ENOMEDIUM. */
int hccld_pinned_find(const void *address);
