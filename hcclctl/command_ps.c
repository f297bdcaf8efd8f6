/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl ps: sessions, which are processes. */
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"

static struct table *ps_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "SESSION", COLUMN_RIGHT }, { "PID", COLUMN_RIGHT },	 { "UID", COLUMN_RIGHT },
		{ "PROCESS", COLUMN_LEFT },  { "DEVICES", COLUMN_LEFT }, { "RANKS", COLUMN_RIGHT },
		{ "STREAMS", COLUMN_RIGHT }, { "MEMORY", COLUMN_RIGHT }, { "SLOTS DONE", COLUMN_RIGHT },
		{ "SLOTS QUEUED", COLUMN_RIGHT },  { "AGE", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

/* "0-3,7" */
static void device_ranges(const Hccld__Control__Session *session, char *buffer, size_t size)
{
	size_t length = 0;

	snprintf(buffer, size, "-");
	for (size_t i = 0; i < session->n_devices && length + 24 < size; i++) {
		size_t first = i;

		while (i + 1 < session->n_devices &&
		       session->devices[i + 1] == session->devices[i] + 1)
			i++;
		length += (size_t)snprintf(buffer + length, size - length, "%s%" PRIu32,
					   first ? "," : "", session->devices[first]);
		if (i > first)
			length += (size_t)snprintf(buffer + length, size - length, "%s%" PRIu32,
						   i > first + 1 ? "-" : ",", session->devices[i]);
	}
}

static void ps_rows(struct table *table, const Hccld__Control__ListReply *page,
		    const struct options *options)
{
	for (size_t i = 0; i < page->n_sessions; i++) {
		const Hccld__Control__Session *session = page->sessions[i];
		char devices[256], memory[TEXT_SHORT], age[TEXT_SHORT];
		uint64_t queued = 0;

		/* the two are read one after the other */
		if (session->tasks_submitted > session->tasks_completed)
			queued = session->tasks_submitted - session->tasks_completed;
		device_ranges(session, devices, sizeof(devices));
		table_row(table);
		table_cell(table, "%" PRIu64, session->session);
		table_cell(table, "%" PRIu32, session->pid);
		table_cell(table, "%" PRIu32, session->uid);
		table_cell(table, "%s", session->process);
		table_cell(table, "%s", devices);
		table_cell(table, "%" PRIu32, session->ranks);
		table_cell(table, "%" PRIu32, session->streams);
		table_cell(table, "%s", text_size(session->memory, memory));
		table_cell(table, "%" PRIu64, session->tasks_completed);
		table_cell(table, "%" PRIu64, queued);
		table_cell(table, "%s", text_duration(session->age_ms, age));
	}
}

static void ps_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_sessions; i++) {
		const Hccld__Control__Session *session = page->sessions[i];
		cJSON *object = cJSON_CreateObject(), *devices;

		json_number(object, "session", session->session);
		json_number(object, "pid", session->pid);
		json_number(object, "uid", session->uid);
		json_text(object, "process", session->process);
		json_text(object, "library", session->library);
		devices = cJSON_AddArrayToObject(object, "devices");
		for (size_t j = 0; j < session->n_devices; j++)
			json_append_number(devices, session->devices[j]);
		json_number(object, "ranks", session->ranks);
		json_number(object, "streams", session->streams);
		json_number(object, "memory", session->memory);
		json_number(object, "tasks_submitted", session->tasks_submitted);
		json_number(object, "tasks_completed", session->tasks_completed);
		json_number(object, "age_ms", session->age_ms);
		json_append(array, object);
	}
}

int command_ps(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl ps [OPTIONS]\n\n"
			"The processes that are connected: what each uses, and how much of its work is done (in slots\n"
			"of its stream rings: a task may take several). Without being root you see your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__SESSIONS,
		.name = "sessions",
		.none = "no process is connected",
		.table = ps_table,
		.rows = ps_rows,
		.json = ps_json,
	};

	return listing_run(&listing, argc, argv);
}
