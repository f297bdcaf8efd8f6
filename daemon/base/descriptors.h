/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit of open files, and a reserve below it: what everybody may use ends at the soft limit, and accepting a
 * connection can go beyond it, so that somebody can still look why. Control thread.
 */
#pragma once

#include <stdbool.h>

#define DESCRIPTORS_RESERVED 32u

/* Raises the soft limit to the hard one less the reserve. With a very low limit there is no reserve. */
void descriptors_init(void);
/*
 * A connection of @listen_fd, close-on-exec and non-blocking, or a negative errno of accept4(). *@ret_reserved: it was
 * possible only with the reserve.
 */
int descriptors_accept(int listen_fd, bool *ret_reserved);
