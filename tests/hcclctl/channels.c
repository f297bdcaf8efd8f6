/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channels FILE: two ranks have a channel with two regions of memory under one tag and three notifies each; rank 0 waits for another one,
 * for which nobody comes. Says "waiting", frees the memory of the second region at SIGUSR1, destroys the channel at the next one, and ends
 * when it is told to.
 */
#include <pthread.h>
#include <signal.h>

#include "hccl/hccl_res.h"
#include "tests/hcclctl/program.h"

static HcclComm comm;

static void *wait_in_vain(void *argument)
{
	HcclChannelDesc desc;
	ChannelHandle channel;

	TRY(aclrtSetDevice(0));
	TRY(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = 1;
	desc.channelProtocol = COMM_PROTOCOL_ROCE;
	(void)HcclChannelAcquire(comm, COMM_ENGINE_CPU, &desc, 1, &channel);
	return NULL;
}

int main(int argc, char **argv)
{
	uint32_t rank = (uint32_t)atoi(getenv("RANK_ID"));
	CommMem mem, part;
	HcclMemHandle handles[2];
	HcclChannelDesc desc;
	ChannelHandle channel;
	HcclRootInfo root;
	pthread_t thread;
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (argc != 2)
		return 2;
	TRY(aclrtSetDevice(atoi(getenv("DEVICE_ID"))));
	share(&root, rank, argv[1]);
	TRY(HcclCommInitRootInfo(2, &root, rank, &comm));
	mem.type = COMM_MEM_TYPE_DEVICE;
	mem.size = 1 << 20;
	TRY(aclrtMalloc(&mem.addr, mem.size, ACL_MEM_MALLOC_HUGE_FIRST));
	TRY(HcclCommMemReg(comm, "area", &mem, &handles[0]));
	part = mem;
	part.size = 1 << 12;
	TRY(aclrtMalloc(&mem.addr, mem.size, ACL_MEM_MALLOC_HUGE_FIRST));
	part.addr = (char *)mem.addr + (1 << 16);
	TRY(HcclCommMemReg(comm, "area", &part, &handles[1]));
	TRY(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = rank ^ 1;
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	desc.memHandles = handles;
	desc.memHandleNum = 2;
	desc.notifyNum = 3;
	TRY(HcclChannelAcquire(comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	if (rank == 0 && pthread_create(&thread, NULL, wait_in_vain, NULL) != 0)
		return 1;
	printf("waiting\n");
	fflush(stdout);
	sigwait(&set, &number);
	TRY(aclrtFree(mem.addr));
	sigwait(&set, &number);
	TRY(HcclChannelDestroy(comm, &channel, 1));
	pause();
	return 1;
}
