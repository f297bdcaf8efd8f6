/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acl runtime: devices, contexts, memory, streams, events, notifies, kernels, captured models.
 * Libraries libascendcl.so and libacl_rt.so.
 *
 * Functions may be called from any thread; the current device is a property of the thread. Sizes
 * are bytes, time-outs milliseconds unless said otherwise. What a function creates belongs to the
 * caller, who ends it with the function of the same noun; outputs are written only on success.
 * Common results: ACL_ERROR_INVALID_PARAM (NULL where a pointer is needed),
 * ACL_ERROR_RT_PARAM_INVALID (value out of range), ACL_ERROR_RT_CONTEXT_NULL (no current device),
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT (not in this release; the text names the function). A call that
 * takes a stream queues its work and returns; stream NULL is the default stream of the device.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of events. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY 0x00000010U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U
#define ACL_IPC_EVENT_HANDLE_SIZE 64U

/* Flags of streams. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U
#define ACL_STREAM_PERSISTENT 0x00000004U
#define ACL_STREAM_HUGE 0x00000008U
#define ACL_STREAM_CPU_SCHEDULE 0x00000010U
#define ACL_STREAM_DEVICE_USE_ONLY 0x00000020U

/* What aclrtValueWait waits for: *address >= value, == value, & value != 0, ~(... | value) != 0. */
#define ACL_STREAM_WAIT_VALUE_GEQ 0x00000000U
#define ACL_STREAM_WAIT_VALUE_EQ 0x00000001U
#define ACL_STREAM_WAIT_VALUE_AND 0x00000002U
#define ACL_STREAM_WAIT_VALUE_NOR 0x00000003U

/* Modes of aclrtSetStreamFailureMode. */
#define ACL_CONTINUE_ON_FAILURE 0x00000000U
#define ACL_STOP_ON_FAILURE 0x00000001U

#define ACL_NOTIFY_DEFAULT 0x00000000U
#define ACL_NOTIFY_DEVICE_USE_ONLY 0x00000001U

#define ACL_DEV_FEATURE_SUPPORT 0x00000001
#define ACL_DEV_FEATURE_NOT_SUPPORT 0x00000000

/* Flags of what is shared with other processes. */
#define ACL_RT_NOTIFY_EXPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x02UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x02UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS 0x1UL
#define ACL_RT_VMM_EXPORT_FLAG_DEFAULT 0x0UL
#define ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION 0x1UL
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_SIO 0
#define ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS 1

/* Flags of aclrtHostRegisterV2. */
#define ACL_HOST_REG_MAPPED 0x2UL
#define ACL_HOST_REG_PINNED 0x10000000UL

typedef void *aclrtAllocatorDesc;
typedef void *aclrtAllocator;
typedef void *aclrtAllocatorBlock;
typedef void *aclrtAllocatorAddr;
typedef void *aclrtTaskGrp;
typedef void *aclrtDrvMemHandle;
typedef void *aclrtBinary;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;
typedef void *aclmdlRI;
typedef struct aclrtUtilizationExtendInfo aclrtUtilizationExtendInfo;
typedef struct tagRtGroupInfo aclrtGroupInfo;
typedef struct rtExceptionInfo aclrtExceptionInfo;

typedef void (*aclrtCallback)(void *userData);
typedef void (*aclrtHostFunc)(void *args);
typedef void (*aclrtExceptionInfoCallback)(aclrtExceptionInfo *exceptionInfo);
typedef void (*aclrtOpExceptionCallback)(aclrtExceptionInfo *exceptionInfo, void *userData);
typedef uint32_t (*aclrtSnapShotCallBack)(int32_t deviceId, void *args);

/* Devices */

typedef enum aclrtRunMode {
	ACL_DEVICE = 0,
	ACL_HOST = 1,
} aclrtRunMode;

typedef enum aclrtTsId {
	ACL_TS_ID_AICORE = 0,
	ACL_TS_ID_AIVECTOR = 1,
	ACL_TS_ID_RESERVED = 2,
} aclrtTsId;

typedef enum aclrtFloatOverflowMode {
	ACL_RT_OVERFLOW_MODE_SATURATION = 0,
	ACL_RT_OVERFLOW_MODE_INFNAN = 1,
	ACL_RT_OVERFLOW_MODE_UNDEF = 2,
} aclrtFloatOverflowMode;

typedef enum aclrtDeviceStatus {
	ACL_RT_DEVICE_STATUS_NORMAL = 0,
	ACL_RT_DEVICE_STATUS_ABNORMAL = 1,
	ACL_RT_DEVICE_STATUS_END = 65535,
} aclrtDeviceStatus;

typedef enum aclrtDevAttr {
	ACL_DEV_ATTR_AICPU_CORE_NUM = 1,
	ACL_DEV_ATTR_AICORE_CORE_NUM = 101,
	ACL_DEV_ATTR_CUBE_CORE_NUM = 102,
	ACL_DEV_ATTR_VECTOR_CORE_NUM = 201,
	ACL_DEV_ATTR_WARP_SIZE = 202,
	ACL_DEV_ATTR_MAX_THREAD_PER_VECTOR_CORE = 203,
	ACL_DEV_ATTR_LOCAL_MEM_PER_VECTOR_CORE = 204,
	ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE = 204,
	ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE = 301,
	ACL_DEV_ATTR_L2_CACHE_SIZE = 302,
	ACL_DEV_ATTR_SMP_ID = 401,
	ACL_DEV_ATTR_PHY_CHIP_ID = 402,
	ACL_DEV_ATTR_SUPER_POD_DEVIDE_ID = 403,
	ACL_DEV_ATTR_SUPER_POD_DEVICE_ID = 403,
	ACL_DEV_ATTR_SUPER_POD_SERVER_ID = 404,
	ACL_DEV_ATTR_SUPER_POD_ID = 405,
	ACL_DEV_ATTR_CUST_OP_PRIVILEGE = 406,
	ACL_DEV_ATTR_MAINBOARD_ID = 407,
	ACL_DEV_ATTR_IS_VIRTUAL = 501,
} aclrtDevAttr;

typedef enum aclrtDevFeatureType {
	ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV = 1,
	ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV = 21,
} aclrtDevFeatureType;

typedef enum aclrtDevResLimitType {
	ACL_RT_DEV_RES_CUBE_CORE = 0,
	ACL_RT_DEV_RES_VECTOR_CORE = 1,
} aclrtDevResLimitType;

typedef enum aclrtDeviceState {
	ACL_RT_DEVICE_STATE_SET_PRE = 0,
	ACL_RT_DEVICE_STATE_SET_POST = 1,
	ACL_RT_DEVICE_STATE_RESET_PRE = 2,
	ACL_RT_DEVICE_STATE_RESET_POST = 3,
} aclrtDeviceState;

typedef enum aclrtDeviceTaskAbortStage {
	ACL_RT_DEVICE_TASK_ABORT_PRE = 0,
	ACL_RT_DEVICE_TASK_ABORT_POST = 1,
} aclrtDeviceTaskAbortStage;

/* Per cent. */
typedef struct aclrtUtilizationInfo {
	int32_t cubeUtilization;
	int32_t vectorUtilization;
	int32_t aicpuUtilization;
	int32_t memoryUtilization;
	aclrtUtilizationExtendInfo *utilizationExtend;
} aclrtUtilizationInfo;

typedef struct aclrtMemUceInfo {
	void *addr;
	size_t len;
	size_t reserved[14];
} aclrtMemUceInfo;

typedef struct aclrtUuid {
	char bytes[16];
} aclrtUuid;

typedef void (*aclrtDeviceStateCallback)(int32_t deviceId, aclrtDeviceState state, void *args);
typedef int32_t (*aclrtDeviceTaskAbortCallback)(int32_t deviceId, aclrtDeviceTaskAbortStage stage,
		uint32_t timeout, void *args);

/* Version of the acl interface, ACL_MAJOR_VERSION and so on. */
aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion);
/* Name of the device model; a static string. */
const char *aclrtGetSocName(void);

/*
 * Makes a device the current one of the calling thread. ACL_ERROR_RT_INVALID_DEVICEID: there is
 * none with this number among those that ASCEND_RT_VISIBLE_DEVICES shows.
 */
aclError aclrtSetDevice(int32_t deviceId);

/* Current device of the calling thread. */
aclError aclrtGetDevice(int32_t *deviceId);

/*
 * Takes back one aclrtSetDevice of the process; the last waits for queued work and frees what the
 * process has on the device.
 */
aclError aclrtResetDevice(int32_t deviceId);

/* As the last aclrtResetDevice, however often the device was set. */
aclError aclrtResetDeviceForce(int32_t deviceId);
/* Number of devices that ASCEND_RT_VISIBLE_DEVICES shows. */
aclError aclrtGetDeviceCount(uint32_t *count);
/* Waits for all streams of the current device; returns the first error. */
aclError aclrtSynchronizeDevice(void);
/* The same for @timeout ms, -1: without limit. ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: time is up. */
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);
/* How busy a device is. */
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo);
/* Selects the task scheduler of the current device. */
aclError aclrtSetTsDevice(aclrtTsId tsId);
/* Tells where the program runs: ACL_HOST. */
aclError aclrtGetRunMode(aclrtRunMode *runMode);
/* Sets what floating-point overflow gives. */
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
/* An attribute of a device. */
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value);
/* Physical number of a logical device. */
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId);
/* Logical number of a physical device. */
aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId);
/* Logical number of a device as ASCEND_RT_VISIBLE_DEVICES numbers it. */
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId);
/* The reverse. */
aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid);
/* Whether a device works. */
aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus);
/* Ends all queued work on a device within @timeout ms. */
aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);
/* ACL_DEV_FEATURE_SUPPORT or ACL_DEV_FEATURE_NOT_SUPPORT for a feature. */
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
		int32_t *value);
/* 1 if a device can reach another's memory. */
aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId);
/* Lets the current device reach another's memory; @flags: 0. */
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
/* Takes that back. */
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);
/* 1 if peer access is enabled. */
aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status);
/* Process id outside of containers. */
aclError aclrtDeviceGetBareTgid(int32_t *pid);
/* Uncorrectable memory errors; @arraySize elements of room. */
aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize,
		size_t *retSize);
/* Identity of a device. */
aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid);
/* Range of stream priorities. */
aclError aclrtDeviceGetStreamPriorityRange(int32_t *leastPriority, int32_t *greatestPriority);
/* Limit of a resource of the process on a device. */
aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value);
/* Sets such a limit. */
aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value);
/* Removes all such limits. */
aclError aclrtResetDeviceResLimit(int32_t deviceId);

/* Contexts: one per device and process by default */

/* Creates a context on a device and makes it current. */
aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId);
/* Ends a context. */
aclError aclrtDestroyContext(aclrtContext context);
/* Makes a context current in the calling thread. */
aclError aclrtSetCurrentContext(aclrtContext context);
/* Current context of the calling thread. */
aclError aclrtGetCurrentContext(aclrtContext *context);
/* Default stream of the current context; not the caller's to destroy. */
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream);

/* Memory */

typedef enum aclrtMemMallocPolicy {
	ACL_MEM_MALLOC_HUGE_FIRST = 0,
	ACL_MEM_MALLOC_HUGE_ONLY = 1,
	ACL_MEM_MALLOC_NORMAL_ONLY = 2,
	ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
	ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
	ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
	ACL_MEM_MALLOC_HUGE1G_ONLY = 6,
	ACL_MEM_MALLOC_HUGE1G_ONLY_P2P = 7,
	ACL_MEM_TYPE_LOW_BAND_WIDTH = 256,
	ACL_MEM_TYPE_HIGH_BAND_WIDTH = 4096,
	ACL_MEM_ACCESS_USER_SPACE_READONLY = 1048576,
} aclrtMemMallocPolicy;

typedef enum aclrtMemcpyKind {
	ACL_MEMCPY_HOST_TO_HOST = 0,
	ACL_MEMCPY_HOST_TO_DEVICE = 1,
	ACL_MEMCPY_DEVICE_TO_HOST = 2,
	ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
	ACL_MEMCPY_DEFAULT = 4,
	ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 5,
	ACL_MEMCPY_INNER_DEVICE_TO_DEVICE = 6,
	ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 7,
} aclrtMemcpyKind;

typedef enum aclrtMemAttr {
	ACL_DDR_MEM = 0,
	ACL_HBM_MEM = 1,
	ACL_DDR_MEM_HUGE = 2,
	ACL_DDR_MEM_NORMAL = 3,
	ACL_HBM_MEM_HUGE = 4,
	ACL_HBM_MEM_NORMAL = 5,
	ACL_DDR_MEM_P2P_HUGE = 6,
	ACL_DDR_MEM_P2P_NORMAL = 7,
	ACL_HBM_MEM_P2P_HUGE = 8,
	ACL_HBM_MEM_P2P_NORMAL = 9,
	ACL_HBM_MEM_HUGE1G = 10,
	ACL_HBM_MEM_P2P_HUGE1G = 11,
	ACL_MEM_NORMAL = 12,
	ACL_MEM_HUGE = 13,
	ACL_MEM_HUGE1G = 14,
	ACL_MEM_P2P_NORMAL = 15,
	ACL_MEM_P2P_HUGE = 16,
	ACL_MEM_P2P_HUGE1G = 17,
} aclrtMemAttr;

typedef enum aclrtMallocAttrType {
	ACL_RT_MEM_ATTR_RSV = 0,
	ACL_RT_MEM_ATTR_MODULE_ID = 1,
	ACL_RT_MEM_ATTR_DEVICE_ID = 2,
	ACL_RT_MEM_ATTR_VA_FLAG = 3,
} aclrtMallocAttrType;

typedef union aclrtMallocAttrValue {
	uint16_t moduleId;
	uint32_t deviceId;
	uint32_t vaFlag;
	uint8_t rsv[8];
} aclrtMallocAttrValue;

typedef struct aclrtMallocAttribute {
	aclrtMallocAttrType attr;
	aclrtMallocAttrValue value;
} aclrtMallocAttribute;

typedef struct aclrtMallocConfig {
	aclrtMallocAttribute *attrs;
	size_t numAttrs;
} aclrtMallocConfig;

typedef enum aclrtHostRegisterType {
	ACL_HOST_REGISTER_MAPPED = 0,
	ACL_HOST_REGISTER_IOMEMORY = 4,
	ACL_HOST_REGISTER_READONLY = 8,
} aclrtHostRegisterType;

typedef enum aclrtMemLocationType {
	ACL_MEM_LOCATION_TYPE_HOST = 0,
	ACL_MEM_LOCATION_TYPE_DEVICE = 1,
	ACL_MEM_LOCATION_TYPE_UNREGISTERED = 2,
	ACL_MEM_LOCATION_TYPE_HOST_NUMA = 4,
} aclrtMemLocationType;

typedef struct aclrtMemLocation {
	uint32_t id;
	aclrtMemLocationType type;
} aclrtMemLocation;

typedef struct aclrtPtrAttributes {
	aclrtMemLocation location;
	uint32_t pageSize;
	uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct aclrtMemcpyBatchAttr {
	aclrtMemLocation dstLoc;
	aclrtMemLocation srcLoc;
	uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

/*
 * Allocates device memory on the current device; freed with the process at the latest. Every
 * policy is served. ACL_ERROR_INVALID_PARAM: size 0; ACL_ERROR_RT_MEMORY_ALLOCATION: none left.
 */
aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy);

/* As aclrtMalloc; the size is rounded up to a multiple of 32. */
aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
/* As aclrtMalloc; to be used with aclrtMemFlush and aclrtMemInvalidate. */
aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy);
/* As aclrtMalloc; @cfg may be NULL. */
aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
		aclrtMallocConfig *cfg);
/* Allocates memory that the task scheduler uses. */
aclError aclrtMallocForTaskScheduler(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
		aclrtMallocConfig *cfg);
/* Frees memory of aclrtMalloc, at once. */
aclError aclrtFree(void *devPtr);
/* Allocates host memory. ACL_ERROR_INVALID_PARAM: size 0. */
aclError aclrtMallocHost(void **hostPtr, size_t size);
/* The same; @cfg may be NULL. */
aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg);
/* Frees host memory. */
aclError aclrtFreeHost(void *hostPtr);

/*
 * Sets @count bytes of at most @maxCount to @value. ACL_ERROR_RT_PARAM_INVALID: count 0 or above
 * maxCount.
 */
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count);

/* The same in stream order. */
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
		aclrtStream stream);

/*
 * Copies @count bytes to room for @destMax and waits. ACL_ERROR_RT_PARAM_INVALID: count 0 or
 * above destMax; ACL_ERROR_INVALID_PARAM: kind unknown or not that of the addresses.
 */
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count,
		aclrtMemcpyKind kind);

/* The same in stream order; both regions must live until the stream has passed it. */
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
		aclrtMemcpyKind kind, aclrtStream stream);
/* As aclrtMemcpyAsync, whatever host memory it is. */
aclError aclrtMemcpyAsyncWithCondition(void *dst, size_t destMax, const void *src, size_t count,
		aclrtMemcpyKind kind, aclrtStream stream);
/* Copies @height rows of @width bytes; pitches in bytes. */
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		size_t height, aclrtMemcpyKind kind);
/* The same in stream order. */
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
		size_t height, aclrtMemcpyKind kind, aclrtStream stream);
/* Copies @numBatches regions; *failIndex is the first that failed. */
aclError aclrtMemcpyBatch(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
		size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
		size_t numAttrs, size_t *failIndex);
/* The same in stream order. */
aclError aclrtMemcpyBatchAsync(void **dsts, size_t *destMaxs, void **srcs, size_t *sizes,
		size_t numBatches, aclrtMemcpyBatchAttr *attrs, size_t *attrsIndexes,
		size_t numAttrs, size_t *failIndex, aclrtStream stream);
/* Free and total memory of the current device. */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total);
/* Where an address lies. */
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes);
/* Makes host memory usable by the device. */
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, void **devPtr);
/* The same with flags ACL_HOST_REG_*. */
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag);
/* Takes that back. */
aclError aclrtHostUnregister(void *ptr);
/* Device address of registered host memory; @flag: 0. */
aclError aclrtHostGetDevicePointer(void *pHost, void **pDevice, uint32_t flag);
/* Writes cached data back to memory. */
aclError aclrtMemFlush(void *devPtr, size_t size);
/* Drops cached data. */
aclError aclrtMemInvalidate(void *devPtr, size_t size);

/* Address ranges and physical memory */

typedef enum aclrtMemAllocationType {
	ACL_MEM_ALLOCATION_TYPE_PINNED = 0,
} aclrtMemAllocationType;

typedef enum aclrtMemHandleType {
	ACL_MEM_HANDLE_TYPE_NONE = 0,
} aclrtMemHandleType;

typedef enum aclrtMemSharedHandleType {
	ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT = 1,
	ACL_MEM_SHARE_HANDLE_TYPE_FABRIC = 2,
} aclrtMemSharedHandleType;

typedef struct aclrtMemFabricHandle {
	uint8_t data[128];
} aclrtMemFabricHandle;

typedef struct aclrtPhysicalMemProp {
	aclrtMemHandleType handleType;
	aclrtMemAllocationType allocationType;
	aclrtMemAttr memAttr;
	aclrtMemLocation location;
	uint64_t reserve;
} aclrtPhysicalMemProp;

typedef enum aclrtMemGranularityOptions {
	ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM = 0,
	ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF = 65535,
} aclrtMemGranularityOptions;

typedef enum aclrtMemAccessFlags {
	ACL_RT_MEM_ACCESS_FLAGS_NONE = 0,
	ACL_RT_MEM_ACCESS_FLAGS_READ = 1,
	ACL_RT_MEM_ACCESS_FLAGS_READWRITE = 3,
} aclrtMemAccessFlags;

typedef struct aclrtMemAccessDesc {
	aclrtMemAccessFlags flags;
	aclrtMemLocation location;
	uint8_t rsv[12];
} aclrtMemAccessDesc;

/* Reserves a range of addresses; @alignment, @flags: 0. */
aclError aclrtReserveMemAddress(void **virPtr, size_t size, size_t alignment, void *expectPtr,
		uint64_t flags);
/* The same, outside of the unified range. */
aclError aclrtReserveMemAddressNoUCMemory(void **virPtr, size_t size, size_t alignment,
		void *expectPtr, uint64_t flags);
/* Gives a range back. */
aclError aclrtReleaseMemAddress(void *virPtr);
/* Allocates physical memory; @size is a multiple of the granularity. */
aclError aclrtMallocPhysical(aclrtDrvMemHandle *handle, size_t size,
		const aclrtPhysicalMemProp *prop, uint64_t flags);
/* Frees it. */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);
/* Maps physical memory into a reserved range; @offset: 0. */
aclError aclrtMapMem(void *virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
		uint64_t flags);
/* Takes that back. */
aclError aclrtUnmapMem(void *virPtr);
/* Granularity of sizes. */
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp *prop,
		aclrtMemGranularityOptions option, size_t *granularity);
/* Makes a handle of physical memory for other processes. */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
		uint64_t flags, uint64_t *shareableHandle);
/* The same; @shareableHandle points to a uint64_t or an aclrtMemFabricHandle. */
aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
		aclrtMemSharedHandleType shareType, void *shareableHandle);
/* Opens such a handle. */
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
		aclrtDrvMemHandle *handle);
/* The same for the second form. */
aclError aclrtMemImportFromShareableHandleV2(void *shareableHandle,
		aclrtMemSharedHandleType shareType, uint64_t flags, aclrtDrvMemHandle *handle);
/* Lets processes open a handle; @pid has pidNum elements. */
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t *pid, size_t pidNum);
/* The same for the second form. */
aclError aclrtMemSetPidToShareableHandleV2(void *shareableHandle,
		aclrtMemSharedHandleType shareType, int32_t *pid, size_t pidNum);
/* Sets who may use a mapped range; @desc has count elements. */
aclError aclrtMemSetAccess(void *virPtr, size_t size, aclrtMemAccessDesc *desc, size_t count);
/* Handle of the physical memory behind an address. */
aclError aclrtMemRetainAllocationHandle(void *virPtr, aclrtDrvMemHandle *handle);
/* Start and size of the allocation that holds an address. */
aclError aclrtMemGetAddressRange(void *ptr, void **pbase, size_t *psize);

/* Memory of other processes, by a text key (65 bytes) */

typedef enum aclrtIpcMemAttrType {
	ACL_RT_IPC_MEM_ATTR_ACCESS_LINK = 0,
} aclrtIpcMemAttrType;

/* Writes the key of a region, 64 characters and a NUL, to @key, which has @len bytes: at least 65. */
aclError aclrtIpcMemGetExportKey(void *devPtr, size_t size, char *key, size_t len, uint64_t flags);
/* Opens another process's region. */
aclError aclrtIpcMemImportByKey(void **devPtr, const char *key, uint64_t flags);
/* Ends the use or the sharing of a region. */
aclError aclrtIpcMemClose(const char *key);
/* Lets processes open a region; @pid has num elements. */
aclError aclrtIpcMemSetImportPid(const char *key, int32_t *pid, size_t num);
/* Sets an attribute of a region. */
aclError aclrtIpcMemSetAttr(const char *key, aclrtIpcMemAttrType type, uint64_t attr);

/* Streams */

typedef enum aclrtStreamStatus {
	ACL_STREAM_STATUS_COMPLETE = 0,
	ACL_STREAM_STATUS_NOT_READY = 1,
	ACL_STREAM_STATUS_RESERVED = 65535,
} aclrtStreamStatus;

typedef enum aclrtStreamConfigAttr {
	ACL_RT_STREAM_WORK_ADDR_PTR = 0,
	ACL_RT_STREAM_WORK_SIZE = 1,
	ACL_RT_STREAM_FLAG = 2,
	ACL_RT_STREAM_PRIORITY = 3,
} aclrtStreamConfigAttr;

typedef struct aclrtStreamConfigHandle {
	void *workptr;
	size_t workSize;
	size_t flag;
	uint32_t priority;
} aclrtStreamConfigHandle;

typedef enum aclrtStreamAttr {
	ACL_STREAM_ATTR_FAILURE_MODE = 1,
	ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK = 2,
	ACL_STREAM_ATTR_USER_CUSTOM_TAG = 3,
	ACL_STREAM_ATTR_CACHE_OP_INFO = 4,
} aclrtStreamAttr;

typedef union aclrtStreamAttrValue {
	uint64_t failureMode;
	uint32_t overflowSwitch;
	uint32_t userCustomTag;
	uint32_t cacheOpInfoSwitch;
	uint32_t reserve[4];
} aclrtStreamAttrValue;

typedef enum aclrtStreamState {
	ACL_RT_STREAM_STATE_CREATE_POST = 1,
	ACL_RT_STREAM_STATE_DESTROY_PRE = 2,
} aclrtStreamState;

typedef enum aclrtCallbackBlockType {
	ACL_CALLBACK_NO_BLOCK = 0,
	ACL_CALLBACK_BLOCK = 1,
} aclrtCallbackBlockType;

typedef enum aclrtLastErrLevel {
	ACL_RT_THREAD_LEVEL = 0,
} aclrtLastErrLevel;

typedef enum aclrtCondition {
	ACL_RT_EQUAL = 0,
	ACL_RT_NOT_EQUAL = 1,
	ACL_RT_GREATER = 2,
	ACL_RT_GREATER_OR_EQUAL = 3,
	ACL_RT_LESS = 4,
	ACL_RT_LESS_OR_EQUAL = 5,
} aclrtCondition;

typedef enum aclrtCompareDataType {
	ACL_RT_SWITCH_INT32 = 0,
	ACL_RT_SWITCH_INT64 = 1,
} aclrtCompareDataType;

typedef void (*aclrtStreamStateCallback)(aclrtStream stm, aclrtStreamState state, void *args);

/* Creates a stream on the current device. */
aclError aclrtCreateStream(aclrtStream *stream);
/* The same; @priority 0 is the highest; @flag: ACL_STREAM_*. */
aclError aclrtCreateStreamWithConfig(aclrtStream *stream, uint32_t priority, uint32_t flag);
/* The same with a settings struct. */
aclError aclrtCreateStreamV2(aclrtStream *stream, const aclrtStreamConfigHandle *handle);
/* Waits for queued work and ends the stream. */
aclError aclrtDestroyStream(aclrtStream stream);
/* Ends the stream and drops queued work. */
aclError aclrtDestroyStreamForce(aclrtStream stream);
/* Waits for all queued work; returns the first error of it. */
aclError aclrtSynchronizeStream(aclrtStream stream);

/*
 * The same for @timeout ms, -1: without limit. ACL_ERROR_RT_STREAM_SYNC_TIMEOUT: time is up; the
 * work goes on.
 */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);

/* Whether queued work remains. */
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status);
/* The stream waits for an event. */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);
/* The same for at most @timeout ms. */
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout);
/* ACL_STOP_ON_FAILURE: drops later work after an error. */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);
/* Number of a stream. */
aclError aclrtStreamGetId(aclrtStream stream, int32_t *streamId);
/* Ends queued work. */
aclError aclrtStreamAbort(aclrtStream stream);
/* Stops a stream. */
aclError aclrtStreamStop(aclrtStream stream);
/* Sets an attribute. */
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
		aclrtStreamAttrValue *value);
/* Reads an attribute. */
aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
		aclrtStreamAttrValue *value);
/* Number of streams that can still be created. */
aclError aclrtGetStreamAvailableNum(uint32_t *streamCount);
/* Starts @activeStream when @stream comes to this point. */
aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);
/* Goes on with one of two streams, by a comparison of two values. */
aclError aclrtSwitchStream(void *leftValue, aclrtCondition cond, void *rightValue,
		aclrtCompareDataType dataType, aclrtStream trueStream, aclrtStream falseStream,
		aclrtStream stream);
/* Priority of a stream. */
aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t *priority);
/* Flags of a stream. */
aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t *flags);
/* Writes a 64-bit value in stream order. */
aclError aclrtValueWrite(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
/* Waits for a 64-bit value in stream order; @flag: ACL_STREAM_WAIT_VALUE_*. */
aclError aclrtValueWait(void *devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
/* Limit of waits for events, seconds. */
aclError aclrtSetOpWaitTimeout(uint32_t timeout);
/* Limit of kernels, seconds. */
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
/* The same in milliseconds. */
aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
/* The same in microseconds; *actualTimeout is what applies. */
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout);
/* Step of these limits, microseconds. */
aclError aclrtGetOpTimeOutInterval(uint64_t *interval);
/* Code of the last acl call of the calling thread that failed; 0: none has. */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
/* The same, and takes it away. */
aclError aclrtGetLastError(aclrtLastErrLevel level);
/* Runs a function in stream order on a thread of the library. */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args);
/* Runs a function in stream order in a thread that calls aclrtProcessReport. */
aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
		aclrtStream stream);
/* Makes a thread the one that runs callbacks of a stream. */
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Waits for callbacks and runs them; @timeout in ms, -1: without limit. */
aclError aclrtProcessReport(int32_t timeout);
/* Takes aclrtSubscribeReport back. */
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);
/* Registers the function that learns of failed kernels. */
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
/* Number of the last task that the calling thread queued. */
aclError aclrtGetThreadLastTaskId(uint32_t *taskId);
/* Task of a failure. */
uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info);
/* Stream of a failure. */
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info);
/* Thread of a failure. */
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info);
/* Device of a failure. */
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info);
/* Code of a failure. */
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info);

/* Events. Mind the three numberings of "complete" */

typedef enum aclrtEventStatus {
	ACL_EVENT_STATUS_COMPLETE = 0,
	ACL_EVENT_STATUS_NOT_READY = 1,
	ACL_EVENT_STATUS_RESERVED = 2,
} aclrtEventStatus;

typedef enum aclrtEventRecordedStatus {
	ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
	ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtEventWaitStatus {
	ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
	ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
	ACL_EVENT_WAIT_STATUS_RESERVED = 65535,
} aclrtEventWaitStatus;

typedef struct aclrtIpcEventHandle {
	char reserved[ACL_IPC_EVENT_HANDLE_SIZE];
} aclrtIpcEventHandle;

/* Creates an event for synchronisation and timing. */
aclError aclrtCreateEvent(aclrtEvent *event);
/* Creates an event for the uses ACL_EVENT_*. */
aclError aclrtCreateEventWithFlag(aclrtEvent *event, uint32_t flag);
/* The same; needs no reset before it is recorded again. */
aclError aclrtCreateEventExWithFlag(aclrtEvent *event, uint32_t flag);
/* Ends an event. */
aclError aclrtDestroyEvent(aclrtEvent event);
/* The event is complete when the stream comes to this point. */
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
/* The event is not complete from this point of the stream. */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
/* Whether an event is complete, as aclrtEventStatus. */
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus *status);
/* Whether an event is complete, as aclrtEventRecordedStatus. */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus *status);
/* Whether all waits for an event are over. */
aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus *status);
/* Waits until an event is complete. */
aclError aclrtSynchronizeEvent(aclrtEvent event);
/* The same for @timeout ms. ACL_ERROR_RT_EVENT_SYNC_TIMEOUT: time is up. */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);
/* Milliseconds between two complete events. */
aclError aclrtEventElapsedTime(float *ms, aclrtEvent startEvent, aclrtEvent endEvent);
/* Time of an event, microseconds. */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t *timestamp);
/* Number of an event. */
aclError aclrtGetEventId(aclrtEvent event, uint32_t *eventId);
/* Number of events that can still be created. */
aclError aclrtGetEventAvailNum(uint32_t *eventCount);
/* Makes a handle of an event for other processes. */
aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle *handle);
/* Opens such a handle. */
aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent *event);

/* Notifies: signalled once, reset by the wait */

typedef enum aclrtCntNotifyRecordMode {
	ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE = 0,
	ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE = 1,
	ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE = 2,
	ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE = 4,
} aclrtCntNotifyRecordMode;

typedef struct aclrtCntNotifyRecordInfo {
	aclrtCntNotifyRecordMode mode;
	uint32_t value;
} aclrtCntNotifyRecordInfo;

typedef enum aclrtCntNotifyWaitMode {
	ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE = 0,
	ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE = 1,
	ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE = 2,
	ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE = 3,
	ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE = 4,
} aclrtCntNotifyWaitMode;

typedef struct aclrtCntNotifyWaitInfo {
	aclrtCntNotifyWaitMode mode;
	uint32_t value;
	uint32_t timeout;
	uint8_t isClear;
	uint8_t rsv[3];
} aclrtCntNotifyWaitInfo;

/* Creates a notify; @flag: ACL_NOTIFY_*. */
aclError aclrtCreateNotify(aclrtNotify *notify, uint64_t flag);
/*
 * Ends a notify. Tasks that are queued with it are done; a wait for which no record is left ends with
 * ACL_ERROR_RT_DEVICE_TASK_ABORT. Those of processes that have imported it fail.
 */
aclError aclrtDestroyNotify(aclrtNotify notify);
/* Signals a notify in stream order. */
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
/* Waits for a notify in stream order and resets it; @timeout in seconds, 0 and UINT32_MAX: without limit. */
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
/* Number of a notify. */
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t *notifyId);
/* Resets @num notifies. One is binary: recorded twice before a wait, it is recorded once. */
aclError aclrtNotifyBatchReset(aclrtNotify *notifies, size_t num);
/* Writes the key of a notify, 64 characters and a NUL, to @key, which has @len bytes: at least 65. */
aclError aclrtNotifyGetExportKey(aclrtNotify notify, char *key, size_t len, uint64_t flags);
/* Opens another process's notify. */
aclError aclrtNotifyImportByKey(aclrtNotify *notify, const char *key, uint64_t flags);
/* Lets processes open a notify; @pid has num elements. */
aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t *pid, size_t num);
/* Creates a counting notify. */
aclError aclrtCntNotifyCreate(aclrtCntNotify *cntNotify, uint64_t flag);
/* Ends a counting notify, as aclrtDestroyNotify(). */
aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify);
/* Changes the count in stream order. */
aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
		aclrtCntNotifyRecordInfo *info);
/* Waits for a count in stream order; info->timeout as of aclrtWaitAndResetNotify. */
aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
		aclrtCntNotifyWaitInfo *info);
/* Sets the count to 0 in stream order. */
aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream);
/* Number of a counting notify. */
aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t *notifyId);

/* Kernels and reductions */

typedef enum aclrtReduceKind {
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM = 10,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX = 11,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN = 12,
	ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL = 13,
} aclrtReduceKind;

typedef enum aclrtBinaryLoadOptionType {
	ACL_RT_BINARY_LOAD_OPT_LAZY_LOAD = 1,
	ACL_RT_BINARY_LOAD_OPT_LAZY_MAGIC = 2,
	ACL_RT_BINARY_LOAD_OPT_MAGIC = 2,
	ACL_RT_BINARY_LOAD_OPT_CPU_KERNEL_MODE = 3,
} aclrtBinaryLoadOptionType;

typedef union aclrtBinaryLoadOptionValue {
	uint32_t isLazyLoad;
	uint32_t magic;
	int32_t cpuKernelMode;
	uint32_t rsv[4];
} aclrtBinaryLoadOptionValue;

typedef struct aclrtBinaryLoadOption {
	aclrtBinaryLoadOptionType type;
	aclrtBinaryLoadOptionValue value;
} aclrtBinaryLoadOption;

typedef struct aclrtBinaryLoadOptions {
	aclrtBinaryLoadOption *options;
	size_t numOpt;
} aclrtBinaryLoadOptions;

typedef enum aclrtEngineType {
	ACL_RT_ENGINE_TYPE_AIC = 0,
	ACL_RT_ENGINE_TYPE_AIV = 1,
} aclrtEngineType;

typedef struct aclrtTimeoutUs {
	uint32_t timeoutLow;
	uint32_t timeoutHigh;
} aclrtTimeoutUs;

typedef enum aclrtLaunchKernelAttrId {
	ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1,
	ACL_RT_LAUNCH_KERNEL_ATTR_LOCAL_MEMORY_SIZE = 2,
	ACL_RT_LAUNCH_KERNEL_ATTR_DYN_UBUF_SIZE = 2,
	ACL_RT_LAUNCH_KERNEL_ATTR_ENGINE_TYPE = 3,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCKDIM_OFFSET = 4,
	ACL_RT_LAUNCH_KERNEL_ATTR_BLOCK_TASK_PREFETCH = 5,
	ACL_RT_LAUNCH_KERNEL_ATTR_DATA_DUMP = 6,
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7,
	ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US = 8,
} aclrtLaunchKernelAttrId;

typedef union aclrtLaunchKernelAttrValue {
	uint8_t schemMode;
	uint32_t localMemorySize;
	uint32_t dynUBufSize;
	aclrtEngineType engineType;
	uint32_t blockDimOffset;
	uint8_t isBlockTaskPrefetch;
	uint8_t isDataDump;
	uint16_t timeout;
	aclrtTimeoutUs timeoutUs;
	uint32_t rsv[4];
} aclrtLaunchKernelAttrValue;

typedef struct aclrtLaunchKernelAttr {
	aclrtLaunchKernelAttrId id;
	aclrtLaunchKernelAttrValue value;
} aclrtLaunchKernelAttr;

typedef struct aclrtLaunchKernelCfg {
	aclrtLaunchKernelAttr *attrs;
	size_t numAttrs;
} aclrtLaunchKernelCfg;

typedef struct aclrtPlaceHolderInfo {
	uint32_t addrOffset;
	uint32_t dataOffset;
} aclrtPlaceHolderInfo;

/*
 * dst[i] = dst[i] op src[i], @count bytes, in stream order; @reserve: NULL. Device memory or memory of aclrtMallocHost, at a multiple of an
 * element's size; the same memory, or no overlap (else 107000). Integers wrap around, NaN gives NaN, -0 is less than +0. Types: 8 to 64 bit
 * integers, fp16, bf16, fp32, fp64; other types and ..._EQUAL: 207000.
 */
aclError aclrtReduceAsync(void *dst, const void *src, uint64_t count, aclrtReduceKind kind,
		aclDataType type, aclrtStream stream, void *reserve);
/* Loads a kernel file. */
aclError aclrtBinaryLoadFromFile(const char *binPath, aclrtBinaryLoadOptions *options,
		aclrtBinHandle *binHandle);
/* Loads kernels from memory. */
aclError aclrtBinaryLoad(const aclrtBinary binary, aclrtBinHandle *binHandle);
/* Unloads kernels. */
aclError aclrtBinaryUnLoad(aclrtBinHandle binHandle);
/* Describes kernels in memory, which the caller keeps; NULL on an error. */
aclrtBinary aclrtCreateBinary(const void *data, size_t dataLen);
/* Frees such a description. */
aclError aclrtDestroyBinary(aclrtBinary binary);
/* Finds a kernel by name. */
aclError aclrtBinaryGetFunction(const aclrtBinHandle binHandle, const char *kernelName,
		aclrtFuncHandle *funcHandle);
/* Begins an argument list. */
aclError aclrtKernelArgsInit(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle);
/* Appends an argument; copied. */
aclError aclrtKernelArgsAppend(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
		aclrtParamHandle *paramHandle);
/* Appends room for the address of a buffer. */
aclError aclrtKernelArgsAppendPlaceHolder(aclrtArgsHandle argsHandle,
		aclrtParamHandle *paramHandle);
/* The buffer of such a place; belongs to the list. */
aclError aclrtKernelArgsGetPlaceHolderBuffer(aclrtArgsHandle argsHandle,
		aclrtParamHandle paramHandle, size_t dataSize, void **bufferAddr);
/* Ends an argument list. */
aclError aclrtKernelArgsFinalize(aclrtArgsHandle argsHandle);
/* Launches a kernel with an argument list; @reserve: NULL. */
aclError aclrtLaunchKernelWithConfig(aclrtFuncHandle funcHandle, uint32_t numBlocks,
		aclrtStream stream, aclrtLaunchKernelCfg *cfg, aclrtArgsHandle argsHandle,
		void *reserve);
/* Launches a kernel with arguments in host memory; copied. */
aclError aclrtLaunchKernelWithHostArgs(aclrtFuncHandle funcHandle, uint32_t numBlocks,
		aclrtStream stream, aclrtLaunchKernelCfg *cfg, void *hostArgs, size_t argsSize,
		aclrtPlaceHolderInfo *placeHolderArray, size_t placeHolderNum);
/* Launches a kernel with arguments in device memory. */
aclError aclrtLaunchKernelV2(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
		size_t argsSize, aclrtLaunchKernelCfg *cfg, aclrtStream stream);
/* The same without settings. */
aclError aclrtLaunchKernel(aclrtFuncHandle funcHandle, uint32_t numBlocks, const void *argsData,
		size_t argsSize, aclrtStream stream);

/* Captured models (aclgraph) */

typedef enum aclmdlRICaptureMode {
	ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0,
	ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1,
	ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2,
} aclmdlRICaptureMode;

typedef enum aclmdlRICaptureStatus {
	ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0,
	ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE = 1,
	ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED = 2,
} aclmdlRICaptureStatus;

/* Records what is queued on a stream from here. */
aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);
/* Ends the recording and gives the model. */
aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI *modelRI);
/* Whether a stream is being recorded, and into which model. */
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus *status,
		aclmdlRI *modelRI);
/* Exchanges the calling thread's capture mode. */
aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode *mode);
/* Begins a group of tasks that can be changed later. */
aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream);
/* Ends the group. */
aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp *handle);
/* Begins to change a group. */
aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle);
/* Ends the change. */
aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream);
/* Runs a model in stream order. */
aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);
/* Frees a model. */
aclError aclmdlRIDestroy(aclmdlRI modelRI);
/* Creates an empty model. */
aclError aclmdlRIBuildBegin(aclmdlRI *modelRI, uint32_t flag);
/* Ends its construction; @reserve: NULL. */
aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void *reserve);
/* Adds a stream to a model. */
aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag);
/* Removes a stream from a model. */
aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream);
/* Marks the end of a model in a stream. */
aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream);
/* Writes a model to a file. */
aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char *path, uint32_t flags);

#ifdef __cplusplus
}
#endif
