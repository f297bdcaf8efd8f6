/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl threads: execution queues of programs' own operators. */
#include <inttypes.h>

#include "hcclctl/command.h"
#include "hcclctl/describe.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "hcclctl/whose.h"
#include "proto/feature.h"

static const char *engine_name(uint32_t engine)
{
	static const char *const names[] = { "CPU", "CPU_TS", "AICPU", "AICPU_TS", "AIV", "CCU" };

	return engine < sizeof(names) / sizeof(names[0]) ? names[engine] : "?";
}

static struct table *threads_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "PID", COLUMN_RIGHT },      { "PROCESS", COLUMN_LEFT },  { "DEVICE", COLUMN_RIGHT },
		{ "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT },  { "ENGINE", COLUMN_LEFT },
		{ "STREAM", COLUMN_RIGHT },   { "NOTIFIES", COLUMN_RIGHT }, { "TASKS QUEUED", COLUMN_RIGHT },
		{ "HEAD", COLUMN_LEFT },      { "AGE", COLUMN_RIGHT },	   { "WAITS FOR", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void threads_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_threads; i++) {
		const Hccld__Control__Thread *thread = page->threads[i];
		bool is_busy = *thread->head;
		char age[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%" PRIu32, thread->pid);
		table_cell(table, "%s", thread->process);
		table_cell(table, "%" PRIu32, thread->device);
		table_cell(table, "%s", thread->comm ? thread->comm_name : "-");
		if (thread->comm)
			table_cell(table, "%" PRIu32, thread->rank);
		else
			table_cell(table, "-");
		table_cell(table, "%s", engine_name(thread->engine));
		table_cell(table, "%" PRIu32, thread->stream);
		table_cell(table, "%" PRIu32, thread->notify_count);
		table_cell(table, "%" PRIu32, thread->queued_tasks);
		table_cell(table, "%s", is_busy ? thread->head : "-");
		table_cell(table, "%s", is_busy ? text_duration(thread->age_ms, age) : "-");
		table_cell(table, "%s", describe_reason(thread->reason, thread->stream, thread->pid));
	}
}

static void threads_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_threads; i++) {
		const Hccld__Control__Thread *thread = page->threads[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "session", thread->session);
		json_number(object, "pid", thread->pid);
		json_number(object, "uid", thread->uid);
		json_text(object, "process", thread->process);
		json_number(object, "device", thread->device);
		json_number(object, "thread", thread->thread);
		json_text(object, "engine", engine_name(thread->engine));
		json_number(object, "comm", thread->comm);
		json_text(object, "comm_name", thread->comm_name);
		json_number(object, "rank", thread->rank);
		json_number(object, "stream", thread->stream);
		cJSON_AddBoolToObject(object, "own_stream", thread->is_own_stream);
		json_number(object, "notifies", thread->notify_count);
		json_number(object, "first_notify", thread->first_notify);
		json_number(object, "queued_tasks", thread->queued_tasks);
		json_text(object, "head", thread->head);
		json_number(object, "age_ms", thread->age_ms);
		cJSON_AddBoolToObject(object, "moving", thread->is_moving);
		json_text(object, "reason", thread->reason);
		json_append(array, object);
	}
}

int command_threads(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl threads [--session SESSION] [--pid PID] [OPTIONS]\n\n"
			"Threads (execution queues) that programs have acquired for operators of their own: communicator and\n"
			"rank, the engine they were asked for, stream and number of notifies, queued tasks, the task at the\n"
			"head of the stream, for how long it is there, and what it waits for. A stream may have several.\n"
			"Without being root you see your own.\n\n"
			"      --session SESSION  of this session only\n"
			"      --pid PID          of this process only\n",
		.kind = HCCLD__CONTROL__LIST__KIND__THREADS,
		.extra = whose_options,
		.extra_count = WHOSE_OPTIONS,
		.filter = whose_filter,
		.feature = HCCLD_FEATURE_RESOURCES,
		.check = whose_check,
		.name = "threads",
		.none = "there is no thread",
		.table = threads_table,
		.rows = threads_rows,
		.json = threads_json,
	};

	return listing_run(&listing, argc, argv);
}
