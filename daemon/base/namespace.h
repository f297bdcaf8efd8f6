/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces of other processes. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The inode of @pid's user namespace; 0: unknown. Without the right to look at the process the
 * namespace is known only if it maps users exactly as our own does: then it is taken for ours.
 */
uint64_t namespace_of_process(int32_t pid);
/*
 * The same of a descriptor that somebody sent, without asking what is behind it before it is known
 * to be a namespace: a descriptor of a file system that its sender serves could block us. -EINVAL:
 * it is no user namespace. @fd stays the caller's.
 */
int namespace_of_fd(int fd, uint64_t *ret_inode);
/*
 * Is @uid what the kernel says of users that our namespace has no number for? Then it names nobody.
 */
bool namespace_uid_is_nobody(uint32_t uid);
