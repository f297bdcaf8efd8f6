/* SPDX-License-Identifier: Apache-2.0 */
/* touch_buffer FILE: writes a MiB of the HCCL buffer of a communicator of its own. Says "waiting", and ends when it is told to. */
#include <string.h>

#include "hccl/hccl_res.h"
#include "tests/hcclctl/program.h"

int main(void)
{
	HcclRootInfo root;
	HcclComm comm;
	void *buffer;
	uint64_t size;

	TRY(aclrtSetDevice(0));
	TRY(HcclGetRootInfo(&root));
	TRY(HcclCommInitRootInfo(1, &root, 0, &comm));
	TRY(HcclGetHcclBuffer(comm, &buffer, &size));
	memset(buffer, 1, 1 << 20);
	printf("waiting\n");
	fflush(stdout);
	pause();
	return 1;
}
