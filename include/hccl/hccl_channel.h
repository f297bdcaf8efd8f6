/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels of a communicator: what a pair of ranks needs to reach each other's memory and
 * notifies. Library libhcomm.so; programs for 9.0 get it through hccl_res.h.
 *
 * Channels belong to the communicator. Functions may be called from any thread; NULL gives
 * HCCL_E_PTR. Descriptors are copied.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "../acl/acl.h"
#include "../hcomm/hcomm_res_defs.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
static const uint32_t HCCL_CHANNEL_MAGIC_WORD = 0x0f0f0f0fU;
static const uint32_t HCCL_CHANNEL_VERSION = 1U;
static const uint32_t HCCL_CHANNEL_DESC_RAW_MAX_LEN = 128U;
static const uint32_t HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN = 255U;
#else
#define HCCL_CHANNEL_MAGIC_WORD 0x0f0f0f0fU
#define HCCL_CHANNEL_VERSION 1U
#define HCCL_CHANNEL_DESC_RAW_MAX_LEN 128U
#define HCCL_CHANNEL_CONFIG_SHARED_QUEUE_TAG_MAX_LEN 255U
#endif

/* Memory registered with HcclCommMemReg; owned by the communicator. */
typedef void *HcclMemHandle;
/* Settings object of HcclChannelConfigCreate. Since 9.2. */
typedef void *HcclChannelConfig;

/* All ones in a field: default. */
typedef struct HcclChannelRoceAttr {
	uint32_t queueNum;
	uint32_t retryCnt;
	uint32_t retryInterval;
	uint8_t tc;	/* traffic class */
	uint8_t sl;	/* service level */
} HcclChannelRoceAttr;

typedef struct HcclChannelUbMemAttr {
	uint8_t pathMode;
} HcclChannelUbMemAttr;

/* A wanted channel; start with HcclChannelDescInit. */
typedef struct HcclChannelDesc {
	CommAbiHeader header;
	uint32_t remoteRank;
	CommProtocol channelProtocol;
	EndpointDesc localEndpoint;	/* all ones: the library chooses */
	EndpointDesc remoteEndpoint;
	uint32_t notifyNum;		/* notifies that the peer can signal */
	HcclMemHandle *memHandles;	/* memory to show to the peer, memHandleNum elements */
	uint32_t memHandleNum;		/* at most 256 */
	union {
		uint8_t raws[HCCL_CHANNEL_DESC_RAW_MAX_LEN];
		HcclChannelRoceAttr roceAttr;
		HcclChannelUbMemAttr ubMemAttr;
	};
} HcclChannelDesc;

/* Since 9.2. */
typedef enum HcclChannelConfigType {
	HCCL_CHANNEL_CONFIG_TYPE_INVALID = -1,
	HCCL_CHANNEL_CONFIG_TYPE_IS_SHARED_QUEUE = 0,
	HCCL_CHANNEL_CONFIG_TYPE_SHARED_QUEUE_TAG = 1,
} HcclChannelConfigType;

/*
 * Creates a channel for each of @channelNum descriptors, or finds the one with the same engine,
 * peer and protocol; both ends must call it. Blocks until all are up. @channels has channelNum
 * elements. One that is there keeps the notifies and the memory it has, whatever the descriptor asks for.
 * HCCL_E_PARA: channelNum 0 or above 1048576, bad magic word, own or unknown rank, protocol not
 * usable; HCCL_E_NOT_FOUND: unknown memory handle; HCCL_E_TIMEOUT: a peer did not come.
 */
HcclResult HcclChannelAcquire(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs,
		uint32_t channelNum, ChannelHandle *channels);

/* Creates a settings object that the caller ends with HcclChannelConfigDestroy. Since 9.2. */
HcclResult HcclChannelConfigCreate(HcclChannelConfig *config);
/* Frees a settings object. Since 9.2. */
HcclResult HcclChannelConfigDestroy(HcclChannelConfig config);
/* Sets a number. HCCL_E_PARA: type or value. Since 9.2. */
HcclResult HcclChannelConfigSetInt(HcclChannelConfig config, HcclChannelConfigType type,
		uint32_t value);
/* Sets a text, which is copied. HCCL_E_PARA: type or length. Since 9.2. */
HcclResult HcclChannelConfigSetStr(HcclChannelConfig config, HcclChannelConfigType type,
		const char *value);
/* As HcclChannelAcquire with settings; NULL @config: none. Since 9.2. */
HcclResult HcclChannelAcquireWithConfig(HcclComm comm, CommEngine engine,
		const HcclChannelDesc *channelDescs, uint32_t channelNum, HcclChannelConfig config,
		ChannelHandle *channels);
/* Writes the existing channel, or 0, for each descriptor. Since 9.2. */
HcclResult HcclChannelQuery(HcclComm comm, CommEngine engine, const HcclChannelDesc *channelDescs,
		uint32_t channelNum, ChannelHandle *channels);

/*
 * Ends channels; goes on after an error and returns the first. HCCL_E_NOT_FOUND: unknown. Since
 * 9.2.
 */
HcclResult HcclChannelDestroy(HcclComm comm, const ChannelHandle *channels, uint32_t channelNum);

/*
 * Address and size in bytes of the peer's staging buffer, for use with this channel. Protocols UB_MEM, HCCS, PCIE, SIO: for load and
 * store; others: for tasks.
 */
HcclResult HcclChannelGetHcclBuffer(HcclComm comm, ChannelHandle channel, void **buffer,
		uint64_t *size);

/*
 * Lists what the peer named in its memHandles: *memNum regions with their tags. The arrays belong
 * to the channel. *memNum is an output only.
 */
HcclResult HcclChannelGetRemoteMems(HcclComm comm, ChannelHandle channel, uint32_t *memNum,
		CommMem **remoteMems, char ***memTags);

/*
 * Fills @descNum descriptors with "not set" (all ones; no notifies, no memory). HCCL_E_PTR: NULL.
 * Works without the library.
 */
static inline HcclResult HcclChannelDescInit(HcclChannelDesc *channelDesc, uint32_t descNum)
{
	uint32_t i;

	if (!channelDesc)
		return HCCL_E_PTR;
	for (i = 0; i < descNum; i++) {
		memset(&channelDesc[i], 0xff, sizeof(channelDesc[i]));
		channelDesc[i].header.version = HCCL_CHANNEL_VERSION;
		channelDesc[i].header.magicWord = HCCL_CHANNEL_MAGIC_WORD;
		channelDesc[i].header.size = sizeof(channelDesc[i]);
		channelDesc[i].header.reserved = 0;
		channelDesc[i].notifyNum = 0;
		channelDesc[i].memHandles = NULL;
		channelDesc[i].memHandleNum = 0;
	}
	return HCCL_SUCCESS;
}

#ifdef __cplusplus
}
#endif
