/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that clients connect to, as a name in the file system. */
#pragma once

#include <stdbool.h>

/*
 * Binds and listens on @path. Its directory is made if @make_directory; a socket that nobody
 * listens on is replaced. -EADDRINUSE: another daemon answers there. Failures are logged.
 */
int endpoint_listen(const char *path, bool make_directory, int *ret_fd);
/* A socket that another process listens on is ours from now on: SO_PEERCRED says so to who connects. */
void endpoint_adopt(int fd);
/* Does @fd listen on what is at @path now? */
bool endpoint_is_at(int fd, const char *path);
