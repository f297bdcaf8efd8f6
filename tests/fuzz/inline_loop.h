/* SPDX-License-Identifier: Apache-2.0 */
/* Turning the loop by hand (inline_loop.c). */
#pragma once

#include <stdbool.h>

struct loop;

/* What is ready is called once; true if something was. */
bool loop_turn(struct loop *loop);
/* Every timer that runs is due now, however long it was to be. */
void loop_advance(struct loop *loop);
