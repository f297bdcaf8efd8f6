/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to the daemon, over the same connection code as every client (role TOOL). A daemon that does not answer ends the tool. */
#pragma once

#include <stdbool.h>

#include "client/connection.h"

struct query;

/* The socket of --socket from now on. False: complained about, wrong usage. */
bool query_set_socket(const char *path);
bool query_socket_is_given(void);

/* Connects. Nothing is printed; negative errno for query_complain(). */
int query_open(struct query **ret_query);
struct query *query_close(struct query *query);
const Hccld__Control__HelloReply *query_hello(const struct query *query);

/* Any request that has a reply of one kind. The caller ends @ret_call. */
int query_ask(struct query *query, Hccld__Control__Request *request,
	      Hccld__Control__Reply__BodyCase body, struct hccld_call *ret_call);
/* How long an answer may take from now on (10 s). */
void query_set_timeout(uint32_t timeout_ms);
/* Says nothing when that time is over. */
void query_set_quiet(bool quiet);
/* What a daemon of an older release lacks, a bit of proto/feature.h: says so, with @what such as "drain". False: says nothing. */
bool query_lacks(const struct query *query, uint64_t feature, const char *what);
/* For pushed packets. */
struct hccld_connection *query_connection(const struct query *query);

/* The caller ends @ret_call; its reply->status is not NULL. */
int query_status(struct query *query, struct hccld_call *ret_call);
/* Calls @page for every page of the list until one returns a negative errno. */
int query_list(struct query *query, Hccld__Control__List__Kind kind,
	       int (*page)(const Hccld__Control__ListReply *list, void *arg), void *arg);
/* The same; @filter: fields but `after`. */
int query_list_filtered(struct query *query, const Hccld__Control__List *filter,
			int (*page)(const Hccld__Control__ListReply *list, void *arg), void *arg);

/* Says on stderr what went wrong and what to do. Returns the exit status. */
int query_complain(int error);
