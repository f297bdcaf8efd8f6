/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies as the daemon hands them out: numbers, budgets, what is lost with them, and what a restart keeps. Spoken to without the client
 * library, so that no task runs but those that are written here.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/notify.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define BUDGET 16u
#define PLACE sizeof(struct notify_slot)

#define BEGIN(type, TYPE, field, name)                                                    \
	type name;                                                                        \
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;                  \
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_##TYPE;                         \
	request.field = &name

static struct private_daemon private_daemon;
static char refusal[HCCLD_TEXT_MAX]; /* of the last request */

static void start(const char *more)
{
	const char *const options[] = { "--devices", "2", "--notifies-per-device", "16", "--log-level", "error", more, NULL };

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

static uint32_t call(struct raw_client *client, Hccld__Control__Request *request, struct raw_reply *ret_reply)
{
	raw_call(client, request, ret_reply);
	snprintf(refusal, sizeof(refusal), "%s", ret_reply->message->text);
	return ret_reply->message->cause;
}

static uint32_t create_of(struct raw_client *client, uint64_t context, uint32_t count, uint32_t purpose, uint32_t *ret_first,
			  uint64_t *ret_segment)
{
	BEGIN(Hccld__Control__CreateNotifies, CREATE_NOTIFIES, create_notifies, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__create_notifies__init(&message);
	message.context = context;
	message.count = count;
	message.purpose = (Hccld__Control__CreateNotifies__Purpose)purpose;
	cause = call(client, &request, &reply);
	if (!cause) {
		check_eq_uint(reply.packet.fd_count, 0);
		*ret_first = reply.message->create_notifies->first;
		if (ret_segment)
			*ret_segment = reply.message->create_notifies->segment;
	}
	raw_reply_free(&reply);
	return cause;
}

static uint32_t create(struct raw_client *client, uint64_t context, uint32_t count)
{
	uint32_t first = 0;

	check_eq_uint(create_of(client, context, count, 0, &first, NULL), 0);
	return first;
}

static uint32_t free_notifies(struct raw_client *client, uint64_t context, uint32_t first)
{
	BEGIN(Hccld__Control__FreeNotifies, FREE_NOTIFIES, free_notifies, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__free_notifies__init(&message);
	message.context = context;
	message.first = first;
	cause = call(client, &request, &reply);
	raw_reply_free(&reply);
	return cause;
}

static uint32_t reset(struct raw_client *client, uint64_t context, uint32_t *ids, size_t count)
{
	BEGIN(Hccld__Control__ResetNotifies, RESET_NOTIFIES, reset_notifies, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__reset_notifies__init(&message);
	message.context = context;
	message.ids = ids;
	message.n_ids = count;
	cause = call(client, &request, &reply);
	raw_reply_free(&reply);
	return cause;
}

/* Ranges of the daemon; the first one's row. */
static size_t list(Hccld__Control__Notifies *ret_first)
{
	BEGIN(Hccld__Control__List, LIST, list, message);
	struct raw_client tool;
	struct raw_reply reply;
	size_t count;

	hccld__control__list__init(&message);
	message.kind = HCCLD__CONTROL__LIST__KIND__NOTIFIES;
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	check_eq_uint(call(&tool, &request, &reply), 0);
	count = reply.message->list->n_notifies;
	if (count && ret_first) {
		*ret_first = *reply.message->list->notifies[0];
		ret_first->process = NULL;
		ret_first->purpose = strcmp(ret_first->purpose, "acl") == 0	     ? (char *)"acl"
				     : strcmp(ret_first->purpose, "counting") == 0 ? (char *)"counting"
										     : NULL;
	}
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return count;
}

static void await_ranges(size_t count)
{
	for (unsigned int tries = 0; list(NULL) != count; tries++) {
		check_lt_uint(tries, 1000 * test_timeout_scale());
		usleep(2000);
	}
}

TEST(numbers_are_the_lowest_in_a_row_and_unique_on_their_device)
{
	struct raw_client one, two;
	uint64_t context, other, second, segment = 0, other_segment = 0;
	uint32_t first;

	start(NULL);
	join_in(&one);
	join_in(&two);
	context = raw_open_context(&one, 0);
	second = raw_open_context(&one, 1);
	other = raw_open_context(&two, 0);
	check_eq_uint(create_of(&one, context, 1, 0, &first, &segment), 0);
	check_eq_uint(first, 0);
	check_eq_uint(create_of(&two, other, 3, 1, &first, &other_segment), 0);
	check_eq_uint(first, 1);
	check_ne_uint(segment, 0);
	check_ne_uint(other_segment, 0);
	check_eq_uint(create(&one, second, 2), 0);
	check_eq_uint(create(&one, context, 2), 4);
	check_eq_uint(free_notifies(&two, other, 1), 0);
	/* three are free, then ten */
	check_eq_uint(create(&one, context, 4), 6);
	check_eq_uint(create(&one, context, 2), 1);
	check_eq_uint(create(&two, other, 1), 3);
	check_eq_uint(list(NULL), 6);
	raw_client_stop(&one);
	raw_client_stop(&two);
	await_ranges(0);
	stop();
}

TEST(wrong_requests_are_refused)
{
	struct raw_client client, other;
	uint64_t context, foreign, segment = 0;
	uint32_t first, counting, ids[2];

	start(NULL);
	join_in(&client);
	join_in(&other);
	context = raw_open_context(&client, 0);
	foreign = raw_open_context(&other, 0);
	check_eq_uint(create_of(&client, context, 0, 0, &first, NULL), CAUSE_ARGUMENT);
	check_eq_uint(create_of(&client, context, 1, 7, &first, NULL), CAUSE_ARGUMENT);
	check_eq_uint(create_of(&client, context + 1, 1, 0, &first, NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(create_of(&client, context, 2, 0, &first, &segment), 0);
	check_eq_uint(create_of(&client, context, 1, 1, &counting, NULL), 0);
	check_eq_uint(create(&other, foreign, 1), 3);
	check_eq_uint(free_notifies(&client, context, first + 1), CAUSE_BAD_HANDLE);
	check_eq_uint(free_notifies(&client, context, 3), CAUSE_BAD_HANDLE);
	check_eq_uint(free_notifies(&client, context, UINT32_MAX), CAUSE_BAD_HANDLE);
	check_eq_uint(free_notifies(&other, foreign, first), CAUSE_BAD_HANDLE);
	check_eq_uint(free_notifies(&other, foreign + 5, first), CAUSE_BAD_HANDLE);
	ids[0] = first;
	ids[1] = counting;
	check_eq_uint(reset(&client, context, ids, 2), CAUSE_BAD_HANDLE);
	ids[1] = 3;
	check_eq_uint(reset(&client, context, ids, 2), CAUSE_BAD_HANDLE);
	check_str_contains(refusal, "no notify 3");
	ids[1] = first + 1;
	check_eq_uint(reset(&client, context, ids, 2), 0);
	check_eq_uint(reset(&client, context + 1, ids, 2), CAUSE_BAD_HANDLE);
	/* the memory of notifies is the daemon's */
	{
		BEGIN(Hccld__Control__FreeSegment, FREE_SEGMENT, free_segment, message);
		struct raw_reply reply;

		hccld__control__free_segment__init(&message);
		message.segment = segment;
		check_eq_uint(call(&client, &request, &reply), CAUSE_ARGUMENT);
		raw_reply_free(&reply);
	}
	{
		BEGIN(Hccld__Control__AllocateSegment, ALLOCATE_SEGMENT, allocate_segment, message);
		struct raw_reply reply;

		hccld__control__allocate_segment__init(&message);
		message.context = context;
		message.kind = HCCLD__CONTROL__ALLOCATE_SEGMENT__KIND__NOTIFY;
		message.bytes = 4096;
		check_eq_uint(call(&client, &request, &reply), CAUSE_ARGUMENT);
		raw_reply_free(&reply);
	}
	raw_client_stop(&other);
	raw_client_stop(&client);
	stop();
}

TEST(a_used_up_device_names_its_holders)
{
	struct raw_client one, two;
	uint64_t context, other;
	uint32_t first;
	char holder[32];

	start(NULL);
	join_in(&one);
	join_in(&two);
	context = raw_open_context(&one, 0);
	other = raw_open_context(&two, 0);
	check_eq_uint(create(&one, context, 10), 0);
	check_eq_uint(create(&two, other, 4), 10);
	check_eq_uint(create_of(&two, other, 3, 0, &first, NULL), CAUSE_NOTIFIES);
	check_str_contains(refusal, "device 0: 14 of 16 notifies used, 3 in a row asked; ");
	snprintf(holder, sizeof(holder), "most are held by pid %d", getpid());
	check_str_contains(refusal, holder);
	check_str_contains(refusal, "(10), pid");
	check_str_contains(refusal, "(4)");
	check_str_contains(refusal, "raise [devices] notifies_per_device");
	/* more than there will ever be */
	check_eq_uint(create_of(&two, other, BUDGET + 1, 0, &first, NULL), CAUSE_NOTIFIES);
	check_eq_uint(create_of(&two, other, UINT32_MAX, 0, &first, NULL), CAUSE_NOTIFIES);
	check_str_contains(refusal, "which can never fit");
	check_eq_uint(create(&two, other, 2), 14);
	check_eq_uint(create_of(&two, other, 1, 0, &first, NULL), CAUSE_NOTIFIES);
	check_eq_uint(create(&two, raw_open_context(&two, 1), BUDGET), 0);
	/* whoever ends gives all back, before the next one is refused */
	raw_client_stop(&one);
	check_eq_uint(create(&two, other, 10), 0);
	raw_close_context(&two, other);
	other = raw_open_context(&two, 0);
	check_eq_uint(create(&two, other, BUDGET), 0);
	raw_client_stop(&two);
	stop();
}

TEST(a_tenant_has_a_limit_of_its_own)
{
	static const char *const options[] = { "--devices", "2", "--notifies-per-tenant", "5", "--log-level", "error", NULL };
	struct raw_client client;
	uint64_t context;
	uint32_t first;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	join_in(&client);
	context = raw_open_context(&client, 0);
	check_eq_uint(create(&client, context, 3), 0);
	check_eq_uint(create_of(&client, raw_open_context(&client, 1), 3, 0, &first, NULL), CAUSE_NOTIFIES);
	check_str_contains(refusal, "notifies of uid ");
	check_str_contains(refusal, "3 of 5 used, 3 asked");
	check_str_contains(refusal, "raise [limits] notifies_per_tenant");
	check_eq_uint(free_notifies(&client, context, 0), 0);
	check_eq_uint(create(&client, context, 5), 0);
	raw_client_stop(&client);
	stop();
}

/* ---- what others have of them ---- */

struct key {
	unsigned char bytes[HCCLD_KEY_BYTES_MAX];
};

static uint32_t export_place(struct raw_client *client, uint64_t segment, uint64_t offset, uint64_t bytes, struct key *ret_key)
{
	BEGIN(Hccld__Control__ExportMemory, EXPORT_MEMORY, export_memory, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__export_memory__init(&message);
	message.segment = segment;
	message.offset = offset;
	message.bytes = bytes;
	message.key_bytes = HCCLD_KEY_BYTES_MAX;
	message.any_process = true;
	cause = call(client, &request, &reply);
	if (!cause)
		memcpy(ret_key->bytes, reply.message->export_memory->key.data, sizeof(ret_key->bytes));
	raw_reply_free(&reply);
	return cause;
}

static uint32_t import_place(struct raw_client *client, uint64_t context, struct key *key, uint64_t *ret_segment)
{
	BEGIN(Hccld__Control__ImportMemory, IMPORT_MEMORY, import_memory, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__import_memory__init(&message);
	message.key.data = key->bytes;
	message.key.len = sizeof(key->bytes);
	message.context = context;
	cause = call(client, &request, &reply);
	if (!cause) {
		check_eq_uint(reply.packet.fd_count, 0);
		check_eq_uint(reply.message->import_memory->kind, NOTIFY_SEGMENT_KIND);
		*ret_segment = reply.message->import_memory->segment;
	}
	raw_reply_free(&reply);
	return cause;
}

/* How many imports of @client are lost; the first of them. */
static size_t count_lost(struct raw_client *client, uint64_t *ret_segment)
{
	BEGIN(Hccld__Control__ListLost, LIST_LOST, list_lost, message);
	struct raw_reply reply;
	size_t count;

	hccld__control__list_lost__init(&message);
	check_eq_uint(call(client, &request, &reply), 0);
	count = reply.message->list_lost->n_segments;
	if (count)
		*ret_segment = reply.message->list_lost->segments[0];
	raw_reply_free(&reply);
	return count;
}

TEST(imports_of_a_notify_are_lost_with_it)
{
	struct raw_client owner, other, old;
	uint64_t context, theirs, segment = 0, import, second, lost = 0;
	struct key key, key_of_second;
	uint32_t first = 0;

	start(NULL);
	join_in(&owner);
	join_in(&other);
	raw_client_start(&old, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&owner, 0);
	theirs = raw_open_context(&other, 0);
	check_eq_uint(create_of(&owner, context, 2, 0, &first, &segment), 0);
	check_eq_uint(create(&owner, context, 1), 2);
	check_eq_uint(export_place(&owner, segment, 1, PLACE, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, 0, PLACE / 2, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, 0, 0, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, PLACE, 2 * PLACE, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, 3 * PLACE, PLACE, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, UINT64_MAX - PLACE + 1, PLACE, &key), CAUSE_BAD_HANDLE);
	check_eq_uint(export_place(&owner, segment, PLACE, PLACE, &key), 0);
	check_eq_uint(export_place(&owner, segment, 2 * PLACE, PLACE, &key_of_second), 0);
	check_eq_uint(import_place(&other, theirs, &key, &import), 0);
	check_eq_uint(import_place(&other, theirs, &key_of_second, &second), 0);
	/* one of an earlier release could not do anything with it */
	check_eq_uint(import_place(&old, raw_open_context(&old, 0), &key, &lost), CAUSE_UNBUILT);
	check_eq_uint(free_notifies(&owner, context, 0), 0);
	check_eq_uint(count_lost(&other, &lost), 1);
	check_eq_uint(lost, import);
	check_eq_uint(import_place(&other, theirs, &key, &lost), CAUSE_NOT_FOUND);
	check_eq_uint(create(&owner, context, 2), 0);
	raw_free(&other, import);
	raw_free(&other, second);
	check_eq_uint(import_place(&other, theirs, &key_of_second, &second), 0);
	raw_client_stop(&owner);
	await_ranges(0);
	check_eq_uint(count_lost(&other, &lost), 1);
	check_eq_uint(lost, second);
	raw_client_stop(&other);
	raw_client_stop(&old);
	stop();
}

/* A host function that never ends, and behind it a task that waits for the notify. */
static void queue_wait(struct raw_client *client, uint32_t stream, uint64_t segment, uint32_t id)
{
	struct stream_ring *ring = session_stream(client->region, stream);

	ring->slots[0].task = (struct task){ .kind = TASK_HOST, .slot_count = 1, .first_lane = LANE_END };
	ring->slots[1].task =
		(struct task){ .kind = TASK_NOTIFY_WAIT, .slot_count = 2, .item_count = 1, .first_lane = LANE_END };
	ring->slots[2].item = (struct item){ .kind = ITEM_PLACE, .segment = segment, .offset = id * PLACE };
	atomic_store(&ring->tail, 3);
}

TEST(a_queued_task_keeps_the_number_from_the_next_owner)
{
	struct raw_client client;
	Hccld__Control__Notifies row;
	uint64_t context, segment = 0;
	uint32_t stream, first = 0;

	start(NULL);
	join_in(&client);
	context = raw_open_context(&client, 0);
	stream = raw_create_stream(&client, context);
	check_eq_uint(create_of(&client, context, 2, 0, &first, &segment), 0);
	queue_wait(&client, stream, segment, 1);
	check_eq_uint(free_notifies(&client, context, 0), 0);
	check_eq_uint(free_notifies(&client, context, 0), CAUSE_BAD_HANDLE);
	check_eq_uint(create(&client, context, 1), 2);
	check_eq_uint(list(&row), 2);
	check_eq_uint(row.first, 0);
	check_eq_uint(row.count, 2);
	check(row.is_closing);
	raw_destroy_stream(&client, stream);
	check_eq_uint(create(&client, context, 2), 0);
	check_eq_uint(list(&row), 2);
	check(!row.is_closing);
	raw_client_stop(&client);
	stop();
}

/* ---- restart ---- */

static void kill_worker(void)
{
	struct raw_reply reply;
	pid_t pid;

	raw_status(&reply);
	pid = (pid_t)reply.message->status->pid;
	raw_reply_free(&reply);
	check_eq_int(kill(pid, SIGKILL), 0);
	raw_status(&reply);
	check_ne_int((pid_t)reply.message->status->pid, pid);
	raw_reply_free(&reply);
}

TEST(a_restart_keeps_numbers_and_knows_requests_that_come_again)
{
	struct raw_client client, other;
	Hccld__Control__Notifies row;
	uint64_t context, theirs, segment = 0, import, lost = 0, freeing, next;
	struct key key;
	uint32_t stream, first = 0;

	start("--keeper");
	join_in(&client);
	join_in(&other);
	context = raw_open_context(&client, 0);
	theirs = raw_open_context(&other, 0);
	stream = raw_create_stream(&client, context);
	check_eq_uint(create_of(&client, context, 3, 1, &first, &segment), 0);
	check_eq_uint(create(&other, theirs, 2), 3);
	check_eq_uint(create(&client, context, 1), 5);
	check_eq_uint(export_place(&client, segment, 5 * PLACE, PLACE, &key), 0);
	check_eq_uint(import_place(&other, theirs, &key, &import), 0);
	kill_worker();
	check_eq_uint(list(&row), 3);
	check_eq_uint(row.count, 3);
	check_eq_str(row.purpose, "counting");
	/* the last one again, as if its reply had been lost */
	client.next_id -= 2;
	check_eq_uint(create(&client, context, 1), 5);
	client.next_id++;
	check_eq_uint(create(&client, context, 1), 6);
	check_eq_uint(create(&other, theirs, 1), 7);
	queue_wait(&client, stream, segment, 5);
	freeing = client.next_id;
	check_eq_uint(free_notifies(&client, context, 5), 0);
	check_eq_uint(count_lost(&other, &lost), 1);
	check_eq_uint(lost, import);
	kill_worker();
	/* closed before, and named by a task still */
	check_eq_uint(list(NULL), 5);
	check_eq_uint(free_notifies(&client, context, 5), 0);
	check_eq_uint(create(&client, context, 1), 8);
	raw_destroy_stream(&client, stream);
	check_eq_uint(create(&client, context, 1), 5);
	/* younger than the request that freed the number */
	next = client.next_id;
	client.next_id = freeing;
	check_eq_uint(free_notifies(&client, context, 5), 0);
	client.next_id = next;
	check_eq_uint(create(&client, context, 1), 9);
	raw_client_stop(&client);
	raw_client_stop(&other);
	await_ranges(0);
	stop();
}

TEST(pages_are_charged_once_over_a_restart)
{
	static const char *const options[] = { "--devices", "1", "--keeper", "--log-level", "error", NULL };
	BEGIN(Hccld__Control__List, LIST, list, message);
	struct raw_client client, tool;
	struct raw_reply reply;
	uint64_t context, before, per_page = 4096 / PLACE;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	join_in(&client);
	context = raw_open_context(&client, 0);
	hccld__control__list__init(&message);
	message.kind = HCCLD__CONTROL__LIST__KIND__MEMORY;
	for (int i = 0; i < 3; i++) {
		raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
		check_eq_uint(call(&tool, &request, &reply), 0);
		check_eq_uint(reply.message->list->memory[0]->side, i == 0 ? 0 : 2 * 4096);
		before = reply.message->list->memory[0]->side;
		raw_reply_free(&reply);
		raw_client_stop(&tool);
		if (i == 0)
			check_eq_uint(create(&client, context, (uint32_t)per_page + 1), 0);
		else if (i == 1)
			kill_worker();
	}
	check_eq_uint(before, 2 * 4096);
	check_eq_uint(create(&client, context, (uint32_t)per_page - 1), per_page + 1);
	check_eq_uint(free_notifies(&client, context, 0), 0);
	check_eq_uint(create(&client, context, (uint32_t)per_page), 0);
	raw_client_stop(&client);
	await_ranges(0);
	stop();
}
