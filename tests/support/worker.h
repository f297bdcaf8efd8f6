/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon behind a keeper: its only child, in whose place it starts another one. */
#pragma once

#include <sys/types.h>

/* Waits until there is one. */
pid_t worker_of(pid_t keeper);
/* kill -9. */
void worker_kill(pid_t keeper);
/* Waits until there is another one, too: it answers what is asked from now on. */
void worker_replace(pid_t keeper);
