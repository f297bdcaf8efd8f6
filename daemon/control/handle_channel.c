/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about registered memory and channels; waiting for channels is in channel_wait.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "control/channel_wait.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/notifies.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "proto/channel.h"
#include "proto/notify.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registration.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

#define DESCRIBED_MAX 128u /* memories in one reply: with tags they fit into a packet */

static int rank_unknown(struct request *request)
{
	return request_fail(request, CAUSE_BAD_HANDLE,
			    "this process has no such rank in a communicator: it was destroyed, or its device was reset");
}

static int registry_full(struct request *request, const char *what, uint32_t most)
{
	return request_fail(request, CAUSE_LIMIT, "hccld holds %" PRIu32 " %s, the most that it can hold for all users", most, what);
}

/* ---- registrations ---- */

static int register_check(struct request *request, const struct segment *segment)
{
	const Hccld__Control__RegisterMemory *message = request->message->register_memory;

	if (!segment)
		return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such memory segment");
	if (segment->is_import)
		return request_fail(request, CAUSE_PERMISSION,
				    "memory that was imported from another process can be registered only by that process");
	if (segment->kind > SEGMENT_HOST || !message->bytes || message->bytes > segment->memory.bytes ||
	    message->offset > segment->memory.bytes - message->bytes)
		return request_fail(request, CAUSE_ARGUMENT, "%" PRIu64 " bytes at %" PRIu64 " are not a part of a segment of %" PRIu64 " bytes",
				    message->bytes, message->offset, segment->memory.bytes);
	if (!*message->tag || strlen(message->tag) >= HCCLD_TAG_MAX)
		return request_fail(request, CAUSE_ARGUMENT, "the tag of registered memory has 1 to %u bytes, not %zu", HCCLD_TAG_MAX - 1,
				    strlen(message->tag));
	return 0;
}

static int register_new(struct request *request, struct rank *rank, const struct segment *segment, struct registration **ret_registration)
{
	const Hccld__Control__RegisterMemory *message = request->message->register_memory;
	int r = registration_new(rank, segment, message->offset, message->bytes, message->tag, ret_registration);

	if (r == -EUSERS)
		return tenants_refuse(request, CAUSE_LIMIT, rank->session->quota, QUOTA_REGISTRATIONS, 1);
	if (r == -EDQUOT)
		return registry_full(request, "regions of registered memory", HCCLD_REGISTRATIONS_MAX);
	return r;
}

int handle_register_memory(struct request *request)
{
	const Hccld__Control__RegisterMemory *message = request->message->register_memory;
	Hccld__Control__RegisterMemoryReply *reply = &request->body.register_memory;
	struct session *session = request_session(request);
	struct rank *rank = session_rank(session, message->rank);
	struct segment *segment = session_segment(session, message->segment);
	struct registration *registration;
	bool is_same;
	int r;

	if (!rank)
		return rank_unknown(request);
	r = register_check(request, segment);
	if (r < 0)
		return r;
	registration = registration_overlap(rank, segment->id, message->offset, message->bytes, message->tag, &is_same);
	if (registration && !is_same)
		return request_fail(request, CAUSE_ARGUMENT,
				    "communicator %s: rank %" PRIu32 " has registered %" PRIu64
				    " bytes under tag \"%s\" that overlap these: regions of a communicator may not overlap",
				    rank->comm->name, rank->rank, registration->bytes, registration->tag);
	if (!registration) {
		r = register_new(request, rank, segment, &registration);
		if (r < 0)
			return r;
	}
	hccld__control__register_memory_reply__init(reply);
	reply->registration = registration->id;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_REGISTER_MEMORY;
	request->reply.register_memory = reply;
	return 0;
}

int handle_unregister_memory(struct request *request)
{
	uint64_t id = request->message->unregister_memory->registration;
	struct session *session = request_session(request);
	struct registration *registration = id ? idmap_get(&session->registry->registration_ids, id) : NULL;
	struct segment *segment;
	uint64_t offset, bytes;

	if (!registration || registration->rank->session != session || registration->rank->is_closing)
		return session->is_restored ? teardown_again(request)
					    : request_fail(request, CAUSE_NOT_FOUND, "this process has registered no such memory");
	segment = registration_segment(registration);
	offset = registration->offset;
	bytes = registration->bytes;
	channels_lose(registration->rank, id);
	registration_remove(registration);
	/* the memory is used for something else then: no copy of a peer may still be about it */
	return segment ? teardown_settle(request, segment, offset, bytes) : 0;
}

/* ---- offers ---- */

/* What the offer names is there. */
static int offer_check(struct request *request, const struct rank *rank, const Hccld__Control__ChannelOffer *offer)
{
	uint32_t engine = request->message->offer_channels->engine;
	const struct comm *comm = rank->comm;

	if (engine >= CHANNEL_ENGINES || offer->protocol >= CHANNEL_PROTOCOLS)
		return request_fail(request, CAUSE_ARGUMENT, "there is no engine %" PRIu32 " or no protocol %" PRIu32, engine, offer->protocol);
	if (offer->peer >= comm->view.size || offer->peer == rank->rank)
		return request_fail(request, CAUSE_ARGUMENT,
				    "communicator %s: rank %" PRIu32 " cannot have a channel to rank %" PRIu32 ": expected another rank below %" PRIu32,
				    comm->name, rank->rank, offer->peer, comm->view.size);
	if (offer->n_registrations > HCCLD_CHANNEL_MEMORIES_MAX || offer->notify_count > HCCLD_NOTIFIES_MAX)
		return request_fail(request, CAUSE_ARGUMENT,
				    "a channel exchanges at most %u regions of memory and has at most %u notifies, not %zu and %" PRIu32,
				    HCCLD_CHANNEL_MEMORIES_MAX, HCCLD_NOTIFIES_MAX, offer->n_registrations, offer->notify_count);
	for (size_t i = 0; i < offer->n_registrations; i++)
		if (!registration_find(rank, offer->registrations[i]))
			return request_fail(request, CAUSE_NOT_FOUND, "communicator %s: rank %" PRIu32 " has registered no memory %" PRIu64,
					    comm->name, rank->rank, offer->registrations[i]);
	return 0;
}

static int offer_check_buffer(struct request *request, const struct rank *rank)
{
	uint64_t id = request->message->offer_channels->buffer;
	const struct segment *segment = session_segment(rank->session, id);

	if (!id)
		return 0;
	if (!segment || segment->is_import || segment->kind > SEGMENT_HOST)
		return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such memory segment for a buffer");
	return 0;
}

/* @r: of channel_new(). */
static int offer_refuse(struct request *request, const struct rank *rank, uint32_t notify_count, int r)
{
	if (r == -EUSERS && quota_is_short(rank->session->quota, QUOTA_CHANNELS, 1))
		return tenants_refuse(request, CAUSE_LIMIT, rank->session->quota, QUOTA_CHANNELS, 1);
	if (r == -EDQUOT)
		return registry_full(request, "ends of channels", HCCLD_CHANNELS_MAX);
	return notifies_refuse(request, rank->context, notify_count, r);
}

/* The end that is offered: the one that is there, or a new one (*@ret_is_new). */
static int offer_end(struct request *request, struct rank *rank, const Hccld__Control__ChannelOffer *offer, struct channel **ret_channel,
		     bool *ret_is_new)
{
	const Hccld__Control__OfferChannels *message = request->message->offer_channels;
	const struct channel_wish wish = { .peer = offer->peer,
					   .engine = message->engine,
					   .protocol = offer->protocol,
					   .notify_count = offer->notify_count,
					   .buffer = message->buffer,
					   .registrations = offer->registrations,
					   .registration_count = (uint32_t)offer->n_registrations };
	enum cause cause;
	struct text text;
	int r;

	*ret_channel = channel_at(rank, offer->peer, message->engine, offer->protocol);
	*ret_is_new = !*ret_channel;
	if (*ret_is_new) {
		r = channel_new(rank, &wish, ret_channel);
		if (r < 0)
			return offer_refuse(request, rank, offer->notify_count, r);
	}
	text_init(&text, request->text, sizeof(request->text));
	cause = channel_was_complete(*ret_channel) ? CAUSE_NONE : channel_verdict(*ret_channel, &text);
	if (cause == CAUSE_NONE || cause == CAUSE_BUSY)
		return 0;
	if (*ret_is_new)
		channel_discard(*ret_channel);
	return status_error(cause);
}

/* Both cannot be completed: said at both, and what was made goes. */
static void offer_fail(struct request *request, struct channel *channel, struct channel *other, const struct session *is_short, int r)
{
	char buffer[HCCLD_TEXT_MAX];
	enum cause cause = r == -EUSERS || r == -EDQUOT ? CAUSE_LIMIT : status_cause(r);

	if (r == -EUSERS)
		snprintf(buffer, sizeof(buffer),
			 "the processes of uid %" PRIu32 " have memory of others %u times, by channels and imports: one user may not have more",
			 is_short->uid, HCCLD_IMPORTS_PER_USER);
	else if (r == -EDQUOT)
		snprintf(buffer, sizeof(buffer), "pid %d has %" PRIu32 " memory segments, with those that channels have brought; a process has at most %u",
			 is_short->view.pid, is_short->segment_slots.used, HCCLD_SEGMENTS_PER_SESSION);
	else
		snprintf(buffer, sizeof(buffer), "a channel cannot be completed: %s", status_of(cause)->text);
	channel_fail(channel, cause, buffer);
	channel_fail(other, cause, buffer);
	list_for_each(struct segment, import, &channel->imports, channel_link)
		teardown_lost_segment(request->control, import);
	list_for_each(struct segment, import, &other->imports, channel_link)
		teardown_lost_segment(request->control, import);
}

/* All ends are there, or none: a part of them would be known to nobody. */
static int offer_all(struct request *request, struct rank *rank, struct channel **channels, bool *is_new)
{
	const Hccld__Control__OfferChannels *message = request->message->offer_channels;
	size_t made = 0;
	int r = 0;

	while (made < message->n_offers && r == 0) {
		r = offer_check(request, rank, message->offers[made]);
		if (r == 0)
			r = offer_end(request, rank, message->offers[made], &channels[made], &is_new[made]);
		made += r == 0;
	}
	while (r < 0 && made--)
		if (is_new[made])
			channel_discard(channels[made]);
	if (r < 0)
		notifies_collect(rank->session);
	return r;
}

static void offer_meet(struct request *request, struct channel *channel)
{
	struct channel *other = channel->state == CHANNEL_OFFERED ? channel_counterpart(channel) : NULL;
	struct session *is_short;
	int r;

	if (!other)
		return;
	r = channel_complete(channel, other, &is_short);
	if (r < 0)
		offer_fail(request, channel, other, is_short, r);
	channel_settled(channel);
	channel_settled(other);
}

int handle_offer_channels(struct request *request)
{
	const Hccld__Control__OfferChannels *message = request->message->offer_channels;
	Hccld__Control__OfferChannelsReply *reply = &request->body.offer_channels;
	struct rank *rank = session_rank(request_session(request), message->rank);
	struct channel **channels = request_alloc(request, (message->n_offers + 1) * sizeof(*channels));
	bool *is_new = request_alloc(request, message->n_offers + 1);
	int r;

	if (!rank)
		return rank_unknown(request);
	if (message->n_offers > HCCLD_OFFERS_MAX)
		return request_fail(request, CAUSE_ARGUMENT, "%zu offers in one request, at most %u", message->n_offers, HCCLD_OFFERS_MAX);
	hccld__control__offer_channels_reply__init(reply);
	reply->channels = request_alloc(request, (message->n_offers + 1) * sizeof(*reply->channels));
	if (!channels || !is_new || !reply->channels)
		return -ENOMEM;
	r = offer_check_buffer(request, rank);
	if (r == 0)
		r = offer_all(request, rank, channels, is_new);
	if (r < 0)
		return r;
	for (size_t i = 0; i < message->n_offers; i++) {
		reply->channels[reply->n_channels++] = channels[i]->id;
		offer_meet(request, channels[i]);
	}
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_OFFER_CHANNELS;
	request->reply.offer_channels = reply;
	return 0;
}

/* ---- what there is ---- */

/* @import NULL: there is none. */
static Hccld__Control__ChannelMemory *describe_memory(struct request *request, const struct segment *import, const char *tag)
{
	Hccld__Control__ChannelMemory *memory = request_alloc(request, sizeof(*memory));

	if (!memory)
		return NULL;
	hccld__control__channel_memory__init(memory);
	if (import) {
		memory->segment = import->id;
		memory->offset = import->offset;
		memory->bytes = import->memory.bytes;
		memory->kind = import->kind;
		memory->is_lost = import->is_lost;
	}
	memory->tag = request_string(request, tag);
	return memory->tag ? memory : NULL;
}

static int describe_memories(struct request *request, const struct channel *channel, Hccld__Control__DescribeChannelReply *reply)
{
	uint32_t first = request->message->describe_channel->first_memory;

	reply->memory_count = channel_memory_count(channel);
	reply->memories = request_alloc(request, DESCRIBED_MAX * sizeof(*reply->memories));
	if (!reply->memories)
		return -ENOMEM;
	for (uint32_t i = first; i < reply->memory_count && i - first < DESCRIBED_MAX; i++) {
		const struct segment *import = channel_import(channel, CHANNEL_MEMORIES + i);
		Hccld__Control__ChannelMemory *message = describe_memory(request, import, import && import->tag ? import->tag : "");

		if (!message)
			return -ENOMEM;
		reply->memories[reply->n_memories++] = message;
	}
	return 0;
}

static int describe_complete(struct request *request, const struct channel *channel, Hccld__Control__DescribeChannelReply *reply)
{
	const struct segment *notifies = channel_import(channel, CHANNEL_NOTIFIES);

	reply->is_complete = true;
	reply->is_lost = !channel->other;
	reply->peer_pid = (uint32_t)channel->rank->comm->view.region->members[channel->peer].pid;
	if (notifies) {
		reply->peer_notify_segment = notifies->id;
		reply->peer_notify_count = (uint32_t)(notifies->memory.bytes / sizeof(struct notify_slot));
	}
	reply->buffer = describe_memory(request, channel_import(channel, CHANNEL_BUFFER), "");
	if (!reply->buffer)
		return -ENOMEM;
	return describe_memories(request, channel, reply);
}

static int channel_unknown(struct request *request, uint64_t id)
{
	return request_fail(request, CAUSE_NOT_FOUND, "this process has no channel %" PRIu64 ": it was closed", id);
}

int handle_describe_channel(struct request *request)
{
	uint64_t id = request->message->describe_channel->channel;
	Hccld__Control__DescribeChannelReply *reply = &request->body.describe_channel;
	const struct channel *channel = channel_find(request_session(request), id);
	enum cause cause;
	struct text text;
	int r = 0;

	if (!channel)
		return channel_unknown(request, id);
	text_init(&text, request->text, sizeof(request->text));
	cause = channel_was_complete(channel) ? CAUSE_NONE : channel_verdict(channel, &text);
	if (cause && cause != CAUSE_BUSY)
		return status_error(cause);
	hccld__control__describe_channel_reply__init(reply);
	if (channel->notifies) {
		reply->notify_segment = channel->rank->context->notifies.segment->id;
		reply->first_notify = channel->notifies->first;
		reply->notify_count = channel->notifies->count;
	}
	if (!cause)
		r = describe_complete(request, channel, reply);
	if (r < 0)
		return r;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_DESCRIBE_CHANNEL;
	request->reply.describe_channel = reply;
	return 0;
}

int handle_map_import(struct request *request)
{
	const struct segment *import = session_segment(request_session(request), request->message->map_import->segment);

	if (!import || !import->is_import || !import->channel)
		return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such memory that came with a channel");
	if (import->kind == NOTIFY_SEGMENT_KIND)
		return request_fail(request, CAUSE_PERMISSION, "notifies of a peer are for tasks, no process maps them");
	if (!import->origin)
		return request_fail(request, CAUSE_PEER_MEMORY, "the memory that came with a channel is gone: its process has freed it, left or ended");
	return request_add_fd(request, import->origin->memory.fd);
}

/* ---- the end ---- */

int handle_close_channels(struct request *request)
{
	const Hccld__Control__CloseChannels *message = request->message->close_channels;
	struct session *session = request_session(request);
	struct channel **channels = request_alloc(request, (message->n_channels + 1) * sizeof(*channels));
	size_t count = 0;
	int r;

	if (!channels)
		return -ENOMEM;
	for (size_t i = 0; i < message->n_channels && !message->unless_complete && !session->is_restored; i++)
		if (!channel_find(session, message->channels[i]))
			return channel_unknown(request, message->channels[i]);
	for (size_t i = 0; i < message->n_channels; i++) {
		struct channel *channel = channel_find(session, message->channels[i]);

		if (!channel || channel->is_chosen ||
		    (message->unless_complete && (channel->state == CHANNEL_COMPLETE || !list_is_empty(&channel->waiters))))
			continue;
		channel->is_chosen = true;
		channels[count++] = channel;
	}
	r = teardown_channels(request, session, channels, count);
	for (size_t i = 0; i < count && r < 0; i++)
		channels[i]->is_chosen = false;
	return r;
}
