/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of teardowns, for teardown.c, teardown_lost.c and teardown_session.c: one is made, is given what it takes away, and is started. */
#pragma once

#include <stdint.h>

#include "control/teardown.h"
#include "proto/region.h"

struct teardown;
struct thread;

/* @request: answered at its end; NULL: nobody waits. NULL: no memory. */
struct teardown *teardown_make(struct control *control, struct session *session, struct request *request);
/* In line with the others of the session. */
void teardown_start(struct teardown *teardown);

void teardown_take_segment(struct teardown *teardown, struct segment *segment);
/* @word, @exit: what others are told of it. */
void teardown_take_rank(struct teardown *teardown, struct rank *rank, enum member_word word, int32_t exit);
/* With the stream that was made with it. */
void teardown_take_thread(struct teardown *teardown, struct thread *thread);
/* All that the session has, and starts it: its last. @arg: the teardown. */
void teardown_take_session(void *arg);
/* Nothing more of it will be free. */
void session_gone(struct control *control, struct session *session);
/* And starts it. */
void teardown_take_notifies(struct teardown *teardown, struct notifies *notifies);
