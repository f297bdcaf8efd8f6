/* SPDX-License-Identifier: Apache-2.0 */
/* Of hcclctl mem: registered memory, and memory that processes have of others. */
#pragma once

#include <cjson/cJSON.h>

#include "hcclctl/options.h"
#include "hcclctl/query.h"

/* Tables behind a free line each, if there is something. 0 or a negative errno. */
int mem_shared_print(struct query *query, const struct options *options);
/* The arrays, empty with a daemon that has no such lists. */
int mem_shared_add(struct query *query, cJSON *root);
