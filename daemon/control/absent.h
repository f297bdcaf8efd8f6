/* SPDX-License-Identifier: Apache-2.0 */
/* Why a communicator lacks ranks: what can be told of processes that may be these. Control thread. */
#pragma once

#include <stdint.h>

struct comm;
struct text;

/*
 * Adds "; pid 4711 waits as rank 0 of 3 with a table that differs, or for another HCCLD_JOB: compare them", "; pid 4711 has joined nothing
 * and is stopped (SIGSTOP or a debugger): kill -CONT 4711, or the debugger, lets it go on", or nothing.
 * Returns the process that has joined nothing, 0: there is none.
 */
int32_t absent_explain(const struct comm *comm, struct text *text);
/* @comm has waited for long enough: those that waited beside it know of it when their time is over. */
void absent_remember(const struct comm *comm);
/* "; look for this process, and whether it got the same root info"; at @pid, what absent_explain() has returned, unless it is 0. */
void absent_advise(const struct comm *comm, int32_t pid, struct text *text);
/* Who has waited longest; NULL: nobody waits. */
const struct joiner *absent_first(const struct comm *comm);
