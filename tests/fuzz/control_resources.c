/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about what own operators use: registered memory, channels, notifies, threads, vector cores. */
#include "tests/fuzz/control_parts.h"

/* ---- registered memory, channels ---- */

size_t pack_register_memory(struct parts *parts, unsigned char *data)
{
	START(parts, RegisterMemory, register_memory, REGISTER_MEMORY);
	uint8_t mode = input_byte(parts->input);
	char tag[256];

	message.rank = numbers_take(parts->numbers, parts->input);
	message.segment = numbers_take(parts->numbers, parts->input);
	message.offset = mode & 0x80 ? input_size(parts->input) : mode % 4 * 64;
	message.bytes = mode & 0x40 ? input_size(parts->input) : 64;
	message.tag = mode & 0x20 ? some_text(parts->input, tag, sizeof(tag)) : (char *)"tag";
	return PACK(parts, data);
}

size_t pack_unregister_memory(struct parts *parts, unsigned char *data)
{
	START(parts, UnregisterMemory, unregister_memory, UNREGISTER_MEMORY);
	message.registration = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

size_t pack_offer_channels(struct parts *parts, unsigned char *data)
{
	START(parts, OfferChannels, offer_channels, OFFER_CHANNELS);
	Hccld__Control__ChannelOffer offers[4], *pointers[4];
	uint64_t registrations[4];
	uint8_t mode = input_byte(parts->input);

	message.rank = numbers_take(parts->numbers, parts->input);
	message.engine = mode & 0x80 ? (uint32_t)input_size(parts->input) : mode % 2;
	message.buffer = mode & 0x40 ? numbers_take(parts->numbers, parts->input) : 0;
	message.n_offers = mode / 4 % 5;
	message.offers = pointers;
	for (size_t i = 0; i < message.n_offers; i++) {
		uint8_t kind = input_byte(parts->input);

		hccld__control__channel_offer__init(&offers[i]);
		pointers[i] = &offers[i];
		offers[i].peer = kind & 0x80 ? (uint32_t)input_size(parts->input) : kind % 3;
		offers[i].protocol = kind & 0x40 ? (uint32_t)input_size(parts->input) : kind / 4 % 2;
		offers[i].notify_count = kind & 0x20 ? input_byte(parts->input) : 0;
		offers[i].registrations = registrations;
		offers[i].n_registrations = kind & 0x10 ? kind % 5 : 0;
	}
	for (size_t i = 0; i < 4; i++)
		registrations[i] = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t some_channels(struct parts *parts, uint64_t channels[8])
{
	size_t count = input_byte(parts->input) % 9;

	for (size_t i = 0; i < count; i++)
		channels[i] = numbers_take(parts->numbers, parts->input);
	return count;
}

size_t pack_await_channels(struct parts *parts, unsigned char *data)
{
	START(parts, AwaitChannels, await_channels, AWAIT_CHANNELS);
	uint64_t channels[8];

	message.channels = channels;
	message.n_channels = some_channels(parts, channels);
	parts->request.deadline_ms = 1;
	return PACK(parts, data);
}

size_t pack_describe_channel(struct parts *parts, unsigned char *data)
{
	START(parts, DescribeChannel, describe_channel, DESCRIBE_CHANNEL);
	uint8_t mode = input_byte(parts->input);

	message.channel = numbers_take(parts->numbers, parts->input);
	message.first_memory = mode & 0x80 ? (uint32_t)input_size(parts->input) : 0;
	return PACK(parts, data);
}

size_t pack_close_channels(struct parts *parts, unsigned char *data)
{
	START(parts, CloseChannels, close_channels, CLOSE_CHANNELS);
	uint64_t channels[8];

	message.channels = channels;
	message.n_channels = some_channels(parts, channels);
	message.unless_complete = input_byte(parts->input) % 2;
	return PACK(parts, data);
}

size_t pack_map_import(struct parts *parts, unsigned char *data)
{
	START(parts, MapImport, map_import, MAP_IMPORT);
	message.segment = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

/* ---- notifies ---- */

size_t pack_create_notifies(struct parts *parts, unsigned char *data)
{
	START(parts, CreateNotifies, create_notifies, CREATE_NOTIFIES);
	uint8_t mode = input_byte(parts->input);

	message.context = numbers_take(parts->numbers, parts->input);
	message.count = mode & 0x80 ? (uint32_t)input_size(parts->input) : mode % 8;
	message.purpose = (Hccld__Control__CreateNotifies__Purpose)(mode & 0x40 ? input_byte(parts->input) : mode >> 4 & 1);
	return PACK(parts, data);
}

size_t pack_free_notifies(struct parts *parts, unsigned char *data)
{
	START(parts, FreeNotifies, free_notifies, FREE_NOTIFIES);
	uint8_t mode = input_byte(parts->input);

	message.context = numbers_take(parts->numbers, parts->input);
	message.first = mode & 0x80 ? (uint32_t)input_size(parts->input) : mode % 16;
	return PACK(parts, data);
}

size_t pack_reset_notifies(struct parts *parts, unsigned char *data)
{
	START(parts, ResetNotifies, reset_notifies, RESET_NOTIFIES);
	uint8_t mode = input_byte(parts->input);
	uint32_t ids[8];

	message.context = numbers_take(parts->numbers, parts->input);
	message.ids = ids;
	message.n_ids = mode % 8;
	for (size_t i = 0; i < message.n_ids; i++)
		ids[i] = mode & 0x80 ? (uint32_t)input_size(parts->input) : mode / 8 % 16 + (uint32_t)i;
	return PACK(parts, data);
}

/* ---- threads ---- */

size_t pack_create_thread(struct parts *parts, unsigned char *data)
{
	START(parts, CreateThread, create_thread, CREATE_THREAD);
	uint8_t mode = input_byte(parts->input);

	message.context = numbers_take(parts->numbers, parts->input);
	message.rank = mode & 1 ? numbers_take(parts->numbers, parts->input) : 0;
	message.engine = mode == 0xff ? (uint32_t)input_size(parts->input) : mode >> 1 & 7;
	message.notify_count = mode & 0x10 ? (uint32_t)input_size(parts->input) : mode >> 5;
	message.stream = mode & 0x20 ? input_byte(parts->input) % 5 : mode & 0x40 ? (uint32_t)input_size(parts->input) : 0;
	return PACK(parts, data);
}

size_t pack_destroy_thread(struct parts *parts, unsigned char *data)
{
	START(parts, DestroyThread, destroy_thread, DESTROY_THREAD);
	message.thread = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

/* ---- vector cores ---- */

size_t pack_take_cores(struct parts *parts, unsigned char *data)
{
	START_ON_STREAM(parts, TakeCores, take_cores, TAKE_CORES);
	message.count = mode & 0x40 ? (uint32_t)input_size(parts->input) : mode / 4;
	return PACK(parts, data);
}

size_t pack_give_cores(struct parts *parts, unsigned char *data)
{
	START_ON_STREAM(parts, GiveCores, give_cores, GIVE_CORES);
	message.holder = mode & 0x20 ? mode / 4 % 8 : 0;
	return PACK(parts, data);
}

size_t pack_keep_cores(struct parts *parts, unsigned char *data)
{
	START_ON_STREAM(parts, KeepCores, keep_cores, KEEP_CORES);
	message.count = mode & 0x40 ? (uint32_t)input_size(parts->input) : mode / 16;
	message.holder = mode / 4 % 8;
	return PACK(parts, data);
}
