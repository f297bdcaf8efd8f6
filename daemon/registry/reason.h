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
/* An event, a notify, a value, or a host function or kernel: nothing with a rank as its other side. */
bool waiting_is_meeting(const struct waiting *waiting);
/* "the host function of stream 0 of rank 1 (pid 6453) has run for 5.2 s"; @rank: whose it is. */
void explain_host(const struct waiting *other, uint32_t rank, struct text *text);
/* "process 6453 of rank 1 is stopped", of the peer, and how it goes on. */
void explain_stopped(const struct waiting *waiting, struct text *text);
/*
 * Follows what @start waits for from one that waits to the next: to a host function, a stopped process, a rank without work or a wait that nobody ends, and adds that to
 * @text.
 * Returns how many are between, -1: none of these was found. *@ret_pid: the process to look at in any case.
 */
int waiting_blame(const struct waiting *start, struct text *text, int32_t *ret_pid);
