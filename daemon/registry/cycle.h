/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that wait for each other in a circle. Control thread. */
#pragma once

#include <stdbool.h>

struct text;
struct waiting;

/*
 * Follows what @start waits for, from rank to rank, and adds to @text the circle that is found: "; deadlock: rank 0 (pid 1) waits for
 * rank 1 (pid 2), which waits for rank 2 (pid 3), which waits for rank 0", and what to do about it. False: there is none, nothing is added. The work is bounded.
 */
bool cycle_describe(const struct waiting *start, struct text *text);
