/* SPDX-License-Identifier: Apache-2.0 */
#include "hcclctl/mem_shared.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "proto/feature.h"
#include "proto/notify.h"

static const char *kind_name(uint32_t kind)
{
	return kind == NOTIFY_SEGMENT_KIND ? "notifies" : kind ? "host" : "device";
}

/* ---- registered memory ---- */

static struct table *registrations_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "REGISTERED BY", COLUMN_LEFT }, { "PID", COLUMN_RIGHT },  { "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT },
		{ "NUMBER", COLUMN_RIGHT },	  { "TAG", COLUMN_LEFT },   { "KIND", COLUMN_LEFT },	      { "SEGMENT", COLUMN_RIGHT },
		{ "OFFSET", COLUMN_RIGHT },	  { "BYTES", COLUMN_RIGHT }, { "CHANNELS", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void registrations_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_registrations; i++) {
		const Hccld__Control__Registration *memory = page->registrations[i];
		char size[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%s", memory->process);
		table_cell(table, "%" PRIu32, memory->pid);
		table_cell(table, "%s", memory->comm_name);
		table_cell(table, "%" PRIu32, memory->rank);
		table_cell(table, "%" PRIu64, memory->registration);
		table_cell(table, "%s", memory->tag);
		table_cell(table, "%s", kind_name(memory->kind));
		table_cell(table, "%" PRIu64, memory->segment);
		table_cell(table, "%" PRIu64, memory->offset);
		table_cell(table, "%s", text_size(memory->bytes, size));
		table_cell(table, "%" PRIu32, memory->imports);
	}
}

static void registrations_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_registrations; i++) {
		const Hccld__Control__Registration *memory = page->registrations[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "registration", memory->registration);
		json_text(object, "process", memory->process);
		json_number(object, "pid", memory->pid);
		json_number(object, "uid", memory->uid);
		json_number(object, "comm", memory->comm);
		json_text(object, "comm_name", memory->comm_name);
		json_number(object, "rank", memory->rank);
		json_number(object, "device", memory->device);
		json_text(object, "tag", memory->tag);
		json_text(object, "kind", kind_name(memory->kind));
		json_number(object, "segment", memory->segment);
		json_number(object, "offset", memory->offset);
		json_number(object, "bytes", memory->bytes);
		json_number(object, "channels", memory->imports);
		json_append(array, object);
	}
}

/* ---- memory of others ---- */

static struct table *imports_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "USED BY", COLUMN_LEFT }, { "PID", COLUMN_RIGHT },	   { "OF PID", COLUMN_RIGHT }, { "KIND", COLUMN_LEFT },
		{ "BYTES", COLUMN_RIGHT },  { "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT },   { "PEER", COLUMN_RIGHT },
		{ "WHAT", COLUMN_LEFT },    { "STATE", COLUMN_LEFT },	     { "REASON", COLUMN_LEFT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void imports_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_imports; i++) {
		const Hccld__Control__Import *import = page->imports[i];
		char size[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%s", import->process);
		table_cell(table, "%" PRIu32, import->pid);
		table_cell(table, import->owner_pid ? "%" PRIu32 : "-", import->owner_pid);
		table_cell(table, "%s", kind_name(import->kind));
		table_cell(table, "%s", text_size(import->bytes, size));
		table_cell(table, "%s", import->channel ? import->comm_name : "-");
		table_cell(table, import->channel ? "%" PRIu32 : "-", import->rank);
		table_cell(table, import->channel ? "%" PRIu32 : "-", import->peer);
		table_cell(table, "%s", import->channel ? import->what : "by a key");
		table_cell(table, "%s", import->lingers ? "lingers" : "-");
		table_cell(table, "%s", *import->reason ? import->reason : "-");
	}
}

static void imports_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_imports; i++) {
		const Hccld__Control__Import *import = page->imports[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "session", import->session);
		json_text(object, "process", import->process);
		json_number(object, "pid", import->pid);
		json_number(object, "uid", import->uid);
		if (import->owner_pid)
			json_number(object, "owner_pid", import->owner_pid);
		json_text(object, "kind", kind_name(import->kind));
		json_number(object, "bytes", import->bytes);
		if (import->channel) {
			json_number(object, "channel", import->channel);
			json_text(object, "comm_name", import->comm_name);
			json_number(object, "rank", import->rank);
			json_number(object, "peer", import->peer);
			json_text(object, "what", import->what);
		}
		cJSON_AddBoolToObject(object, "lingers", import->lingers);
		if (import->lingers)
			json_text(object, "reason", import->reason);
		json_append(array, object);
	}
}

static const struct listing listings[] = {
	{ .kind = HCCLD__CONTROL__LIST__KIND__REGISTRATIONS, .name = "registrations", .table = registrations_table, .rows = registrations_rows,
	  .json = registrations_json, .is_optional = true },
	{ .kind = HCCLD__CONTROL__LIST__KIND__IMPORTS, .name = "imports", .table = imports_table, .rows = imports_rows, .json = imports_json,
	  .is_optional = true },
};

static bool has_lists(const struct query *query)
{
	return query_hello(query)->features & HCCLD_FEATURE_RESOURCES;
}

int mem_shared_print(struct query *query, const struct options *options)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]) && r == 0 && has_lists(query); i++)
		r = listing_print(&listings[i], query, options);
	return r;
}

int mem_shared_add(struct query *query, cJSON *root)
{
	int r = 0;

	for (size_t i = 0; i < sizeof(listings) / sizeof(listings[0]) && r == 0; i++) {
		if (has_lists(query))
			r = listing_add(&listings[i], query, root);
		else if (!cJSON_AddArrayToObject(root, listings[i].name))
			r = -ENOMEM;
	}
	return r;
}
