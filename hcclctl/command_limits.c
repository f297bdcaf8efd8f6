/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl limits: what each tenant holds, how much it may, and who holds most of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"

static struct table *limits_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "UID", COLUMN_RIGHT }, { "CGROUP", COLUMN_LEFT },    { "WHAT", COLUMN_LEFT },
		{ "USED", COLUMN_RIGHT }, { "LIMIT", COLUMN_RIGHT },   { "SHARE", COLUMN_RIGHT },
		{ "HELD MOST BY", COLUMN_LEFT }, { "SETTING", COLUMN_LEFT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static const char *amount(const Hccld__Control__Limit *limit, uint64_t value,
			  char buffer[TEXT_SHORT])
{
	if (limit->is_bytes)
		return text_size(value, buffer);
	snprintf(buffer, TEXT_SHORT, "%" PRIu64, value);
	return buffer;
}

/* Root and the daemon's user, from what is counted by user: that has no setting "unlimited". */
static bool is_exempt(const Hccld__Control__Limit *limit)
{
	return limit->limit == UINT64_MAX && strstr(limit->setting, "_per_user");
}

/* What the one who holds most has: several ranks may be of one communicator. */
static bool counts_ranks(const Hccld__Control__Limit *limit)
{
	return strcmp(limit->name, "communicators") == 0;
}

static void limit_row(struct table *table, const Hccld__Control__Tenant *tenant,
		      const Hccld__Control__Limit *limit)
{
	bool is_limited = limit->limit != UINT64_MAX;
	char used[TEXT_SHORT], most[TEXT_SHORT], held[TEXT_SHORT];

	table_row(table);
	table_cell(table, "%" PRIu32, tenant->uid);
	table_cell(table, "%s", *tenant->cgroup ? tenant->cgroup : "-");
	table_cell(table, "%s", limit->name);
	table_cell(table, "%s", amount(limit, limit->used, used));
	if (is_limited) {
		table_cell(table, "%s", amount(limit, limit->limit, most));
		table_cell(table, "%.0f %%", (double)limit->used * 100 / (double)limit->limit);
	} else {
		table_cell(table, is_exempt(limit) ? "exempt" : "unlimited");
		table_cell(table, "-");
	}
	if (limit->top_pid)
		table_cell(table, "%" PRIu32 " %s (%s%s)", limit->top_pid, limit->top_process, amount(limit, limit->top_held, held),
			   !counts_ranks(limit) ? "" : limit->top_held == 1 ? " rank" : " ranks");
	else
		table_cell(table, "-");
	table_cell(table, "%s", limit->setting);
}

/* Not from a daemon before 0.4. */
static void weight_row(struct table *table, const Hccld__Control__Tenant *tenant)
{
	if (!tenant->weight)
		return;
	table_row(table);
	table_cell(table, "%" PRIu32, tenant->uid);
	table_cell(table, "%s", *tenant->cgroup ? tenant->cgroup : "-");
	table_cell(table, "weight");
	table_cell(table, "-");
	table_cell(table, "%" PRIu32, tenant->weight);
	table_cell(table, "-");
	table_cell(table, "-");
	table_cell(table, "tenant_weights");
}

static void limits_rows(struct table *table, const Hccld__Control__ListReply *page,
			const struct options *options)
{
	for (size_t i = 0; i < page->n_tenants; i++) {
		for (size_t j = 0; j < page->tenants[i]->n_limits; j++)
			limit_row(table, page->tenants[i], page->tenants[i]->limits[j]);
		weight_row(table, page->tenants[i]);
	}
}

static void limits_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_tenants; i++) {
		const Hccld__Control__Tenant *tenant = page->tenants[i];
		cJSON *object = cJSON_CreateObject(), *limits;

		json_number(object, "uid", tenant->uid);
		json_text(object, "cgroup", tenant->cgroup);
		if (tenant->weight)
			json_number(object, "weight", tenant->weight);
		limits = cJSON_AddArrayToObject(object, "limits");
		for (size_t j = 0; j < tenant->n_limits; j++) {
			const Hccld__Control__Limit *limit = tenant->limits[j];
			cJSON *entry = cJSON_CreateObject();

			json_text(entry, "name", limit->name);
			json_text(entry, "setting", limit->setting);
			json_number(entry, "used", limit->used);
			/* no limit: no member */
			if (limit->limit != UINT64_MAX)
				json_number(entry, "limit", limit->limit);
			if (is_exempt(limit))
				cJSON_AddBoolToObject(entry, "exempt", true);
			if (limit->top_pid) {
				json_number(entry, "top_pid", limit->top_pid);
				json_text(entry, "top_process", limit->top_process);
				json_number(entry, counts_ranks(limit) ? "top_ranks" : "top_held", limit->top_held);
			}
			json_append(limits, entry);
		}
		json_append(array, object);
	}
}

int command_limits(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl limits [OPTIONS]\n\n"
			"What each tenant (a user, or a user in one pod, job or login session) holds, how much it may,\n"
			"which process holds most of it, and the setting in [limits] of hccld.conf that changes it.\n"
			"Memory and counts are those that refusals go by. Without being root you see your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__TENANTS,
		.name = "tenants",
		.none = "no process is connected, nothing is held ('hcclctl config' shows what the limits are)",
		.table = limits_table,
		.rows = limits_rows,
		.json = limits_json,
	};

	return listing_run(&listing, argc, argv);
}
