/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-bound ownership: CLEANUP(fn) locals, take_*() to move out of them. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void close_fdp(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void freep(void *p)
{
	free(*(void **)p);
	*(void **)p = NULL;
}

#define take_ptr(p) ({ __typeof__(*(p)) taken_ = *(p); *(p) = NULL; taken_; })
