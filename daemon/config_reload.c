/* SPDX-License-Identifier: Apache-2.0 */
/* A new configuration for a running daemon: all of it is right, or nothing changes. */
#include "daemon/config.h"

#include <errno.h>
#include <string.h>

static void say_in_log(void *data, const char *problem)
{
	(void)data;
	log_error("%s", problem);
}

/* One setting whose value is another one now. True: it is taken over. */
static bool take_over(const struct setting *setting, struct config *config, struct config *fresh)
{
	char before[SETTING_TEXT_MAX], after[SETTING_TEXT_MAX];

	setting_format(setting, config, before, sizeof(before));
	setting_format(setting, fresh, after, sizeof(after));
	/* an automatic value stays the one that was found at the start */
	if (strcmp(before, after) == 0 || (config_origin(config, setting)->is_word &&
					   config_origin(fresh, setting)->is_word)) {
		/* it may have moved to another line */
		*config_origin(config, setting) = *config_origin(fresh, setting);
		return false;
	}
	if (!setting->is_reloadable) {
		log_warning("%s stays %s; %s needs a restart", setting->key, before, after);
		return false;
	}
	memcpy((char *)config + setting->offset, (char *)fresh + setting->offset, setting->size);
	*config_origin(config, setting) = *config_origin(fresh, setting);
	log_notice("%s is %s now, was %s", setting->key, after, before);
	return true;
}

int config_reload(int argc, char **argv, struct config *config)
{
	static const struct log_fields refused = { .event = EVENT_RELOAD_REFUSED };
	static const struct log_fields reloaded = { .event = EVENT_RELOADED };
	struct config_report report = { .say = say_in_log };
	struct config fresh;
	int changed = 0;

	if (config_load(argc, argv, &report, &fresh) < 0) {
		log_event(LOG_LEVEL_ERROR, &refused,
			  "the configuration has %u error%s: all settings stay as they are",
			  report.count, report.count == 1 ? "" : "s");
		return -EINVAL;
	}
	for (size_t i = 0; i < config_setting_count; i++)
		changed += take_over(&config_settings[i], config, &fresh);
	memcpy(config->files, fresh.files, sizeof(config->files));
	log_event(LOG_LEVEL_NOTICE, &reloaded,
		  "the configuration was read again: %d setting%s changed", changed,
		  changed == 1 ? "" : "s");
	return changed;
}
