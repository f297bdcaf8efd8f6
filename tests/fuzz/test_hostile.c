/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that ask for much, wait badly, or take memory away, each against the real daemon: what it holds stays bounded, who is honest is
 * served, and nothing is left in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/region.h"
#include "proto/status.h"
#include "tests/fuzz/bystander.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define ROUND_LIMIT_MS 4000

static struct private_daemon private_daemon;
static const char *const options[] = { "--device-memory", "256M", "--log-level", "error", NULL };
static struct holdings before;

/* The yard of this user is there to stay. */
static void start(void)
{
	struct raw_client client;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&client);
	usleep(400000);
	before = holdings_of(private_daemon.pid);
}

static void stop(void)
{
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* A join that waits, with @fields fields that nobody knows behind it: two bytes each. */
static size_t pack_padded_join(unsigned char *data, uint64_t id, const struct raw_root *root, uint64_t context, uint32_t rank,
			       uint32_t fields)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__JoinComm join = HCCLD__CONTROL__JOIN_COMM__INIT;
	size_t size;

	join.key = root->key;
	join.secret.data = (unsigned char *)root->secret;
	join.secret.len = HCCLD_SECRET_BYTES;
	join.rank = rank;
	join.size = HCCLD_RANKS_MAX;
	join.context = context;
	request.id = id;
	request.deadline_ms = 60000;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request.join_comm = &join;
	size = hccld__control__request__pack(&request, data);
	for (uint32_t i = 0; i < fields; i++) {
		data[size++] = 9 << 3; /* field 9, a number */
		data[size++] = 0;
	}
	return size;
}

/*
 * A packet of two-byte fields takes thirty times its size when it is unpacked, and a join keeps it for as long as it waits: so much of it
 * is refused, and what is let through has a bound in all.
 */
static void grow(uint32_t fields, uint32_t requests)
{
	static unsigned char data[HCCLD_PACKET_MAX];
	struct raw_client client;
	struct raw_root root;
	uint64_t context;
	uint32_t sent = 0;
	long grown;

	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	while (sent < requests) {
		size_t size = pack_padded_join(data, 100 + sent, &root, context, sent, fields);

		if (send(client.fd, data, size, MSG_NOSIGNAL) < 0)
			break;
		sent++;
	}
	usleep(200000);
	grown = holdings_of(private_daemon.pid).rss_kib - before.rss_kib;
	check_msg(grown < 100 * 1024, "%u requests of %u fields have cost %ld KiB", sent, fields, grown);
	raw_client_stop(&client);
}

TEST_TIMEOUT(requests_that_grow_when_unpacked, 60)
{
	struct bystander bystander;

	start();
	bystander_start(&bystander, ROUND_LIMIT_MS);
	grow(30000, 4000);
	grow(5000, 4000);
	grow(500, 4000);
	bystander_stop(&bystander);
	stop();
}

/* All ranks of a communicator are one client's, and it does not read before all have asked. */
TEST_TIMEOUT(a_thousand_replies_at_once, 60)
{
	enum { RANKS = 1000 };
	struct raw_client client;
	struct raw_root root;
	uint64_t context;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_join_send(&client, &root, i, RANKS, context, 0);
	usleep(300000);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		check_eq_uint(reply.packet.fd_count, 1);
		raw_reply_free(&reply);
	}
	raw_client_stop(&client);
	stop();
}

/* The session region of @client, as a descriptor. */
static int region_fd(struct raw_client *client, struct raw_reply *reply)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	int fd;

	memset(client, 0, sizeof(*client));
	client->event_fd = -1;
	client->fd = raw_connect();
	hello.magic = HCCLD_MAGIC;
	hello.version_low = HCCLD_VERSION_LOW;
	hello.version_high = HCCLD_VERSION_HIGH;
	hello.library = hello.process = "punch";
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	raw_call(client, &request, reply);
	check_eq_uint(reply->message->cause, 0);
	fd = reply->packet.fds[0];
	reply->packet.fds[0] = -1;
	raw_reply_free(reply);
	return fd;
}

/* Rings are punched out, shrunk, sealed while the engine reads them: the first is its owner's loss, the others are refused. */
TEST_TIMEOUT(the_session_region_is_punched, 60)
{
	struct bystander bystander;
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;
	int fd;

	start();
	bystander_start(&bystander, ROUND_LIMIT_MS);
	fd = region_fd(&client, &reply);
	context = raw_open_context(&client, 0);
	client.region = mmap(NULL, SESSION_REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(client.region != MAP_FAILED);
	check_eq_int(ftruncate(fd, 4096), -1);
	check_eq_int(ftruncate(fd, SESSION_REGION_SIZE + 4096), -1);
	check_eq_int(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	for (int i = 0; i < 200; i++) {
		uint32_t stream = raw_create_stream(&client, context);
		struct stream_ring *ring = session_stream(client.region, stream);

		ring->slots[0].task = (struct task){ .kind = TASK_BATCH, .slot_count = 1, .first_lane = LANE_END };
		atomic_store(&ring->tail, 1);
		check_eq_int(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)SESSION_REGION_SIZE), 0);
		if (i % 2)
			raw_destroy_stream(&client, stream);
	}
	close(fd);
	munmap(client.region, SESSION_REGION_SIZE);
	client.region = NULL;
	raw_client_stop(&client);
	bystander_stop(&bystander);
	stop();
}

/* Every request about an object is sent twice, and once more for an object of somebody else. */
TEST_TIMEOUT(what_is_gone_or_of_others_is_refused, 60)
{
	struct raw_client mine, theirs;
	struct raw_root root;
	struct raw_reply reply;
	uint64_t context, segment, rank;
	uint32_t stream;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__FreeSegment free_segment = HCCLD__CONTROL__FREE_SEGMENT__INIT;
	Hccld__Control__LeaveComm leave = HCCLD__CONTROL__LEAVE_COMM__INIT;
	Hccld__Control__CloseContext close_context = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;

	start();
	raw_client_start(&mine, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&theirs, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&mine, 0);
	segment = raw_allocate(&mine, context, 4096, NULL);
	stream = raw_create_stream(&mine, context);
	raw_root_info(&mine, &root);
	raw_join_send(&mine, &root, 0, 1, context, 0);
	check_eq_int(raw_receive(&mine, &reply), 0);
	rank = reply.message->join_comm->rank;
	raw_reply_free(&reply);
	/* theirs has no objects: these are no ids of its own */
	for (int twice = 0; twice < 2; twice++) {
		struct raw_client *client = twice ? &mine : &theirs;

		if (twice) {
			raw_free(&mine, segment);
			raw_leave(&mine, rank);
			raw_destroy_stream(&mine, stream);
			raw_close_context(&mine, context);
		}
		free_segment.segment = segment;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
		request.free_segment = &free_segment;
		raw_call(client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
		leave.rank = rank;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_LEAVE_COMM;
		request.leave_comm = &leave;
		raw_call(client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
		close_context.context = context;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
		request.close_context = &close_context;
		raw_call(client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
	}
	raw_client_stop(&theirs);
	raw_client_stop(&mine);
	stop();
}

/* The device of some of the ranks is closed while their communicator is being made; the others are told. */
TEST_TIMEOUT(a_context_is_closed_in_the_middle_of_a_join, 60)
{
	struct raw_client client;
	struct raw_root root;
	struct raw_reply reply;
	uint32_t refused = 0, left = 0;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (int round = 0; round < 50; round++) {
		uint64_t contexts[2] = { raw_open_context(&client, 0), raw_open_context(&client, 1) };
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		Hccld__Control__CloseContext close_context = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;

		raw_root_info(&client, &root);
		for (uint32_t i = 0; i < 3; i++)
			raw_join_send(&client, &root, i, 4, contexts[i % 2], 0);
		close_context.context = contexts[0];
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
		request.close_context = &close_context;
		raw_send(&client, &request);
		/* comes too late: what it would join has failed */
		raw_join_send(&client, &root, 3, 4, contexts[1], 0);
		for (int i = 0; i < 5; i++) {
			check_eq_int(raw_receive(&client, &reply), 0);
			refused += reply.message->cause != 0;
			left += reply.message->cause == CAUSE_PEER_LEFT;
			raw_reply_free(&reply);
		}
		raw_close_context(&client, contexts[1]);
	}
	check_eq_uint(refused, 200);
	check_eq_uint(left, 200);
	raw_client_stop(&client);
	stop();
}

/* Hundreds of requests a millisecond on many connections: a bystander's rounds go on. */
TEST_TIMEOUT(a_flood_of_requests, 60)
{
	enum { CLIENTS = 16, SECONDS = 3 };
	struct raw_client clients[CLIENTS];
	uint64_t contexts[CLIENTS];
	struct bystander bystander;
	uint64_t sent = 0;

	start();
	bystander_start(&bystander, ROUND_LIMIT_MS);
	for (int i = 0; i < CLIENTS; i++) {
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		contexts[i] = raw_open_context(&clients[i], (uint32_t)i % 8);
	}
	for (uint64_t end = clock_now_ns() + SECONDS * 1000000000ull; clock_now_ns() < end;) {
		for (int i = 0; i < CLIENTS; i++) {
			Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
			Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
			Hccld__Control__GetRootInfo root = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
			struct packet packet;

			create.context = contexts[i];
			request.id = ++sent;
			request.body_case = sent % 2 ? HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM
						     : HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
			if (sent % 2)
				request.create_stream = &create;
			else
				request.get_root_info = &root;
			(void)packet_send(clients[i].fd, &request.base, NULL, 0, MSG_DONTWAIT);
			if (i % 2 && packet_receive(clients[i].fd, &packet, MSG_DONTWAIT) == 0)
				packet_close(&packet);
		}
	}
	for (int i = 0; i < CLIENTS; i++)
		raw_client_stop(&clients[i]);
	bystander_stop(&bystander);
	stop();
}
