/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libhcomm.so: the data plane. One line per function, in the order of the
 * headers: it answers "not supported" with a text that names it. Whoever builds one takes its
 * line away.
 */
#include "client/unbuilt.h"
#include "hcomm/hcomm_primitives.h"

/* hcomm/hcomm_primitives.h */
UNBUILT_HCOMM(HcommWriteOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len))
UNBUILT_HCOMM(HcommWriteReduceOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp))
UNBUILT_HCOMM(HcommWriteWithNotifyOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len, uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommWriteReduceWithNotifyOnThread, (ThreadHandle thread, ChannelHandle channel,
		void *dst, const void *src, uint64_t count, HcommDataType dataType,
		HcommReduceOp reduceOp, uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommReadOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len))
UNBUILT_HCOMM(HcommReadReduceOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t count, HcommDataType dataType, HcommReduceOp reduceOp))
UNBUILT_HCOMM(HcommWriteNbiOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len))
UNBUILT_HCOMM(HcommWriteNbi, (ChannelHandle channel, void *dst, const void *src, uint64_t len))
UNBUILT_HCOMM(HcommWriteWithNotifyNbiOnThread, (ThreadHandle thread, ChannelHandle channel,
		void *dst, const void *src, uint64_t len, uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommWriteWithNotifyNbi, (ChannelHandle channel, void *dst, const void *src,
		uint64_t len, uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommReadNbiOnThread, (ThreadHandle thread, ChannelHandle channel, void *dst,
		const void *src, uint64_t len))
UNBUILT_HCOMM(HcommReadNbi, (ChannelHandle channel, void *dst, const void *src, uint64_t len))
UNBUILT_HCOMM(HcommChannelNotifyRecordOnThread, (ThreadHandle thread, ChannelHandle channel,
		uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommChannelNotifyRecord, (ChannelHandle channel, uint32_t remoteNotifyIdx))
UNBUILT_HCOMM(HcommChannelNotifyWaitOnThread, (ThreadHandle thread, ChannelHandle channel,
		uint32_t localNotifyIdx, uint32_t timeOut))
UNBUILT_HCOMM(HcommChannelNotifyWait, (ChannelHandle channel, uint32_t localNotifyIdx,
		uint32_t timeOut))
UNBUILT_HCOMM(HcommChannelFenceOnThread, (ThreadHandle thread, ChannelHandle channel))
UNBUILT_HCOMM(HcommBatchTransferOnThread, (ThreadHandle thread, ChannelHandle channel,
		const HcommBatchTransferDesc *transferDescs, uint32_t transferDescNum))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheLookup, (const char *tag, bool *isHit))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheStart, (const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheEnd, (const char *tag))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheExecute, (const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheClear, (const char *tag))
UNBUILT_HCOMM(HcommChannelFence, (ChannelHandle channel))
UNBUILT_HCOMM(HcommChannelNotifyWaitOnThreadWithDefaultTimeout, (ThreadHandle thread,
		ChannelHandle channel, uint32_t localNotifyIdx))
UNBUILT_HCOMM(HcommChannelDrainOnThread, (ThreadHandle thread, ChannelHandle channel))
