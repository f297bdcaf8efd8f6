/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl drain and undrain. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/clock.h"
#include "proto/feature.h"

#define FOR_EVER UINT32_MAX /* seconds of --wait without a number */
#define LOOK_MS 100u
#define RECONNECT_MS 10000u /* a daemon that is restarted is back by then */

static const char drain_help[] =
	"Usage: hcclctl drain [--wait[=SECONDS]] [OPTIONS]\n\n"
	"No new programs and communicators are let in from now on; what runs goes on. It lasts, also over a\n"
	"restart of the daemon that keeps its state, until 'hcclctl undrain'. For root and the daemon's user.\n\n"
	"      --wait[=SECONDS]  until nothing runs any more, at most so long\n\n"
	"Exit status: 0 done, 1 refused, or something runs when the time is over, 2 wrong usage, 3 no daemon.\n";

static const char undrain_help[] =
	"Usage: hcclctl undrain [OPTIONS]\n\n"
	"New programs are let in again. For root and the daemon's user.\n\n"
	"Exit status: 0 done, 1 refused, 2 wrong usage, 3 no daemon.\n";

/* What the daemon says about it. */
struct answer {
	bool is_draining;
	uint32_t uid, sessions, comms;
	uint64_t age_ms;
};

static int ask(struct query *query, Hccld__Control__Drain__Action action, struct answer *ret_answer)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Drain drain = HCCLD__CONTROL__DRAIN__INIT;
	const Hccld__Control__DrainReply *reply;
	struct hccld_call call;
	int r;

	drain.action = action;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DRAIN;
	request.drain = &drain;
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_DRAIN, &call);
	if (r < 0)
		return r;
	reply = call.reply->drain;
	*ret_answer = (struct answer){ .is_draining = reply->draining,
				       .sessions = reply->sessions,
				       .comms = reply->comms };
	if (reply->draining) {
		ret_answer->uid = reply->draining->uid;
		ret_answer->age_ms = reply->draining->age_ms;
	}
	hccld_call_end(&call);
	return 0;
}

static void pause_ms(uint32_t ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 },
		  NULL);
}

/* Until nothing is left, or @end_ns; the connection may go, and the daemon come back. */
static int wait_empty(struct query **query, uint64_t end_ns, struct answer *answer)
{
	uint64_t lost_ns = 0;

	while (answer->sessions && clock_now_ns() < end_ns) {
		int r = 0;

		pause_ms(LOOK_MS);
		if (!*query)
			r = query_open(query);
		if (r == 0)
			r = ask(*query, HCCLD__CONTROL__DRAIN__ACTION__ASK, answer);
		if (r == 0) {
			lost_ns = 0;
			continue;
		}
		*query = query_close(*query);
		if (!lost_ns)
			lost_ns = clock_now_ns();
		if (r != -ENOTCONN || clock_now_ns() - lost_ns > RECONNECT_MS * UINT64_C(1000000))
			return r;
	}
	return 0;
}

static int print_answer(const struct answer *answer, bool json)
{
	cJSON *root;

	if (!json) {
		if (!answer->is_draining)
			puts("new programs are let in");
		else if (answer->sessions)
			printf("no new programs are let in; %" PRIu32 " session%s and %" PRIu32
			       " communicator%s run on\n",
			       answer->sessions, answer->sessions == 1 ? "" : "s", answer->comms,
			       answer->comms == 1 ? "" : "s");
		else
			puts("no new programs are let in; nothing runs");
		return STATUS_OK;
	}
	root = cJSON_CreateObject();
	cJSON_AddBoolToObject(root, "draining", answer->is_draining);
	json_number(root, "uid", answer->uid);
	json_number(root, "age_ms", answer->age_ms);
	json_number(root, "sessions", answer->sessions);
	json_number(root, "comms", answer->comms);
	return json_print(root);
}

/* The time of --wait=@seconds is over, and something runs. */
static int print_left(const struct answer *answer, uint32_t seconds, bool json)
{
	if (json)
		print_answer(answer, json);
	else
		complain("after %" PRIu32 " s %" PRIu32 " session%s and %" PRIu32 " communicator%s still run (hcclctl ps); it stays drained",
			 seconds, answer->sessions, answer->sessions == 1 ? "" : "s", answer->comms, answer->comms == 1 ? "" : "s");
	return STATUS_STUCK;
}

static int run(Hccld__Control__Drain__Action action, bool wait, uint32_t seconds, bool json)
{
	const uint64_t end_ns = seconds == FOR_EVER ? UINT64_MAX : clock_now_ns() + seconds * UINT64_C(1000000000);
	struct answer answer;
	struct query *query;
	int r, status;

	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	if (query_lacks(query, HCCLD_FEATURE_TOOLS, "drain")) {
		query_close(query);
		return STATUS_STUCK;
	}
	r = ask(query, action, &answer);
	if (r == 0 && wait)
		r = wait_empty(&query, end_ns, &answer);
	query_close(query);
	if (r < 0)
		return query_complain(r);
	if (wait && answer.sessions && answer.is_draining)
		return print_left(&answer, seconds, json);
	status = print_answer(&answer, json);
	if (wait && (answer.sessions || !answer.is_draining))
		return STATUS_STUCK;
	return status;
}

int command_drain(int argc, char **argv)
{
	const char *seconds = NULL;
	bool wait = false;
	const struct extra_option extra[] = { { "wait", OPTION_VALUE_OR_NOT, &wait, &seconds } };
	const struct command_line line = {
		.help = drain_help, .extra = extra, .extra_count = 1, .takes_arguments = true
	};
	struct options options;
	uint32_t number = FOR_EVER;
	int status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	/* also "--wait 30" */
	if (wait && !seconds && optind < argc && isdigit((unsigned char)argv[optind][0]))
		seconds = argv[optind++];
	if (optind < argc) {
		complain("what is '%s'? '%s --help' shows what the command takes", argv[optind],
			 argv[0]);
		return STATUS_USAGE;
	}
	if (seconds && text_number(seconds, 0, 31536000, &number) < 0) {
		complain("--wait %s: not a number of seconds", seconds);
		return STATUS_USAGE;
	}
	return run(HCCLD__CONTROL__DRAIN__ACTION__DRAIN, wait, number, options.json);
}

int command_undrain(int argc, char **argv)
{
	struct options options;
	int status;

	if (options_parse(argc, argv, undrain_help, false, &options, &status))
		return status;
	return run(HCCLD__CONTROL__DRAIN__ACTION__UNDRAIN, false, 0, options.json);
}
