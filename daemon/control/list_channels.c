/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of channels, of registered memory, and of memory that processes have of others. Channels and registrations come by growing id,
 * whoever has them: those behind the cursor are collected and sorted for each page.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "control/channel_wait.h"
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "proto/clock.h"
#include "proto/notify.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

#define REASON_MAX 512u

struct entry {
	uint64_t id;
	void *object; /* struct channel or struct registration */
};

/* What is listed of each rank. */
struct collection {
	uint64_t after;
	struct entry *entries;
	size_t count, room;
};

/* False: no memory. */
static bool collect(struct collection *collection, uint64_t id, void *object)
{
	if (id <= collection->after)
		return true;
	if (collection->count == collection->room) {
		size_t room = collection->room ? 2 * collection->room : 256;
		struct entry *entries = realloc(collection->entries, room * sizeof(*entries));

		if (!entries)
			return false;
		collection->entries = entries;
		collection->room = room;
	}
	collection->entries[collection->count++] = (struct entry){ id, object };
	return true;
}

static bool collect_channels(struct collection *collection, struct rank *rank)
{
	list_for_each(struct channel, channel, &rank->channels, link)
		if (channel->state != CHANNEL_CLOSING && !collect(collection, channel->id, channel))
			return false;
	return true;
}

static bool collect_registrations(struct collection *collection, struct rank *rank)
{
	list_for_each(struct registration, registration, &rank->registrations, link)
		if (!collect(collection, registration->id, registration))
			return false;
	return true;
}

static int entries_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static bool collect_session(struct collection *collection, const struct session *session,
			    bool (*of_rank)(struct collection *collection, struct rank *rank))
{
	for (uint32_t i = 0; i < session->registry->device_count; i++) {
		struct context *context = session->contexts[i];

		if (!context)
			continue;
		list_for_each(struct rank, rank, &context->ranks, link)
			if (!of_rank(collection, rank))
				return false;
	}
	return true;
}

/* Calls @add for what @of_rank collects, until it returns false. */
static void list_sorted(struct page *page, bool (*of_rank)(struct collection *collection, struct rank *rank),
			bool (*add)(struct page *page, uint64_t id, void *object))
{
	struct request *request = page->request;
	struct collection collection = { .after = page->after };

	list_for_each(struct session, session, &request->control->registry->sessions, link) {
		if (!query_sees(request, session->uid) || collect_session(&collection, session, of_rank))
			continue;
		page->error = -ENOMEM;
		free(collection.entries);
		return;
	}
	if (collection.count)
		qsort(collection.entries, collection.count, sizeof(*collection.entries), entries_compare);
	for (size_t i = 0; i < collection.count; i++)
		if (!add(page, collection.entries[i].id, collection.entries[i].object))
			break;
	free(collection.entries);
}

/* ---- channels ---- */

static const char *state_name(const struct channel *channel)
{
	return channel->state == CHANNEL_COMPLETE ? "complete" : channel->state == CHANNEL_OFFERED ? "offered" : "dead";
}

/* Why it is not complete; NULL: no memory. */
static char *channel_reason(struct request *request, const struct channel *channel)
{
	char *buffer = request_alloc(request, REASON_MAX);
	struct text text;

	if (!buffer)
		return NULL;
	text_init(&text, buffer, REASON_MAX);
	if (channel_verdict(channel, &text) == CAUSE_BUSY) {
		text_add(&text, "waits for the other end: ");
		channel_describe_absent(channel, &text);
	}
	return buffer;
}

static void add_brought(const struct channel *channel, Hccld__Control__Channel *message)
{
	list_for_each(struct segment, import, &channel->imports, channel_link) {
		if (!import->origin)
			continue; /* it lingers: list_imports() has it */
		if (import->position == CHANNEL_BUFFER) {
			message->buffer = import->memory.bytes;
		} else if (import->position >= CHANNEL_MEMORIES) {
			message->memories++;
			message->memory_bytes += import->memory.bytes;
		} else {
			message->peer_notifies = (uint32_t)(import->memory.bytes / sizeof(struct notify_slot));
		}
	}
}

static bool list_channel(struct page *page, uint64_t id, void *object)
{
	const struct channel *channel = object;
	const struct rank *rank = channel->rank;
	Hccld__Control__Channel *message = request_alloc(page->request, sizeof(*message));

	if (!message)
		return page_add(page, NULL, id);
	hccld__control__channel__init(message);
	message->channel = id;
	message->comm = rank->comm->id;
	message->comm_name = rank->comm->name;
	message->rank = rank->rank;
	message->peer = channel->peer;
	message->pid = (uint32_t)rank->session->view.pid;
	message->peer_pid = (uint32_t)rank->comm->view.region->members[channel->peer].pid;
	message->uid = rank->session->uid;
	message->process = rank->session->process;
	message->device = rank->context->device;
	message->engine = channel->engine;
	message->protocol = channel->protocol;
	message->state = (char *)state_name(channel);
	message->notifies = channel->notifies ? channel->notifies->count : 0;
	message->age_ms = (clock_now_ns() - channel->since_ns) / 1000000;
	message->reason = channel_reason(page->request, channel);
	add_brought(channel, message);
	return page_add(page, message->reason ? &message->base : NULL, id);
}

void list_channels(struct page *page)
{
	list_sorted(page, collect_channels, list_channel);
}

/* ---- registered memory ---- */

static bool list_registration(struct page *page, uint64_t id, void *object)
{
	const struct registration *registration = object;
	const struct rank *rank = registration->rank;
	const struct segment *segment = registration_segment(registration);
	Hccld__Control__Registration *message = request_alloc(page->request, sizeof(*message));

	if (!message)
		return page_add(page, NULL, id);
	hccld__control__registration__init(message);
	message->registration = id;
	message->comm = rank->comm->id;
	message->comm_name = rank->comm->name;
	message->rank = rank->rank;
	message->pid = (uint32_t)rank->session->view.pid;
	message->uid = rank->session->uid;
	message->process = rank->session->process;
	message->device = rank->context->device;
	message->kind = segment ? segment->kind : SEGMENT_DEVICE;
	message->tag = (char *)registration->tag;
	message->segment = registration->segment;
	message->offset = registration->offset;
	message->bytes = registration->bytes;
	message->imports = registration->channel_count;
	return page_add(page, &message->base, id);
}

void list_registrations(struct page *page)
{
	list_sorted(page, collect_registrations, list_registration);
}

/* ---- memory of others ---- */

static uint64_t import_cursor(const struct session *session, uint32_t index)
{
	return session->view.id << 16 | (index + 1);
}
_Static_assert(HCCLD_SEGMENTS_PER_SESSION < 1 << 16, "fits the cursor");

static void add_channel(const struct session *session, const struct segment *import, Hccld__Control__Import *message)
{
	const struct channel *channel = channel_find(session, import->channel);

	message->channel = import->channel;
	if (!channel)
		return;
	message->comm_name = channel->rank->comm->name;
	message->rank = channel->rank->rank;
	message->peer = channel->peer;
	message->what = (char *)(import->position == CHANNEL_NOTIFIES ? "notifies"
				 : import->position == CHANNEL_BUFFER ? "HCCL buffer"
				 : import->tag			      ? import->tag
								      : "registered memory");
}

/* Whose it was, and why it is gone. NULL: no memory. */
static char *import_reason(struct request *request, const struct session *session, const struct segment *import)
{
	const struct channel *channel = import->channel ? channel_find(session, import->channel) : NULL;
	const struct comm_member *member = channel ? &channel->rank->comm->view.region->members[channel->peer] : NULL;
	const uint32_t word = member ? atomic_load_explicit(&member->word, memory_order_acquire) : MEMBER_ALIVE;
	char *buffer = request_alloc(request, REASON_MAX);
	enum loss loss = import->loss;
	char how[96];

	if (!buffer)
		return NULL;
	/* the communicator knows more after a restart */
	if (channel && !loss)
		loss = word == MEMBER_LEFT ? LOSS_LEFT : channel->other ? LOSS_FREED : LOSS_CLOSED;
	if (word == MEMBER_DEAD)
		exit_text(member->exit, how, sizeof(how));
	else
		loss_text(loss, import->loss_exit, import->kind == NOTIFY_SEGMENT_KIND ? "destroyed" : "freed", how, sizeof(how));
	if (channel)
		snprintf(buffer, REASON_MAX, "rank %" PRIu32 ", pid %d, %s", channel->peer, member->pid, how);
	else if (import->loss_pid)
		snprintf(buffer, REASON_MAX, "pid %d %s", import->loss_pid, how);
	else
		snprintf(buffer, REASON_MAX, "its process %s", how);
	return buffer;
}

static Hccld__Control__Import *list_import(struct request *request, const struct session *session, const struct segment *import)
{
	Hccld__Control__Import *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__import__init(message);
	message->session = session->view.id;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = (char *)session->process;
	message->kind = import->kind;
	message->bytes = import->memory.bytes;
	message->lingers = !import->origin;
	if (message->lingers)
		message->reason = import_reason(request, session, import);
	if (!message->reason)
		return NULL;
	if (import->origin) {
		message->owner_pid = (uint32_t)import->origin->context->session->view.pid;
		message->owner = import->origin->context->session->process;
	}
	if (import->channel)
		add_channel(session, import, message);
	return message;
}

/* True: go on with the next session. */
static bool list_imports_of(struct page *page, const struct session *session)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; seen < session->segment_slots.used && i < HCCLD_SEGMENTS_PER_SESSION; i++) {
		const struct segment *import = session->places[i].segment;
		Hccld__Control__Import *message;

		seen += import != NULL;
		if (!import || !import->is_import || import->is_closing || import_cursor(session, i) <= page->after)
			continue;
		message = list_import(page->request, session, import);
		if (!page_add(page, message ? &message->base : NULL, import_cursor(session, i)))
			return false;
	}
	return true;
}

void list_imports(struct page *page)
{
	struct request *request = page->request;

	list_for_each(struct session, session, &request->control->registry->sessions, link)
		if (session->view.id >= page->after >> 16 && query_sees(request, session->uid) && !list_imports_of(page, session))
			return;
}
