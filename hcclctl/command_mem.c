/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl mem: the memory that the daemon backs, by device, and by who has it and what it is. */
#include <inttypes.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/listing.h"
#include "hcclctl/mem_shared.h"
#include "hcclctl/text.h"

/* Sums over all pages. */
static struct sums {
	uint64_t device, buffers, host, side, rings, regions;
} sums;

static uint64_t use_total(const Hccld__Control__MemoryUse *use)
{
	return use->device + use->buffers + use->host + use->side + use->rings + use->regions;
}

static uint64_t sums_total(void)
{
	return sums.device + sums.buffers + sums.host + sums.side + sums.rings + sums.regions;
}

static void sums_add(const Hccld__Control__MemoryUse *use)
{
	sums.device += use->device;
	sums.buffers += use->buffers;
	sums.host += use->host;
	sums.side += use->side;
	sums.rings += use->rings;
	sums.regions += use->regions;
}

static struct table *mem_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "OWNER", COLUMN_LEFT },   { "PID", COLUMN_RIGHT },   { "UID", COLUMN_RIGHT },
		{ "NAME", COLUMN_LEFT },    { "DEVICE", COLUMN_RIGHT }, { "BUFFERS", COLUMN_RIGHT },
		{ "HOST", COLUMN_RIGHT },   { "SIDE", COLUMN_RIGHT },   { "RINGS", COLUMN_RIGHT },
		{ "REGIONS", COLUMN_RIGHT }, { "TOTAL", COLUMN_RIGHT },   { "MAPPED", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static const char *owner_name(const Hccld__Control__MemoryUse *use)
{
	switch (use->owner) {
	case HCCLD__CONTROL__MEMORY_USE__OWNER__PROCESS:
		return "process";
	case HCCLD__CONTROL__MEMORY_USE__OWNER__COMM:
		return "communicator";
	default:
		return "daemon";
	}
}

static void number_cell(struct table *table, uint32_t number, bool is_known)
{
	if (is_known)
		table_cell(table, "%" PRIu32, number);
	else
		table_cell(table, "-");
}

static void size_cell(struct table *table, uint64_t bytes)
{
	char buffer[TEXT_SHORT];

	table_cell(table, "%s", bytes ? text_size(bytes, buffer) : "-");
}

static void mem_rows(struct table *table, const Hccld__Control__ListReply *page,
		     const struct options *options)
{
	for (size_t i = 0; i < page->n_memory; i++) {
		const Hccld__Control__MemoryUse *use = page->memory[i];
		bool is_daemon = use->owner == HCCLD__CONTROL__MEMORY_USE__OWNER__DAEMON;

		sums_add(use);
		table_row(table);
		table_cell(table, "%s", owner_name(use));
		number_cell(table, use->pid, use->pid != 0);
		number_cell(table, use->uid, !is_daemon);
		table_cell(table, "%s", use->name);
		size_cell(table, use->device);
		size_cell(table, use->buffers);
		size_cell(table, use->host);
		size_cell(table, use->side);
		size_cell(table, use->rings);
		size_cell(table, use->regions);
		size_cell(table, use_total(use));
		size_cell(table, use->mapped);
	}
}

static void mem_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_memory; i++) {
		const Hccld__Control__MemoryUse *use = page->memory[i];
		cJSON *object = cJSON_CreateObject();

		sums_add(use);
		json_text(object, "owner", owner_name(use));
		if (use->id)
			json_number(object, "id", use->id);
		if (use->pid)
			json_number(object, "pid", use->pid);
		if (use->owner != HCCLD__CONTROL__MEMORY_USE__OWNER__DAEMON)
			json_number(object, "uid", use->uid);
		json_text(object, "name", use->name);
		json_number(object, "device", use->device);
		json_number(object, "buffers", use->buffers);
		json_number(object, "host", use->host);
		json_number(object, "side", use->side);
		json_number(object, "rings", use->rings);
		json_number(object, "regions", use->regions);
		json_number(object, "total", use_total(use));
		json_number(object, "mapped", use->mapped);
		json_append(array, object);
	}
}

static struct table *device_table(const struct options *options)
{
	static const struct column columns[] = {
		{ "DEVICE", COLUMN_RIGHT }, { "USED", COLUMN_RIGHT },
		{ "FREE", COLUMN_RIGHT },   { "TOTAL", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

static uint64_t device_free(const Hccld__Control__Device *device)
{
	return device->memory_total > device->memory_used
		       ? device->memory_total - device->memory_used
		       : 0;
}

static void device_rows(struct table *table, const Hccld__Control__ListReply *page,
			const struct options *options)
{
	for (size_t i = 0; i < page->n_devices; i++) {
		const Hccld__Control__Device *device = page->devices[i];
		char used[TEXT_SHORT], rest[TEXT_SHORT], total[TEXT_SHORT];

		table_row(table);
		table_cell(table, "%" PRIu32, device->device);
		table_cell(table, "%s", text_size(device->memory_used, used));
		table_cell(table, "%s", text_size(device_free(device), rest));
		table_cell(table, "%s", text_size(device->memory_total, total));
	}
}

static void device_json(cJSON *array, const Hccld__Control__ListReply *page)
{
	for (size_t i = 0; i < page->n_devices; i++) {
		const Hccld__Control__Device *device = page->devices[i];
		cJSON *object = cJSON_CreateObject();

		json_number(object, "device", device->device);
		json_number(object, "used", device->memory_used);
		json_number(object, "free", device_free(device));
		json_number(object, "total", device->memory_total);
		json_append(array, object);
	}
}

static const struct listing devices = {
	.kind = HCCLD__CONTROL__LIST__KIND__DEVICES,
	.name = "devices",
	.none = "there are no devices",
	.table = device_table,
	.rows = device_rows,
	.json = device_json,
};

static const struct listing uses = {
	.help = "Usage: hcclctl mem [OPTIONS]\n\n"
		"The memory that hccld backs: of each device, then of each process and communicator by kind. DEVICE\n"
		"is what programs allocate on devices, BUFFERS what they have touched of the HCCL buffers of\n"
		"communicators, HOST pinned host memory, SIDE the items of large batches, RINGS the queues of\n"
		"streams, REGIONS what ranks share and the daemon's own books. MAPPED is what of DEVICE and HOST processes\n"
		"of peer ranks map, to copy from it themselves. Then what ranks have registered for\n"
		"channels (HcclCommMemReg), and in how many channels it is: SEGMENT is a number of the process, OFFSET\n"
		"counts bytes from the start of that. And what processes have of others' memory, by a channel or a key.\n"
		"What lingers is gone, and reads as zeros until its process lets go of it; REASON says why. Without\n"
		"being root you see your own; devices are those of all.\n",
	.kind = HCCLD__CONTROL__LIST__KIND__MEMORY,
	.name = "memory",
	.none = "no process is connected",
	.table = mem_table,
	.rows = mem_rows,
	.json = mem_json,
};

static int mem_print(struct query *query, const struct options *options)
{
	char buffer[TEXT_SHORT];
	int r = listing_print(&devices, query, options);

	if (r < 0)
		return r;
	putchar('\n');
	r = listing_print(&uses, query, options);
	if (r == 0)
		printf("\ntotal %s\n", text_size(sums_total(), buffer));
	return r < 0 ? r : mem_shared_print(query, options);
}

static int mem_add(struct query *query, cJSON *root)
{
	int r = listing_add(&devices, query, root);

	if (r == 0)
		r = listing_add(&uses, query, root);
	if (r == 0)
		json_number(root, "total", sums_total());
	return r < 0 ? r : mem_shared_add(query, root);
}

int command_mem(int argc, char **argv)
{
	struct options options;
	struct query *query;
	cJSON *root = NULL;
	int r, status;

	if (options_parse(argc, argv, uses.help, false, &options, &status))
		return status;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	if (options.json) {
		root = cJSON_CreateObject();
		r = mem_add(query, root);
	} else {
		r = mem_print(query, &options);
	}
	query_close(query);
	if (r < 0) {
		cJSON_Delete(root);
		return query_complain(r);
	}
	return root ? json_print(root) : STATUS_OK;
}
