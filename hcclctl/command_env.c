/* SPDX-License-Identifier: Apache-2.0 */
/* hcclctl env: what to set to build and run programs with this installation. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hcclctl/command.h"
#include "hcclctl/installation.h"
#include "hcclctl/json.h"
#include "hcclctl/options.h"
#include "hcclctl/query.h"
#include "hcclctl/text.h"
#include "proto/cleanup.h"

static const char help[] =
	"Usage: hcclctl env [OPTIONS]\n\n"
	"Prints shell commands that set what Makefiles and programs written for CANN expect, for this\n"
	"installation: ASCEND_HOME_PATH, ASCEND_TOOLKIT_HOME, LD_LIBRARY_PATH, PATH, and HCCLD_SOCKET if\n"
	"--socket is given. Use it as: eval \"$(hcclctl env)\"\n";

static int print_exports(const char *ascend, const char *bin)
{
	CLEANUP(freep) char *home = text_shell_quote(ascend);
	CLEANUP(freep) char *path = text_shell_quote(bin);
	char sbin[PATH_MAX + 8];
	CLEANUP(freep) char *daemons = NULL;
	CLEANUP(freep) char *socket = text_shell_quote(query_socket_is_given() ? getenv("HCCLD_SOCKET") : "");

	snprintf(sbin, sizeof(sbin), "%.*s/sbin", (int)(strrchr(bin, '/') - bin), bin);
	daemons = text_shell_quote(sbin);
	if (!home || !path || !socket || !daemons)
		return STATUS_STUCK;
	printf("export ASCEND_HOME_PATH=%s\n"
	       "export ASCEND_TOOLKIT_HOME=%s\n"
	       "export LD_LIBRARY_PATH=%s/lib64\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n"
	       "export PATH=%s:%s\"${PATH:+:$PATH}\"\n",
	       home, home, home, path, daemons);
	if (query_socket_is_given())
		printf("export HCCLD_SOCKET=%s\n", socket);
	return STATUS_OK;
}

static int print_json(const char *ascend, const char *bin)
{
	cJSON *root = cJSON_CreateObject();
	char socket[PATH_MAX];
	char libraries[PATH_MAX + 8];

	snprintf(libraries, sizeof(libraries), "%s/lib64", ascend);
	json_text(root, "ascend_home_path", ascend);
	json_text(root, "library_path", libraries);
	json_text(root, "path", bin);
	if (hccld_socket_path(socket, sizeof(socket)) == 0)
		json_text(root, "socket", socket);
	return json_print(root);
}

int command_env(int argc, char **argv)
{
	char ascend[PATH_MAX], bin[PATH_MAX];
	struct options options;
	int r, status;

	if (options_parse(argc, argv, help, false, &options, &status))
		return status;
	r = installation_bin(bin);
	if (r == 0)
		r = installation_ascend(ascend);
	if (r < 0) {
		complain(
			"beside this hcclctl there is no lib/hccld/ascend with headers and libraries: %s",
			strerror(-r));
		return STATUS_STUCK;
	}
	return options.json ? print_json(ascend, bin) : print_exports(ascend, bin);
}
