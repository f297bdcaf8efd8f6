/* SPDX-License-Identifier: Apache-2.0 */
/* Which tenant a process belongs to, tenants that nobody belongs to any more, and their limits. */
#pragma once

#include <stdint.h>

#include "proto/status.h"
#include "registry/quota.h"

struct connection;
struct control;
struct request;
struct registry;
struct session;
struct tenant;
struct tenant_key;
struct text;

/*
 * By what the kernel says of @connection's process, which @pidfd stands for. -ESRCH: it has ended
 * meanwhile.
 */
int tenants_key(const struct connection *connection, int pidfd, struct tenant_key *ret_key);
/* The tenant of @key, known to the scheduler. -EDQUOT, ... */
int tenants_get(struct control *control, const struct tenant_key *key, struct tenant **ret_tenant);
/* A session of @tenant has gone: with its last one the tenant goes, some time later. */
void tenants_collect(struct control *control, struct tenant *tenant);

/* Refuses: the limit of @kind is in the way of @asked more. Returns what request_fail() does. */
int tenants_refuse(struct request *request, enum cause cause, const struct quota *quota,
		   enum quota_kind kind, uint64_t asked);
/* Refuses a stream of @session, for which stream_new() has given @r; other errors are passed on. */
int tenants_refuse_stream(struct request *request, const struct session *session, int r);
/* Refuses memory of @bytes, or its descriptor, for a communicator. */
int tenants_refuse_region(struct request *request, const struct quota *quota, uint64_t bytes);
#define TENANTS_HOST_REMEDY \
	"the limit is half of the node's memory, or of what hccld's control group may have (MemoryMax= of hccld.service raises that)"
/* Appends that host memory, which is no tenant's, has no room for @bytes. */
void tenants_describe_host(const struct registry *registry, uint64_t bytes, struct text *text);
/* Refuses @bytes of it. */
int tenants_refuse_host(struct request *request, uint64_t bytes);
