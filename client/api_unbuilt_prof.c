/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not built yet in libmsprofiler.so, libascendcl.so and libacl_rt.so: profiling. One line per
 * function, in the order of the headers: it answers "not supported" with a text that names it.
 * Whoever builds one takes its line away.
 */
#include "client/unbuilt.h"
#include "acl/acl_prof.h"

/* acl/acl_prof.h */
UNBUILT_ACL(aclprofInit, (const char *profilerResultPath, size_t length))
UNBUILT_ACL(aclprofFinalize, (void))
UNBUILT_ACL(aclprofStart, (const aclprofConfig *profilerConfig))
UNBUILT_ACL(aclprofStop, (const aclprofConfig *profilerConfig))
UNBUILT_ACL_POINTER(aclprofConfig *, aclprofCreateConfig, (uint32_t *deviceIdList,
		uint32_t deviceNums, aclprofAicoreMetrics aicoreMetrics,
		const aclprofAicoreEvents *aicoreEvents, uint64_t dataTypeConfig))
UNBUILT_ACL(aclprofDestroyConfig, (const aclprofConfig *profilerConfig))
UNBUILT_ACL(aclprofSetConfig, (aclprofConfigType configType, const char *config,
		size_t configLength))
