/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to join a communicator, from the first rank to the last, the deadline, or a death. */
#pragma once

#include <stdint.h>

struct control;
struct context;
struct request;
struct session;

/* handle_join_comm() in dispatch.h starts one. */

/*
 * The joins of @session that wait, in @context or (NULL) in all: they end, and those who wait with
 * them. @exit: as in session_end().
 */
void joins_abort(struct control *control, struct session *session, struct context *context,
		 int32_t exit);
/* The callback of control->join_timer. */
void joins_expire(void *control);
