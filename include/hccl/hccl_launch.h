/* SPDX-License-Identifier: Apache-2.0 */
/* Launch of AICPU kernels by own operators. Since 9.2. Library libhcomm.so. */
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
static const uint32_t P2P_MAX_ARG_SIZE = 8192U;
static const uint32_t HCCL_OP_DESC_OP_NAME_MAX_LEN = 256U;
static const uint32_t HCCL_OPDESC_MAGIC_WORD = 0x0f0f0f0fU;
static const uint32_t HCCL_OPDESC_VERSION = 1U;
static const uint32_t HCCL_KERNEL_SO_NAME_MAX_LEN = 256U;
static const uint32_t HCCL_KERNEL_FUNC_NAME_MAX_LEN = 256U;
static const uint32_t HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD = 0x0f0f0f0fU;
static const uint32_t HCCL_KERNEL_LAUNCH_CFG_VERSION = 1U;
#else
#define P2P_MAX_ARG_SIZE 8192U
#define HCCL_OP_DESC_OP_NAME_MAX_LEN 256U
#define HCCL_OPDESC_MAGIC_WORD 0x0f0f0f0fU
#define HCCL_OPDESC_VERSION 1U
#define HCCL_KERNEL_SO_NAME_MAX_LEN 256U
#define HCCL_KERNEL_FUNC_NAME_MAX_LEN 256U
#define HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD 0x0f0f0f0fU
#define HCCL_KERNEL_LAUNCH_CFG_VERSION 1U
#endif

/* What a send/receive kernel gets. */
typedef struct HcclP2pKernelParam {
	ThreadHandle sendRecvThread;
	uint8_t opParams[P2P_MAX_ARG_SIZE];
} HcclP2pKernelParam;

typedef struct HcclOpP2pDesc {
	void *buffer;
	uint8_t reserved[8];
	HcclCMDType cmdType;
	HcclDataType dataType;
	uint64_t count;		/* elements of dataType */
	uint32_t remoteRank;
	void *unfoldStream;
} HcclOpP2pDesc;

/* The operator; start with HcclOpDescInit. */
typedef struct HcclOpDesc {
	CommAbiHeader header;
	uint32_t opDescType;
	char opName[HCCL_OP_DESC_OP_NAME_MAX_LEN];
	union {
		uint8_t raws[76];
		HcclOpP2pDesc p2p;
	};
} HcclOpDesc;

typedef struct HcclKernelFuncInfo {
	char kernelSoName[HCCL_KERNEL_SO_NAME_MAX_LEN];
	char kernelFuncName[HCCL_KERNEL_FUNC_NAME_MAX_LEN];
	void *args;		/* argSize bytes, copied by the launch */
	uint32_t argSize;
} HcclKernelFuncInfo;

/* Start with HcclKernelLaunchCfgInit. */
typedef struct HcclKernelLaunchCfg {
	CommAbiHeader header;
	uint64_t timeOut;
	uint8_t reserved[104];
} HcclKernelLaunchCfg;

/*
 * Launches a kernel of a send or receive operator on @aicpuThreadHandle, in the order of
 * @userStream. All structs are copied. HCCL_E_PTR: NULL.
 */
HcclResult HcclAicpuKernelLaunch(HcclComm comm, const HcclOpDesc *opInfo,
		const HcclKernelFuncInfo *funcInfo, ThreadHandle aicpuThreadHandle,
		aclrtStream userStream, const HcclKernelLaunchCfg *kernelLaunchCfg);

/* Fills *opDesc with "not set" (all ones). HCCL_E_PTR: NULL. Works without the library. */
static inline HcclResult HcclOpDescInit(HcclOpDesc *opDesc)
{
	if (!opDesc)
		return HCCL_E_PTR;
	memset(opDesc, 0xff, sizeof(*opDesc));
	opDesc->header.version = HCCL_OPDESC_VERSION;
	opDesc->header.magicWord = HCCL_OPDESC_MAGIC_WORD;
	opDesc->header.size = sizeof(*opDesc);
	opDesc->header.reserved = 0;
	return HCCL_SUCCESS;
}

/* Fills *kernelLaunchCfg with "not set" (all ones). HCCL_E_PTR: NULL. Works without the library. */
static inline HcclResult HcclKernelLaunchCfgInit(HcclKernelLaunchCfg *kernelLaunchCfg)
{
	if (!kernelLaunchCfg)
		return HCCL_E_PTR;
	memset(kernelLaunchCfg, 0xff, sizeof(*kernelLaunchCfg));
	kernelLaunchCfg->header.version = HCCL_KERNEL_LAUNCH_CFG_VERSION;
	kernelLaunchCfg->header.magicWord = HCCL_KERNEL_LAUNCH_CFG_MAGIC_WORD;
	kernelLaunchCfg->header.size = sizeof(*kernelLaunchCfg);
	kernelLaunchCfg->header.reserved = 0;
	return HCCL_SUCCESS;
}

#ifdef __cplusplus
}
#endif
