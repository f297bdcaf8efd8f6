/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Teams and windows: one-sided communication of kernels. Since 9.2. Library libhcomm.so.
 * Functions may be called from any thread; structs are copied. NULL: HCCL_E_PTR.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "../hcomm/hcomm_res_defs.h"
#include "../hcomm/hcomm_team_defs.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
static const uint32_t HCCL_TEAM_CREATE_DESC_MAGIC_WORD = 0x0fcf0f14U;
static const uint32_t HCCL_TEAM_CREATE_DESC_VERSION = 1U;
static const uint32_t HCCL_TEAM_CREATE_CHANNELS_DESC_MAGIC_WORD = 0x0fcf0f15U;
static const uint32_t HCCL_TEAM_CREATE_CHANNELS_DESC_VERSION = 1U;
#else
#define HCCL_TEAM_CREATE_DESC_MAGIC_WORD 0x0fcf0f14U
#define HCCL_TEAM_CREATE_DESC_VERSION 1U
#define HCCL_TEAM_CREATE_CHANNELS_DESC_MAGIC_WORD 0x0fcf0f15U
#define HCCL_TEAM_CREATE_CHANNELS_DESC_VERSION 1U
#endif

/* Start with HcclTeamCreateDescInit. */
typedef struct HcclTeamCreateDesc {
	CommAbiHeader header;
	const uint32_t *rankIds;	/* members, rankNum elements */
	uint32_t rankNum;
	uint32_t selfRankId;
	uint32_t netLayer;
	CommProtocol protocol;
	HcommTeamSyncMemRequirement requirement;
	uint32_t reserved[4];
} HcclTeamCreateDesc;

/* Start with HcclTeamCreateChannelsDescInit. */
typedef struct HcclTeamCreateChannelsDesc {
	CommAbiHeader header;
	CommEngine engine;
	uint32_t notifyNum;
	CommProtocol protocol;
	uint32_t channelCnt;
	uint32_t reserved[4];
} HcclTeamCreateChannelsDesc;

/*
 * Creates the team that all others are part of; collective. HCCL_E_PARA: fewer than 2 ranks,
 * layer above 2, a bad requirement; HCCL_E_NOT_FOUND: selfRankId is not in the list.
 */
HcclResult HcclWorldTeamCreate(HcclComm comm, const HcclTeamCreateDesc *desc,
		HcommTeamHandle *worldTeam);

/* Creates a team from members of the world team; else HCCL_E_PARA. */
HcclResult HcclSubTeamCreate(HcommTeamHandle worldTeam, const HcclTeamCreateDesc *desc,
		HcommTeamHandle *team);
/* Ends a team; the world team ends its sub teams and windows with it. */
HcclResult HcclTeamDestroy(HcommTeamHandle team);

/*
 * Registers @localMem as a window of the world team; collective, in the same order on all ranks.
 * @flag: 0.
 */
HcclResult HcclTeamWindowRegister(HcclComm comm, HcommTeamHandle worldTeam, const CommMem *localMem,
		HcommWindowHandle *window, uint32_t flag);

/* Ends a window. */
HcclResult HcclTeamWindowDeregister(HcommTeamHandle worldTeam, HcommWindowHandle window);
/* Creates the channels among the members of a team. */
HcclResult HcclTeamChannelsCreate(HcclComm comm, HcommTeamHandle team,
		const HcclTeamCreateChannelsDesc *desc);

/* Fills *desc with "not set": counts 0, protocol -1. HCCL_E_PTR: NULL. */
static inline HcclResult HcclTeamCreateDescInit(HcclTeamCreateDesc *desc)
{
	if (!desc)
		return HCCL_E_PTR;
	memset(desc, 0, sizeof(*desc));
	desc->header.version = HCCL_TEAM_CREATE_DESC_VERSION;
	desc->header.magicWord = HCCL_TEAM_CREATE_DESC_MAGIC_WORD;
	desc->header.size = sizeof(*desc);
	desc->protocol = COMM_PROTOCOL_RESERVED;
	return HCCL_SUCCESS;
}

/* Fills *desc with "not set": counts 0, protocol and engine -1. HCCL_E_PTR: NULL. */
static inline HcclResult HcclTeamCreateChannelsDescInit(HcclTeamCreateChannelsDesc *desc)
{
	if (!desc)
		return HCCL_E_PTR;
	memset(desc, 0, sizeof(*desc));
	desc->header.version = HCCL_TEAM_CREATE_CHANNELS_DESC_VERSION;
	desc->header.magicWord = HCCL_TEAM_CREATE_CHANNELS_DESC_MAGIC_WORD;
	desc->header.size = sizeof(*desc);
	desc->engine = COMM_ENGINE_RESERVED;
	desc->protocol = COMM_PROTOCOL_RESERVED;
	return HCCL_SUCCESS;
}

#ifdef __cplusplus
}
#endif
