/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl streams: what each stream is at. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hcclctl/command.h"
#include "hcclctl/describe.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "hcclctl/whose.h"
#include "proto/feature.h"

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
		table_cell(table, "%s", describe_reason(stream->reason, stream->stream, stream->pid));
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

int command_streams(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl streams [--session SESSION] [--pid PID] [OPTIONS]\n\n"
			"Streams, also those with nothing to do: slots of the ring that are done and queued (a task may take\n"
			"several), queued tasks, the task at the head, for how long it is there, and what it waits for.\n"
			"Without being root you see your own.\n\n"
			"      --session SESSION  of this session only\n"
			"      --pid PID          of this process only\n",
		.kind = HCCLD__CONTROL__LIST__KIND__STREAMS,
		.extra = whose_options,
		.extra_count = WHOSE_OPTIONS,
		.filter = whose_filter,
		.feature = HCCLD_FEATURE_TOOLS,
		.check = whose_check,
		.name = "streams",
		.none = "there is no stream",
		.table = streams_table,
		.rows = streams_rows,
		.json = streams_json,
	};

	return listing_run(&listing, argc, argv);
}
