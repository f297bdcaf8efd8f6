/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists, page by page. A page ends after HCCLD_LIST_PAGE entries or when the packet is full; `next`
 * is the cursor of its last entry. Entries may come and go between two pages; none that stays is
 * left out or comes twice.
 */
#include <errno.h>
#include <inttypes.h>

#include "control/channel_wait.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/page.h"
#include "control/query.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/lazy.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

#define PAGE_BYTES_MAX (HCCLD_PACKET_MAX - 4096u)
#define MEMBERS_PER_ENTRY 1024u /* of a larger communicator the next entry has the rest */

bool page_add(struct page *page, ProtobufCMessage *message, uint64_t cursor)
{
	size_t bytes;

	if (!message) {
		page->error = -ENOMEM;
		return false;
	}
	/* tag and length come on top */
	bytes = protobuf_c_message_get_packed_size(message) + 8;
	if (page->count == HCCLD_LIST_PAGE ||
	    (page->count && page->bytes + bytes > PAGE_BYTES_MAX)) {
		page->is_full = true;
		return false;
	}
	page->entries[page->count++] = message;
	page->bytes += bytes;
	page->last = cursor;
	return true;
}

static void session_add_tasks(struct session *session, Hccld__Control__Session *message)
{
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++) {
		const struct stream *stream = session_stream_at(session, i);

		if (!stream)
			continue;
		message->streams++;
		message->tasks_completed +=
			atomic_load_explicit(&stream->ring->completed, memory_order_relaxed);
		message->tasks_submitted +=
			atomic_load_explicit(&stream->ring->tail, memory_order_relaxed);
	}
}

static Hccld__Control__Session *list_session(struct request *request, struct session *session)
{
	struct registry *registry = request->control->registry;
	Hccld__Control__Session *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__session__init(message);
	message->session = session->view.id;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = session->process;
	message->library = session->library;
	message->age_ms = (clock_now_ns() - session->started_ns) / 1000000;
	message->memory = session_memory(session);
	message->ranks = session->rank_slots.used;
	session_add_tasks(session, message);
	message->devices = request_alloc(request, registry->device_count * sizeof(uint32_t));
	if (!message->devices)
		return NULL;
	for (uint32_t i = 0; i < registry->device_count; i++)
		if (session->contexts[i])
			message->devices[message->n_devices++] = i;
	return message;
}

static void list_sessions(struct page *page)
{
	struct request *request = page->request;

	list_for_each(struct session, session, &request->control->registry->sessions, link) {
		Hccld__Control__Session *message;

		if (session->view.id <= page->after || !query_sees(request, session->uid))
			continue;
		message = list_session(request, session);
		if (!page_add(page, message ? &message->base : NULL, session->view.id))
			return;
	}
}

static const char *member_state(const struct comm_member *member)
{
	uint32_t word = atomic_load_explicit(&member->word, memory_order_acquire);

	if (word == MEMBER_ALIVE && atomic_load_explicit(&member->epoch, memory_order_acquire) & 1)
		return "suspended";
	return word == MEMBER_ALIVE  ? "alive"
	       : word == MEMBER_LEFT ? "left"
	       : word == MEMBER_DEAD ? "dead"
				     : "absent";
}

/* Rank @i, or NULL without memory. */
static Hccld__Control__Member *list_member(struct request *request, const struct comm *comm,
					   uint32_t i)
{
	Hccld__Control__Member *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__member__init(message);
	message->rank = i;
	if (comm->state == COMM_READY) {
		const struct comm_member *member = &comm->view.region->members[i];

		message->pid = (uint32_t)atomic_load_explicit(&member->pid, memory_order_relaxed);
		message->device = member->device;
		message->state = (char *)member_state(member);
	} else if (comm->rendezvous.joiners[i]) {
		message->pid = (uint32_t)comm->rendezvous.joiners[i]->pid;
		message->device = comm->rendezvous.joiners[i]->device;
		message->state = (char *)"joining";
	} else {
		message->state = (char *)"missing";
	}
	return message;
}

static int list_members(struct request *request, const struct comm *comm, uint32_t first,
			Hccld__Control__Comm *message)
{
	uint32_t end = message->size;

	if (end - first > MEMBERS_PER_ENTRY)
		end = first + MEMBERS_PER_ENTRY;
	message->members = request_alloc(request, (end - first) * sizeof(*message->members));
	if (!message->members)
		return -ENOMEM;
	for (uint32_t i = first; i < end; i++) {
		message->members[message->n_members] = list_member(request, comm, i);
		if (!message->members[message->n_members++])
			return -ENOMEM;
	}
	return 0;
}

static int list_settings(struct request *request, const struct comm *comm,
			 Hccld__Control__Comm *message)
{
	static const char *const origins[] = { "root info", "rank table", "part" };
	const struct comm_settings *settings = &comm->settings;
	Hccld__Control__CommSettings *copy = request_alloc(request, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	hccld__control__comm_settings__init(copy);
	copy->op_expansion_mode = settings->op_expansion_mode;
	copy->deterministic = settings->deterministic;
	copy->buffer_mb = settings->buffer_mb;
	copy->retry_levels = settings->retry_levels;
	copy->retry_count = settings->retry_count;
	copy->retry_hold_ms = settings->retry_hold_ms;
	copy->retry_interval_ms = settings->retry_interval_ms;
	copy->qos = settings->qos;
	message->settings = copy;
	message->parent = comm->parent;
	message->weight = comm_settings_weight(settings);
	message->origin = (char *)origins[comm->origin <= COMM_PART ? comm->origin : 0];
	return 0;
}

/* One entry: the communicator with its members from @first on. */
static Hccld__Control__Comm *list_comm(struct request *request, struct comm *comm, uint32_t first)
{
	Hccld__Control__Comm *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__comm__init(message);
	message->comm = comm->id;
	message->name = comm->name;
	message->udi = comm->udi;
	message->uid = comm->uid;
	message->size = comm->state == COMM_READY ? comm->view.size : comm->rendezvous.size;
	message->state = (char *)(comm->state == COMM_READY    ? "ready"
				  : comm->state == COMM_FAILED ? "failed"
							       : "joining");
	message->age_ms = (clock_now_ns() - comm->started_ns) / 1000000;
	message->pairs = comm->pair_count;
	message->memory = comm->memory;
	message->pair_memory = comm->memory_of[EXTENT_PAIRS] + comm->memory_of[EXTENT_PAIRS_FIRST];
	message->wide_memory = comm->memory_of[EXTENT_WIDE];
	message->eager_memory = comm->memory_of[EXTENT_POOL];
	if (list_settings(request, comm, message) < 0 ||
	    list_members(request, comm, first, message) < 0)
		return NULL;
	return message;
}

/* Cursor: id of the communicator, and of its members the number of those that were listed. */
static uint64_t comm_cursor(const struct comm *comm, uint32_t members)
{
	return comm->id << 13 | members;
}
_Static_assert(HCCLD_RANKS_MAX < 1 << 13, "fits the cursor");

/* True: go on with the next communicator. */
static bool list_comm_entries(struct page *page, struct comm *comm)
{
	uint32_t size = comm->state == COMM_READY ? comm->view.size : comm->rendezvous.size;
	uint32_t first = 0;

	if (page->after >> 13 == comm->id)
		first = (uint32_t)(page->after & 0x1fff);
	if (first && first >= size)
		return true;
	do {
		Hccld__Control__Comm *message = list_comm(page->request, comm, first);

		first += MEMBERS_PER_ENTRY;
		if (first > size)
			first = size;
		if (!page_add(page, message ? &message->base : NULL, comm_cursor(comm, first)))
			return false;
	} while (first < size);
	return true;
}

static void list_comms(struct page *page)
{
	struct request *request = page->request;

	list_for_each(struct comm, comm, &request->control->registry->comms, link) {
		uint32_t size = comm->state == COMM_READY ? comm->view.size : comm->rendezvous.size;

		if (comm_cursor(comm, size) <= page->after || !query_sees(request, comm->uid))
			continue;
		if (!list_comm_entries(page, comm))
			return;
	}
}

static void list_devices(struct page *page)
{
	uint32_t count = page->request->control->registry->device_count;

	/* cursor: how many were listed */
	for (uint64_t i = page->after; i < count; i++) {
		Hccld__Control__Device *message = query_device(page->request, (uint32_t)i);

		if (!page_add(page, message ? &message->base : NULL, i + 1))
			return;
	}
}

static bool waiting_found(void *data, const struct waiting *waiting)
{
	struct page *page = data;
	Hccld__Control__Waiting *message = query_waiting(page->request, waiting);

	return page_add(page, message ? &message->base : NULL, waiting->cursor);
}

static void list_waiting(struct page *page)
{
	const struct waiting_filter filter = { .all_users = query_sees_all(page->request),
					       .uid = page->request->connection->peer.uid,
					       .after = page->after,
					       .lanes_per_stream = UINT32_MAX };

	waiting_walk(page->request->control->registry, &filter, waiting_found, page);
	if (!page->is_full && !page->error)
		channel_waits_list(page);
	if (!page->is_full && !page->error)
		list_orphans(page);
}

static uint64_t stream_cursor(const struct session *session, uint32_t index)
{
	return session->view.id << 16 | (index + 1);
}
_Static_assert(HCCLD_STREAMS_PER_SESSION < 1 << 16, "fits the cursor");

static Hccld__Control__Stream *list_stream(struct request *request, struct session *session,
					   const struct stream *stream)
{
	Hccld__Control__Stream *message = request_alloc(request, sizeof(*message));
	Hccld__Control__Waiting *waiting = NULL;
	struct stream_head head;

	if (!message)
		return NULL;
	waiting_head(session, stream, &head);
	if (head.is_waiting)
		waiting = query_waiting(request, &head.waiting);
	if (head.is_waiting && !waiting)
		return NULL;
	hccld__control__stream__init(message);
	message->session = session->view.id;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = session->process;
	message->device = stream->context->device;
	message->stream = stream->index;
	message->completed = atomic_load_explicit(&stream->ring->completed, memory_order_relaxed);
	message->submitted = atomic_load_explicit(&stream->ring->tail, memory_order_relaxed);
	message->queued_tasks = head.queued_tasks;
	message->head = (char *)(head.kind ? head.kind : "");
	message->age_ms = head.age_ms;
	message->is_moving = waiting && waiting->peer_posted;
	message->reason = waiting ? waiting->reason : (char *)"";
	return message;
}

static bool list_streams_of(struct page *page, struct session *session)
{
	for (uint32_t i = 0; session->stream_slots.used && i < HCCLD_STREAMS_PER_SESSION; i++) {
		const struct stream *stream = session_stream_at(session, i);
		Hccld__Control__Stream *message;

		if (!stream || stream_cursor(session, i) <= page->after)
			continue;
		message = list_stream(page->request, session, stream);
		if (!page_add(page, message ? &message->base : NULL, stream_cursor(session, i)))
			return false;
	}
	return true;
}

static void list_streams(struct page *page)
{
	struct request *request = page->request;
	const Hccld__Control__List *list = request->message->list;

	list_for_each(struct session, session, &request->control->registry->sessions, link) {
		if ((list->session && session->view.id != list->session) ||
		    (list->pid && (uint32_t)session->view.pid != list->pid) ||
		    !query_sees(request, session->uid))
			continue;
		if (!list_streams_of(page, session))
			return;
	}
}

/* What programs' own operators have, and links. False: there is no such list. */
static bool page_fill_resources(struct page *page, Hccld__Control__List__Kind kind, Hccld__Control__ListReply *reply)
{
	switch (kind) {
	case HCCLD__CONTROL__LIST__KIND__NOTIFIES:
		list_notifies(page);
		reply->notifies = (Hccld__Control__Notifies **)page->entries;
		reply->n_notifies = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__THREADS:
		list_threads(page);
		reply->threads = (Hccld__Control__Thread **)page->entries;
		reply->n_threads = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__RESOURCES:
		list_resources(page);
		reply->resources = (Hccld__Control__Resource **)page->entries;
		reply->n_resources = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__CHANNELS:
		list_channels(page);
		reply->channels = (Hccld__Control__Channel **)page->entries;
		reply->n_channels = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__REGISTRATIONS:
		list_registrations(page);
		reply->registrations = (Hccld__Control__Registration **)page->entries;
		reply->n_registrations = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__LINKS:
		list_links(page);
		reply->links = (Hccld__Control__Link **)page->entries;
		reply->n_links = page->count;
		return true;
	case HCCLD__CONTROL__LIST__KIND__IMPORTS:
		list_imports(page);
		reply->imports = (Hccld__Control__Import **)page->entries;
		reply->n_imports = page->count;
		return true;
	default:
		return false;
	}
}

static int page_fill(struct page *page, Hccld__Control__List__Kind kind,
		     Hccld__Control__ListReply *reply)
{
	switch (kind) {
	case HCCLD__CONTROL__LIST__KIND__SESSIONS:
		list_sessions(page);
		reply->sessions = (Hccld__Control__Session **)page->entries;
		reply->n_sessions = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__COMMS:
		list_comms(page);
		reply->comms = (Hccld__Control__Comm **)page->entries;
		reply->n_comms = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__DEVICES:
		list_devices(page);
		reply->devices = (Hccld__Control__Device **)page->entries;
		reply->n_devices = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__WAITING:
		list_waiting(page);
		reply->waiting = (Hccld__Control__Waiting **)page->entries;
		reply->n_waiting = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__STREAMS:
		list_streams(page);
		reply->streams = (Hccld__Control__Stream **)page->entries;
		reply->n_streams = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__TENANTS:
		list_tenants(page);
		reply->tenants = (Hccld__Control__Tenant **)page->entries;
		reply->n_tenants = page->count;
		return 0;
	case HCCLD__CONTROL__LIST__KIND__MEMORY:
		list_memory(page);
		reply->memory = (Hccld__Control__MemoryUse **)page->entries;
		reply->n_memory = page->count;
		return 0;
	default:
		if (page_fill_resources(page, kind, reply))
			return 0;
		return request_fail(page->request, CAUSE_UNBUILT,
				    "hccld %s has no list of kind %d; update hccld",
				    page->request->control->options.version, (int)kind);
	}
}

int handle_list(struct request *request)
{
	const Hccld__Control__List *list = request->message->list;
	Hccld__Control__ListReply *reply = &request->body.list;
	struct page page = { .request = request, .after = list->after };
	int r;

	lazy_look(request->control->registry);
	hccld__control__list_reply__init(reply);
	page.entries = request_alloc(request, HCCLD_LIST_PAGE * sizeof(*page.entries));
	if (!page.entries)
		return -ENOMEM;
	r = page_fill(&page, list->kind, reply);
	if (r < 0)
		return r;
	if (page.error < 0)
		return page.error;
	reply->next = page.is_full ? page.last : 0;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_LIST;
	request->reply.list = reply;
	return 0;
}
