/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and what a program asks about devices, in libascendcl.so and libacl_rt.so. */
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "client/argument.h"
#include "client/current.h"
#include "client/device.h"
#include "client/error.h"
#include "client/query.h"
#include "client/stream.h"

static int number_error(const char *function, const char *name, long long value,
			const char *expected)
{
	return hccld_acl_result(hccld_error(CAUSE_ARGUMENT, "%s: %s is %lld; expected %s",
					    function, name, value, expected));
}

/* ---- contexts ---- */

aclError aclrtCreateContext(aclrtContext *context, int32_t deviceId)
{
	if (!context)
		return null_error(__func__, "context");
	return hccld_acl_result(hccld_context_create(deviceId, context));
}

aclError aclrtDestroyContext(aclrtContext context)
{
	if (!context)
		return null_error(__func__, "context");
	return hccld_acl_result(hccld_context_destroy(context));
}

aclError aclrtSetCurrentContext(aclrtContext context)
{
	if (!context)
		return null_error(__func__, "context");
	return hccld_acl_result(hccld_context_set_current(context));
}

aclError aclrtGetCurrentContext(aclrtContext *context)
{
	if (!context)
		return null_error(__func__, "context");
	return hccld_acl_result(hccld_context_get_current(context));
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream *stream)
{
	struct hccld_stream *found;
	int r;

	if (!stream)
		return null_error(__func__, "stream");
	r = hccld_stream_get(NULL, &found);
	if (r == 0)
		*stream = found;
	return hccld_acl_result(r);
}

/* ---- numbers of devices ---- */

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t *const phyDevId)
{
	int r;

	if (!phyDevId)
		return null_error(__func__, "phyDevId");
	r = hccld_device_exists(logicDevId);
	if (r == 0)
		*phyDevId = logicDevId;
	return hccld_acl_result(r);
}

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t *const logicDevId)
{
	int r;

	if (!logicDevId)
		return null_error(__func__, "logicDevId");
	r = hccld_device_exists(phyDevId);
	if (r == 0)
		*logicDevId = phyDevId;
	return hccld_acl_result(r);
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t *const logicDevId)
{
	uint32_t number;
	int r;

	if (!logicDevId)
		return null_error(__func__, "logicDevId");
	r = hccld_device_number(userDevid, &number);
	if (r == 0)
		*logicDevId = (int32_t)number;
	return hccld_acl_result(r);
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t *const userDevid)
{
	if (!userDevid)
		return null_error(__func__, "userDevid");
	return hccld_acl_result(hccld_device_logical(logicDevId, userDevid));
}

/* ---- what a device is ---- */

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t *value)
{
	if (!value)
		return null_error(__func__, "value");
	return hccld_acl_result(hccld_query_attribute((int32_t)deviceId, (int)attr, value));
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
				  int32_t *value)
{
	uint32_t number;
	int r;

	if (!value)
		return null_error(__func__, "value");
	if (devFeatureType != ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV &&
	    devFeatureType != ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV)
		return number_error(__func__, "devFeatureType", (long long)devFeatureType,
				    "a value of aclrtDevFeatureType");
	r = hccld_device_number(deviceId, &number);
	if (r == 0)
		*value = ACL_DEV_FEATURE_NOT_SUPPORT;
	return hccld_acl_result(r);
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus *deviceStatus)
{
	struct hccld_device_state state;
	int r;

	if (!deviceStatus)
		return null_error(__func__, "deviceStatus");
	/* asked of the daemon: it answers, so its devices work */
	r = hccld_device_describe(deviceId, &state);
	if (r == 0)
		*deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
	return hccld_acl_result(r);
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo *utilizationInfo)
{
	struct hccld_device_state state;
	int r;

	if (!utilizationInfo)
		return null_error(__func__, "utilizationInfo");
	r = hccld_device_describe(deviceId, &state);
	if (r < 0)
		return hccld_acl_result(r);
	/* there are no cores that could be busy */
	utilizationInfo->cubeUtilization = 0;
	utilizationInfo->vectorUtilization = 0;
	utilizationInfo->aicpuUtilization = 0;
	utilizationInfo->memoryUtilization =
		state.memory_total ? (int32_t)(state.memory_used * 100 / state.memory_total) : 0;
	return ACL_SUCCESS;
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid *uuid)
{
	struct hccld_device_state state;
	int r;

	if (!uuid)
		return null_error(__func__, "uuid");
	r = hccld_device_describe(deviceId, &state);
	if (r == 0)
		memcpy(uuid->bytes, state.uuid, sizeof(uuid->bytes));
	return hccld_acl_result(r);
}

aclError aclrtDeviceGetBareTgid(int32_t *pid)
{
	struct hccld_device_state state;
	int r;

	if (!pid)
		return null_error(__func__, "pid");
	r = hccld_device_describe(0, &state);
	if (r == 0)
		*pid = state.pid ? state.pid : (int32_t)getpid();
	return hccld_acl_result(r);
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo *memUceInfoArray, size_t arraySize,
			    size_t *retSize)
{
	uint32_t number;
	int r;

	if (!memUceInfoArray || !retSize)
		return null_error(__func__, retSize ? "memUceInfoArray" : "retSize");
	if (arraySize == 0)
		return number_error(__func__, "arraySize", 0, "at least 1");
	r = hccld_device_number(deviceId, &number);
	/* a page that the machine takes away ends the operation that meets it; nothing is collected */
	if (r == 0)
		*retSize = 0;
	return hccld_acl_result(r);
}

/* ---- settings ---- */

aclError aclrtSetTsDevice(aclrtTsId tsId)
{
	struct hccld_context *context;

	if (tsId != ACL_TS_ID_AICORE && tsId != ACL_TS_ID_AIVECTOR)
		return number_error(__func__, "tsId", (long long)tsId, "0 or 1");
	return hccld_acl_result(hccld_context_current(&context));
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
{
	struct hccld_context *context;

	/* nothing here computes: there is nothing that the mode could change */
	if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN)
		return number_error(__func__, "mode", (long long)mode, "0 or 1");
	return hccld_acl_result(hccld_context_current(&context));
}

static int limit_check(const char *function, aclrtDevResLimitType type)
{
	if (type == ACL_RT_DEV_RES_CUBE_CORE || type == ACL_RT_DEV_RES_VECTOR_CORE)
		return 0;
	return number_error(function, "type", (long long)type, "0 or 1");
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t *value)
{
	int r;

	if (!value)
		return null_error(__func__, "value");
	r = limit_check(__func__, type);
	return r ? r : hccld_acl_result(hccld_query_limit(deviceId, (uint32_t)type, value));
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)
{
	int r = limit_check(__func__, type);

	return r ? r : hccld_acl_result(hccld_query_set_limit(deviceId, (uint32_t)type, value));
}

aclError aclrtResetDeviceResLimit(int32_t deviceId)
{
	return hccld_acl_result(hccld_query_reset_limits(deviceId));
}

/* ---- peers ---- */

aclError aclrtDeviceCanAccessPeer(int32_t *canAccessPeer, int32_t deviceId, int32_t peerDeviceId)
{
	if (!canAccessPeer)
		return null_error(__func__, "canAccessPeer");
	return hccld_acl_result(hccld_peer_check(deviceId, peerDeviceId, canAccessPeer));
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)
{
	if (flags)
		return number_error(__func__, "flags", (long long)flags, "0");
	return hccld_acl_result(hccld_peer_enable(peerDeviceId, true));
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)
{
	return hccld_acl_result(hccld_peer_enable(peerDeviceId, false));
}

aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t *status)
{
	if (!status)
		return null_error(__func__, "status");
	return hccld_acl_result(hccld_peer_status(deviceId, peerDeviceId, status));
}

/* ---- versions ---- */

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
	if (!version)
		return null_error(__func__, "version");
	if ((unsigned int)name > ACL_PKG_NAME_DRIVER)
		return number_error(__func__, "name", (long long)name,
				    "a value of aclCANNPackageName");
	memset(version, 0, sizeof(*version));
	strcpy(version->version, HCCLD_CANN_VERSION);
	strcpy(version->majorVersion, "9");
	strcpy(version->minorVersion, "0");
	strcpy(version->releaseVersion, "0");
	strcpy(version->patchVersion, "0");
	return ACL_SUCCESS;
}

aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
{
	if (!pkgName || !versionStr)
		return null_error(__func__, pkgName ? "versionStr" : "pkgName");
	if (!hccld_query_is_package(pkgName))
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT,
						    "%s: there is no package \"%.64s\"", __func__,
						    pkgName));
	strcpy(versionStr, HCCLD_CANN_VERSION);
	return ACL_SUCCESS;
}

aclError aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
	if (!pkgName || !versionNum)
		return null_error(__func__, pkgName ? "versionNum" : "pkgName");
	if (!hccld_query_is_package(pkgName))
		return hccld_acl_result(hccld_error(CAUSE_ARGUMENT,
						    "%s: there is no package \"%.64s\"", __func__,
						    pkgName));
	*versionNum = HCCLD_CANN_VERSION_NUMBER;
	return ACL_SUCCESS;
}
