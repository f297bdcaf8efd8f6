/* SPDX-License-Identifier: Apache-2.0 */
/* The file that aclInit is given. Any thread. */
#pragma once

/* The result is an acl code; text set. */
int hccld_init_file_check(const char *path);
