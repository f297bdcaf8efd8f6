/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HcclCommConfig: which of its fields the caller's version has, and what they may hold. The struct has grown with every release; its
 * first 24 bytes say how large the caller's is and which version filled it in. Pure, but for the environment.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "client/comm.h"
#include "client/comm_settings.h"
#include "client/environment.h"
#include "client/error.h"

/* What HcclCommConfigInit writes into `reserved`. */
struct config_info {
	uint64_t size;
	uint32_t magic;
	uint32_t version;
	uint64_t zero;
};
static_assert(sizeof(struct config_info) == HCCL_COMM_CONFIG_INFO_BYTES, "layout");

/* Ends of the struct by version: the last field that version 1, 2, ... has. */
static const uint16_t version_ends[] = {
	[1] = offsetof(HcclCommConfig, hcclCommName),
	[2] = offsetof(HcclCommConfig, hcclUdi),
	[3] = offsetof(HcclCommConfig, hcclOpExpansionMode),
	[4] = offsetof(HcclCommConfig, hcclRdmaTrafficClass),
	[5] = offsetof(HcclCommConfig, hcclWorldRankID),
	[6] = offsetof(HcclCommConfig, aclGraphZeroCopyEnable),
	[7] = offsetof(HcclCommConfig, hcclExecTimeOut),
	[8] = offsetof(HcclCommConfig, hcclBufferName),
	[9] = offsetof(HcclCommConfig, hcclQos),
	[10] = sizeof(HcclCommConfig),
};
#define VERSION_NEWEST (sizeof(version_ends) / sizeof(version_ends[0]) - 1)

/* The bytes the caller has filled in, over defaults for the others. */
static int config_copy(const HcclCommConfig *given, HcclCommConfig *ret_config)
{
	struct config_info info;
	uint64_t size;

	memcpy(&info, given, sizeof(info));
	if (info.magic != HCCL_COMM_CONFIG_MAGIC_WORD)
		return hccld_error(CAUSE_ARGUMENT, "config: its magic word is 0x%x, expected 0x%x; start with HcclCommConfigInit",
				   info.magic, HCCL_COMM_CONFIG_MAGIC_WORD);
	if (info.version < 1)
		return hccld_error(CAUSE_ARGUMENT, "config: its version is 0, expected 1 to %u; start with HcclCommConfigInit",
				   HCCL_COMM_CONFIG_VERSION);
	if (info.size < version_ends[1])
		return hccld_error(CAUSE_ARGUMENT, "config: its size is %llu bytes, expected at least %u; start with HcclCommConfigInit",
				   (unsigned long long)info.size, version_ends[1]);
	memset(ret_config, 0, sizeof(*ret_config));
	ret_config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
	ret_config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
	ret_config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
	ret_config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
	ret_config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
	ret_config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
	size = version_ends[info.version < VERSION_NEWEST ? info.version : VERSION_NEWEST];
	memcpy(ret_config, given, size < info.size ? size : info.size);
	return 0;
}

static int check_text(const char *field, const char *text, size_t size)
{
	if (memchr(text, '\0', size))
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "config: %s has no terminating NUL in its %zu bytes", field, size);
}

static int check_numbers(const HcclCommConfig *config)
{
	if (config->hcclBufferSize == 0)
		return hccld_error(CAUSE_ARGUMENT, "config: hcclBufferSize is 0, expected at least 1 (MB)");
	if (config->hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET && config->hcclDeterministic > 2)
		return hccld_error(CAUSE_ARGUMENT, "config: hcclDeterministic is %u, expected 0 (off) or 1 (on)",
				   config->hcclDeterministic);
	if (config->hcclRdmaTrafficClass != HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET &&
	    (config->hcclRdmaTrafficClass > 255 || config->hcclRdmaTrafficClass % 4))
		return hccld_error(CAUSE_ARGUMENT, "config: hcclRdmaTrafficClass is %u, expected a multiple of 4 from 0 to 255",
				   config->hcclRdmaTrafficClass);
	if (config->hcclRdmaServiceLevel != HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET && config->hcclRdmaServiceLevel > 7)
		return hccld_error(CAUSE_ARGUMENT, "config: hcclRdmaServiceLevel is %u, expected 0 to 7", config->hcclRdmaServiceLevel);
	if (config->aclGraphZeroCopyEnable > 1)
		return hccld_error(CAUSE_ARGUMENT, "config: aclGraphZeroCopyEnable is %u, expected 0 or 1", config->aclGraphZeroCopyEnable);
	return 0;
}

/* Strict reduction order exists on A2 alone. */
static int check_strict(const HcclCommConfig *config)
{
	const char *soc_name;
	bool known;
	int r;

	if (config->hcclDeterministic != 2)
		return 0;
	r = hccld_strict_is_known(&known, &soc_name);
	if (r < 0 || known)
		return r;
	return hccld_error(CAUSE_ARGUMENT, "config: hcclDeterministic is 2 (strict), which %s does not have; expected 0 or 1", soc_name);
}

static int check_texts(const HcclCommConfig *config)
{
	int r;

	r = check_text("hcclCommName", config->hcclCommName, sizeof(config->hcclCommName));
	if (r == 0)
		r = check_text("hcclUdi", config->hcclUdi, sizeof(config->hcclUdi));
	if (r == 0)
		r = check_text("hcclAlgo", config->hcclAlgo, sizeof(config->hcclAlgo));
	if (r == 0)
		r = check_text("hcclRetryEnable", config->hcclRetryEnable, sizeof(config->hcclRetryEnable));
	if (r == 0)
		r = check_text("hcclRetryParams", config->hcclRetryParams, sizeof(config->hcclRetryParams));
	if (r == 0)
		r = check_text("hcclBufferName", config->hcclBufferName, sizeof(config->hcclBufferName));
	return r;
}

static int check_form(const char *field, const char *text, bool is_good, const char *form)
{
	if (!*text || is_good)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "config: %s is \"%.64s\"; expected %s", field, text, form);
}

/* HCCL checks it last. No environment variable stands for it. */
static int check_qos(uint32_t qos)
{
	if (qos == HCCL_COMM_QOS_CONFIG_NOT_SET || qos <= COMM_QOS_MAX)
		return 0;
	return hccld_error(CAUSE_ARGUMENT, "config: hcclQos is %u, expected 0 to %u", qos, COMM_QOS_MAX);
}

/* What is shown of it, over the environment's settings; texts have been found terminated. */
static int settings_read(const HcclCommConfig *config, struct comm_settings *settings)
{
	uint8_t levels = settings->retry_levels;
	int r;

	r = check_form("hcclAlgo", config->hcclAlgo, hccld_algo_check(config->hcclAlgo), HCCLD_ALGO_FORM);
	if (r == 0)
		r = check_form("hcclRetryEnable", config->hcclRetryEnable, hccld_retry_enable_parse(config->hcclRetryEnable, &levels),
			       HCCLD_RETRY_ENABLE_FORM);
	if (r == 0)
		r = check_form("hcclRetryParams", config->hcclRetryParams, hccld_retry_params_parse(config->hcclRetryParams, settings),
			       HCCLD_RETRY_PARAMS_FORM);
	if (r < 0)
		return r;
	settings->retry_levels = levels;
	if (config->hcclBufferSize != HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET)
		settings->buffer_mb = config->hcclBufferSize;
	if (config->hcclDeterministic != HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET)
		settings->deterministic = (uint8_t)config->hcclDeterministic;
	if (config->hcclOpExpansionMode > 6)
		fprintf(stderr, "hccld: config: hcclOpExpansionMode is %u, expected 0 to 6; the default is used\n",
			config->hcclOpExpansionMode);
	else if (config->hcclOpExpansionMode)
		settings->op_expansion_mode = (uint8_t)config->hcclOpExpansionMode;
	return 0;
}

static uint32_t timeout_ms(uint64_t seconds)
{
	return seconds > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)seconds * 1000;
}

int hccld_comm_config_default(struct hccld_comm_config *ret_config)
{
	int r = hccld_environment_check();

	if (r < 0)
		return r;
	*ret_config = (struct hccld_comm_config){ .timeout_ms = hccld_environment_exec_timeout_ms(),
						  .settings = hccld_environment_settings() };
	ret_config->settings.deterministic = hccld_deterministic();
	return 0;
}

int hccld_comm_config_read(const HcclCommConfig *given, struct hccld_comm_config *ret_config)
{
	struct hccld_comm_config result;
	HcclCommConfig config;
	int r;

	r = hccld_comm_config_default(&result);
	if (r == 0)
		r = config_copy(given, &config);
	if (r == 0)
		r = check_numbers(&config);
	if (r == 0)
		r = check_texts(&config);
	if (r == 0)
		r = check_strict(&config);
	if (r == 0)
		r = settings_read(&config, &result.settings);
	if (r == 0)
		r = check_qos(config.hcclQos);
	if (r < 0)
		return r;
	if (config.hcclExecTimeOut >= 0)
		result.timeout_ms = timeout_ms((uint64_t)config.hcclExecTimeOut);
	else if (config.hcclExecTimeOut != HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET)
		fprintf(stderr, "hccld: config: hcclExecTimeOut is %d, expected at least 0 (seconds); HCCL_EXEC_TIMEOUT counts\n",
			config.hcclExecTimeOut);
	if (config.hcclQos != HCCL_COMM_QOS_CONFIG_NOT_SET)
		result.settings.qos = (uint8_t)(1 + config.hcclQos);
	result.job = config.hcclJobID;
	strcpy(result.name, config.hcclCommName);
	strcpy(result.udi, config.hcclUdi);
	*ret_config = result;
	return 0;
}
