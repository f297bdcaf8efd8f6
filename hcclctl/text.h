/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, times and foreign text for people. All but text_clean() and text_shell_quote() write into the caller's buffer and return it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TEXT_SHORT 32

/* "0 B", "512 B", "1.5 KiB", "64 GiB" */
char *text_size(uint64_t bytes, char buffer[TEXT_SHORT]);
/* "850 ms", "12 s", "3 min 4 s", "2 h 5 min", "3 d 4 h" */
char *text_duration(uint64_t ms, char buffer[TEXT_SHORT]);
/* Foreign text made fit for a terminal and for JSON: valid UTF-8 without control characters. Allocated; NULL without memory. */
char *text_clean(const char *text);
/* @text for sh, in quotes where it needs them. Allocated; NULL without memory. */
char *text_shell_quote(const char *text);
/* A whole decimal number from @low to @high. -EINVAL, -ERANGE. */
int text_number(const char *text, uint32_t low, uint32_t high, uint32_t *ret_number);
/* The number of a session: decimal, not 0. -EINVAL. */
int text_id(const char *text, uint64_t *ret_id);
