/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are right in form, made of the fuzzer's bytes. */
#include <string.h>
#include <unistd.h>

#include "proto/digest.h"
#include "proto/feature.h"
#include "proto/limits.h"
#include "proto/status.h"
#include "tests/fuzz/control_case.h"
#include "tests/fuzz/control_parts.h"

void numbers_add(struct numbers *numbers, uint64_t value)
{
	numbers->values[numbers->next++ % NUMBERS] = value;
}

static void numbers_add_export(struct numbers *numbers, ProtobufCBinaryData key)
{
	uint32_t i = numbers->next_export++ % EXPORT_KEYS;

	if (key.len > sizeof(numbers->exports[i].bytes))
		return;
	memcpy(numbers->exports[i].bytes, key.data, key.len);
	numbers->exports[i].size = key.len;
}

void numbers_learn(struct numbers *numbers, const Hccld__Control__Reply *reply)
{
	switch (reply->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_HELLO:
		numbers->sessions[numbers->next_session++ % 4] = reply->hello->session;
		break;
	case HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT:
		numbers_add(numbers, reply->open_context->context);
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		numbers_add(numbers, reply->allocate_segment->segment);
		break;
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		numbers_add(numbers, reply->join_comm->rank);
		numbers->rank = reply->join_comm->rank;
		break;
	case HCCLD__CONTROL__REPLY__BODY_LIST:
		numbers_add(numbers, reply->list->next);
		break;
	case HCCLD__CONTROL__REPLY__BODY_EXPORT_MEMORY:
		numbers_add_export(numbers, reply->export_memory->key);
		break;
	case HCCLD__CONTROL__REPLY__BODY_IMPORT_MEMORY:
		numbers_add(numbers, reply->import_memory->segment);
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_NOTIFIES:
		numbers_add(numbers, reply->create_notifies->segment);
		numbers_add(numbers, reply->create_notifies->first);
		break;
	case HCCLD__CONTROL__REPLY__BODY_REGISTER_MEMORY:
		numbers_add(numbers, reply->register_memory->registration);
		break;
	case HCCLD__CONTROL__REPLY__BODY_OFFER_CHANNELS:
		for (size_t i = 0; i < reply->offer_channels->n_channels && i < 4; i++)
			numbers_add(numbers, reply->offer_channels->channels[i]);
		break;
	case HCCLD__CONTROL__REPLY__BODY_DESCRIBE_CHANNEL:
		numbers_add(numbers, reply->describe_channel->notify_segment);
		numbers_add(numbers, reply->describe_channel->peer_notify_segment);
		if (reply->describe_channel->buffer)
			numbers_add(numbers, reply->describe_channel->buffer->segment);
		for (size_t i = 0; i < reply->describe_channel->n_memories && i < 2; i++)
			numbers_add(numbers, reply->describe_channel->memories[i]->segment);
		break;
	case HCCLD__CONTROL__REPLY__BODY_CREATE_THREAD:
		numbers_add(numbers, reply->create_thread->notify_segment);
		numbers_add(numbers, reply->create_thread->thread);
		break;
	case HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO:
		numbers->key = reply->get_root_info->key;
		memcpy(numbers->secret, reply->get_root_info->secret.data, sizeof(numbers->secret));
		break;
	default:
		break;
	}
}

uint64_t numbers_take(const struct numbers *numbers, struct input *input)
{
	uint8_t kind = input_byte(input);

	/* the latest is 0, and the likeliest ones are near it */
	if (kind < 160)
		return numbers->values[(numbers->next + 2 * NUMBERS - 1 - (kind < 96 ? kind / 2 % 8 : kind % NUMBERS)) % NUMBERS];
	if (kind < 224)
		return kind - 160u;
	return input_size(input);
}

static uint64_t some_session_id(struct parts *parts)
{
	uint8_t mode = input_byte(parts->input);

	return mode < 224 ? parts->numbers->sessions[mode % 4] : input_size(parts->input);
}

/* All connections are this process's. */
static uint32_t some_pid(struct parts *parts)
{
	uint8_t mode = input_byte(parts->input);

	return mode < 224 ? (uint32_t)getpid() : (uint32_t)input_size(parts->input);
}

/* Two there are. */
static uint32_t some_device(struct input *input)
{
	uint8_t mode = input_byte(input);

	return mode < 240 ? mode % 3 : (uint32_t)input_size(input);
}

static size_t pack_open_context(struct parts *parts, unsigned char *data)
{
	START(parts, OpenContext, open_context, OPEN_CONTEXT);
	message.device = some_device(parts->input);
	return PACK(parts, data);
}

static size_t pack_close_context(struct parts *parts, unsigned char *data)
{
	START(parts, CloseContext, close_context, CLOSE_CONTEXT);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_create_stream(struct parts *parts, unsigned char *data)
{
	START(parts, CreateStream, create_stream, CREATE_STREAM);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_destroy_stream(struct parts *parts, unsigned char *data)
{
	START(parts, DestroyStream, destroy_stream, DESTROY_STREAM);
	message.stream = (uint32_t)input_size(parts->input);
	return PACK(parts, data);
}

static size_t pack_allocate_segment(struct parts *parts, unsigned char *data)
{
	static const uint8_t kinds[] = { 0, 1, 2, 3, 70, 71 };
	START(parts, AllocateSegment, allocate_segment, ALLOCATE_SEGMENT);
	message.context = numbers_take(parts->numbers, parts->input);
	message.kind = (Hccld__Control__AllocateSegment__Kind)kinds[input_byte(parts->input) % sizeof(kinds)];
	message.bytes = input_size(parts->input);
	switch (input_byte(parts->input) % 4) {
	case 1:
		message.asked = input_size(parts->input);
		break;
	case 2:
		message.lazy_rank = numbers_take(parts->numbers, parts->input);
		break;
	case 3:
		message.lazy_rank = parts->numbers->rank;
		break;
	}
	return PACK(parts, data);
}

static size_t pack_free_segment(struct parts *parts, unsigned char *data)
{
	START(parts, FreeSegment, free_segment, FREE_SEGMENT);
	message.segment = numbers_take(parts->numbers, parts->input);
	message.after_imports = input_byte(parts->input) % 2;
	return PACK(parts, data);
}

static size_t pack_memory_info(struct parts *parts, unsigned char *data)
{
	START(parts, MemoryInfo, memory_info, MEMORY_INFO);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_get_root_info(struct parts *parts, unsigned char *data)
{
	START(parts, GetRootInfo, get_root_info, GET_ROOT_INFO);
	return PACK(parts, data);
}

char *some_text(struct input *input, char *buffer, size_t size)
{
	static const size_t lengths[] = { 0, 1, 16, HCCLD_COMM_NAME_MAX - 1, HCCLD_COMM_NAME_MAX, 200 };
	uint8_t kind = input_byte(input);
	size_t length = lengths[kind % 6];

	if (length >= size)
		length = size - 1;
	memset(buffer, kind & 0x80 ? 0xc3 : 'n', length);
	buffer[length] = 0;
	return buffer;
}

static size_t pack_join_comm(struct parts *parts, unsigned char *data)
{
	START(parts, JoinComm, join_comm, JOIN_COMM);
	struct input *input = parts->input;
	uint8_t mode = input_byte(input);
	char name[256], udi[256];

	message.key = mode & 0x80 ? input_word(input, 8) : parts->numbers->key;
	message.secret.data = (uint8_t *)parts->numbers->secret;
	message.secret.len = mode & 0x40 ? input_byte(input) % 33 : 32;
	message.rank = mode & 0x20 ? (uint32_t)input_size(input) : mode % 3;
	message.size = mode & 0x10 ? (uint32_t)input_size(input) : 1u + mode / 4 % 3;
	message.context = numbers_take(parts->numbers, input);
	message.name = some_text(input, name, sizeof(name));
	message.udi = some_text(input, udi, sizeof(udi));
	parts->request.deadline_ms = 1;
	return PACK(parts, data);
}

/* Ranks of the parent: those from some on, now and then one twice or one that there is not. */
static void some_members(struct parts *parts, Hccld__Control__JoinComm *join, uint32_t *members, uint32_t count)
{
	struct input *input = parts->input;
	uint8_t mode = input_byte(input);

	join->sub->parent = numbers_take(parts->numbers, input);
	join->sub->id = mode / 64;
	join->sub->n_members = mode & 0x20 ? mode % (count + 1) : join->size % (count + 1);
	join->sub->members = members;
	for (uint32_t i = 0; i < count; i++)
		members[i] = (i + mode) % 4;
	if (mode & 0x10)
		members[mode % count] = (uint32_t)input_size(input);
}

static void some_settings(struct input *input, Hccld__Control__CommSettings *settings)
{
	settings->op_expansion_mode = (uint32_t)input_size(input);
	settings->qos = settings->op_expansion_mode;
	settings->deterministic = settings->buffer_mb = (uint32_t)input_size(input);
	settings->retry_levels = settings->retry_count = (uint32_t)input_size(input);
	settings->retry_hold_ms = settings->retry_interval_ms = (uint32_t)input_size(input);
}

/* Ranks that meet by what they say, not by a root info. */
static size_t pack_join_meeting(struct parts *parts, unsigned char *data)
{
	START(parts, JoinComm, join_comm, JOIN_COMM);
	Hccld__Control__JoinTable table = HCCLD__CONTROL__JOIN_TABLE__INIT;
	Hccld__Control__JoinSub sub = HCCLD__CONTROL__JOIN_SUB__INIT;
	Hccld__Control__CommSettings settings = HCCLD__CONTROL__COMM_SETTINGS__INIT;
	struct input *input = parts->input;
	uint8_t mode = input_byte(input), digest[DIGEST_BYTES + 1];
	uint32_t members[8];

	message.rank = mode & 0x80 ? (uint32_t)input_size(input) : mode % 3;
	message.size = mode & 0x40 ? (uint32_t)input_size(input) : 1u + mode / 4 % 3;
	message.context = numbers_take(parts->numbers, input);
	if (mode & 0x10) {
		message.settings = &settings;
		some_settings(input, &settings);
	}
	if (mode & 0x20) {
		message.sub = &sub;
		some_members(parts, &message, members, 8);
	} else {
		uint8_t kind = input_byte(input);

		message.table = &table;
		table.digest.len = kind < 224 ? DIGEST_BYTES : kind % (DIGEST_BYTES + 2);
		table.digest.data = memset(digest, kind % 2, sizeof(digest));
	}
	parts->request.deadline_ms = 1;
	return PACK(parts, data);
}

static size_t pack_cancel_join(struct parts *parts, unsigned char *data)
{
	START(parts, CancelJoin, cancel_join, CANCEL_JOIN);
	uint8_t back = input_byte(parts->input);

	message.request = back < 240 ? parts->request.id - back % 16 : input_size(parts->input);
	return PACK(parts, data);
}

static size_t pack_suspend_comm(struct parts *parts, unsigned char *data)
{
	START(parts, SuspendComm, suspend_comm, SUSPEND_COMM);
	message.rank = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_resume_comm(struct parts *parts, unsigned char *data)
{
	START(parts, ResumeComm, resume_comm, RESUME_COMM);
	message.rank = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_leave_comm(struct parts *parts, unsigned char *data)
{
	START(parts, LeaveComm, leave_comm, LEAVE_COMM);
	message.rank = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_open_pairs(struct parts *parts, unsigned char *data)
{
	START(parts, OpenPairs, open_pairs, OPEN_PAIRS);
	uint32_t peers[16];
	uint8_t counts;

	message.rank = numbers_take(parts->numbers, parts->input);
	counts = input_byte(parts->input);
	for (size_t i = 0; i < 16; i++) {
		uint8_t peer = input_byte(parts->input);

		peers[i] = peer < 250 ? peer % 4 : (uint32_t)input_size(parts->input);
	}
	message.n_send_to = counts % 16;
	message.n_receive_from = counts / 16;
	message.send_to = message.receive_from = peers;
	message.map = (counts ^ counts >> 4) & 1;
	message.mapped_pairs = counts & 2 ? peers[15] : 0;
	return PACK(parts, data);
}

static size_t pack_map_peer(struct parts *parts, unsigned char *data)
{
	START(parts, MapPeer, map_peer, MAP_PEER);
	uint8_t peer = input_byte(parts->input);

	message.rank = peer & 0x40 ? parts->numbers->rank : numbers_take(parts->numbers, parts->input);
	message.peer = peer & 0x80 ? (uint32_t)input_size(parts->input) : peer % 4;
	message.segment = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_grow_comm(struct parts *parts, unsigned char *data)
{
	START(parts, GrowComm, grow_comm, GROW_COMM);
	uint8_t what = input_byte(parts->input);

	message.rank = what & 0x40 ? parts->numbers->rank : numbers_take(parts->numbers, parts->input);
	message.pool = what & 1;
	message.peer = what & 0x80 ? (uint32_t)input_size(parts->input) : what / 2 % 4;
	message.pools = what & 0x80 ? (uint32_t)input_size(parts->input) : what / 8 % 8;
	return PACK(parts, data);
}

static size_t pack_status(struct parts *parts, unsigned char *data)
{
	START(parts, Status, status, STATUS);
	return PACK(parts, data);
}

static size_t pack_list(struct parts *parts, unsigned char *data)
{
	static const uint8_t kinds[] = { 0, 1, 2, 3, 4, 50, 51, 90, 100, 110, 120, 121, 122, 140, 255, 110 };
	START(parts, List, list, LIST);
	uint8_t mode = input_byte(parts->input);

	message.kind = (Hccld__Control__List__Kind)kinds[mode % sizeof(kinds)];
	message.after = mode & 0x80 ? numbers_take(parts->numbers, parts->input) : 0;
	message.session = mode & 0x40 ? some_session_id(parts) : 0;
	message.pid = mode & 0x20 ? some_pid(parts) : 0;
	return PACK(parts, data);
}

/* ---- tasks ---- */

static size_t pack_abort_tasks(struct parts *parts, unsigned char *data)
{
	START_ON_STREAM(parts, AbortTasks, abort_tasks, ABORT_TASKS);
	message.cause = mode & 0x40 ? input_byte(parts->input) : mode & 4 ? CAUSE_TASK_ABORTED : CAUSE_STREAM_ABORTED;
	message.only_head = mode & 8;
	return PACK(parts, data);
}

/* ---- shared memory ---- */

static size_t pack_export_memory(struct parts *parts, unsigned char *data)
{
	START(parts, ExportMemory, export_memory, EXPORT_MEMORY);
	uint8_t mode = input_byte(parts->input);

	message.segment = numbers_take(parts->numbers, parts->input);
	message.offset = mode & 0x80 ? input_size(parts->input) : 0;
	message.bytes = mode & 0x40 ? input_size(parts->input) : 1u + mode % 8;
	message.key_bytes = mode & 0x20 ? (uint32_t)input_size(parts->input) : mode & 0x10 ? 8 : HCCLD_KEY_BYTES_MAX;
	message.any_process = mode & 8;
	return PACK(parts, data);
}

/* One that was given out, or a part of it, or nearly one. */
static ProtobufCBinaryData some_key(struct parts *parts, unsigned char *buffer)
{
	const struct numbers *numbers = parts->numbers;
	uint8_t mode = input_byte(parts->input);
	uint32_t which = (numbers->next_export + EXPORT_KEYS - 1 - mode % EXPORT_KEYS) % EXPORT_KEYS;
	ProtobufCBinaryData key = { .data = buffer, .len = numbers->exports[which].size };

	memset(buffer, 0, HCCLD_KEY_BYTES_MAX + 8);
	memcpy(buffer, numbers->exports[which].bytes, HCCLD_KEY_BYTES_MAX);
	if (mode >= 224)
		key.len = input_byte(parts->input) % (HCCLD_KEY_BYTES_MAX + 8);
	if (mode % 32 == 31)
		buffer[input_byte(parts->input) % HCCLD_KEY_BYTES_MAX] ^= input_byte(parts->input);
	return key;
}

static size_t pack_allow_import(struct parts *parts, unsigned char *data)
{
	START(parts, AllowImport, allow_import, ALLOW_IMPORT);
	unsigned char key[HCCLD_KEY_BYTES_MAX + 8];
	int32_t pids[HCCLD_EXPORT_PIDS_MAX + 2];
	uint8_t count = input_byte(parts->input);

	message.key = some_key(parts, key);
	message.n_pids = count < 240 ? count % 4 : HCCLD_EXPORT_PIDS_MAX - 2 + count % 5;
	message.pids = pids;
	for (size_t i = 0; i < message.n_pids; i++)
		pids[i] = (int32_t)(i ? 1000 + i : some_pid(parts));
	return PACK(parts, data);
}

static size_t pack_import_memory(struct parts *parts, unsigned char *data)
{
	START(parts, ImportMemory, import_memory, IMPORT_MEMORY);
	unsigned char key[HCCLD_KEY_BYTES_MAX + 8];

	message.key = some_key(parts, key);
	message.context = numbers_take(parts->numbers, parts->input);
	return PACK(parts, data);
}

static size_t pack_end_export(struct parts *parts, unsigned char *data)
{
	START(parts, EndExport, end_export, END_EXPORT);
	unsigned char key[HCCLD_KEY_BYTES_MAX + 8];

	message.key = some_key(parts, key);
	message.lose = input_byte(parts->input) % 2;
	return PACK(parts, data);
}

static size_t pack_list_lost(struct parts *parts, unsigned char *data)
{
	START(parts, ListLost, list_lost, LIST_LOST);
	message.after = input_byte(parts->input) % 2 ? numbers_take(parts->numbers, parts->input) : 0;
	return PACK(parts, data);
}

static size_t pack_describe_device(struct parts *parts, unsigned char *data)
{
	START(parts, DescribeDevice, describe_device, DESCRIBE_DEVICE);
	message.device = some_device(parts->input);
	return PACK(parts, data);
}

/* ---- settings and administration ---- */

static size_t pack_get_config(struct parts *parts, unsigned char *data)
{
	START(parts, GetConfig, get_config, GET_CONFIG);
	return PACK(parts, data);
}

static size_t pack_set_log_level(struct parts *parts, unsigned char *data)
{
	static const char *const levels[] = { "error", "warning", "notice", "info", "debug", "", "errors" };
	START(parts, SetLogLevel, set_log_level, SET_LOG_LEVEL);
	uint8_t mode = input_byte(parts->input);
	char text[256];

	message.level = mode % 8 < 7 ? (char *)levels[mode % 8] : some_text(parts->input, text, sizeof(text));
	return PACK(parts, data);
}

static size_t pack_kill_session(struct parts *parts, unsigned char *data)
{
	START(parts, KillSession, kill_session, KILL_SESSION);
	uint8_t mode = input_byte(parts->input);

	message.session = mode & 1 ? some_session_id(parts) : 0;
	message.pid = mode & 2 ? some_pid(parts) : 0;
	return PACK(parts, data);
}

static size_t pack_drain(struct parts *parts, unsigned char *data)
{
	START(parts, Drain, drain, DRAIN);
	message.action = (Hccld__Control__Drain__Action)(input_byte(parts->input) % 4);
	return PACK(parts, data);
}

static size_t pack_ping(struct parts *parts, unsigned char *data)
{
	START(parts, Ping, ping, PING);
	return PACK(parts, data);
}

static size_t pack_monitor(struct parts *parts, unsigned char *data)
{
	START(parts, Monitor, monitor, MONITOR);
	return PACK(parts, data);
}

size_t message_hello(struct input *input, uint64_t id, unsigned char *data)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	uint8_t mode = input_byte(input);
	char text[256];

	hello.magic = mode & 0x80 ? (uint32_t)input_word(input, 4) : HCCLD_MAGIC;
	hello.version_low = mode & 0x40 ? (uint32_t)input_size(input) : HCCLD_VERSION_LOW;
	hello.version_high = mode & 0x40 ? (uint32_t)input_size(input) : HCCLD_VERSION_HIGH;
	hello.features = mode & 0x20 ? input_word(input, 8) : mode & 0x10 ? 0 : HCCLD_FEATURES;
	hello.role = mode % 4 == 3 ? HCCLD__CONTROL__HELLO__ROLE__TOOL : HCCLD__CONTROL__HELLO__ROLE__CLIENT;
	hello.library = hello.process = some_text(input, text, sizeof(text));
	request.id = id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	return hccld__control__request__pack(&request, data);
}

size_t message_make(struct input *input, const struct numbers *numbers, uint64_t id, unsigned char *data)
{
	static size_t (*const makers[])(struct parts *parts, unsigned char *data) = {
		pack_open_context,  pack_create_stream,	  pack_allocate_segment, pack_get_root_info, pack_join_comm,
		pack_open_pairs,    pack_leave_comm,	  pack_free_segment,	 pack_destroy_stream, pack_close_context,
		pack_memory_info,   pack_status,	  pack_list,		 pack_join_meeting,  pack_cancel_join,
		pack_suspend_comm,  pack_resume_comm,	  pack_abort_tasks,	 pack_export_memory, pack_allow_import,
		pack_import_memory, pack_end_export,	  pack_list_lost,	 pack_describe_device, pack_get_config,
		pack_set_log_level, pack_kill_session,	  pack_drain,		 pack_ping,	     pack_monitor,
		pack_create_notifies, pack_free_notifies, pack_reset_notifies,
		pack_take_cores,    pack_give_cores,	  pack_register_memory,	 pack_unregister_memory, pack_offer_channels,
		pack_await_channels, pack_describe_channel, pack_close_channels, pack_map_import,
		pack_map_peer,	    pack_keep_cores,	  pack_create_thread,	 pack_destroy_thread,
		pack_grow_comm,
		/* what the rest needs, once more */
		pack_open_context,
	};
	struct parts parts = { .request = HCCLD__CONTROL__REQUEST__INIT, .numbers = numbers, .input = input };
	uint8_t which = input_byte(input);

	/* now and then an id that was used before */
	parts.request.id = which & 0x80 ? id - 1 : id;
	return makers[(which & 0x7f) % (sizeof(makers) / sizeof(makers[0]))](&parts, data);
}
