/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiling. Library libmsprofiler.so; libascendcl.so and libacl_rt.so have the functions too.
 * Any thread. ACL_ERROR_INVALID_PARAM: NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What to record; bits of dataTypeConfig. */
#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_TIME_L2 0x2000ULL

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;

typedef enum aclprofAicoreMetrics {
	ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
	ACL_AICORE_PIPE_UTILIZATION = 1,
	ACL_AICORE_MEMORY_BANDWIDTH = 2,
	ACL_AICORE_L0B_AND_WIDTH = 3,
	ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
	ACL_AICORE_MEMORY_UB = 5,
	ACL_AICORE_L2_CACHE = 6,
	ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
	ACL_AICORE_MEMORY_ACCESS = 8,
	ACL_AICORE_NONE = 255,
} aclprofAicoreMetrics;

typedef enum aclprofConfigType {
	ACL_PROF_ARGS_MIN = 0,
	ACL_PROF_STORAGE_LIMIT = 1,
	ACL_PROF_SYS_HARDWARE_MEM_FREQ = 3,
	ACL_PROF_LLC_MODE = 4,
	ACL_PROF_SYS_IO_FREQ = 5,
	ACL_PROF_SYS_INTERCONNECTION_FREQ = 6,
	ACL_PROF_DVPP_FREQ = 7,
	ACL_PROF_HOST_SYS = 8,
	ACL_PROF_HOST_SYS_USAGE = 9,
	ACL_PROF_HOST_SYS_USAGE_FREQ = 10,
	ACL_PROF_LOW_POWER_FREQ = 11,
	ACL_PROF_SYS_CPU_FREQ = 13,
	ACL_PROF_SCALE = 14,
	ACL_PROF_ARGS_MAX = 15,
} aclprofConfigType;

/* Starts profiling into a directory; @length: bytes of its path without NUL. */
aclError aclprofInit(const char *profilerResultPath, size_t length);
/* Ends profiling. */
aclError aclprofFinalize(void);
/* Begins to record. */
aclError aclprofStart(const aclprofConfig *profilerConfig);
/* Ends recording. */
aclError aclprofStop(const aclprofConfig *profilerConfig);

/*
 * Creates a configuration for @deviceNums devices that the caller ends with aclprofDestroyConfig;
 * NULL on an error.
 */
aclprofConfig *aclprofCreateConfig(uint32_t *deviceIdList, uint32_t deviceNums,
		aclprofAicoreMetrics aicoreMetrics, const aclprofAicoreEvents *aicoreEvents,
		uint64_t dataTypeConfig);

/* Frees a configuration. */
aclError aclprofDestroyConfig(const aclprofConfig *profilerConfig);
/* Sets an option; @configLength: bytes of the text. */
aclError aclprofSetConfig(aclprofConfigType configType, const char *config, size_t configLength);

/*
 * Stamps (msproftx), between aclprofStart and aclprofStop; ACL_ERROR_PROF_NOT_RUN, or NULL,
 * elsewhere. A stamp is ended with aclprofDestroyStamp. ACL_ERROR_PROFILING_FAILURE: a pop without
 * a push, a range that was not started. Behaviour: CANN's msproftx documentation.
 */
void *aclprofCreateStamp(void);
/* Frees a stamp, at any time. */
void aclprofDestroyStamp(void *stamp);
/* Gives a stamp its text; @msgLen: bytes without NUL. */
aclError aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msgLen);
/* Marks a moment. */
aclError aclprofMark(void *stamp);
/* Marks a moment of a stream (NULL: the default stream); @msgLen: 1 to 127 bytes. */
aclError aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream);
/* Begins a span of the calling thread; spans nest. */
aclError aclprofPush(void *stamp);
/* Ends the last one. */
aclError aclprofPop(void);
/* Begins a span that any thread may end. */
aclError aclprofRangeStart(void *stamp, uint32_t *rangeId);
/* Ends it. */
aclError aclprofRangeStop(uint32_t rangeId);

#ifdef __cplusplus
}
#endif
