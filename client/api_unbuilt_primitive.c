/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Not supported in libhcomm.so: lists of tasks that an AI CPU records. They answer "not supported" with a text that names them.
 */
#include "client/unbuilt.h"
#include "hcomm/hcomm_primitives.h"

/* hcomm/hcomm_primitives.h */
UNBUILT_HCOMM(HcommAicpuTsTaskCacheLookup, (const char *tag, bool *isHit))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheStart, (const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheEnd, (const char *tag))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheExecute, (const char *tag, void **addrs, uint64_t *sizes,
		uint64_t count))
UNBUILT_HCOMM(HcommAicpuTsTaskCacheClear, (const char *tag))
