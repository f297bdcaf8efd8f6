/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals for want of what a process that has ended still holds. Whoever waits for the end of a process hears of it before we have found
 * it, and long before its memory is free: what is asked for then is asked again when all that ends has gone, and refused only then.
 */
#pragma once

#include <stdbool.h>

struct control;
struct request;

/* @r: what the handler of @request has returned. True: it is done again later, and is not the caller's any more. */
bool retry_hold(struct request *request, int r);
/* A session has gone, with all that it held. */
void retry_soon(struct control *control);
/* Vector cores were given back: requests for which there are enough now are done. Who gives makes no work with the others. */
void retry_cores(struct control *control);
/* The timer of control. */
void retry_held(void *data);
/* Connections are gone: nobody waits for a reply. */
void retry_drop(struct control *control);
