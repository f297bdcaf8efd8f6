/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The acl runtime in libascendcl.so and libacl_rt.so: arguments are checked here, in CANN's order, and the work is the core's. Nothing
 * is kept in this file: both libraries may be loaded at the same time.
 */
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/buffer.h"
#include "client/device.h"
#include "client/engine_context.h"
#include "client/error.h"
#include "client/init_file.h"
#include "client/memory.h"
#include "client/registration.h"
#include "client/share.h"
#include "client/stream.h"

#define POLICY_BASE_MAX 7u /* ACL_MEM_MALLOC_HUGE1G_ONLY_P2P */
#define POLICY_FLAGS                                                  \
	(ACL_MEM_TYPE_LOW_BAND_WIDTH | ACL_MEM_TYPE_HIGH_BAND_WIDTH | \
	 ACL_MEM_ACCESS_USER_SPACE_READONLY)
#define ALIGNMENT 32u /* sizes of device memory */
#define TIME_OUT_STEP_US 1000u

/* ---- start and end ---- */

aclError aclInit(const char *configPath)
{
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return hccld_acl_result(r);
	if (configPath && *configPath) {
		r = hccld_init_file_check(configPath);
		if (r != 0)
			return r;
	}
	if (hccld_init_add() > 0) {
		hccld_error(CAUSE_NONE, "aclInit was called before; this call is counted");
		return ACL_ERROR_REPEAT_INITIALIZE;
	}
	return ACL_SUCCESS;
}

static aclError finalize(bool all, uint64_t *refCount)
{
	uint64_t before;
	int r;

	r = hccld_session_check_fork();
	if (r < 0)
		return hccld_acl_result(r);
	before = hccld_init_remove(all);
	if (refCount)
		*refCount = before ? before - 1 : 0;
	if (before == 0) {
		hccld_error(CAUSE_NONE, "acl was finalized before, or never initialized");
		return ACL_ERROR_REPEAT_FINALIZE;
	}
	return ACL_SUCCESS;
}

aclError aclFinalize(void)
{
	return finalize(true, NULL);
}

aclError aclFinalizeReference(uint64_t *refCount)
{
	return finalize(false, refCount);
}

const char *aclGetRecentErrMsg(void)
{
	return hccld_error_take();
}

static aclError last_error(const char *function, aclrtLastErrLevel level, bool forgets)
{
	if (level != ACL_RT_THREAD_LEVEL)
		return value_error(function, "level", (unsigned long long)level, "ACL_RT_THREAD_LEVEL (0)");
	return hccld_acl_last(forgets);
}

aclError aclrtGetLastError(aclrtLastErrLevel level)
{
	return last_error(__func__, level, true);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
{
	return last_error(__func__, level, false);
}

/* ---- limits of kernels ---- */

/*
 * A kernel runs in threads of the process, which nobody can end from outside: limits are taken, and a kernel that is slow is not ended by
 * one. hcclctl waiting shows it.
 */
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
{
	return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)
{
	return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t *actualTimeout)
{
	uint64_t rest = timeout % TIME_OUT_STEP_US;

	if (!actualTimeout)
		return null_error(__func__, "actualTimeout");
	if (timeout > UINT64_MAX - TIME_OUT_STEP_US)
		return value_error(__func__, "timeout", timeout, "at most 2^64 - 1001");
	*actualTimeout = rest ? timeout - rest + TIME_OUT_STEP_US : timeout;
	return ACL_SUCCESS;
}

aclError aclrtGetOpTimeOutInterval(uint64_t *interval)
{
	if (!interval)
		return null_error(__func__, "interval");
	*interval = TIME_OUT_STEP_US;
	return ACL_SUCCESS;
}

/* ---- versions and names ---- */

aclError aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion, int32_t *patchVersion)
{
	if (!majorVersion || !minorVersion || !patchVersion)
		return null_error(__func__, "a version");
	*majorVersion = ACL_MAJOR_VERSION;
	*minorVersion = ACL_MINOR_VERSION;
	*patchVersion = ACL_PATCH_VERSION;
	return ACL_SUCCESS;
}

const char *aclrtGetSocName(void)
{
	return hccld_device_soc_name();
}

/* ---- devices ---- */

aclError aclrtSetDevice(int32_t deviceId)
{
	return hccld_acl_result(hccld_device_set(deviceId));
}

aclError aclrtGetDevice(int32_t *deviceId)
{
	if (!deviceId)
		return null_error(__func__, "deviceId");
	return hccld_acl_result(hccld_device_get(deviceId));
}

aclError aclrtResetDevice(int32_t deviceId)
{
	return hccld_acl_result(hccld_device_reset(deviceId, false));
}

aclError aclrtResetDeviceForce(int32_t deviceId)
{
	return hccld_acl_result(hccld_device_reset(deviceId, true));
}

aclError aclrtGetDeviceCount(uint32_t *count)
{
	if (!count)
		return null_error(__func__, "count");
	return hccld_acl_result(hccld_device_count(count));
}

aclError aclrtSynchronizeDevice(void)
{
	return hccld_acl_result(hccld_device_synchronize(-1));
}

static int timeout_error(const char *function, int32_t timeout)
{
	return hccld_acl_result(hccld_error(
		CAUSE_ARGUMENT, "%s: timeout is %d; expected -1 (no limit) or milliseconds",
		function, timeout));
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
{
	if (timeout < -1)
		return timeout_error(__func__, timeout);
	return hccld_acl_result(hccld_device_synchronize(timeout));
}

aclError aclrtGetRunMode(aclrtRunMode *runMode)
{
	if (!runMode)
		return null_error(__func__, "runMode");
	*runMode = ACL_HOST;
	return ACL_SUCCESS;
}

/* ---- memory ---- */

static aclError allocate(const char *function, enum hccld_memory memory, void **pointer,
			 size_t size, size_t padding)
{
	struct hccld_context *context;
	size_t rounded;
	int r;

	if (!pointer || size == 0)
		return hccld_acl_result(
			hccld_error(CAUSE_NULL, "%s: %s", function,
				    pointer ? "size is 0" : "the address of the pointer is NULL"));
	r = hccld_context_current(&context);
	if (r < 0)
		return hccld_acl_result(r);
	if (size > SIZE_MAX - ALIGNMENT - padding)
		return hccld_acl_result(hccld_error(CAUSE_MEMORY,
						    "%s: %zu bytes are more than any device has",
						    function, size));
	rounded = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + padding;
	return hccld_acl_result(hccld_buffer_allocate(context, memory, rounded, (uint8_t)(rounded - size), pointer));
}

static aclError allocate_device(const char *function, void **pointer, size_t size,
				aclrtMemMallocPolicy policy, size_t padding)
{
	/* every known policy is served from ordinary pages */
	if (pointer && size &&
	    (((unsigned int)policy & 0xff) > POLICY_BASE_MAX ||
	     ((unsigned int)policy & ~0xffu & ~(unsigned int)POLICY_FLAGS)))
		return hccld_acl_result(
			hccld_error(CAUSE_ARGUMENT,
				    "%s: policy is %d, which aclrtMemMallocPolicy does not have",
				    function, (int)policy));
	return allocate(function, HCCLD_MEMORY_DEVICE, pointer, size, padding);
}

aclError aclrtMalloc(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return allocate_device(__func__, devPtr, size, policy, ALIGNMENT);
}

aclError aclrtMallocAlign32(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return allocate_device(__func__, devPtr, size, policy, 0);
}

aclError aclrtMallocCached(void **devPtr, size_t size, aclrtMemMallocPolicy policy)
{
	return allocate_device(__func__, devPtr, size, policy, ALIGNMENT);
}

aclError aclrtMallocWithCfg(void **devPtr, size_t size, aclrtMemMallocPolicy policy,
			    aclrtMallocConfig *cfg)
{
	(void)cfg; /* modules, devices and address flags: nothing to choose from here */
	return allocate_device(__func__, devPtr, size, policy, ALIGNMENT);
}

static aclError release(const char *function, enum hccld_memory memory, void *pointer)
{
	int r;

	if (!pointer)
		return null_error(function, "the pointer");
	r = hccld_session_check_fork();
	/* first: a call that fails leaves everything as it is */
	if (r == 0)
		r = hccld_buffer_check(memory, pointer);
	if (r == 0 && memory == HCCLD_MEMORY_DEVICE)
		r = hccld_engine_context_check_free(function, pointer);
	if (r == 0 && memory == HCCLD_MEMORY_DEVICE)
		hccld_share_freeing(pointer);
	if (r == 0)
		hccld_registration_freeing(pointer);
	if (r == 0)
		r = hccld_buffer_free(memory, pointer);
	return hccld_acl_result(r);
}

aclError aclrtFree(void *devPtr)
{
	return release(__func__, HCCLD_MEMORY_DEVICE, devPtr);
}

aclError aclrtMallocHost(void **hostPtr, size_t size)
{
	return allocate(__func__, HCCLD_MEMORY_HOST, hostPtr, size, 0);
}

aclError aclrtMallocHostWithCfg(void **ptr, uint64_t size, aclrtMallocConfig *cfg)
{
	(void)cfg;
	return allocate(__func__, HCCLD_MEMORY_HOST, ptr, size, 0);
}

aclError aclrtFreeHost(void *hostPtr)
{
	return release(__func__, HCCLD_MEMORY_HOST, hostPtr);
}

aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
{
	return hccld_acl_result(hccld_memory_fill(devPtr, maxCount, value, count));
}

aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count,
			  aclrtStream stream)
{
	return hccld_acl_result(hccld_memory_fill_async(devPtr, maxCount, value, count, stream));
}

aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
{
	return hccld_acl_result(hccld_memory_copy(dst, destMax, src, count, (int)kind));
}

aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count,
			  aclrtMemcpyKind kind, aclrtStream stream)
{
	return hccld_acl_result(
		hccld_memory_copy_async(dst, destMax, src, count, (int)kind, stream));
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t *free, size_t *total)
{
	uint64_t free_bytes, total_bytes;
	int r;

	if (!free || !total)
		return null_error(__func__, free ? "total" : "free");
	/* there is one kind of memory, whatever page size or bus is asked about */
	if ((unsigned int)attr > ACL_MEM_P2P_HUGE1G)
		return hccld_acl_result(hccld_error(
			CAUSE_ARGUMENT, "%s: attr is %d, which aclrtMemAttr does not have",
			__func__, (int)attr));
	r = hccld_device_memory_info(&free_bytes, &total_bytes);
	if (r == 0) {
		*free = free_bytes;
		*total = total_bytes;
	}
	return hccld_acl_result(r);
}

/* ---- streams ---- */

aclError aclrtCreateStream(aclrtStream *stream)
{
	struct hccld_context *context;
	struct hccld_stream *made;
	int r;

	if (!stream)
		return null_error(__func__, "stream");
	r = hccld_context_current(&context);
	if (r == 0)
		r = hccld_stream_new(context, &made);
	if (r == 0)
		*stream = made;
	return hccld_acl_result(r);
}

aclError aclrtDestroyStream(aclrtStream stream)
{
	if (!stream)
		return null_error(__func__, "stream");
	return hccld_acl_result(hccld_stream_destroy(stream, false));
}

aclError aclrtDestroyStreamForce(aclrtStream stream)
{
	if (!stream)
		return null_error(__func__, "stream");
	return hccld_acl_result(hccld_stream_destroy(stream, true));
}

static aclError synchronize(aclrtStream handle, int32_t timeout)
{
	struct hccld_stream *stream;
	int r;

	r = hccld_stream_get(handle, &stream);
	if (r == 0)
		r = hccld_stream_wait(stream, timeout);
	return hccld_acl_result(r);
}

aclError aclrtSynchronizeStream(aclrtStream stream)
{
	return synchronize(stream, -1);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
{
	if (timeout < -1)
		return timeout_error(__func__, timeout);
	return synchronize(stream, timeout);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus *status)
{
	struct hccld_stream *found;
	int r;

	if (!status)
		return null_error(__func__, "status");
	r = hccld_stream_get(stream, &found);
	if (r == 0)
		r = hccld_stream_query(found);
	if (r < 0)
		return hccld_acl_result(r);
	*status = r ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
	return ACL_SUCCESS;
}
