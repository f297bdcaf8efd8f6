/* SPDX-License-Identifier: Apache-2.0 */
/* What the log says when a process with a session has ended. */
#pragma once

#include <stdint.h>

struct session;
struct text;

/* "killed by signal 9": @exit is a wait status, -1 if it is not known. */
void exit_describe(int32_t exit, struct text *text);
/* Before its objects are taken away. An end without failure is told at level debug only. */
void obituary_log(const struct session *session, int32_t exit);
