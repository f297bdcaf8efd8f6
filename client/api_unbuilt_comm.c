/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libhcomm.so: communicators, teams, kernels of own operators. One line per
 * function, in the order of the headers: it answers "not supported" with a text that names it.
 * Whoever builds one takes its line away.
 */
#include "client/unbuilt.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_sym_win.h"
#include "hccl/hccl_launch.h"
#include "hccl/hccl_team.h"
#include "hccl/hccl_ccu_res.h"

/* hccl/hccl_comm.h */
UNBUILT_HCCL(HcclCommSetMemoryRange, (HcclComm comm, void *baseVirPtr, size_t size,
		size_t alignment, uint64_t flags))
UNBUILT_HCCL(HcclCommUnsetMemoryRange, (HcclComm comm, void *baseVirPtr))
UNBUILT_HCCL(HcclCommActivateCommMemory, (HcclComm comm, void *virPtr, size_t size, size_t offset,
		aclrtDrvMemHandle handle, uint64_t flags))
UNBUILT_HCCL(HcclCommDeactivateCommMemory, (HcclComm comm, void *virPtr))
UNBUILT_HCCL(HcclCommWorkingDevNicSet, (HcclComm comm, uint32_t *ranks, bool *useBackup,
		uint32_t nRanks))
UNBUILT_HCCL(HcclCommSymWinRegister, (HcclComm comm, void *addr, uint64_t size,
		HcclCommSymWindow *winHandle, uint32_t flag))
UNBUILT_HCCL(HcclCommSymWinDeregister, (HcclCommSymWindow winHandle))
UNBUILT_HCCL(HcclCommSymWinGet, (HcclComm comm, void *ptr, size_t size,
		HcclCommSymWindow *winHandle, size_t *offset))
UNBUILT_HCCL(HcclCommRegCommStateCallback, (const char *regName, HcclCommStateCallback cb,
		void *args))

/* hccl/hccl_sym_win.h */
UNBUILT_HCCL(HcclSymWinGetPeerPointer, (HcclCommSymWindow winHandle, size_t offset,
		uint32_t peerRank, void **ptr))

/* hccl/hccl_launch.h */
UNBUILT_HCCL(HcclAicpuKernelLaunch, (HcclComm comm, const HcclOpDesc *opInfo,
		const HcclKernelFuncInfo *funcInfo, ThreadHandle aicpuThreadHandle,
		aclrtStream userStream, const HcclKernelLaunchCfg *kernelLaunchCfg))

/* hccl/hccl_team.h */
UNBUILT_HCCL(HcclWorldTeamCreate, (HcclComm comm, const HcclTeamCreateDesc *desc,
		HcommTeamHandle *worldTeam))
UNBUILT_HCCL(HcclSubTeamCreate, (HcommTeamHandle worldTeam, const HcclTeamCreateDesc *desc,
		HcommTeamHandle *team))
UNBUILT_HCCL(HcclTeamDestroy, (HcommTeamHandle team))
UNBUILT_HCCL(HcclTeamWindowRegister, (HcclComm comm, HcommTeamHandle worldTeam,
		const CommMem *localMem, HcommWindowHandle *window, uint32_t flag))
UNBUILT_HCCL(HcclTeamWindowDeregister, (HcommTeamHandle worldTeam, HcommWindowHandle window))
UNBUILT_HCCL(HcclTeamChannelsCreate, (HcclComm comm, HcommTeamHandle team,
		const HcclTeamCreateChannelsDesc *desc))

/* hccl/hccl_ccu_res.h */
UNBUILT_HCCL(HcclCommAssignCcuIns, (HcclComm comm, CcuInsHandle insHandle))
UNBUILT_HCCL(HcclCommQueryCcuIns, (HcclComm comm, CcuInsHandle *insHandles, uint32_t *insNum))
UNBUILT_HCCL(HcclCommQueryAssignedCcuIns, (HcclComm comm, CcuInsHandle *insHandles,
		uint32_t *insNum))
