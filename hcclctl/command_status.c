/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl status: one screen, the verdict first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hcclctl/command.h"
#include "hcclctl/describe.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"
#include "proto/yard.h"

#define DEVICE_ROWS 16u /* more: only those in use */

static const char help[] =
	"Usage: hcclctl status [OPTIONS]\n\n"
	"One screen about the daemon: first whether all is well, then devices, and the operation that has\n"
	"waited longest with the reason.\n\n"
	"Exit status: 0 all is well, 1 an operation is stuck or the daemon does not answer, 3 no daemon.\n";

/* As in hccld.conf. */
static const char *path_name(const Hccld__Control__StatusReply *status)
{
	return status->local_path == PATH_DIRECT ? "direct" : "engine";
}

static cJSON *status_json(const Hccld__Control__StatusReply *status)
{
	cJSON *root = cJSON_CreateObject(), *devices;

	cJSON_AddBoolToObject(root, "healthy", status->healthy);
	json_text(root, "verdict", status->verdict);
	json_text(root, "version", status->version);
	json_number(root, "pid", status->pid);
	json_number(root, "uptime_ms", status->uptime_ms);
	json_number(root, "incarnation", status->incarnation);
	json_text(root, "socket", status->socket);
	json_text(root, "local_path", path_name(status));
	json_number(root, "sessions", status->sessions);
	json_number(root, "comms", status->comms);
	json_number(root, "streams", status->streams);
	json_number(root, "waiting", status->waiting_count);
	json_number(root, "hidden_sessions", status->hidden_sessions);
	json_number(root, "hidden_comms", status->hidden_comms);
	if (status->draining) {
		cJSON *draining = cJSON_AddObjectToObject(root, "draining");

		json_number(draining, "uid", status->draining->uid);
		json_number(draining, "age_ms", status->draining->age_ms);
	} else {
		cJSON_AddNullToObject(root, "draining");
	}
	if (status->stopping)
		json_number(cJSON_AddObjectToObject(root, "stopping"), "left_ms", status->stopping->left_ms);
	else
		cJSON_AddNullToObject(root, "stopping");
	devices = cJSON_AddArrayToObject(root, "devices");
	for (size_t i = 0; i < status->n_devices; i++)
		json_append(devices, describe_device_json(status->devices[i]));
	if (status->oldest)
		cJSON_AddItemToObject(root, "oldest", describe_waiting_json(status->oldest));
	else
		cJSON_AddNullToObject(root, "oldest");
	return root;
}

static bool is_in_use(const Hccld__Control__Device *device)
{
	return device->contexts || device->memory_used;
}

static int print_devices(const Hccld__Control__StatusReply *status)
{
	struct table *table = describe_device_table();
	size_t left_out = 0;
	int r;

	if (!table)
		return -1;
	for (size_t i = 0; i < status->n_devices; i++) {
		if (status->n_devices > DEVICE_ROWS && !is_in_use(status->devices[i]))
			left_out++;
		else
			describe_device_row(table, status->devices[i]);
	}
	r = table_print(table);
	table_free(table);
	if (left_out)
		printf("and %zu devices that nobody uses\n", left_out);
	return r;
}

static void print_oldest(const Hccld__Control__Waiting *oldest)
{
	CLEANUP(freep) char *comm = text_clean(oldest->comm_name);
	CLEANUP(freep) char *process = text_clean(oldest->process);
	CLEANUP(freep) char *reason = text_clean(oldest->reason);
	char age[TEXT_SHORT];

	printf("\nWaiting longest: %s in %s%s%s\n  %s\n", text_duration(oldest->age_ms, age),
	       process ? process : "", oldest->comm ? ", communicator " : "",
	       oldest->comm && comm ? comm : "", reason ? reason : "");
}

static int print_status(const Hccld__Control__StatusReply *status)
{
	CLEANUP(freep) char *verdict = text_clean(status->verdict);
	CLEANUP(freep) char *version = text_clean(status->version);
	CLEANUP(freep) char *socket = text_clean(status->socket);
	char uptime[TEXT_SHORT];

	if (!verdict || !version || !socket)
		return -1;
	printf("%s\n\n", verdict);
	printf("hccld %s, pid %" PRIu32 ", up %s, incarnation %" PRIu32 ", %s\n", version,
	       status->pid, text_duration(status->uptime_ms, uptime), status->incarnation, socket);
	printf("sessions %" PRIu32 ", communicators %" PRIu32 ", streams %" PRIu32
	       ", waiting operations %" PRIu32 ", local path %s\n\n",
	       status->sessions, status->comms, status->streams, status->waiting_count, path_name(status));
	if (print_devices(status) < 0)
		return -1;
	if (status->oldest)
		print_oldest(status->oldest);
	return 0;
}

int command_status(int argc, char **argv)
{
	struct hccld_call call;
	struct options options;
	struct query *query;
	int r, status;

	if (options_parse(argc, argv, help, false, &options, &status))
		return status;
	r = query_open(&query);
	if (r < 0)
		return query_complain(r);
	r = query_status(query, &call);
	query_close(query);
	if (r < 0)
		return query_complain(r);
	status = call.reply->status->healthy ? STATUS_OK : STATUS_STUCK;
	if (options.json)
		r = json_print(status_json(call.reply->status)) == STATUS_OK ? 0 : -1;
	else
		r = print_status(call.reply->status);
	hccld_call_end(&call);
	return r < 0 ? STATUS_STUCK : status;
}
