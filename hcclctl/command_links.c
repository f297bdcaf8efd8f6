/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl links: the other nodes, and how they are reached. */
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "proto/feature.h"

static struct table *links_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "NODE", COLUMN_LEFT },  { "STATE", COLUMN_LEFT },  { "SINCE", COLUMN_RIGHT },    { "ADDRESS", COLUMN_LEFT },
		{ "DATA", COLUMN_LEFT },  { "RTT", COLUMN_RIGHT },   { "SENT", COLUMN_RIGHT },     { "RECEIVED", COLUMN_RIGHT },
		{ "CONNECTIONS", COLUMN_RIGHT }, { "ATTEMPTS", COLUMN_RIGHT }, { "HCCLD", COLUMN_LEFT }, { "WHY", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void links_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_links; i++) {
		const Hccld__Control__Link *link = page->links[i];
		char age[TEXT_SHORT], sent[TEXT_SHORT], received[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%s", link->node ? link->name : "-");
		table_cell(table, "%s", link->state);
		table_cell(table, "%s", text_duration(link->age_ms, age));
		table_cell(table, "%s", link->address);
		table_cell(table, "%s", *link->transport ? link->transport : "-");
		if (link->round_trip_ns)
			table_cell(table, "%.3f ms", (double)link->round_trip_ns / 1e6);
		else
			table_cell(table, "-");
		table_cell(table, "%s", text_size(link->bytes_out, sent));
		table_cell(table, "%s", text_size(link->bytes_in, received));
		table_cell(table, "%" PRIu64, link->connections);
		table_cell(table, "%" PRIu64, link->attempts);
		table_cell(table, "%s", *link->version ? link->version : "-");
		table_cell(table, "%s", link->why);
	}
}

static void links_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_links; i++) {
		const Hccld__Control__Link *link = page->links[i];
		cJSON *object = cJSON_CreateObject();
		char node[24] = "";

		if (link->node)
			snprintf(node, sizeof(node), "%016" PRIx64, link->node);
		json_text(object, "node", node);
		json_text(object, "name", link->name);
		json_text(object, "state", link->state);
		json_number(object, "age_ms", link->age_ms);
		json_text(object, "address", link->address);
		json_text(object, "transport", link->transport);
		json_number(object, "round_trip_ns", link->round_trip_ns);
		json_number(object, "bytes_out", link->bytes_out);
		json_number(object, "bytes_in", link->bytes_in);
		json_number(object, "connections", link->connections);
		json_number(object, "attempts", link->attempts);
		json_text(object, "version", link->version);
		json_number(object, "incarnation", link->incarnation);
		json_number(object, "devices", link->devices);
		json_text(object, "soc_name", link->soc_name);
		json_text(object, "why", link->why);
		json_append(array, object);
	}
}

int command_links(int argc, char **argv)
{
	static const struct listing listing = {
		.help = "Usage: hcclctl links [OPTIONS]\n\n"
			"Links to other nodes: state, address, how data travels, the last round trip, bytes sent and received,\n"
			"how many connections there have been and how often this side has tried to connect, the version of\n"
			"hccld there, and why a link is not up. Then addresses of [links] peers behind which no node was found\n"
			"yet.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__LINKS,
		.feature = HCCLD_FEATURE_LINKS,
		.name = "links",
		.none = "there is no link to another node: hccld.conf(5), section links",
		.table = links_table,
		.rows = links_rows,
		.json = links_json,
	};

	return listing_run(&listing, argc, argv);
}
