/* SPDX-License-Identifier: Apache-2.0 */
/* State of profiling in this process. */
#include "client/profile.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "acl/acl_prof.h"
#include "client/device.h"
#include "client/error.h"

#define PATH_LENGTH_MAX 4096u
#define KNOWN_DATA                                                                            \
	(ACL_PROF_ACL_API | ACL_PROF_TASK_TIME | ACL_PROF_AICORE_METRICS | ACL_PROF_AICPU |   \
	 ACL_PROF_L2CACHE | ACL_PROF_HCCL_TRACE | ACL_PROF_TRAINING_TRACE |                   \
	 ACL_PROF_MSPROFTX | ACL_PROF_RUNTIME_API | ACL_PROF_TASK_TIME_L0 |                   \
	 ACL_PROF_TASK_TIME_L2)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialized;
static const struct hccld_profile_config *running;
static struct hccld_profile_config *configs; /* those that exist: a handle is looked up, never followed */

static int state_error(int code, const char *text)
{
	hccld_error(CAUSE_NONE, "%s", text);
	return code;
}

int hccld_profile_init(const char *path, size_t length)
{
	char copy[PATH_LENGTH_MAX];
	struct stat st;
	int r = 0;

	if (length == 0 || length >= sizeof(copy) || strnlen(path, length + 1) != length)
		return hccld_acl_result(hccld_error(
			CAUSE_NULL, "aclprofInit: length is %zu, which is not that of the path",
			length));
	memcpy(copy, path, length);
	copy[length] = 0;
	if (stat(copy, &st) < 0 || !S_ISDIR(st.st_mode) || access(copy, W_OK) < 0) {
		hccld_error(CAUSE_NONE, "aclprofInit: %.256s is no directory to write into", copy);
		return ACL_ERROR_INVALID_FILE;
	}
	pthread_mutex_lock(&mutex);
	if (is_initialized)
		r = state_error(ACL_ERROR_REPEAT_INITIALIZE,
				"aclprofInit was called before; call aclprofFinalize first");
	is_initialized = true;
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_profile_finalize(void)
{
	int r = 0;

	pthread_mutex_lock(&mutex);
	if (!is_initialized)
		r = state_error(ACL_ERROR_PROF_NOT_RUN,
				"aclprofFinalize: aclprofInit was not called");
	is_initialized = false;
	running = NULL;
	pthread_mutex_unlock(&mutex);
	return r;
}

/* With `mutex`: where it hangs, or NULL. */
static struct hccld_profile_config **config_find(const struct hccld_profile_config *config)
{
	for (struct hccld_profile_config **at = &configs; *at; at = &(*at)->next)
		if (*at == config)
			return at;
	return NULL;
}

static int config_error(const char *function)
{
	return hccld_acl_result(hccld_error(
		CAUSE_NULL, "%s: the configuration is not one of aclprofCreateConfig, or was destroyed",
		function));
}

int hccld_profile_start(const struct hccld_profile_config *config)
{
	int r = 0;

	pthread_mutex_lock(&mutex);
	if (!config_find(config))
		r = config_error("aclprofStart");
	else if (!is_initialized)
		r = state_error(ACL_ERROR_PROF_NOT_RUN, "aclprofStart: aclprofInit was not called");
	else if (running)
		r = state_error(ACL_ERROR_PROF_ALREADY_RUN,
				"aclprofStart was called before; call aclprofStop first");
	else
		running = config;
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_profile_stop(const struct hccld_profile_config *config)
{
	int r = 0;

	pthread_mutex_lock(&mutex);
	if (!config_find(config))
		r = config_error("aclprofStop");
	else if (!is_initialized || !running)
		r = state_error(ACL_ERROR_PROF_NOT_RUN, "aclprofStop: aclprofStart was not called");
	else if (running != config)
		r = hccld_acl_result(hccld_error(
			CAUSE_NULL,
			"aclprofStop: the configuration is not the one that aclprofStart was given"));
	else
		running = NULL;
	pthread_mutex_unlock(&mutex);
	return r;
}

bool hccld_profile_is_running(void)
{
	bool is_running;

	pthread_mutex_lock(&mutex);
	is_running = running != NULL;
	pthread_mutex_unlock(&mutex);
	return is_running;
}

struct hccld_profile_config *hccld_profile_config_new(const uint32_t *devices, uint32_t count,
						      uint64_t data)
{
	struct hccld_profile_config *config;
	uint32_t number;

	if (count > HCCLD_DEVICES_MAX || (count && !devices) ||
	    (!count && data != ACL_PROF_MSPROFTX)) {
		hccld_error(CAUSE_ARGUMENT, "aclprofCreateConfig: deviceNums is %u", count);
		return NULL;
	}
	if (data & ~KNOWN_DATA) {
		hccld_error(CAUSE_ARGUMENT,
			    "aclprofCreateConfig: dataTypeConfig is 0x%llx, which has unknown bits",
			    (unsigned long long)data);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (hccld_device_number((int32_t)devices[i], &number) < 0)
			return NULL;
		for (uint32_t k = 0; k < i; k++)
			if (devices[k] == devices[i]) {
				hccld_error(CAUSE_ARGUMENT,
					    "aclprofCreateConfig: device %u is named twice",
					    devices[i]);
				return NULL;
			}
	}
	config = calloc(1, sizeof(*config));
	if (!config) {
		hccld_error(CAUSE_HOST_MEMORY, "no memory for a configuration");
		return NULL;
	}
	pthread_mutex_lock(&mutex);
	config->next = configs;
	configs = config;
	pthread_mutex_unlock(&mutex);
	return config;
}

int hccld_profile_config_free(const struct hccld_profile_config *config)
{
	struct hccld_profile_config **at, *ended = NULL;
	int r = 0;

	pthread_mutex_lock(&mutex);
	at = config_find(config);
	if (!at) {
		r = config_error("aclprofDestroyConfig");
	} else if (running == config) {
		r = state_error(ACL_ERROR_PROF_ALREADY_RUN,
				"aclprofDestroyConfig: profiling runs with it; call aclprofStop first");
	} else {
		ended = *at;
		*at = ended->next;
	}
	pthread_mutex_unlock(&mutex);
	free(ended);
	return r;
}
