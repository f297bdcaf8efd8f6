/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rank tables with server_list (versions 1.0 and 1.2) and with group_list (older). All values are texts, also the numbers. Keys that are
 * not known here are passed over.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "client/rank_table_reader.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

#define SERVER_ID_MAX 64u
#define LIST_MAX 65536u

/* What must not be there twice. */
struct names {
	const char **names;
	uint32_t count, room;
};

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* NULL: each is there once. */
static const char *names_twice(struct names *names)
{
	qsort(names->names, names->count, sizeof(*names->names), name_compare);
	for (uint32_t i = 1; i < names->count; i++)
		if (strcmp(names->names[i - 1], names->names[i]) == 0)
			return names->names[i];
	return NULL;
}

struct walk {
	struct reader *reader;
	bool has_super_pods;	/* version 1.2 */
	bool wants_addresses;	/* ranks reach each other through NICs */
	struct names addresses;
	uint32_t *host_ports;	/* of the server that is being read */
	uint32_t host_port_count;
};

static int read_ports(struct walk *walk, const struct place *place, const cJSON *device)
{
	struct reader *reader = walk->reader;
	uint32_t port = 0, host_port = 0;
	int r;

	r = hccld_reader_text_number(reader, place, device, "device_port", 1, 65535, true, &port);
	if (r == 0)
		r = hccld_reader_text_number(reader, place, device, "host_port", 1, 65535, true, &host_port);
	if (r < 0 || !host_port)
		return r;
	for (uint32_t i = 0; i < walk->host_port_count; i++)
		if (walk->host_ports[i] == host_port)
			return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, "host_port",
					   "is %" PRIu32 ", as that of another device of the server; expected one for each", host_port);
	walk->host_ports[walk->host_port_count++] = host_port;
	return 0;
}

static int read_super_device(struct walk *walk, const struct place *place, const cJSON *device)
{
	const char *address;
	uint32_t number;
	int r;

	if (!walk->has_super_pods)
		return 0;
	r = hccld_reader_text_number(walk->reader, place, device, "super_device_id", 0, UINT32_MAX, true, &number);
	if (r == 0)
		r = hccld_reader_address(walk->reader, place, device, "backup_device_ip", true, &address);
	if (r == 0)
		r = hccld_reader_text_number(walk->reader, place, device, "backup_device_port", 1, 65535, true, &number);
	return r;
}

static int read_device(struct walk *walk, const struct place *place, const cJSON *device, uint32_t server)
{
	uint32_t id = 0, rank = 0;
	const char *address;
	int r;

	r = hccld_reader_text_number(walk->reader, place, device, "device_id", 0, HCCLD_DEVICES_MAX - 1, false, &id);
	if (r == 0)
		r = hccld_reader_text_number(walk->reader, place, device, "rank_id", 0, UINT32_MAX, false, &rank);
	if (r == 0)
		r = hccld_reader_address(walk->reader, place, device, "device_ip", true, &address);
	if (r == 0)
		r = read_ports(walk, place, device);
	if (r == 0)
		r = read_super_device(walk, place, device);
	if (r < 0)
		return r;
	if (!address && walk->wants_addresses)
		return hccld_reader_fail(walk->reader, CAUSE_TABLE_ITEM, place, "device_ip",
				   "is missing; with more than one server each device needs the address of its NIC");
	if (address && walk->addresses.count < walk->addresses.room)
		walk->addresses.names[walk->addresses.count++] = address;
	return hccld_reader_add(walk->reader, place, rank, server, id);
}

static int read_server(struct walk *walk, const struct place *place, const cJSON *server)
{
	struct hccld_rank_table *table = walk->reader->table;
	struct place inner = { .outer = place, .array = "device" };
	uint32_t count, index, known = table->server_count;
	const cJSON *devices, *device;
	const char *id, *host_ip;
	int r;

	r = hccld_reader_text(walk->reader, place, server, "server_id", SERVER_ID_MAX, false, &id);
	if (r == 0)
		r = hccld_reader_address(walk->reader, place, server, "host_ip", true, &host_ip);
	if (r == 0)
		r = hccld_reader_array(walk->reader, place, server, "device", 1, HCCLD_DEVICES_MAX, &devices, &count);
	if (r < 0)
		return r;
	index = hccld_reader_server(walk->reader, id);
	if (index < known)
		return hccld_reader_fail(walk->reader, CAUSE_TABLE_VALUE, place, "server_id",
				   "is \"%s\", as that of another server; expected each server once", id);
	table->servers[index].host_ip = host_ip;
	walk->host_port_count = 0;
	cJSON_ArrayForEach(device, devices) {
		r = read_device(walk, &inner, device, index);
		if (r < 0)
			return r;
		inner.index++;
	}
	return 0;
}

/* How many devices there are, for the tables; what is malformed is found later. */
static uint32_t count_inner(const cJSON *list, const char *key)
{
	const cJSON *entry, *device;
	uint32_t count = 0;

	cJSON_ArrayForEach(entry, list)
		cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(entry, key))
			count++;
	return count;
}

static int read_servers(struct walk *walk, const cJSON *servers)
{
	struct place place = { .array = "server_list" };
	const cJSON *server;
	const char *twice;
	int r;

	cJSON_ArrayForEach(server, servers) {
		r = read_server(walk, &place, server);
		if (r < 0)
			return r;
		place.index++;
	}
	twice = names_twice(&walk->addresses);
	if (twice)
		return hccld_reader_fail(walk->reader, CAUSE_TABLE_VALUE, NULL, NULL,
				   "device_ip %s is there twice; expected one for each device", twice);
	return 0;
}

static int read_pod_servers(struct walk *walk, const struct place *pod_place, const cJSON *pod, bool *seen)
{
	const struct hccld_rank_table *table = walk->reader->table;
	struct place place = { .outer = pod_place, .array = "server_list" };
	const cJSON *servers, *server;
	uint32_t count, i;
	const char *id;
	int r;

	r = hccld_reader_array(walk->reader, pod_place, pod, "server_list", 1, LIST_MAX, &servers, &count);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(server, servers) {
		r = hccld_reader_text(walk->reader, &place, server, "server_id", SERVER_ID_MAX, false, &id);
		if (r < 0)
			return r;
		for (i = 0; i < table->server_count && strcmp(table->servers[i].id, id) != 0;)
			i++;
		if (i == table->server_count)
			return hccld_reader_fail(walk->reader, CAUSE_TABLE_VALUE, &place, "server_id",
					   "is \"%s\", which server_list does not have", id);
		if (seen[i])
			return hccld_reader_fail(walk->reader, CAUSE_TABLE_VALUE, &place, "server_id",
					   "is \"%s\", which super_pod_list has already; expected each server in one super node", id);
		seen[i] = true;
		place.index++;
	}
	return 0;
}

/* Version 1.2: each server is in one super node. */
static int read_super_pods(struct walk *walk, const cJSON *pods)
{
	const struct hccld_rank_table *table = walk->reader->table;
	CLEANUP(freep) bool *seen = calloc(table->server_count, sizeof(*seen));
	struct place place = { .array = "super_pod_list" };
	const cJSON *pod;
	const char *id;
	int r;

	if (!seen)
		return hccld_reader_fail(walk->reader, CAUSE_HOST_MEMORY, NULL, NULL, "no memory for super_pod_list");
	cJSON_ArrayForEach(pod, pods) {
		r = hccld_reader_text(walk->reader, &place, pod, "super_pod_id", 128, false, &id);
		if (r == 0)
			r = read_pod_servers(walk, &place, pod, seen);
		if (r < 0)
			return r;
		place.index++;
	}
	for (uint32_t i = 0; i < table->server_count; i++)
		if (!seen[i])
			return hccld_reader_fail(walk->reader, CAUSE_TABLE_ITEM, NULL, "super_pod_list",
					   "does not have server \"%s\" of server_list; add it to the super node it is in",
					   table->servers[i].id);
	return 0;
}

int hccld_rank_table_read_1(struct reader *reader, const cJSON *root, bool has_super_pods)
{
	CLEANUP(freep) const char **addresses = NULL;
	uint32_t host_ports[HCCLD_DEVICES_MAX], count, pod_count = 0, said = 0;
	struct walk walk = { .reader = reader, .has_super_pods = has_super_pods, .host_ports = host_ports };
	const cJSON *servers, *pods = NULL;
	int r;

	r = hccld_reader_status(reader, root, false);
	if (r == 0)
		r = hccld_reader_text_number(reader, NULL, root, "server_count", 1, LIST_MAX, has_super_pods, &said);
	if (r == 0)
		r = hccld_reader_array(reader, NULL, root, "server_list", 1, LIST_MAX, &servers, &count);
	if (r == 0 && said && said != count)
		r = hccld_reader_fail(reader, CAUSE_TABLE_VALUE, NULL, "server_count",
				"is %" PRIu32 ", but server_list has %" PRIu32 " entries; make them agree", said, count);
	if (r == 0 && has_super_pods)
		r = hccld_reader_find(reader, NULL, root, "super_pod_list", &pods);
	if (r == 0 && pods)
		r = hccld_reader_array(reader, NULL, root, "super_pod_list", 1, LIST_MAX, &pods, &pod_count);
	if (r == 0)
		r = hccld_reader_reserve(reader, count_inner(servers, "device"), count);
	if (r < 0)
		return r;
	walk.addresses.room = reader->rank_room;
	walk.addresses.names = addresses = calloc(reader->rank_room, sizeof(*addresses));
	if (!addresses)
		return hccld_reader_fail(reader, CAUSE_HOST_MEMORY, NULL, NULL, "no memory for the addresses of a rank table");
	walk.wants_addresses = pods ? pod_count > 1 : count > 1;
	r = read_servers(&walk, servers);
	if (r == 0 && pods)
		r = read_super_pods(&walk, pods);
	return r;
}

/* ---- group_list: ranks are counted in the order of the devices ---- */

static int read_instance(struct reader *reader, const struct place *place, const cJSON *instance, uint32_t *rank)
{
	struct place inner = { .outer = place, .array = "devices" };
	const cJSON *devices, *device;
	const char *id, *address;
	uint32_t count, number = 0, server;
	int r;

	r = hccld_reader_text(reader, place, instance, "pod_name", 1024, true, &id);
	if (r == 0)
		r = hccld_reader_text(reader, place, instance, "server_id", SERVER_ID_MAX, false, &id);
	if (r == 0)
		r = hccld_reader_array(reader, place, instance, "devices", 1, HCCLD_DEVICES_MAX, &devices, &count);
	if (r < 0)
		return r;
	server = hccld_reader_server(reader, id);
	cJSON_ArrayForEach(device, devices) {
		r = hccld_reader_text_number(reader, &inner, device, "device_id", 0, HCCLD_DEVICES_MAX - 1, false, &number);
		if (r == 0)
			r = hccld_reader_address(reader, &inner, device, "device_ip", true, &address);
		if (r == 0)
			r = hccld_reader_add(reader, &inner, (*rank)++, server, number);
		if (r < 0)
			return r;
		inner.index++;
	}
	return 0;
}

/* A count that the table states of itself. */
static int check_count(struct reader *reader, const struct place *place, const char *key, uint32_t said, uint32_t count,
		       const char *of)
{
	if (said == count)
		return 0;
	return hccld_reader_fail(reader, CAUSE_TABLE_VALUE, place, key, "is %" PRIu32 ", but there are %" PRIu32 " %s; make them agree",
			   said, count, of);
}

static int read_group(struct reader *reader, const struct place *place, const cJSON *group, uint32_t *rank)
{
	struct place inner = { .outer = place, .array = "instance_list" };
	uint32_t instance_count = 0, device_count = 0, count, before = *rank;
	const cJSON *instances, *instance;
	const char *name;
	int r;

	r = hccld_reader_text(reader, place, group, "group_name", 1024, true, &name);
	if (r == 0)
		r = hccld_reader_text_number(reader, place, group, "instance_count", 1, LIST_MAX, false, &instance_count);
	if (r == 0)
		r = hccld_reader_text_number(reader, place, group, "device_count", 1, LIST_MAX, false, &device_count);
	if (r == 0)
		r = hccld_reader_array(reader, place, group, "instance_list", 1, LIST_MAX, &instances, &count);
	if (r == 0)
		r = check_count(reader, place, "instance_count", instance_count, count, "entries in instance_list");
	if (r < 0)
		return r;
	cJSON_ArrayForEach(instance, instances) {
		r = read_instance(reader, &inner, instance, rank);
		if (r < 0)
			return r;
		inner.index++;
	}
	return check_count(reader, place, "device_count", device_count, *rank - before, "devices in the instances");
}

int hccld_rank_table_read_groups(struct reader *reader, const cJSON *root)
{
	struct place place = { .array = "group_list" };
	uint32_t said = 0, count, devices = 0, rank = 0;
	const cJSON *groups, *group;
	int r;

	r = hccld_reader_status(reader, root, false);
	if (r == 0)
		r = hccld_reader_text_number(reader, NULL, root, "group_count", 1, LIST_MAX, false, &said);
	if (r == 0)
		r = hccld_reader_array(reader, NULL, root, "group_list", 1, LIST_MAX, &groups, &count);
	if (r == 0)
		r = check_count(reader, NULL, "group_count", said, count, "entries in group_list");
	if (r < 0)
		return r;
	cJSON_ArrayForEach(group, groups)
		devices += count_inner(cJSON_GetObjectItemCaseSensitive(group, "instance_list"), "devices");
	r = hccld_reader_reserve(reader, devices, devices);
	if (r < 0)
		return r;
	cJSON_ArrayForEach(group, groups) {
		r = read_group(reader, &place, group, &rank);
		if (r < 0)
			return r;
		place.index++;
	}
	return 0;
}
