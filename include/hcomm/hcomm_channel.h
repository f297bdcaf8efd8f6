/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of an endpoint, without a communicator. Library libhcomm.so; programs for 9.0 get it
 * through hcomm_res.h. The caller ends what it creates; any thread; results are values of
 * HcclResult; NULL: HCCL_E_PTR; unknown handle: HCCL_E_NOT_FOUND.
 *
 * hccld has none of these so far, they answer HCCL_E_NOT_SUPPORT: channels are those of communicators
 * (HcclChannelAcquire).
 */
#pragma once

#include <stdint.h>

#include "hcomm_res_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings object of HcommChannelConfigCreate. Since 9.2. */
typedef void *HcommChannelConfig;

/* Since 9.2. */
typedef enum HcommChannelConfigType {
	HCOMM_CHANNEL_CONFIG_TYPE_INVALID = -1,
	HCOMM_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE = 0,
} HcommChannelConfigType;

/*
 * Begins to connect @channelNum channels and returns; HcommChannelGetStatus tells when they are
 * up. Descriptors need role, socket or port, and remoteEndpoint. @channels has channelNum
 * elements.
 */
HcommResult HcommChannelCreate(EndpointHandle endpointHandle, CommEngine engine,
		HcommChannelDesc *channelDescs, uint32_t channelNum, ChannelHandle *channels);

/* Creates a settings object. Since 9.2. */
HcommResult HcommChannelConfigCreate(HcommChannelConfig *config);
/* Frees a settings object. Since 9.2. */
HcommResult HcommChannelConfigDestroy(HcommChannelConfig config);
/* Sets a number. HCCL_E_PARA: type or value. Since 9.2. */
HcommResult HcommChannelConfigSetInt(HcommChannelConfig config, HcommChannelConfigType type,
		uint32_t value);
/* As HcommChannelCreate with settings; NULL @config: none. Since 9.2. */
HcommResult HcommChannelCreateWithConfig(EndpointHandle endpointHandle, CommEngine engine,
		HcommChannelDesc *channelDescs, uint32_t channelNum, HcommChannelConfig config,
		ChannelHandle *channels);

/*
 * Writes the state of @listNum channels; HCCL_E_AGAIN until all are ready, HCCL_E_NETWORK after a
 * failure, HCCL_E_TIMEOUT.
 */
HcommResult HcommChannelGetStatus(const ChannelHandle *channelList, uint32_t listNum,
		int32_t *statusList);

/* Ends @channelNum channels. */
HcommResult HcommChannelDestroy(const ChannelHandle *channels, uint32_t channelNum);

#ifdef __cplusplus
}
#endif
