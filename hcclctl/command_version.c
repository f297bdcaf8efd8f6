/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl version: this tool, the protocol it speaks, the daemon. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "hcclctl/command.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"
#include "proto/limits.h"

static const char help[] =
	"Usage: hcclctl version [OPTIONS]\n\n"
	"The version of this tool, the range of the control protocol it speaks, and the daemon's version.\n"
	"Exit status 0 also when no daemon runs.\n";

static int print_json(const char *socket, const Hccld__Control__HelloReply *hello)
{
	cJSON *root = cJSON_CreateObject(), *daemon;

	json_text(root, "version", HCCLD_VERSION);
	json_number(root, "protocol_low", HCCLD_VERSION_LOW);
	json_number(root, "protocol_high", HCCLD_VERSION_HIGH);
	json_text(root, "socket", socket);
	if (hello) {
		daemon = cJSON_AddObjectToObject(root, "daemon");
		json_text(daemon, "version", hello->daemon);
		json_number(daemon, "protocol", hello->version);
		json_text(daemon, "soc_name", hello->soc_name);
		json_number(daemon, "devices", hello->device_count);
		cJSON_AddBoolToObject(daemon, "allow_duplicate_items",
				      hello->allow_duplicate_items);
	} else {
		cJSON_AddNullToObject(root, "daemon");
	}
	return json_print(root);
}

static void print_text(const char *socket, const Hccld__Control__HelloReply *hello)
{
	printf("hcclctl %s, control protocol %u to %u\n", HCCLD_VERSION, HCCLD_VERSION_LOW,
	       HCCLD_VERSION_HIGH);
	if (hello) {
		CLEANUP(freep) char *version = text_clean(hello->daemon);
		CLEANUP(freep) char *soc_name = text_clean(hello->soc_name);

		printf("hccld %s at %s, control protocol %" PRIu32 ", %" PRIu32
		       " devices of type %s\n",
		       version ? version : "?", socket, hello->version, hello->device_count,
		       soc_name ? soc_name : "?");
	} else {
		printf("no daemon at %s\n", socket);
	}
}

int command_version(int argc, char **argv)
{
	const Hccld__Control__HelloReply *hello = NULL;
	struct query *query = NULL;
	struct options options;
	char socket[PATH_MAX];
	int r, status;

	if (options_parse(argc, argv, help, false, &options, &status))
		return status;
	if (hccld_socket_path(socket, sizeof(socket)) < 0)
		socket[0] = '\0';
	r = query_open(&query);
	if (r == 0)
		hello = query_hello(query);
	else if (r != -ENOTCONN)
		query_complain(r);
	status = STATUS_OK;
	if (options.json)
		status = print_json(socket, hello);
	else
		print_text(socket, hello);
	query_close(query);
	return status;
}
