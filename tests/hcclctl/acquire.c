/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acquire FILE OPERATIONS...: rank i does what argument i says, separated by commas, and waits for each to end.
 *   aPEER...   acquires a channel to PEER, or to several (a12) in one call
 *   oPEER      the same with another engine and protocol
 *   b          a barrier
 *   rPEER      receives 8 bytes
 *   k          a host kernel of 2 blocks, for which nobody sets what it waits for
 *   p          pauses for ever
 *   fNUMBER    goes on when there is FILE.stepNUMBER
 * With THREADS in the environment all ranks are threads of this process, on so many devices. Says "waiting" once the communicator is there,
 * and stays until it is killed.
 */
#include <pthread.h>
#include <string.h>

#include "hccl/hccl_res.h"
#include "hccld/host_kernel.h"
#include "tests/hcclctl/program.h"

#define RANKS 4

struct member {
	uint32_t rank, size;
	int device;
	char *operations;
	HcclRootInfo *root;
	HcclComm comm;
	aclrtStream stream;
};

static void acquire(struct member *member, const char *peers, CommEngine engine, CommProtocol protocol)
{
	uint32_t count = (uint32_t)strlen(peers);
	ChannelHandle channels[RANKS];
	HcclChannelDesc descs[RANKS];

	if (count > RANKS)
		exit(2);
	TRY(HcclChannelDescInit(descs, count));
	for (uint32_t i = 0; i < count; i++) {
		descs[i].remoteRank = (uint32_t)(peers[i] - '0');
		descs[i].channelProtocol = protocol;
	}
	TRY(HcclChannelAcquire(member->comm, engine, descs, count, channels));
}

static void wait_in_vain(uint32_t block, uint32_t count, void *arguments)
{
	(void)block;
	(void)count;
	(void)arguments;
	for (;;)
		pause();
}

static void run(struct member *member, const char *operation)
{
	void *data;

	switch (operation[0]) {
	case 'a':
		acquire(member, operation + 1, COMM_ENGINE_AIV, COMM_PROTOCOL_UB_MEM);
		return;
	case 'o':
		acquire(member, operation + 1, COMM_ENGINE_CPU, COMM_PROTOCOL_ROCE);
		return;
	case 'b':
		TRY(HcclBarrier(member->comm, member->stream));
		TRY(aclrtSynchronizeStream(member->stream));
		return;
	case 'r':
		TRY(aclrtMalloc(&data, 8, ACL_MEM_MALLOC_HUGE_FIRST));
		TRY(HcclRecv(data, 8, HCCL_DATA_TYPE_INT8, (uint32_t)atoi(operation + 1), member->comm, member->stream));
		TRY(aclrtSynchronizeStream(member->stream));
		return;
	case 'k':
		TRY(HccldLaunchHostKernel(wait_in_vain, 2, NULL, 0, member->stream));
		TRY(aclrtSynchronizeStream(member->stream));
		return;
	case 'p':
		for (;;)
			pause();
	case 'f':
		wait_for_step(strtoul(operation + 1, NULL, 10));
		return;
	default:
		exit(2);
	}
}

static void *be(void *data)
{
	struct member *member = data;
	char *rest = member->operations;

	TRY(aclrtSetDevice(member->device));
	TRY(HcclCommInitRootInfo(member->size, member->root, member->rank, &member->comm));
	TRY(aclrtCreateStream(&member->stream));
	if (member->rank == 0 || !getenv("THREADS")) {
		printf("waiting\n");
		fflush(stdout);
	}
	for (const char *operation = strtok_r(rest, ",", &rest); operation; operation = strtok_r(NULL, ",", &rest))
		run(member, operation);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *threads = getenv("THREADS");
	uint32_t size = threads ? (uint32_t)argc - 2 : (uint32_t)atoi(getenv("RANK_SIZE"));
	struct member members[RANKS] = { 0 };
	HcclRootInfo root;
	pthread_t thread;

	if (argc < 2 + (int)size || size > RANKS)
		return 2;
	step_path = argv[1];
	if (!threads) {
		uint32_t rank = (uint32_t)atoi(getenv("RANK_ID"));

		TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
		share(&root, rank, argv[1]);
		members[0] = (struct member){ rank, size, atoi(getenv("DEVICE_ID")), argv[2 + rank], &root, NULL, NULL };
		be(&members[0]);
		return 1;
	}
	TRY(aclrtSetDevice(0));
	TRY(HcclGetRootInfo(&root));
	for (uint32_t i = 0; i < size; i++) {
		members[i] = (struct member){ i, size, (int)i % atoi(threads), argv[2 + i], &root, NULL, NULL };
		if (pthread_create(&thread, NULL, be, &members[i]) != 0)
			return 1;
	}
	for (;;)
		pause();
}
