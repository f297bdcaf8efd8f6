/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl log LEVEL: what the daemon logs from now on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"

static int print_json(const char *level)
{
	cJSON *root = cJSON_CreateObject();

	json_text(root, "level", level);
	return json_print(root);
}

static const char help[] =
	"Usage: hcclctl log LEVEL [OPTIONS]\n\n"
	"What the daemon logs from now on: error, warning, notice, info or debug; what is less important is\n"
	"left out. Until it ends or reads its configuration again. For root and the daemon's own user.\n";

/* The first argument that is no option, taken out of @argv; NULL: there is none. */
static const char *take_level(int *argc, char **argv)
{
	const char *level;

	for (int i = 1; i < *argc; i++) {
		if (strcmp(argv[i], "--socket") == 0) {
			i++;
			continue;
		}
		if (argv[i][0] == '-')
			continue;
		level = argv[i];
		memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i) * sizeof(*argv));
		--*argc;
		return level;
	}
	return NULL;
}

int command_log(int argc, char **argv)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__SetLogLevel message = HCCLD__CONTROL__SET_LOG_LEVEL__INIT;
	const char *level = take_level(&argc, argv);
	struct options options;
	struct hccld_call call;
	struct query *query;
	int r, status;

	if (options_parse(argc, argv, help, false, &options, &status))
		return status;
	if (!level) {
		complain("which level? error, warning, notice, info or debug ('hcclctl config' shows the one in effect)");
		return STATUS_USAGE;
	}
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	message.level = (char *)level;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_SET_LOG_LEVEL;
	request.set_log_level = &message;
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY__NOT_SET, &call);
	if (r == 0)
		hccld_call_end(&call);
	query_close(query);
	if (r == -EINVAL) { /* it is the daemon that knows its levels */
		query_complain(r);
		return STATUS_USAGE;
	}
	if (r < 0)
		return query_complain(r);
	if (options.json)
		return print_json(level);
	printf("log level: %s\n", level);
	return STATUS_OK;
}
