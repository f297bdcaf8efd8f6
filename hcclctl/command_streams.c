/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl streams: what each stream is at. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "proto/feature.h"

static const char *only_session, *only_pid;

static bool is_busy(const Hccld__Control__Stream *stream)
{
	return *stream->head;
}

static struct table *streams_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "SESSION", COLUMN_RIGHT }, { "PID", COLUMN_RIGHT },	{ "PROCESS", COLUMN_LEFT },
		{ "DEVICE", COLUMN_RIGHT },  { "STREAM", COLUMN_RIGHT }, { "SLOTS DONE", COLUMN_RIGHT },
		{ "SLOTS QUEUED", COLUMN_RIGHT }, { "TASKS QUEUED", COLUMN_RIGHT },	{ "HEAD", COLUMN_LEFT },
		{ "AGE", COLUMN_RIGHT },     { "WAITS FOR", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void streams_rows(struct table *table, const Hccld__Control__ListReply *page,
			 const struct options *options)
{
	for (size_t i = 0; i < page->n_streams; i++) {
		const Hccld__Control__Stream *stream = page->streams[i];
		char age[TEXT_SHORT];
		uint64_t queued = 0;

		/* the two are read one after the other */
		if (stream->submitted > stream->completed)
			queued = stream->submitted - stream->completed;
		table_row(table);
		table_cell(table, "%" PRIu64, stream->session);
		table_cell(table, "%" PRIu32, stream->pid);
		table_cell(table, "%s", stream->process);
		table_cell(table, "%" PRIu32, stream->device);
		table_cell(table, "%" PRIu32, stream->stream);
		table_cell(table, "%" PRIu64, stream->completed);
		table_cell(table, "%" PRIu64, queued);
		table_cell(table, "%" PRIu32, stream->queued_tasks);
		table_cell(table, "%s", is_busy(stream) ? stream->head : "-");
		table_cell(table, "%s", is_busy(stream) ? text_duration(stream->age_ms, age) : "-");
		table_cell(table, "%s", stream->reason);
	}
}

static void streams_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_streams; i++) {
		const Hccld__Control__Stream *stream = page->streams[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "session", stream->session);
		json_number(object, "pid", stream->pid);
		json_number(object, "uid", stream->uid);
		json_text(object, "process", stream->process);
		json_number(object, "device", stream->device);
		json_number(object, "stream", stream->stream);
		json_number(object, "submitted", stream->submitted);
		json_number(object, "completed", stream->completed);
		json_number(object, "queued_tasks", stream->queued_tasks);
		json_text(object, "head", stream->head);
		json_number(object, "age_ms", stream->age_ms);
		cJSON_AddBoolToObject(object, "moving", stream->is_moving);
		json_text(object, "reason", stream->reason);
		json_append(array, object);
	}
}

static bool streams_filter(Hccld__Control__List *list)
{
	uint32_t pid;

	if (only_session && text_id(only_session, &list->session) < 0) {
		complain("--session %s: not the number of a session ('hcclctl ps' shows them)", only_session);
		return false;
	}
	if (!only_pid)
		return true;
	if (text_number(only_pid, 1, INT32_MAX, &pid) < 0) {
		complain("--pid %s: not a process id", only_pid);
		return false;
	}
	list->pid = pid;
	return true;
}

/* Whose streams are asked for. */
struct wanted {
	uint64_t session;
	uint32_t pid;
	bool has_session, has_pid; /* it exists, as far as this user sees */
};

static int find_wanted(const Hccld__Control__ListReply *page, void *arg)
{
	struct wanted *wanted = arg;

	for (size_t i = 0; i < page->n_sessions; i++) {
		wanted->has_session |= page->sessions[i]->session == wanted->session;
		wanted->has_pid |= page->sessions[i]->pid == wanted->pid;
	}
	return 0;
}

/* Who is not there has not just no streams. */
static int streams_check(struct query *query)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	struct wanted wanted = { 0 };
	int r;

	if (!only_session && !only_pid)
		return STATUS_OK;
	streams_filter(&list);
	wanted.session = list.session;
	wanted.pid = list.pid;
	r = query_list(query, HCCLD__CONTROL__LIST__KIND__SESSIONS, find_wanted, &wanted);
	if (r < 0)
		return query_complain(r);
	if (only_session && !wanted.has_session) {
		complain("there is no session %" PRIu64 " ('hcclctl ps' shows those that you see)", wanted.session);
		return STATUS_STUCK;
	}
	if (only_pid && !wanted.has_pid) {
		complain("process %" PRIu32 " has no session ('hcclctl ps' shows those that you see)", wanted.pid);
		return STATUS_STUCK;
	}
	return STATUS_OK;
}

int command_streams(int argc, char **argv)
{
	static const struct extra_option extra[] = {
		{ "session", OPTION_VALUE, NULL, &only_session },
		{ "pid", OPTION_VALUE, NULL, &only_pid },
	};
	static const struct listing listing = {
		.help = "Usage: hcclctl streams [--session SESSION] [--pid PID] [OPTIONS]\n\n"
			"Streams, also those with nothing to do: slots of the ring that are done and queued (a\n"
			"task may take several), queued tasks, the task at the head, for how long it is there, and what it waits for. Without being root\n"
			"you see your own.\n\n"
			"      --session SESSION  of this session only\n"
			"      --pid PID          of this process only\n",
		.kind = HCCLD__CONTROL__LIST__KIND__STREAMS,
		.extra = extra,
		.extra_count = sizeof(extra) / sizeof(extra[0]),
		.filter = streams_filter,
		.feature = HCCLD_FEATURE_TOOLS,
		.check = streams_check,
		.name = "streams",
		.none = "there is no stream",
		.table = streams_table,
		.rows = streams_rows,
		.json = streams_json,
	};

	return listing_run(&listing, argc, argv);
}
