/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of teams and windows. Since 9.2. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t *HcommTeamHandle;
typedef uint64_t *HcommWindowHandle;

/* Synchronisation objects that a team needs. */
typedef struct HcommTeamSyncMemRequirement {
	uint32_t signalCount;	/* 0 */
	uint32_t counterCount;	/* 0 */
	uint32_t barrierCount;	/* at least 1 */
	uint32_t reserved[5];
} HcommTeamSyncMemRequirement;

#ifdef __cplusplus
}
#endif
