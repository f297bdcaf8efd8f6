/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of the control thread, on the engine thread's side: one after the other, in the order given. One that cannot end yet steps
 * aside and is run again later, and so do those behind it in its line; the others go on.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "scheduler/scheduler.h"

struct calls {
	_Atomic(struct scheduler_call *) incoming, finished;	/* stacks, scheduler/mail.h */
	/* engine thread */
	struct scheduler_call *first, *last;	/* that have not been run */
	struct scheduler_call *aside, *aside_last;	/* that are to be run again, each the first of its line or without one */
	uint64_t again_ns;			/* when they are run again */
};

/* Control thread. */
void calls_add(struct calls *calls, struct scheduler_call *call);
/* Engine thread. True: something was done. *@ret_finished: calls are to be collected. */
bool calls_run(struct calls *calls, struct engine *engine, bool *ret_finished);
/* Engine thread. None has come, and none is left. */
bool calls_are_done(const struct calls *calls);
/* Engine thread. One has come that was not run yet. */
bool calls_are_new(const struct calls *calls);
/* Control thread: those that have ended, in order, by scheduler_call.next. */
struct scheduler_call *calls_collect(struct calls *calls);
