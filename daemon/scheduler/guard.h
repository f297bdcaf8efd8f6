/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that survive SIGBUS: memory of a client may have become unreadable (a hole that cannot be filled, a memory error). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Installs the handler; once, before the first copy. 0 or a negative errno. */
int guard_install(void);
/* engine_host.guard_begin, guard_end: copies in between are recoverable. Gives the address of a lost page, or NULL. */
void guard_begin(void);
const void *guard_end(void);
/* One copy or fill (@source NULL): the same; the other pages are copied. Any thread. */
const void *guard_copy(void *destination, const void *source, size_t bytes, int value, bool non_temporal);
