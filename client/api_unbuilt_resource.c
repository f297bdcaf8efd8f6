/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libhcomm.so: resources of communicators and endpoints. One line per
 * function, in the order of the headers: it answers "not supported" with a text that names it.
 * Whoever builds one takes its line away.
 */
#include "client/unbuilt.h"
#include "hccl/hccl_res.h"
#include "hcomm/hcomm_res.h"
#include "hcomm/hcomm_channel.h"

/* hcomm/hcomm_res.h */
UNBUILT_HCOMM(HcommEndpointCreate, (const EndpointDesc *endpoint, EndpointHandle *endpointHandle))
UNBUILT_HCOMM(HcommEndpointDestroy, (EndpointHandle endpointHandle))
UNBUILT_HCOMM(HcommMemReg, (EndpointHandle endpointHandle, const char *memTag, const CommMem *mem,
		HcommMemHandle *memHandle))
UNBUILT_HCOMM(HcommMemUnreg, (EndpointHandle endpointHandle, HcommMemHandle memHandle))
UNBUILT_HCOMM(HcommMemExport, (EndpointHandle endpointHandle, HcommMemHandle memHandle,
		void **memDesc, uint32_t *memDescLen))
UNBUILT_HCOMM(HcommMemImport, (EndpointHandle endpointHandle, const void *memDesc, uint32_t descLen,
		CommMem *outMem))
UNBUILT_HCOMM(HcommMemUnimport, (EndpointHandle endpointHandle, const void *memDesc,
		uint32_t descLen))
UNBUILT_HCOMM(HcommEndpointGetDescNum, (int32_t deviceLogicId, uint32_t *descNum))
UNBUILT_HCOMM(HcommEndpointGetDescs, (int32_t deviceLogicId, uint32_t *descNum,
		EndpointDesc *endpointDescs))
UNBUILT_HCOMM(HcommEndpointGetListenPort, (EndpointHandle endpointHandle, uint32_t *port))
UNBUILT_HCOMM(HcommEndpointCheckFeature, (HcommEndpointFeatureType featureType,
		const EndpointDesc *endpointDesc, bool *value))
UNBUILT_HCOMM(HcommMemAlloc, (void **ptr, size_t size))
UNBUILT_HCOMM(HcommMemFree, (void *ptr))

/* hcomm/hcomm_channel.h */
UNBUILT_HCOMM(HcommChannelCreate, (EndpointHandle endpointHandle, CommEngine engine,
		HcommChannelDesc *channelDescs, uint32_t channelNum, ChannelHandle *channels))
UNBUILT_HCOMM(HcommChannelConfigCreate, (HcommChannelConfig *config))
UNBUILT_HCOMM(HcommChannelConfigDestroy, (HcommChannelConfig config))
UNBUILT_HCOMM(HcommChannelConfigSetInt, (HcommChannelConfig config, HcommChannelConfigType type,
		uint32_t value))
UNBUILT_HCOMM(HcommChannelCreateWithConfig, (EndpointHandle endpointHandle, CommEngine engine,
		HcommChannelDesc *channelDescs, uint32_t channelNum, HcommChannelConfig config,
		ChannelHandle *channels))
UNBUILT_HCOMM(HcommChannelGetStatus, (const ChannelHandle *channelList, uint32_t listNum,
		int32_t *statusList))
UNBUILT_HCOMM(HcommChannelDestroy, (const ChannelHandle *channels, uint32_t channelNum))
