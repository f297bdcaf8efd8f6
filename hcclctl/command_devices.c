/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl devices: the daemon's devices, and the RDMA devices of the machine. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/describe.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/nic.h"

static struct table *devices_table(const struct options *options)
{
	return describe_device_table();
}

static void devices_rows(struct table *table, const Hccld__Control__ListReply *page,
			 const struct options *options)
{
	for (size_t i = 0; i < page->n_devices; i++)
		describe_device_row(table, page->devices[i]);
}

static void devices_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_devices; i++)
		json_append(array, describe_device_json(page->devices[i]));
}

static const struct listing listing = {
	.help = "Usage: hcclctl devices [OPTIONS]\n\n"
		"The daemon's devices with their memory, and the RDMA devices that libibverbs finds on this machine.\n",
	.kind = HCCLD__CONTROL__LIST__KIND__DEVICES,
	.name = "devices",
	.none = "the daemon has no devices",
	.table = devices_table,
	.rows = devices_rows,
	.json = devices_json,
};

struct nic_table {
	struct table *table;
	size_t rows;
};

static void add_nic_row(const struct nic_port *port, void *arg)
{
	struct nic_table *nics = arg;

	nics->rows++;
	table_row(nics->table);
	table_cell(nics->table, "%s", port->device);
	if (!port->port) {
		table_cell(nics->table, "-");
		table_cell(nics->table, "cannot be opened");
		return;
	}
	table_cell(nics->table, "%" PRIu32, port->port);
	table_cell(nics->table, "%s", port->state);
	table_cell(nics->table, "%s", port->link_layer);
	table_cell(nics->table, "%s", port->interface[0] ? port->interface : "-");
	table_cell(nics->table, "%" PRIu32, port->mtu);
}

static void add_nic_json(const struct nic_port *port, void *arg)
{
	cJSON *object = cJSON_CreateObject();
	char guid[20];

	snprintf(guid, sizeof(guid), "%016" PRIx64, port->guid);
	json_text(object, "name", port->device);
	json_text(object, "interface", port->interface);
	json_text(object, "guid", guid);
	cJSON_AddBoolToObject(object, "usable", port->port != 0);
	json_number(object, "port", port->port);
	json_text(object, "state", port->state);
	json_text(object, "link_layer", port->link_layer);
	json_number(object, "mtu", port->mtu);
	json_append(arg, object);
}

static int print_nics(void)
{
	static const struct column columns[] = {
		{ "RDMA DEVICE", COLUMN_LEFT }, { "PORT", COLUMN_RIGHT },
		{ "STATE", COLUMN_LEFT },	{ "LINK", COLUMN_LEFT },
		{ "INTERFACE", COLUMN_LEFT },	{ "MTU", COLUMN_RIGHT },
	};
	struct nic_table nics = { .rows = 0 };
	int r;

	putchar('\n');
	if (!nic_is_supported()) {
		puts("RDMA devices: this build is without libibverbs and cannot look for them");
		return 0;
	}
	nics.table = table_new(columns, sizeof(columns) / sizeof(columns[0]));
	if (!nics.table)
		return -ENOMEM;
	r = nic_list(add_nic_row, &nics);
	if (r < 0)
		printf("RDMA devices: cannot be listed: %s\n", strerror(-r));
	else if (!nics.rows)
		puts("RDMA devices: libibverbs finds none on this machine");
	else
		table_print(nics.table);
	table_free(nics.table);
	return 0;
}

static int print_json(struct query *query)
{
	cJSON *root = cJSON_CreateObject();
	int r;

	r = listing_add(&listing, query, root);
	if (r < 0) {
		cJSON_Delete(root);
		return query_complain(r);
	}
	cJSON_AddBoolToObject(root, "rdma_supported", nic_is_supported());
	nic_list(add_nic_json, cJSON_AddArrayToObject(root, "rdma_devices"));
	return json_print(root);
}

int command_devices(int argc, char **argv)
{
	struct options options;
	struct query *query;
	int r, status;

	if (options_parse(argc, argv, listing.help, false, &options, &status))
		return status;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	if (options.json) {
		status = print_json(query);
		query_close(query);
		return status;
	}
	r = listing_print(&listing, query, &options);
	query_close(query);
	if (r == 0)
		r = print_nics();
	return r < 0 ? query_complain(r) : STATUS_OK;
}
