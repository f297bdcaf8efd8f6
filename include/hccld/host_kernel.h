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
 * arguments, shared by all blocks and valid until the last returns. Must not throw.
 */
typedef void (*HccldHostKernel)(uint32_t block_index, uint32_t block_count, void *args);

/*
 * Queues a kernel of @block_count blocks on @stream. When the stream reaches it, all blocks run at
 * the same time on threads of this process, whatever the number of CPUs, so they may wait for each
 * other and for other ranks; the stream goes on when all have returned. The call copies args_size
 * bytes of @args (NULL if 0) and does not wait. @stream NULL: the default stream. Any thread.
 *
 * ACL_ERROR_INVALID_PARAM: kernel NULL, block_count 0, args NULL with a size;
 * ACL_ERROR_RT_CONTEXT_NULL: no device set; ACL_ERROR_RT_FEATURE_NOT_SUPPORT: not in this release.
 */
aclError HccldLaunchHostKernel(HccldHostKernel kernel, uint32_t block_count, const void *args,
		size_t args_size, aclrtStream stream);

#ifdef __cplusplus
}
#endif
