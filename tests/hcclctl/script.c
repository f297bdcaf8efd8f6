/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script FILE OPERATIONS...: rank i does what argument i says, separated by commas; streams are 0 (unless it ends with :STREAM) to 3.
 *   sPEER:BYTES rPEER:BYTES   a send, a receive
 *   b                         a barrier
 *   cCOUNT                    so many barriers, each waited for
 *   hMS                       a host function that runs so long
 *   y                         waits for all streams
 *   pMS                       pauses
 *   fNUMBER                   goes on when there is FILE.stepNUMBER
 *   d                         destroys the communicator
 * FILE may be table:FILE, a rank table; with OWN_ROOT in the environment each rank makes a root info, as none should.
 * Says "waiting" once the communicator is there. Ends with status 0, or with 1 and the text of the first error.
 */
#include <string.h>

#include "tests/hcclctl/program.h"

#define STREAMS 4
static aclrtStream streams[STREAMS];
static HcclComm comm;
static char *data;

static void nap(void *ms)
{
	usleep((useconds_t)(size_t)ms * 1000);
}

static void run(const char *operation)
{
	unsigned long first = 0, second = 0, third = 0;
	int count = sscanf(operation + 1, "%lu:%lu:%lu", &first, &second, &third);
	aclrtStream stream;

	if (operation[0] == 'b')
		count = sscanf(operation + 1, ":%lu", &third);
	else if (operation[0] == 'h' && count == 2)
		third = second;
	stream = streams[third % STREAMS];
	switch (operation[0]) {
	case 's':
		TRY(HcclSend(data, second, HCCL_DATA_TYPE_INT8, (uint32_t)first, comm, stream));
		return;
	case 'r':
		TRY(HcclRecv(data + (1 << 20), second, HCCL_DATA_TYPE_INT8, (uint32_t)first, comm, stream));
		return;
	case 'b':
		TRY(HcclBarrier(comm, stream));
		return;
	case 'c':
		for (unsigned long i = 0; i < first; i++) {
			TRY(HcclBarrier(comm, stream));
			TRY(aclrtSynchronizeStream(stream));
		}
		return;
	case 'h':
		TRY(aclrtLaunchHostFunc(stream, nap, (void *)first));
		return;
	case 'y':
		for (int i = 0; i < STREAMS; i++)
			TRY(aclrtSynchronizeStream(streams[i]));
		return;
	case 'p':
		nap((void *)first);
		return;
	case 'd':
		TRY(HcclCommDestroy(comm));
		return;
	case 'f':
		wait_for_step(first);
		return;
	default:
		exit(2);
	}
}

int main(int argc, char **argv)
{
	uint32_t rank = (uint32_t)atoi(getenv("RANK_ID")), size = (uint32_t)atoi(getenv("RANK_SIZE"));
	HcclRootInfo root;

	if (argc < 2 + (int)size)
		return 2;
	step_path = argv[1];
	TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	if (strncmp(argv[1], "table:", 6) == 0) {
		TRY(HcclCommInitClusterInfo(argv[1] + 6, rank, &comm));
	} else {
		if (getenv("OWN_ROOT"))
			TRY(HcclGetRootInfo(&root));
		else
			share(&root, rank, argv[1]);
		TRY(HcclCommInitRootInfo(size, &root, rank, &comm));
	}
	for (int i = 0; i < STREAMS; i++)
		TRY(aclrtCreateStream(&streams[i]));
	TRY(aclrtMalloc((void **)&data, 2 << 20, ACL_MEM_MALLOC_HUGE_FIRST));
	printf("waiting\n");
	fflush(stdout);
	for (const char *operation = strtok(argv[2 + rank], ","); operation; operation = strtok(NULL, ","))
		run(operation);
	run("y");
	return 0;
}
