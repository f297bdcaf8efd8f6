/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl config: every setting of the daemon, and every variable that programs started here would read. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/variables.h"
#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/table.h"
#include "hcclctl/text.h"
#include "hcclctl/visible.h"
#include "proto/cleanup.h"

static const char help[] =
	"Usage: hcclctl config [OPTIONS]\n\n"
	"Every setting of the running daemon: its value, where that comes from, and what changes it: a reload\n"
	"(systemctl reload hccld, or SIGHUP) or a restart. Below them the environment variables that a\n"
	"program started from this shell would read, with the values that would be in effect. With -v also\n"
	"what each is for.\n";

static const char *origin_name(Hccld__Control__Setting__Origin origin)
{
	switch (origin) {
	case HCCLD__CONTROL__SETTING__ORIGIN__FILE:
		return "file";
	case HCCLD__CONTROL__SETTING__ORIGIN__ENVIRONMENT:
		return "environment";
	case HCCLD__CONTROL__SETTING__ORIGIN__COMMAND_LINE:
		return "command line";
	case HCCLD__CONTROL__SETTING__ORIGIN__REQUEST:
		return "request";
	case HCCLD__CONTROL__SETTING__ORIGIN__DEFAULT:
	default:
		return "default";
	}
}

static int print_settings(const Hccld__Control__ConfigReply *reply, bool verbose)
{
	static const struct column columns[] = {
		{ "SETTING", COLUMN_LEFT }, { "VALUE", COLUMN_LEFT },	{ "FROM", COLUMN_LEFT },
		{ "CHANGE", COLUMN_LEFT },  { "MEANING", COLUMN_WRAP },
	};
	struct table *table = table_new(columns, verbose ? 5 : 4);
	int r;

	if (!table)
		return -ENOMEM;
	for (size_t i = 0; i < reply->n_settings; i++) {
		const Hccld__Control__Setting *setting = reply->settings[i];

		table_row(table);
		table_cell(table, "[%s] %s", setting->section, setting->key);
		table_cell(table, "%s", setting->value);
		table_cell(table, "%s",
			   *setting->where ? setting->where : origin_name(setting->origin));
		table_cell(table, "%s", setting->reloadable ? "reload" : "restart");
		if (verbose)
			table_cell(table, "%s; takes %s", setting->help, setting->allowed);
	}
	r = table_print(table);
	table_free(table);
	return r;
}

static uint32_t device_count; /* of the daemon */

/* What is right depends on the daemon's devices, which the library does not ask for here; an empty list is one, too. */
static void check_devices(struct hccld_variable *variable)
{
	static char error[160];

	if (strcmp(variable->name, "ASCEND_RT_VISIBLE_DEVICES") || !getenv(variable->name))
		return;
	variable->value = getenv(variable->name);
	variable->is_set = true;
	variable->error = visible_error(device_count, error, sizeof(error));
}

static void add_variable(void *data, const struct hccld_variable *listed)
{
	struct hccld_variable checked = *listed, *variable = &checked;
	struct table *table = data;

	check_devices(variable);
	table_row(table);
	table_cell(table, "%s", variable->name);
	table_cell(table, "%s", variable->value);
	table_cell(table, "%s",
		   variable->error    ? "environment, WRONG"
		   : variable->is_set ? "environment"
				      : "default");
	table_cell(table, "%s", variable->error ? variable->error : variable->meaning);
}

static int print_variables(void)
{
	static const struct column columns[] = {
		{ "VARIABLE", COLUMN_LEFT },
		{ "VALUE HERE", COLUMN_LEFT },
		{ "FROM", COLUMN_LEFT },
		{ "MEANING", COLUMN_WRAP },
	};
	struct table *table = table_new(columns, 4);
	int r;

	if (!table)
		return -ENOMEM;
	hccld_variables_list(add_variable, table);
	r = table_print(table);
	table_free(table);
	return r;
}

static int print_text(const Hccld__Control__ConfigReply *reply, bool verbose)
{
	int r = print_settings(reply, verbose);

	if (r < 0)
		return r;
	for (size_t i = 0; i < reply->n_files; i++) {
		CLEANUP(freep)
		char *file = text_clean(reply->files[i]);

		printf("%s%s%s", i ? ", " : "\nFiles read: ", file ? file : "?",
		       i + 1 < reply->n_files ? "" : "\n");
	}
	if (!reply->n_files)
		puts("\nNo configuration file was read.");
	if (reply->log_lines_lost)
		printf("The log has lost %llu lines: nobody took them in time.\n",
		       (unsigned long long)reply->log_lines_lost);
	putchar('\n');
	return print_variables();
}

static cJSON *setting_json(const Hccld__Control__Setting *setting)
{
	cJSON *object = cJSON_CreateObject();

	json_text(object, "section", setting->section);
	json_text(object, "key", setting->key);
	json_text(object, "value", setting->value);
	json_text(object, "default", setting->default_value);
	json_text(object, "origin", origin_name(setting->origin));
	json_text(object, "where", setting->where);
	cJSON_AddBoolToObject(object, "reloadable", setting->reloadable);
	json_text(object, "allowed", setting->allowed);
	json_text(object, "help", setting->help);
	return object;
}

static void add_variable_json(void *data, const struct hccld_variable *listed)
{
	struct hccld_variable checked = *listed, *variable = &checked;
	cJSON *object = cJSON_CreateObject();

	check_devices(variable);
	json_text(object, "name", variable->name);
	json_text(object, "value", variable->value);
	json_text(object, "origin", variable->is_set ? "environment" : "default");
	if (variable->error)
		json_text(object, "error", variable->error);
	else
		cJSON_AddNullToObject(object, "error");
	json_text(object, "help", variable->meaning);
	json_append(data, object);
}

static int print_json(const Hccld__Control__ConfigReply *reply)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *settings = cJSON_AddArrayToObject(root, "settings");
	cJSON *files = cJSON_AddArrayToObject(root, "files");

	for (size_t i = 0; i < reply->n_settings; i++)
		json_append(settings, setting_json(reply->settings[i]));
	for (size_t i = 0; i < reply->n_files; i++) {
		CLEANUP(freep)
		char *file = text_clean(reply->files[i]);

		json_append(files, cJSON_CreateString(file ? file : ""));
	}
	json_number(root, "log_lines_lost", reply->log_lines_lost);
	hccld_variables_list(add_variable_json, cJSON_AddArrayToObject(root, "variables"));
	return json_print(root);
}

int command_config(int argc, char **argv)
{
	struct options options;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GetConfig get_config = HCCLD__CONTROL__GET_CONFIG__INIT;
	struct hccld_call call;
	struct query *query;
	int r, status;

	if (options_parse(argc, argv, help, true, &options, &status))
		return status;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	device_count = query_hello(query)->device_count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_CONFIG;
	request.get_config = &get_config;
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_CONFIG, &call);
	if (r == 0) {
		if (options.json)
			status = print_json(call.reply->config);
		else
			r = print_text(call.reply->config, options.verbose);
		hccld_call_end(&call);
	}
	query_close(query);
	return r < 0 ? query_complain(r) : status;
}
