/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl ping: is the daemon of this node alive, both its threads? */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/clock.h"
#include "proto/feature.h"

#define PING_TIMEOUT_MS 5000u

/* Others than those of most commands: a probe wants one bit more. */
enum ping_status {
	PING_ALIVE = 0,
	PING_STUCK = 1, /* also what query.c ends with when the time is over */
	PING_ABSENT = 2,
};

static const char help[] =
	"Usage: hcclctl ping [--local] [--quiet] [--timeout MS] [OPTIONS]\n\n"
	"Asks the daemon of this node for a sign of its control thread and of its engine, and prints how long\n"
	"that took.\n\n"
	"      --local        this node's daemon; there is nothing else to ping yet\n"
	"      --quiet        no output: the exit status says it all\n"
	"      --timeout MS   how long it may take (default 5000)\n\n"
	"Exit status: 0 both answer, 1 the daemon is there and does not answer in time, 2 no daemon, or wrong\n"
	"usage.\n";

static void print_result(const Hccld__Control__PingReply *reply, uint64_t round_trip_us, bool json)
{
	cJSON *root;

	if (!json) {
		printf("alive: round trip %.3f ms, of which the engine %.3f ms\n",
		       (double)round_trip_us / 1000, (double)reply->engine_us / 1000);
		return;
	}
	root = cJSON_CreateObject();
	cJSON_AddBoolToObject(root, "alive", true);
	json_number(root, "round_trip_us", round_trip_us);
	json_number(root, "engine_us", reply->engine_us);
	json_print(root);
}

static int ping(const struct options *options, bool quiet)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Ping body = HCCLD__CONTROL__PING__INIT;
	struct hccld_call call;
	struct query *query;
	uint64_t start;
	int r;

	r = query_open(&query);
	if (r < 0) {
		if (!quiet)
			query_complain(r);
		return r == -ENOTCONN || r == -EACCES ? PING_ABSENT : PING_STUCK;
	}
	if (quiet ? !(query_hello(query)->features & HCCLD_FEATURE_TOOLS) :
		    query_lacks(query, HCCLD_FEATURE_TOOLS, "ping")) {
		query_close(query);
		return PING_STUCK;
	}
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_PING;
	request.ping = &body;
	start = clock_now_ns();
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_PING, &call);
	query_close(query);
	if (r < 0) {
		if (!quiet)
			query_complain(r);
		return r == -ENOTCONN ? PING_ABSENT : PING_STUCK;
	}
	if (!quiet)
		print_result(call.reply->ping, (clock_now_ns() - start) / 1000, options->json);
	hccld_call_end(&call);
	return PING_ALIVE;
}

int command_ping(int argc, char **argv)
{
	const char *timeout = NULL;
	bool quiet = false;
	const struct extra_option extra[] = {
		{ "local", OPTION_FLAG, NULL, NULL },
		{ "quiet", OPTION_FLAG, &quiet, NULL },
		{ "timeout", OPTION_VALUE, NULL, &timeout },
	};
	const struct command_line line = { .help = help, .extra = extra, .extra_count = 3 };
	uint32_t timeout_ms = PING_TIMEOUT_MS;
	struct options options;
	int status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	if (timeout && text_number(timeout, 1, 3600000, &timeout_ms) < 0) {
		complain("--timeout %s: not a number of milliseconds, 1 to 3600000", timeout);
		return STATUS_USAGE;
	}
	query_set_timeout(timeout_ms);
	query_set_quiet(quiet);
	return ping(&options, quiet);
}
