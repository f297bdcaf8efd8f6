/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libhccl.so: operators and argument objects of fused kernels. One line per
 * function, in the order of the headers: it answers "not supported" with a text that names it.
 * Whoever builds one takes its line away.
 */
#include "client/unbuilt.h"
#include "hccl/hccl.h"
#include "hccl/hccl_mc2.h"

/* hccl/hccl.h */
UNBUILT_HCCL(HcclAllReduce, (void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
		HcclReduceOp op, HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclBroadcast, (void *buf, uint64_t count, HcclDataType dataType, uint32_t root,
		HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclReduceScatter, (void *sendBuf, void *recvBuf, uint64_t recvCount,
		HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclReduceScatterV, (void *sendBuf, const void *sendCounts, const void *sendDispls,
		void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
		HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclScatter, (void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
		uint32_t root, HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclAllGather, (void *sendBuf, void *recvBuf, uint64_t sendCount,
		HcclDataType dataType, HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclAllGatherV, (void *sendBuf, uint64_t sendCount, void *recvBuf,
		const void *recvCounts, const void *recvDispls, HcclDataType dataType,
		HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclAlltoAllVC, (const void *sendBuf, const void *sendCountMatrix,
		HcclDataType sendType, const void *recvBuf, HcclDataType recvType, HcclComm comm,
		aclrtStream stream))
UNBUILT_HCCL(HcclAlltoAllV, (const void *sendBuf, const void *sendCounts, const void *sdispls,
		HcclDataType sendType, const void *recvBuf, const void *recvCounts,
		const void *rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream))
UNBUILT_HCCL(HcclAlltoAll, (const void *sendBuf, uint64_t sendCount, HcclDataType sendType,
		const void *recvBuf, uint64_t recvCount, HcclDataType recvType, HcclComm comm,
		aclrtStream stream))
UNBUILT_HCCL(HcclReduce, (void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
		HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream))

/* hccl/hccl_mc2.h */
UNBUILT_HCCL(HcclKfcAllocOpArgs, (void **opArgs))
UNBUILT_HCCL(HcclKfcFreeOpArgs, (void *opArgs))
UNBUILT_HCCL(HcclKfcOpArgsSetSrcDataType, (void *opArgs, uint8_t srcDataType))
UNBUILT_HCCL(HcclKfcOpArgsSetDstDataType, (void *opArgs, uint8_t dstDataType))
UNBUILT_HCCL(HcclKfcOpArgsSetReduceType, (void *opArgs, uint32_t reduceType))
UNBUILT_HCCL(HcclKfcOpArgsSetCount, (void *opArgs, uint64_t count))
UNBUILT_HCCL(HcclKfcOpArgsSetAlgConfig, (void *opArgs, char *algConfig))
UNBUILT_HCCL(HcclKfcOpArgsSetCommEngine, (void *opArgs, uint8_t commEngine))
UNBUILT_HCCL(HcclCreateOpResCtx, (HcclComm comm, uint8_t opType, void *opArgs, void **opResCtx))
