/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiling, in libmsprofiler.so, libascendcl.so and libacl_rt.so. Arguments and order are checked; no profile is written (profile.h).
 * Nothing is kept in this file: all three libraries may be loaded at the same time.
 */
#include "acl/acl_prof.h"
#include "client/argument.h"
#include "client/error.h"
#include "client/profile.h"

aclError aclprofInit(const char *profilerResultPath, size_t length)
{
	if (!profilerResultPath)
		return null_error(__func__, "profilerResultPath");
	return hccld_profile_init(profilerResultPath, length);
}

aclError aclprofFinalize(void)
{
	return hccld_profile_finalize();
}

aclError aclprofStart(const aclprofConfig *profilerConfig)
{
	if (!profilerConfig)
		return null_error(__func__, "profilerConfig");
	return hccld_profile_start((const struct hccld_profile_config *)profilerConfig);
}

aclError aclprofStop(const aclprofConfig *profilerConfig)
{
	if (!profilerConfig)
		return null_error(__func__, "profilerConfig");
	return hccld_profile_stop((const struct hccld_profile_config *)profilerConfig);
}

aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums,
				   aclprofAicoreMetrics aicoreMetrics,
				   const aclprofAicoreEvents *aicoreEvents, uint64_t dataTypeConfig)
{
	(void)aicoreEvents;
	if ((unsigned int)aicoreMetrics > ACL_AICORE_MEMORY_ACCESS &&
	    aicoreMetrics != ACL_AICORE_NONE) {
		hccld_error(CAUSE_ARGUMENT,
			    "%s: aicoreMetrics is %d, which aclprofAicoreMetrics does not have",
			    __func__, (int)aicoreMetrics);
		return NULL;
	}
	return (aclprofConfig *)hccld_profile_config_new(deviceIdList, deviceNums, dataTypeConfig);
}

aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig)
{
	if (!profilerConfig)
		return null_error(__func__, "profilerConfig");
	return hccld_profile_config_free((const struct hccld_profile_config *)profilerConfig);
}

aclError aclprofSetConfig(aclprofConfigType configType, const char *config, size_t configLength)
{
	if (!config || configLength == 0)
		return null_error(__func__, config ? "configLength" : "config");
	if (configType <= ACL_PROF_ARGS_MIN || configType >= ACL_PROF_ARGS_MAX)
		return hccld_acl_result(hccld_error(
			CAUSE_ARGUMENT,
			"%s: configType is %d, which aclprofConfigType does not have", __func__,
			(int)configType));
	return ACL_SUCCESS;
}

void *aclprofCreateStamp(void)
{
	return hccld_profile_stamp_new();
}

void aclprofDestroyStamp(void *stamp)
{
	hccld_profile_stamp_free(stamp);
}

aclError aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msgLen)
{
	if (!stamp || !msg || msgLen == 0)
		return null_error(__func__, !stamp ? "stamp" : msg ? "msgLen" : "msg");
	return hccld_profile_stamp_check(__func__, stamp);
}

aclError aclprofMark(void *stamp)
{
	return stamp ? hccld_profile_stamp_check(__func__, stamp) : null_error(__func__, "stamp");
}

aclError aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream)
{
	if (!msg)
		return null_error(__func__, "msg");
	return hccld_profile_mark(msgLen, stream);
}

aclError aclprofPush(void *stamp)
{
	return stamp ? hccld_profile_push(stamp) : null_error(__func__, "stamp");
}

aclError aclprofPop(void)
{
	return hccld_profile_pop();
}

aclError aclprofRangeStart(void *stamp, uint32_t *rangeId)
{
	if (!stamp || !rangeId)
		return null_error(__func__, stamp ? "rangeId" : "stamp");
	return hccld_profile_range_start(stamp, rangeId);
}

aclError aclprofRangeStop(uint32_t rangeId)
{
	return hccld_profile_range_stop(rangeId);
}
