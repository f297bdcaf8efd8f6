/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, and for what, in words. Control thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct text;
struct waiting;

/*
 * "rank 2 (pid 4711) waits 12.3 s for rank 5 (pid 4712) to send 4 KiB"; without @with_age no time.
 */
void waiting_describe(const struct waiting *waiting, bool with_age, struct text *text);
/* What is missing: "rank 5 has not posted that send and has no work queued" */
void waiting_explain(const struct waiting *waiting, struct text *text);
/*
 * Follows what @start waits for from rank to rank, to a host function, a stopped process or a rank without work, and adds that to @text.
 * Returns how many ranks are between, -1: none of these was found. *@ret_pid: the process to look at in any case.
 */
int waiting_blame(const struct waiting *start, struct text *text, int32_t *ret_pid);
