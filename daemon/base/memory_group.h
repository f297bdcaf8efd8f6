/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the control groups of this process let it take. Memory beyond is not refused by the kernel: it kills. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct memory_group {
	char path[4096];    /* the innermost; "" if there is none */
	size_t root_length; /* of the mount in it: where the way up ends */
};

/* @content: of a /proc/PID/cgroup. @mount: /sys/fs/cgroup. */
void memory_group_find(const char *content, const char *mount, struct memory_group *ret_group);
/* The least limit on the way up, in bytes. UINT64_MAX: none. */
uint64_t memory_group_limit(const struct memory_group *group);
/* What is free below all limits, in bytes; what the kernel can drop counts as free. UINT64_MAX: no limit. */
uint64_t memory_group_available(const struct memory_group *group);
/* Of this process, now. */
void memory_group_self(struct memory_group *ret_group);
