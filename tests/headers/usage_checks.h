/* SPDX-License-Identifier: Apache-2.0 */
/* What programs do with the headers and must compile without a warning, in C and C++. */
#pragma once

#include "public.h"

/* Constants are array bounds, initialisers of static objects and case labels. */
static char name_buffer[COMM_NAME_MAX_LENGTH];
static char root_buffer[HCCL_ROOT_INFO_BYTES];
static uint8_t eid_buffer[COMM_ADDR_EID_LEN];
static char code_buffer[ACL_ERROR_INVALID_PARAM];
static const uint32_t not_set = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;

static inline int use_case_labels(int code)
{
	switch (code) {
	case ACL_SUCCESS:
		return 0;
	case ACL_ERROR_INVALID_PARAM:
		return 1;
	case ACL_ERROR_RT_STREAM_SYNC_TIMEOUT:
		return 2;
	default:
		return 3;
	}
}

/* Constants mix with uint32_t and int without a sign warning, whether or not they are constant. */
static inline int use_signs(uint32_t number, aclError error, const HcclCommConfig *config)
{
	uint32_t i, sum = 0;

	for (i = 0; i < HCCL_COMM_CONFIG_INFO_BYTES; i++)
		sum += number > HCCL_RES_TAG_MAX_LEN || number == HCCL_COMM_CONFIG_MAGIC_WORD;
	sum += config->hcclExecTimeOut == HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
	sum += config->hcclQos == HCCL_COMM_QOS_CONFIG_NOT_SET;
	sum += HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET > number;
	return (error != ACL_SUCCESS ? error : (aclError)ACL_ERROR_NONE) + (int)sum;
}

static inline HcclResult use_items(void *buf, HcclComm comm, aclrtStream stream)
{
	HcclSendRecvItem items[2] = {
		{HCCL_SEND, buf, 4, HCCL_DATA_TYPE_FP32, 1},
		{HCCL_RECV, buf, 4, HCCL_DATA_TYPE_FP32, 1},
	};

	return HcclBatchSendRecv(items, 2, comm, stream);
}

static inline aclError use_policy(void **memory)
{
	return aclrtMalloc(memory, sizeof(name_buffer) + sizeof(root_buffer) + sizeof(eid_buffer),
			(aclrtMemMallocPolicy)(ACL_MEM_MALLOC_HUGE_FIRST | ACL_MEM_TYPE_HIGH_BAND_WIDTH));
}

static inline int use_securec(char *text, size_t size)
{
	return memset_s(text, size, 0, size) || strcpy_s(text, size, "a") ||
	       memcpy_s(text, size, "b", 2) || sprintf_s(text, size, "%d", 1) < 0 ||
	       snprintf_s(text, size, size - 1, "%u", not_set) < 0 ||
	       memset_s(code_buffer, sizeof(code_buffer), 0, sizeof(code_buffer));
}

static inline void use_descriptors(HcclChannelDesc *desc, HcommChannelDesc *other, CommLink *link)
{
	desc->channelProtocol = COMM_PROTOCOL_UB_MEM;
	desc->roceAttr.queueNum = 1;
	desc->remoteEndpoint.commAddr.addr.s_addr = 0;
	desc->remoteEndpoint.loc.device.devPhyId = 0;
	desc->remoteEndpoint.loc.host.id = 0;
	other->hccsAttr.qos = 1;
	other->exchangeAllMems = true;
	link->linkAttr.linkProtocol = COMM_PROTOCOL_ROCE;
}

#ifdef __cplusplus
static inline HcclResult use_cplusplus(HcclComm comm, void *flags)
{
	CommMem region{COMM_MEM_TYPE_DEVICE, flags, 1 << 20};
	HcclMemHandle handle = nullptr;
	HcclSendRecvItem item{HcclSendRecvType::HCCL_SEND, flags, 1, HcclDataType::HCCL_DATA_TYPE_INT8, 0};
	HcclSendRecvItem empty = HcclSendRecvItem{};
	auto result = ACL_SUCCESS;
	const auto limit = HCCL_RES_TAG_MAX_LEN;

	static_assert(sizeof(limit) == sizeof(uint32_t), "constants keep their type");
	static_assert(HCCL_COMM_CONFIG_MAGIC_WORD > 0, "constants keep their sign");
	result = aclrtFree(nullptr);
	if (result != ACL_SUCCESS || item.count == empty.count || ::HCCL_RES_TAG_MAX_LEN != limit)
		return HcclResult::HCCL_E_RUNTIME;
	return HcclEngineCtxCreate(comm, "tag", CommEngine::COMM_ENGINE_AIV, 1, &flags) == HCCL_SUCCESS ?
		HcclCommMemReg(comm, "tag", &region, &handle) : HCCL_E_PARA;
}
#endif
