/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads FILE: a communicator of one rank with two threads and one on a stream of the program, and one of the device; the first waits
 * for a notify that nobody records. Says "waiting", and stays until it is killed.
 */
#include "hccl/hccl_res.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/hcclctl/program.h"

int main(void)
{
	const uint32_t notifies = 7;
	ThreadHandle threads[2], wrapped, alone;
	aclrtStream stream;
	HcclRootInfo root;
	HcclComm comm;

	TRY(aclrtSetDevice(0));
	TRY(aclrtCreateStream(&stream));
	TRY(HcclGetRootInfo(&root));
	TRY(HcclCommInitRootInfo(1, &root, 0, &comm));
	TRY(HcclThreadAcquire(comm, COMM_ENGINE_AICPU_TS, 2, 3, threads));
	TRY(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, stream, 2, &wrapped));
	TRY(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &notifies, &alone));
	TRY(HcommThreadNotifyWaitOnThread(threads[0], 1, 0));
	TRY(HcommThreadNotifyRecordOnThread(threads[0], threads[1], 0));
	printf("waiting\n");
	fflush(stdout);
	for (;;)
		pause();
}
