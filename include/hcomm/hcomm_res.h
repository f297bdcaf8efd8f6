/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints, their memory and threads, without a communicator. Library libhcomm.so. The caller
 * ends what it creates; any thread; results are values of HcclResult; NULL: HCCL_E_PTR; unknown
 * handle: HCCL_E_NOT_FOUND; sizes in bytes.
 *
 * hccld has HcommThreadAlloc, HcommThreadFree and HcommThreadResGetInfo. The others, on endpoints
 * (HcommEndpoint*, HcommMem*), answer HCCL_E_NOT_SUPPORT: memory of peers is reached by
 * HcclCommMemReg and HcclChannelAcquire of a communicator.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hcomm_channel.h"
#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Opens the endpoint that @endpoint describes. HCCL_E_PARA, HCCL_E_NOT_SUPPORT: location or
 * protocol not served.
 */
HcommResult HcommEndpointCreate(const EndpointDesc *endpoint, EndpointHandle *endpointHandle);

/* Closes an endpoint. */
HcommResult HcommEndpointDestroy(EndpointHandle endpointHandle);
/* Registers a region with an endpoint under a tag. HCCL_E_PARA: size 0. */
HcommResult HcommMemReg(EndpointHandle endpointHandle, const char *memTag, const CommMem *mem,
		HcommMemHandle *memHandle);
/* Withdraws a region. */
HcommResult HcommMemUnreg(EndpointHandle endpointHandle, HcommMemHandle memHandle);
/* Describes a region in bytes to hand to a peer; they belong to the endpoint. */
HcommResult HcommMemExport(EndpointHandle endpointHandle, HcommMemHandle memHandle, void **memDesc,
		uint32_t *memDescLen);
/* Makes a peer's region usable from a description. HCCL_E_PARA: not a description. */
HcommResult HcommMemImport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen,
		CommMem *outMem);
/* Ends the use of a peer's region. */
HcommResult HcommMemUnimport(EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen);

/*
 * Creates @threadNum (1 to 1000) queues in threads[0] and on, with *notifyNumPerThread (at most 64)
 * notifies each: one number for all is read, as by CANN 9.0. HCCL_E_PARA: out of range.
 */
HcommResult HcommThreadAlloc(CommEngine engine, uint32_t threadNum,
		const uint32_t *notifyNumPerThread, ThreadHandle *threads);

/*
 * Ends queues, all or none. HCCL_E_PARA: NULL, none or more than 1000; HCCL_E_NOT_FOUND: unknown,
 * of a communicator, or named twice.
 */
HcommResult HcommThreadFree(const ThreadHandle *threads, uint32_t threadNum);
/* Number of endpoints of a device. HCCL_E_PARA: no such device. Since 9.2. */
HcommResult HcommEndpointGetDescNum(int32_t deviceLogicId, uint32_t *descNum);

/*
 * Endpoints of a device: @endpointDescs has room for *descNum. HCCL_E_PARA: too few;
 * HCCL_E_NOT_FOUND: none. Since 9.2.
 */
HcommResult HcommEndpointGetDescs(int32_t deviceLogicId, uint32_t *descNum,
		EndpointDesc *endpointDescs);

/* Port at which an endpoint listens. Since 9.2. */
HcommResult HcommEndpointGetListenPort(EndpointHandle endpointHandle, uint32_t *port);
/* As HcclThreadResGetInfo. Since 9.2. */
HcommResult HcommThreadResGetInfo(ThreadHandle thread, ThreadResType resType, uint32_t infoLen,
		void **info);
/* Tells whether an endpoint has a feature. Since 9.2. */
HcommResult HcommEndpointCheckFeature(HcommEndpointFeatureType featureType,
		const EndpointDesc *endpointDesc, bool *value);
/* Allocates device memory for symmetric windows. HCCL_E_PARA: NULL or size 0. Since 9.2. */
HcommResult HcommMemAlloc(void **ptr, size_t size);
/* Frees it. Since 9.2. */
HcommResult HcommMemFree(void *ptr);

#ifdef __cplusplus
}
#endif
