/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators: creation, queries, destruction, error state. Library libhccl.so (libhcomm.so).
 *
 * For every function here: it may be called from any thread. Outputs are written only on success.
 * Strings and structs passed in are copied. NULL where a pointer is needed gives HCCL_E_PTR, a
 * handle that is no communicator HCCL_E_PARA. After a fork() the child has no session and gets
 * HCCL_E_UNAVAIL. aclGetRecentErrMsg gives the text of an error to the thread that got it.
 *
 * Functions marked HCOMM_WEAK_SYMBOL are weak references, as in CANN: a program links without the
 * library and finds a NULL pointer. The library itself defines every one strongly.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../acl/acl.h"
#include "hccl_types.h"

#ifndef HCOMM_WEAK_SYMBOL
#define HCOMM_WEAK_SYMBOL __attribute__((weak))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Called before and after a communicator is destroyed or resumed. Since 9.2. */
typedef HcclResult (*HcclCommStateCallback)(HcclComm comm, HcclCommStatePhase state, void *args);

/* Since 9.2. */
typedef enum HcclOpExpansionMode {
	HCCL_OP_EXPANSION_MODE_INVALID = -1,
	HCCL_OP_EXPANSION_MODE_AI_CPU = 0,
	HCCL_OP_EXPANSION_MODE_AIV = 1,
	HCCL_OP_EXPANSION_MODE_HOST = 2,
	HCCL_OP_EXPANSION_MODE_HOST_TS = 3,
	HCCL_OP_EXPANSION_MODE_CCU_MS = 4,
	HCCL_OP_EXPANSION_MODE_CCU_SCHED = 5,
	HCCL_OP_EXPANSION_AIV_ONLY = 6,
} HcclOpExpansionMode;

typedef HcclOpExpansionMode HcclConfigTypeOpExpansionMode;

/* What HcclConfigGetInfo reports. Since 9.1. */
typedef enum HcclConfigType {
	HCCL_CONFIG_TYPE_INVALID = -1,
	HCCL_CONFIG_TYPE_OP_EXPANSION_MODE = 0,	/* HcclOpExpansionMode, 4 bytes */
	HCCL_CONFIG_TYPE_HCCL_ALGO = 1,	/* text, at least HCCL_COMM_ALGO_MAX_LENGTH bytes */
} HcclConfigType;

/*
 * Joins the communicator that a rank table describes; blocks until all ranks have joined.
 * @clusterInfo: path of the rank table, at most 4096 bytes. @rank: own rank in it. @comm: on
 * success a communicator that the caller ends with HcclCommDestroy.
 * HCCL_E_PARA, HCCL_E_INTERNAL: the table is unreadable or invalid; HCCL_E_UNAVAIL: the device
 * has such a communicator in this process already; HCCL_E_TIMEOUT: a rank is missing.
 */
HcclResult HcclCommInitClusterInfo(const char *clusterInfo, uint32_t rank,
		HcclComm *comm) HCOMM_WEAK_SYMBOL;

/* As HcclCommInitClusterInfo, with settings from HcclCommConfigInit; bad ones give HCCL_E_PARA. */
HcclResult HcclCommInitClusterInfoConfig(const char *clusterInfo, uint32_t rank,
		HcclCommConfig *config, HcclComm *comm) HCOMM_WEAK_SYMBOL;

/*
 * Creates a communicator from some ranks of *comm; collective over these ranks, blocks until all
 * have called it.
 * @rankNum, @rankIds: the members as ranks of *comm, the same list everywhere. @subCommId:
 * distinguishes communicators with equal members. @subCommRankId: own place in the list.
 * @subComm: on success a communicator that the caller destroys.
 * A rank outside passes rankIds NULL and subCommId 0xFFFFFFFF and gets HCCL_SUCCESS without a
 * communicator. HCCL_E_PARA: only one of these two, rankNum 0, a rank twice or not in *comm.
 */
HcclResult HcclCreateSubCommConfig(HcclComm *comm, uint32_t rankNum, uint32_t *rankIds,
		uint64_t subCommId, uint32_t subCommRankId, HcclCommConfig *config,
		HcclComm *subComm) HCOMM_WEAK_SYMBOL;

/*
 * Starts the creation of a communicator; one rank calls it and hands *rootInfo to all ranks by
 * other means.
 * HCCL_E_UNAVAIL: no daemon, or no resources for another communicator; HCCL_E_PARA: an
 * environment variable has a bad value.
 */
HcclResult HcclGetRootInfo(HcclRootInfo *rootInfo) HCOMM_WEAK_SYMBOL;

/*
 * Joins the communicator of @rootInfo as @rank (0 to nRanks - 1) on the current device of the
 * calling thread; blocks until all @nRanks ranks have joined.
 * @comm: on success a communicator that the caller ends with HcclCommDestroy.
 * HCCL_E_PARA: nRanks 0, rank out of range or taken, ranks that disagree about nRanks;
 * HCCL_E_TIMEOUT: ranks are missing after HCCL_CONNECT_TIMEOUT, the text says which.
 */
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
		HcclComm *comm) HCOMM_WEAK_SYMBOL;

/*
 * As HcclCommInitRootInfo, with settings from HcclCommConfigInit; a bad setting, or a size or
 * magic word that HcclCommConfigInit did not write, gives HCCL_E_PARA.
 */
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo *rootInfo, uint32_t rank,
		const HcclCommConfig *config, HcclComm *comm) HCOMM_WEAK_SYMBOL;

/*
 * Sets a process-wide default for communicators that are created later. HCCL_E_PARA: value not
 * allowed.
 */
HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) HCOMM_WEAK_SYMBOL;

/* Reads what HcclSetConfig has set. */
HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue *configValue) HCOMM_WEAK_SYMBOL;
/* Copies the NUL-terminated name; @commName has room for COMM_NAME_MAX_LENGTH bytes. */
HcclResult HcclGetCommName(HcclComm comm, char *commName) HCOMM_WEAK_SYMBOL;
/* Finds a communicator of this process by its name. HCCL_E_PARA: there is none. */
HcclResult HcclCommGetHandleWithName(const char *commName, HcclComm *comm);
/* Number of ranks. */
HcclResult HcclGetRankSize(HcclComm comm, uint32_t *rankSize) HCOMM_WEAK_SYMBOL;
/* Own rank. */
HcclResult HcclGetRankId(HcclComm comm, uint32_t *rank) HCOMM_WEAK_SYMBOL;
/* Queues a barrier: @stream goes on when every rank's stream has reached its own. */
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream) HCOMM_WEAK_SYMBOL;

/*
 * Ends the own part of a communicator and frees what belongs to it. Wakes a thread that waits in
 * an operation of it. NULL: HCCL_SUCCESS; HCCL_E_AGAIN: work is still queued.
 */
HcclResult HcclCommDestroy(HcclComm comm) HCOMM_WEAK_SYMBOL;

/*
 * Creates one communicator over @ndev devices, all ranks in this process: comms[i] is rank i on
 * devices[i]. Both arrays have @ndev elements. HCCL_E_PARA: ndev 0, a device twice.
 */
HcclResult HcclCommInitAll(uint32_t ndev, int32_t *devices, HcclComm *comms) HCOMM_WEAK_SYMBOL;

/*
 * Reports the first error of queued operations in *asyncError: HCCL_SUCCESS, HCCL_E_REMOTE (a
 * peer died or failed), HCCL_E_SUSPENDING, or what the operation failed with. HCCL_E_REMOTE also
 * when a rank's process ended without HcclCommDestroy, or a call failed for a channel whose other
 * end has gone, before anything queued failed: aclGetRecentErrMsg names the rank that died.
 * HcclCommResume forgets errors, and ranks that were dead when it was called.
 */
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult *asyncError) HCOMM_WEAK_SYMBOL;

/* Name of a result code; a static string, never NULL. */
const char *HcclGetErrorString(HcclResult code) HCOMM_WEAK_SYMBOL;
/* Number of settings that the library knows, to compare with HcclCommConfigCapability. */
uint32_t HcclGetCommConfigCapability(void) HCOMM_WEAK_SYMBOL;
/* Lets queued and later operations of @comm fail with HCCL_E_SUSPENDING. */
HcclResult HcclCommSuspend(HcclComm comm) HCOMM_WEAK_SYMBOL;
/* Clears what HcclCommSuspend left and lets the communicator work again. */
HcclResult HcclCommResume(HcclComm comm) HCOMM_WEAK_SYMBOL;

/*
 * Declares [baseVirPtr, baseVirPtr + size), reserved by aclrtReserveMemAddress, for zero-copy;
 * collective over the ranks of this node. @size, @alignment: bytes. @flags: 0. HCCL_E_PARA:
 * overlaps another range.
 */
HcclResult HcclCommSetMemoryRange(HcclComm comm, void *baseVirPtr, size_t size, size_t alignment,
		uint64_t flags) HCOMM_WEAK_SYMBOL;

/* Withdraws a range. HCCL_E_PARA: not declared. */
HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void *baseVirPtr) HCOMM_WEAK_SYMBOL;

/*
 * Makes the mapped piece [virPtr, virPtr + size) of a declared range usable without staging.
 * @size, @offset: bytes; @handle: its physical memory. HCCL_E_PARA: outside a range or active
 * already.
 */
HcclResult HcclCommActivateCommMemory(HcclComm comm, void *virPtr, size_t size, size_t offset,
		aclrtDrvMemHandle handle, uint64_t flags) HCOMM_WEAK_SYMBOL;

/* Ends what HcclCommActivateCommMemory began, by the same @virPtr. */
HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void *virPtr) HCOMM_WEAK_SYMBOL;
/* Switches the @nRanks listed ranks to their backup (useBackup[i] true) or main NIC. */
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t *ranks, bool *useBackup,
		uint32_t nRanks) HCOMM_WEAK_SYMBOL;

/*
 * Opens a group on the calling thread; groups nest. Operations inside are launched by the
 * outermost HcclGroupEnd.
 */
HcclResult HcclGroupStart(void);

/* Closes a group and launches it at the outermost level. HCCL_E_NOT_SUPPORT: no group is open. */
HcclResult HcclGroupEnd(void);

/*
 * Registers [addr, addr + size) as this rank's part of a symmetric window; collective over all
 * ranks. @size: bytes. @flag: 1. The window lives until HcclCommSymWinDeregister.
 */
HcclResult HcclCommSymWinRegister(HcclComm comm, void *addr, uint64_t size,
		HcclCommSymWindow *winHandle, uint32_t flag);

/* Ends a window. HCCL_E_PARA: unknown. */
HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle);

/*
 * Finds the window that holds [ptr, ptr + size) and the @offset of @ptr in it, in bytes.
 * HCCL_E_NOT_FOUND: there is none.
 */
HcclResult HcclCommSymWinGet(HcclComm comm, void *ptr, size_t size, HcclCommSymWindow *winHandle,
		size_t *offset);

/* Registers a callback of this process under a name. Since 9.2. */
HcclResult HcclCommRegCommStateCallback(const char *regName, HcclCommStateCallback cb, void *args);
/* State of the communicator with this name. Since 9.1. */
HcclResult HcclCommGetStatus(const char *commId, HcclCommStatus *status);
/* Tells whether the calling thread has a group open. Since 9.2. */
HcclResult HcclGroupStatusGet(bool *isGroupEnabled);

/*
 * Copies a setting of @comm to @info, which has @infoLen bytes. HCCL_E_PARA: wrong infoLen. Since
 * 9.1.
 */
HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType cfgType, uint32_t infoLen, void *info);

/*
 * Fills *config with "not set" and with the size and version of this header; to be called before
 * any field is written. NULL is ignored. Works without the library.
 */
static inline void HcclCommConfigInit(HcclCommConfig *config)
{
	const size_t size = sizeof(*config);
	const uint32_t magic_word = HCCL_COMM_CONFIG_MAGIC_WORD;
	const uint32_t version = HCCL_COMM_CONFIG_VERSION;

	if (!config)
		return;
	memset(config, 0, size);
	memcpy(config->reserved, &size, sizeof(size));
	memcpy(config->reserved + 8, &magic_word, sizeof(magic_word));
	memcpy(config->reserved + 12, &version, sizeof(version));
	config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
	config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
	config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
	config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
	config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
	config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
	config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
	config->hcclSymWinMaxMemSizePerRank = HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE;
}

#ifdef __cplusplus
}
#endif
