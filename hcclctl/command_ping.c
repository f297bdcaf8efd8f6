/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl ping: is the daemon of this node alive, both its threads? And that of another one? */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"
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
	"Usage: hcclctl ping [--local] [--quiet] [--timeout MS] [OPTIONS]\n"
	"       hcclctl ping [--count N] [--size BYTES] [--interval MS] [OPTIONS] NODE\n\n"
	"Asks the daemon of this node for a sign of its control thread and of its engine, and prints how long\n"
	"that took. With NODE (a name, an id or an address that hcclctl links shows): asks the daemon of that node,\n"
	"over the link to it, and prints round trips.\n\n"
	"      --local        this node's daemon, which is also asked without NODE\n"
	"      --count N      so many times (default 5)\n"
	"      --size BYTES   that travel there and back, at most 32768 (default 0)\n"
	"      --interval MS  between two of them (default 200)\n"
	"      --quiet        no output: the exit status says it all\n"
	"      --timeout MS   how long it may take (default 5000)\n\n"
	"Exit status: 0 both answer, or the node did each time; 1 the daemon is there and does not answer in time,\n"
	"or the node did not; 2 no daemon, or wrong usage.\n";

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

/* Pings to a node, and what became of them. */
struct far {
	const char *node;
	uint32_t count, size, interval_ms;
	uint32_t sent, answered;
	uint64_t least_ns, most_ns, sum_ns;
	bool quiet, json;
};

/* False: no more. @r: the last error. */
static bool far_ask(struct far *far, struct query *query, int *r)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Ping body = HCCLD__CONTROL__PING__INIT;
	const Hccld__Control__PingReply *reply;
	struct hccld_call call;

	body.node = (char *)far->node;
	body.size = far->size;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_PING;
	request.ping = &body;
	far->sent++;
	*r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_PING, &call);
	if (*r < 0) {
		if (!far->quiet)
			query_complain(*r);
		return *r == -EAGAIN; /* the link is not up: it may be soon */
	}
	reply = call.reply->ping;
	far->answered++;
	far->sum_ns += reply->round_trip_ns;
	if (far->answered == 1 || reply->round_trip_ns < far->least_ns)
		far->least_ns = reply->round_trip_ns;
	if (reply->round_trip_ns > far->most_ns)
		far->most_ns = reply->round_trip_ns;
	if (!far->quiet && !far->json) {
		CLEANUP(freep) char *name = text_clean(reply->name);
		CLEANUP(freep) char *address = text_clean(reply->address);

		printf("%" PRIu32 " bytes to node %s (%s) and back: %.3f ms\n", far->size, name ? name : "?", address ? address : "?",
		       (double)reply->round_trip_ns / 1e6);
		fflush(stdout);
	}
	hccld_call_end(&call);
	return true;
}

static void far_print(const struct far *far)
{
	uint64_t mean_ns = far->answered ? far->sum_ns / far->answered : 0;
	cJSON *root;

	if (!far->json) {
		printf("%" PRIu32 " asked, %" PRIu32 " answered", far->sent, far->answered);
		if (far->answered)
			printf(", round trip %.3f / %.3f / %.3f ms (least, mean, most)", (double)far->least_ns / 1e6, (double)mean_ns / 1e6,
			       (double)far->most_ns / 1e6);
		putchar('\n');
		return;
	}
	root = cJSON_CreateObject();
	json_text(root, "node", far->node);
	json_number(root, "bytes", far->size);
	json_number(root, "asked", far->sent);
	json_number(root, "answered", far->answered);
	json_number(root, "least_ns", far->least_ns);
	json_number(root, "mean_ns", mean_ns);
	json_number(root, "most_ns", far->most_ns);
	json_print(root);
}

static int ping_node(struct far *far)
{
	struct query *query;
	int r = query_open(&query);

	if (r < 0) {
		if (!far->quiet)
			query_complain(r);
		return r == -ENOTCONN || r == -EACCES ? PING_ABSENT : PING_STUCK;
	}
	if (query_lacks(query, HCCLD_FEATURE_LINKS, "ping NODE")) {
		query_close(query);
		return PING_STUCK;
	}
	while (far->sent < far->count && far_ask(far, query, &r))
		if (far->sent < far->count)
			usleep(far->interval_ms * 1000);
	query_close(query);
	if (!far->quiet && (far->answered || r != -ENOENT))
		far_print(far);
	return far->answered == far->count ? PING_ALIVE : PING_STUCK;
}

/* False: complained about. */
static bool number_take(const char *name, const char *text, uint32_t low, uint32_t high, uint32_t *number)
{
	if (!text || text_number(text, low, high, number) == 0)
		return true;
	complain("--%s %s: not a number from %" PRIu32 " to %" PRIu32, name, text, low, high);
	return false;
}

int command_ping(int argc, char **argv)
{
	const char *timeout = NULL, *count = NULL, *size = NULL, *interval = NULL;
	bool quiet = false, local = false;
	const struct extra_option extra[] = {
		{ "local", OPTION_FLAG, &local, NULL },	     { "quiet", OPTION_FLAG, &quiet, NULL },
		{ "timeout", OPTION_VALUE, NULL, &timeout }, { "count", OPTION_VALUE, NULL, &count },
		{ "size", OPTION_VALUE, NULL, &size },	     { "interval", OPTION_VALUE, NULL, &interval },
	};
	const struct command_line line = { .help = help, .extra = extra, .extra_count = 6, .takes_arguments = true };
	uint32_t timeout_ms = PING_TIMEOUT_MS;
	struct far far = { .count = 5, .interval_ms = 200 };
	struct options options;
	int status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	if (!number_take("count", count, 1, 1000000, &far.count) || !number_take("size", size, 0, 32768, &far.size) ||
	    !number_take("interval", interval, 0, 3600000, &far.interval_ms))
		return STATUS_USAGE;
	if (optind < argc - 1 || (optind < argc && local)) {
		complain("ping takes one NODE, or none");
		return STATUS_USAGE;
	}
	if (optind == argc && (count || size || interval)) {
		complain("--count, --size and --interval are for a NODE");
		return STATUS_USAGE;
	}
	if (timeout && text_number(timeout, 1, 3600000, &timeout_ms) < 0) {
		complain("--timeout %s: not a number of milliseconds, 1 to 3600000", timeout);
		return STATUS_USAGE;
	}
	query_set_timeout(timeout_ms);
	query_set_quiet(quiet);
	if (optind == argc)
		return ping(&options, quiet);
	far.node = argv[optind];
	far.quiet = quiet;
	far.json = options.json;
	return ping_node(&far);
}
