/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about channels, and mapping what they bring. */
#include "client/channel_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "client/comm.h"
#include "client/environment.h"
#include "client/error.h"
#include "client/mapping.h"
#include "client/session.h"
#include "client/strict.h"
#include "proto/channel.h"
#include "proto/cleanup.h"
#include "proto/control.pb-c.h"
#include "proto/feature.h"

#define PAGE 4096u
#define IDS_IN_REQUEST 4096u
#define OFFERED_BYTES_MAX 32768u /* of registrations in one request */

static int need_session(struct hccld_session **ret_session)
{
	return hccld_session_need(HCCLD_FEATURE_RESOURCES, "channels", ret_session);
}

static int malformed(const char *what)
{
	return hccld_error(CAUSE_PROTOCOL, "hccld's answer to %s is malformed", what);
}

/* ---- registered memory ---- */

int hccld_channel_request_register(uint64_t rank, const char *tag, uint64_t segment, uint64_t offset, uint64_t bytes,
				   uint64_t *ret_registration)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__RegisterMemory body = HCCLD__CONTROL__REGISTER_MEMORY__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	struct hccld_session *session;
	int r;

	r = need_session(&session);
	if (r < 0)
		return r;
	body.rank = rank;
	body.tag = (char *)tag;
	body.segment = segment;
	body.offset = offset;
	body.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_REGISTER_MEMORY;
	request.register_memory = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_REGISTER_MEMORY)
		r = malformed("HcclCommMemReg");
	if (r == 0)
		*ret_registration = call.reply->register_memory->registration;
	return r;
}

int hccld_channel_request_unregister(uint64_t registration)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__UnregisterMemory body = HCCLD__CONTROL__UNREGISTER_MEMORY__INIT;
	struct hccld_session *session;
	int r;

	r = need_session(&session);
	if (r < 0)
		return r;
	body.registration = registration;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_UNREGISTER_MEMORY;
	request.unregister_memory = &body;
	return hccld_call_simple(session->connection, &request);
}

/* ---- offers ---- */

static int offer_some(struct hccld_session *session, Hccld__Control__OfferChannels *body, uint64_t *ret_ids)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	int r;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OFFER_CHANNELS;
	request.offer_channels = body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r < 0)
		return r;
	if (call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_OFFER_CHANNELS ||
	    call.reply->offer_channels->n_channels != body->n_offers)
		return malformed("HcclChannelAcquire");
	memcpy(ret_ids, call.reply->offer_channels->channels, body->n_offers * sizeof(*ret_ids));
	return 0;
}

int hccld_channel_request_offer(uint64_t rank, uint32_t engine, uint64_t buffer, const struct hccld_channel_offer *offers, uint32_t count,
				uint64_t *ret_ids)
{
	Hccld__Control__ChannelOffer messages[HCCLD_OFFERS_MAX], *pointers[HCCLD_OFFERS_MAX];
	Hccld__Control__OfferChannels body = HCCLD__CONTROL__OFFER_CHANNELS__INIT;
	struct hccld_session *session;
	uint32_t done = 0;
	int r;

	r = need_session(&session);
	body.rank = rank;
	body.engine = engine;
	body.buffer = buffer;
	body.offers = pointers;
	while (r == 0 && done < count) {
		uint32_t bytes = 0;

		body.n_offers = 0;
		while (done + body.n_offers < count && body.n_offers < HCCLD_OFFERS_MAX && bytes < OFFERED_BYTES_MAX) {
			const struct hccld_channel_offer *offer = &offers[done + body.n_offers];
			Hccld__Control__ChannelOffer *message = &messages[body.n_offers];

			hccld__control__channel_offer__init(message);
			message->peer = offer->peer;
			message->protocol = offer->protocol;
			message->notify_count = offer->notify_count;
			message->registrations = (uint64_t *)offer->registrations;
			message->n_registrations = offer->registration_count;
			pointers[body.n_offers++] = message;
			bytes += offer->registration_count * 10; /* a number takes at most so many */
		}
		r = offer_some(session, &body, ret_ids + done);
		if (r == 0)
			done += (uint32_t)body.n_offers;
	}
	if (r < 0 && done) {
		hccld_error_mute(true);
		hccld_channel_request_close(ret_ids, done, true);
		hccld_error_mute(false);
	}
	return r;
}

/* ---- waiting ---- */

/* Which variable has set the limit is known here alone. */
static int await_one(struct hccld_session *session, struct hccld_call *call)
{
	int r = hccld_call_wait(session->connection, call);

	if (status_cause(r) != CAUSE_CHANNEL_TIMEOUT || !call->reply)
		return r;
	return hccld_error(CAUSE_CHANNEL_TIMEOUT, "%s; %s sets the limit", call->reply->text,
			   hccld_environment_connect_is_ms() ? "HCCLD_CONNECT_TIMEOUT_MS" : "HCCL_CONNECT_TIMEOUT");
}

int hccld_channel_request_await(const uint64_t *ids, uint32_t count, uint32_t timeout_ms)
{
	const uint32_t parts = (count + HCCLD_AWAITED_MAX - 1) / HCCLD_AWAITED_MAX;
	CLEANUP(freep) struct hccld_call *calls = calloc(parts ? parts : 1, sizeof(*calls));
	struct hccld_session *session;
	uint32_t started = 0;
	int r;

	if (!calls)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to wait for %u channels", count);
	r = need_session(&session);
	/* all at once: they have one time-out */
	for (uint32_t i = 0; i < parts && r == 0; i++) {
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		Hccld__Control__AwaitChannels body = HCCLD__CONTROL__AWAIT_CHANNELS__INIT;
		uint32_t left = count - i * HCCLD_AWAITED_MAX;

		body.channels = (uint64_t *)ids + (size_t)i * HCCLD_AWAITED_MAX;
		body.n_channels = left < HCCLD_AWAITED_MAX ? left : HCCLD_AWAITED_MAX;
		request.deadline_ms = timeout_ms;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_AWAIT_CHANNELS;
		request.await_channels = &body;
		r = hccld_call_start(session->connection, &request, &calls[i]);
		started += r == 0;
	}
	for (uint32_t i = 0; i < started; i++) {
		/* the first error counts, and its text stays */
		hccld_error_mute(r < 0);
		if (r < 0)
			(void)hccld_call_wait(session->connection, &calls[i]);
		else
			r = await_one(session, &calls[i]);
		hccld_call_end(&calls[i]);
	}
	hccld_error_mute(false);
	return r;
}

/* ---- describing ---- */

static int memory_map(struct hccld_session *session, const Hccld__Control__ChannelMemory *message, struct hccld_channel_memory *memory)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__MapImport body = HCCLD__CONTROL__MAP_IMPORT__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	const uint64_t lead = message->offset % PAGE;
	int r;

	body.segment = message->segment;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MAP_IMPORT;
	request.map_import = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r < 0)
		return r;
	if (call.fd_count != 1)
		return malformed("a request for a peer's memory");
	memory->base = hccld_mapping_new(call.fds[0], message->offset - lead, memory->size, PROT_READ | PROT_WRITE);
	if (memory->base && !message->kind)
		r = hccld_strict_protect(memory->base, memory->size);
	return r;
}

/*
 * Into memories[@index], which is zero. A part that was never there stays so. One that the peer has taken away since the channel was complete
 * is lost like one that goes later: its mapping, here one of nobody's zeros, may be touched, and calls with it say whose it was.
 */
static int memory_take(struct hccld_session *session, struct hccld_channel *channel, uint32_t index,
		       const Hccld__Control__ChannelMemory *message)
{
	struct hccld_channel_memory *memory = &channel->memories[index];
	const uint64_t lead = message->offset % PAGE;
	const int access = channel->is_mapped ? PROT_READ | PROT_WRITE : PROT_NONE;
	bool is_lost = message->is_lost;
	int r = 0;

	if (!message->segment || !message->bytes)
		return 0;
	memory->size = (lead + message->bytes + PAGE - 1) / PAGE * PAGE;
	if (channel->is_mapped && !is_lost) {
		r = memory_map(session, message, memory);
		is_lost = status_cause(r) == CAUSE_PEER_MEMORY;
		if (is_lost) {
			hccld_error_forget();
			r = 0;
		}
	}
	if (!channel->is_mapped || is_lost) {
		memory->base = hccld_mapping_new(-1, 0, memory->size, access);
		if (is_lost && channel->is_mapped && memory->base && !message->kind)
			r = hccld_strict_protect(memory->base, memory->size);
	}
	if (r == 0 && !memory->base)
		r = hccld_error(CAUSE_HOST_MEMORY, "no addresses for %llu bytes of a peer: %s", (unsigned long long)memory->size, strerror(errno));
	if (r < 0)
		return r;
	memory->start = (char *)memory->base + lead;
	memory->bytes = message->bytes;
	memory->segment = message->segment;
	memory->memory = message->kind ? HCCLD_MEMORY_HOST : HCCLD_MEMORY_DEVICE;
	atomic_store_explicit(&memory->is_lost, is_lost, memory_order_relaxed);
	if (!channel->is_mapped || is_lost)
		return 0;
	return hccld_buffer_add(&(struct hccld_mapping){ .base = memory->start, .bytes = memory->bytes, .segment = memory->segment,
							 .memory = memory->memory, .context = channel->comm->on });
}

/* The first page: the numbers, and room for the rest. */
static int describe_begin(struct hccld_session *session, struct hccld_channel *channel, const Hccld__Control__DescribeChannelReply *reply)
{
	const uint32_t count = reply->memory_count;

	if (!reply->is_complete || !reply->buffer || count > HCCLD_CHANNEL_MEMORIES_MAX)
		return malformed("a question about a channel");
	atomic_store_explicit(&channel->is_lost, reply->is_lost, memory_order_relaxed);
	channel->notify_segment = reply->notify_segment;
	channel->first_notify = reply->first_notify;
	channel->notify_count = reply->notify_count;
	channel->peer_notify_segment = reply->peer_notify_segment;
	channel->peer_notify_offset = reply->peer_notify_offset;
	channel->peer_notify_count = reply->peer_notify_count;
	channel->memories = calloc(count + 1, sizeof(*channel->memories));
	channel->mems = calloc(count + 1, sizeof(*channel->mems));
	channel->tags = calloc(count + 1, sizeof(*channel->tags));
	if (!channel->memories || !channel->mems || !channel->tags)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a channel of %u regions", count);
	channel->memory_count = 1;
	return memory_take(session, channel, 0, reply->buffer);
}

/* What the peer has freed before the channel was complete is left out. */
static int describe_take(struct hccld_session *session, struct hccld_channel *channel, const Hccld__Control__DescribeChannelReply *reply)
{
	int r = 0;

	for (size_t i = 0; i < reply->n_memories && r == 0; i++) {
		const Hccld__Control__ChannelMemory *message = reply->memories[i];
		const uint32_t index = channel->memory_count;

		if (!message->segment)
			continue;
		if (index > reply->memory_count)
			return malformed("a question about a channel");
		channel->tags[index - 1] = strdup(message->tag);
		if (!channel->tags[index - 1])
			return hccld_error(CAUSE_HOST_MEMORY, "no memory for a tag");
		channel->memory_count++;
		r = memory_take(session, channel, index, message);
		channel->mems[index - 1] = (CommMem){ message->kind ? COMM_MEM_TYPE_HOST : COMM_MEM_TYPE_DEVICE, channel->memories[index].start,
						      message->bytes };
	}
	return r;
}

/* One page from @first on. *@ret_seen: regions in it; *@ret_count: in all. */
static int describe_page(struct hccld_session *session, struct hccld_channel *channel, uint32_t first, uint32_t *ret_seen, uint32_t *ret_count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DescribeChannel body = HCCLD__CONTROL__DESCRIBE_CHANNEL__INIT;
	CLEANUP(hccld_call_end) struct hccld_call call = { 0 };
	int r;

	body.channel = channel->id;
	body.first_memory = first;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESCRIBE_CHANNEL;
	request.describe_channel = &body;
	r = hccld_call_make(session->connection, &request, &call);
	if (r == 0 && call.reply->body_case != HCCLD__CONTROL__REPLY__BODY_DESCRIBE_CHANNEL)
		r = malformed("a question about a channel");
	if (r == 0 && first == 0)
		r = describe_begin(session, channel, call.reply->describe_channel);
	if (r == 0)
		r = describe_take(session, channel, call.reply->describe_channel);
	if (r < 0)
		return r;
	*ret_seen = (uint32_t)call.reply->describe_channel->n_memories;
	*ret_count = call.reply->describe_channel->memory_count;
	return 0;
}

int hccld_channel_request_describe(struct hccld_channel *channel)
{
	struct hccld_session *session;
	uint32_t first = 0, seen = 0, count = 0;
	int r;

	r = need_session(&session);
	if (r < 0)
		return r;
	channel->is_mapped = channel_protocol_is_mapped(channel->protocol);
	do {
		first += seen;
		r = describe_page(session, channel, first, &seen, &count);
	} while (r == 0 && seen && first + seen < count);
	return r;
}

/* ---- the end ---- */

int hccld_channel_request_close(const uint64_t *ids, uint32_t count, bool unless_complete)
{
	struct hccld_session *session;
	int r;

	r = need_session(&session);
	for (uint32_t done = 0; r == 0 && done < count; done += IDS_IN_REQUEST) {
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		Hccld__Control__CloseChannels body = HCCLD__CONTROL__CLOSE_CHANNELS__INIT;

		body.channels = (uint64_t *)ids + done;
		body.n_channels = count - done < IDS_IN_REQUEST ? count - done : IDS_IN_REQUEST;
		body.unless_complete = unless_complete;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CHANNELS;
		request.close_channels = &body;
		r = hccld_call_simple(session->connection, &request);
	}
	return r;
}
