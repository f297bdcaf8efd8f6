/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and waiting operations for people and programs. Stateless. */
#include "hcclctl/describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcclctl/json.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"
#include "proto/ring.h"

struct table *describe_device_table(void)
{
	static const struct column columns[] = {
		{ "DEVICE", COLUMN_RIGHT },	 { "BACKEND", COLUMN_LEFT },
		{ "PROCESSES", COLUMN_RIGHT },	 { "STREAMS", COLUMN_RIGHT },
		{ "MEMORY USED", COLUMN_RIGHT }, { "TOTAL", COLUMN_RIGHT },
		{ "USE", COLUMN_RIGHT },
	};

	return table_new(columns, sizeof(columns) / sizeof(columns[0]));
}

void describe_device_row(struct table *table, const Hccld__Control__Device *device)
{
	char used[TEXT_SHORT], total[TEXT_SHORT];

	table_row(table);
	table_cell(table, "%" PRIu32, device->device);
	table_cell(table, "%s", device->backend);
	table_cell(table, "%" PRIu32, device->contexts);
	table_cell(table, "%" PRIu32, device->streams);
	table_cell(table, "%s", text_size(device->memory_used, used));
	table_cell(table, "%s", text_size(device->memory_total, total));
	if (device->memory_total)
		table_cell(table, "%.0f%%",
			   100.0 * (double)device->memory_used / (double)device->memory_total);
	else
		table_cell(table, "-");
}

cJSON *describe_device_json(const Hccld__Control__Device *device)
{
	cJSON *object = cJSON_CreateObject();

	json_number(object, "device", device->device);
	json_text(object, "backend", device->backend);
	json_number(object, "contexts", device->contexts);
	json_number(object, "streams", device->streams);
	json_number(object, "memory_used", device->memory_used);
	json_number(object, "memory_total", device->memory_total);
	return object;
}

/* Its task is 0 from a daemon that knows transfers only. */
static const char *describe_operation(const Hccld__Control__Waiting *waiting)
{
	if (waiting->channels)
		return "channel-acquire";
	switch (waiting->task) {
	case TASK_WAIT_EVENT:
		return "wait-event";
	case TASK_WAIT_VALUE:
		return "wait-value";
	case TASK_NOTIFY_WAIT:
		return "wait-notify";
	case TASK_HOST:
		return waiting->blocks ? "host-kernel" : "host-function";
	default:
		break;
	}
	switch (waiting->direction) {
	case 0:
		return "barrier";
	case ITEM_SEND:
		return "send";
	case ITEM_RECEIVE:
		return "receive";
	case ITEM_COPY:
		return "copy";
	case ITEM_FILL:
		return "fill";
	case ITEM_REDUCE:
		return "reduce";
	default:
		return "unknown";
	}
}

const char *describe_reason(const char *reason, uint32_t stream, uint32_t pid)
{
	char start[80];
	int length = snprintf(start, sizeof(start), "stream %" PRIu32 " of pid %" PRIu32 " waits for ", stream, pid);

	return strncmp(reason, start, (size_t)length) == 0 ? reason + length : reason;
}

cJSON *describe_waiting_json(const Hccld__Control__Waiting *waiting)
{
	cJSON *object = cJSON_CreateObject();

	json_number(object, "comm", waiting->comm);
	json_text(object, "comm_name", waiting->comm_name);
	json_number(object, "rank", waiting->rank);
	json_number(object, "pid", waiting->pid);
	json_text(object, "process", waiting->process);
	json_number(object, "stream", waiting->stream);
	json_text(object, "operation", describe_operation(waiting));
	json_number(object, "event", waiting->event);
	if (waiting->notify)
		json_number(object, "notify", waiting->notify - 1);
	json_number(object, "blocks", waiting->blocks);
	json_number(object, "peer", waiting->peer);
	json_number(object, "peer_pid", waiting->peer_pid);
	cJSON_AddBoolToObject(object, "peer_posted", waiting->peer_posted);
	cJSON_AddBoolToObject(object, "held", waiting->held);
	json_number(object, "bytes", waiting->bytes);
	json_number(object, "age_ms", waiting->age_ms);
	json_text(object, "reason", waiting->reason);
	return object;
}
