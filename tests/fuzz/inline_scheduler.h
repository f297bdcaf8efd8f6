/* SPDX-License-Identifier: Apache-2.0 */
/* The engine, passed by hand (inline_scheduler.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct scheduler;

/* Calls, contexts, slices until nothing moves. True if something did. */
bool scheduler_turn(struct scheduler *scheduler);
/* A heartbeat as if it came @later_ns from now. */
void scheduler_beat(struct scheduler *scheduler, uint64_t later_ns);
