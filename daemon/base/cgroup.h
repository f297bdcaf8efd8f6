/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pod, job, container, login session or service a process belongs to, by its cgroup. Any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Cuts the path of a cgroup behind the outermost component that stands for a pod, a job, a
 * container, a login session, a user's service manager or a service; what is below may have been
 * made and named by the processes in it. "" if there is none. @size: at least 64; a longer result
 * begins with a hash of itself.
 */
void cgroup_cut(const char *path, char *ret_cut, size_t size);
/*
 * The same for the content of a /proc/PID/cgroup: of version 2 and of the version 1 controllers
 * that say something, in this order.
 */
void cgroup_cut_file(const char *content, char *ret_cut, size_t size);
/* Of hierarchy @controller ("": version 2) in such content. False: there is none. */
bool cgroup_hierarchy_path(const char *content, const char *controller, char *ret_path, size_t size);
/* The same for process @pid. -ENOENT: its file cannot be read. */
int cgroup_of_process(int32_t pid, char *ret_cut, size_t size);
