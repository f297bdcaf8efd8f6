/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls to the engine thread (scheduler/scheduler.h) have in common that are to run in the order given, each when the one before it is
 * over. Embedded in what they are about; zero at first. It is the engine thread's while there are such calls.
 */
#pragma once

#include <stdbool.h>

struct scheduler_call;

struct line {
	struct scheduler_call *first, *last; /* behind one that is to be run again */
	bool waits;			     /* there is one */
};
