/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as requests see it. */
#include "daemon/config.h"

#include <inttypes.h>
#include <stdio.h>

static bool hook_setting(void *data, size_t index, struct control_setting *ret_setting)
{
	static char value[SETTING_TEXT_MAX], allowed[256];
	const struct config *config = data;
	const struct setting *setting = &config_settings[index];

	if (index >= config_setting_count)
		return false;
	setting_format(setting, config, value, sizeof(value));
	setting_describe(setting, allowed, sizeof(allowed));
	*ret_setting = (struct control_setting){
		.section = setting->section,
		.key = setting->key,
		.initial = setting->initial,
		.help = setting->help,
		.value = value,
		.where = config->origins[index].where,
		.allowed = allowed,
		.is_reloadable = setting->is_reloadable,
		.origin = config->origins[index].kind,
	};
	return true;
}

static const char *hook_files(void *data)
{
	const struct config *config = data;

	return config->files;
}

static void hook_set_log_level(void *data, uint32_t level, uint32_t uid)
{
	struct config *config = data;
	struct origin *origin = config_origin(config, config_find("log", "log_level"));

	config->log_level = level;
	origin->kind = ORIGIN_REQUEST;
	origin->is_word = false;
	snprintf(origin->where, sizeof(origin->where), "hcclctl log, by uid %" PRIu32, uid);
	log_set_level((enum log_level)level);
}

struct control_hooks config_hooks(struct config *config)
{
	return (struct control_hooks){ config, hook_setting, hook_files, hook_set_log_level };
}
