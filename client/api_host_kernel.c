/* SPDX-License-Identifier: Apache-2.0 */
/* Host kernels, in libhccld.so.1. */
#include "client/argument.h"
#include "client/kernel.h"
#include "client/stream.h"
#include "hccld/host_kernel.h"

aclError HccldLaunchHostKernel(HccldHostKernel kernel, uint32_t block_count, const void *args,
			       size_t args_size, aclrtStream stream)
{
	struct hccld_stream *found;
	int r;

	if (!kernel || (!args && args_size))
		return null_error(__func__, kernel ? "args" : "kernel");
	/* one code for all three, as the header says */
	if (!block_count)
		return hccld_acl_result(hccld_error(CAUSE_NULL, "%s: block_count is 0; expected 1 to the vector cores of the device",
						    __func__));
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		r = hccld_kernel_launch(found, kernel, block_count, args, args_size);
	return hccld_acl_result(r);
}
