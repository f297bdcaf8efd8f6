/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl channels: the ends of channels, and what each has of its peer. */
#include <inttypes.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/text.h"
#include "proto/channel.h"
#include "proto/feature.h"

static struct table *channels_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "COMMUNICATOR", COLUMN_LEFT }, { "RANK", COLUMN_RIGHT },     { "PID", COLUMN_RIGHT },	     { "PEER", COLUMN_RIGHT },
		{ "PEER PID", COLUMN_RIGHT },	 { "ENGINE", COLUMN_LEFT },    { "PROTOCOL", COLUMN_LEFT },   { "STATE", COLUMN_LEFT },
		{ "NOTIFIES", COLUMN_RIGHT },	 { "OF PEER", COLUMN_RIGHT },  { "BUFFER", COLUMN_RIGHT },    { "REGIONS", COLUMN_RIGHT },
		{ "BYTES", COLUMN_RIGHT },	 { "REASON", COLUMN_WRAP },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static void channels_rows(struct table *table, const Hccld__Control__ListReply *page, const struct options *options)
{
	for (size_t i = 0; i < page->n_channels; i++) {
		const Hccld__Control__Channel *channel = page->channels[i];
		char size[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%s", channel->comm_name);
		table_cell(table, "%" PRIu32, channel->rank);
		table_cell(table, "%" PRIu32, channel->pid);
		table_cell(table, "%" PRIu32, channel->peer);
		table_cell(table, "%" PRIu32, channel->peer_pid);
		table_cell(table, "%s", channel_engine_name(channel->engine));
		table_cell(table, "%s", channel_protocol_name(channel->protocol));
		table_cell(table, "%s", channel->state);
		table_cell(table, "%" PRIu32, channel->notifies);
		table_cell(table, "%" PRIu32, channel->peer_notifies);
		table_cell(table, "%s", channel->buffer ? text_size(channel->buffer, size) : "-");
		table_cell(table, "%" PRIu32, channel->memories);
		table_cell(table, "%s", channel->memories ? text_size(channel->memory_bytes, size) : "-");
		table_cell(table, "%s", channel->reason);
	}
}

static void channels_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_channels; i++) {
		const Hccld__Control__Channel *channel = page->channels[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "channel", channel->channel);
		json_number(object, "comm", channel->comm);
		json_text(object, "comm_name", channel->comm_name);
		json_number(object, "rank", channel->rank);
		json_number(object, "pid", channel->pid);
		json_number(object, "uid", channel->uid);
		json_text(object, "process", channel->process);
		json_number(object, "device", channel->device);
		json_number(object, "peer", channel->peer);
		json_number(object, "peer_pid", channel->peer_pid);
		json_text(object, "engine", channel_engine_name(channel->engine));
		json_text(object, "protocol", channel_protocol_name(channel->protocol));
		json_text(object, "state", channel->state);
		json_number(object, "notifies", channel->notifies);
		json_number(object, "peer_notifies", channel->peer_notifies);
		json_number(object, "buffer", channel->buffer);
		json_number(object, "regions", channel->memories);
		json_number(object, "bytes", channel->memory_bytes);
		json_number(object, "age_ms", channel->age_ms);
		json_text(object, "reason", channel->reason);
		json_append(array, object);
	}
}

int command_channels(int argc, char **argv)
{
	static const size_t order[] = { 0, 1, 3 }; /* communicator, rank, peer */
	static const struct listing listing = {
		.help = "Usage: hcclctl channels [OPTIONS]\n\n"
			"The ends of channels (HcclChannelAcquire); a channel has two, one at each rank. STATE: offered waits\n"
			"for the other end, REASON says what its rank does; complete; dead: the other end has gone, and this\n"
			"one is to be destroyed. NOTIFIES are this end's, the rest is what it has of its peer: notifies, the\n"
			"HCCL buffer, registered memory; what is gone of that lingers in hcclctl mem, and does not count.\n"
			"Without being root you see your own.\n",
		.kind = HCCLD__CONTROL__LIST__KIND__CHANNELS,
		.feature = HCCLD_FEATURE_RESOURCES,
		.name = "channels",
		.none = "there is no channel",
		.order = order,
		.order_count = sizeof(order) / sizeof(order[0]),
		.table = channels_table,
		.rows = channels_rows,
		.json = channels_json,
	};

	return listing_run(&listing, argc, argv);
}
