/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that survive SIGBUS: memory of a client may have become unreadable (a hole that cannot be filled, a memory error). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Installs the handler; once, before the first copy. 0 or a negative errno. */
int guard_install(void);
/* engine_host.guard_begin, guard_end: copies in between are recoverable. -EIO if a page was lost. */
void guard_begin(void);
int guard_end(void);
/* One copy or fill (@source NULL): 0, or -EIO if a page was lost; the other pages are copied. Any thread. */
int guard_copy(void *destination, const void *source, size_t bytes, int value, bool non_temporal);
