/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that gets no descriptor, or no memory, for a while: requests fail alone and say why, nothing stays behind, and it serves
 * again when there is some. And many of everything: sessions, communicators, ranks.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/region.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;
static const char *const options[] = { "--device-memory", "256M", "--log-level", "error", NULL };

static void start(void)
{
	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* How many; which of them in @ret_used[1024]. */
static int daemon_fds(bool *ret_used)
{
	char path[64];
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", private_daemon.pid);
	dir = opendir(path);
	check_ptr(dir);
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.')
			continue;
		count++;
		if (ret_used) {
			check_lt_int(fd, 1024);
			ret_used[fd] = true;
		}
	}
	closedir(dir);
	return count;
}

/* What has gone with the last reply is closed a while after it. */
static int settled_fds(void)
{
	int now, fds = daemon_fds(NULL);

	for (int same = 0; same < 15; same++) {
		usleep(20000);
		now = daemon_fds(NULL);
		if (now != fds)
			same = 0;
		fds = now;
	}
	return fds;
}

/* Room for @room more descriptors; -1: as many as before. */
static void limit_fds(int room)
{
	static struct rlimit before;
	bool used[1024] = { false };
	struct rlimit limit;
	int end = 0;

	if (!before.rlim_cur)
		check_eq_int(prlimit(private_daemon.pid, RLIMIT_NOFILE, NULL, &before), 0);
	limit = before;
	daemon_fds(used);
	/* numbers are given from below: holes first */
	for (; room >= 0 && end < 1024; end++)
		if (!used[end] && room-- == 0)
			break;
	if (end)
		limit.rlim_cur = (rlim_t)end;
	check_eq_int(prlimit(private_daemon.pid, RLIMIT_NOFILE, &limit, NULL), 0);
}

#define ANY UINT32_MAX

/* Waits until there is this much, and no device memory in use. */
static void settle(int fds, uint32_t sessions, uint32_t comms)
{
	struct raw_reply reply;
	uint32_t have_sessions = 0, have_comms = 0;
	uint64_t used = 0;
	int now = 0;

	for (unsigned tries = 0; tries < 100 * test_timeout_scale(); tries++) {
		raw_status(&reply);
		have_sessions = reply.message->status->sessions;
		have_comms = reply.message->status->comms;
		used = 0;
		for (size_t i = 0; i < reply.message->status->n_devices; i++)
			used += reply.message->status->devices[i]->memory_used;
		raw_reply_free(&reply);
		usleep(20000);
		now = daemon_fds(NULL);
		if (now == fds && have_sessions == sessions && (comms == ANY || have_comms == comms) && !used)
			return;
	}
	check_msg(false, "%d descriptors, %u sessions, %u communicators instead of %d, %u, %u", now, have_sessions, have_comms, fds,
		  sessions, comms);
}

static void allocate_request(struct raw_client *client, uint64_t context, uint64_t bytes, struct raw_reply *ret_reply)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	allocate.context = context;
	allocate.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &allocate;
	raw_call(client, &request, ret_reply);
}

/* With 0, 1, ... descriptors to be had. */
TEST_TIMEOUT(out_of_descriptors_for_memory, 60)
{
	struct raw_client client;
	struct raw_reply reply;
	int fds, failed = 0;
	uint64_t context;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	fds = settled_fds();
	for (int room = 0; room < 8; room++) {
		uint64_t segment;

		limit_fds(room);
		allocate_request(&client, context, 8 << 20, &reply);
		if (reply.message->cause) {
			failed++;
			check_eq_uint(reply.message->cause, CAUSE_LIMIT);
			check_str_contains(reply.message->text, "descriptors");
			raw_reply_free(&reply);
			limit_fds(-1);
		} else {
			segment = reply.message->allocate_segment->segment;
			raw_reply_free(&reply);
			limit_fds(-1);
			raw_free(&client, segment);
		}
		settle(fds, 1, 0);
	}
	check_gt_int(failed, 1);
	check_lt_int(failed, 8);
	raw_client_stop(&client);
	stop();
}

TEST_TIMEOUT(out_of_descriptors_for_a_communicator, 60)
{
	int fds, failed = 0, halves = 0;
	struct raw_client clients[2];
	uint64_t contexts[2];

	start();
	for (int i = 0; i < 2; i++) {
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		contexts[i] = raw_open_context(&clients[i], 0);
	}
	fds = settled_fds();
	for (int room = 0; room < 8; room++) {
		struct raw_root root;
		uint64_t ranks[2] = { 0 };
		struct raw_reply reply;

		raw_root_info(&clients[0], &root);
		limit_fds(room);
		for (uint32_t i = 0; i < 2; i++)
			raw_join_send(&clients[i], &root, i, 2, contexts[i], 10000);
		for (uint32_t i = 0; i < 2; i++) {
			check_eq_int(raw_receive(&clients[i], &reply), 0);
			if (reply.message->cause)
				check_eq_uint(reply.message->cause, CAUSE_LIMIT);
			else
				ranks[i] = reply.message->join_comm->rank;
			raw_reply_free(&reply);
		}
		limit_fds(-1);
		failed += !ranks[0] && !ranks[1];
		halves += !ranks[0] != !ranks[1];
		for (uint32_t i = 0; i < 2; i++)
			if (ranks[i])
				raw_leave(&clients[i], ranks[i]);
		/* a root info that has failed stays known, for ranks that come late */
		settle(fds, 2, ANY);
	}
	check_gt_int(failed, 1);
	check_lt_int(failed + halves, 8);
	for (int i = 0; i < 2; i++)
		raw_client_stop(&clients[i]);
	stop();
}

TEST_TIMEOUT(out_of_descriptors_for_sessions, 60)
{
	int fds, failed = 0;
	struct raw_client client;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	fds = settled_fds();
	for (int room = 1; room < 20; room++) {
		Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		struct raw_client other = { .event_fd = -1 };
		struct raw_reply reply;

		limit_fds(room);
		hello.magic = HCCLD_MAGIC;
		hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
		request.hello = &hello;
		other.fd = raw_connect();
		raw_call(&other, &request, &reply);
		if (reply.message->cause) {
			failed++;
			check_eq_uint(reply.message->cause, CAUSE_LIMIT);
			check_str_contains(reply.message->text, "descriptors");
		}
		raw_reply_free(&reply);
		/* who is there goes on */
		raw_open_context(&client, 0);
		close(other.fd);
		limit_fds(-1);
		settle(fds, 1, 0);
	}
	check_gt_int(failed, 2);
	check_lt_int(failed, 19);
	raw_client_stop(&client);
	stop();
}

static rlim_t daemon_vm_bytes(void)
{
	char path[64], line[256];
	unsigned long kib = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", private_daemon.pid);
	file = fopen(path, "re");
	check_ptr(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmSize: %lu", &kib) == 1)
			break;
	fclose(file);
	return (rlim_t)kib * 1024;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#else
#define HAS_SANITIZER 0
#endif

/* Address space for some KiB, some MiB more. */
TEST_TIMEOUT(out_of_memory, 120)
{
	struct rlimit before, limit;
	struct raw_client client;
	uint64_t context;

	if (HAS_SANITIZER)
		return; /* its allocator ends the process */
	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	check_eq_int(prlimit(private_daemon.pid, RLIMIT_AS, NULL, &before), 0);
	for (uint64_t room = 0; room < 200; room++) {
		Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		struct raw_client other = { .event_fd = -1 };
		struct raw_reply reply;
		int r;

		limit = before;
		limit.rlim_cur = daemon_vm_bytes() + room * (room < 100 ? 16384 : 2 << 20);
		check_eq_int(prlimit(private_daemon.pid, RLIMIT_AS, &limit, NULL), 0);
		hello.magic = HCCLD_MAGIC;
		hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
		request.hello = &hello;
		other.fd = raw_connect();
		request.id = 1;
		check_eq_int(packet_send(other.fd, &request.base, NULL, 0, 0), 0);
		r = raw_receive(&other, &reply);
		if (r == 0) {
			check(reply.message->cause == 0 || *reply.message->text);
			raw_reply_free(&reply);
		}
		allocate_request(&client, context, 4096 << room % 12, &reply);
		if (reply.message->cause == 0) {
			uint64_t segment = reply.message->allocate_segment->segment;

			raw_reply_free(&reply);
			raw_free(&client, segment);
		} else {
			check(*reply.message->text);
			raw_reply_free(&reply);
		}
		close(other.fd);
		check_eq_int(prlimit(private_daemon.pid, RLIMIT_AS, &before, NULL), 0);
	}
	raw_client_stop(&client);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_free(&client, raw_allocate(&client, context, 64 << 20, NULL));
	raw_client_stop(&client);
	stop();
}

/* 500 at once, each with a stream and some memory, and again: nothing grows. */
TEST_TIMEOUT(hundreds_of_sessions, 120)
{
	enum { COUNT = 500 };
	static struct raw_client clients[COUNT];
	struct rlimit limit;
	int fds = 0;

	check_eq_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	start();
	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < COUNT; i++) {
			uint64_t context;

			raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
			context = raw_open_context(&clients[i], (uint32_t)i % 8);
			raw_create_stream(&clients[i], context);
			raw_allocate(&clients[i], context, 65536, NULL);
		}
		for (int i = 0; i < COUNT; i++)
			raw_client_stop(&clients[i]);
		if (turn == 0) {
			/* the first time makes what stays */
			usleep(1000000);
			fds = settled_fds();
		}
		settle(fds, 0, 0);
	}
	stop();
}

/* 256 ranks that all talk to each other. */
TEST_TIMEOUT(a_communicator_of_256_ranks, 120)
{
	enum { COUNT = 256 };
	static uint64_t ranks[COUNT];
	static uint32_t peers[COUNT];
	struct raw_client client;
	struct raw_reply reply;
	struct raw_root root;
	uint64_t context, memory;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < COUNT; i++)
		raw_join_send(&client, &root, i, COUNT, context, 30000);
	for (uint32_t i = 0; i < COUNT; i++) {
		check_eq_int(raw_receive(&client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		ranks[i] = reply.message->join_comm->rank;
		raw_reply_free(&reply);
		peers[i] = i;
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

		open.rank = ranks[i];
		open.n_send_to = open.n_receive_from = COUNT;
		open.send_to = open.receive_from = peers;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
		request.open_pairs = &open;
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
	{
		Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

		list.kind = HCCLD__CONTROL__LIST__KIND__COMMS;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
		request.list = &list;
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->list->n_comms, 1);
		check_eq_uint(reply.message->list->comms[0]->pairs, COUNT * COUNT);
		memory = reply.message->list->comms[0]->memory;
		raw_reply_free(&reply);
	}
	check_lt_uint(memory, 300ull << 20);
	raw_client_stop(&client);
	stop();
}
