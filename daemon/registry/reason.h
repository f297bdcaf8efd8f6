/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, and for what, in words. Control thread. */
#pragma once

#include <stdbool.h>

struct text;
struct waiting;

/*
 * "rank 2 (pid 4711) waits 12.3 s for rank 5 (pid 4712) to send 4 KiB"; without @with_age no time.
 */
void waiting_describe(const struct waiting *waiting, bool with_age, struct text *text);
/* What is missing: "rank 5 has posted nothing to it and has no work queued" */
void waiting_explain(const struct waiting *waiting, struct text *text);
