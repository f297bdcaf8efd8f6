/* SPDX-License-Identifier: Apache-2.0 */
/* Primitives over channels, every function by itself between two ranks, and what is told when it cannot. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hccl/hccl_res.h"
#include "hcomm/hcomm_primitives.h"
#include "hcomm/hcomm_res.h"
#include "tests/support/job.h"
#include "tests/support/thread.h"

#define AREA 8192u

static void *remote_memory(HcclComm comm, ChannelHandle channel, uint64_t bytes)
{
	CommMem *mems = NULL;
	uint32_t count = 0;
	char **tags;

	check_ok(HcclChannelGetRemoteMems(comm, channel, &count, &mems, &tags));
	check_eq_uint(count, 1);
	check_eq_uint(mems[0].size, bytes);
	return mems[0].addr;
}

struct pair {
	struct job_rank *rank;
	ThreadHandle thread;
	ChannelHandle channel;
	unsigned char *own, *other; /* registered memory of this rank, and of the peer's */
	char *buffer;
};

/* 3 notifies here, @notifies at rank 1. */
static struct pair pair_new(struct job_rank *rank, uint32_t notifies)
{
	struct pair pair = { .rank = rank, .own = job_memory(AREA, 10 + (int)rank->rank) };
	CommMem mem = { COMM_MEM_TYPE_DEVICE, pair.own, AREA };
	HcclMemHandle handle;
	HcclChannelDesc desc;
	uint64_t size;

	check_ok(HcclThreadAcquire(rank->comm, COMM_ENGINE_CPU, 1, 1, &pair.thread));
	check_ok(HcclCommMemReg(rank->comm, "area", &mem, &handle));
	check_ok(HcclChannelDescInit(&desc, 1));
	desc.remoteRank = 1 - rank->rank;
	desc.channelProtocol = COMM_PROTOCOL_HCCS;
	desc.notifyNum = rank->rank ? notifies : 3;
	desc.memHandles = &handle;
	desc.memHandleNum = 1;
	check_ok(HcclChannelAcquire(rank->comm, COMM_ENGINE_CPU, &desc, 1, &pair.channel));
	check_ok(HcclChannelGetHcclBuffer(rank->comm, pair.channel, (void **)&pair.buffer, &size));
	pair.other = remote_memory(rank->comm, pair.channel, AREA);
	return pair;
}

/* Both have done what they did before. */
static void meet(struct pair *pair)
{
	thread_finish(pair->thread);
	check_ok(HcclBarrier(pair->rank->comm, pair->rank->stream));
	check_ok(aclrtSynchronizeStream(pair->rank->stream));
}

/* Rank 0 does it all, to rank 1's memory; which says what became of it. */
static void good_cases(struct pair *pair)
{
	ThreadHandle t = pair->thread;
	ChannelHandle c = pair->channel;
	int32_t *mine = (int32_t *)pair->own, *theirs = (int32_t *)pair->other;

	check_ok(HcommWriteOnThread(t, c, theirs, mine, 64));
	check_ok(HcommReadOnThread(t, c, mine + 64, theirs + 64, 64));
	check_ok(HcommWriteReduceOnThread(t, c, theirs + 16, mine, 16, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM));
	check_ok(HcommReadReduceOnThread(t, c, mine + 80, theirs + 64, 16, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_MAX));
	check_ok(HcommWriteWithNotifyOnThread(t, c, theirs + 32, mine, 64, 0));
	check_ok(HcommWriteReduceWithNotifyOnThread(t, c, theirs + 48, mine, 16, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_MIN, 1));
	check_ok(HcommWriteNbiOnThread(t, c, theirs + 128, mine, 64));
	check_ok(HcommReadNbiOnThread(t, c, mine + 128, theirs + 64, 64));
	check_ok(HcommWriteWithNotifyNbiOnThread(t, c, theirs + 144, mine, 64, 2));
	check_ok(HcommFenceOnThread(t));
	check_ok(HcommChannelFenceOnThread(t, c));
	check_ok(HcommChannelDrainOnThread(t, c));
	check_ok(HcommChannelNotifyRecordOnThread(t, c, 3));
	thread_finish(t);
	/* what is queued without a thread has an order of its own */
	check_ok(HcommWriteNbi(c, theirs + 160, mine, 64));
	check_ok(HcommReadNbi(c, mine + 144, theirs + 160, 64));
	check_ok(HcommWriteWithNotifyNbi(c, theirs + 176, mine, 64, 4));
	check_ok(HcommChannelNotifyRecord(c, 5));
	check_ok(HcommChannelFence(c));
	check_eq_int(mine[144], 0x0a0a0a0a);
	check_eq_int(mine[64], 0x0b0b0b0b);
	check_eq_int(mine[80], 0x0b0b0b0b);
	check_eq_int(mine[128], 0x0b0b0b0b);
	/* no bytes: only the notify */
	check_ok(HcommWriteWithNotifyOnThread(t, c, theirs, mine, 0, 6));
	check_ok(HcommWriteOnThread(t, c, theirs, mine, 0));
	/* a HCCL buffer is memory of the channel, too */
	check_ok(HcommWriteOnThread(t, c, pair->buffer + 100, mine, 64));
}

static void check_received(struct pair *pair)
{
	static const uint32_t copied[] = { 0, 32, 128, 144, 160, 176 };
	int32_t *own = (int32_t *)pair->own;

	for (uint32_t i = 0; i < 7; i++)
		check_ok(HcommChannelNotifyWaitOnThread(pair->thread, pair->channel, i, 10));
	thread_finish(pair->thread);
	for (size_t i = 0; i < sizeof(copied) / sizeof(copied[0]); i++)
		for (uint32_t j = 0; j < 16; j++)
			check_eq_int(own[copied[i] + j], 0x0a0a0a0a);
	for (uint32_t j = 0; j < 16; j++) {
		check_eq_int(own[16 + j], 0x0a0a0a0a + 0x0b0b0b0b);
		check_eq_int(own[48 + j], 0x0a0a0a0a);
		check_eq_int(own[64 + j], 0x0b0b0b0b);
	}
}

static HcommBatchTransferDesc batch_desc(HcommTransferType type)
{
	HcommBatchTransferDesc desc = { .transType = type };

	return desc;
}

static void batches(struct pair *pair)
{
	int32_t *mine = (int32_t *)pair->own, *theirs = (int32_t *)pair->other;
	ThreadHandle t = pair->thread;
	ChannelHandle c = pair->channel;
	HcommBatchTransferDesc descs[8];

	descs[0] = batch_desc(HCOMM_TRANSFER_TYPE_WRITE);
	descs[0].transferInfo.write.dst = theirs + 256;
	descs[0].transferInfo.write.src = mine;
	descs[0].transferInfo.write.len = 64;
	descs[1] = batch_desc(HCOMM_TRANSFER_TYPE_READ);
	descs[1].transferInfo.read.dst = mine + 256;
	descs[1].transferInfo.read.src = theirs + 256;
	descs[1].transferInfo.read.len = 64;
	descs[2] = batch_desc(HCOMM_TRANSFER_TYPE_WRITE_REDUCE);
	descs[2].transferInfo.reduce.dst = theirs + 256;
	descs[2].transferInfo.reduce.src = mine;
	descs[2].transferInfo.reduce.count = 16;
	descs[2].transferInfo.reduce.dataType = HCOMM_DATA_TYPE_INT32;
	descs[2].transferInfo.reduce.reduceOp = HCOMM_REDUCE_SUM;
	descs[3] = descs[2];
	descs[3].transType = HCOMM_TRANSFER_TYPE_READ_REDUCE;
	descs[3].transferInfo.reduce.dst = mine + 256;
	descs[3].transferInfo.reduce.src = theirs + 256;
	descs[4] = batch_desc(HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY);
	descs[4].transferInfo.writeWithNotify.dst = theirs + 272;
	descs[4].transferInfo.writeWithNotify.src = mine;
	descs[4].transferInfo.writeWithNotify.len = 64;
	descs[4].transferInfo.writeWithNotify.notifyIdx = 0;
	descs[5] = batch_desc(HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY);
	descs[5].transferInfo.writeReduceWithNotify.dst = theirs + 272;
	descs[5].transferInfo.writeReduceWithNotify.src = mine + 256;
	descs[5].transferInfo.writeReduceWithNotify.count = 16;
	descs[5].transferInfo.writeReduceWithNotify.dataType = HCOMM_DATA_TYPE_INT32;
	descs[5].transferInfo.writeReduceWithNotify.reduceOp = HCOMM_REDUCE_MAX;
	descs[5].transferInfo.writeReduceWithNotify.notifyIdx = 1;
	descs[6] = batch_desc(HCOMM_TRANSFER_TYPE_NOTIFY_RECORD);
	descs[6].transferInfo.notifyRecord.notifyIdx = 2;
	descs[7] = batch_desc(HCOMM_TRANSFER_TYPE_INVALID);
	check_fails(HcommBatchTransferOnThread(0, c, descs, 7), HCCL_E_PTR, "thread");
	check_fails(HcommBatchTransferOnThread(t, 0, descs, 7), HCCL_E_PTR, "channel");
	check_fails(HcommBatchTransferOnThread(t, c, NULL, 7), HCCL_E_PTR, "transferDescs");
	check_fails(HcommBatchTransferOnThread(t, c, descs, 0), HCCL_E_PARA, "transferDescNum is 0");
	check_fails(HcommBatchTransferOnThread(t, c, descs, 8), HCCL_E_NOT_SUPPORT, "transferDescs[7]");
	/* none of them is done if one is wrong */
	descs[7] = descs[0];
	descs[7].transferInfo.write.src = NULL;
	check_fails(HcommBatchTransferOnThread(t, c, descs, 8), HCCL_E_PTR, "src of transferDescs[7]");
	descs[7].transferInfo.write.src = mine;
	descs[7].transferInfo.write.dst = mine;
	check_fails(HcommBatchTransferOnThread(t, c, descs, 8), HCCL_E_PARA, "not in memory of rank 1");
	thread_finish(t);
	check_eq_int(mine[256], 0x0a0a0a0a);
	check_ok(HcommReadOnThread(t, c, mine + 300, theirs + 256, 4));
	thread_finish(t);
	check_eq_int(mine[300], 0x0b0b0b0b);
	check_ok(HcommBatchTransferOnThread(t, c, descs, 7));
	thread_finish(t);
	check_eq_int(mine[256], 3 * 0x0a0a0a0a);
}

static void wrong_cases(struct pair *pair)
{
	int32_t *mine = (int32_t *)pair->own, *theirs = (int32_t *)pair->other;
	ThreadHandle t = pair->thread;
	ChannelHandle c = pair->channel;
	int32_t plain[16] = { 0 };

	check_fails(HcommWriteOnThread(0, c, theirs, mine, 4), HCCL_E_PTR, "thread");
	check_fails(HcommWriteOnThread(t, 0, theirs, mine, 4), HCCL_E_PTR, "channel");
	check_fails(HcommWriteOnThread(t, c, NULL, mine, 4), HCCL_E_PTR, "dst");
	check_fails(HcommWriteOnThread(t, c, theirs, NULL, 4), HCCL_E_PTR, "src");
	check_fails(HcommWriteOnThread(c, t, theirs, mine, 4), HCCL_E_NOT_FOUND, "no channel");
	check_fails(HcommWriteOnThread(5, c, theirs, mine, 4), HCCL_E_PARA, "no thread");
	check_fails(HcommWriteOnThread(t, c, mine, mine, 4), HCCL_E_PARA, "not in memory of rank 1");
	check_fails(HcommWriteOnThread(t, c, theirs, plain, 4), HCCL_E_PARA, "src is");
	check_fails(HcommWriteOnThread(t, c, theirs + AREA / 4 - 1, mine, 5), HCCL_E_PARA, "not in memory of rank 1");
	check_fails(HcommWriteOnThread(t, c, theirs, mine, AREA + 1), HCCL_E_PARA, "not in memory");
	check_fails(HcommWriteOnThread(t, c, theirs, mine, UINT64_MAX), HCCL_E_PARA, "not in memory");
	check_fails(HcommReadOnThread(t, c, mine, mine, 4), HCCL_E_PARA, "not in memory of rank 1");
	check_fails(HcommReadOnThread(t, c, plain, theirs, 4), HCCL_E_PARA, "dst is");
	check_fails(HcommReadOnThread(0, c, mine, theirs, 4), HCCL_E_PTR, "thread");
	check_fails(HcommReadNbi(0, mine, theirs, 4), HCCL_E_PTR, "channel");
	check_fails(HcommReadNbi(c, plain, theirs, 4), HCCL_E_PARA, "dst is");
	check_fails(HcommWriteNbi(c + (7 << 16), theirs, mine, 4), HCCL_E_NOT_FOUND, "no channel");
	check_fails(HcommWriteReduceOnThread(t, c, theirs, mine, 4, HCOMM_DATA_TYPE_INT64, HCOMM_REDUCE_SUM), HCCL_E_PARA, "dataType");
	check_fails(HcommWriteReduceOnThread(t, c, theirs, mine, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_PROD), HCCL_E_PARA, "reduceOp");
	check_fails(HcommWriteReduceOnThread(t, c, theirs, mine, AREA, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "not in memory");
	check_fails(HcommWriteReduceOnThread(t, c, theirs, mine, UINT64_MAX / 4 + 2, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "count");
	check_fails(HcommReadReduceOnThread(t, c, plain, theirs, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "dst is");
	check_fails(HcommReadReduceOnThread(t, c, mine, (char *)theirs + 1, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM), HCCL_E_PARA, "multiple of 4");
	check_fails(HcommWriteWithNotifyOnThread(t, c, theirs, mine, 4, 7), HCCL_E_PARA, "the notify is 7");
	check_fails(HcommWriteReduceWithNotifyOnThread(t, c, theirs, mine, 4, HCOMM_DATA_TYPE_INT32, HCOMM_REDUCE_SUM, UINT32_MAX), HCCL_E_PARA,
		    "rank 1 has 7");
	check_fails(HcommWriteWithNotifyNbi(c, theirs, mine, 4, 7), HCCL_E_PARA, "the notify is 7");
	check_fails(HcommChannelNotifyRecordOnThread(t, c, 7), HCCL_E_PARA, "the notify is 7");
	check_fails(HcommChannelNotifyRecordOnThread(0, c, 0), HCCL_E_PTR, "thread");
	check_fails(HcommChannelNotifyRecordOnThread(t, 0, 0), HCCL_E_PTR, "channel");
	check_fails(HcommChannelNotifyRecord(0, 0), HCCL_E_PTR, "channel");
	check_fails(HcommChannelNotifyRecord(c, 7), HCCL_E_PARA, "the notify is 7");
	check_fails(HcommChannelNotifyWaitOnThread(t, c, 3, 1), HCCL_E_PARA, "has 3");
	check_fails(HcommChannelNotifyWaitOnThread(0, c, 0, 1), HCCL_E_PTR, "thread");
	check_fails(HcommChannelNotifyWaitOnThread(t, 0, 0, 1), HCCL_E_PTR, "channel");
	check_fails(HcommChannelNotifyWaitOnThreadWithDefaultTimeout(t, c, 3), HCCL_E_PARA, "has 3");
	check_fails(HcommChannelNotifyWaitOnThreadWithDefaultTimeout(0, c, 0), HCCL_E_PTR, "thread");
	check_fails(HcommChannelNotifyWait(0, 0, 1), HCCL_E_PTR, "channel");
	check_fails(HcommChannelNotifyWait(c, 3, 1), HCCL_E_PARA, "has 3");
	check_fails(HcommChannelFence(0), HCCL_E_PTR, "channel");
	check_fails(HcommChannelFence(t), HCCL_E_NOT_FOUND, "no channel");
	check_fails(HcommChannelFenceOnThread(0, c), HCCL_E_PTR, "thread");
	check_fails(HcommChannelFenceOnThread(t, 1), HCCL_E_NOT_FOUND, "no channel");
	check_fails(HcommChannelDrainOnThread(t, 0), HCCL_E_PTR, "channel");
	check_fails(HcommChannelDrainOnThread(1, c), HCCL_E_PARA, "no thread");
}

/* Time-outs of waits for a notify that the peer does not record. */
static void late_cases(struct pair *pair)
{
	char name[COMM_NAME_MAX_LENGTH];
	HcclResult async;
	const char *text;

	check_ok(HcclGetCommName(pair->rank->comm, name));
	check_ok(HcommChannelNotifyWaitOnThread(pair->thread, pair->channel, 2, 1));
	check_eq_int(aclrtSynchronizeStreamWithTimeout(thread_stream(pair->thread), 20000), 507048);
	text = aclGetRecentErrMsg();
	check_str_contains(text, "EI0002");
	check_str_contains(text, "stream ");
	check_str_contains(text, "notify 2 of the channel to rank 1");
	check_str_contains(text, name);
	check_ok(HcclGetCommAsyncError(pair->rank->comm, &async));
	check_eq_int(async, HCCL_E_TIMEOUT);
	check_fails(HcommChannelNotifyWait(pair->channel, 1, 1), HCCL_E_TIMEOUT, "notify 1 of the channel to rank 1");
}

static _Atomic bool was_suspended;

/* Nothing new of a rank that is suspended; what is its own goes on, and all of it afterwards. */
static void while_suspended(struct pair *pair)
{
	check_ok(HcclCommSuspend(pair->rank->comm));
	check_fails(HcommWriteOnThread(pair->thread, pair->channel, pair->other, pair->own, 8), HCCL_E_SUSPENDING, "suspended");
	check_fails(HcommChannelNotifyRecord(pair->channel, 0), HCCL_E_SUSPENDING, "suspended");
	check_fails(HcommChannelNotifyWaitOnThread(pair->thread, pair->channel, 0, 1), HCCL_E_SUSPENDING, "suspended");
	check_fails(HcommChannelNotifyWait(pair->channel, 0, 1), HCCL_E_SUSPENDING, "suspended");
	check_ok(HcommLocalCopyOnThread(pair->thread, pair->own + 64, pair->own, 8));
	thread_finish(pair->thread);
	check_ok(HcclCommResume(pair->rank->comm));
	check_ok(HcommWriteOnThread(pair->thread, pair->channel, pair->other, pair->own, 8));
	thread_finish(pair->thread);
	atomic_store(&was_suspended, true);
}

static void each(struct job_rank *rank)
{
	struct pair pair = pair_new(rank, 7);

	meet(&pair);
	if (rank->rank == 0)
		good_cases(&pair);
	else
		check_received(&pair);
	meet(&pair);
	if (rank->rank == 1)
		memset(pair.own, 11, AREA);
	meet(&pair);
	if (rank->rank == 0) {
		batches(&pair);
		wrong_cases(&pair);
	} else {
		for (uint32_t i = 0; i < 3; i++)
			check_ok(HcommChannelNotifyWait(pair.channel, i, 20));
		check_eq_int(((int32_t *)pair.own)[256], 2 * 0x0a0a0a0a);
		check_eq_int(((int32_t *)pair.own)[272], 3 * 0x0a0a0a0a);
	}
	meet(&pair);
	if (rank->rank == 0)
		late_cases(&pair);
	meet(&pair);
	/* a wait of another OS thread's does not hold up what is queued without a thread */
	if (rank->rank == 1)
		check_ok(HcommChannelNotifyRecord(pair.channel, 0));
	else
		check_ok(HcommChannelNotifyWait(pair.channel, 0, 0));
	meet(&pair);
	if (rank->rank == 0)
		while_suspended(&pair);
	/* not in a barrier, which would fail, too */
	while (!atomic_load(&was_suspended))
		usleep(1000);
	meet(&pair);
	check_ok(HcclChannelDestroy(rank->comm, &pair.channel, 1));
	check_fails(HcommChannelNotifyRecordOnThread(pair.thread, pair.channel, 0), HCCL_E_NOT_FOUND, "no channel");
}

static void ranks_of_a_process(void)
{
	job_ranks(2, 2, each, NULL);
}

TEST_TIMEOUT(transfers_one_by_one, 60)
{
	job_run(ranks_of_a_process);
}

/* ---- a communicator that is left while one waits ---- */

static void leave_early(struct job_rank *rank)
{
	struct pair pair = pair_new(rank, 2);
	HcclResult async;

	meet(&pair);
	if (rank->rank == 0) {
		check_ok(HcommChannelNotifyRecordOnThread(pair.thread, pair.channel, 0));
		thread_finish(pair.thread);
		return; /* and destroys the communicator */
	}
	check_ok(HcommChannelNotifyWaitOnThread(pair.thread, pair.channel, 1, 0));
	check_fails(aclrtSynchronizeStreamWithTimeout(thread_stream(pair.thread), 20000), 507057, "rank 0");
	/* what it recorded before it left */
	check_ok(HcommChannelNotifyWaitOnThread(pair.thread, pair.channel, 0, 0));
	thread_finish(pair.thread);
	check_fails(HcommChannelNotifyRecord(pair.channel, 0), HCCL_E_REMOTE, "destroyed the communicator");
	/* that the other has left is no error; to want something of it is */
	check_ok(HcclCommSuspend(rank->comm));
	check_ok(HcclCommResume(rank->comm));
	check_ok(HcclGetCommAsyncError(rank->comm, &async));
	check_eq_int(async, HCCL_SUCCESS);
	check_fails(HcommWriteOnThread(pair.thread, pair.channel, pair.other, pair.own, 8), HCCL_E_REMOTE, "destroyed the communicator");
	check_ok(HcclGetCommAsyncError(rank->comm, &async));
	check_eq_int(async, HCCL_E_REMOTE);
}

static void leavers(void)
{
	job_ranks(2, 2, leave_early, NULL);
}

TEST_TIMEOUT(who_waits_for_a_rank_that_leaves_is_told, 60)
{
	job_run(leavers);
}
