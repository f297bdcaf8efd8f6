/* SPDX-License-Identifier: Apache-2.0 */
/* Ends of channels. */
#include "registry/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/cleanup.h"
#include "proto/clock.h"
#include "proto/notify.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/share.h"

static struct record_channel *channel_record(const struct channel *channel)
{
	return records_get(channel->rank->session->registry->records, RECORD_CHANNEL,
			   channel->record);
}

static void channel_set_state(struct channel *channel, enum channel_state state)
{
	channel->state = state;
	/* release: the next process finds what was stored before */
	atomic_store_explicit(&channel_record(channel)->state, state, memory_order_release);
}

static struct channel *channel_free(struct channel *channel)
{
	if (!channel)
		return NULL;
	free(channel->registrations);
	free(channel->failure_text);
	free(channel);
	return NULL;
}

static void channel_freep(struct channel **channel)
{
	channel_free(*channel);
}

static struct channel *channel_make(struct rank *rank, const struct record_channel *record)
{
	CLEANUP(channel_freep) struct channel *channel = calloc(1, sizeof(*channel));
	size_t size = record->registration_count * sizeof(*channel->registrations);

	if (!channel)
		return NULL;
	list_init(&channel->link);
	list_init(&channel->imports);
	list_init(&channel->waiters);
	channel->rank = rank;
	channel->id = record->id;
	channel->peer = record->peer;
	channel->engine = record->engine;
	channel->protocol = record->protocol;
	channel->state = (enum channel_state)record->state;
	channel->buffer = record->buffer;
	channel->since_ns = clock_now_ns();
	channel->registration_count = record->registration_count;
	channel->registrations = malloc(size ? size : 1);
	if (!channel->registrations)
		return NULL;
	memcpy(channel->registrations, record->registrations, size);
	return take_ptr(&channel);
}

static void channel_count(const struct channel *channel, int change)
{
	struct rank *rank = channel->rank;

	rank->channel_count += (uint32_t)change;
	rank->session->registry->devices[rank->context->device].channels += (uint32_t)change;
}

static int channel_publish(struct channel *channel)
{
	int r = idmap_set(&channel->rank->session->registry->channel_ids, channel->id, channel);

	if (r < 0)
		return r;
	list_append(&channel->rank->channels, &channel->link);
	channel_count(channel, 1);
	return 0;
}

/* The record's number is that of the notifies, too: those of an end without record go at the next start. */
static int channel_take_notifies(const struct rank *rank, uint32_t count,
				 struct record_channel *record, struct notifies **ret_notifies)
{
	const struct notifies_wish wish = { .count = count,
					    .purpose = NOTIFY_OF_CHANNEL,
					    .request = record->id };
	int r;

	*ret_notifies = NULL;
	if (!count)
		return 0;
	r = notifies_new(rank->context, &wish, ret_notifies);
	if (r < 0)
		return r;
	record->first_notify = (*ret_notifies)->first;
	record->notify_count = count;
	return 0;
}

/* Nobody has seen them. */
static void channel_give_notifies(struct notifies *notifies)
{
	if (!notifies)
		return;
	notifies_close(notifies);
	notifies_free(notifies);
}

static int channel_add(struct rank *rank, const struct record_channel *record,
		       struct channel **ret_channel)
{
	CLEANUP(channel_freep) struct channel *channel = channel_make(rank, record);
	struct records *records = rank->session->registry->records;
	int r;

	if (!channel)
		return -ENOMEM;
	r = records_add(records, RECORD_CHANNEL, record, &channel->record);
	if (r < 0)
		return r;
	r = channel_publish(channel);
	if (r < 0) {
		records_remove(records, RECORD_CHANNEL, channel->record);
		return r;
	}
	*ret_channel = take_ptr(&channel);
	return 0;
}

int channel_new(struct rank *rank, const struct channel_wish *wish, struct channel **ret_channel)
{
	struct session *session = rank->session;
	struct notifies *notifies;
	struct record_channel record = { .session = session->view.id,
					 .rank = rank->handle,
					 .buffer = wish->buffer,
					 .peer = wish->peer,
					 .engine = wish->engine,
					 .protocol = wish->protocol,
					 .registration_count = wish->registration_count };
	int r;

	assert(wish->registration_count <= HCCLD_CHANNEL_MEMORIES_MAX);
	if (session_take(session, QUOTA_CHANNELS, 1) < 0)
		return -EUSERS;
	record.id = records_next_id(session->registry->records);
	if (wish->registration_count)
		memcpy(record.registrations, wish->registrations,
		       wish->registration_count * sizeof(*wish->registrations));
	r = channel_take_notifies(rank, wish->notify_count, &record, &notifies);
	if (r == 0) {
		r = channel_add(rank, &record, ret_channel);
		if (r == 0)
			(*ret_channel)->notifies = notifies;
		else
			channel_give_notifies(notifies);
	}
	if (r < 0)
		session_give(session, QUOTA_CHANNELS, 1);
	return r;
}

struct channel *channel_find(const struct session *session, uint64_t id)
{
	struct channel *channel = id ? idmap_get(&session->registry->channel_ids, id) : NULL;

	return channel && channel->rank->session == session && channel->state != CHANNEL_CLOSING
		       ? channel
		       : NULL;
}

struct channel *channel_at(const struct rank *rank, uint32_t peer, uint32_t engine,
			   uint32_t protocol)
{
	list_for_each(struct channel, channel, &rank->channels, link)
		if (channel->peer == peer && channel->engine == engine &&
		    channel->protocol == protocol && channel->state != CHANNEL_CLOSING)
			return channel;
	return NULL;
}

struct channel *channel_counterpart(const struct channel *channel)
{
	const struct comm *comm = channel->rank->comm;
	const struct rank *peer = channel->peer < comm->view.size ? comm->ranks[channel->peer]
								   : NULL;
	struct channel *other;

	if (!peer || peer->is_closing)
		return NULL;
	other = channel_at(peer, channel->rank->rank, channel->engine, channel->protocol);
	return other && other != channel && other->state == CHANNEL_OFFERED ? other : NULL;
}

struct segment *channel_import(const struct channel *channel, uint32_t position)
{
	list_for_each(struct segment, import, &channel->imports, channel_link)
		if (import->position == position)
			return import;
	return NULL;
}

/* Whose memory it is, for tasks that find it lost. */
static void channel_link(struct channel *channel, struct segment *import)
{
	struct rank *rank = channel->rank;
	struct view_segment *view = &rank->session->view.segments[VIEW_INDEX(import->id)];

	list_append(&channel->imports, &import->channel_link);
	view->comm = &rank->comm->view;
	view->rank = rank->rank;
	view->peer = channel->peer;
}

/* Of @bytes at @offset of @origin, a segment of the other end; NULL: it is gone, or there is none. */
static int channel_bring(struct channel *channel, struct segment *origin, uint64_t offset,
			 uint64_t bytes, uint32_t position)
{
	struct segment *import;
	int r;

	if (!origin || origin->is_closing || channel_import(channel, position))
		return 0;
	r = import_new_of_channel(channel->rank->context, origin, offset, bytes, channel->id,
				  position, &import);
	if (r == 0)
		channel_link(channel, import);
	return r;
}

/* By what name its peer knows what it has brought there: that may be gone before the process asks. */
static int channel_name(struct channel *channel, uint32_t position, const char *tag)
{
	struct segment *import = channel_import(channel, position);

	if (!import || import->tag)
		return 0;
	import->tag = strdup(tag);
	return import->tag ? 0 : -ENOMEM;
}

/* What @other offers, for @channel. */
static int channel_bring_all(struct channel *channel, const struct channel *other)
{
	const struct rank *peer = other->rank;
	const struct notifies *notifies = other->notifies;
	struct segment *buffer = session_segment(peer->session, other->buffer);
	int r = 0;

	if (notifies)
		r = channel_bring(channel, peer->context->notifies.segment,
				  notifies->first * sizeof(struct notify_slot),
				  notifies->count * sizeof(struct notify_slot), CHANNEL_NOTIFIES);
	if (r == 0 && buffer)
		r = channel_bring(channel, buffer, 0, buffer->memory.bytes, CHANNEL_BUFFER);
	for (uint32_t i = 0; i < other->registration_count && r == 0; i++) {
		const struct registration *memory =
			registration_find(peer, other->registrations[i]);

		if (memory)
			r = channel_bring(channel, registration_segment(memory), memory->offset,
					  memory->bytes, CHANNEL_MEMORIES + i);
		if (memory && r == 0)
			r = channel_name(channel, CHANNEL_MEMORIES + i, memory->tag);
	}
	return r;
}

/* What it exchanges is in one complete channel more, or (-1) less. */
static void count_memories(const struct channel *channel, int more)
{
	for (uint32_t i = 0; i < channel->registration_count; i++) {
		struct registration *memory =
			registration_find(channel->rank, channel->registrations[i]);

		if (memory)
			memory->channel_count += (uint32_t)more;
	}
}

int channel_complete(struct channel *channel, struct channel *other, struct session **ret_short)
{
	int r;

	*ret_short = channel->rank->session;
	r = channel_bring_all(channel, other);
	if (r == 0) {
		*ret_short = other->rank->session;
		r = channel_bring_all(other, channel);
	}
	if (r < 0)
		return r;
	channel->other = other;
	other->other = channel;
	count_memories(channel, 1);
	count_memories(other, 1);
	channel_set_state(channel, CHANNEL_COMPLETE);
	channel_set_state(other, CHANNEL_COMPLETE);
	return 0;
}

void channel_fail(struct channel *channel, enum cause cause, const char *text)
{
	/* its record stays as it is: the next process tries again, and may succeed */
	channel->state = CHANNEL_DEAD;
	channel->failure = cause;
	free(channel->failure_text);
	channel->failure_text = strdup(text); /* NULL: the cause's own text has to do */
}

bool channel_was_complete(const struct channel *channel)
{
	return channel->state == CHANNEL_COMPLETE ||
	       (channel->state == CHANNEL_DEAD && !channel->failure);
}

uint32_t channel_memory_count(const struct channel *channel)
{
	uint32_t count = 0;

	list_for_each(struct segment, import, &channel->imports, channel_link)
		if (import->position >= CHANNEL_MEMORIES + count)
			count = import->position - CHANNEL_MEMORIES + 1;
	return count;
}

/* The other end has gone, by itself or with its rank. */
static void channel_lose(struct channel *channel)
{
	const struct comm_member *peer = &channel->rank->comm->view.region->members[channel->peer];
	const uint32_t word = atomic_load_explicit(&peer->word, memory_order_acquire);
	const enum loss loss = word == MEMBER_DEAD ? LOSS_ENDED : word == MEMBER_ALIVE ? LOSS_CLOSED : LOSS_LEFT;

	if (channel->notifies)
		notifies_fail(channel->notifies, word == MEMBER_DEAD ? CAUSE_PEER_DEAD : CAUSE_PEER_LEFT);
	list_for_each(struct segment, import, &channel->imports, channel_link)
		if (!import->is_lost && !import->is_closing)
			import_lose(import, loss);
}

void channel_close(struct channel *channel, struct channel **ret_other)
{
	struct channel *other = channel->other;

	/* the own waits; those of an end that is dead have ended. Before CLOSING: after a restart the end would not be there to do it */
	if (other && channel->notifies)
		notifies_fail(channel->notifies, CAUSE_ABORTED);
	channel_set_state(channel, CHANNEL_CLOSING);
	channel->other = NULL;
	if (channel->notifies)
		notifies_close(channel->notifies);
	*ret_other = other;
	if (!other)
		return;
	other->other = NULL;
	count_memories(channel, -1);
	count_memories(other, -1);
	channel_set_state(other, CHANNEL_DEAD);
	channel_lose(other);
}

void channel_remove(struct channel *channel)
{
	struct context *context = channel->rank->context;
	struct session *session = channel->rank->session;

	assert(list_is_empty(&channel->imports) && list_is_empty(&channel->waiters));
	/* the record last: the next process finds the number that the notifies have. Those of a context that goes go with it */
	if (channel->notifies && session->contexts[context->device] == context)
		notifies_free(channel->notifies);
	records_remove(session->registry->records, RECORD_CHANNEL, channel->record);
	idmap_remove(&session->registry->channel_ids, channel->id);
	session_give(session, QUOTA_CHANNELS, 1);
	channel_count(channel, -1);
	list_remove(&channel->link);
	channel_free(channel);
}

void channel_discard(struct channel *channel)
{
	struct channel *other;

	channel_close(channel, &other);
	assert(!other);
	channel_remove(channel);
}

void channels_lose(const struct rank *rank, uint64_t registration)
{
	list_for_each(struct channel, channel, &rank->channels, link) {
		for (uint32_t i = 0; channel->other && i < channel->registration_count; i++) {
			struct segment *import;

			if (channel->registrations[i] != registration)
				continue;
			import = channel_import(channel->other, CHANNEL_MEMORIES + i);
			if (import && !import->is_lost && !import->is_closing)
				import_lose(import, LOSS_FREED);
		}
	}
}

/* ---- after a restart ---- */

static bool record_fits(const struct record_channel *record, const struct rank *rank)
{
	return record->id && !idmap_get(&rank->session->registry->channel_ids, record->id) &&
	       record->peer < rank->comm->view.size && record->state <= CHANNEL_CLOSING &&
	       record->registration_count <= HCCLD_CHANNEL_MEMORIES_MAX;
}

/* One that was being taken down is dropped here; channels_restored() takes away what it had. */
int channel_restore(struct registry *registry, uint32_t index)
{
	const struct record_channel *record =
		records_get(registry->records, RECORD_CHANNEL, index);
	struct notifies *notifies = NULL;
	struct channel *channel;
	struct session *session;
	struct rank *rank;

	assert(record);
	session = idmap_get(&registry->session_ids, record->session);
	rank = session ? session_rank(session, record->rank) : NULL;
	if (!rank || record->state == CHANNEL_CLOSING)
		return -ENOENT;
	if (!record_fits(record, rank))
		return -EPROTO;
	if (record->notify_count) {
		notifies = notifies_find(rank->context, record->first_notify);
		if (!notifies || notifies->count != record->notify_count)
			return -EPROTO;
	}
	channel = channel_make(rank, record);
	if (!channel)
		return -ENOMEM;
	channel->record = index;
	channel->notifies = notifies;
	if (channel_publish(channel) < 0) {
		channel_free(channel);
		return -ENOMEM;
	}
	session_take_back(session, QUOTA_CHANNELS, 1);
	return 0;
}

static void restore_imports(struct registry *registry)
{
	for (uint32_t i = 0; i < records_limit(registry->records, RECORD_IMPORT); i++) {
		const struct record_import *record =
			records_get(registry->records, RECORD_IMPORT, i);
		struct session *session;
		struct segment *import;
		struct channel *channel;

		if (!record || !(record->kind & IMPORT_OF_CHANNEL))
			continue;
		session = idmap_get(&registry->session_ids, record->session);
		import = session ? session_segment(session, record->id) : NULL;
		if (!import)
			continue;
		channel = channel_find(session, import->channel);
		if (channel) {
			channel_link(channel, import);
		} else {
			segment_unpublish(import);
			segment_remove(import);
		}
	}
}

static void restore_dead(struct channel *channel)
{
	channel_set_state(channel, CHANNEL_DEAD);
	channel_lose(channel);
}

/* One that was complete, or about to be, with its other end. */
static void restore_meet(struct channel *channel)
{
	const struct comm *comm = channel->rank->comm;
	struct rank *peer = comm->ranks[channel->peer];
	struct channel *other = peer ? channel_at(peer, channel->rank->rank, channel->engine,
						  channel->protocol)
				     : NULL;
	struct session *ignored;

	if (channel->other || channel->state == CHANNEL_DEAD)
		return;
	if (!other || other == channel || other->other || other->state == CHANNEL_DEAD) {
		if (channel->state == CHANNEL_COMPLETE)
			restore_dead(channel);
	} else if (channel_complete(channel, other, &ignored) < 0) {
		restore_dead(channel);
		restore_dead(other);
		/* it may never have been complete */
		channel->failure = other->failure = CAUSE_LIMIT;
	}
}

/* Notifies of an end that has no record, or was going. */
static void restore_notifies(struct context *context)
{
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link) {
		const struct channel *channel;

		if (notifies->purpose != NOTIFY_OF_CHANNEL || notifies->is_closing)
			continue;
		channel = channel_find(context->session, notifies->request);
		if (!channel || channel->notifies != notifies)
			channel_give_notifies(notifies);
	}
}

void channels_restored(struct registry *registry)
{
	restore_imports(registry);
	list_for_each(struct session, session, &registry->sessions, link) {
		for (uint32_t i = 0; i < registry->device_count; i++) {
			struct context *context = session->contexts[i];

			if (!context)
				continue;
			restore_notifies(context);
			list_for_each(struct rank, rank, &context->ranks, link)
				list_for_each(struct channel, channel, &rank->channels, link)
					restore_meet(channel);
		}
	}
}

void channels_free(struct rank *rank)
{
	list_for_each(struct channel, channel, &rank->channels, link)
		channel_free(channel);
}
