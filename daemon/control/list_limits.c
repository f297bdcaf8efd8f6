/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of tenants with their limits, and of all memory that the daemon backs. */
#include "control/connection.h"
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "control/user.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/pairs.h"
#include "registry/quota.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/tenant.h"

#define USER_LIMITS 2 /* connections, requests */
#define PAGE 4096u
#define PAIRS_LOOKED_AT_MAX (1u << 18) /* for who has most pending bytes */
#define COMM_CURSOR (1ull << 62)
#define DAEMON_CURSOR (1ull << 63)

static uint64_t pages(uint64_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static Hccld__Control__Limit *limit_new(struct request *request, const char *name,
					const char *setting)
{
	Hccld__Control__Limit *limit = request_alloc(request, sizeof(*limit));

	if (!limit)
		return NULL;
	hccld__control__limit__init(limit);
	limit->name = (char *)name;
	limit->setting = (char *)setting;
	return limit;
}

/* Pending bytes of a session's ranks; fewer than it has once *@left pairs were looked at. */
static uint64_t session_pending(const struct session *session, uint32_t *left)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < session->registry->device_count; i++) {
		const struct context *context = session->contexts[i];

		if (!context)
			continue;
		list_for_each(struct rank, rank, &context->ranks, link) {
			if (rank->comm->view.size > *left)
				return bytes;
			*left -= rank->comm->view.size;
			bytes += pairs_pending(rank->comm, rank->rank);
		}
	}
	return bytes;
}

/*
 * Who has sent pending bytes stands in the rings. How many there are the engine counts by tenant, but only while it offers and receives all
 * of them; else that, too, comes from the rings.
 */
static const struct session *top_pending(const struct quota *quota, uint64_t *ret_used, uint64_t *ret_held)
{
	bool is_counted = registry_path(quota->registry) == PATH_ENGINE;
	const struct session *top = NULL;
	uint32_t left = PAIRS_LOOKED_AT_MAX;
	uint64_t sum = 0;

	*ret_used = is_counted ? quota_used(quota, QUOTA_PENDING) : 0;
	*ret_held = 0;
	if (is_counted && !*ret_used)
		return NULL;
	list_for_each(struct session, session, &quota->registry->sessions, link) {
		uint64_t held = session->quota == quota ? session_pending(session, &left) : 0;

		sum += held;
		if (held > *ret_held) {
			*ret_held = held;
			top = session;
		}
	}
	if (!is_counted)
		*ret_used = sum;
	return top;
}

static Hccld__Control__Limit *limit_of_quota(struct request *request, const struct quota *quota,
					     enum quota_kind kind)
{
	Hccld__Control__Limit *limit =
		limit_new(request, quota_name(kind), quota_setting(kind));
	const struct session *top;
	uint64_t used, held;

	if (!limit)
		return NULL;
	if (kind == QUOTA_PENDING) {
		top = top_pending(quota, &used, &held);
	} else {
		used = quota_used(quota, kind);
		top = quota_top(quota, kind);
		held = top ? quota_held(top, kind) : 0;
	}
	limit->is_bytes = quota_is_bytes(kind);
	limit->used = used;
	limit->limit = quota->registry->limits.values[kind];
	if (top) {
		limit->top_pid = (uint32_t)top->view.pid;
		limit->top_process = (char *)top->process;
		limit->top_held = held;
	}
	return limit;
}

static Hccld__Control__Limit *limit_of_user(struct request *request, const struct user *user,
					    bool is_connections)
{
	const struct control_options *options = &request->control->options;
	Hccld__Control__Limit *limit =
		is_connections ? limit_new(request, "connections", "connections_per_user")
			       : limit_new(request, "requests", "requests_per_user");

	if (!limit)
		return NULL;
	if (user)
		limit->used = is_connections ? user->connections : user->requests;
	limit->limit = is_connections ? options->connections_per_user : options->requests_per_user;
	if (user && user_is_special(user))
		limit->limit = UINT64_MAX;
	return limit;
}

static Hccld__Control__Tenant *list_tenant(struct request *request, const struct quota *quota)
{
	Hccld__Control__Tenant *tenant = request_alloc(request, sizeof(*tenant));
	const struct user *user = user_find(request->control, quota->uid);
	const size_t count = QUOTA_KINDS + USER_LIMITS;

	if (!tenant)
		return NULL;
	hccld__control__tenant__init(tenant);
	tenant->uid = quota->uid;
	tenant->cgroup = (char *)quota->cgroup;
	tenant->weight = share_weight(&quota->share);
	tenant->limits = request_alloc(request, count * sizeof(*tenant->limits));
	if (!tenant->limits)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		Hccld__Control__Limit *limit =
			i < QUOTA_KINDS ? limit_of_quota(request, quota, (enum quota_kind)i)
					: limit_of_user(request, user, i == QUOTA_KINDS);

		if (!limit)
			return NULL;
		tenant->limits[tenant->n_limits++] = limit;
	}
	return tenant;
}

void list_tenants(struct page *page)
{
	struct request *request = page->request;

	list_for_each(struct quota, quota, &request->control->registry->quotas, link) {
		Hccld__Control__Tenant *message;

		if (quota->serial <= page->after || !query_sees(request, quota->uid))
			continue;
		message = list_tenant(request, quota);
		if (!page_add(page, message ? &message->base : NULL, quota->serial))
			return;
	}
}

static Hccld__Control__MemoryUse *use_new(struct request *request,
					  Hccld__Control__MemoryUse__Owner owner)
{
	Hccld__Control__MemoryUse *use = request_alloc(request, sizeof(*use));

	if (!use)
		return NULL;
	hccld__control__memory_use__init(use);
	use->owner = owner;
	return use;
}

static Hccld__Control__MemoryUse *use_of_session(struct request *request,
						 const struct session *session)
{
	Hccld__Control__MemoryUse *use =
		use_new(request, HCCLD__CONTROL__MEMORY_USE__OWNER__PROCESS);

	if (!use)
		return NULL;
	use->id = session->view.id;
	use->pid = (uint32_t)session->view.pid;
	use->uid = session->uid;
	use->name = (char *)session->process;
	use->rings = SESSION_STREAM_OFFSET +
		     (uint64_t)session->stream_slots.used * SESSION_STREAM_STRIDE;
	for (uint32_t i = 0; i < HCCLD_DEVICES_MAX; i++) {
		if (!session->contexts[i])
			continue;
		list_for_each(struct segment, segment, &session->contexts[i]->segments, link) {
			uint64_t *sum = segment->rank			? &use->buffers
					: segment->kind == SEGMENT_DEVICE ? &use->device
					: segment->kind == SEGMENT_HOST ? &use->host
									: &use->side;

			/* what was imported is its owner's */
			*sum += segment->is_import ? 0 : segment->charged;
			use->mapped += segment->is_mapped ? segment->charged : 0;
		}
	}
	return use;
}

static Hccld__Control__MemoryUse *use_of_comm(struct request *request, const struct comm *comm)
{
	Hccld__Control__MemoryUse *use =
		use_new(request, HCCLD__CONTROL__MEMORY_USE__OWNER__COMM);

	if (!use)
		return NULL;
	use->id = comm->id;
	use->uid = comm->uid;
	use->name = (char *)comm->name;
	use->regions = comm->memory;
	return use;
}

static Hccld__Control__MemoryUse *use_of_daemon(struct request *request)
{
	const struct registry *registry = request->control->registry;
	Hccld__Control__MemoryUse *use =
		use_new(request, HCCLD__CONTROL__MEMORY_USE__OWNER__DAEMON);

	if (!use)
		return NULL;
	use->name = (char *)"hccld";
	use->regions = pages(sizeof(struct beacon)) + records_bytes(registry->records);
	list_for_each(struct tenant, tenant, &registry->tenants, link)
		use->regions += pages(sizeof(struct yard_region));
	return use;
}

void list_memory(struct page *page)
{
	struct request *request = page->request;
	struct registry *registry = request->control->registry;
	Hccld__Control__MemoryUse *use;

	list_for_each(struct session, session, &registry->sessions, link) {
		if (session->view.id <= page->after || !query_sees(request, session->uid))
			continue;
		use = use_of_session(request, session);
		if (!page_add(page, use ? &use->base : NULL, session->view.id))
			return;
	}
	list_for_each(struct comm, comm, &registry->comms, link) {
		if ((COMM_CURSOR | comm->id) <= page->after || !query_sees(request, comm->uid) ||
		    !comm->memory)
			continue;
		use = use_of_comm(request, comm);
		if (!page_add(page, use ? &use->base : NULL, COMM_CURSOR | comm->id))
			return;
	}
	if (page->after >= DAEMON_CURSOR || !query_sees_all(request))
		return;
	use = use_of_daemon(request);
	page_add(page, use ? &use->base : NULL, DAEMON_CURSOR);
}
