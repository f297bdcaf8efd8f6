/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types that channels, endpoints and threads share, with their initialisers. Layouts are those of
 * CANN 9.0, with the enumerators and types that 9.1 and 9.2 added. No function of the library is
 * declared here; the initialisers work without it.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../hccl/hccl_types.h"
#include "../securec.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
static const uint32_t COMM_ADDR_EID_LEN = 16U;
static const uint32_t HCOMM_CHANNEL_MAGIC_WORD = 0x0fcf0f0fU;
static const uint32_t HCOMM_CHANNEL_VERSION_ONE = 1U;
static const uint32_t HCOMM_CHANNEL_VERSION = 1U;
static const uint32_t HCOMM_CHANNEL_NAME_MAX_LEN = 191U;
static const uint32_t HCOMM_CHANNEL_DESC_RAW_MAX_LEN = 128U;
static const uint32_t HCOMM_THREAD_CONFIG_MAGIC_WORD = 0x0f0f0f2fU;
static const uint32_t HCOMM_THREAD_CONFIG_VERSION = 1U;
#else
#define COMM_ADDR_EID_LEN 16U
#define HCOMM_CHANNEL_MAGIC_WORD 0x0fcf0f0fU
#define HCOMM_CHANNEL_VERSION_ONE 1U
#define HCOMM_CHANNEL_VERSION 1U
#define HCOMM_CHANNEL_NAME_MAX_LEN 191U
#define HCOMM_CHANNEL_DESC_RAW_MAX_LEN 128U
#define HCOMM_THREAD_CONFIG_MAGIC_WORD 0x0f0f0f2fU
#define HCOMM_THREAD_CONFIG_VERSION 1U
#endif

/* Result of the Hcomm functions: the values of HcclResult. */
typedef int32_t HcommResult;

/* Opaque handles; 0 or NULL is never valid. */
typedef uint64_t ChannelHandle;
typedef uint64_t ThreadHandle;
typedef void *EndpointHandle;
typedef void *HcommMemHandle;
typedef void *HcommSocket;

/* Who executes the work of a thread or channel. */
typedef enum CommEngine {
	COMM_ENGINE_RESERVED = -1,
	COMM_ENGINE_CPU = 0,
	COMM_ENGINE_CPU_TS = 1,
	COMM_ENGINE_AICPU = 2,
	COMM_ENGINE_AICPU_TS = 3,
	COMM_ENGINE_AIV = 4,
	COMM_ENGINE_CCU = 5,
} CommEngine;

/* COMM_PROTOCOL_UBC_CTP and COMM_PROTOCOL_UBG are second names of a value. */
typedef enum CommProtocol {
	COMM_PROTOCOL_RESERVED = -1,
	COMM_PROTOCOL_HCCS = 0,
	COMM_PROTOCOL_ROCE = 1,
	COMM_PROTOCOL_PCIE = 2,
	COMM_PROTOCOL_SIO = 3,
	COMM_PROTOCOL_UB_CTP = 4,
	COMM_PROTOCOL_UBC_CTP = 4,
	COMM_PROTOCOL_UBC_TP = 5,
	COMM_PROTOCOL_UB_MEM = 6,
	COMM_PROTOCOL_UBOE = 7,
	COMM_PROTOCOL_HCCS_ONLY = 8,
	COMM_PROTOCOL_UB_RTP = 9,
	COMM_PROTOCOL_UBG = 9,
} CommProtocol;

typedef enum CommAddrType {
	COMM_ADDR_TYPE_RESERVED = -1,
	COMM_ADDR_TYPE_IP_V4 = 0,
	COMM_ADDR_TYPE_IP_V6 = 1,
	COMM_ADDR_TYPE_ID = 2,
	COMM_ADDR_TYPE_EID = 3,
} CommAddrType;

typedef struct CommAddr {
	CommAddrType type;
	union {
		uint8_t raws[36];
		struct in_addr addr;
		struct in6_addr addr6;
		uint32_t id;
		uint8_t eid[COMM_ADDR_EID_LEN];
	};
} CommAddr;

typedef enum EndpointLocType {
	ENDPOINT_LOC_TYPE_RESERVED = -1,
	ENDPOINT_LOC_TYPE_DEVICE = 0,
	ENDPOINT_LOC_TYPE_HOST = 1,
} EndpointLocType;

typedef struct EndpointLocDevice {
	uint32_t devPhyId;
	uint32_t superDevId;
	uint32_t serverIdx;
	uint32_t superPodIdx;
} EndpointLocDevice;

typedef struct EndpointLocHost {
	uint32_t id;
} EndpointLocHost;

typedef struct EndpointLoc {
	EndpointLocType locType;
	union {
		uint8_t raws[60];
		EndpointLocDevice device;
		EndpointLocHost host;
	};
} EndpointLoc;

/* A place that data can be sent from or to; start with EndpointDescInit. */
typedef struct EndpointDesc {
	CommProtocol protocol;
	CommAddr commAddr;
	EndpointLoc loc;
	union {
		uint8_t raws[52];
	};
} EndpointDesc;

typedef enum CommMemType {
	COMM_MEM_TYPE_INVALID = -1,
	COMM_MEM_TYPE_DEVICE = 0,
	COMM_MEM_TYPE_HOST = 1,
} CommMemType;

/* A region of memory; size in bytes. */
typedef struct CommMem {
	CommMemType type;
	void *addr;
	uint64_t size;
} CommMem;

/* Start of every struct that may grow: the library reads as many bytes as size says. */
typedef struct CommAbiHeader {
	uint32_t version;
	uint32_t magicWord;
	uint32_t size;		/* bytes of the whole struct */
	uint32_t reserved;	/* 0 */
} CommAbiHeader;

typedef enum HcommSocketRole {
	HCOMM_SOCKET_ROLE_RESERVED = -1,
	HCOMM_SOCKET_ROLE_CLIENT = 0,
	HCOMM_SOCKET_ROLE_SERVER = 1,
} HcommSocketRole;

/* All ones in a field: default. */
typedef struct HcommChannelRoceAttr {
	uint32_t queueNum;
	uint32_t retryCnt;
	uint32_t retryInterval;
	uint8_t tc;	/* traffic class */
	uint8_t sl;	/* service level */
} HcommChannelRoceAttr;

typedef struct HcommChannelHccsAttr {
	uint32_t qos;
} HcommChannelHccsAttr;

/* A wanted channel of an endpoint; start with HcommChannelDescInit. */
typedef struct HcommChannelDesc {
	CommAbiHeader header;
	EndpointDesc remoteEndpoint;
	uint32_t notifyNum;		/* notifies that the peer can signal */
	bool exchangeAllMems;		/* show all memory of the endpoint to the peer */
	HcommMemHandle *memHandles;	/* memory to show to the peer, memHandleNum elements */
	uint32_t memHandleNum;
	HcommSocket socket;
	HcommSocketRole role;
	uint16_t port;
	union {
		uint8_t raws[HCOMM_CHANNEL_DESC_RAW_MAX_LEN];
		HcommChannelRoceAttr roceAttr;
		HcommChannelHccsAttr hccsAttr;
	};
} HcommChannelDesc;

/* Size of the first version, which later ones extend. */
#define HCOMM_CHANNEL_DESC_ABI_V1_SIZE (sizeof(HcommChannelDesc))

/* Since 9.2. */
typedef enum HcommEndpointFeatureType {
	HCOMM_ENDPOINT_FEATURE_INVALID = -1,
	HCOMM_ENDPOINT_FEATURE_NDA = 0,
} HcommEndpointFeatureType;

/* Since 9.1. */
typedef enum ThreadResType {
	THREAD_RES_TYPE_INVALID = -1,
	THREAD_RES_TYPE_STREAM = 0,
} ThreadResType;

/* Since 9.2. */
typedef enum ThreadType {
	THREAD_TYPE_INVALID = -1,
	THREAD_TYPE_TS = 0,
} ThreadType;

/* Since 9.2; start with ThreadConfigInit. */
typedef struct ThreadConfig {
	CommAbiHeader header;
	uint16_t notifyNumPerThread;
	uint8_t reserved[14];
} ThreadConfig;

/* Fills @num endpoints with "not set" (all ones). HCCL_E_PTR: NULL. */
static inline HcommResult EndpointDescInit(EndpointDesc *endpoint, uint32_t num)
{
	uint32_t i;

	if (!endpoint)
		return HCCL_E_PTR;
	for (i = 0; i < num; i++)
		memset(&endpoint[i], 0xff, sizeof(endpoint[i]));
	return HCCL_SUCCESS;
}

/* Fills @descNum descriptors with "not set"; no notifies, memory or socket. HCCL_E_PTR: NULL. */
static inline HcommResult HcommChannelDescInit(HcommChannelDesc *channelDesc, uint32_t descNum)
{
	uint32_t i;

	if (!channelDesc)
		return HCCL_E_PTR;
	for (i = 0; i < descNum; i++) {
		memset(&channelDesc[i], 0xff, sizeof(channelDesc[i]));
		channelDesc[i].header.version = HCOMM_CHANNEL_VERSION;
		channelDesc[i].header.magicWord = HCOMM_CHANNEL_MAGIC_WORD;
		channelDesc[i].header.size = sizeof(channelDesc[i]);
		channelDesc[i].header.reserved = 0;
		channelDesc[i].notifyNum = 0;
		channelDesc[i].exchangeAllMems = false;
		channelDesc[i].memHandles = NULL;
		channelDesc[i].memHandleNum = 0;
		channelDesc[i].socket = NULL;
		channelDesc[i].role = HCOMM_SOCKET_ROLE_RESERVED;
		channelDesc[i].port = 0;
	}
	return HCCL_SUCCESS;
}

/* Fills @num settings with 0. HCCL_E_PTR: NULL. Since 9.2. */
static inline HcommResult ThreadConfigInit(ThreadConfig *config, uint32_t num)
{
	uint32_t i;

	if (!config)
		return HCCL_E_PTR;
	for (i = 0; i < num; i++) {
		memset(&config[i], 0, sizeof(config[i]));
		config[i].header.version = HCOMM_THREAD_CONFIG_VERSION;
		config[i].header.magicWord = HCOMM_THREAD_CONFIG_MAGIC_WORD;
		config[i].header.size = sizeof(config[i]);
	}
	return HCCL_SUCCESS;
}

#ifdef __cplusplus
}
#endif
