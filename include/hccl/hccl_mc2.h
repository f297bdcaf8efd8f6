/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Argument objects of fused compute and communication kernels ("MC2"). Library libhccl.so.
 * An object belongs to the caller until HcclKfcFreeOpArgs and is used by one thread at a time.
 */
#pragma once

#include <stdint.h>

#include "../acl/acl.h"
#include "hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Creates an argument object in *opArgs. HCCL_E_PTR: NULL. */
HcclResult HcclKfcAllocOpArgs(void **opArgs);
/* Frees an argument object. */
HcclResult HcclKfcFreeOpArgs(void *opArgs);
/* Sets the element type of the input, an HcclDataType. */
HcclResult HcclKfcOpArgsSetSrcDataType(void *opArgs, uint8_t srcDataType);
/* Sets the element type of the output, an HcclDataType. */
HcclResult HcclKfcOpArgsSetDstDataType(void *opArgs, uint8_t dstDataType);
/* Sets the operation, an HcclReduceOp. */
HcclResult HcclKfcOpArgsSetReduceType(void *opArgs, uint32_t reduceType);
/* Sets the number of elements. */
HcclResult HcclKfcOpArgsSetCount(void *opArgs, uint64_t count);
/* Sets the algorithm; the text is copied. */
HcclResult HcclKfcOpArgsSetAlgConfig(void *opArgs, char *algConfig);
/* Sets the engine, a CommEngine. */
HcclResult HcclKfcOpArgsSetCommEngine(void *opArgs, uint8_t commEngine);

/*
 * Creates the resources of an operator of kind @opType (an HcclCMDType); *opResCtx belongs to
 * @comm.
 */
HcclResult HcclCreateOpResCtx(HcclComm comm, uint8_t opType, void *opArgs, void **opResCtx);

#ifdef __cplusplus
}
#endif
