/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What random requests hardly ever make: two ranks of a communicator, each with a thread, notifies, registered memory, the HCCL buffer
 * and a channel to the other that is complete. Each request is that of an honest client, part by part; later steps change what is there.
 */
#include "tests/fuzz/control_case.h"
#include "tests/fuzz/control_parts.h"

#define SCENE_MS 60000u

/* Any input, past whose end all bytes are 0: a HELLO without mistakes. */
static size_t scene_hello(uint64_t id, unsigned char *data)
{
	struct input none = { NULL, 0 };

	return message_hello(&none, id, data);
}

static size_t scene_join(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, JoinComm, join_comm, JOIN_COMM);

	message.key = parts->numbers->key;
	message.secret.data = (uint8_t *)parts->numbers->secret;
	message.secret.len = sizeof(parts->numbers->secret);
	message.rank = scene->rank_index;
	message.size = 2;
	message.context = scene->own.context;
	parts->request.deadline_ms = SCENE_MS;
	return PACK(parts, data);
}

static size_t scene_thread(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, CreateThread, create_thread, CREATE_THREAD);

	message.context = scene->own.context;
	message.rank = scene->own.rank;
	message.notify_count = 2;
	return PACK(parts, data);
}

static size_t scene_notifies(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, CreateNotifies, create_notifies, CREATE_NOTIFIES);

	message.context = scene->own.context;
	message.count = 2;
	return PACK(parts, data);
}

static size_t scene_memory(struct parts *parts, const struct scene *scene, bool is_buffer, unsigned char *data)
{
	START(parts, AllocateSegment, allocate_segment, ALLOCATE_SEGMENT);

	message.context = scene->own.context;
	message.bytes = 65536;
	message.lazy_rank = is_buffer ? scene->own.rank : 0;
	return PACK(parts, data);
}

static size_t scene_registration(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, RegisterMemory, register_memory, REGISTER_MEMORY);

	message.rank = scene->own.rank;
	message.segment = scene->own.segment;
	message.bytes = 4096;
	message.tag = (char *)"tag";
	return PACK(parts, data);
}

static size_t scene_offer(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, OfferChannels, offer_channels, OFFER_CHANNELS);
	Hccld__Control__ChannelOffer offer = HCCLD__CONTROL__CHANNEL_OFFER__INIT, *offers = &offer;
	uint64_t registration = scene->own.registration;

	offer.peer = 1 - scene->rank_index;
	offer.notify_count = 2;
	offer.n_registrations = 1;
	offer.registrations = &registration;
	message.rank = scene->own.rank;
	message.buffer = scene->own.buffer;
	message.n_offers = 1;
	message.offers = &offers;
	return PACK(parts, data);
}

static size_t scene_await(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, AwaitChannels, await_channels, AWAIT_CHANNELS);
	uint64_t channel = scene->own.channel;

	message.n_channels = 1;
	message.channels = &channel;
	parts->request.deadline_ms = SCENE_MS;
	return PACK(parts, data);
}

static size_t scene_describe(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, DescribeChannel, describe_channel, DESCRIBE_CHANNEL);
	message.channel = scene->own.channel;
	return PACK(parts, data);
}

static size_t scene_map(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, MapImport, map_import, MAP_IMPORT);
	message.segment = scene->own.import;
	return PACK(parts, data);
}

static size_t scene_cores(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, TakeCores, take_cores, TAKE_CORES);

	message.context = scene->own.context;
	message.stream = scene->own.stream;
	message.count = 2;
	return PACK(parts, data);
}

static size_t scene_context(struct parts *parts, const struct scene *scene, unsigned char *data)
{
	START(parts, OpenContext, open_context, OPEN_CONTEXT);
	message.device = scene->rank_index;
	return PACK(parts, data);
}

static size_t scene_root(struct parts *parts, unsigned char *data)
{
	START(parts, GetRootInfo, get_root_info, GET_ROOT_INFO);
	return PACK(parts, data);
}

size_t scene_make(unsigned int part, const struct scene *scene, const struct numbers *numbers, uint64_t id, unsigned char *data)
{
	struct parts parts = { .request = HCCLD__CONTROL__REQUEST__INIT, .numbers = numbers };

	parts.request.id = id;
	switch (part) {
	case 0:
		return scene_hello(id, data);
	case 1:
		return scene_context(&parts, scene, data);
	case 2:
		return scene_root(&parts, data);
	case 3:
		return scene_join(&parts, scene, data);
	case 4:
		return scene_thread(&parts, scene, data);
	case 5:
		return scene_cores(&parts, scene, data);
	case 6:
		return scene_notifies(&parts, scene, data);
	case 7:
	case 8:
		return scene_memory(&parts, scene, part == 7, data);
	case 9:
		return scene_registration(&parts, scene, data);
	case SCENE_OFFER:
		return scene_offer(&parts, scene, data);
	case 11:
		return scene_await(&parts, scene, data);
	case 12:
		return scene_describe(&parts, scene, data);
	default:
		return scene_map(&parts, scene, data);
	}
}

void scene_learn(struct scene *scene, const Hccld__Control__Reply *reply)
{
	switch (reply->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT:
		scene->own.context = reply->open_context->context;
		break;
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		scene->own.rank = reply->join_comm->rank;
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_THREAD:
		scene->own.stream = reply->create_thread->stream;
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		scene->own.buffer = scene->own.segment;
		scene->own.segment = reply->allocate_segment->segment;
		break;
	case HCCLD__CONTROL__REPLY__BODY_REGISTER_MEMORY:
		scene->own.registration = reply->register_memory->registration;
		break;
	case HCCLD__CONTROL__REPLY__BODY_OFFER_CHANNELS:
		scene->own.channel = reply->offer_channels->n_channels ? reply->offer_channels->channels[0] : 0;
		break;
	case HCCLD__CONTROL__REPLY__BODY_DESCRIBE_CHANNEL:
		if (reply->describe_channel->n_memories)
			scene->own.import = reply->describe_channel->memories[0]->segment;
		break;
	default:
		break;
	}
}
