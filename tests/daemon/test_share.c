/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that processes share, by hostile requests: sessions that end in any order with keys, imports and orphans left; nothing may stay
 * of it, and no user may take all places.
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define MIB (1ull << 20)
#define PART (64u << 10)
#define CLIENTS 4u
#define THINGS 24u
#define USER 61001u

#define BEGIN(type, TYPE, field, name)                                                    \
	type name;                                                                        \
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;                  \
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_##TYPE;                         \
	request.field = &name

static struct private_daemon private_daemon;

struct key {
	unsigned char bytes[HCCLD_KEY_BYTES_MAX];
	uint32_t size;
};

static void start(const char *more)
{
	const char *const options[] = { "--devices", "2", "--device-memory", "64M", "--log-level", "error", more, NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	chmod(private_daemon.directory, 0755);
	chmod(private_daemon.socket, 0666);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* The cause. *ret_key: written on success. */
static uint32_t export_memory(struct raw_client *client, uint64_t segment, uint64_t offset, uint64_t bytes, uint32_t key_bytes,
			      struct key *ret_key)
{
	BEGIN(Hccld__Control__ExportMemory, EXPORT_MEMORY, export_memory, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__export_memory__init(&message);
	message.segment = segment;
	message.offset = offset;
	message.bytes = bytes;
	message.key_bytes = key_bytes;
	message.any_process = true;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	if (!cause) {
		check_le_uint(reply.message->export_memory->key.len, HCCLD_KEY_BYTES_MAX);
		ret_key->size = (uint32_t)reply.message->export_memory->key.len;
		memcpy(ret_key->bytes, reply.message->export_memory->key.data, ret_key->size);
	} else if (cause == CAUSE_LIMIT) {
		check_str_contains(reply.message->text, "keys");
	}
	raw_reply_free(&reply);
	return cause;
}

static uint32_t import_memory(struct raw_client *client, uint64_t context, struct key *key, uint64_t *ret_segment)
{
	BEGIN(Hccld__Control__ImportMemory, IMPORT_MEMORY, import_memory, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__import_memory__init(&message);
	message.key.data = key->bytes;
	message.key.len = key->size;
	message.context = context;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	if (!cause)
		*ret_segment = reply.message->import_memory->segment;
	raw_reply_free(&reply);
	return cause;
}

static uint32_t end_export(struct raw_client *client, struct key *key, bool lose)
{
	BEGIN(Hccld__Control__EndExport, END_EXPORT, end_export, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__end_export__init(&message);
	message.key.data = key->bytes;
	message.key.len = key->size;
	message.lose = lose;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

static uint32_t free_segment(struct raw_client *client, uint64_t segment, bool after_imports)
{
	BEGIN(Hccld__Control__FreeSegment, FREE_SEGMENT, free_segment, message);
	struct raw_reply reply;
	uint32_t cause;

	hccld__control__free_segment__init(&message);
	message.segment = segment;
	message.after_imports = after_imports;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

static void list_lost(struct raw_client *client)
{
	BEGIN(Hccld__Control__ListLost, LIST_LOST, list_lost, message);
	struct raw_reply reply;

	hccld__control__list_lost__init(&message);
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
}

static uint64_t free_memory(struct raw_client *client, uint64_t context)
{
	BEGIN(Hccld__Control__MemoryInfo, MEMORY_INFO, memory_info, message);
	struct raw_reply reply;
	uint64_t bytes;

	hccld__control__memory_info__init(&message);
	message.context = context;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	bytes = reply.message->memory_info->free;
	raw_reply_free(&reply);
	return bytes;
}

static void await_memory(struct raw_client *client, uint64_t context, uint64_t bytes)
{
	for (unsigned int tries = 0; free_memory(client, context) != bytes; tries++) {
		check_lt_uint(tries, 1000 * test_timeout_scale());
		usleep(2000);
	}
}

TEST(memory_goes_when_its_last_imports_are_lost)
{
	struct raw_client owner, other;
	uint64_t context, segment, import;
	struct key key;

	start(NULL);
	raw_client_start(&owner, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&owner, 0);
	segment = raw_allocate(&owner, context, MIB, NULL);
	check_eq_uint(export_memory(&owner, segment, 0, MIB, 8, &key), 0);
	check_eq_uint(import_memory(&other, raw_open_context(&other, 0), &key, &import), 0);
	check_eq_uint(free_segment(&owner, segment, true), 0);
	check_eq_uint(free_memory(&owner, context), 63 * MIB);
	check_eq_uint(end_export(&owner, &key, true), 0);
	check_eq_uint(free_memory(&owner, context), 64 * MIB);
	list_lost(&other);
	check_eq_uint(free_segment(&other, import, false), 0);
	raw_client_stop(&other);
	raw_client_stop(&owner);
	stop();
}

/* ---- at random ---- */

struct thing {
	uint64_t id;
	uint32_t client;
	struct key key;
};

static struct world {
	struct raw_client clients[CLIENTS];
	uint64_t contexts[CLIENTS];
	struct thing segments[THINGS], imports[THINGS], keys[THINGS];
} world;

static void join_in(uint32_t i)
{
	raw_client_start(&world.clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	world.contexts[i] = raw_open_context(&world.clients[i], i % 2);
}

static void step(void)
{
	uint32_t i = (uint32_t)rand() % CLIENTS, j = (uint32_t)rand() % THINGS, k = (uint32_t)rand() % THINGS;
	struct raw_client *client = &world.clients[i];
	struct thing *segment = &world.segments[j], *import = &world.imports[k], *key = &world.keys[k];

	switch (rand() % 12) {
	case 0:
	case 1:
		if (free_memory(client, world.contexts[i]) < 8 * MIB)
			break;
		segment->client = i;
		segment->id = raw_allocate(client, world.contexts[i], rand() % 8 ? PART : MIB + PART, NULL);
		break;
	case 2:
	case 3:
	case 4:
		key->client = segment->client;
		export_memory(&world.clients[segment->client], segment->id, (uint64_t)rand() % 4096, (uint64_t)rand() % PART,
			      rand() % 2 ? 8 : HCCLD_KEY_BYTES_MAX, &key->key);
		break;
	case 5:
	case 6:
	case 7:
		import->client = i;
		import_memory(client, world.contexts[i], &key->key, &import->id);
		break;
	case 8:
		end_export(&world.clients[key->client], &key->key, rand() % 2);
		break;
	case 9:
		free_segment(&world.clients[segment->client], segment->id, rand() % 2);
		break;
	case 10:
		free_segment(&world.clients[import->client], import->id, rand() % 2);
		list_lost(client);
		break;
	case 11:
		if (rand() % 6)
			break;
		if (rand() % 2) {
			raw_close_context(client, world.contexts[i]);
			world.contexts[i] = raw_open_context(client, i % 2);
			break;
		}
		/* without waiting for what it has asked last */
		close(client->fd);
		client->fd = raw_connect();
		raw_client_stop(client);
		join_in(i);
		break;
	}
}

/* The daemon's process, of which the keeper makes another. */
static void kill_worker(void)
{
	struct raw_reply reply;

	raw_status(&reply);
	check_eq_int(kill((pid_t)reply.message->status->pid, SIGKILL), 0);
	raw_reply_free(&reply);
}

static void play(uint32_t kills)
{
	srand((unsigned int)test_seed());
	for (uint32_t i = 0; i < CLIENTS; i++)
		join_in(i);
	for (uint32_t i = 0; i <= kills; i++) {
		for (int j = 0; j < 2000; j++)
			step();
		if (i < kills)
			kill_worker();
	}
	for (uint32_t i = 1; i < CLIENTS; i++)
		raw_client_stop(&world.clients[i]);
	raw_close_context(&world.clients[0], world.contexts[0]);
	for (uint32_t device = 0; device < 2; device++)
		await_memory(&world.clients[0], raw_open_context(&world.clients[0], device), 64 * MIB);
	raw_client_stop(&world.clients[0]);
}

TEST(nothing_stays_of_what_was_shared_at_random)
{
	start(NULL);
	play(0);
	stop();
}

TEST(nothing_stays_after_restarts)
{
	/* a third within ten seconds would drop the registry */
	start("--keeper");
	play(2);
	stop();
}

/* ---- one user takes what there is ---- */

static void export_all(void)
{
	struct raw_client clients[HCCLD_EXPORTS_PER_USER / HCCLD_EXPORTS_PER_SESSION + 1];
	const uint32_t count = sizeof(clients) / sizeof(clients[0]);
	struct key key;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t segment;

		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		segment = raw_allocate(&clients[i], raw_open_context(&clients[i], 0), PART, NULL);
		for (uint32_t j = 0; i + 1 < count && j < HCCLD_EXPORTS_PER_SESSION; j++)
			check_eq_uint(export_memory(&clients[i], segment, 0, PART, 8, &key), 0);
		check_eq_uint(export_memory(&clients[i], segment, 0, PART, 8, &key), CAUSE_LIMIT);
	}
	/* a place that is given back may be taken again */
	raw_client_stop(&clients[0]);
	for (uint32_t i = 0;; i++) {
		uint64_t segment = raw_allocate(&clients[count - 1], raw_open_context(&clients[count - 1], 0), PART, NULL);

		if (export_memory(&clients[count - 1], segment, 0, PART, 8, &key) == 0)
			break;
		check_lt_uint(i, 1000);
		usleep(2000);
	}
	for (uint32_t i = 1; i < count; i++)
		raw_client_stop(&clients[i]);
}

TEST(one_user_cannot_take_all_keys)
{
	pid_t pid;
	int status;

	if (geteuid() != 0)
		test_skip("only root can become other users");
	start(NULL);
	pid = fork();
	if (pid == 0) {
		check(setgroups(0, NULL) == 0 && setresgid(USER, USER, USER) == 0 && setresuid(USER, USER, USER) == 0);
		export_all();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	stop();
}
