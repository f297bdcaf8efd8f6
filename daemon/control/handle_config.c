/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about the daemon's settings. What they are knows the composition root: control_hooks. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/query.h"

static Hccld__Control__Setting *setting_message(struct request *request,
						const struct control_setting *setting)
{
	Hccld__Control__Setting *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__setting__init(message);
	message->section = (char *)setting->section;
	message->key = (char *)setting->key;
	message->help = (char *)setting->help;
	message->default_value = (char *)setting->initial;
	message->reloadable = setting->is_reloadable;
	message->origin = (Hccld__Control__Setting__Origin)setting->origin;
	message->value = request_string(request, setting->value);
	message->where = request_string(request, setting->where);
	message->allowed = request_string(request, setting->allowed);
	return message->value && message->where && message->allowed ? message : NULL;
}

/* One string for each line. */
static int add_files(struct request *request, Hccld__Control__ConfigReply *reply, const char *files)
{
	char *copy = request_string(request, files), *line;
	size_t count = 1;

	for (const char *p = files; *p; p++)
		count += *p == '\n';
	reply->files = request_alloc(request, count * sizeof(*reply->files));
	if (!copy || !reply->files)
		return -ENOMEM;
	while ((line = strsep(&copy, "\n")))
		if (*line)
			reply->files[reply->n_files++] = line;
	return 0;
}

int handle_get_config(struct request *request)
{
	const struct control_hooks *hooks = &request->control->options.hooks;
	Hccld__Control__ConfigReply *reply = &request->body.config;
	struct control_setting setting;

	hccld__control__config_reply__init(reply);
	reply->settings = request_alloc(request, HCCLD_SETTINGS_MAX * sizeof(*reply->settings));
	if (!reply->settings || add_files(request, reply, hooks->files(hooks->data)) < 0)
		return -ENOMEM;
	while (reply->n_settings < HCCLD_SETTINGS_MAX &&
	       hooks->setting(hooks->data, reply->n_settings, &setting)) {
		reply->settings[reply->n_settings] = setting_message(request, &setting);
		if (!reply->settings[reply->n_settings++])
			return -ENOMEM;
	}
	reply->log_lines_lost = log_lost();
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_CONFIG;
	request->reply.config = reply;
	return 0;
}

static int level_refuse(struct request *request, const char *name)
{
	char clean[32];

	text_clean(clean, sizeof(clean), name);
	return request_fail(request, CAUSE_ARGUMENT, "there is no log level '%s'; there are error, warning, notice, info and debug",
			    clean);
}

int handle_set_log_level(struct request *request)
{
	const struct control_hooks *hooks = &request->control->options.hooks;
	const char *name = request->message->set_log_level->level;
	const struct process_identity *peer = &request->connection->peer;
	enum log_level level, before = log_get_level();
	const struct log_fields fields = {
		.event = EVENT_ADMINISTRATION, .pid = peer->pid, .has_uid = true, .uid = peer->uid
	};

	if (!query_sees_all(request))
		return request_fail(request, CAUSE_PERMISSION,
				    "only root and the daemon's own user may change the log level");
	if (log_level_parse(name, &level) < 0)
		return level_refuse(request, name);
	hooks->set_log_level(hooks->data, level, peer->uid);
	log_event(LOG_LEVEL_NOTICE, &fields,
		  "uid %" PRIu32 " (pid %d) has set the log level to %s, was %s", peer->uid,
		  peer->pid, log_level_name(level), log_level_name(before));
	return 0;
}
