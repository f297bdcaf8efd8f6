/* SPDX-License-Identifier: Apache-2.0 */
/* Binding of CCU instances to a communicator. Since 9.2. Library libhcomm.so. Any thread. */
#pragma once

#include <stdint.h>

#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t CcuInsHandle;

/* Binds an instance to the communicator. */
HcclResult HcclCommAssignCcuIns(HcclComm comm, CcuInsHandle insHandle);
/* The instances that can be bound: @insHandles has room for *insNum, which becomes the number. */
HcclResult HcclCommQueryCcuIns(HcclComm comm, CcuInsHandle *insHandles, uint32_t *insNum);
/* The instances that are bound, in the same way. */
HcclResult HcclCommQueryAssignedCcuIns(HcclComm comm, CcuInsHandle *insHandles, uint32_t *insNum);

#ifdef __cplusplus
}
#endif
