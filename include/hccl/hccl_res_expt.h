/* SPDX-License-Identifier: Apache-2.0 */
/* Thread export, which CANN keeps in a header without stability promise. Library libhcomm.so. */
#pragma once

#include <stdint.h>

#include "../hcomm/hcomm_res_defs.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes @threadNum threads usable by @dstCommEngine; both arrays have threadNum elements. The
 * handles belong to the communicator. HCCL_E_PTR: NULL. Any thread.
 */
HcclResult HcclThreadExportToCommEngine(HcclComm comm, uint32_t threadNum,
		const ThreadHandle *threads, CommEngine dstCommEngine,
		ThreadHandle *exportedThreads);

#ifdef __cplusplus
}
#endif
