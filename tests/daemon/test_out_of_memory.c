/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc() fails for one request, at each of its allocations in turn: that request is answered with an error of the right kind, or its
 * client's connection ends; the daemon lives, a bystander notices nothing, and nothing stays behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/fail_malloc.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define ALLOCATIONS_MAX 400 /* of one request */

static struct private_daemon private_daemon;
static struct raw_client bystander;
static struct fail_malloc *allocator;
static uint64_t bystander_context;
static char path[64];

static void start(void)
{
	static const char *const options[] = { "--device-memory", "256M", "--log-level", "error", "--copy-threads", "1", NULL };
	int fd;

	strcpy(path, "/tmp/hccld-malloc-XXXXXX");
	fd = mkstemp(path);
	check_ge_int(fd, 0);
	check_eq_int(ftruncate(fd, 4096), 0);
	allocator = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(allocator != MAP_FAILED);
	close(fd);
	setenv("HCCLD_TEST_MALLOC", path, 1);
	setenv("LD_PRELOAD", getenv("HCCLD_FAIL_MALLOC"), 1);
	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	unsetenv("LD_PRELOAD");
	raw_client_start(&bystander, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	bystander_context = raw_open_context(&bystander, 7);
}

static void stop(void)
{
	raw_destroy_stream(&bystander, raw_create_stream(&bystander, bystander_context));
	raw_client_stop(&bystander);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
	unlink(path);
}

static void arm(int n)
{
	atomic_store(&allocator->failed, 0);
	atomic_store(&allocator->countdown, n);
}

/* How many have failed. */
static uint64_t disarm(void)
{
	atomic_store(&allocator->countdown, 0);
	return atomic_load(&allocator->failed);
}

static void check_alive(void)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__MemoryInfo info = HCCLD__CONTROL__MEMORY_INFO__INIT;
	struct raw_reply reply;

	check_eq_int(waitpid(private_daemon.pid, NULL, WNOHANG), 0);
	info.context = bystander_context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MEMORY_INFO;
	request.memory_info = &info;
	raw_call(&bystander, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_NONE);
	raw_reply_free(&reply);
}

static bool is_memory(uint32_t cause)
{
	return cause == CAUSE_MEMORY || cause == CAUSE_HOST_MEMORY || cause == CAUSE_LIMIT || cause == CAUSE_STREAMS;
}

/* What each turn has: a client with a context, and a request with its @body. False: no allocation failed, so all have been tried. */
static bool turn(Hccld__Control__Request *request, int n)
{
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context, failed;
	int r;

	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 1);
	if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM)
		request->create_stream->context = context;
	if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT)
		request->allocate_segment->context = context;
	if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT)
		request->close_context->context = context;
	if (request->body_case == HCCLD__CONTROL__REQUEST__BODY_CREATE_NOTIFIES)
		request->create_notifies->context = context;
	arm(n);
	raw_send(&client, request);
	r = raw_receive(&client, &reply);
	failed = disarm();
	if (r == 0) {
		if (!failed)
			check_eq_uint(reply.message->cause, CAUSE_NONE);
		else if (reply.message->cause)
			check(is_memory(reply.message->cause));
		raw_reply_free(&reply);
	}
	check(r == 0 || failed);
	check_alive();
	raw_client_stop(&client);
	return failed;
}

static void every_allocation(Hccld__Control__Request *request)
{
	int n = 1;

	start();
	while (turn(request, n)) {
		n++;
		check_lt_int(n, ALLOCATIONS_MAX);
	}
	check_gt_int(n, 1);
	stop();
}

TEST(open_context)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__OpenContext body = HCCLD__CONTROL__OPEN_CONTEXT__INIT;

	body.device = 2;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &body;
	every_allocation(&request);
}

TEST(close_context)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CloseContext body = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
	request.close_context = &body;
	every_allocation(&request);
}

TEST(create_stream)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateStream body = HCCLD__CONTROL__CREATE_STREAM__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &body;
	every_allocation(&request);
}

static void allocate(uint64_t bytes)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__AllocateSegment body = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;

	body.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &body;
	every_allocation(&request);
}

TEST(small_segment)
{
	allocate(4096);
}

TEST(large_segment)
{
	allocate(4 << 20);
}

TEST(create_notifies)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateNotifies body = HCCLD__CONTROL__CREATE_NOTIFIES__INIT;

	body.count = 3;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_NOTIFIES;
	request.create_notifies = &body;
	every_allocation(&request);
}

TEST(root_info)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GetRootInfo body = HCCLD__CONTROL__GET_ROOT_INFO__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &body;
	every_allocation(&request);
}

TEST(list)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__List body = HCCLD__CONTROL__LIST__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &body;
	every_allocation(&request);
}

TEST(status)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Status body = HCCLD__CONTROL__STATUS__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &body;
	every_allocation(&request);
}

/* The connection itself and its HELLO. */
TEST(connect)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	uint64_t failed = 1;

	start();
	hello.magic = HCCLD_MAGIC;
	hello.version_low = HCCLD_VERSION_LOW;
	hello.version_high = HCCLD_VERSION_HIGH;
	hello.library = (char *)"test";
	hello.process = (char *)"test";
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	for (int n = 1; failed; n++) {
		struct raw_client client = { .event_fd = -1 };
		struct raw_reply reply;
		int r;

		check_lt_int(n, ALLOCATIONS_MAX);
		request.id = 1;
		arm(n);
		client.fd = raw_connect();
		/* -EPIPE: it was accepted and closed */
		r = packet_send(client.fd, &request.base, NULL, 0, 0);
		if (r == 0)
			r = raw_receive(&client, &reply);
		failed = disarm();
		if (r == 0) {
			check(failed ? !reply.message->cause || is_memory(reply.message->cause) : !reply.message->cause);
			raw_reply_free(&reply);
		}
		check(r == 0 || failed);
		check_alive();
		close(client.fd);
	}
	stop();
}

/* A communicator of one rank. */
TEST(join)
{
	uint64_t failed = 1;

	start();
	for (int n = 1; failed; n++) {
		struct raw_client client;
		struct raw_reply reply;
		struct raw_root root;
		uint64_t context;
		int r;

		check_lt_int(n, ALLOCATIONS_MAX);
		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		context = raw_open_context(&client, 1);
		raw_root_info(&client, &root);
		arm(n);
		raw_join_send(&client, &root, 0, 1, context, 0);
		r = raw_receive(&client, &reply);
		failed = disarm();
		if (r == 0) {
			check(failed ? !reply.message->cause || is_memory(reply.message->cause) : !reply.message->cause);
			raw_reply_free(&reply);
		}
		check(r == 0 || failed);
		check_alive();
		raw_client_stop(&client);
	}
	stop();
}
