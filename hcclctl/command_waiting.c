/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl waiting: every operation at the head of its stream that is not done. */
#include "hcclctl/command.h"
#include "hcclctl/describe.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"

static struct table *waiting_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "AGE", COLUMN_RIGHT },
		{ "COMMUNICATOR", COLUMN_LEFT },
		{ "PROCESS", COLUMN_LEFT },
		{ "WHO WAITS FOR WHOM AND WHY", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void waiting_rows(struct table *table, const Hccld__Control__ListReply *page,
			 const struct options *options)
{
	for (size_t i = 0; i < page->n_waiting; i++) {
		const Hccld__Control__Waiting *waiting = page->waiting[i];
		char age[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%s", text_duration(waiting->age_ms, age));
		table_cell(table, "%s", waiting->comm ? waiting->comm_name : "-");
		table_cell(table, "%s", waiting->process);
		table_cell(table, "%s", waiting->reason);
	}
}

static void waiting_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_waiting; i++)
		json_append(array, describe_waiting_json(page->waiting[i]));
}

int command_waiting(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl waiting [OPTIONS]\n\n"
			"Every operation that is at the head of its stream and not done, every HcclChannelAcquire that waits for\n"
			"other ranks, and every host kernel that runs on though its stream has gone: who waits for whom, since when,\n"
			"and why. Without being root you see your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__WAITING,
		.name = "waiting",
		.none = "no operation waits (hcclctl status also tells of communicators that lack ranks)",
		.table = waiting_table,
		.rows = waiting_rows,
		.json = waiting_json,
	};

	return listing_run(&listing, argc, argv);
}
