/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to join a communicator, from the first rank to the last, the deadline, or a death. */
#pragma once

#include <stdint.h>

#include "proto/status.h"

struct comm;
struct control;
struct context;
struct joiner;
struct request;
struct session;

/* handle_join_comm() in dispatch.h starts one. */

/*
 * The joins of @session that wait, in @context or (NULL) in all: they end, and those who wait with
 * them. @exit: as in session_end().
 */
void joins_abort(struct control *control, struct session *session, struct context *context,
		 int32_t exit);
/*
 * Answers all who wait, and those who come later, and ends the communicator if nothing else keeps
 * it.
 */
void join_fail(struct comm *comm, enum cause cause, const char *text);
/* The rank gives up waiting: its program has called HcclCommDestroy. The others end with it. */
void join_cancel(struct joiner *joiner, const char *what);
/* The callback of control->join_timer. */
void joins_expire(void *control);
