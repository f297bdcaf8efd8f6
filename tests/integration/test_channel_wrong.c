/* SPDX-License-Identifier: Apache-2.0 */
/* Registered memory and channels: every wrong argument has its code and a text, and changes nothing. */
#include <pthread.h>
#include <string.h>

#include "tests/support/job.h"
#include "hccl/hccl_res.h"

static HcclChannelDesc desc_of(uint32_t peer)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	return desc;
}

static void settle(const struct job_rank *rank)
{
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

/* ---- memory ---- */

/* Regions that share bytes, and what is left of those that are freed. */
static void overlaps(struct job_rank *rank, char *memory)
{
	CommMem mem = { COMM_MEM_TYPE_DEVICE, memory, 1024 };
	HcclMemHandle handle = NULL, other = NULL, again = NULL;
	char tag[300];
	void *host;

	memset(tag, 't', sizeof(tag));
	tag[255] = 0;
	check_ok(HcclCommMemReg(rank->comm, tag, &mem, &handle));
	/* not the same: each of these shares bytes with it */
	check_fails(HcclCommMemReg(rank->comm, "other", &mem, &other), HCCL_E_PARA, "that overlap these");
	mem.size = 1;
	check_fails(HcclCommMemReg(rank->comm, tag, &mem, &other), HCCL_E_PARA, "that overlap these");
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, memory + 1023, 2 };
	check_fails(HcclCommMemReg(rank->comm, "other", &mem, &other), HCCL_E_PARA, "1024 bytes under tag \"ttt");
	check_null(other);
	mem.addr = memory + 1024;
	check_ok(HcclCommMemReg(rank->comm, "other", &mem, &other));
	check(other != handle);
	check_ok(aclrtMallocHost(&host, 100));
	mem = (CommMem){ COMM_MEM_TYPE_HOST, host, 100 };
	check_ok(HcclCommMemReg(rank->comm, "host", &mem, &other));
	/* a call that fails to free it leaves it registered */
	check_fails(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID, "aclrtMalloc returned");
	check_ok(HcclCommMemReg(rank->comm, "host", &mem, &again));
	check_eq_ptr(again, other);
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, memory, 1024 };
	check_fails(aclrtFreeHost(memory), ACL_ERROR_RT_PARAM_INVALID, "aclrtMallocHost returned");
	check_ok(HcclCommMemReg(rank->comm, tag, &mem, &again));
	check_eq_ptr(again, handle);
	/* freed, it is registered no more: what lies there next can be */
	check_ok(aclrtFreeHost(host));
	check_ok(aclrtFree(memory));
	memory = job_memory(4096, 0);
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, memory, 4096 };
	check_ok(HcclCommMemReg(rank->comm, "again", &mem, &other));
}

static void registers(struct job_rank *rank)
{
	char *memory = job_memory(4096, 0), tag[300], ordinary[64];
	CommMem mem = { COMM_MEM_TYPE_DEVICE, memory, 1024 }, bad;
	HcclMemHandle handle = NULL;

	memset(tag, 't', sizeof(tag));
	tag[256] = 0;
	check_fails(HcclCommMemReg(NULL, "tag", &mem, &handle), HCCL_E_PARA, "comm is NULL");
	check_fails(HcclCommMemReg(rank->comm, NULL, &mem, &handle), HCCL_E_PARA, "memTag is NULL");
	check_fails(HcclCommMemReg(rank->comm, "tag", NULL, &handle), HCCL_E_PARA, "mem is NULL");
	check_fails(HcclCommMemReg(rank->comm, "tag", &mem, NULL), HCCL_E_PARA, "memHandle is NULL");
	check_fails(HcclCommMemReg(rank->comm, "", &mem, &handle), HCCL_E_PARA, "no bytes");
	check_fails(HcclCommMemReg(rank->comm, tag, &mem, &handle), HCCL_E_PARA, "too many bytes; expected 1 to 255");
	check_fails(HcclCommMemReg(&mem, "tag", &mem, &handle), HCCL_E_PARA, "no communicator");
	bad = mem;
	bad.addr = NULL;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "mem->addr is NULL");
	bad = mem;
	bad.type = (CommMemType)2;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "mem->type is 2");
	bad.type = COMM_MEM_TYPE_INVALID;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "mem->type is -1");
	bad.type = COMM_MEM_TYPE_HOST;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "device memory");
	bad = mem;
	bad.size = 0;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "mem->size is 0");
	bad.size = 8192;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "bytes from mem->addr on");
	bad.size = UINT64_MAX;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "bytes from mem->addr on");
	/* memory that no other process could reach */
	bad = (CommMem){ COMM_MEM_TYPE_HOST, ordinary, sizeof(ordinary) };
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "use aclrtMallocHost, not malloc");
	bad.type = COMM_MEM_TYPE_DEVICE;
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "use aclrtMalloc, not malloc");
	check_ok(aclrtMalloc(&bad.addr, 1024, ACL_MEM_MALLOC_HUGE_FIRST));
	check_ok(aclrtFree(bad.addr));
	check_fails(HcclCommMemReg(rank->comm, "tag", &bad, &handle), HCCL_E_PARA, "was freed: it is byte 0 of 1024 that were allocated");
	check_null(handle);
	overlaps(rank, memory);
	settle(rank);
}

static void registers_in_threads(void)
{
	job_ranks(2, 2, registers, NULL);
}

TEST(memory_that_cannot_be_registered)
{
	job_run(registers_in_threads);
}

/* ---- descriptors ---- */

/* What must refuse @desc with @result, in all functions that take one; nothing is written. */
static void refused(const struct job_rank *rank, const HcclChannelDesc *desc, HcclResult result, const char *part)
{
	HcclChannelDesc descs[2] = { desc_of(rank->rank ^ 1), *desc };
	ChannelHandle channels[2] = { 5, 6 };

	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, 2, channels), result, part);
	check_fails(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_AIV, descs, 2, NULL, channels), result, part);
	if (result != HCCL_E_NOT_FOUND)
		check_fails(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, descs, 2, channels), result, part);
	check_eq_uint(channels[0], 5);
	check_eq_uint(channels[1], 6);
}

static void has_wrong_descriptors(struct job_rank *rank)
{
	HcclMemHandle handles[257] = { rank };
	HcclChannelDesc desc;

	desc = desc_of(rank->rank ^ 1);
	desc.header.magicWord = 1;
	refused(rank, &desc, HCCL_E_PARA, "channelDescs[1].header is version 1, magic word 0x1,");
	desc = desc_of(rank->rank ^ 1);
	desc.header.version = 0;
	refused(rank, &desc, HCCL_E_PARA, "header is version 0");
	desc = desc_of(rank->rank ^ 1);
	desc.header.size = 495;
	refused(rank, &desc, HCCL_E_PARA, "size 495; expected what HcclChannelDescInit writes: 1, 0xf0f0f0f, 496");
	refused(rank, (desc = desc_of(rank->rank), &desc), HCCL_E_PARA, "remoteRank is");
	refused(rank, (desc = desc_of(2), &desc), HCCL_E_PARA, "below 2");
	refused(rank, (desc = desc_of(UINT32_MAX), &desc), HCCL_E_PARA, "remoteRank is 4294967295");
	desc = desc_of(rank->rank ^ 1);
	desc.channelProtocol = COMM_PROTOCOL_RESERVED;
	refused(rank, &desc, HCCL_E_PARA, "channelProtocol is -1");
	desc.channelProtocol = (CommProtocol)10;
	refused(rank, &desc, HCCL_E_PARA, "channelProtocol is 10");
	desc = desc_of(rank->rank ^ 1);
	desc.memHandleNum = 257;
	desc.memHandles = handles;
	refused(rank, &desc, HCCL_E_PARA, "memHandleNum is 257; expected at most 256");
	desc.memHandleNum = 1;
	refused(rank, &desc, HCCL_E_NOT_FOUND, "has registered no such memory");
	desc.memHandles = NULL;
	refused(rank, &desc, HCCL_E_PTR, "memHandles is NULL, but memHandleNum is 1");
	desc = desc_of(rank->rank ^ 1);
	desc.notifyNum = UINT32_MAX;
	refused(rank, &desc, HCCL_E_PARA, "notifyNum is 4294967295; expected at most 65536");
	/* not even the good one of each list was offered: the other end would have come otherwise */
	settle(rank);
}

static void has_wrong_arguments(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(rank->rank ^ 1);
	ChannelHandle channel = 7;

	check_fails(HcclChannelAcquire(NULL, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, NULL, 1, &channel), HCCL_E_PTR, "channelDescs is NULL");
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, NULL), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelAcquire(&desc, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_PARA, "no communicator");
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 0, &channel), HCCL_E_PARA, "channelNum is 0");
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1048577, &channel), HCCL_E_PARA, "channelNum is 1048577");
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_RESERVED, &desc, 1, &channel), HCCL_E_PARA, "engine is -1");
	check_fails(HcclChannelAcquire(rank->comm, (CommEngine)6, &desc, 1, &channel), HCCL_E_PARA, "engine is 6");
	check_fails(HcclChannelQuery(NULL, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, NULL, 1, &channel), HCCL_E_PTR, "channelDescs is NULL");
	check_fails(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, &desc, 1, NULL), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelQuery(rank->comm, (CommEngine)6, &desc, 1, &channel), HCCL_E_PARA, "engine is 6");
	check_fails(HcclChannelQuery(rank->comm, COMM_ENGINE_AIV, &desc, 0, &channel), HCCL_E_PARA, "channelNum is 0");
	check_eq_uint(channel, 7);
	has_wrong_descriptors(rank);
}

static void wrong_arguments_in_threads(void)
{
	job_ranks(2, 2, has_wrong_arguments, NULL);
}

TEST(descriptors_that_are_wrong)
{
	job_run(wrong_arguments_in_threads);
}

/* A descriptor of a later release: larger, with a higher version. */
struct later {
	HcclChannelDesc desc;
	char more[64];
};

static void takes_later(struct job_rank *rank)
{
	struct later laters[2];
	ChannelHandle channels[2];
	static const CommProtocol protocols[] = { COMM_PROTOCOL_HCCS, COMM_PROTOCOL_SIO };

	memset(laters, 0xff, sizeof(laters));
	for (int i = 0; i < 2; i++) {
		laters[i].desc = desc_of(rank->rank ^ 1);
		laters[i].desc.channelProtocol = protocols[i];
		laters[i].desc.header.version = 2;
		laters[i].desc.header.size = sizeof(struct later);
	}
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &laters[0].desc, 2, channels));
	check(channels[0] != channels[1]);
	settle(rank);
}

static void takes_later_in_threads(void)
{
	job_ranks(2, 2, takes_later, NULL);
}

TEST(descriptors_may_grow)
{
	job_run(takes_later_in_threads);
}

/* ---- handles ---- */

static void has_wrong_handles(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(rank->rank ^ 1);
	ChannelHandle channel, list[3];
	void *buffer = &desc;
	uint64_t size = 7;
	uint32_t count = 8;
	CommMem *mems = NULL;
	char **tags = NULL;
	HcclComm alone;
	HcclMemHandle handle = NULL;

	alone = job_alone();
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	/* the peer's memory is not this rank's to register */
	check_ok(HcclChannelGetHcclBuffer(rank->comm, channel, &buffer, &size));
	check_fails(HcclCommMemReg(rank->comm, "tag", &(CommMem){ COMM_MEM_TYPE_DEVICE, buffer, 64 }, &handle), HCCL_E_PARA, "(EI0003): HcclCommMemReg: mem->addr is");
	check_null(handle);
	buffer = &desc;
	size = 7;
	check_fails(HcclChannelGetHcclBuffer(NULL, channel, &buffer, &size), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, channel, NULL, &size), HCCL_E_PTR, "buffer is NULL");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, channel, &buffer, NULL), HCCL_E_PTR, "size is NULL");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, 0, &buffer, &size), HCCL_E_PTR, "channel is 0");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, channel + 100, &buffer, &size), HCCL_E_NOT_FOUND, "no channel of this process");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, (uintptr_t)&desc, &buffer, &size), HCCL_E_NOT_FOUND, "no channel of this process");
	check_fails(HcclChannelGetHcclBuffer(alone, channel, &buffer, &size), HCCL_E_NOT_FOUND, "expected one of rank 0 of communicator");
	check_fails(HcclChannelGetRemoteMems(NULL, channel, &count, &mems, &tags), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelGetRemoteMems(rank->comm, channel, NULL, &mems, &tags), HCCL_E_PTR, "memNum is NULL");
	check_fails(HcclChannelGetRemoteMems(rank->comm, channel, &count, NULL, &tags), HCCL_E_PTR, "remoteMems is NULL");
	check_fails(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, NULL), HCCL_E_PTR, "memTags is NULL");
	check_fails(HcclChannelGetRemoteMems(rank->comm, 0, &count, &mems, &tags), HCCL_E_PTR, "channel is 0");
	check_fails(HcclChannelGetRemoteMems(rank->comm, channel + 100, &count, &mems, &tags), HCCL_E_NOT_FOUND, "no channel of this process");
	check_eq_ptr(buffer, &desc);
	check_eq_uint(size, 7);
	check_eq_uint(count, 8);
	check_null(mems);
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 0);
	settle(rank);
	check_fails(HcclChannelDestroy(NULL, &channel, 1), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelDestroy(rank->comm, NULL, 1), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelDestroy(rank->comm, &channel, 0), HCCL_E_PARA, "channelNum is 0");
	check_fails(HcclChannelDestroy(alone, &channel, 1), HCCL_E_NOT_FOUND, "rank 0 of communicator");
	/* it goes on after an error, and tells of the first */
	list[0] = 17;
	list[1] = channel;
	list[2] = 18;
	check_fails(HcclChannelDestroy(rank->comm, list, 3), HCCL_E_NOT_FOUND, "channel is 0x11:");
	check_fails(HcclChannelGetHcclBuffer(rank->comm, channel, &buffer, &size), HCCL_E_NOT_FOUND, "was destroyed");
	check_ok(HcclCommDestroy(alone));
	settle(rank);
}

static void wrong_handles_in_threads(void)
{
	job_ranks(2, 2, has_wrong_handles, NULL);
}

TEST(handles_that_are_wrong)
{
	job_run(wrong_handles_in_threads);
}

/* ---- settings ---- */

static void configures(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(rank->rank ^ 1);
	HcclChannelConfig config, ended;
	ChannelHandle channel;
	char tag[300];

	memset(tag, 't', sizeof(tag));
	tag[256] = 0;
	check_fails(HcclChannelConfigCreate(NULL), HCCL_E_PTR, "config is NULL");
	check_ok(HcclChannelConfigCreate(&config));
	check_fails(HcclChannelConfigSetInt(NULL, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1), HCCL_E_PTR, "config is NULL");
	check_fails(HcclChannelConfigSetInt(&config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1), HCCL_E_PARA, "no such object");
	check_fails(HcclChannelConfigSetInt(config, HCCL_CHANNEL_CONFIG_TYPE_INVALID, 1), HCCL_E_PARA, "type is -1");
	check_fails(HcclChannelConfigSetInt(config, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, 1), HCCL_E_PARA, "type is 1");
	check_fails(HcclChannelConfigSetInt(config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 2), HCCL_E_PARA, "value is 2");
	check_fails(HcclChannelConfigSetStr(NULL, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, "q"), HCCL_E_PTR, "config is NULL");
	check_fails(HcclChannelConfigSetStr(config, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, NULL), HCCL_E_PTR, "value is NULL");
	check_fails(HcclChannelConfigSetStr(config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, "q"), HCCL_E_PARA, "type is 0");
	check_fails(HcclChannelConfigSetStr(config, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, ""), HCCL_E_PARA, "no bytes");
	check_fails(HcclChannelConfigSetStr(config, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, tag), HCCL_E_PARA, "1 to 255 bytes");
	/* shared, without a name for it; then with one, but not what can share */
	check_ok(HcclChannelConfigSetInt(config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1));
	check_fails(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_AIV, &desc, 1, config, &channel), HCCL_E_PARA, "has no HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG");
	tag[255] = 0;
	check_ok(HcclChannelConfigSetStr(config, HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG, tag));
	check_fails(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_CPU, &desc, 1, config, &channel), HCCL_E_NOT_SUPPORT, "engine is CPU");
	desc.channelProtocol = COMM_PROTOCOL_ROCE;
	check_fails(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_AIV, &desc, 1, config, &channel), HCCL_E_NOT_SUPPORT, "channelProtocol is ROCE");
	desc.channelProtocol = COMM_PROTOCOL_UB_MEM;
	check_ok(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_AIV, &desc, 1, config, &channel));
	ended = config;
	check_ok(HcclChannelConfigDestroy(config));
	check_fails(HcclChannelConfigDestroy(ended), HCCL_E_PARA, "was destroyed");
	check_fails(HcclChannelConfigDestroy(NULL), HCCL_E_PTR, "config is NULL");
	check_fails(HcclChannelAcquireWithConfig(rank->comm, COMM_ENGINE_AIV, &desc, 1, ended, &channel), HCCL_E_PARA, "was destroyed");
	settle(rank);
}

static void configures_in_threads(void)
{
	job_ranks(2, 2, configures, NULL);
}

TEST(settings_of_channels)
{
	job_run(configures_in_threads);
}
