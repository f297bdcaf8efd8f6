/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that run on the CPUs of this process; what hccld adds to CANN. Library libhccld.so. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One block of a kernel: block_index is 0 to block_count - 1, args the launch's copy of its
 * arguments, shared by all blocks and valid until the last returns. Must not throw. A block that
 * ends its thread (pthread_exit) has returned. Debuggers see the thread of block 5 as hccld-kernel-5
 * (from 100 on hccld-k-100), until it runs another one.
 */
typedef void (*HccldHostKernel)(uint32_t block_index, uint32_t block_count, void *args);

/*
 * Queues a kernel of @block_count blocks on @stream. When the stream reaches it, all blocks run at
 * the same time on threads of this process, whatever the number of CPUs, so they may wait for each
 * other and for other ranks; the stream goes on when all have returned. Kernels of different
 * streams run at the same time, too. The call copies args_size bytes of @args (NULL if 0) and does
 * not wait for the kernel. @stream NULL: the default stream. Any thread.
 *
 * Each block takes a vector core of the device ([devices] vector_cores_per_device of the daemon). A
 * stream holds as many as its largest queued kernel has blocks, until none is queued. A launch for
 * which not enough are free is refused, and does not wait for others to end.
 *
 * The threads of blocks have no current device: a block that calls acl functions which need one sets
 * it (aclrtSetDevice). In a block the rules of host functions hold: to wait for its own stream is refused
 * (ACL_ERROR_RT_STREAM_CONTEXT). A kernel that is queued does not run if its stream ends before, is
 * aborted, or has stopped at an error. One that runs is never interrupted: if its stream is
 * destroyed by force, or its device reset by force, it goes on, and the device memory that it uses
 * may be gone; it keeps a vector core for each of its blocks until it ends, or the process or its
 * session (hcclctl kill). exit() does not wait for it.
 * Memory of a peer that a channel has brought reads as zeros for it, and what it stores there reaches
 * nobody, once this process has ended the channel, or a call in it has heard that the peer has.
 *
 * ACL_ERROR_INVALID_PARAM: kernel NULL, block_count 0, args NULL with a size;
 * ACL_ERROR_RT_PARAM_INVALID: more blocks than the device has vector cores;
 * ACL_ERROR_RT_RESOURCE_ALLOC_FAIL: so many are not free, the text names who holds them;
 * ACL_ERROR_RT_MEMORY_ALLOCATION: no memory or threads; ACL_ERROR_RT_CONTEXT_NULL: no device set;
 * ACL_ERROR_RT_INVALID_HANDLE: no such stream; ACL_ERROR_RT_FEATURE_NOT_SUPPORT: the daemon is of
 * release 0.2.0 or older.
 */
aclError HccldLaunchHostKernel(HccldHostKernel kernel, uint32_t block_count, const void *args,
		size_t args_size, aclrtStream stream);

#ifdef __cplusplus
}
#endif
