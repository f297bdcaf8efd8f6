/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes: who is at the other end of a socket, whether it lives, how it ended. Stateless.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_identity {
	int32_t pid; /* 0: in a namespace that we cannot see */
	uint32_t uid, gid;
};

/* From the kernel, as of connect(). */
int process_peer(int socket_fd, struct process_identity *ret_identity);
/* A pidfd of the process at the other end. -ESRCH: it is gone. */
int process_peer_pidfd(int socket_fd, int32_t pid, int *ret_pidfd);
/* Of one process group or session, as the processes of a job are that one shell has started. */
bool process_is_related(int32_t pid, int32_t other);
/* By a signal or a debugger. */
bool process_is_stopped(int32_t pid);
/* Does its first thread run, or wait for a processor, at this moment? */
bool process_is_running(int32_t pid);
bool process_has_ended(int pidfd);
/*
 * Wait status of a process whose pidfd is readable. -EAGAIN: not known yet, it may be once its
 * parent has collected it. -ENOENT: will never be known.
 */
int process_exit_status(int pidfd, int32_t pid, int32_t *ret_status);
/* Memory of the node that can be had without harm, in bytes. UINT64_MAX: unknown. */
uint64_t memory_available(void);
/* Of the node, or what our control group may have if that is less. */
uint64_t memory_total(void);
