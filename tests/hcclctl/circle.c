/* SPDX-License-Identifier: Apache-2.0 */
/*
 * circle FILE: every rank waits for the one before it to send first, so that none ever does. Says "waiting", and ends with status 0 when
 * the operation ends with an error.
 */
#include "tests/hcclctl/program.h"

int main(int argc, char **argv)
{
	uint32_t rank = (uint32_t)atoi(getenv("RANK_ID")), size = (uint32_t)atoi(getenv("RANK_SIZE"));
	HcclRootInfo root;
	aclrtStream stream;
	HcclComm comm;
	void *data;

	if (argc != 2)
		return 2;
	TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	share(&root, rank, argv[1]);
	TRY(HcclCommInitRootInfo(size, &root, rank, &comm));
	TRY(aclrtCreateStream(&stream));
	TRY(aclrtMalloc(&data, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(HcclRecv(data, 4096, HCCL_DATA_TYPE_INT8, (rank + size - 1) % size, comm, stream));
	printf("waiting\n");
	fflush(stdout);
	return aclrtSynchronizeStream(stream) == 0;
}
