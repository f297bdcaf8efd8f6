/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in a symmetric window, for kernels. Library libhcomm.so. Any thread may call it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Address of byte @offset in the part of @peerRank, valid while the window lives. HCCL_E_PTR:
 * NULL; HCCL_E_PARA: rank or offset out of range.
 */
HcclResult HcclSymWinGetPeerPointer(HcclCommSymWindow winHandle, size_t offset, uint32_t peerRank,
		void **ptr);

#ifdef __cplusplus
}
#endif
