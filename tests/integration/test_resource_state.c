/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources of communicators in every state of the program: OS threads without a device or with another one, ranks of one process, the
 * child of a fork, handles that are old or of something else, parts of communicators, many ranks.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hccl/hccl_rank_graph.h"
#include "hccl/hccl_res.h"
#include "hccl/hccl_res_expt.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/thread.h"

#define AREA 4096u
#define MANY 64u
#define COPIES 50 /* of what takes a place that was given back */

/* What a rank has. */
struct things {
	HcclComm comm;
	aclrtStream stream;
	uint32_t rank;
	ThreadHandle thread, alone;
	ChannelHandle channel;
	HcclMemHandle memory;
	HcclChannelConfig config;
	unsigned char *own, *other; /* registered memory, and that of the peer */
	int expected;		    /* what calls answer that need a communicator or a handle of one */
};

static HcclChannelDesc desc_of(uint32_t peer, CommProtocol protocol, HcclMemHandle *handles, uint32_t count)
{
	HcclChannelDesc desc;

	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = peer;
	desc.channelProtocol = protocol;
	desc.notifyNum = 2;
	desc.memHandles = handles;
	desc.memHandleNum = count;
	return desc;
}

static unsigned char *remote_of(HcclComm comm, ChannelHandle channel)
{
	CommMem *mems;
	uint32_t count;
	char **tags;

	check_ok(HcclChannelGetRemoteMems(comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	return mems[0].addr;
}

static struct things things_new(const struct job_rank *rank)
{
	struct things t = { .comm = rank->comm, .stream = rank->stream, .rank = rank->rank, .own = job_memory(AREA, 1 + (int)rank->rank) };
	const uint32_t notifies = 1;
	HcclChannelDesc desc;

	check_ok(HcclThreadAcquire(t.comm, COMM_ENGINE_CPU, 1, 2, &t.thread));
	check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &notifies, &t.alone));
	check_ok(HcclCommMemReg(t.comm, "area", &(CommMem){ COMM_MEM_TYPE_DEVICE, t.own, AREA / 2 }, &t.memory));
	desc = desc_of(1 - rank->rank, COMM_PROTOCOL_HCCS, &t.memory, 1);
	check_ok(HcclChannelAcquire(t.comm, COMM_ENGINE_CPU, &desc, 1, &t.channel));
	t.other = remote_of(t.comm, t.channel);
	check_ok(HcclChannelConfigCreate(&t.config));
	return t;
}

static void settle(const struct job_rank *rank)
{
	check_ok(HcclBarrier(rank->comm, rank->stream));
	check_ok(aclrtSynchronizeStream(rank->stream));
}

/* ---- all of them ---- */

#define GIVES(call) job_check(__FILE__, __LINE__, #call, (int)(call), t->expected, NULL)

static void all_of_threads(const struct things *t)
{
	ThreadHandle made, out;
	ThreadConfig config;
	void *stream;

	check_ok(ThreadConfigInit(&config, 1));
	GIVES(HcclThreadAcquire(t->comm, COMM_ENGINE_CCU, 1, 1, &made));
	GIVES(HcclThreadAcquireWithStream(t->comm, COMM_ENGINE_CPU_TS, t->stream, 1, &made));
	GIVES(HcclThreadAcquireWithConfig(t->comm, COMM_ENGINE_AICPU, 1, THREAD_TYPE_TS, &config, &made));
	GIVES(HcclDedicatedThreadAcquire(t->comm, HCCL_DED_THREAD_TYPE_AICPU_LAUNCH, 1, &made));
	GIVES(HcclThreadResGetInfo(t->comm, t->thread, THREAD_RES_TYPE_STREAM, sizeof(stream), &stream));
	GIVES(HcclThreadExportToCommEngine(t->comm, 1, &t->thread, COMM_ENGINE_AIV, &out));
	GIVES(HcommThreadResGetInfo(t->alone, THREAD_RES_TYPE_STREAM, sizeof(stream), &stream));
	GIVES(HcommLocalCopyOnThread(t->thread, t->own + AREA / 2, t->own, 16));
	GIVES(HcommLocalReduceOnThread(t->thread, t->own + AREA / 2, t->own, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
	GIVES(HcommThreadNotifyRecordOnThread(t->alone, t->thread, 0));
	GIVES(HcommThreadNotifyWaitOnThread(t->thread, 0, 20));
	GIVES(HcommThreadNotifyRecordOnThread(t->thread, t->alone, 0));
	GIVES(HcommThreadNotifyWaitOnThreadWithDefaultTimeout(t->alone, 0));
	GIVES(HcommFenceOnThread(t->thread));
	GIVES(HcommBatchModeStart("tag"));
	GIVES(HcommBatchModeEnd("tag"));
}

static void all_of_channels(const struct things *t)
{
	HcclMemHandle handle;
	ChannelHandle channel;
	HcclChannelDesc desc = desc_of(1 - t->rank, COMM_PROTOCOL_HCCS, NULL, 0);
	uint64_t size;
	uint32_t count;
	CommMem *mems;
	char **tags;
	void *base;

	GIVES(HcclGetHcclBuffer(t->comm, &base, &size));
	GIVES(HcclGetHcclBufferCleared(t->comm, &base, &size));
	GIVES(HcclCommMemReg(t->comm, "area", &(CommMem){ COMM_MEM_TYPE_DEVICE, t->own, AREA / 2 }, &handle));
	GIVES(HcclChannelAcquire(t->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	GIVES(HcclChannelAcquireWithConfig(t->comm, COMM_ENGINE_CPU, &desc, 1, t->config, &channel));
	GIVES(HcclChannelQuery(t->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	GIVES(HcclChannelGetHcclBuffer(t->comm, t->channel, &base, &size));
	GIVES(HcclChannelGetRemoteMems(t->comm, t->channel, &count, &mems, &tags));
	GIVES(HcommWriteOnThread(t->thread, t->channel, t->other, t->own, 16));
	GIVES(HcommReadOnThread(t->thread, t->channel, t->own, t->other, 16));
	GIVES(HcommWriteNbi(t->channel, t->other, t->own, 16));
	GIVES(HcommChannelFence(t->channel));
	GIVES(HcommChannelFenceOnThread(t->thread, t->channel));
	GIVES(HcommChannelDrainOnThread(t->thread, t->channel));
}

static void all_of_memory(const struct things *t)
{
	static const CommEngine engines[] = { COMM_ENGINE_CPU, COMM_ENGINE_AIV };
	uint32_t *list, count;
	HcclHeterogMode mode;
	CommLink *links;
	uint64_t size;
	void *context;

	for (int i = 0; i < 2; i++) {
		GIVES(HcclEngineCtxCreate(t->comm, "state", engines[i], 64, &context));
		GIVES(HcclEngineCtxGet(t->comm, "state", engines[i], &context, &size));
		GIVES(HcclEngineCtxCopy(t->comm, engines[i], "state", "bytes", 5, 59));
		GIVES(HcclEngineCtxDestroy(t->comm, "state", engines[i]));
	}
	GIVES(HcclRankGraphGetLayers(t->comm, &list, &count));
	GIVES(HcclRankGraphGetRanksByLayer(t->comm, 0, &list, &count));
	GIVES(HcclRankGraphGetLinks(t->comm, 0, 0, 0, &links, &count));
	GIVES(HcclGetHeterogMode(t->comm, &mode));
}

static void all_of_it(const struct things *t)
{
	all_of_threads(t);
	all_of_channels(t);
	all_of_memory(t);
}

/* ---- OS threads ---- */

static void *without_device(void *data)
{
	const uint32_t notifies = 1;
	ThreadHandle thread;

	all_of_it(data);
	check_fails(HcommThreadAlloc(COMM_ENGINE_CPU, 1, &notifies, &thread), HCCL_E_RUNTIME, "aclrtSetDevice");
	return NULL;
}

static void *with_other_device(void *data)
{
	check_ok(aclrtSetDevice(3));
	all_of_it(data);
	return NULL;
}

static void is_used_elsewhere(struct job_rank *rank)
{
	struct things t = things_new(rank);
	pthread_t id;

	check_eq_int(pthread_create(&id, NULL, without_device, &t), 0);
	check_eq_int(pthread_join(id, NULL), 0);
	check_eq_int(pthread_create(&id, NULL, with_other_device, &t), 0);
	check_eq_int(pthread_join(id, NULL), 0);
	thread_finish(t.thread);
	thread_finish(t.alone);
	settle(rank);
}

static void elsewhere_in_threads(void)
{
	job_ranks(2, 2, is_used_elsewhere, NULL);
}

TEST(any_thread_may_use_them)
{
	job_run(elsewhere_in_threads);
}

static void forks(struct job_rank *rank)
{
	struct things t = things_new(rank);
	int status;
	pid_t pid;

	settle(rank);
	if (rank->rank == 0) {
		fflush(NULL);
		pid = fork();
		check_ge_int(pid, 0);
		if (pid == 0) {
			t.expected = HCCL_E_UNAVAIL;
			all_of_it(&t);
			check_fails(HcommFenceOnThread(t.thread), HCCL_E_UNAVAIL, "forked");
			check_fails(HcommThreadFree(&t.alone, 1), HCCL_E_UNAVAIL, "forked");
			check_fails(HcclChannelDestroy(t.comm, &t.channel, 1), HCCL_E_UNAVAIL, "forked");
			_exit(0);
		}
		check_eq_int(waitpid(pid, &status, 0), pid);
		check_eq_int(status, 0);
	}
	/* the parent's is as it was */
	all_of_it(&t);
	thread_finish(t.thread);
	settle(rank);
}

static void forks_in_threads(void)
{
	job_ranks(2, 2, forks, NULL);
}

TEST(the_child_of_a_fork_has_none)
{
	job_run(forks_in_threads);
}

/* ---- ranks of one process ---- */

static struct things all_things[2];

/* What is another rank's of the same communicator is not this rank's. */
static void check_separate(const struct things *a, const struct things *b)
{
	HcclChannelDesc desc = desc_of(1 - a->rank, COMM_PROTOCOL_SIO, (HcclMemHandle *)&b->memory, 1);
	ChannelHandle channel = 7;
	uint64_t size = 7;
	uint32_t count;
	CommMem *mems;
	char **tags;
	void *base = NULL;

	check_fails(HcclChannelGetHcclBuffer(a->comm, b->channel, &base, &size), HCCL_E_NOT_FOUND, "a channel of rank 1 of communicator");
	check_fails(HcclChannelGetRemoteMems(a->comm, b->channel, &count, &mems, &tags), HCCL_E_NOT_FOUND, "expected one of rank 0 of");
	check_fails(HcclChannelDestroy(a->comm, &b->channel, 1), HCCL_E_NOT_FOUND, "rank 0 of communicator");
	check_fails(HcclChannelAcquire(a->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_NOT_FOUND, "rank 0 of communicator");
	check_fails(HcclThreadResGetInfo(a->comm, b->thread, THREAD_RES_TYPE_STREAM, 8, &base), HCCL_E_PARA, "not of rank 0 of communicator");
	check_fails(HcclThreadAcquireWithStream(a->comm, COMM_ENGINE_CPU_TS, b->stream, 1, &channel), HCCL_E_PARA, "device 1");
	check_null(base);
	check_eq_uint(size, 7);
	check_eq_uint(channel, 7);
}

/* A thread of one device does what is asked of it with a channel of another. */
static void check_across(const struct things *a, const struct things *b)
{
	check_ok(HcommWriteOnThread(b->thread, a->channel, a->other, a->own, 16));
	check_ok(HcommReadOnThread(b->thread, a->channel, a->own + 64, a->other, 16));
	check_ok(HcommWriteReduceOnThread(b->thread, a->channel, a->other, a->own, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
	check_ok(HcommChannelNotifyRecordOnThread(b->thread, a->channel, 0));
	check_ok(HcommChannelNotifyWaitOnThread(a->thread, b->channel, 0, 20));
	thread_finish(a->thread);
	check_eq_int(b->own[15], 2);
	check_eq_int(b->own[16], 2);
	check_eq_int(a->own[79], 1);
	check_ok(HcommChannelNotifyRecordOnThread(a->thread, b->channel, 1));
	check_ok(HcommChannelNotifyWaitOnThread(b->thread, a->channel, 1, 20));
	thread_finish(b->thread);
}

static void has_its_own(struct job_rank *rank)
{
	all_things[rank->rank] = things_new(rank);
	settle(rank);
	if (rank->rank == 0) {
		check_separate(&all_things[0], &all_things[1]);
		check_across(&all_things[0], &all_things[1]);
	}
	settle(rank);
}

static void own_in_threads(void)
{
	job_ranks(2, 2, has_its_own, NULL);
}

TEST(ranks_of_a_process_have_their_own)
{
	job_run(own_in_threads);
}

/* ---- handles ---- */

/* Of something else; all are looked up. */
static void has_other_kinds(const struct things *t)
{
	ChannelHandle no_channels[] = { t->thread, (uintptr_t)t->comm, (uintptr_t)t->memory, (uintptr_t)t->config, (uintptr_t)t->stream };
	ThreadHandle no_threads[] = { t->channel, (uintptr_t)t->comm, (uintptr_t)t->memory, (uintptr_t)t->config, (uintptr_t)t->stream };
	HcclChannelDesc desc = desc_of(1 - t->rank, COMM_PROTOCOL_PCIE, NULL, 1);
	uint64_t out = 7;
	void *base;

	for (size_t i = 0; i < sizeof(no_channels) / sizeof(no_channels[0]); i++) {
		HcclMemHandle memory = (HcclMemHandle)(uintptr_t)(i == 2 ? t->channel : no_channels[i]);

		check_fails(HcclChannelGetHcclBuffer(t->comm, no_channels[i], &base, &out), HCCL_E_NOT_FOUND, "no channel");
		check_fails(HcommWriteOnThread(t->thread, no_channels[i], t->other, t->own, 4), HCCL_E_NOT_FOUND, "no channel");
		check_fails(HcclChannelDestroy(t->comm, &no_channels[i], 1), HCCL_E_NOT_FOUND, "no such channel");
		check_fails(HcommWriteOnThread(no_threads[i], t->channel, t->other, t->own, 4), HCCL_E_PARA, "no thread");
		check_fails(HcclThreadResGetInfo(t->comm, no_threads[i], THREAD_RES_TYPE_STREAM, 8, &base), HCCL_E_PARA, "no thread");
		check_fails(HcommThreadFree(&no_threads[i], 1), HCCL_E_NOT_FOUND, "no thread");
		desc.memHandles = &memory;
		check_fails(HcclChannelAcquire(t->comm, COMM_ENGINE_CPU, &desc, 1, &out), HCCL_E_NOT_FOUND, "no such memory");
		if (no_threads[i] == (uintptr_t)t->comm)
			continue;
		check_fails(HcclGetHcclBuffer((HcclComm)(uintptr_t)no_threads[i], &base, &out), HCCL_E_PARA, "no communicator");
	}
	check_fails(HcclChannelAcquireWithConfig(t->comm, COMM_ENGINE_AIV, &desc, 1, t->comm, &out), HCCL_E_PARA, "no such object");
	check_fails(HcclThreadAcquireWithStream(t->comm, COMM_ENGINE_CPU_TS, (aclrtStream)(uintptr_t)t->thread, 1, &out), HCCL_E_PARA, "no stream");
	check_eq_uint(out, 7);
}

/* Their places are others' by now. */
static void has_old_handles(struct things *t)
{
	HcclChannelDesc desc = desc_of(1 - t->rank, COMM_PROTOCOL_PCIE, NULL, 0);
	ChannelHandle channel = t->channel, made;
	ThreadHandle thread = t->alone;
	HcclMemHandle memory;
	uint64_t size;
	void *base;

	check_ok(HcommThreadFree(&t->alone, 1));
	check_ok(HcclChannelConfigDestroy(t->config));
	check_ok(HcclChannelDestroy(t->comm, &t->channel, 1));
	memory = t->memory;
	check_ok(aclrtFree(t->own));
	for (int i = 0; i < COPIES; i++) {
		check_ok(HcommThreadAlloc(COMM_ENGINE_CPU, 1, (uint32_t[]){ 1 }, &t->alone));
		check_ne_uint(t->alone, thread);
		check_ok(HcclChannelConfigCreate(&base));
		check(base != t->config);
		check_ok(HcclChannelConfigDestroy(base));
		t->own = job_memory(AREA, 3);
		check_ok(HcclCommMemReg(t->comm, "area", &(CommMem){ COMM_MEM_TYPE_DEVICE, t->own, AREA / 2 }, &t->memory));
		check(t->memory != memory);
		if (i + 1 < COPIES) {
			check_ok(HcommThreadFree(&t->alone, 1));
			check_ok(aclrtFree(t->own));
		}
	}
	check_ok(HcclChannelAcquire(t->comm, COMM_ENGINE_CPU, &desc, 1, &made));
	check_fails(HcclChannelGetHcclBuffer(t->comm, channel, &base, &size), HCCL_E_NOT_FOUND, "was destroyed");
	check_fails(HcommChannelNotifyRecord(channel, 0), HCCL_E_NOT_FOUND, "was destroyed");
	check_fails(HcommThreadNotifyRecordOnThread(thread, thread, 0), HCCL_E_PARA, "no thread");
	check_fails(HcommThreadFree(&thread, 1), HCCL_E_NOT_FOUND, "no thread");
	check_fails(HcclChannelConfigSetInt(t->config, HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE, 1), HCCL_E_PARA, "was destroyed");
	desc = desc_of(1 - t->rank, COMM_PROTOCOL_SIO, &memory, 1);
	check_fails(HcclChannelAcquire(t->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_NOT_FOUND, "or it was freed");
}

static void has_handles(struct job_rank *rank)
{
	struct things t = things_new(rank);
	HcclComm old, made;
	uint64_t size;
	void *base;

	has_other_kinds(&t);
	settle(rank);
	has_old_handles(&t);
	old = job_alone();
	check_ok(HcclCommDestroy(old));
	made = job_alone();
	check(made != old);
	check_fails(HcclGetHcclBuffer(old, &base, &size), HCCL_E_PARA, "was destroyed");
	check_fails(HcclThreadAcquire(old, COMM_ENGINE_CPU, 1, 1, &size), HCCL_E_PARA, "was destroyed");
	check_fails(HcclCommDestroy(old), HCCL_E_PARA, "was destroyed");
	check_ok(HcclCommDestroy(made));
	settle(rank);
}

/* Memory of another device than that of the communicator goes with its device. */
static void loses_memory(struct job_rank *rank)
{
	HcclMemHandle handle;
	HcclChannelDesc desc = desc_of(1 - rank->rank, COMM_PROTOCOL_HCCS, &handle, 1);
	const int32_t elsewhere = 3 + (int32_t)rank->rank;
	ChannelHandle channel;
	void *memory, *host;

	check_ok(aclrtSetDevice(elsewhere));
	memory = job_memory(1 << 20, 3);
	check_ok(aclrtMallocHost(&host, 64));
	check_ok(aclrtSetDevice(rank->device));
	check_ok(HcclCommMemReg(rank->comm, "device", &(CommMem){ COMM_MEM_TYPE_DEVICE, memory, AREA }, &handle));
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel));
	check_eq_int(*remote_of(rank->comm, channel), 3);
	settle(rank);
	check_ok(aclrtResetDevice(elsewhere));
	desc.channelProtocol = COMM_PROTOCOL_SIO;
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &channel), HCCL_E_NOT_FOUND, "or it was freed");
	check_fails(HcclCommMemReg(rank->comm, "host", &(CommMem){ COMM_MEM_TYPE_HOST, host, 64 }, &handle), HCCL_E_PARA, "mem->addr");
	check_ok(aclrtFreeHost(host));
	settle(rank);
}

static void losers_in_threads(void)
{
	job_ranks(2, 2, loses_memory, NULL);
}

TEST(memory_of_another_device_goes_with_it)
{
	job_run(losers_in_threads);
}

static void handles_in_threads(void)
{
	job_ranks(2, 2, has_handles, NULL);
}

TEST(handles_are_good_for_one_thing_until_it_ends)
{
	job_run(handles_in_threads);
}

/* ---- parts, and many ranks ---- */

/* Ranks of a part in another order; the same memory under the same tag in both. */
static void has_a_part(struct job_rank *rank)
{
	uint32_t ids[] = { 2, 0, 1 }, own = UINT32_MAX;
	const uint32_t place = rank->rank == 2 ? 0 : rank->rank + 1;
	unsigned char *memory = job_memory(AREA, 1 + (int)rank->rank);
	CommMem mem = { COMM_MEM_TYPE_DEVICE, memory, AREA };
	HcclMemHandle whole, part, buffer;
	HcclChannelDesc descs[2];
	ChannelHandle channels[2];
	HcclCommConfig config;
	HcclComm sub;
	void *base;

	HcclCommConfigInit(&config);
	check_ok(HcclCreateSubCommConfig(&rank->comm, 3, ids, 5, place, &config, &sub));
	check_ok(HcclGetRankId(sub, &own));
	check_eq_uint(own, place);
	check_ok(HcclCommMemReg(rank->comm, "area", &mem, &whole));
	check_ok(HcclCommMemReg(sub, "area", &mem, &part));
	check(whole != part);
	for (uint32_t i = 0; i < 2; i++)
		descs[i] = desc_of((place + 1 + i) % 3, COMM_PROTOCOL_UB_MEM, &whole, 1);
	check_fails(HcclChannelAcquire(sub, COMM_ENGINE_AIV, descs, 2, channels), HCCL_E_NOT_FOUND, "no such memory");
	descs[0].memHandles = descs[1].memHandles = &part;
	check_ok(HcclChannelAcquire(sub, COMM_ENGINE_AIV, descs, 2, channels));
	for (uint32_t i = 0; i < 2; i++)
		check_eq_uint(*remote_of(sub, channels[i]), 1 + ids[(place + 1 + i) % 3]);
	/* what is the part's goes with it, its HCCL buffer also from where that was registered with another communicator */
	check_ok(HcclGetHcclBuffer(sub, &base, &mem.size));
	check_ok(HcclCommMemReg(rank->comm, "buffer", &(CommMem){ COMM_MEM_TYPE_DEVICE, base, 64 }, &buffer));
	settle(rank);
	check_ok(HcclCommDestroy(sub));
	descs[0] = desc_of((rank->rank + 1) % 3, COMM_PROTOCOL_UB_MEM, &buffer, 1);
	check_fails(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, 1, channels), HCCL_E_NOT_FOUND, "or it was freed");
	mem.size = AREA;
	check_ok(HcclCommMemReg(rank->comm, "area", &mem, &part));
	check_eq_ptr(part, whole);
	check_fails(HcommChannelNotifyRecord(channels[1], 0), HCCL_E_NOT_FOUND, "or its communicator was");
	settle(rank);
}

static void parts_in_threads(void)
{
	job_ranks(3, 3, has_a_part, NULL);
}

TEST(parts_have_their_own_ranks)
{
	job_run(parts_in_threads);
}

/* Each rank writes its number into the memory of all others, in one call of HcclChannelAcquire. */
static void meets_all(struct job_rank *rank)
{
	unsigned char *memory = job_memory(AREA, (int)rank->rank);
	HcclChannelDesc descs[MANY];
	ChannelHandle channels[MANY];
	HcclMemHandle handle;
	ThreadHandle thread;
	uint32_t count = 0;

	check_ok(HcclCommMemReg(rank->comm, "area", &(CommMem){ COMM_MEM_TYPE_DEVICE, memory, AREA }, &handle));
	for (uint32_t i = 0; i < MANY; i++)
		if (i != rank->rank)
			descs[count++] = desc_of(i, COMM_PROTOCOL_UB_MEM, &handle, 1);
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_AIV, descs, count, channels));
	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_AIV, 1, 0, &thread));
	for (uint32_t i = 0; i < count; i++)
		check_ok(HcommWriteWithNotifyOnThread(thread, channels[i], remote_of(rank->comm, channels[i]) + AREA / 2 + rank->rank, memory, 1, 1));
	for (uint32_t i = 0; i < count; i++)
		check_ok(HcommChannelNotifyWaitOnThread(thread, channels[i], 1, 60));
	thread_finish(thread);
	for (uint32_t i = 0; i < MANY; i++)
		check_eq_uint(memory[AREA / 2 + i], i);
	settle(rank);
}

static void many_in_threads(void)
{
	job_ranks(MANY, 8, meets_all, NULL);
}

TEST_TIMEOUT(sixty_four_ranks_have_channels_to_all, 60)
{
	job_run(many_in_threads);
}
