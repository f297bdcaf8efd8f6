/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libhccld.so.1: host kernels. One line per function, in the order of the
 * headers: it answers "not supported" with a text that names it. Whoever builds one takes its
 * line away.
 */
#include "client/unbuilt.h"
#include "hccld/host_kernel.h"

/* hccld/host_kernel.h */
UNBUILT_ACL(HccldLaunchHostKernel, (HccldHostKernel kernel, uint32_t block_count, const void *args,
		size_t args_size, aclrtStream stream))
