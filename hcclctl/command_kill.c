/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl kill: ends sessions; their processes live on, and are told. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"
#include "proto/feature.h"

static const char help[] =
	"Usage: hcclctl kill [OPTIONS] SESSION|pid:PID...\n\n"
	"Ends sessions, by their numbers ('hcclctl ps') or the processes that have them: what they hold is\n"
	"freed, and their peers are told who did it. The processes live on; their next calls fail, and say\n"
	"why. Sessions of other users: as root, or as the daemon's own user.\n\n"
	"Exit status: 0 all have ended, 1 at least one has not, 2 wrong usage, 3 no daemon.\n";

static int parse_target(const char *text, Hccld__Control__KillSession *ret_kill)
{
	uint32_t pid;

	hccld__control__kill_session__init(ret_kill);
	if (!strncmp(text, "pid:", 4)) {
		if (text_number(text + 4, 1, INT32_MAX, &pid) < 0)
			return -1;
		ret_kill->pid = pid;
		return 0;
	}
	return text_id(text, &ret_kill->session);
}

static void print_killed(const Hccld__Control__KillSessionReply *killed, cJSON *array)
{
	CLEANUP(freep) char *process = NULL;
	cJSON *object;

	if (!array) {
		process = text_clean(killed->process);
		printf("session %" PRIu64 " of process '%s' (pid %" PRIu32 ", uid %" PRIu32
		       ") has ended\n",
		       killed->session, process ? process : "?", killed->pid, killed->uid);
		return;
	}
	object = cJSON_CreateObject();
	json_number(object, "session", killed->session);
	json_number(object, "pid", killed->pid);
	json_number(object, "uid", killed->uid);
	json_text(object, "process", killed->process);
	json_append(array, object);
}

static int kill_one(struct query *query, const char *target, cJSON *array)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__KillSession kill_session;
	struct hccld_call call;
	int r;

	parse_target(target, &kill_session);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KILL_SESSION;
	request.kill_session = &kill_session;
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_KILL_SESSION, &call);
	if (r < 0)
		return query_complain(r);
	print_killed(call.reply->kill_session, array);
	hccld_call_end(&call);
	return STATUS_OK;
}

static int kill_all(struct query *query, char **targets, cJSON *array)
{
	int status = STATUS_OK;

	for (; *targets; targets++) {
		int r = kill_one(query, *targets, array);

		if (r != STATUS_OK)
			status = r;
		if (r == STATUS_NO_DAEMON)
			break;
	}
	return status;
}

int command_kill(int argc, char **argv)
{
	const struct command_line line = { .help = help, .takes_arguments = true };
	Hccld__Control__KillSession ignored;
	struct options options;
	struct query *query;
	cJSON *root = NULL;
	int r, status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	if (optind == argc) {
		complain("which session? '%s --help'", argv[0]);
		return STATUS_USAGE;
	}
	for (int i = optind; i < argc; i++) {
		if (parse_target(argv[i], &ignored) == 0)
			continue;
		complain("'%s' is neither a session nor pid:PID ('hcclctl ps' shows both)", argv[i]);
		return STATUS_USAGE;
	}
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	status = STATUS_STUCK;
	if (!query_lacks(query, HCCLD_FEATURE_TOOLS, "kill")) {
		root = options.json ? cJSON_CreateObject() : NULL;
		status = kill_all(query, argv + optind,
				  root ? cJSON_AddArrayToObject(root, "ended") : NULL);
		if (root)
			json_print(root);
	}
	query_close(query);
	return status;
}
