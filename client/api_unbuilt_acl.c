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
UNBUILT_ACL(aclsysGetCANNVersion, (aclCANNPackageName name, aclCANNPackageVersion *version))
UNBUILT_ACL(aclsysGetVersionNum, (char *pkgName, int32_t *versionNum))
UNBUILT_ACL(aclsysGetVersionStr, (char *pkgName, char *versionStr))

/* acl/acl_rt.h */
UNBUILT_ACL(aclrtGetDeviceUtilizationRate, (int32_t deviceId,
		aclrtUtilizationInfo *utilizationInfo))
UNBUILT_ACL(aclrtSetTsDevice, (aclrtTsId tsId))
UNBUILT_ACL(aclrtSetDeviceSatMode, (aclrtFloatOverflowMode mode))
UNBUILT_ACL(aclrtGetDeviceInfo, (uint32_t deviceId, aclrtDevAttr attr, int64_t *value))
UNBUILT_ACL(aclrtGetPhyDevIdByLogicDevId, (const int32_t logicDevId, int32_t *const phyDevId))
UNBUILT_ACL(aclrtGetLogicDevIdByPhyDevId, (const int32_t phyDevId, int32_t *const logicDevId))
UNBUILT_ACL(aclrtGetLogicDevIdByUserDevId, (const int32_t userDevid, int32_t *const logicDevId))
UNBUILT_ACL(aclrtGetUserDevIdByLogicDevId, (const int32_t logicDevId, int32_t *const userDevid))
UNBUILT_ACL(aclrtQueryDeviceStatus, (int32_t deviceId, aclrtDeviceStatus *deviceStatus))
UNBUILT_ACL(aclrtGetDeviceCapability, (int32_t deviceId, aclrtDevFeatureType devFeatureType,
		int32_t *value))
UNBUILT_ACL(aclrtDeviceCanAccessPeer, (int32_t *canAccessPeer, int32_t deviceId,
		int32_t peerDeviceId))
UNBUILT_ACL(aclrtDeviceEnablePeerAccess, (int32_t peerDeviceId, uint32_t flags))
UNBUILT_ACL(aclrtDeviceDisablePeerAccess, (int32_t peerDeviceId))
UNBUILT_ACL(aclrtDevicePeerAccessStatus, (int32_t deviceId, int32_t peerDeviceId, int32_t *status))
UNBUILT_ACL(aclrtDeviceGetBareTgid, (int32_t *pid))
UNBUILT_ACL(aclrtGetMemUceInfo, (int32_t deviceId, aclrtMemUceInfo *memUceInfoArray,
		size_t arraySize, size_t *retSize))
UNBUILT_ACL(aclrtDeviceGetUuid, (int32_t deviceId, aclrtUuid *uuid))
UNBUILT_ACL(aclrtGetDeviceResLimit, (int32_t deviceId, aclrtDevResLimitType type, uint32_t *value))
UNBUILT_ACL(aclrtSetDeviceResLimit, (int32_t deviceId, aclrtDevResLimitType type, uint32_t value))
UNBUILT_ACL(aclrtResetDeviceResLimit, (int32_t deviceId))
UNBUILT_ACL(aclrtCreateContext, (aclrtContext *context, int32_t deviceId))
UNBUILT_ACL(aclrtDestroyContext, (aclrtContext context))
UNBUILT_ACL(aclrtSetCurrentContext, (aclrtContext context))
UNBUILT_ACL(aclrtGetCurrentContext, (aclrtContext *context))
UNBUILT_ACL(aclrtCtxGetCurrentDefaultStream, (aclrtStream *stream))
UNBUILT_ACL(aclrtMallocForTaskScheduler, (void **devPtr, size_t size, aclrtMemMallocPolicy policy,
		aclrtMallocConfig *cfg))
UNBUILT_ACL(aclrtMemcpyAsyncWithCondition, (void *dst, size_t destMax, const void *src,
		size_t count, aclrtMemcpyKind kind, aclrtStream stream))
UNBUILT_ACL(aclrtMemcpy2d, (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		size_t height, aclrtMemcpyKind kind))
UNBUILT_ACL(aclrtMemcpy2dAsync, (void *dst, size_t dpitch, const void *src, size_t spitch,
		size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream))
UNBUILT_ACL(aclrtMemcpyBatch, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
		size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
		size_t numAttrs, size_t *failIndex))
UNBUILT_ACL(aclrtMemcpyBatchAsync, (void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
		size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
		size_t numAttrs, size_t *failIndex, aclrtStream stream))
UNBUILT_ACL(aclrtPointerGetAttributes, (const void *ptr, aclrtPtrAttributes *attributes))
UNBUILT_ACL(aclrtHostRegister, (void *ptr, uint64_t size, aclrtHostRegisterType type,
		void **devPtr))
UNBUILT_ACL(aclrtHostRegisterV2, (void *ptr, uint64_t size, uint32_t flag))
UNBUILT_ACL(aclrtHostUnregister, (void *ptr))
UNBUILT_ACL(aclrtHostGetDevicePointer, (void *pHost, void **pDevice, uint32_t flag))
UNBUILT_ACL(aclrtMemFlush, (void *devPtr, size_t size))
UNBUILT_ACL(aclrtMemInvalidate, (void *devPtr, size_t size))
UNBUILT_ACL(aclrtReserveMemAddress, (void **virPtr, size_t size, size_t alignment, void *expectPtr,
		uint64_t flags))
UNBUILT_ACL(aclrtReserveMemAddressNoUCMemory, (void **virPtr, size_t size, size_t alignment,
		void *expectPtr, uint64_t flags))
UNBUILT_ACL(aclrtReleaseMemAddress, (void *virPtr))
UNBUILT_ACL(aclrtMallocPhysical, (aclrtDrvMemHandle *handle, size_t size,
		const aclrtPhysicalMemProp *prop, uint64_t flags))
UNBUILT_ACL(aclrtFreePhysical, (aclrtDrvMemHandle handle))
UNBUILT_ACL(aclrtMapMem, (void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
		uint64_t flags))
UNBUILT_ACL(aclrtUnmapMem, (void *virPtr))
UNBUILT_ACL(aclrtMemGetAllocationGranularity, (aclrtPhysicalMemProp *prop,
		aclrtMemGranularityOptions option, size_t *granularity))
UNBUILT_ACL(aclrtMemExportToShareableHandle, (aclrtDrvMemHandle handle,
		aclrtMemHandleType handleType, uint64_t flags, uint64_t *shareableHandle))
UNBUILT_ACL(aclrtMemExportToShareableHandleV2, (aclrtDrvMemHandle handle, uint64_t flags,
		aclrtMemSharedHandleType shareType, void *shareableHandle))
UNBUILT_ACL(aclrtMemImportFromShareableHandle, (uint64_t shareableHandle, int32_t deviceId,
		aclrtDrvMemHandle *handle))
UNBUILT_ACL(aclrtMemImportFromShareableHandleV2, (void *shareableHandle,
		aclrtMemSharedHandleType shareType, uint64_t flags, aclrtDrvMemHandle *handle))
UNBUILT_ACL(aclrtMemSetPidToShareableHandle, (uint64_t shareableHandle, int32_t *pid,
		size_t pidNum))
UNBUILT_ACL(aclrtMemSetPidToShareableHandleV2, (void *shareableHandle,
		aclrtMemSharedHandleType shareType, int32_t *pid, size_t pidNum))
UNBUILT_ACL(aclrtMemSetAccess, (void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count))
UNBUILT_ACL(aclrtMemRetainAllocationHandle, (void *virPtr, aclrtDrvMemHandle *handle))
UNBUILT_ACL(aclrtMemGetAddressRange, (void *ptr, void **pbase, size_t *psize))
UNBUILT_ACL(aclrtIpcMemGetExportKey, (void *devPtr, size_t size, char *key, size_t len,
		uint64_t flags))
UNBUILT_ACL(aclrtIpcMemImportByKey, (void **devPtr, const char *key, uint64_t flags))
UNBUILT_ACL(aclrtIpcMemClose, (const char *key))
UNBUILT_ACL(aclrtIpcMemSetImportPid, (const char *key, int32_t *pid, size_t num))
UNBUILT_ACL(aclrtIpcMemSetAttr, (const char *key, aclrtIpcMemAttrType type, uint64_t attr))
UNBUILT_ACL(aclrtCreateStreamV2, (aclrtStream *stream, const aclrtStreamConfigHandle *handle))
UNBUILT_ACL(aclrtActiveStream, (aclrtStream activeStream, aclrtStream stream))
UNBUILT_ACL(aclrtSwitchStream, (void *leftValue, aclrtCondition cond, void *rightValue,
		aclrtCompareDataType dataType, aclrtStream trueStream, aclrtStream falseStream,
		aclrtStream stream))
UNBUILT_ACL(aclrtSetOpExecuteTimeOut, (uint32_t timeout))
UNBUILT_ACL(aclrtSetOpExecuteTimeOutWithMs, (uint32_t timeout))
UNBUILT_ACL(aclrtSetOpExecuteTimeOutV2, (uint64_t timeout, uint64_t *actualTimeout))
UNBUILT_ACL(aclrtGetOpTimeOutInterval, (uint64_t *interval))
UNBUILT_ACL(aclrtPeekAtLastError, (aclrtLastErrLevel level))
UNBUILT_ACL(aclrtGetLastError, (aclrtLastErrLevel level))
UNBUILT_ACL(aclrtIpcGetEventHandle, (aclrtEvent event, aclrtIpcEventHandle *handle))
UNBUILT_ACL(aclrtIpcOpenEventHandle, (aclrtIpcEventHandle handle, aclrtEvent *event))
UNBUILT_ACL(aclrtCreateNotify, (aclrtNotify *notify, uint64_t flag))
UNBUILT_ACL(aclrtDestroyNotify, (aclrtNotify notify))
UNBUILT_ACL(aclrtRecordNotify, (aclrtNotify notify, aclrtStream stream))
UNBUILT_ACL(aclrtWaitAndResetNotify, (aclrtNotify notify, aclrtStream stream, uint32_t timeout))
UNBUILT_ACL(aclrtGetNotifyId, (aclrtNotify notify, uint32_t *notifyId))
UNBUILT_ACL(aclrtNotifyBatchReset, (aclrtNotify *notifies, size_t num))
UNBUILT_ACL(aclrtNotifyGetExportKey, (aclrtNotify notify, char *key, size_t len, uint64_t flags))
UNBUILT_ACL(aclrtNotifyImportByKey, (aclrtNotify *notify, const char *key, uint64_t flags))
UNBUILT_ACL(aclrtNotifySetImportPid, (aclrtNotify notify, int32_t *pid, size_t num))
UNBUILT_ACL(aclrtCntNotifyCreate, (aclrtCntNotify *cntNotify, uint64_t flag))
UNBUILT_ACL(aclrtCntNotifyDestroy, (aclrtCntNotify cntNotify))
UNBUILT_ACL(aclrtCntNotifyRecord, (aclrtCntNotify cntNotify, aclrtStream stream,
		aclrtCntNotifyRecordInfo *info))
UNBUILT_ACL(aclrtCntNotifyWaitWithTimeout, (aclrtCntNotify cntNotify, aclrtStream stream,
		aclrtCntNotifyWaitInfo *info))
UNBUILT_ACL(aclrtCntNotifyReset, (aclrtCntNotify cntNotify, aclrtStream stream))
UNBUILT_ACL(aclrtCntNotifyGetId, (aclrtCntNotify cntNotify, uint32_t *notifyId))
UNBUILT_ACL(aclrtReduceAsync, (void *dst, const void *src, uint64_t count, aclrtReduceKind kind,
		aclDataType type, aclrtStream stream, void *reserve))
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
