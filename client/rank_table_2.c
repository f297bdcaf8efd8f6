/* SPDX-License-Identifier: Apache-2.0 */
/* Rank tables of version 2.0, with rank_list. Numbers are numbers here. Keys that are not known here are passed over. */
#include <inttypes.h>

#include "client/rank_table_reader.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

#define RANK_COUNT_MAX 65536u
#define LOCAL_ID_MAX 64u
#define LAYERS_MAX 8u
#define ADDRESSES_MAX 24u
#define PORTS_MAX 16u
#define PORT_LENGTH_MAX 32u
#define INSTANCE_ID_MAX 1024u
#define ADDRESS_LENGTH_MAX 256u

/* One of the words that are allowed. */
static int read_word(struct reader *reader, const struct place *place, const cJSON *object, const char *key,
		     const char *const *words)
{
	const char *text;
	int r = hccld_reader_text(reader, place, object, key, 64, false, &text);

	if (r < 0)
		return r;
	for (const char *const *word = words; *word; word++)
		if (strcmp(*word, text) == 0)
			return 0;
	return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is \"%s\"; expected \"%s\"%s%s%s%s%s%s", text, words[0],
			   words[1] ? " or \"" : "", words[1] ? words[1] : "", words[1] ? "\"" : "",
			   words[1] && words[2] ? " or \"" : "", words[1] && words[2] ? words[2] : "",
			   words[1] && words[2] ? "\"" : "");
}

static int read_port_list(struct reader *reader, const struct place *place, const cJSON *address)
{
	const cJSON *ports, *port;
	uint32_t count = 0;
	int r = hccld_reader_find(reader, place, address, "ports", &ports);

	if (r < 0 || !ports)
		return r;
	r = hccld_reader_array(reader, place, address, "ports", 0, PORTS_MAX, &ports, &count);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(port, ports) {
		if (!cJSON_IsString(port) || !*port->valuestring || strlen(port->valuestring) > PORT_LENGTH_MAX)
			return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, "ports",
					   "has an entry that is no text of 1 to %u bytes; expected \"die/port\" such as \"0/1\"",
					   PORT_LENGTH_MAX);
	}
	return 0;
}

static int read_addresses(struct reader *reader, const struct place *layer_place, const cJSON *layer)
{
	static const char *const types[] = { "EID", "IPV4", "IPV6", NULL };
	struct place place = { .outer = layer_place, .array = "rank_addr_list" };
	const cJSON *list, *address;
	const char *text;
	uint32_t count;
	int r = hccld_reader_find(reader, layer_place, layer, "rank_addr_list", &list);

	if (r < 0 || !list)
		return r;
	r = hccld_reader_array(reader, layer_place, layer, "rank_addr_list", 0, ADDRESSES_MAX, &list, &count);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(address, list) {
		r = read_word(reader, &place, address, "addr_type", types);
		if (r == 0)
			r = hccld_reader_text(reader, &place, address, "addr", ADDRESS_LENGTH_MAX, false, &text);
		if (r == 0)
			r = hccld_reader_text(reader, &place, address, "plane_id", ADDRESS_LENGTH_MAX, true, &text);
		if (r == 0)
			r = read_port_list(reader, &place, address);
		if (r < 0)
			return r;
		place.index++;
	}
	return 0;
}

/* *@ret_instance: of layer 0, which is the server. */
static int read_layers(struct reader *reader, const struct place *rank_place, const cJSON *rank, const char **ret_instance)
{
	static const char *const inner_types[] = { "TOPO_FILE_DESC", NULL }, *const outer_types[] = { "CLOS", "TOPO_FILE_DESC", NULL };
	struct place place = { .outer = rank_place, .array = "level_list" };
	uint32_t count, layer = 0, lowest = 0;
	const cJSON *layers, *entry;
	const char *instance;
	int r;

	r = hccld_reader_array(reader, rank_place, rank, "level_list", 1, LAYERS_MAX, &layers, &count);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(entry, layers) {
		r = hccld_reader_number(reader, &place, entry, "net_layer", 0, LAYERS_MAX - 1, false, &layer);
		if (r == 0 && (place.index ? layer < lowest : layer != 0))
			r = hccld_reader_fail(reader, CAUSE_TABLE_VALUE, &place, "net_layer",
					"is %" PRIu32 "; expected layers that grow, from 0 on", layer);
		if (r == 0)
			r = hccld_reader_text(reader, &place, entry, "net_instance_id", INSTANCE_ID_MAX, false, &instance);
		if (r == 0)
			r = read_word(reader, &place, entry, "net_type", layer ? outer_types : inner_types);
		if (r == 0)
			r = read_addresses(reader, &place, entry);
		if (r < 0)
			return r;
		if (layer == 0)
			*ret_instance = instance;
		lowest = layer + 1;
		place.index++;
	}
	return 0;
}

static int read_rank(struct reader *reader, const struct place *place, const cJSON *rank)
{
	uint32_t id = 0, local = 0, device = 0, port = 0;
	const char *instance = NULL;
	int r;

	r = hccld_reader_number(reader, place, rank, "rank_id", 0, RANK_COUNT_MAX - 1, false, &id);
	if (r == 0)
		r = hccld_reader_number(reader, place, rank, "local_id", 0, LOCAL_ID_MAX, false, &local);
	if (r == 0)
		r = hccld_reader_number(reader, place, rank, "device_id", 0, HCCLD_DEVICES_MAX - 1, false, &device);
	if (r == 0)
		r = hccld_reader_number(reader, place, rank, "device_port", 1, 65535, true, &port);
	if (r == 0)
		r = hccld_reader_number(reader, place, rank, "host_port", 1, 65535, true, &port);
	if (r == 0)
		r = read_layers(reader, place, rank, &instance);
	if (r < 0)
		return r;
	return hccld_reader_add(reader, place, id, hccld_reader_server(reader, instance), device);
}

int hccld_rank_table_read_2(struct reader *reader, const cJSON *root)
{
	struct place place = { .array = "rank_list" };
	const cJSON *ranks, *rank;
	uint32_t said = 0, count;
	int r;

	r = hccld_reader_status(reader, root, true);
	if (r == 0)
		r = hccld_reader_number(reader, NULL, root, "rank_count", 1, RANK_COUNT_MAX, false, &said);
	if (r == 0)
		r = hccld_reader_array(reader, NULL, root, "rank_list", 1, RANK_COUNT_MAX, &ranks, &count);
	if (r == 0 && said != count)
		r = hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, "rank_count",
				"is %" PRIu32 ", but rank_list has %" PRIu32 " entries; make them agree", said, count);
	if (r == 0)
		r = hccld_reader_reserve(reader, count, count);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(rank, ranks) {
		r = read_rank(reader, &place, rank);
		if (r < 0)
			return r;
		place.index++;
	}
	return 0;
}
