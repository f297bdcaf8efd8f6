/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests for status and lists share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/request.h"

struct waiting;

/* Who may see all users' objects: root and the daemon's own user. */
bool query_sees_all(const struct request *request);
/* May the one who asks see objects of @uid? */
bool query_sees(const struct request *request, uint32_t uid);
/* Messages of @request's memory; NULL: out of memory. */
Hccld__Control__Device *query_device(struct request *request, uint32_t device);
Hccld__Control__Waiting *query_waiting(struct request *request, const struct waiting *waiting);
