/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data plane: copies, transfers and notifies on threads (execution queues). Library
 * libhcomm.so.
 *
 * A function with OnThread queues its work on @thread and returns; work takes effect in order per
 * thread. A remote address lies in memory that the channel knows. len counts bytes, count elements
 * of dataType; time-outs are seconds, 0 and UINT32_MAX mean for ever. Results are values of
 * HcclResult: handle 0 or address NULL gives HCCL_E_PTR, what is out of range HCCL_E_PARA; an index
 * that a thread has no notify for HCCL_E_PTR. Memory stays the caller's and must live until the
 * work is done. Different OS threads may use different threads and channels at the same time.
 *
 * A notify is binary: recorded twice before a wait, it is recorded once, and the second is lost. Who
 * records it often waits for an answer in between.
 *
 * Reductions: HCOMM_REDUCE_SUM, MAX and MIN of INT8, INT16, INT32, FP16, BFP16 and FP32, at multiples
 * of the element's size; other types and operations give HCCL_E_PARA.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../securec.h"
#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Time-outs of HcommSetNotifyWaitTimeOut are float. Since 9.2. */
#define HCOMM_TIMEOUT_FLOAT_TYPE 1

/* Values as in HcclReduceOp. */
typedef enum HcommReduceOp {
	HCOMM_REDUCE_SUM = 0,
	HCOMM_REDUCE_PROD = 1,
	HCOMM_REDUCE_MAX = 2,
	HCOMM_REDUCE_MIN = 3,
	HCOMM_REDUCE_RESERVED = 255,
} HcommReduceOp;

/* Values as in HcclDataType. */
typedef enum HcommDataType {
	HCOMM_DATA_TYPE_INT8 = 0,
	HCOMM_DATA_TYPE_INT16 = 1,
	HCOMM_DATA_TYPE_INT32 = 2,
	HCOMM_DATA_TYPE_FP16 = 3,
	HCOMM_DATA_TYPE_FP32 = 4,
	HCOMM_DATA_TYPE_INT64 = 5,
	HCOMM_DATA_TYPE_UINT64 = 6,
	HCOMM_DATA_TYPE_UINT8 = 7,
	HCOMM_DATA_TYPE_UINT16 = 8,
	HCOMM_DATA_TYPE_UINT32 = 9,
	HCOMM_DATA_TYPE_FP64 = 10,
	HCOMM_DATA_TYPE_BFP16 = 11,
	HCOMM_DATA_TYPE_INT128 = 12,
	HCOMM_DATA_TYPE_HIF8 = 14,
	HCOMM_DATA_TYPE_FP8E4M3 = 15,
	HCOMM_DATA_TYPE_FP8E5M2 = 16,
	HCOMM_DATA_TYPE_FP8E8M0 = 17,
	HCOMM_DATA_TYPE_RESERVED = 255,
} HcommDataType;

/* Since 9.2. */
typedef enum HcommTransferType {
	HCOMM_TRANSFER_TYPE_INVALID = -1,
	HCOMM_TRANSFER_TYPE_WRITE = 0,
	HCOMM_TRANSFER_TYPE_WRITE_REDUCE = 1,
	HCOMM_TRANSFER_TYPE_WRITE_WITH_NOTIFY = 2,
	HCOMM_TRANSFER_TYPE_WRITE_REDUCE_WITH_NOTIFY = 3,
	HCOMM_TRANSFER_TYPE_READ = 4,
	HCOMM_TRANSFER_TYPE_READ_REDUCE = 5,
	HCOMM_TRANSFER_TYPE_NOTIFY_RECORD = 6,
} HcommTransferType;

/* One transfer of HcommBatchTransferOnThread. Since 9.2. */
typedef struct HcommBatchTransferDesc {
	HcommTransferType transType;
	uint8_t reserved[4];
	union {
		uint8_t raws[56];
		struct {
			uint64_t len;
			void *dst;
			void *src;
		} write;
		struct {
			uint64_t len;
			void *dst;
			void *src;
		} read;
		struct {
			uint64_t count;
			void *dst;
			void *src;
			HcommReduceOp reduceOp;
			HcommDataType dataType;
		} reduce;
		struct {
			uint32_t notifyIdx;
		} notifyRecord;
		struct {
			uint64_t len;
			void *dst;
			void *src;
			uint32_t notifyIdx;
		} writeWithNotify;
		struct {
			uint64_t count;
			void *dst;
			void *src;
			HcommReduceOp reduceOp;
			HcommDataType dataType;
			uint32_t notifyIdx;
		} writeReduceWithNotify;
	} transferInfo;
} HcommBatchTransferDesc;

/* Copies local memory; len 0 does nothing. */
int32_t HcommLocalCopyOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t len);
/* dst[i] = dst[i] op src[i] in local memory; see "Reductions" above. */
int32_t HcommLocalReduceOnThread(ThreadHandle thread, void *dst, const void *src, uint64_t count,
		HcommDataType dataType, HcommReduceOp reduceOp);
/* Signals notify @dstNotifyIdx of @dstThread. HCCL_E_PTR: it has none with that index. */
int32_t HcommThreadNotifyRecordOnThread(ThreadHandle thread, ThreadHandle dstThread,
		uint32_t dstNotifyIdx);
/* Waits for the own notify and resets it. HCCL_E_PTR: there is none with that index. */
int32_t HcommThreadNotifyWaitOnThread(ThreadHandle thread, uint32_t notifyIdx, uint32_t timeOut);
/* Signals a notify by the id of aclrtGetNotifyId. */
int32_t HcommAclrtNotifyRecordOnThread(ThreadHandle thread, uint64_t dstNotifyId);
/* Waits for such a notify and resets it. */
int32_t HcommAclrtNotifyWaitOnThread(ThreadHandle thread, uint64_t notifyId, uint32_t timeOut);
/* Writes local @src to remote @dst. */
int32_t HcommWriteOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
		uint64_t len);
/* Remote dst[i] = dst[i] op src[i]. */
int32_t HcommWriteReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp);
/* Writes, then signals the peer's notify. */
int32_t HcommWriteWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len, uint32_t remoteNotifyIdx);
/* Reduces into remote memory, then signals the peer's notify. */
int32_t HcommWriteReduceWithNotifyOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp,
		uint32_t remoteNotifyIdx);
/* Reads remote @src to local @dst. */
int32_t HcommReadOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
		uint64_t len);
/* Local dst[i] = dst[i] op remote src[i]. */
int32_t HcommReadReduceOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp);
/* Writes without waiting for the transfer; a fence completes it. */
int32_t HcommWriteNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len);
/*
 * The same without a thread: in the order of such calls of the communicator, not in that of any thread.
 * HcommChannelFence waits for it.
 */
int32_t HcommWriteNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len);
/* Writes and signals without waiting. */
int32_t HcommWriteWithNotifyNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len, uint32_t remoteNotifyIdx);
/* The same, issued by the caller at once. */
int32_t HcommWriteWithNotifyNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len,
		uint32_t remoteNotifyIdx);
/* Reads without waiting; a fence completes it. */
int32_t HcommReadNbiOnThread(ThreadHandle thread, ChannelHandle channel, void *dst, const void *src,
		uint64_t len);
/* The same, issued by the caller at once. */
int32_t HcommReadNbi(ChannelHandle channel, void *dst, const void *src, uint64_t len);
/* Signals the peer's notify of this channel. */
int32_t HcommChannelNotifyRecordOnThread(ThreadHandle thread, ChannelHandle channel,
		uint32_t remoteNotifyIdx);
/* The same, issued by the caller at once. */
int32_t HcommChannelNotifyRecord(ChannelHandle channel, uint32_t remoteNotifyIdx);
/* Waits for the own notify of this channel and resets it. */
int32_t HcommChannelNotifyWaitOnThread(ThreadHandle thread, ChannelHandle channel,
		uint32_t localNotifyIdx, uint32_t timeOut);
/* The same in the calling OS thread, which alone waits. HCCL_E_TIMEOUT, HCCL_E_REMOTE. */
int32_t HcommChannelNotifyWait(ChannelHandle channel, uint32_t localNotifyIdx, uint32_t timeOut);

/*
 * Collects what this OS thread queues until HcommBatchModeEnd; the tag names it for reuse, NULL
 * or "": none. hccld queues it at once: there is nothing to be gained.
 */
int32_t HcommBatchModeStart(const char *batchTag);

/* Submits what was collected. */
int32_t HcommBatchModeEnd(const char *batchTag);
/*
 * Locks a communicator by name. HCCL_E_PTR: there is none of that name; HCCL_E_AGAIN: it is
 * locked.
 */
int32_t HcommAcquireComm(const char *commId);
/* Unlocks it. HCCL_E_PARA: it is not locked. */
int32_t HcommReleaseComm(const char *commId);
/* Earlier transfers of the thread are complete before later work starts. */
int32_t HcommFenceOnThread(ThreadHandle thread);
/* The same for one channel. */
int32_t HcommChannelFenceOnThread(ThreadHandle thread, ChannelHandle channel);
/* Queues @transferDescNum transfers of one channel; copied by the call. Since 9.2. */
int32_t HcommBatchTransferOnThread(ThreadHandle thread, ChannelHandle channel,
		const HcommBatchTransferDesc *transferDescs, uint32_t transferDescNum);
/* Tells whether a recorded task list exists. Since 9.2. */
HcommResult HcommAicpuTsTaskCacheLookup(const char *tag, bool *isHit);
/* Begins to record a task list with @count addresses and sizes. Since 9.2. */
HcommResult HcommAicpuTsTaskCacheStart(const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count);
/* Ends the recording. Since 9.2. */
HcommResult HcommAicpuTsTaskCacheEnd(const char *tag);
/* Runs a recorded list with other addresses. Since 9.2. */
HcommResult HcommAicpuTsTaskCacheExecute(const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count);
/* Forgets a recorded list. Since 9.2. */
HcommResult HcommAicpuTsTaskCacheClear(const char *tag);
/* Returns when all that was queued without a thread is done; its errors in flight. Since 9.1. */
int32_t HcommChannelFence(ChannelHandle channel);
/* Sets the process's default for waits, whole seconds, 0: never. Since 9.2. */
int32_t HcommSetNotifyWaitTimeOut(float timeOut);
/* Sets the process's default for acquiring threads, in the same way. Since 9.2. */
int32_t HcommThreadResAcquireTimeOut(float timeOut);
/* As HcommChannelNotifyWaitOnThread with the default time-out. Since 9.2. */
int32_t HcommChannelNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, ChannelHandle channel,
		uint32_t localNotifyIdx);
/* As HcommThreadNotifyWaitOnThread with the default time-out. Since 9.2. */
int32_t HcommThreadNotifyWaitOnThreadWithDefaultTimeout(ThreadHandle thread, uint32_t notifyIdx);
/* Waits until the channel's outstanding work is complete. Since 9.2. */
int32_t HcommChannelDrainOnThread(ThreadHandle thread, ChannelHandle channel);

#ifdef __cplusplus
}
#endif
