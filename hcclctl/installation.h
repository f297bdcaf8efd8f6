/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of this installation are, found from the place of our own executable: an installed tree can be moved as a whole. */
#pragma once

#include <limits.h>

/* Each writes a path into PATH_MAX bytes. -ENOENT: this installation does not have it. */

/* The daemon: <prefix>/sbin/hccld, in a build directory daemon/hccld, else the one in PATH. */
int installation_daemon(char *path);
/* The tree for ASCEND_HOME_PATH: <prefix>/lib/hccld/ascend, in a build directory ascend. */
int installation_ascend(char *path);
/* The directory of this executable. */
int installation_bin(char *path);
