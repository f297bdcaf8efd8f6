/* SPDX-License-Identifier: Apache-2.0 */
/* What the administrator has decided: command line and environment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

struct config {
	char socket_path[108]; /* sun_path */
	bool is_default_path;  /* its directory is ours to make */
	uint32_t device_count;
	uint64_t device_memory; /* of each device */
	uint64_t host_memory;
	char soc_name[64];
	uint32_t copy_threads;
	bool allow_duplicate_items;
	bool use_keeper;
	int ready_fd; /* -1: none */
	enum log_level log_level;
};

/* 0: go on. 1: everything was said (--help, --version). -EINVAL: said on stderr what is wrong. */
int config_parse(int argc, char **argv, struct config *ret_config);
