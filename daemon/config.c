/* SPDX-License-Identifier: Apache-2.0 */
/* Command line and environment. */
#include "daemon/config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "proto/limits.h"

static const char help[] =
	"Usage: hccld [OPTION...]\n"
	"The daemon behind HCCL programs on this node: device memory, streams and communicators.\n"
	"\n"
	"  --socket PATH            where clients connect (default: $HCCLD_SOCKET, else for root\n"
	"                           /run/hccld/hccld.sock, else $XDG_RUNTIME_DIR/hccld/hccld.sock)\n"
	"  --devices N              number of devices, 1 to 64 (default 8)\n"
	"  --device-memory SIZE     memory of each device, such as 512M or 4G\n"
	"                           (default: half of the node's memory, shared by all devices)\n"
	"  --soc-name NAME          what aclrtGetSocName answers (default Ascend910_9391)\n"
	"  --copy-threads N         threads that copy beside the engine, 0 to 64\n"
	"                           (default: a quarter of the cores, at most 4)\n"
	"  --allow-duplicate-items  several items for one peer in a batch go in list order\n"
	"                           (also $HCCLD_ALLOW_DUPLICATE_ITEMS=1)\n"
	"  --keeper, --no-keeper    hold the state in a process of its own, so that the daemon can be\n"
	"                           restarted (default: unless a service manager does)\n"
	"  --ready-fd N             write a line to descriptor N, and close it, when serving\n"
	"  --log-level LEVEL        error, warning, notice, info or debug (default info)\n"
	"  --version, --help\n";

enum option_id {
	OPTION_SOCKET = 1,
	OPTION_DEVICES,
	OPTION_DEVICE_MEMORY,
	OPTION_SOC_NAME,
	OPTION_COPY_THREADS,
	OPTION_ALLOW_DUPLICATE_ITEMS,
	OPTION_KEEPER,
	OPTION_NO_KEEPER,
	OPTION_READY_FD,
	OPTION_LOG_LEVEL,
	OPTION_VERSION,
	OPTION_HELP,
};

static const struct option options[] = {
	{ "socket", required_argument, NULL, OPTION_SOCKET },
	{ "devices", required_argument, NULL, OPTION_DEVICES },
	{ "device-memory", required_argument, NULL, OPTION_DEVICE_MEMORY },
	{ "soc-name", required_argument, NULL, OPTION_SOC_NAME },
	{ "copy-threads", required_argument, NULL, OPTION_COPY_THREADS },
	{ "allow-duplicate-items", no_argument, NULL, OPTION_ALLOW_DUPLICATE_ITEMS },
	{ "keeper", no_argument, NULL, OPTION_KEEPER },
	{ "no-keeper", no_argument, NULL, OPTION_NO_KEEPER },
	{ "ready-fd", required_argument, NULL, OPTION_READY_FD },
	{ "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ 0 },
};

static int config_fail(const char *option, const char *value, const char *expected)
{
	fprintf(stderr, "hccld: --%s %s: %s\n", option, value, expected);
	return -EINVAL;
}

static int parse_number(const char *value, uint64_t low, uint64_t high, uint64_t *ret_number)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end || errno || number < low || number > high)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

/* 4096, 512K, 512M, 4G, 1T, with or without iB or B behind the letter */
static int parse_size(const char *value, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	char *end;
	const char *unit;
	unsigned long long number;
	unsigned int shift = 0;

	errno = 0;
	number = strtoull(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || errno)
		return -EINVAL;
	unit = *end ? strchr(units, *end >= 'a' ? *end - 32 : *end) : NULL;
	if (*end && !unit)
		return -EINVAL;
	if (unit) {
		shift = (unsigned int)(unit - units + 1) * 10;
		end++;
		if (strcmp(end, "") != 0 && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0)
			return -EINVAL;
	}
	if (number == 0 || number > UINT64_MAX >> 17 >> shift)
		return -EINVAL;
	*ret_bytes = (uint64_t)number << shift;
	return 0;
}

static int config_set_socket(struct config *config, const char *path)
{
	if (path[0] != '/' || strlen(path) >= sizeof(config->socket_path)) {
		fprintf(stderr,
			"hccld: socket '%s': an absolute path of at most %zu bytes is needed\n",
			path, sizeof(config->socket_path) - 1);
		return -EINVAL;
	}
	strcpy(config->socket_path, path);
	return 0;
}

/* One option; those without argument have @value NULL. */
static int config_set(struct config *config, enum option_id id, const char *value)
{
	uint64_t number = 0;

	switch (id) {
	case OPTION_SOCKET:
		config->is_default_path = false;
		return config_set_socket(config, value);
	case OPTION_DEVICES:
		if (parse_number(value, 1, HCCLD_DEVICES_MAX, &number) < 0)
			return config_fail("devices", value, "a number from 1 to 64");
		config->device_count = (uint32_t)number;
		return 0;
	case OPTION_DEVICE_MEMORY:
		if (parse_size(value, &config->device_memory) < 0)
			return config_fail("device-memory", value, "a size such as 512M or 4G");
		return 0;
	case OPTION_SOC_NAME:
		if (!*value || strlen(value) >= sizeof(config->soc_name))
			return config_fail("soc-name", value, "a name of 1 to 63 bytes");
		strcpy(config->soc_name, value);
		return 0;
	case OPTION_COPY_THREADS:
		if (parse_number(value, 0, 64, &number) < 0)
			return config_fail("copy-threads", value, "a number from 0 to 64");
		config->copy_threads = (uint32_t)number;
		return 0;
	case OPTION_READY_FD:
		if (parse_number(value, 3, 1 << 20, &number) < 0)
			return config_fail("ready-fd", value, "the number of an open descriptor");
		config->ready_fd = (int)number;
		return 0;
	case OPTION_LOG_LEVEL:
		if (log_level_parse(value, &config->log_level) < 0)
			return config_fail("log-level", value,
					   "error, warning, notice, info or debug");
		return 0;
	case OPTION_ALLOW_DUPLICATE_ITEMS:
		config->allow_duplicate_items = true;
		return 0;
	case OPTION_KEEPER:
	case OPTION_NO_KEEPER:
		config->use_keeper = id == OPTION_KEEPER;
		return 0;
	case OPTION_VERSION:
		puts("hccld " HCCLD_VERSION);
		return 1;
	case OPTION_HELP:
		fputs(help, stdout);
		return 1;
	}
	fprintf(stderr, "hccld: see hccld --help\n");
	return -EINVAL;
}

static int config_default_socket(struct config *config)
{
	const char *path = getenv("HCCLD_SOCKET");
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char buffer[256];

	if (path && *path)
		return config_set_socket(config, path);
	config->is_default_path = true;
	if (geteuid() == 0)
		return config_set_socket(config, "/run/hccld/hccld.sock");
	if (!runtime || !*runtime) {
		/* --socket may still come */
		config->socket_path[0] = 0;
		return 0;
	}
	snprintf(buffer, sizeof(buffer), "%s/hccld/hccld.sock", runtime);
	return config_set_socket(config, buffer);
}

static int config_defaults(struct config *config)
{
	const char *duplicates = getenv("HCCLD_ALLOW_DUPLICATE_ITEMS");
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	*config = (struct config){ .device_count = 8, .ready_fd = -1, .log_level = LOG_LEVEL_INFO };
	strcpy(config->soc_name, "Ascend910_9391");
	config->copy_threads = cores >= 16 ? 4 : cores >= 4 ? (uint32_t)cores / 4 : cores >= 2;
	config->allow_duplicate_items = duplicates && strcmp(duplicates, "1") == 0;
	config->use_keeper = !getenv("NOTIFY_SOCKET");
	return config_default_socket(config);
}

int config_parse(int argc, char **argv, struct config *ret_config)
{
	struct config config;
	uint64_t memory = memory_total();
	int id, r;

	r = config_defaults(&config);
	if (r < 0)
		return r;
	while ((id = getopt_long(argc, argv, "", options, NULL)) != -1) {
		r = config_set(&config, id == '?' ? 0 : (enum option_id)id, optarg);
		if (r != 0)
			return r;
	}
	if (optind < argc) {
		fprintf(stderr,
			"hccld: '%s': there are no arguments without option; see hccld --help\n",
			argv[optind]);
		return -EINVAL;
	}
	if (!config.socket_path[0]) {
		fprintf(stderr,
			"hccld: neither --socket, HCCLD_SOCKET nor XDG_RUNTIME_DIR says where to listen\n");
		return -EINVAL;
	}
	config.host_memory = memory == UINT64_MAX ? 4ull << 30 : memory / 2;
	if (!config.device_memory)
		config.device_memory = config.host_memory / config.device_count;
	/* whole pages */
	config.device_memory = (config.device_memory + 4095) & ~4095ull;
	*ret_config = config;
	return 0;
}
