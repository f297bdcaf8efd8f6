/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl monitor: events as lines of JSON, as they come. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/feature.h"

#define AGAIN_MS 100u /* from one attempt to connect to the next */

static const char help[] =
	"Usage: hcclctl monitor [--follow] [OPTIONS]\n\n"
	"Prints what happens from now on, a line of JSON for each event; the kinds are in hcclctl(1). Without\n"
	"being root you see your own. Who reads too slowly is told how many events he has missed.\n\n"
	"      --follow  when the daemon ends, wait for the next one\n\n"
	"Exit status: 0 the daemon has ended, 1 refused, 2 wrong usage, 3 no daemon (without --follow).\n";

/* The daemon that was seen last. */
struct seen {
	uint32_t pid, incarnation;
	bool is_up; /* as far as we know */
};

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void add_text(cJSON *object, const char *name, const char *text)
{
	if (*text)
		json_text(object, name, text);
}

static void add_number(cJSON *object, const char *name, uint64_t number)
{
	if (number)
		json_number(object, name, number);
}

static int print_event(const Hccld__Control__Event *event)
{
	cJSON *object = cJSON_CreateObject();

	json_text(object, "event", event->kind);
	json_number(object, "time_ms", event->time_ms);
	add_number(object, "lost", event->lost);
	add_number(object, "session", event->session);
	add_number(object, "pid", event->pid);
	if (!event->lost)
		json_number(object, "uid", event->uid);
	add_text(object, "process", event->process);
	add_number(object, "comm", event->comm);
	add_text(object, "comm_name", event->comm_name);
	add_number(object, "size", event->size);
	add_text(object, "cause", event->cause);
	add_text(object, "text", event->text);
	return json_print_line(object);
}

static cJSON *own_event(const char *kind)
{
	cJSON *object = cJSON_CreateObject();

	json_text(object, "event", kind);
	json_number(object, "time_ms", now_ms());
	return object;
}

/* The first line, or the one after a restart. */
static int print_start(const struct query *query, const Hccld__Control__MonitorReply *reply,
		       struct seen *seen)
{
	bool is_new = seen->pid && (seen->pid != reply->pid || seen->incarnation != reply->incarnation);
	cJSON *object = own_event(is_new ? "restart" : "monitor");

	json_text(object, "version", query_hello(query)->daemon);
	json_number(object, "pid", reply->pid);
	json_number(object, "incarnation", reply->incarnation);
	json_number(object, "sessions", reply->sessions);
	json_number(object, "comms", reply->comms);
	cJSON_AddBoolToObject(object, "draining", reply->draining != NULL);
	*seen = (struct seen){ reply->pid, reply->incarnation, true };
	return json_print_line(object);
}

static int subscribe(struct query *query, struct seen *seen)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Monitor monitor = HCCLD__CONTROL__MONITOR__INIT;
	struct hccld_call call;
	int r;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MONITOR;
	request.monitor = &monitor;
	r = query_ask(query, &request, HCCLD__CONTROL__REPLY__BODY_MONITOR, &call);
	if (r < 0)
		return r;
	r = print_start(query, call.reply->monitor, seen) == STATUS_OK ? 0 : -EIO;
	hccld_call_end(&call);
	return r;
}

/* Until the daemon has ended (-ENOTCONN) or nobody reads us (-EIO). */
static int watch(struct query *query)
{
	for (;;) {
		const Hccld__Control__Reply *reply;
		struct hccld_call call;
		int r = hccld_connection_pushed(query_connection(query), -1, &call);

		if (r == -ETIMEDOUT)
			continue;
		if (r < 0)
			return r;
		reply = call.reply;
		if (reply->body_case == HCCLD__CONTROL__REPLY__BODY_EVENTS)
			for (size_t i = 0; r == 0 && i < reply->events->n_events; i++)
				r = print_event(reply->events->events[i]) == STATUS_OK ? 0 : -EIO;
		hccld_call_end(&call);
		if (r < 0)
			return -EIO;
	}
}

/* One connection, from its begin to its end. *@ret_status: of the command, if the daemon is not just gone. */
static int monitor_once(struct seen *seen, int *ret_status)
{
	struct query *query;
	int r;

	r = query_open(&query);
	if (r < 0)
		return r;
	if (query_lacks(query, HCCLD_FEATURE_TOOLS, "monitor")) {
		query_close(query);
		*ret_status = STATUS_STUCK;
		return -EOPNOTSUPP;
	}
	r = subscribe(query, seen);
	if (r == 0)
		r = watch(query);
	query_close(query);
	if (r == -EIO)
		*ret_status = STATUS_STUCK;
	return r;
}

int command_monitor(int argc, char **argv)
{
	bool follow = false;
	const struct extra_option extra[] = { { "follow", OPTION_FLAG, &follow, NULL } };
	const struct command_line line = { .help = help, .extra = extra, .extra_count = 1 };
	struct seen seen = { 0 };
	struct options options;
	int r, status;

	if (options_parse_line(argc, argv, &line, &options, &status))
		return status;
	for (;;) {
		r = monitor_once(&seen, &status);
		if (r == -EIO || r == -EOPNOTSUPP)
			return status;
		if (!follow)
			return seen.pid && r == -ENOTCONN ? STATUS_OK : query_complain(r);
		if (r != -ENOTCONN && r != -EACCES)
			return query_complain(r);
		if (seen.is_up && json_print_line(own_event("gone")) != STATUS_OK)
			return STATUS_STUCK;
		seen.is_up = false;
		nanosleep(&(struct timespec){ .tv_nsec = AGAIN_MS * 1000000L }, NULL);
	}
}
