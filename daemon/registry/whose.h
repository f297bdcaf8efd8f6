/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the notify is that a stream waits for, and who could end a wait. Reads shared memory as waiting.c does. Control thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct context;
struct rank;
struct segment;
struct session;
struct stream;
struct waiting;

/* @waiting is for the notify at its `place` in @segment, which may be an import: sets what is known of that notify. */
void whose_notify(struct waiting *waiting, const struct segment *segment);

/* Somebody who could end a wait. */
struct target {
	const struct context *context; /* NULL: nobody is known */
	struct session *session;
	const struct stream *stream; /* the task that ends it is queued here; NULL: not queued anywhere */
	const struct rank *rank;     /* NULL: not known */
};

#define TARGET_TASKS 65536u /* looked at */

/*
 * *@left: how many tasks may be looked at for it. Of a wait with its task behind it in the same stream that stream; of what moves, or is
 * held back by a limit, nobody.
 */
struct target target_of(const struct waiting *waiting, uint32_t *left);
/* As a rank, until one looks what it is at; NULL: nobody. */
struct target target_rank(const struct rank *rank);
/*
 * May @waiting, of the context of @target, be what that is at? Not if it is of another rank of the same communicator: a thread of its own
 * does the work of each.
 */
bool target_may_be_at(const struct target *target, const struct waiting *waiting);
#define IMPORTERS_MAX 4u

/* Other processes that have imported the notify that @waiting is for, the first of them. Returns how many @found has. */
uint32_t whose_importers(const struct waiting *waiting, const struct context *found[IMPORTERS_MAX]);
