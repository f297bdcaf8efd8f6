/* SPDX-License-Identifier: Apache-2.0 */
/* How devices and waiting operations look, in tables, sentences and JSON; used by more than one command. */
#pragma once

#include <cjson/cJSON.h>

#include "hcclctl/table.h"
#include "proto/control.pb-c.h"

struct table *describe_device_table(void);
void describe_device_row(struct table *table, const Hccld__Control__Device *device);
cJSON *describe_device_json(const Hccld__Control__Device *device);

/* Why a stream waits, without the words that name the stream itself: for its row in a table. */
const char *describe_reason(const char *reason, uint32_t stream, uint32_t pid);
cJSON *describe_waiting_json(const Hccld__Control__Waiting *waiting);
