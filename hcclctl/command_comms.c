/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl comms: communicators and their members. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "proto/region.h"

#define MEMBERS_SHOWN 4u /* without -v */

static struct table *comms_table(const struct options *options)
{
	static const struct column brief[] = {
		{ "COMM", COLUMN_RIGHT },
		{ "NAME", COLUMN_LEFT },
		{ "STATE", COLUMN_LEFT },
		{ "RANKS", COLUMN_RIGHT },
		{ "PAIRS", COLUMN_RIGHT },
		{ "MEMORY", COLUMN_RIGHT },
		{ "EAGER", COLUMN_RIGHT },
		{ "UID", COLUMN_RIGHT },
		{ "AGE", COLUMN_RIGHT },
		{ "MEMBERS (RANK:PID@DEVICE)", COLUMN_WRAP },
	};
	static const struct column full[] = {
		{ "COMM", COLUMN_RIGHT },  { "NAME", COLUMN_LEFT }, { "STATE", COLUMN_LEFT },
		{ "RANK", COLUMN_RIGHT },  { "PID", COLUMN_RIGHT }, { "DEVICE", COLUMN_RIGHT },
		{ "MEMBER", COLUMN_LEFT },  { "SETTINGS", COLUMN_WRAP },
	};

	if (options->verbose)
		return table_new(full, sizeof(full) / sizeof(full[0]));
	return table_new(brief, sizeof(brief) / sizeof(brief[0]));
}

static bool is_in(const Hccld__Control__Member *member)
{
	return strcmp(member->state, "missing") && strcmp(member->state, "left") && strcmp(member->state, "dead");
}

/* Those who are not in it are what one looks for: they come first. */
static void member_summary(const Hccld__Control__Comm *comm, char *buffer, size_t size)
{
	size_t length = 0, shown = 0;

	snprintf(buffer, size, "-");
	for (size_t i = 0; i < 2 * comm->n_members && shown < MEMBERS_SHOWN; i++) {
		const Hccld__Control__Member *member = comm->members[i % comm->n_members];
		bool in = is_in(member);

		if (in != (i >= comm->n_members))
			continue;
		length += (size_t)snprintf(buffer + length, size - length, "%s%" PRIu32 ":", shown++ ? " " : "", member->rank);
		if (in)
			length += (size_t)snprintf(buffer + length, size - length, "%" PRIu32 "@%" PRIu32, member->pid,
						   member->device);
		else
			length += (size_t)snprintf(buffer + length, size - length, "%s", member->state);
	}
	if (comm->n_members > MEMBERS_SHOWN)
		snprintf(buffer + length, size - length, " and %zu more",
			 comm->n_members - MEMBERS_SHOWN);
}

/* "8", or "6 of 8" while there are others. */
static void rank_count(const Hccld__Control__Comm *comm, char *buffer, size_t size)
{
	uint32_t in = 0;

	for (size_t i = 0; i < comm->n_members; i++)
		in += is_in(comm->members[i]);
	if (in == comm->size)
		snprintf(buffer, size, "%" PRIu32, in);
	else
		snprintf(buffer, size, "%" PRIu32 " of %" PRIu32, in, comm->size);
}

static void comms_row(struct table *table, const Hccld__Control__Comm *comm)
{
	char members[256], ranks[32], memory[TEXT_SHORT], eager[TEXT_SHORT], age[TEXT_SHORT];

	member_summary(comm, members, sizeof(members));
	rank_count(comm, ranks, sizeof(ranks));
	table_row(table);
	table_cell(table, "%" PRIu64, comm->comm);
	table_cell(table, "%s", comm->name);
	table_cell(table, "%s", comm->state);
	table_cell(table, "%s", ranks);
	table_cell(table, "%" PRIu32, comm->pairs);
	table_cell(table, "%s", text_size(comm->memory, memory));
	table_cell(table, "%s", text_size(comm->wide_memory + comm->eager_memory, eager));
	table_cell(table, "%" PRIu32, comm->uid);
	table_cell(table, "%s", text_duration(comm->age_ms, age));
	table_cell(table, "%s", members);
}

static const char *expansion_name(uint32_t mode)
{
	static const char *const names[] = { "default", "host", "aicpu", "aiv", "aiv-only", "ccu-ms", "ccu-sched" };

	return mode < sizeof(names) / sizeof(names[0]) ? names[mode] : "unknown";
}

static const char *deterministic_name(uint32_t value)
{
	static const char *const names[] = { "false", "true", "strict" };

	return value < sizeof(names) / sizeof(names[0]) ? names[value] : "unknown";
}

/* What the program has set and how the ranks met; "" from a daemon that does not say. */
static void comm_settings(const Hccld__Control__Comm *comm, char *buffer, size_t size)
{
	const Hccld__Control__CommSettings *settings = comm->settings;
	char part[32] = "", retry[96] = "", qos[64] = "";

	*buffer = '\0';
	if (!settings)
		return;
	if (comm->parent)
		snprintf(part, sizeof(part), " of %" PRIu64, comm->parent);
	if (settings->retry_levels)
		snprintf(retry, sizeof(retry),
			 ", retry L0:%u L1:%u L2:%u, MaxCnt:%" PRIu32 " HoldTime:%" PRIu32 " IntervalTime:%" PRIu32,
			 settings->retry_levels & 1, settings->retry_levels >> 1 & 1,
			 settings->retry_levels >> 2 & 1, settings->retry_count,
			 settings->retry_hold_ms, settings->retry_interval_ms);
	if (comm->weight)
		snprintf(qos, sizeof(qos), ", qos %" PRIu32 " (weight %" PRIu32 ")", settings->qos ? settings->qos - 1 : COMM_QOS_DEFAULT,
			 comm->weight);
	snprintf(buffer, size, "%s%s, expansion %s, buffer %" PRIu32 " MB, deterministic %s%s%s",
		 comm->origin, part, expansion_name(settings->op_expansion_mode), settings->buffer_mb,
		 deterministic_name(settings->deterministic), qos, retry);
}

static void comms_members(struct table *table, const Hccld__Control__Comm *comm)
{
	char settings[256];

	comm_settings(comm, settings, sizeof(settings));
	for (size_t i = 0; i < comm->n_members; i++) {
		table_row(table);
		table_cell(table, "%" PRIu64, comm->comm);
		table_cell(table, "%s", comm->name);
		table_cell(table, "%s", comm->state);
		table_cell(table, "%" PRIu32, comm->members[i]->rank);
		if (strcmp(comm->members[i]->state, "missing")) {
			table_cell(table, "%" PRIu32, comm->members[i]->pid);
			table_cell(table, "%" PRIu32, comm->members[i]->device);
		} else { /* it has not joined: neither is known */
			table_cell(table, "-");
			table_cell(table, "-");
		}
		table_cell(table, "%s", comm->members[i]->state);
		/* of the communicator: once is enough */
		table_cell(table, "%s", comm->members[i]->rank ? "" : settings);
	}
}

static void comms_rows(struct table *table, const Hccld__Control__ListReply *page,
		       const struct options *options)
{
	for (size_t i = 0; i < page->n_comms; i++) {
		if (options->verbose)
			comms_members(table, page->comms[i]);
		else
			comms_row(table, page->comms[i]);
	}
}

static void settings_json(cJSON *object, const Hccld__Control__Comm *comm)
{
	const Hccld__Control__CommSettings *settings = comm->settings;

	if (!settings)
		return;
	json_text(object, "origin", comm->origin);
	json_number(object, "parent", comm->parent);
	json_text(object, "op_expansion_mode", expansion_name(settings->op_expansion_mode));
	json_number(object, "deterministic", settings->deterministic);
	json_number(object, "buffer_mb", settings->buffer_mb);
	json_number(object, "retry_levels", settings->retry_levels);
	json_number(object, "retry_count", settings->retry_count);
	json_number(object, "retry_hold_ms", settings->retry_hold_ms);
	json_number(object, "retry_interval_ms", settings->retry_interval_ms);
	if (comm->weight) {
		json_number(object, "qos", settings->qos ? settings->qos - 1 : COMM_QOS_DEFAULT);
		json_number(object, "weight", comm->weight);
	}
}

static void comms_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_comms; i++) {
		const Hccld__Control__Comm *comm = page->comms[i];
		cJSON *object = cJSON_CreateObject(), *members;

		json_number(object, "comm", comm->comm);
		json_text(object, "name", comm->name);
		json_text(object, "udi", comm->udi);
		json_text(object, "state", comm->state);
		json_number(object, "size", comm->size);
		json_number(object, "pairs", comm->pairs);
		json_number(object, "memory", comm->memory);
		json_number(object, "pair_memory", comm->pair_memory);
		json_number(object, "wide_memory", comm->wide_memory);
		json_number(object, "eager_memory", comm->eager_memory);
		json_number(object, "uid", comm->uid);
		json_number(object, "age_ms", comm->age_ms);
		settings_json(object, comm);
		members = cJSON_AddArrayToObject(object, "members");
		for (size_t j = 0; j < comm->n_members; j++) {
			cJSON *member = cJSON_CreateObject();

			json_number(member, "rank", comm->members[j]->rank);
			json_number(member, "pid", comm->members[j]->pid);
			json_number(member, "device", comm->members[j]->device);
			json_text(member, "state", comm->members[j]->state);
			json_append(members, member);
		}
		json_append(array, object);
	}
}

int command_comms(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl comms [OPTIONS]\n\n"
			"Communicators: size, state, connected pairs, memory of the shared region, how much of it is room for\n"
			"sends that do not wait for their receivers, members. With -v one line for every member, and how the ranks met and what the program has set. Without being root you see\n"
			"your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__COMMS,
		.takes_verbose = true,
		.name = "comms",
		.none = "no communicator exists",
		.counts_comms = true,
		.table = comms_table,
		.rows = comms_rows,
		.json = comms_json,
	};

	return listing_run(&listing, argc, argv);
}
