/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl notifies: who has which of a device's budget, and who waits. */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/whose.h"
#include "proto/feature.h"

static struct table *notifies_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "PID", COLUMN_RIGHT },   { "PROCESS", COLUMN_LEFT }, { "DEVICE", COLUMN_RIGHT },	{ "IDS", COLUMN_RIGHT },
		{ "PURPOSE", COLUMN_LEFT }, { "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT }, { "PEER", COLUMN_RIGHT },
		{ "VALUE", COLUMN_RIGHT },	{ "WAITED FOR BY", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void cell_ids(struct table *table, const Hccld__Control__Notifies *notifies)
{
	if (notifies->count == 1)
		table_cell(table, "%" PRIu32, notifies->first);
	else
		table_cell(table, "%" PRIu32 "-%" PRIu32, notifies->first, notifies->first + notifies->count - 1);
}

static void cell_waiter(struct table *table, const Hccld__Control__Notifies *notifies)
{
	if (notifies->waiter_pid && notifies->count > 1)
		table_cell(table, "pid %" PRIu32 " stream %" PRIu32 " (%" PRIu32 ")", notifies->waiter_pid,
			   notifies->waiter_stream, notifies->waited_for);
	else if (notifies->waiter_pid)
		table_cell(table, "pid %" PRIu32 " stream %" PRIu32, notifies->waiter_pid, notifies->waiter_stream);
	else
		table_cell(table, "%s", notifies->is_closing ? "given back; a queued task names it" : "-");
}

static bool is_of_channel(const Hccld__Control__Notifies *notifies)
{
	return *notifies->comm_name && strcmp(notifies->purpose, "channel") == 0;
}

static void notifies_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_notifies; i++) {
		const Hccld__Control__Notifies *notifies = page->notifies[i];

		table_row(table);
		table_cell(table, "%" PRIu32, notifies->pid);
		table_cell(table, "%s", notifies->process);
		table_cell(table, "%" PRIu32, notifies->device);
		cell_ids(table, notifies);
		table_cell(table, "%s", notifies->purpose);
		table_cell(table, "%s", *notifies->comm_name ? notifies->comm_name : "-");
		table_cell(table, *notifies->comm_name ? "%" PRIu32 : "-", notifies->rank);
		table_cell(table, is_of_channel(notifies) ? "%" PRIu32 : "-", notifies->peer);
		if (notifies->count == 1)
			table_cell(table, "%" PRIu32, notifies->value);
		else
			table_cell(table, "%" PRIu32 " of %" PRIu32 " set", notifies->set_count, notifies->count);
		cell_waiter(table, notifies);
	}
}

static void notifies_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_notifies; i++) {
		const Hccld__Control__Notifies *notifies = page->notifies[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "session", notifies->session);
		json_number(object, "pid", notifies->pid);
		json_number(object, "uid", notifies->uid);
		json_text(object, "process", notifies->process);
		json_number(object, "device", notifies->device);
		json_number(object, "first", notifies->first);
		json_number(object, "count", notifies->count);
		json_text(object, "purpose", notifies->purpose);
		if (*notifies->comm_name) {
			json_text(object, "comm_name", notifies->comm_name);
			json_number(object, "rank", notifies->rank);
		}
		if (is_of_channel(notifies))
			json_number(object, "peer", notifies->peer);
		json_number(object, "value", notifies->value);
		json_number(object, "set", notifies->set_count);
		cJSON_AddBoolToObject(object, "given_back", notifies->is_closing);
		if (notifies->waiter_pid) {
			json_number(object, "waiter_pid", notifies->waiter_pid);
			json_number(object, "waiter_stream", notifies->waiter_stream);
			json_number(object, "waited_for", notifies->waited_for);
		}
		json_append(array, object);
	}
}

int command_notifies(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl notifies [--session SESSION] [--pid PID] [OPTIONS]\n\n"
			"Notifies, in the ranges in which they were made: process, device, their numbers on it, what they are\n"
			"for (acl, counting, thread, channel), communicator, rank and peer if they have one, the value now,\n"
			"and one stream that waits. Without being root you see your own.\n\n"
			"      --session SESSION  of this session only\n"
			"      --pid PID          of this process only\n",
		.kind = HCCLD__CONTROL__LIST__KIND__NOTIFIES,
		.extra = whose_options,
		.extra_count = WHOSE_OPTIONS,
		.filter = whose_filter,
		.feature = HCCLD_FEATURE_RESOURCES,
		.check = whose_check,
		.name = "notifies",
		.none = "there is no notify",
		.table = notifies_table,
		.rows = notifies_rows,
		.json = notifies_json,
	};

	return listing_run(&listing, argc, argv);
}
