/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at what clients may make as much of as they like: one that takes long is made again only when it takes a small part of our time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct look {
	uint64_t looked_ns, took_ns; /* zeroed: it was never made */
};

/* False: the last one has taken long, and not long enough ago. */
bool look_is_due(const struct look *look);
/* To be given to look_end(). */
uint64_t look_begin(void);
void look_end(struct look *look, uint64_t begin_ns);
