/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of communicators: which of several wrong arguments is told, tags and lists of every kind, places beyond 4 GiB. */
#include <string.h>

#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"

#define AREA 4096u
#define GIB ((uint64_t)1 << 30)

static const CommEngine no_engine = (CommEngine)6;

static void settle(const struct job_rank *rank)
{
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

static HcclChannelDesc desc_of(uint32_t peer, CommProtocol protocol)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = protocol;
	return desc;
}

/* ---- several wrong at once: what is missing first, then what is out of range, then what is unknown ---- */

static void threads_in_order(HcclComm comm)
{
	int nothing = 0;
	ThreadConfig config = { 0 };
	ThreadHandle thread = 7;
	void *stream = &nothing;

	check_fails(HcclThreadAcquire(NULL, no_engine, 0, 0, NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclThreadAcquire(&nothing, no_engine, 0, 0, NULL), HCCL_E_PTR, "threads is NULL");
	check_fails(HcclThreadAcquire(&nothing, no_engine, 0, 65, &thread), HCCL_E_PARA, "engine is 6");
	check_fails(HcclThreadAcquire(&nothing, COMM_ENGINE_CPU, 0, 65, &thread), HCCL_E_PARA, "threadNum is 0");
	check_fails(HcclThreadAcquire(&nothing, COMM_ENGINE_CPU, 41, 65, &thread), HCCL_E_PARA, "no communicator");
	check_fails(HcclThreadAcquireWithStream(comm, no_engine, NULL, 65, NULL), HCCL_E_PTR, "stream is NULL");
	check_fails(HcclThreadAcquireWithStream(comm, no_engine, &nothing, 65, NULL), HCCL_E_PTR, "thread is NULL");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_AIV, &nothing, 65, &thread), HCCL_E_NOT_SUPPORT, "engine is AIV");
	check_fails(HcclThreadAcquireWithStream(comm, COMM_ENGINE_CPU_TS, &nothing, 65, &thread), HCCL_E_PARA, "no stream");
	check_fails(HcclThreadAcquireWithConfig(comm, no_engine, 0, THREAD_TYPE_INVALID, NULL, &thread), HCCL_E_PTR, "config is NULL");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_AIV, 0, THREAD_TYPE_INVALID, &config, &thread), HCCL_E_NOT_SUPPORT, "AIV");
	check_fails(HcclThreadAcquireWithConfig(comm, COMM_ENGINE_CPU, 1, THREAD_TYPE_INVALID, &config, &thread), HCCL_E_PARA, "type is -1");
	check_fails(HcclThreadAcquireWithConfig(&nothing, COMM_ENGINE_CPU, 1, THREAD_TYPE_TS, &config, &thread), HCCL_E_PARA, "magic word");
	check_fails(HcclDedicatedThreadAcquire(&nothing, HCCL_DED_THREAD_TYPE_INVALID, 65, NULL), HCCL_E_PTR, "thread is NULL");
	check_fails(HcclDedicatedThreadAcquire(&nothing, HCCL_DED_THREAD_TYPE_INVALID, 65, &thread), HCCL_E_PARA, "useType is -1");
	check_fails(HcclThreadResGetInfo(&nothing, 0, THREAD_RES_TYPE_INVALID, 0, NULL), HCCL_E_PTR, "thread is");
	check_fails(HcclThreadResGetInfo(comm, 9, THREAD_RES_TYPE_INVALID, 0, &stream), HCCL_E_PARA, "resType is -1");
	check_fails(HcclThreadResGetInfo(comm, 9, THREAD_RES_TYPE_STREAM, 0, &stream), HCCL_E_PARA, "infoLen is 0");
	check_fails(HcommThreadAlloc(no_engine, 0, NULL, NULL), HCCL_E_PTR, "notifyNumPerThread");
	check_fails(HcommThreadAlloc(no_engine, 0, &(uint32_t){ 65 }, &thread), HCCL_E_PARA, "engine is 6");
	check_fails(HcommThreadFree(NULL, 0), HCCL_E_PARA, "threads is NULL");
	check_eq_uint(thread, 7);
	check_eq_ptr(stream, &nothing);
}

static void channels_in_order(HcclComm comm)
{
	HcclChannelDesc desc = { 0 };
	ChannelHandle channel = 7;
	uint64_t size;
	int nothing = 0;
	void *base;

	check_fails(HcclChannelAcquire(NULL, no_engine, NULL, 0, NULL), HCCL_E_PTR, "comm is NULL");
	check_fails(HcclChannelAcquire(&nothing, no_engine, &desc, 0, NULL), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelAcquireWithConfig(comm, no_engine, &desc, 0, &nothing, NULL), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelAcquireWithConfig(comm, no_engine, &desc, 0, &nothing, &channel), HCCL_E_PARA, "config is");
	check_fails(HcclChannelAcquire(comm, no_engine, &desc, 0, &channel), HCCL_E_PARA, "engine is 6");
	check_fails(HcclChannelAcquire(comm, COMM_ENGINE_AIV, &desc, 0, &channel), HCCL_E_PARA, "channelNum is 0");
	check_fails(HcclChannelAcquire(comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_PARA, "magic word 0");
	check_fails(HcclChannelGetHcclBuffer(&nothing, 0, NULL, NULL), HCCL_E_PTR, "buffer is NULL");
	check_fails(HcclChannelGetHcclBuffer(&nothing, 0, &base, &size), HCCL_E_PARA, "no communicator");
	check_fails(HcclChannelDestroy(&nothing, NULL, 0), HCCL_E_PTR, "channels is NULL");
	check_fails(HcclChannelDestroy(&nothing, &channel, 0), HCCL_E_PARA, "channelNum is 0");
	/* each of them is HCCL_E_PARA here */
	check_fails(HcclCommMemReg(NULL, "", NULL, NULL), HCCL_E_PARA, "comm is NULL");
	check_fails(HcclCommMemReg(comm, "", &(CommMem){ COMM_MEM_TYPE_INVALID, NULL, 0 }, &base), HCCL_E_PARA, "mem->addr is NULL");
	check_fails(HcclCommMemReg(comm, "", &(CommMem){ COMM_MEM_TYPE_INVALID, &nothing, 0 }, &base), HCCL_E_PARA, "no bytes");
	check_fails(HcclCommMemReg(comm, "t", &(CommMem){ COMM_MEM_TYPE_INVALID, &nothing, 0 }, &base), HCCL_E_PARA, "mem->type is -1");
	check_eq_uint(channel, 7);
}

static void memory_in_order(HcclComm comm)
{
	char too_long[257];
	uint64_t size = 7;
	int nothing = 0;
	void *context = &nothing;

	memset(too_long, 't', 256);
	too_long[256] = 0;
	check_fails(HcclGetHcclBuffer(&nothing, NULL, NULL), HCCL_E_PTR, "buffer is NULL");
	check_fails(HcclEngineCtxCreate(&nothing, too_long, no_engine, 0, NULL), HCCL_E_PTR, "ctx");
	check_fails(HcclEngineCtxCreate(&nothing, too_long, no_engine, 0, &context), HCCL_E_PARA, "engine is 6");
	check_fails(HcclEngineCtxCreate(&nothing, too_long, COMM_ENGINE_CPU, 0, &context), HCCL_E_PARA, "more than 255 bytes");
	check_fails(HcclEngineCtxCreate(&nothing, "t", COMM_ENGINE_CPU, 0, &context), HCCL_E_PARA, "size is 0");
	check_fails(HcclEngineCtxGet(&nothing, too_long, no_engine, &context, NULL), HCCL_E_PTR, "size is NULL");
	check_fails(HcclEngineCtxCopy(&nothing, no_engine, too_long, NULL, 0, 0), HCCL_E_PTR, "srcCtx is NULL");
	check_fails(HcclEngineCtxCopy(&nothing, no_engine, too_long, &nothing, 0, 0), HCCL_E_PARA, "engine is 6");
	check_fails(HcclRankGraphGetLinks(&nothing, 9, 9, 9, NULL, NULL), HCCL_E_PTR, "links is NULL");
	check_fails(HcclRankGraphGetRanksByLayer(comm, 9, NULL, NULL), HCCL_E_PTR, "ranks is NULL");
	check_fails(HcclRankGraphGetLinks(comm, 9, 9, 9, (CommLink **)&context, (uint32_t *)&size), HCCL_E_PARA, "no layer 9");
	check_eq_ptr(context, &nothing);
	check_eq_uint(size, 7);
}

static void primitives_in_order(void)
{
	ThreadHandle thread;
	int nothing = 0;

	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &(uint32_t){ 1 }, &thread));
	check_fails(HcommLocalReduceOnThread(0, NULL, NULL, UINT64_MAX, (HcommDataType)-1, (HcommReduceOp)-1), HCCL_E_PTR, "thread");
	check_fails(HcommLocalReduceOnThread(9, NULL, NULL, UINT64_MAX, (HcommDataType)-1, (HcommReduceOp)-1), HCCL_E_PTR, "dst");
	check_fails(HcommLocalReduceOnThread(9, &nothing, &nothing, UINT64_MAX, (HcommDataType)-1, (HcommReduceOp)-1), HCCL_E_PARA, "no thread");
	check_fails(HcommLocalReduceOnThread(thread, &nothing, &nothing, UINT64_MAX, (HcommDataType)-1, HCOMM_REDUCE_SUM), HCCL_E_PARA, "dataType");
	check_fails(HcommLocalReduceOnThread(thread, &nothing, &nothing, 0, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_PROD), HCCL_E_PARA, "reduceOp");
	check_fails(HcommLocalReduceOnThread(thread, &nothing, &nothing, UINT64_MAX, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_MAX), HCCL_E_PARA, "count is");
	check_ok(HcommLocalReduceOnThread(thread, &nothing, &nothing, 0, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_MAX));
	check_fails(HcommWriteReduceWithNotifyOnThread(0, 0, NULL, NULL, 1, HCOMM_DATA_TYPE_INT128, HCOMM_REDUCE_SUM, 9), HCCL_E_PTR, "thread");
	check_fails(HcommWriteReduceWithNotifyOnThread(9, 0, NULL, NULL, 1, HCOMM_DATA_TYPE_INT128, HCOMM_REDUCE_SUM, 9), HCCL_E_PTR, "channel");
	check_fails(HcommWriteReduceWithNotifyOnThread(9, 9, NULL, NULL, 1, HCOMM_DATA_TYPE_INT128, HCOMM_REDUCE_SUM, 9), HCCL_E_PTR, "dst");
	check_fails(HcommWriteReduceWithNotifyOnThread(9, 9, &nothing, &nothing, 1, HCOMM_DATA_TYPE_INT128, HCOMM_REDUCE_SUM, 9),
		    HCCL_E_NOT_FOUND, "no channel");
	check_fails(HcommThreadNotifyRecordOnThread(0, 0, 9), HCCL_E_PTR, "HcommThreadNotifyRecordOnThread: thread");
	check_fails(HcommThreadNotifyRecordOnThread(9, 0, 9), HCCL_E_PTR, "dstThread");
	check_fails(HcommBatchTransferOnThread(9, 9, NULL, 0), HCCL_E_PTR, "transferDescs");
	check_ok(HcommThreadFree(&thread, 1));
}

static void in_order(void)
{
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	threads_in_order(comm);
	channels_in_order(comm);
	memory_in_order(comm);
	primitives_in_order();
	check_ok(HcclCommDestroy(comm));
}

TEST(the_first_of_several_wrong_arguments_is_told)
{
	job_run(in_order);
}

/* ---- tags and lists ---- */

static const char *const tags[] = { "Gr\303\274\303\237e", "\xff\xfe\x80", " ", "%s%n", "a\nb" };
#define TAGS (sizeof(tags) / sizeof(tags[0]))

/* Bytes, whatever they mean; two regions may have one tag. */
static void takes_tags(struct job_rank *rank)
{
	HcclMemHandle handles[TAGS + 4];
	unsigned char *memory = job_memory(AREA, (int)rank->rank);
	HcclChannelDesc desc = desc_of(1 - rank->rank, COMM_PROTOCOL_UB_MEM);
	char longest[256], **found;
	ChannelHandle channel;
	CommMem *mems;
	uint32_t count;
	uint64_t size;
	void *buffer;

	memset(longest, 't', 255);
	longest[255] = 0;
	for (uint32_t i = 0; i < TAGS; i++)
		check_ok(HcclCommMemReg(rank->comm, tags[i], &(CommMem){ COMM_MEM_TYPE_DEVICE, memory + i, 1 }, &handles[i]));
	for (uint32_t i = 0; i < 2; i++)
		check_ok(HcclCommMemReg(rank->comm, longest, &(CommMem){ COMM_MEM_TYPE_DEVICE, memory + 100 * (i + 1), 100 }, &handles[TAGS + i]));
	/* a part of the HCCL buffer is device memory, too; and a region may be in the list twice */
	check_ok(HcclGetHcclBuffer(rank->comm, &buffer, &size));
	check_ok(HcclCommMemReg(rank->comm, "buffer", &(CommMem){ COMM_MEM_TYPE_DEVICE, (char *)buffer + size - 8, 8 }, &handles[TAGS + 2]));
	handles[TAGS + 3] = handles[0];
	desc.memHandles = handles;
	desc.memHandleNum = TAGS + 4;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &found));
	check_eq_uint(count, TAGS + 4);
	for (uint32_t i = 0; i < TAGS; i++) {
		check_eq_str(found[i], tags[i]);
		check_eq_uint(mems[i].size, 1);
		check_eq_int(*(unsigned char *)mems[i].addr, 1 - (int)rank->rank);
	}
	check_eq_str(found[TAGS], longest);
	check_eq_str(found[TAGS + 1], longest);
	check_eq_str(found[TAGS + 2], "buffer");
	check_eq_str(found[TAGS + 3], tags[0]);
	settle(rank);
}

static void tags_in_threads(void)
{
	job_ranks(2, 2, takes_tags, NULL);
}

TEST(tags_are_bytes)
{
	job_run(tags_in_threads);
}

static void keeps_tags(void)
{
	void *made, *found;
	char longest[256];
	uint64_t size;
	HcclComm comm;

	check_ok(aclrtSetDevice(0));
	comm = job_alone();
	for (uint32_t i = 0; i < TAGS; i++)
		check_ok(HcclEngineCtxCreate(comm, tags[i], COMM_ENGINE_AICPU_TS, i + 1, &made));
	for (uint32_t i = 0; i < TAGS; i++) {
		check_ok(HcclEngineCtxGet(comm, tags[i], COMM_ENGINE_AICPU_TS, &found, &size));
		check_eq_uint(size, i + 1);
	}
	memset(longest, 't', 255);
	longest[255] = 0;
	check_ok(HcclEngineCtxCreate(comm, longest, COMM_ENGINE_CCU, 1, &made));
	longest[254] = 0;
	check_fails(HcclEngineCtxGet(comm, longest, COMM_ENGINE_CCU, &found, &size), HCCL_E_PARA, "has no context");
	/* beyond 4 GiB, where only what is touched costs memory */
	check_ok(HcclEngineCtxCreate(comm, "large", COMM_ENGINE_CPU, 5 * GIB, &made));
	check_ok(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "large", "end", 3, 5 * GIB - 3));
	check_fails(HcclEngineCtxCopy(comm, COMM_ENGINE_CPU, "large", "end", 4, 5 * GIB - 3), HCCL_E_PARA, "are not in it");
	check_ok(HcclEngineCtxGet(comm, "large", COMM_ENGINE_CPU, &found, &size));
	check_eq_ptr(found, made);
	check_eq_uint(size, 5 * GIB);
	check_eq_int(memcmp((char *)found + size - 3, "end", 3), 0);
	check_eq_int(*(char *)found, 0);
	check_ok(HcclCommDestroy(comm));
}

TEST(contexts_have_any_tag_and_size)
{
	job_run(keeps_tags);
}

/* ---- channels ---- */

/* Every engine with every protocol is a channel of its own; one that is asked for twice in a call is one, as the first asks for it. */
static void has_every_channel(struct job_rank *rank)
{
	HcclChannelDesc descs[10];
	ChannelHandle channels[6][10], again[10];

	for (int engine = 0; engine < 6; engine++) {
		for (int i = 0; i < 10; i++)
			descs[i] = desc_of(1 - rank->rank, (CommProtocol)i);
		check_ok(HcclChannelAcquire(rank->comm, (CommEngine)engine, descs, 10, channels[engine]));
		check_ok(HcclChannelQuery(rank->comm, (CommEngine)engine, descs, 10, again));
		check_eq_mem(again, channels[engine], sizeof(again));
		for (int i = 0; i < engine * 10; i++)
			check_ne_uint(channels[i / 10][i % 10], channels[engine][i % 10]);
	}
	settle(rank);
	check_ok(HcclChannelDestroy(rank->comm, channels[0], 1));
	settle(rank);
	for (uint32_t i = 0; i < 3; i++) {
		descs[i] = desc_of(1 - rank->rank, COMM_PROTOCOL_HCCS);
		descs[i].notifyNum = 1 + i;
	}
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, descs, 3, again));
	check_eq_uint(again[0], again[1]);
	check_eq_uint(again[0], again[2]);
	check_ok(HcommChannelNotifyRecord(again[0], 0));
	check_fails(HcommChannelNotifyRecord(again[0], 1), HCCL_E_PARA, "has 1 at its end");
	check_ok(HcommChannelNotifyWait(again[0], 0, 20));
	settle(rank);
	check_fails(HcclChannelDestroy(rank->comm, again, 2), HCCL_E_NOT_FOUND, "no such channel");
	settle(rank);
}

static void every_channel_in_threads(void)
{
	job_ranks(2, 2, has_every_channel, NULL);
}

TEST(engines_and_protocols_have_their_own_channels)
{
	job_run(every_channel_in_threads);
}

#define PHYSICAL ((uint64_t)2 << 20)

static aclrtDrvMemHandle physical_map(const struct job_rank *rank, void *address, unsigned char value)
{
	aclrtPhysicalMemProp prop = { .location = { .type = ACL_MEM_LOCATION_TYPE_DEVICE, .id = (uint32_t)rank->device } };
	aclrtDrvMemHandle handle;

	check_ok(aclrtMallocPhysical(&handle, PHYSICAL, &prop, 0));
	check_ok(aclrtMapMem(address, PHYSICAL, 0, handle, 0));
	*(unsigned char *)address = value;
	return handle;
}

static void physical_unmap(void *address, aclrtDrvMemHandle handle)
{
	check_ok(aclrtUnmapMem(address));
	check_ok(aclrtFreePhysical(handle));
}

/* Memory at addresses of the program's choice: registered until it is unmapped, and gone when it is freed. */
static void unmaps(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(1 - rank->rank, COMM_PROTOCOL_UB_MEM);
	unsigned char *memory, *own = job_memory(AREA, 0);
	HcclMemHandle handle, other;
	aclrtDrvMemHandle physical;
	size_t before, after, total;
	ChannelHandle channel;
	ThreadHandle thread;
	CommMem mem, *mems;
	uint32_t count;
	char **found;

	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_CPU, 1, 0, &thread));
	check_ok(HcclGetHcclBuffer(rank->comm, (void **)&memory, &mem.size));
	check_ok(aclrtReserveMemAddress((void **)&memory, PHYSICAL, 0, NULL, 1));
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total));
	physical = physical_map(rank, memory, 3);
	mem = (CommMem){ COMM_MEM_TYPE_DEVICE, memory, AREA };
	check_ok(HcclCommMemReg(rank->comm, "mapped", &mem, &handle));
	desc.memHandles = &handle;
	desc.memHandleNum = 1;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &found));
	check_eq_int(*(unsigned char *)mems[0].addr, 3);
	settle(rank);
	/* what fails to unmap it leaves it registered */
	check_fails(aclrtUnmapMem(memory + 1), ACL_ERROR_RT_PARAM_INVALID, "nothing was mapped");
	check_ok(HcclCommMemReg(rank->comm, "mapped", &mem, &other));
	check_eq_ptr(other, handle);
	physical_unmap(memory, physical);
	check_ok(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total));
	check_eq_uint(after, before);
	settle(rank);
	check_fails(HcommReadOnThread(thread, channel, own, mems[0].addr, 8), HCCL_E_REMOTE, "has freed it");
	desc.channelProtocol = COMM_PROTOCOL_HCCS;
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel), HCCL_E_NOT_FOUND, "or it was freed");
	/* what is mapped there next is other memory */
	physical = physical_map(rank, memory, 4);
	check_ok(HcclCommMemReg(rank->comm, "mapped", &mem, &handle));
	check(handle != other);
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, &desc, 1, &channel));
	check_ok(HcclChannelGetRemoteMems(rank->comm, channel, &count, &mems, &found));
	check_eq_int(*(unsigned char *)mems[0].addr, 4);
	settle(rank);
	physical_unmap(memory, physical);
	check_ok(aclrtReleaseMemAddress(memory));
	settle(rank);
}

static void unmaps_in_threads(void)
{
	job_ranks(2, 2, unmaps, NULL);
}

TEST(memory_that_is_unmapped_is_registered_no_more)
{
	job_run(unmaps_in_threads);
}

/* An HCCL buffer of 6 GiB, of which the last bytes are used. */
static void reaches_far(struct job_rank *rank)
{
	HcclChannelDesc desc = desc_of(1 - rank->rank, COMM_PROTOCOL_HCCS);
	unsigned char *own, *other;
	uint64_t size, other_size;
	ChannelHandle channel;
	ThreadHandle thread;
	void *stream;

	check_ok(HcclGetHcclBuffer(rank->comm, (void **)&own, &size));
	check_eq_uint(size, 6 * GIB);
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	check_ok(HcclChannelGetHcclBuffer(rank->comm, channel, (void **)&other, &other_size));
	check_eq_uint(other_size, size);
	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_CPU, 1, 0, &thread));
	own[5 * GIB] = (unsigned char)(7 + rank->rank);
	settle(rank);
	check_ok(HcommReadOnThread(thread, channel, own + size - 1, other + 5 * GIB, 1));
	check_ok(HcommLocalCopyOnThread(thread, own, own + size - 1, 1));
	/* from where there are more than 4 GiB left, more than there are */
	check_fails(HcommReadOnThread(thread, channel, own, other + GIB, 5 * GIB + 1), HCCL_E_PARA, "5368709121 bytes at");
	check_fails(HcommWriteOnThread(thread, channel, other, own + GIB, 5 * GIB + 1), HCCL_E_PARA, "src is");
	check_fails(HcommLocalCopyOnThread(thread, own, own + GIB, 5 * GIB + 1), HCCL_E_PARA, "src is");
	check_fails(HcommLocalReduceOnThread(thread, own, own + GIB, 5 * GIB / 4 + 1, HCOMM_DATA_TYPE_FP32, HCOMM_REDUCE_SUM), HCCL_E_PARA,
		    "src is");
	check_fails(HcommWriteOnThread(thread, channel, other, own, UINT64_MAX - 1), HCCL_E_PARA, "not in memory");
	check_ok(HcommThreadResGetInfo(thread, THREAD_RES_TYPE_STREAM, sizeof(stream), &stream));
	check_ok(aclrtSynchronizeStreamWithTimeout(stream, 20000));
	check_eq_uint(own[0], 8 - rank->rank);
	settle(rank);
}

static void far_in_threads(void)
{
	job_ranks(2, 2, reaches_far, NULL);
}

TEST(addresses_beyond_4_gib)
{
	job_run_with("HCCL_BUFFSIZE", "3072", far_in_threads);
}
