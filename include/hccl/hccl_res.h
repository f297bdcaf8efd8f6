/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources of a communicator for own operators: buffer, threads (execution queues), contexts,
 * registered memory; channels are in hccl_channel.h. Library libhcomm.so.
 *
 * All resources belong to the communicator and end with it. Functions may be called from any
 * thread; NULL gives HCCL_E_PTR, an unknown engine HCCL_E_PARA. Sizes are bytes. Tags are
 * NUL-terminated, at most HCCL_RES_TAG_MAX_LEN bytes, and are copied.
 *
 * hccld gives channels of COMM_PROTOCOL_UB_MEM on every device, also where the links of the rank
 * graph are COMM_PROTOCOL_HCCS (an Ascend910): CANN has them on an Ascend950 only.
 */
#pragma once

#include <stdint.h>

#include "../acl/acl.h"
#include "../hcomm/hcomm_res_defs.h"
#include "hccl_channel.h"
#include "hccl_types.h"

#ifndef LIKELY
#define LIKELY(x) (__builtin_expect(!!(x), 1))
#endif
#ifndef UNLIKELY
#define UNLIKELY(x) (__builtin_expect(!!(x), 0))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
static const uint32_t HCCL_RES_TAG_MAX_LEN = 255U;
#else
#define HCCL_RES_TAG_MAX_LEN 255U
#endif

typedef aclrtStream ThreadResTypeStream;

/* What a thread of HcclDedicatedThreadAcquire is for. Since 9.2. */
typedef enum HcclDedicatedThreadType {
	HCCL_DED_THREAD_TYPE_INVALID = -1,
	HCCL_DED_THREAD_TYPE_AICPU_LAUNCH = 0,
	HCCL_DED_THREAD_TYPE_AICPU_LAUNCH_GE = 1,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_OPBASE = 2,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_ACLGRAPH = 3,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_GE = 4,
	HCCL_DED_THREAD_TYPE_AICPU_ORDER_LAUNCH_DEVICE = 5,
} HcclDedicatedThreadType;

/*
 * Own staging buffer of the communicator, made at the first use: 2 x HCCL_BUFFSIZE, one piece;
 * the address stays.
 */
HcclResult HcclGetHcclBuffer(HcclComm comm, void **buffer, uint64_t *size);

/*
 * Creates @threadNum queues with @notifyNumPerThread notifies each; @threads has threadNum
 * elements. At most 40 threads and 64 notifies per communicator: HCCL_E_UNAVAIL beyond; a call
 * that asks for more than that alone, once the communicator has threads, and threadNum 0:
 * HCCL_E_PARA.
 */
HcclResult HcclThreadAcquire(HcclComm comm, CommEngine engine, uint32_t threadNum,
		uint32_t notifyNumPerThread, ThreadHandle *threads);

/*
 * Makes the caller's stream a thread (engine COMM_ENGINE_CPU_TS) with @notifyNum notifies; the
 * same stream gives the same handle, with as many notifies as the largest call has asked for. It
 * ends with the stream.
 */
HcclResult HcclThreadAcquireWithStream(HcclComm comm, CommEngine engine, aclrtStream stream,
		uint32_t notifyNum, ThreadHandle *thread);

/*
 * Creates a zeroed block of @size bytes under (ctxTag, engine): host memory for CPU, CPU_TS and
 * CCU, device memory for AICPU, AICPU_TS and AIV, which aclrtFree refuses. @ctxTag NULL is the
 * name "". HCCL_E_PARA: exists already, tag too long.
 */
HcclResult HcclEngineCtxCreate(HcclComm comm, const char *ctxTag, CommEngine engine, uint64_t size,
		void **ctx);

/* Address and size of a block. HCCL_E_PARA: there is none. */
HcclResult HcclEngineCtxGet(HcclComm comm, const char *ctxTag, CommEngine engine, void **ctx,
		uint64_t *size);
/* Copies @size bytes of host memory to @dstCtxOffset in the block. */
HcclResult HcclEngineCtxCopy(HcclComm comm, CommEngine engine, const char *ctxTag,
		const void *srcCtx, uint64_t size, uint64_t dstCtxOffset);
/* Frees a block. */
HcclResult HcclEngineCtxDestroy(HcclComm comm, const char *ctxTag, CommEngine engine);

/*
 * Registers a region under a tag, to be listed in channel descriptors. The same tag and region
 * give the same handle, which is good until the memory is freed or unmapped. HCCL_E_PARA: NULL,
 * empty tag, size 0, overlap with another tag's region, memory of a peer.
 */
HcclResult HcclCommMemReg(HcclComm comm, const char *memTag, const CommMem *mem,
		HcclMemHandle *memHandle);

/* As HcclGetHcclBuffer, zeroed when it is made. Since 9.2. */
HcclResult HcclGetHcclBufferCleared(HcclComm comm, void **buffer, uint64_t *size);

/*
 * As HcclThreadAcquire for engines CPU and AICPU; the notify count comes from @config
 * (ThreadConfigInit). Since 9.2.
 */
HcclResult HcclThreadAcquireWithConfig(HcclComm comm, CommEngine engine, uint32_t threadNum,
		ThreadType type, const ThreadConfig *config, ThreadHandle *threads);

/*
 * The thread for one use, the same at each call, with as many notifies as the largest call has
 * asked for; 0 with HCCL_SUCCESS: none is needed. Since 9.2.
 */
HcclResult HcclDedicatedThreadAcquire(HcclComm comm, HcclDedicatedThreadType useType,
		uint32_t notifyNumPerThread, ThreadHandle *thread);

/*
 * Writes the aclrtStream of a thread to *info; @infoLen is sizeof(aclrtStream), else HCCL_E_PARA.
 * Since 9.1.
 */
HcclResult HcclThreadResGetInfo(HcclComm comm, ThreadHandle thread, ThreadResType resType,
		uint32_t infoLen, void **info);

#ifdef __cplusplus
}
#endif
