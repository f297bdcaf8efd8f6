/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens, for those who monitor (hcclctl monitor): an event goes to each at once, or is counted as
 * lost when its socket is full. Nobody is waited for, and without monitors nothing is done. The kinds
 * are listed in hcclctl(1). A user's monitor gets the events of that user's objects, and those of the
 * daemon as a whole.
 */
#pragma once

#include <stdint.h>

#include "proto/status.h"

struct comm;
struct connection;
struct control;
struct request;
struct session;

/* @text: "" or why. */
void monitor_session(struct control *control, const char *kind, const struct session *session,
		   const char *text);
void monitor_comm(struct control *control, const char *kind, const struct comm *comm,
		enum cause cause, const char *text);
/* An act of user @uid; everybody sees it. */
void monitor_admin(struct control *control, const char *kind, uint32_t uid, const char *text);
/* A request that was refused; only those for want of something are events. */
void monitor_refused(const struct request *request, enum cause cause, const char *text);
/* There is room in the socket again. */
void monitor_tell_lost(struct connection *connection);
