/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl resources: what operators of programs hold of each device, and which rank holds it. */
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "proto/feature.h"

static bool is_device(const Hccld__Control__Resource *resource)
{
	return resource->owner == HCCLD__CONTROL__RESOURCE__OWNER__DEVICE;
}

static bool is_rank(const Hccld__Control__Resource *resource)
{
	return resource->owner == HCCLD__CONTROL__RESOURCE__OWNER__RANK;
}

static struct table *devices_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "DEVICE", COLUMN_RIGHT },
		{ "CHANNELS", COLUMN_RIGHT },
		{ "NOTIFIES", COLUMN_RIGHT },
		{ "OF", COLUMN_RIGHT },
		{ "VECTOR CORES", COLUMN_RIGHT },
		{ "OF", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void devices_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_resources; i++) {
		const Hccld__Control__Resource *resource = page->resources[i];

		if (!is_device(resource))
			continue;
		table_row(table);
		table_cell(table, "%" PRIu32, resource->device);
		table_cell(table, "%" PRIu32, resource->channels);
		table_cell(table, "%" PRIu32, resource->notifies);
		table_cell(table, "%" PRIu32, resource->notify_budget);
		table_cell(table, "%" PRIu32, resource->cores);
		table_cell(table, "%" PRIu32, resource->core_budget);
	}
}

static void devices_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_resources; i++) {
		const Hccld__Control__Resource *resource = page->resources[i];
		cJSON *object;

		if (!is_device(resource))
			continue;
		object = cJSON_CreateObject();
		json_number(object, "device", resource->device);
		json_number(object, "channels", resource->channels);
		json_number(object, "notifies", resource->notifies);
		json_number(object, "notifies_total", resource->notify_budget);
		json_number(object, "vector_cores", resource->cores);
		json_number(object, "vector_cores_total", resource->core_budget);
		json_append(array, object);
	}
}

static struct table *holders_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT },     { "PID", COLUMN_RIGHT },
		{ "PROCESS", COLUMN_LEFT },	 { "DEVICE", COLUMN_RIGHT },   { "CHANNELS", COLUMN_RIGHT },
		{ "NOTIFIES", COLUMN_RIGHT },	 { "VECTOR CORES", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void holders_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_resources; i++) {
		const Hccld__Control__Resource *resource = page->resources[i];

		if (is_device(resource))
			continue;
		table_row(table);
		table_cell(table, "%s", is_rank(resource) ? resource->comm_name : "-");
		if (is_rank(resource))
			table_cell(table, "%" PRIu32, resource->rank);
		else
			table_cell(table, "-");
		table_cell(table, "%" PRIu32, resource->pid);
		table_cell(table, "%s", resource->process);
		table_cell(table, "%" PRIu32, resource->device);
		table_cell(table, "%" PRIu32, resource->channels);
		table_cell(table, "%" PRIu32, resource->notifies);
		if (resource->orphan_cores)
			table_cell(table, "%" PRIu32 " (%" PRIu32 ": stream gone)", resource->cores, resource->orphan_cores);
		else
			table_cell(table, "%" PRIu32, resource->cores);
	}
}

static void holder_json(cJSON *array, const Hccld__Control__Resource *resource)
{
	cJSON *object = cJSON_CreateObject();

	if (is_rank(resource)) {
		json_number(object, "comm", resource->comm);
		json_text(object, "comm_name", resource->comm_name);
		json_number(object, "rank", resource->rank);
	}
	json_number(object, "pid", resource->pid);
	json_number(object, "uid", resource->uid);
	json_text(object, "process", resource->process);
	json_number(object, "device", resource->device);
	json_number(object, "channels", resource->channels);
	json_number(object, "notifies", resource->notifies);
	json_number(object, "vector_cores", resource->cores);
	json_number(object, "vector_cores_stream_gone", resource->orphan_cores);
	json_append(array, object);
}

static void ranks_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_resources; i++)
		if (is_rank(page->resources[i]))
			holder_json(array, page->resources[i]);
}

static void processes_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_resources; i++)
		if (!is_rank(page->resources[i]) && !is_device(page->resources[i]))
			holder_json(array, page->resources[i]);
}

static const struct listing devices = {
	.help = "Usage: hcclctl resources [OPTIONS]\n\n"
		"What operators of programs hold: of each device, and by rank, how many ends of channels, notifies\n"
		"and vector cores are in use, of how many (hccld.conf: notifies_per_device, vector_cores_per_device).\n"
		"What belongs to a process that has no rank on that device, or several, is shown without a rank.\n"
		"Vector cores of a host kernel that runs on though its stream has gone are told apart: 4 (4: stream gone).\n"
		"Without being root you see your own ranks; devices are those of all.\n",
	.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES,
	.name = "devices",
	.none = "there are no devices",
	.table = devices_table,
	.rows = devices_rows,
	.json = devices_json,
};

static const struct listing holders = {
	.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES,
	.none = "nobody holds any",
	.table = holders_table,
	.rows = holders_rows,
};

static const struct listing ranks = {
	.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES,
	.name = "ranks",
	.json = ranks_json,
};

static const struct listing processes = {
	.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES,
	.name = "processes",
	.json = processes_json,
};

static int resources_add(struct query *query, cJSON *root)
{
	int r = listing_add(&devices, query, root);

	if (r == 0)
		r = listing_add(&ranks, query, root);
	return r < 0 ? r : listing_add(&processes, query, root);
}

static int resources_print(struct query *query, const struct options *options)
{
	int r = listing_print(&devices, query, options);

	if (r < 0)
		return r;
	putchar('\n');
	r = listing_print(&holders, query, options);
	if (r == 0)
		listing_print_hidden(&holders, query);
	return r;
}

int command_resources(int argc, char **argv)
{
	struct options options;
	struct query *query;
	cJSON *root = NULL;
	int r, status;

	if (options_parse(argc, argv, devices.help, false, &options, &status))
		return status;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	if (query_lacks(query, HCCLD_FEATURE_RESOURCES, "resources")) {
		query_close(query);
		return STATUS_STUCK;
	}
	if (options.json) {
		root = cJSON_CreateObject();
		r = resources_add(query, root);
	} else {
		r = resources_print(query, &options);
	}
	query_close(query);
	if (r < 0) {
		cJSON_Delete(root);
		return query_complain(r);
	}
	return root ? json_print(root) : STATUS_OK;
}
