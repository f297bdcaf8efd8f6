/* SPDX-License-Identifier: Apache-2.0 */
/* The line that `systemctl status` shows. Control thread. */
#pragma once

#include <stddef.h>

struct registry;

/* "8 devices, 12 sessions, 3 communicators; waiting for 12 s: ...", at most @size bytes with the end. */
void report_line(struct registry *registry, char *line, size_t size);
