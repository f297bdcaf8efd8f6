/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and registered memory, by requests that no honest client sends: only what a peer has offered is reached, and nothing stays. */
#include <string.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define PART 65536u
#define CHANNELS 32u

#define BEGIN(Name, NAME, field)                                               \
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;       \
	Hccld__Control__##Name message = HCCLD__CONTROL__##NAME##__INIT;       \
	struct raw_reply reply;                                                \
	uint32_t cause;                                                        \
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_##NAME;              \
	request.field = &message

#define FINISH(client)                            \
	raw_call(client, &request, &reply);       \
	cause = reply.message->cause;             \
	check((cause == 0) == !*reply.message->text)

static struct private_daemon private_daemon;

/* A rank of a communicator of two, and what it has. */
struct side {
	struct raw_client client;
	uint64_t context, rank, segment, buffer;
};

static uint64_t registered(struct side *side, uint64_t rank, uint64_t segment, uint64_t offset, uint64_t bytes, const char *tag,
			   uint32_t expected)
{
	uint64_t id = 0;
	BEGIN(RegisterMemory, REGISTER_MEMORY, register_memory);

	message.rank = rank;
	message.segment = segment;
	message.offset = offset;
	message.bytes = bytes;
	message.tag = (char *)tag;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	if (!cause)
		id = reply.message->register_memory->registration;
	raw_reply_free(&reply);
	return id;
}

static uint64_t offered_as(struct side *side, const Hccld__Control__OfferChannels *wish, uint32_t expected)
{
	uint64_t id = 0;
	BEGIN(OfferChannels, OFFER_CHANNELS, offer_channels);

	message = *wish;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	if (!cause && reply.message->offer_channels->n_channels)
		id = reply.message->offer_channels->channels[0];
	raw_reply_free(&reply);
	return id;
}

static uint64_t offered(struct side *side, uint32_t peer, uint32_t engine, uint32_t protocol, uint32_t notifies, uint64_t registration,
			uint32_t expected)
{
	Hccld__Control__OfferChannels wish = HCCLD__CONTROL__OFFER_CHANNELS__INIT;
	Hccld__Control__ChannelOffer offer = HCCLD__CONTROL__CHANNEL_OFFER__INIT, *offers[] = { &offer };

	wish.rank = side->rank;
	wish.engine = engine;
	wish.buffer = side->buffer;
	wish.n_offers = 1;
	wish.offers = offers;
	offer.peer = peer;
	offer.protocol = protocol;
	offer.notify_count = notifies;
	offer.registrations = &registration;
	offer.n_registrations = registration != 0;
	return offered_as(side, &wish, expected);
}

static void awaited(struct side *side, const uint64_t *channels, size_t count, uint32_t expected)
{
	BEGIN(AwaitChannels, AWAIT_CHANNELS, await_channels);

	message.channels = (uint64_t *)channels;
	message.n_channels = count;
	request.deadline_ms = 100;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	raw_reply_free(&reply);
}

/* The segment of its first memory, or of its notifies; 0: it is not complete. */
static uint64_t described(struct side *side, uint64_t channel, bool wants_notifies, uint32_t expected)
{
	uint64_t segment = 0;
	BEGIN(DescribeChannel, DESCRIBE_CHANNEL, describe_channel);

	message.channel = channel;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	if (!cause && reply.message->describe_channel->is_complete)
		segment = wants_notifies ? reply.message->describe_channel->peer_notify_segment :
					   reply.message->describe_channel->memories[0]->segment;
	raw_reply_free(&reply);
	return segment;
}

/* It was complete: that the peer has gone since is said, and no failure. */
static void lost_described(struct side *side, uint64_t channel, uint64_t segment)
{
	BEGIN(DescribeChannel, DESCRIBE_CHANNEL, describe_channel);

	message.channel = channel;
	FINISH(&side->client);
	check_eq_uint(cause, 0);
	check(reply.message->describe_channel->is_complete);
	check(reply.message->describe_channel->is_lost);
	check_eq_uint(reply.message->describe_channel->memory_count, 1);
	check_eq_uint(reply.message->describe_channel->memories[0]->segment, segment);
	check_eq_str(reply.message->describe_channel->memories[0]->tag, "tag");
	check(reply.message->describe_channel->memories[0]->is_lost);
	check_eq_uint(reply.message->describe_channel->peer_notify_count, 2);
	raw_reply_free(&reply);
}

static void mapped(struct side *side, uint64_t segment, uint32_t expected)
{
	BEGIN(MapImport, MAP_IMPORT, map_import);

	message.segment = segment;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	check_eq_uint(reply.packet.fd_count, !cause);
	raw_reply_free(&reply);
}

static void closed(struct side *side, const uint64_t *channels, size_t count, bool unless_complete, uint32_t expected)
{
	BEGIN(CloseChannels, CLOSE_CHANNELS, close_channels);

	message.channels = (uint64_t *)channels;
	message.n_channels = count;
	message.unless_complete = unless_complete;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	raw_reply_free(&reply);
}

static void freed(struct side *side, uint64_t segment, uint32_t expected)
{
	BEGIN(FreeSegment, FREE_SEGMENT, free_segment);

	message.segment = segment;
	FINISH(&side->client);
	check_eq_uint(cause, expected);
	raw_reply_free(&reply);
}

static void begin(struct side sides[2], const char *more)
{
	const char *const options[] = { "--devices", "2", "--device-memory", "64M", "--log-level", "error", more, NULL };
	struct raw_root root;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	for (uint32_t i = 0; i < 2; i++) {
		raw_client_start(&sides[i].client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		sides[i].context = raw_open_context(&sides[i].client, i);
		sides[i].segment = raw_allocate(&sides[i].client, sides[i].context, PART, NULL);
		sides[i].buffer = raw_allocate(&sides[i].client, sides[i].context, PART, NULL);
	}
	raw_root_info(&sides[0].client, &root);
	for (uint32_t i = 0; i < 2; i++)
		raw_join_send(&sides[i].client, &root, i, 2, sides[i].context, 0);
	for (uint32_t i = 0; i < 2; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&sides[i].client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		sides[i].rank = reply.message->join_comm->rank;
		raw_reply_free(&reply);
	}
}

static void end(struct side sides[2])
{
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&sides[i].client);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

TEST(registrations_are_judged)
{
	struct side sides[2], *a = &sides[0], *b = &sides[1];
	char tag[257];
	uint64_t id;

	memset(tag, 't', 256);
	tag[256] = 0;
	begin(sides, NULL);
	registered(a, 77, a->segment, 0, 1, "tag", CAUSE_BAD_HANDLE);
	registered(a, b->rank + (1 << 16), a->segment, 0, 1, "tag", CAUSE_BAD_HANDLE);
	registered(a, a->rank, 77, 0, 1, "tag", CAUSE_BAD_HANDLE);
	registered(a, a->rank, a->segment, 0, 0, "tag", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, 0, PART + 1, "tag", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, PART, 1, "tag", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, UINT64_MAX, 2, "tag", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, 0, 1, "", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, 0, 1, tag, CAUSE_ARGUMENT);
	id = registered(a, a->rank, a->segment, 10, 20, tag + 1, 0);
	check_eq_uint(registered(a, a->rank, a->segment, 10, 20, tag + 1, 0), id);
	registered(a, a->rank, a->segment, 10, 20, "tag", CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, 29, 1, tag + 1, CAUSE_ARGUMENT);
	registered(a, a->rank, a->segment, 0, PART, tag + 1, CAUSE_ARGUMENT);
	check_ne_uint(registered(a, a->rank, a->segment, 30, 1, tag + 1, 0), id);
	end(sides);
}

TEST(offers_are_judged)
{
	struct side sides[2], *a = &sides[0], *b = &sides[1];
	Hccld__Control__OfferChannels wish = HCCLD__CONTROL__OFFER_CHANNELS__INIT;
	Hccld__Control__ChannelOffer offer = HCCLD__CONTROL__CHANNEL_OFFER__INIT, *offers[257];
	uint64_t foreign, ids[2], numbers[257];

	begin(sides, NULL);
	foreign = registered(b, b->rank, b->segment, 0, 10, "tag", 0);
	offered(a, 0, 4, 6, 0, 0, CAUSE_ARGUMENT);
	offered(a, 2, 4, 6, 0, 0, CAUSE_ARGUMENT);
	offered(a, 1, 6, 6, 0, 0, CAUSE_ARGUMENT);
	offered(a, 1, 4, 10, 0, 0, CAUSE_ARGUMENT);
	offered(a, 1, 4, 6, 65537, 0, CAUSE_ARGUMENT);
	offered(a, 1, 4, 6, 65536, 0, CAUSE_NOTIFIES);
	offered(a, 1, 4, 6, 0, foreign, CAUSE_NOT_FOUND);
	offered(a, 1, 4, 6, 0, 99, CAUSE_NOT_FOUND);
	wish.rank = a->rank;
	wish.engine = 4;
	wish.offers = offers;
	wish.n_offers = 257;
	for (int i = 0; i < 257; i++) {
		offers[i] = &offer;
		numbers[i] = foreign;
	}
	offer.peer = 1;
	offer.protocol = 6;
	offered_as(a, &wish, CAUSE_ARGUMENT);
	wish.n_offers = 1;
	offer.registrations = numbers;
	offer.n_registrations = 257;
	offered_as(a, &wish, CAUSE_ARGUMENT);
	offer.n_registrations = 0;
	wish.buffer = 99;
	offered_as(a, &wish, CAUSE_BAD_HANDLE);
	wish.rank = 99;
	offered_as(a, &wish, CAUSE_BAD_HANDLE);
	/* nothing of that is there: the other end waits in vain */
	ids[0] = offered(b, 0, 4, 6, 0, 0, 0);
	awaited(b, ids, 1, CAUSE_CHANNEL_TIMEOUT);
	check_eq_uint(offered(b, 0, 4, 6, 5, 0, 0), ids[0]);
	check_eq_uint(described(b, ids[0], false, 0), 0);
	described(a, ids[0], false, CAUSE_NOT_FOUND);
	awaited(a, ids, 1, CAUSE_NOT_FOUND);
	awaited(b, numbers, 257, CAUSE_NOT_FOUND);
	closed(a, ids, 1, false, CAUSE_NOT_FOUND);
	closed(a, ids, 1, true, 0);
	/* one of two is wrong: none goes */
	ids[1] = 99;
	closed(b, ids, 2, false, CAUSE_NOT_FOUND);
	check_eq_uint(offered(b, 0, 4, 6, 5, 0, 0), ids[0]);
	closed(b, ids, 1, true, 0);
	check_ne_uint(offered(b, 0, 4, 6, 5, 0, 0), ids[0]);
	end(sides);
}

TEST(only_what_was_offered_is_mapped)
{
	struct side sides[2], *a = &sides[0], *b = &sides[1];
	uint64_t ends[2], memory, notifies, id;

	begin(sides, NULL);
	id = registered(a, a->rank, a->segment, 4096, 4096, "tag", 0);
	ends[0] = offered(a, 1, 4, 6, 2, id, 0);
	ends[1] = offered(b, 0, 4, 6, 0, registered(b, b->rank, b->segment, 0, 1, "b", 0), 0);
	awaited(a, ends, 1, 0);
	awaited(b, ends + 1, 1, 0);
	memory = described(b, ends[1], false, 0);
	notifies = described(b, ends[1], true, 0);
	check_ne_uint(memory, 0);
	check_ne_uint(notifies, 0);
	mapped(b, memory, 0);
	mapped(b, notifies, CAUSE_PERMISSION);
	mapped(b, b->segment, CAUSE_BAD_HANDLE);
	mapped(b, a->segment + (1 << 20), CAUSE_BAD_HANDLE);
	freed(b, memory, CAUSE_PERMISSION);
	registered(b, b->rank, memory, 0, 1, "mine", CAUSE_PERMISSION);
	/* complete ones stay; a peer that closes is told of, and what it had is gone */
	closed(b, ends + 1, 1, true, 0);
	check_eq_uint(described(b, ends[1], false, 0), memory);
	closed(a, ends, 1, false, 0);
	lost_described(b, ends[1], memory);
	awaited(b, ends + 1, 1, 0);
	check_eq_uint(offered(b, 0, 4, 6, 0, 0, 0), ends[1]);
	mapped(b, memory, CAUSE_PEER_MEMORY);
	closed(b, ends + 1, 1, false, 0);
	mapped(b, memory, CAUSE_BAD_HANDLE);
	/* twice in a list is once */
	ends[0] = ends[1] = offered(b, 0, 4, 6, 0, 0, 0);
	closed(b, ends, 2, false, 0);
	end(sides);
}

TEST(requests_that_wait_are_answered)
{
	struct side sides[2], *a = &sides[0], *b = &sides[1];
	Hccld__Control__AwaitChannels message = HCCLD__CONTROL__AWAIT_CHANNELS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	uint64_t ids[2];

	begin(sides, NULL);
	ids[0] = ids[1] = offered(b, 0, 4, 6, 0, 0, 0);
	message.channels = ids;
	message.n_channels = 2;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_AWAIT_CHANNELS;
	request.await_channels = &message;
	for (int i = 0; i < 3; i++)
		raw_send(&b->client, &request);
	offered(a, 1, 4, 6, 0, 0, 0);
	for (int i = 0; i < 3; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&b->client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
	/* and those that never can be, when the peer leaves */
	ids[0] = ids[1] = offered(b, 0, 3, 6, 0, 0, 0);
	raw_send(&b->client, &request);
	raw_leave(&a->client, a->rank);
	{
		struct raw_reply reply;

		check_eq_int(raw_receive(&b->client, &reply), 0);
		check_eq_uint(reply.message->cause, CAUSE_PEER_LEFT);
		check_str_contains(reply.message->text, "has destroyed the communicator");
		raw_reply_free(&reply);
	}
	/* a session that ends while it waits */
	end(sides);
}

static void wait_sent(struct side *side, uint64_t *channels, size_t count)
{
	Hccld__Control__AwaitChannels message = HCCLD__CONTROL__AWAIT_CHANNELS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.channels = channels;
	message.n_channels = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_AWAIT_CHANNELS;
	request.await_channels = &message;
	raw_send(&side->client, &request);
}

static void wait_answered(struct side *side, uint32_t expected, const char *text)
{
	struct raw_reply reply;

	check_eq_int(raw_receive(&side->client, &reply), 0);
	check_eq_uint(reply.message->cause, expected);
	check_str_contains(reply.message->text, text);
	raw_reply_free(&reply);
}

/* Each is memory of the daemon's, and looked at by those that come later. */
TEST(a_process_waits_for_so_many_channels_at_a_time)
{
	struct side sides[2], *b = &sides[1];
	uint64_t ids[CHANNELS];

	begin(sides, NULL);
	for (uint32_t i = 0; i < CHANNELS; i++)
		ids[i] = offered(b, 0, i / 8, i % 8, 0, 0, 0);
	for (uint32_t i = 0; i < HCCLD_WAITERS_PER_SESSION / CHANNELS; i++)
		wait_sent(b, ids, CHANNELS);
	wait_sent(b, ids, 1);
	wait_answered(b, CAUSE_LIMIT, "requests of this process wait for 16384 channels, and for 1 more with this one; at most for 16384 at a time");
	/* those that have ended do not count */
	raw_leave(&sides[0].client, sides[0].rank);
	for (uint32_t i = 0; i < HCCLD_WAITERS_PER_SESSION / CHANNELS; i++)
		wait_answered(b, CAUSE_PEER_LEFT, "has destroyed the communicator");
	wait_sent(b, ids, 1);
	wait_answered(b, CAUSE_PEER_LEFT, "has destroyed the communicator");
	end(sides);
}

static bool allocated(struct side *side, uint64_t bytes)
{
	BEGIN(AllocateSegment, ALLOCATE_SEGMENT, allocate_segment);

	message.context = side->context;
	message.bytes = bytes;
	FINISH(&side->client);
	raw_reply_free(&reply);
	return cause == 0;
}

/* It is the memory for the notifies that is short, not their number. */
TEST(an_offer_that_has_no_memory_says_so)
{
	struct side sides[2], *b = &sides[1];
	BEGIN(OfferChannels, OFFER_CHANNELS, offer_channels);
	Hccld__Control__ChannelOffer offer = HCCLD__CONTROL__CHANNEL_OFFER__INIT, *offers[] = { &offer };

	begin(sides, "--memory-per-tenant=8M");
	for (uint64_t bytes = 1u << 20; bytes >= 4096; bytes /= 2)
		while (allocated(b, bytes))
			;
	message.rank = b->rank;
	message.n_offers = 1;
	message.offers = offers;
	offer.notify_count = 1;
	FINISH(&b->client);
	check_eq_uint(cause, CAUSE_HOST_MEMORY);
	check_str_contains(reply.message->text, "memory_per_tenant");
	raw_reply_free(&reply);
	end(sides);
}
