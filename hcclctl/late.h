/* SPDX-License-Identifier: Apache-2.0 */
/* Why a daemon does not answer. For signal handlers: no memory, no locks. */
#pragma once

#include <stddef.h>

/*
 * Says it behind the @length bytes of @text, which has @size: ": pid 4711 is stopped (SIGSTOP or a debugger): kill -CONT 4711, or the
 * debugger, lets it go on" of the daemon at the socket @path, or "; its log says more". Returns the new length.
 */
size_t late_explain(const char *path, char *text, size_t length, size_t size);
