/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that names functions of every kind and calls one that needs no daemon, to be linked in
 * many ways by link.py. Valid C and C++. Exit status 0: all functions are there.
 */
#include "acl/acl.h"
#include "hccl/hccl.h"
#ifdef USE_HOST_KERNEL
#include "hccld/host_kernel.h"
#endif

typedef void (*function)(void);

int main(void)
{
	function used[] = {
		(function)HcclCommInitRootInfo,	/* weak */
		(function)HcclGetErrorString,
		(function)HcclCommDestroy,
		(function)HcclBatchSendRecv,	/* strong */
		(function)aclrtMalloc,
		(function)aclrtSynchronizeStream,
#ifdef USE_HOST_KERNEL
		(function)HccldLaunchHostKernel,
#endif
	};
	const char *text;
	unsigned i;

	for (i = 0; i < sizeof(used) / sizeof(used[0]); i++)
		if (!used[i])
			return 2;
	text = HcclGetErrorString(HCCL_E_PARA);
	return text && text[0] ? 0 : 3;
}
