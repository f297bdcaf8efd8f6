/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libascendcl.so and libacl_rt.so: the acl runtime. One line per function, in
 * the order of the headers: it answers "not supported" with a text that names it. Whoever builds
 * one takes its line away.
 */
#include "client/unbuilt.h"
#include "acl/acl.h"
#include "acl/acl_rt.h"

/* acl/acl.h */

/* acl/acl_rt.h */
UNBUILT_ACL(aclrtActiveStream, (aclrtStream activeStream, aclrtStream stream))
UNBUILT_ACL(aclrtSwitchStream, (void *leftValue, aclrtCondition cond, void *rightValue,
		aclrtCompareDataType dataType, aclrtStream trueStream, aclrtStream falseStream,
		aclrtStream stream))
UNBUILT_ACL(aclrtIpcGetEventHandle, (aclrtEvent event, aclrtIpcEventHandle *handle))
UNBUILT_ACL(aclrtIpcOpenEventHandle, (aclrtIpcEventHandle handle, aclrtEvent *event))
UNBUILT_ACL(aclrtBinaryLoadFromFile, (const char *binPath, aclrtBinaryLoadOptions *options,
		aclrtBinHandle *binHandle))
UNBUILT_ACL(aclrtBinaryLoad, (const aclrtBinary binary, aclrtBinHandle *binHandle))
UNBUILT_ACL(aclrtBinaryUnLoad, (aclrtBinHandle binHandle))
UNBUILT_ACL_POINTER(aclrtBinary, aclrtCreateBinary, (const void *data, size_t dataLen))
UNBUILT_ACL(aclrtDestroyBinary, (aclrtBinary binary))
UNBUILT_ACL(aclrtBinaryGetFunction, (const aclrtBinHandle binHandle, const char *kernelName,
		aclrtFuncHandle *funcHandle))
UNBUILT_ACL(aclrtKernelArgsInit, (aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle))
UNBUILT_ACL(aclrtKernelArgsAppend, (aclrtArgsHandle argsHandle, void *param, size_t paramSize,
		aclrtParamHandle *paramHandle))
UNBUILT_ACL(aclrtKernelArgsAppendPlaceHolder, (aclrtArgsHandle argsHandle,
		aclrtParamHandle *paramHandle))
UNBUILT_ACL(aclrtKernelArgsGetPlaceHolderBuffer, (aclrtArgsHandle argsHandle,
		aclrtParamHandle paramHandle, size_t dataSize, void **bufferAddr))
UNBUILT_ACL(aclrtKernelArgsFinalize, (aclrtArgsHandle argsHandle))
UNBUILT_ACL(aclrtLaunchKernelWithConfig, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
		aclrtStream stream, aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle,
		void *reserve))
UNBUILT_ACL(aclrtLaunchKernelWithHostArgs, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
		aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
		aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum))
UNBUILT_ACL(aclrtLaunchKernelV2, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
		const void *argsData, size_t argsSize, aclrtLaunchKernelCfg *cfg,
		aclrtStream stream))
UNBUILT_ACL(aclrtLaunchKernel, (aclrtFuncHandle funcHandle, uint32_t numBlocks,
		const void *argsData, size_t argsSize, aclrtStream stream))
UNBUILT_ACL(aclmdlRICaptureBegin, (aclrtStream stream, aclmdlRICaptureMode mode))
UNBUILT_ACL(aclmdlRICaptureEnd, (aclrtStream stream, aclmdlRI *modelRI))
UNBUILT_ACL(aclmdlRICaptureGetInfo, (aclrtStream stream, aclmdlRICaptureStatus *status,
		aclmdlRI *modelRI))
UNBUILT_ACL(aclmdlRICaptureThreadExchangeMode, (aclmdlRICaptureMode *mode))
UNBUILT_ACL(aclmdlRICaptureTaskGrpBegin, (aclrtStream stream))
UNBUILT_ACL(aclmdlRICaptureTaskGrpEnd, (aclrtStream stream, aclrtTaskGrp *handle))
UNBUILT_ACL(aclmdlRICaptureTaskUpdateBegin, (aclrtStream stream, aclrtTaskGrp handle))
UNBUILT_ACL(aclmdlRICaptureTaskUpdateEnd, (aclrtStream stream))
UNBUILT_ACL(aclmdlRIExecuteAsync, (aclmdlRI modelRI, aclrtStream stream))
UNBUILT_ACL(aclmdlRIDestroy, (aclmdlRI modelRI))
UNBUILT_ACL(aclmdlRIBuildBegin, (aclmdlRI *modelRI, uint32_t flag))
UNBUILT_ACL(aclmdlRIBuildEnd, (aclmdlRI modelRI, void *reserve))
UNBUILT_ACL(aclmdlRIBindStream, (aclmdlRI modelRI, aclrtStream stream, uint32_t flag))
UNBUILT_ACL(aclmdlRIUnbindStream, (aclmdlRI modelRI, aclrtStream stream))
UNBUILT_ACL(aclmdlRIEndTask, (aclmdlRI modelRI, aclrtStream stream))
UNBUILT_ACL(aclmdlRIDebugJsonPrint, (aclmdlRI modelRI, const char *path, uint32_t flags))
