/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl comms: communicators and their members. */
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"

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
		{ "UID", COLUMN_RIGHT },
		{ "AGE", COLUMN_RIGHT },
		{ "MEMBERS (RANK:PID@DEVICE)", COLUMN_WRAP },
	};
	static const struct column full[] = {
		{ "COMM", COLUMN_RIGHT },  { "NAME", COLUMN_LEFT }, { "STATE", COLUMN_LEFT },
		{ "RANK", COLUMN_RIGHT },  { "PID", COLUMN_RIGHT }, { "DEVICE", COLUMN_RIGHT },
		{ "MEMBER", COLUMN_LEFT },
	};

	if (options->verbose)
		return table_new(full, sizeof(full) / sizeof(full[0]));
	return table_new(brief, sizeof(brief) / sizeof(brief[0]));
}

static void member_summary(const Hccld__Control__Comm *comm, char *buffer, size_t size)
{
	size_t length = 0;

	snprintf(buffer, size, "-");
	for (size_t i = 0; i < comm->n_members && i < MEMBERS_SHOWN; i++)
		length += (size_t)snprintf(buffer + length, size - length,
					   "%s%" PRIu32 ":%" PRIu32 "@%" PRIu32, i ? " " : "",
					   comm->members[i]->rank, comm->members[i]->pid,
					   comm->members[i]->device);
	if (comm->n_members > MEMBERS_SHOWN)
		snprintf(buffer + length, size - length, " and %zu more",
			 comm->n_members - MEMBERS_SHOWN);
}

static void comms_row(struct table *table, const Hccld__Control__Comm *comm)
{
	char members[256], memory[TEXT_SHORT], age[TEXT_SHORT];

	member_summary(comm, members, sizeof(members));
	table_row(table);
	table_cell(table, "%" PRIu64, comm->comm);
	table_cell(table, "%s", comm->name);
	table_cell(table, "%s", comm->state);
	table_cell(table, "%" PRIu32, comm->size);
	table_cell(table, "%" PRIu32, comm->pairs);
	table_cell(table, "%s", text_size(comm->memory, memory));
	table_cell(table, "%" PRIu32, comm->uid);
	table_cell(table, "%s", text_duration(comm->age_ms, age));
	table_cell(table, "%s", members);
}

static void comms_members(struct table *table, const Hccld__Control__Comm *comm)
{
	for (size_t i = 0; i < comm->n_members; i++) {
		table_row(table);
		table_cell(table, "%" PRIu64, comm->comm);
		table_cell(table, "%s", comm->name);
		table_cell(table, "%s", comm->state);
		table_cell(table, "%" PRIu32, comm->members[i]->rank);
		table_cell(table, "%" PRIu32, comm->members[i]->pid);
		table_cell(table, "%" PRIu32, comm->members[i]->device);
		table_cell(table, "%s", comm->members[i]->state);
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
		json_number(object, "uid", comm->uid);
		json_number(object, "age_ms", comm->age_ms);
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
			"Communicators: size, state, connected pairs, memory of the shared region, members. With -v one line\n"
			"for every member. Without being root you see your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__COMMS,
		.takes_verbose = true,
		.name = "comms",
		.none = "no communicator exists",
		.table = comms_table,
		.rows = comms_rows,
		.json = comms_json,
	};

	return listing_run(&listing, argc, argv);
}
