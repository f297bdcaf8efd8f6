/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that somebody else has made and we do not want. */
#pragma once

#include <stddef.h>

/*
 * Closes them in a thread of its own: the last close of a socket that lingers, or of a file whose
 * server does not answer, takes as long as its maker likes. Any thread.
 */
void discard_fds(const int *fds, size_t count);
