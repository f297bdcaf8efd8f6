/* SPDX-License-Identifier: Apache-2.0 */
/* What the requests for status and lists share. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/request.h"

struct comm;
struct control;
struct session;
struct waiting;

/* Who may see all users' objects: root and the daemon's own user. */
bool query_sees_all(const struct request *request);
/* May the one who asks see objects of @uid? */
bool query_sees(const struct request *request, uint32_t uid);
/* -EDQUOT with words when an administrator lets no new programs in. @what: "new processes". */
int query_check_draining(struct request *request, const char *what);
/* *@message is filled in; NULL: nobody drains. */
Hccld__Control__Draining *query_draining(const struct control *control,
					 Hccld__Control__Draining *message);
/* Messages of @request's memory; NULL: out of memory. */
Hccld__Control__Device *query_device(struct request *request, uint32_t device);
/* Of what @session waits for, as @rank of @comm (NULL: without); the rest is the caller's. */
Hccld__Control__Waiting *query_waiting_new(struct request *request, const struct session *session, const struct comm *comm, uint32_t rank,
					   uint64_t age_ms);
Hccld__Control__Waiting *query_waiting(struct request *request, const struct waiting *waiting);
