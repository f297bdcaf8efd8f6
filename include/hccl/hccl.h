/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators. Library libhccl.so.
 *
 * Every operator checks its arguments, queues itself on @stream and returns; it takes effect when
 * the stream reaches it. Buffers are device memory (aclrtMalloc), counts and displacements count
 * elements of the data type; both stay the caller's and must live until the stream has passed the
 * operator, while arrays of counts and items are copied by the call. Errors that come later show
 * at aclrtSynchronizeStream and HcclGetCommAsyncError.
 *
 * All ranks call the same operators of a communicator in the same order with fitting arguments;
 * sends and receives match in the order of their calls per pair and direction. Different threads
 * may use different communicators and streams; calls for one communicator are ordered by the
 * caller.
 *
 * Common results, in this order: count 0: HCCL_SUCCESS, nothing done (HcclBatchSendRecv, the V and
 * the AlltoAll forms differ); NULL: HCCL_E_PTR; count above 0x7FFFFFFFF: HCCL_E_PARA; data type or
 * operation not supported: HCCL_E_NOT_SUPPORT; root or peer out of range: HCCL_E_PARA.
 */
#pragma once

#include "hccl_comm.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * recvBuf[i] = @op over all ranks of sendBuf[i], @count elements. sendBuf == recvBuf is allowed.
 */
HcclResult HcclAllReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
		HcclReduceOp op, HcclComm comm, aclrtStream stream);

/* Copies @count elements of @buf from @root to @buf of every rank. */
HcclResult HcclBroadcast(void *buf, uint64_t count, HcclDataType dataType, uint32_t root,
		HcclComm comm, aclrtStream stream);
/* Reduces sendBuf, recvCount elements per rank, and leaves the own part in @recvBuf. */
HcclResult HcclReduceScatter(void *sendBuf, void *recvBuf, uint64_t recvCount,
		HcclDataType dataType, HcclReduceOp op, HcclComm comm, aclrtStream stream);

/*
 * As HcclReduceScatter with parts of different size: sendCounts and sendDispls are arrays of
 * uint64_t, one element per rank; recvCount equals sendCounts[own rank].
 */
HcclResult HcclReduceScatterV(void *sendBuf, const void *sendCounts, const void *sendDispls,
		void *recvBuf, uint64_t recvCount, HcclDataType dataType, HcclReduceOp op,
		HcclComm comm, aclrtStream stream);

/* Hands recvCount elements of the root's @sendBuf to each rank. @sendBuf may be NULL elsewhere. */
HcclResult HcclScatter(void *sendBuf, void *recvBuf, uint64_t recvCount, HcclDataType dataType,
		uint32_t root, HcclComm comm, aclrtStream stream);
/* Collects sendCount elements of every rank in rank order in every recvBuf. */
HcclResult HcclAllGather(void *sendBuf, void *recvBuf, uint64_t sendCount, HcclDataType dataType,
		HcclComm comm, aclrtStream stream);

/*
 * As HcclAllGather with parts of different size: recvCounts and recvDispls are arrays of
 * uint64_t, one element per rank; sendCount equals recvCounts[own rank].
 */
HcclResult HcclAllGatherV(void *sendBuf, uint64_t sendCount, void *recvBuf, const void *recvCounts,
		const void *recvDispls, HcclDataType dataType, HcclComm comm, aclrtStream stream);

/* Sends @count elements to @destRank; the stream goes on when the receiver has taken them. */
HcclResult HcclSend(void *sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
		HcclComm comm, aclrtStream stream);
/* Receives @count elements from @srcRank. */
HcclResult HcclRecv(void *recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
		HcclComm comm, aclrtStream stream);

/*
 * Sends part j of sendBuf to rank j, for all ranks. @sendCountMatrix: uint64_t [size][size], row
 * = source, column = destination, the same on all ranks; parts lie one after the other. sendBuf
 * == recvBuf: HCCL_E_PARA.
 */
HcclResult HcclAlltoAllVC(const void *sendBuf, const void *sendCountMatrix, HcclDataType sendType,
		const void *recvBuf, HcclDataType recvType, HcclComm comm, aclrtStream stream);

/*
 * As HcclAlltoAllVC with own counts and displacements, uint64_t [size] each. A buffer may be NULL
 * if its counts are 0.
 */
HcclResult HcclAlltoAllV(const void *sendBuf, const void *sendCounts, const void *sdispls,
		HcclDataType sendType, const void *recvBuf, const void *recvCounts,
		const void *rdispls, HcclDataType recvType, HcclComm comm, aclrtStream stream);

/*
 * Sends sendCount elements to each rank and receives as many; counts and types must be equal,
 * else HCCL_E_PARA.
 */
HcclResult HcclAlltoAll(const void *sendBuf, uint64_t sendCount, HcclDataType sendType,
		const void *recvBuf, uint64_t recvCount, HcclDataType recvType, HcclComm comm,
		aclrtStream stream);

/* As HcclAllReduce with the result on @root only; @recvBuf must not be NULL on any rank. */
HcclResult HcclReduce(void *sendBuf, void *recvBuf, uint64_t count, HcclDataType dataType,
		HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);

/*
 * Queues @itemNum sends and receives as one operation; no item waits for another of the batch, so
 * the order of the list is free. The items are copied by the call.
 * Two items of one kind for one peer: HCCL_E_PARA unless the setting allow_duplicate_items or
 * HCCLD_ALLOW_DUPLICATE_ITEMS=1 allows them, in list order; items to oneself pair in list order.
 * Pointers are checked before itemNum, so NULL gives HCCL_E_PTR even for 0 items; 0 items:
 * HCCL_SUCCESS. An item of count 0 does nothing. HCCL_E_PARA: a buffer that is not device memory,
 * a rank out of range; the text names the item.
 */
HcclResult HcclBatchSendRecv(HcclSendRecvItem *sendRecvInfo, uint32_t itemNum, HcclComm comm,
		aclrtStream stream);

#ifdef __cplusplus
}
#endif
