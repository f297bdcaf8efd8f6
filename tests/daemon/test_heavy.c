/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process can have much of must not cost its square on the control thread: another client, who asks small things meanwhile, is
 * answered soon.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/feature.h"
#include "proto/notify.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define THREADS 4000u
#define RINGS 1000u
#define IMPORTERS 3u
#define IMPORTS 30000u
#define ANSWER_NS 1000000000u
#define NOTIFIES 8000u
#define LISTED_NS 150000000u

#define BEGIN(type, TYPE, field, name)                                                    \
	type name;                                                                        \
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;                  \
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_##TYPE;                         \
	request.field = &name

static struct private_daemon private_daemon;

static void start(void)
{
	static const char *const options[] = { "--devices", "2", "--log-level", "error", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

static void join_in(struct raw_client *client)
{
	raw_client_start_with(client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
}

/* One with a notify on @stream. */
static void create_thread(struct raw_client *client, uint64_t context, uint32_t stream, uint64_t *ret_segment, uint32_t *ret_notify)
{
	BEGIN(Hccld__Control__CreateThread, CREATE_THREAD, create_thread, message);
	struct raw_reply reply;

	hccld__control__create_thread__init(&message);
	message.context = context;
	message.notify_count = 1;
	message.stream = stream + 1;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	*ret_segment = reply.message->create_thread->notify_segment;
	*ret_notify = reply.message->create_thread->first_notify;
	raw_reply_free(&reply);
}

/* Full of host functions that never run. */
static void fill_ring(struct raw_client *client, uint32_t stream)
{
	struct stream_ring *ring = session_stream(client->region, stream);

	for (uint32_t i = 0; i < HCCLD_STREAM_SLOTS - 1; i++)
		ring->slots[i].task = (struct task){ .kind = TASK_HOST, .slot_count = 1, .first_lane = LANE_END };
	atomic_store_explicit(&ring->tail, HCCLD_STREAM_SLOTS - 1, memory_order_release);
}

/* The longest that @other waits for an answer until @client has its reply. */
static uint64_t longest_wait(struct raw_client *client, struct raw_client *other, uint64_t context)
{
	uint64_t longest = 0;
	struct raw_reply reply;

	for (;;) {
		uint64_t since = clock_now_ns(), took;
		char byte;

		raw_free_memory(other, context, NULL);
		took = clock_now_ns() - since;
		longest = took > longest ? took : longest;
		if (recv(client->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) > 0)
			break;
		usleep(1000);
	}
	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	return longest;
}

static uint64_t destroy_stream_beside(struct raw_client *client, uint32_t stream, struct raw_client *other)
{
	BEGIN(Hccld__Control__DestroyStream, DESTROY_STREAM, destroy_stream, message);
	uint64_t context = raw_open_context(other, 0);

	hccld__control__destroy_stream__init(&message);
	message.stream = stream;
	raw_send(client, &request);
	return longest_wait(client, other, context);
}

/* Each of them has a notify, and whether queued tasks name that is found out by looking at all that is queued. */
TEST(many_threads_end_beside_full_rings)
{
	struct raw_client client, other;
	uint64_t context, second, segment;
	uint32_t stream, notify;

	start();
	join_in(&client);
	join_in(&other);
	context = raw_open_context(&client, 0);
	second = raw_open_context(&client, 1);
	stream = raw_create_stream(&client, context);
	for (uint32_t i = 0; i < THREADS; i++)
		create_thread(&client, context, stream, &segment, &notify);
	for (uint32_t i = 0; i < RINGS; i++)
		fill_ring(&client, raw_create_stream(&client, second));
	check_lt_uint(destroy_stream_beside(&client, stream, &other), (uint64_t)ANSWER_NS * test_timeout_scale());
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

static void export_notify(struct raw_client *client, uint64_t segment, uint32_t notify, unsigned char *ret_key)
{
	BEGIN(Hccld__Control__ExportMemory, EXPORT_MEMORY, export_memory, message);
	struct raw_reply reply;

	hccld__control__export_memory__init(&message);
	message.segment = segment;
	message.offset = notify * sizeof(struct notify_slot);
	message.bytes = sizeof(struct notify_slot);
	message.key_bytes = HCCLD_KEY_BYTES_MAX;
	message.any_process = true;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	memcpy(ret_key, reply.message->export_memory->key.data, HCCLD_KEY_BYTES_MAX);
	raw_reply_free(&reply);
}

static void import_often(struct raw_client *client, unsigned char *key)
{
	BEGIN(Hccld__Control__ImportMemory, IMPORT_MEMORY, import_memory, message);

	join_in(client);
	hccld__control__import_memory__init(&message);
	message.context = raw_open_context(client, 0);
	message.key.data = key;
	message.key.len = HCCLD_KEY_BYTES_MAX;
	for (uint32_t i = 0; i < IMPORTS; i++) {
		struct raw_reply reply;

		raw_call(client, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
}

static uint64_t lost_first(struct raw_client *client)
{
	BEGIN(Hccld__Control__ListLost, LIST_LOST, list_lost, message);
	struct raw_reply reply;
	size_t count;

	hccld__control__list_lost__init(&message);
	raw_call(client, &request, &reply);
	count = reply.message->list_lost->n_segments;
	raw_reply_free(&reply);
	return count;
}

/* All of them are lost, with the one notify that they are of. */
TEST(many_notifies_go_beside_many_imports)
{
	struct raw_client client, other, importers[IMPORTERS];
	unsigned char key[HCCLD_KEY_BYTES_MAX];
	uint64_t context, segment;
	uint32_t stream, notify;

	start();
	join_in(&client);
	join_in(&other);
	context = raw_open_context(&client, 0);
	stream = raw_create_stream(&client, context);
	for (uint32_t i = 0; i < THREADS; i++)
		create_thread(&client, context, stream, &segment, &notify);
	export_notify(&client, segment, notify, key);
	for (uint32_t i = 0; i < IMPORTERS; i++)
		import_often(&importers[i], key);
	check_eq_uint(lost_first(&importers[0]), 0);
	check_lt_uint(destroy_stream_beside(&client, stream, &other), (uint64_t)ANSWER_NS * test_timeout_scale());
	for (uint32_t i = 0; i < IMPORTERS; i++) {
		check_lt_uint(0, lost_first(&importers[i]));
		raw_client_stop(&importers[i]);
	}
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

static void submit_waits(struct raw_client *client, uint32_t stream, uint64_t segment, uint32_t first, uint32_t count)
{
	struct stream_ring *ring = session_stream(client->region, stream);
	struct yard_context *words = &client->yard->contexts[ring->context];
	uint64_t one = 1;

	for (uint32_t i = 0; i < count; i++) {
		ring->slots[2 * i].task = (struct task){ .kind = TASK_NOTIFY_WAIT, .slot_count = 2, .item_count = 1, .timeout_ms = 1, .first_lane = LANE_END };
		ring->slots[2 * i + 1].item = (struct item){ .kind = ITEM_PLACE, .data_type = NOTIFY_EQUAL, .segment = segment };
		ring->slots[2 * i + 1].item.offset = (first + i) * sizeof(struct notify_slot);
		ring->slots[2 * i + 1].item.number = 1;
	}
	atomic_store(&ring->tail, 2 * count);
	atomic_store(&words->state, yard_next(atomic_load(&words->state), CONTEXT_LEFT));
	atomic_fetch_or(&client->yard->bits[ring->context / 64], 1ull << (ring->context % 64));
	check_eq_int(write(client->event_fd, &one, sizeof(one)), sizeof(one));
}

static uint64_t list_notifies(void)
{
	BEGIN(Hccld__Control__List, LIST, list, message);
	struct raw_client tool;
	struct raw_reply reply;
	uint64_t since, took;

	hccld__control__list__init(&message);
	message.kind = HCCLD__CONTROL__LIST__KIND__NOTIFIES;
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	since = clock_now_ns();
	raw_call(&tool, &request, &reply);
	took = clock_now_ns() - since;
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return took;
}

static void wait_for_all(struct raw_client *client, uint32_t device)
{
	BEGIN(Hccld__Control__CreateNotifies, CREATE_NOTIFIES, create_notifies, message);
	uint32_t streams[RINGS], each = NOTIFIES / RINGS;
	struct raw_reply reply;
	uint64_t segment;

	join_in(client);
	hccld__control__create_notifies__init(&message);
	message.context = raw_open_context(client, device);
	message.count = NOTIFIES;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	segment = reply.message->create_notifies->segment;
	raw_reply_free(&reply);
	for (uint32_t i = 0; i < RINGS; i++) {
		streams[i] = raw_create_stream(client, message.context);
		submit_waits(client, streams[i], segment, i * each, each);
	}
	for (uint32_t i = 0; i < RINGS; i++) {
		struct stream_ring *ring = session_stream(client->region, streams[i]);

		for (uint32_t tries = 0; atomic_load(&ring->completed) != 2 * each; tries++) {
			check_lt_uint(tries, 10000);
			usleep(10000);
		}
	}
}

/* Each notify was waited for by a context with many streams: who still waits is looked for at the heads of all. */
TEST(many_notifies_that_somebody_may_wait_for_are_listed)
{
	struct raw_client clients[2];

	start();
	for (uint32_t i = 0; i < 2; i++)
		wait_for_all(&clients[i], i);
	check_lt_uint(list_notifies(), LISTED_NS * (uint64_t)test_timeout_scale());
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&clients[i]);
	stop();
}

static uint32_t create_all(struct raw_client *client, uint64_t context)
{
	BEGIN(Hccld__Control__CreateNotifies, CREATE_NOTIFIES, create_notifies, message);
	struct raw_reply reply;
	uint32_t first;

	hccld__control__create_notifies__init(&message);
	message.context = context;
	message.count = NOTIFIES;
	raw_call(client, &request, &reply);
	check_msg(!reply.message->cause, "%s", reply.message->text);
	first = reply.message->create_notifies->first;
	raw_reply_free(&reply);
	return first;
}

/* What is given back is free for whoever asks next, though it takes long to find out. */
TEST(many_notifies_come_again_beside_full_rings)
{
	BEGIN(Hccld__Control__FreeNotifies, FREE_NOTIFIES, free_notifies, message);
	struct raw_client client;
	struct raw_reply reply;

	start();
	join_in(&client);
	hccld__control__free_notifies__init(&message);
	message.context = raw_open_context(&client, 0);
	for (uint32_t i = 0; i < RINGS; i++)
		fill_ring(&client, raw_create_stream(&client, message.context));
	for (uint32_t i = 0; i < 4; i++) {
		message.first = create_all(&client, message.context);
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
	raw_client_stop(&client);
	stop();
}
