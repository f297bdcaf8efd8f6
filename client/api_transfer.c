/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane over channels, as libhcomm.so exports it. Results are values of HcclResult. Where real HCCL has a function on some
 * products only, it works here: all ranks are on this node, and every thread is run by the daemon's executor.
 */
#include <stddef.h>
#include <stdlib.h>

#include "client/argument.h"
#include "client/error.h"
#include "client/primitive.h"
#include "hcomm/hcomm_primitives.h"
#include "proto/cleanup.h"

#define API(call) hccld_hccl_result(call)
#define TRANSFERS_MAX (1u << 16) /* of one HcommBatchTransferOnThread */

/* What is 0 or NULL among the arguments, in their order. */
#define NEED(argument)                                          \
	do {                                                    \
		if (!(argument))                                \
			return null_argument(__func__, #argument); \
	} while (0)

static struct hccld_transfer copying(enum hccld_transfer_kind kind, void *to, const void *from, uint64_t bytes)
{
	return (struct hccld_transfer){ .kind = kind, .to = to, .from = from, .amount = bytes };
}

static struct hccld_transfer reducing(enum hccld_transfer_kind kind, void *to, const void *from, uint64_t count, HcommDataType type,
				      HcommReduceOp op)
{
	return (struct hccld_transfer){ .kind = kind,
					.reduces = true,
					.to = to,
					.from = from,
					.amount = count,
					.type = (uint32_t)type,
					.op = (uint32_t)op };
}

static struct hccld_transfer with_notify(struct hccld_transfer transfer, uint32_t index)
{
	transfer.notifies = true;
	transfer.notify = index;
	return transfer;
}

/* @thread 0: without one. */
static int32_t transfer_one(const char *function, ThreadHandle thread, ChannelHandle channel, struct hccld_transfer transfer)
{
	return API(hccld_primitive_transfer(function, thread, channel, &transfer, 1));
}

#define ON_THREAD(transfer)        \
	do {                       \
		NEED(thread);      \
		NEED(channel);     \
		NEED(dst);         \
		NEED(src);         \
		return transfer_one(__func__, thread, channel, transfer); \
	} while (0)

#define WITHOUT_THREAD(transfer)   \
	do {                       \
		NEED(channel);     \
		NEED(dst);         \
		NEED(src);         \
		return transfer_one(__func__, 0, channel, transfer); \
	} while (0)

int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
			   uint64_t len)
{
	ON_THREAD(copying(HCCLD_TRANSFER_WRITE, dst, src, len));
}

int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				 const void *src, uint64_t count, HcommDataType dataType,
				 HcommReduceOp reduceOp)
{
	ON_THREAD(reducing(HCCLD_TRANSFER_WRITE, dst, src, count, dataType, reduceOp));
}

int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				     const void *src, uint64_t len, uint32_t remoteNotifyIdx)
{
	ON_THREAD(with_notify(copying(HCCLD_TRANSFER_WRITE, dst, src, len), remoteNotifyIdx));
}

int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
					   const void *src, uint64_t count, HcommDataType dataType,
					   HcommReduceOp reduceOp, uint32_t remoteNotifyIdx)
{
	ON_THREAD(with_notify(reducing(HCCLD_TRANSFER_WRITE, dst, src, count, dataType, reduceOp), remoteNotifyIdx));
}

int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
			  uint64_t len)
{
	ON_THREAD(copying(HCCLD_TRANSFER_READ, dst, src, len));
}

int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
				const void *src, uint64_t count, HcommDataType dataType,
				HcommReduceOp reduceOp)
{
	ON_THREAD(reducing(HCCLD_TRANSFER_READ, dst, src, count, dataType, reduceOp));
}

/* Real HCCL has these where the CPU drives a NIC; here they are queued in the thread, and so in order with the rest of it. */

int32_t HcommWriteNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
			      const void *src, uint64_t len)
{
	ON_THREAD(copying(HCCLD_TRANSFER_WRITE, dst, src, len));
}

int32_t HcommWriteWithNotifyNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
					const void *src, uint64_t len, uint32_t remoteNotifyIdx)
{
	ON_THREAD(with_notify(copying(HCCLD_TRANSFER_WRITE, dst, src, len), remoteNotifyIdx));
}

int32_t HcommReadNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
			     uint64_t len)
{
	ON_THREAD(copying(HCCLD_TRANSFER_READ, dst, src, len));
}

/* And those without a thread in one that the communicator has for them: in their own order; HcommChannelFence waits for them. */

int32_t HcommWriteNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	WITHOUT_THREAD(copying(HCCLD_TRANSFER_WRITE, dst, src, len));
}

int32_t HcommWriteWithNotifyNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len,
				uint32_t remoteNotifyIdx)
{
	WITHOUT_THREAD(with_notify(copying(HCCLD_TRANSFER_WRITE, dst, src, len), remoteNotifyIdx));
}

int32_t HcommReadNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len)
{
	WITHOUT_THREAD(copying(HCCLD_TRANSFER_READ, dst, src, len));
}

int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel,
					 uint32_t remoteNotifyIdx)
{
	NEED(thread);
	NEED(channel);
	return transfer_one(__func__, thread, channel, with_notify((struct hccld_transfer){ 0 }, remoteNotifyIdx));
}

int32_t HcommChannelNotifyRecord(ChannelHandle channel, uint32_t remoteNotifyIdx)
{
	NEED(channel);
	return transfer_one(__func__, 0, channel, with_notify((struct hccld_transfer){ 0 }, remoteNotifyIdx));
}

int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel,
				       uint32_t localNotifyIdx, uint32_t timeOut)
{
	NEED(thread);
	NEED(channel);
	return API(hccld_primitive_wait_channel(__func__, thread, channel, localNotifyIdx, timeOut));
}

int32_t HcommChannelNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, ChannelHandle channel,
							 uint32_t localNotifyIdx)
{
	uint32_t seconds;
	int r;

	NEED(thread);
	NEED(channel);
	r = hccld_primitive_wait_timeout(__func__, thread, &seconds);
	return API(r < 0 ? r : hccld_primitive_wait_channel(__func__, thread, channel, localNotifyIdx, seconds));
}

int32_t HcommChannelNotifyWait(ChannelHandle channel, uint32_t localNotifyIdx, uint32_t timeOut)
{
	NEED(channel);
	return API(hccld_primitive_await_channel(__func__, channel, localNotifyIdx, timeOut));
}

/* ---- several at once ---- */

/* -EPROTOTYPE: there is no such kind. */
static int transfer_of(const char *function, uint32_t i, const HcommBatchTransferDesc *desc, struct hccld_transfer *ret_transfer)
{
	switch (desc->transType) {
	case HCOMM_TRANSFER_TYPE_WRITE:
		*ret_transfer = copying(HCCLD_TRANSFER_WRITE, desc->transferInfo.write.dst, desc->transferInfo.write.src,
					desc->transferInfo.write.len);
		break;
	case HCOMM_TRANSFER_TYPE_READ:
		*ret_transfer = copying(HCCLD_TRANSFER_READ, desc->transferInfo.read.dst, desc->transferInfo.read.src,
					desc->transferInfo.read.len);
		break;
	case HCOMM_TRANSFER_TYPE_WRITE_REDUCE:
	case HCOMM_TRANSFER_TYPE_READ_REDUCE:
		*ret_transfer = reducing(desc->transType == HCOMM_TRANSFER_TYPE_READ_REDUCE ? HCCLD_TRANSFER_READ : HCCLD_TRANSFER_WRITE,
					 desc->transferInfo.reduce.dst, desc->transferInfo.reduce.src, desc->transferInfo.reduce.count,
					 desc->transferInfo.reduce.dataType, desc->transferInfo.reduce.reduceOp);
		break;
	case HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY:
		*ret_transfer = with_notify(copying(HCCLD_TRANSFER_WRITE, desc->transferInfo.writeWithNotify.dst,
						    desc->transferInfo.writeWithNotify.src, desc->transferInfo.writeWithNotify.len),
					    desc->transferInfo.writeWithNotify.notifyIdx);
		break;
	case HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY:
		*ret_transfer = with_notify(reducing(HCCLD_TRANSFER_WRITE, desc->transferInfo.writeReduceWithNotify.dst,
						     desc->transferInfo.writeReduceWithNotify.src,
						     desc->transferInfo.writeReduceWithNotify.count,
						     desc->transferInfo.writeReduceWithNotify.dataType,
						     desc->transferInfo.writeReduceWithNotify.reduceOp),
					    desc->transferInfo.writeReduceWithNotify.notifyIdx);
		break;
	case HCOMM_TRANSFER_TYPE_NOTIFY_RECORD:
		*ret_transfer = with_notify((struct hccld_transfer){ 0 }, desc->transferInfo.notifyRecord.notifyIdx);
		return 0;
	default:
		return hccld_error(CAUSE_NOT_SUPPORTED, "%s: transferDescs[%u].transType is %d; expected a value of HcommTransferType", function,
				   i, (int)desc->transType);
	}
	if (ret_transfer->to && ret_transfer->from)
		return 0;
	return hccld_error(CAUSE_NULL, "%s: %s of transferDescs[%u] is NULL", function, ret_transfer->to ? "src" : "dst", i);
}

int32_t HcommBatchTransferOnThread(ThreadHandle thread, ChannelHandle channel,
				   const HcommBatchTransferDesc *transferDescs,
				   uint32_t transferDescNum)
{
	CLEANUP(freep) struct hccld_transfer *transfers = NULL;
	int r = 0;

	NEED(thread);
	NEED(channel);
	NEED(transferDescs);
	if (transferDescNum == 0 || transferDescNum > TRANSFERS_MAX)
		return API(hccld_error(CAUSE_ARGUMENT, "%s: transferDescNum is %u; expected 1 to %u", __func__, transferDescNum,
				       TRANSFERS_MAX));
	transfers = malloc(transferDescNum * sizeof(*transfers));
	if (!transfers)
		return API(hccld_error(CAUSE_HOST_MEMORY, "%s: no memory for %u transfers", __func__, transferDescNum));
	for (uint32_t i = 0; i < transferDescNum && r == 0; i++)
		r = transfer_of(__func__, i, &transferDescs[i], &transfers[i]);
	return API(r < 0 ? r : hccld_primitive_transfer(__func__, thread, channel, transfers, transferDescNum));
}

/* ---- fences: nothing is left to be done (primitive.h) ---- */

int32_t HcommChannelFenceOnThread(ThreadHandle thread, ChannelHandle channel)
{
	NEED(thread);
	NEED(channel);
	return API(hccld_primitive_fence_channel(__func__, thread, channel));
}

int32_t HcommChannelDrainOnThread(ThreadHandle thread, ChannelHandle channel)
{
	NEED(thread);
	NEED(channel);
	return API(hccld_primitive_fence_channel(__func__, thread, channel));
}

/* The calling OS thread has nothing of its own that would keep an order: it waits until what it has queued without a thread is done. */
int32_t HcommChannelFence(ChannelHandle channel)
{
	NEED(channel);
	return API(hccld_primitive_drain(__func__, channel));
}
