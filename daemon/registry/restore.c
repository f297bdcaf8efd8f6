/* SPDX-License-Identifier: Apache-2.0 */
/* After a restart: from records to objects, parents first. */
#include "registry/restore.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/namespace.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/cores.h"
#include "registry/lazy.h"
#include "registry/notify.h"
#include "registry/record.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/remnant.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/share.h"
#include "registry/tenant.h"
#include "registry/thread.h"

static void record_drop(struct registry *registry, enum record_kind kind, uint32_t index,
			const char *what, uint64_t id, int error)
{
	log_warning("%s %" PRIu64 " of the previous process is dropped: %s", what, id,
		    error == -ENOENT   ? "a descriptor is missing"
		    : error == -EPROTO ? "its record does not fit the rest"
				       : strerror(-error));
	records_remove(registry->records, kind, index);
}

static void restore_tenants(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_TENANT); i++) {
		const struct record_tenant *record =
			records_get(registry->records, RECORD_TENANT, i);
		int fd, r;

		if (!record)
			continue;
		fd = store_take(registry->store, STORE_YARD, record->id);
		r = fd < 0 ? -ENOENT : tenant_restore(registry, i, fd);
		if (r == 0)
			continue;
		store_remove(registry->store, STORE_YARD, record->id);
		record_drop(registry, RECORD_TENANT, i, "the yard", record->id, r);
	}
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_TENANT_KEY); i++)
		if (records_get(registry->records, RECORD_TENANT_KEY, i) &&
		    tenant_restore_key(registry, i) < 0)
			records_remove(registry->records, RECORD_TENANT_KEY, i);
}

/* Tenants of 0.1.0 get a key, those without sessions go. */
static void settle_tenants(struct registry *registry)
{
	list_for_each(struct session, session, &registry->sessions, link)
		if (!session->tenant->has_key_record)
			tenant_adopt_key(session->tenant, namespace_of_process(session->view.pid));
	list_for_each(struct tenant, tenant, &registry->tenants, link) {
		if (tenant->session_count)
			continue;
		list_for_each(struct remnant, remnant, &registry->remnants, link)
			if (remnant->tenant == tenant)
				remnant_remove(remnant);
		tenant_remove(tenant);
	}
}

static struct tenant *tenant_find(struct registry *registry, uint64_t id)
{

	list_for_each(struct tenant, tenant, &registry->tenants, link)
		if (tenant->id == id)
			return tenant;
	return NULL;
}

/* Lists of sessions go by growing id, records do not. */
static void sessions_sort(struct registry *registry)
{
	struct session *other;
	struct list sorted;

	list_init(&sorted);
	list_for_each(struct session, session, &registry->sessions, link) {
		struct list *after = sorted.previous;

		while (after != &sorted) {
			other = list_entry(after, struct session, link);
			if (other->view.id < session->view.id)
				break;
			after = after->previous;
		}
		list_remove(&session->link);
		/* appending to a node's successor puts it right behind that node */
		list_append(after->next, &session->link);
	}
	list_splice(&registry->sessions, &sorted);
}

static void comms_sort(struct registry *registry)
{
	struct comm *other;
	struct list sorted;

	list_init(&sorted);
	list_for_each(struct comm, comm, &registry->comms, link) {
		struct list *after = sorted.previous;

		while (after != &sorted) {
			other = list_entry(after, struct comm, link);
			if (other->id < comm->id)
				break;
			after = after->previous;
		}
		list_remove(&comm->link);
		list_append(after->next, &comm->link);
	}
	list_splice(&registry->comms, &sorted);
}

static void restore_sessions(struct registry *registry)
{
	struct session *session;

	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_SESSION); i++) {
		const struct record_session *record =
			records_get(registry->records, RECORD_SESSION, i);
		struct tenant *tenant;
		int pidfd = -1, r;

		if (!record)
			continue;
		tenant = tenant_find(registry, record->tenant);
		r = tenant ? session_restore(registry, tenant, i, &session, &pidfd) : -ENOENT;
		if (r == 0)
			continue;
		store_remove(registry->store, STORE_SOCKET, record->id);
		store_remove(registry->store, STORE_REGION, record->id);
		if (pidfd >= 0 && remnant_restore(registry, tenant, i, pidfd) == 0)
			continue;
		store_remove(registry->store, STORE_PIDFD, record->id);
		record_drop(registry, RECORD_SESSION, i, "session", record->id, r);
	}
	sessions_sort(registry);
}

static void restore_contexts(struct registry *registry)
{
	struct context *context;

	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_CONTEXT); i++) {
		const struct record_context *record =
			records_get(registry->records, RECORD_CONTEXT, i);
		struct session *session;
		int r;

		if (!record)
			continue;
		session = idmap_get(&registry->session_ids, record->session);
		r = session ? context_restore(session, i, &context) : remnant_restore_context(registry, i);
		if (r == 0)
			continue;
		if (session) {
			session->is_broken = true;
			record_drop(registry, RECORD_CONTEXT, i, "a context of session",
				    record->session, r);
		} else {
			records_remove(registry->records, RECORD_CONTEXT, i);
		}
	}
}

/* The context that a record names, or NULL. *@ret_session: its session, if that is there. */
static struct context *context_find(struct registry *registry, uint64_t session_id, uint64_t id,
				    struct session **ret_session)
{
	struct session *session = idmap_get(&registry->session_ids, session_id);

	*ret_session = session;
	return session ? session_context(session, id) : NULL;
}

static void restore_streams(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_STREAM); i++) {
		const struct record_stream *record =
			records_get(registry->records, RECORD_STREAM, i);
		struct context *context;
		struct session *session;

		if (!record)
			continue;
		context = context_find(registry, record->session, record->context, &session);
		if (context && stream_restore(context, i) == 0)
			continue;
		if (session)
			session->is_broken = true;
		records_remove(registry->records, RECORD_STREAM, i);
	}
}

static void restore_cores(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_CORES); i++)
		if (records_get(registry->records, RECORD_CORES, i) && cores_restore(registry, i) < 0)
			records_remove(registry->records, RECORD_CORES, i);
}

static void restore_segments(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_SEGMENT); i++) {
		const struct record_segment *record =
			records_get(registry->records, RECORD_SEGMENT, i);
		struct context *context;
		struct session *session;
		int fd;

		if (!record)
			continue;
		context = context_find(registry, record->session, record->context, &session);
		if (!context && record->retired != SEGMENT_RETIRED) {
			if (session)
				session->is_broken = true;
			continue; /* drop_segments() */
		}
		fd = store_take(registry->store, STORE_SEGMENT, record->serial);
		/* one that was being freed is freed now; whoever asked for it asks again */
		if (record->retired == SEGMENT_RETIRED) {
			segment_drop(registry, i, fd);
			continue;
		}
		if (fd >= 0 && segment_restore(context, i, fd) == 0)
			continue;
		session->is_broken = true;
		segment_drop(registry, i, -1);
	}
}

static void restore_shares(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_EXPORT); i++)
		if (records_get(registry->records, RECORD_EXPORT, i) &&
		    export_restore(registry, i) < 0)
			records_remove(registry->records, RECORD_EXPORT, i);
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_IMPORT); i++) {
		const struct record_import *record =
			records_get(registry->records, RECORD_IMPORT, i);
		struct session *session;
		int r;

		if (!record)
			continue;
		session = idmap_get(&registry->session_ids, record->session);
		r = import_restore(registry, i);
		if (r == 0)
			continue;
		if (session && r != -ENOENT)
			session->is_broken = true;
		records_remove(registry->records, RECORD_IMPORT, i);
	}
}

/* After imports: those of what was being freed are lost. */
static void restore_notifies(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_NOTIFIES); i++) {
		const struct record_notifies *record =
			records_get(registry->records, RECORD_NOTIFIES, i);
		struct context *context;
		struct session *session;
		int r;

		if (!record)
			continue;
		context = context_find(registry, record->session, record->context, &session);
		r = context ? notifies_restore(context, i) : -EPROTO;
		if (r == 0)
			continue;
		if (session && r != -ENOENT)
			session->is_broken = true;
		records_remove(registry->records, RECORD_NOTIFIES, i);
	}
}

static void restore_comms(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_COMM); i++) {
		const struct record_comm *record = records_get(registry->records, RECORD_COMM, i);
		struct session *owner;
		struct comm *comm;
		int r;

		if (!record)
			continue;
		r = comm_restore(registry, i, &comm);
		if (r < 0) {
			record_drop(registry, RECORD_COMM, i, "communicator", record->id, r);
			continue;
		}
		owner = idmap_get(&registry->session_ids, comm->owner);
		if (owner) {
			owner->root_infos++;
			comm_set_tenant(comm, owner);
		} else {
			comm->owner = 0;
		}
		/* its ranks make it again; those of a root info cannot, and ask again */
		if (!owner && comm->origin != COMM_ROOT_INFO && comm->state != COMM_READY)
			comm_collect(comm);
	}
	comms_sort(registry);
}

/* A rank without process, or a process without the communicator it had joined. */
static void rank_lost(const struct record_rank *record, struct session *session, struct comm *comm)
{
	struct comm_member *member;
	uint32_t alive = MEMBER_ALIVE;

	if (comm && comm->state != COMM_READY)
		return; /* it was not complete yet: the ranks ask again */
	if (comm && record->rank < comm->view.size) {
		member = &comm->view.region->members[record->rank];
		/* not alive: it was leaving, and has now */
		if (!atomic_compare_exchange_strong(&member->word, &alive, MEMBER_DEAD))
			return;
	}
	if (session)
		session->is_broken = true;
}

static void restore_ranks(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_RANK); i++) {
		const struct record_rank *record = records_get(registry->records, RECORD_RANK, i);
		struct context *context;
		struct session *session;
		struct comm *comm;

		if (!record)
			continue;
		context = context_find(registry, record->session, record->context, &session);
		comm = idmap_get(&registry->comm_ids, record->comm);
		if (context && comm && rank_restore(context, i, comm) == 0)
			continue;
		rank_lost(record, session, comm);
		records_remove(registry->records, RECORD_RANK, i);
	}
}

/* Those without a context, now that their ranks are said to be dead: nothing that peers read from them counts (P4). */
static void drop_segments(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_SEGMENT); i++) {
		const struct record_segment *record = records_get(registry->records, RECORD_SEGMENT, i);
		struct session *session;

		if (record && !context_find(registry, record->session, record->context, &session))
			segment_drop(registry, i, store_take(registry->store, STORE_SEGMENT, record->serial));
	}
}

/* What belongs to ranks that are not there goes with them. */
static void restore_channels(struct registry *registry)
{
	struct records *records = registry->records;

	for (uint32_t i = 0; i < records_limit(records, RECORD_REGISTRATION); i++)
		if (records_get(records, RECORD_REGISTRATION, i) &&
		    registration_restore(registry, i) < 0)
			records_remove(records, RECORD_REGISTRATION, i);
	for (uint32_t i = 0; i < records_limit(records, RECORD_CHANNEL); i++)
		if (records_get(records, RECORD_CHANNEL, i) && channel_restore(registry, i) < 0)
			records_remove(records, RECORD_CHANNEL, i);
	channels_restored(registry);
}

static void restore_threads(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_THREAD); i++) {
		const struct record_thread *record =
			records_get(registry->records, RECORD_THREAD, i);
		struct context *context;
		struct session *session;
		int r;

		if (!record)
			continue;
		context = context_find(registry, record->session, record->context, &session);
		r = context ? thread_restore(context, i) : -ENOENT;
		if (r == 0)
			continue;
		/* its stream is missing: it was being made, or going, and who asked for that asks again */
		if (session && r != -ENOENT)
			session->is_broken = true;
		records_remove(registry->records, RECORD_THREAD, i);
	}
}

/* Records of extents whose communicator is not there. */
static void drop_extents(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_EXTENT); i++) {
		const struct record_extent *record =
			records_get(registry->records, RECORD_EXTENT, i);
		const struct comm *comm;

		if (!record)
			continue;
		comm = idmap_get(&registry->comm_ids, record->comm);
		if (comm && comm->state == COMM_READY)
			continue;
		store_remove(registry->store, STORE_EXTENT, record->serial);
		records_remove(registry->records, RECORD_EXTENT, i);
	}
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_GROWTH); i++) {
		const struct record_growth *record = records_get(registry->records, RECORD_GROWTH, i);
		const struct comm *comm = record ? idmap_get(&registry->comm_ids, record->comm) : NULL;

		if (!record || (comm && comm->state == COMM_READY))
			continue;
		store_remove(registry->store, STORE_EXTENT, record->serial);
		records_remove(registry->records, RECORD_GROWTH, i);
	}
}

/* What was being freed: after all that knows it. */
static void settle_notifies(struct registry *registry)
{
	list_for_each(struct session, session, &registry->sessions, link) {
		for (uint32_t i = 0; i < registry->device_count; i++)
			if (session->contexts[i])
				notifies_lose(session->contexts[i]);
		notifies_collect(session);
	}
}

void registry_restore(struct registry *registry)
{

	restore_tenants(registry);
	restore_sessions(registry);
	settle_tenants(registry);
	restore_contexts(registry);
	restore_streams(registry);
	restore_cores(registry);
	restore_segments(registry);
	restore_shares(registry);
	restore_notifies(registry);
	restore_comms(registry);
	restore_ranks(registry);
	drop_segments(registry);
	lazy_restore(registry);
	restore_channels(registry);
	restore_threads(registry);
	settle_notifies(registry);
	drop_extents(registry);
	list_for_each(struct comm, comm, &registry->comms, link)
		if (comm->state == COMM_READY)
			comm_collect(comm);
}

void registry_sweep(struct registry *registry)
{

	list_for_each(struct comm, comm, &registry->comms, link)
		comm_collect(comm);
}
