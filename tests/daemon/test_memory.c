/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: accounts, limits, and that it is gone when it is freed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define MIB (1ull << 20)

static struct private_daemon private_daemon;

static void start(void)
{
	static const char *const options[] = { "--devices", "2", "--device-memory", "64M", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

static void allocate(struct raw_client *client, uint64_t context, int kind, uint64_t bytes,
		     struct raw_reply *reply)
{
	Hccld__Control__AllocateSegment message = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.context = context;
	message.kind = (Hccld__Control__AllocateSegment__Kind)kind;
	message.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &message;
	raw_call(client, &request, reply);
}

static uint64_t free_memory(struct raw_client *client, uint64_t context)
{
	uint64_t total, bytes = raw_free_memory(client, context, &total);

	check_eq_uint(total, 64 * MIB);
	return bytes;
}

TEST(memory_is_counted_by_device)
{
	struct raw_client client;
	uint64_t first, second, segment;
	void *base;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	first = raw_open_context(&client, 0);
	second = raw_open_context(&client, 1);
	segment = raw_allocate(&client, first, 5000, &base);
	check_eq_uint(free_memory(&client, first), 64 * MIB - 8192);
	check_eq_uint(free_memory(&client, second), 64 * MIB);
	munmap(base, 8192);
	raw_allocate(&client, first, 40 * MIB, NULL);
	check_eq_uint(free_memory(&client, first), 24 * MIB - 8192);
	raw_free(&client, segment);
	check_eq_uint(free_memory(&client, first), 24 * MIB);
	/* the context's memory goes with it */
	raw_close_context(&client, first);
	first = raw_open_context(&client, 0);
	check_eq_uint(free_memory(&client, first), 64 * MIB);
	raw_client_stop(&client);
	stop();
}

TEST(exhaustion_names_limit_holders_and_remedy)
{
	struct raw_client client, other;
	struct raw_reply reply;
	uint64_t context;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 1);
	raw_allocate(&other, raw_open_context(&other, 1), 30 * MIB, NULL);
	raw_allocate(&client, context, 32 * MIB, NULL);
	allocate(&client, context, 0, 4 * MIB, &reply);
	check_eq_uint(reply.message->cause, CAUSE_MEMORY);
	check_str_contains(reply.message->text,
			   "device 1 has 64 MiB, of which 62 MiB are in use (pid ");
	check_str_contains(reply.message->text, ": 32 MiB, pid ");
	check_str_contains(reply.message->text, ": 30 MiB)");
	check_str_contains(reply.message->text, "--device-memory");
	raw_reply_free(&reply);
	allocate(&client, context, 1, 1ull << 45, &reply);
	check_eq_uint(reply.message->cause, CAUSE_HOST_MEMORY);
	check_str_contains(reply.message->text, "host memory for pinned buffers, side buffers and communicators has ");
	check_str_contains(reply.message->text, " are in use; 32 TiB more were asked for by pid ");
	check_str_contains(reply.message->text, "; the limit is half of the node's memory, or of what hccld's control group may have (MemoryMax= ");
	raw_reply_free(&reply);
	/* what is left can still be had, and host memory is another account */
	raw_allocate(&client, context, 2 * MIB, NULL);
	allocate(&client, context, 1, 4 * MIB, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

/* Where no limit of hccld's is in the way the text says what is, what there is, and that it is not hccld's limit. */
TEST(full_node_is_told_from_a_limit)
{
	static const char *const options[] = { "--devices", "1", "--device-memory", "64T", NULL };
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_allocate(&client, context, 2 * MIB, NULL);
	allocate(&client, context, 0, 1ull << 45, &reply);
	check_eq_uint(reply.message->cause, CAUSE_MEMORY);
	check_str_contains(reply.message->text,
			   "the node itself, or the control group that hccld runs in, has no memory for the 32 TiB that pid ");
	check_str_contains(reply.message->text, " of the node are available, 256 MiB of which hccld leaves alone; ");
	check_str_contains(reply.message->text, "hccld's own limit is not in the way: device 0 has 64 TiB, of which 2 MiB are in use (pid ");
	check_str_contains(reply.message->text, "; free memory of the node, or raise MemoryMax= of hccld.service");
	raw_reply_free(&reply);
	raw_client_stop(&client);
	stop();
}

TEST(sizes_and_kinds_are_checked)
{
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;
	static const struct {
		int kind;
		uint64_t bytes;
		enum cause cause;
	} cases[] = {
		{ 0, 0, CAUSE_ARGUMENT },
		{ 0, UINT64_MAX, CAUSE_ARGUMENT },
		{ 0, UINT64_MAX - 4096, CAUSE_ARGUMENT },
		{ 3, 4096, CAUSE_ARGUMENT },
		{ -1, 4096, CAUSE_ARGUMENT },
		{ 0, 1ull << 46, CAUSE_MEMORY },
		{ 1, 1ull << 46, CAUSE_HOST_MEMORY },
		{ 2, 1ull << 46, CAUSE_HOST_MEMORY },
	};

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		allocate(&client, context, cases[i].kind, cases[i].bytes, &reply);
		check_eq_uint(reply.message->cause, cases[i].cause);
		raw_reply_free(&reply);
	}
	allocate(&client, context + 0x10000, 0, 4096, &reply);
	check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	stop();
}

static void allocate_lazy(struct raw_client *client, uint64_t context, int kind, uint64_t rank, uint64_t bytes, struct raw_reply *reply)
{
	Hccld__Control__AllocateSegment message = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.context = context;
	message.kind = (Hccld__Control__AllocateSegment__Kind)kind;
	message.bytes = bytes;
	message.lazy_rank = rank;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &message;
	raw_call(client, &request, reply);
}

/* Returns the segment; *@ret_bytes: its size. */
static uint64_t buffer_of(struct raw_client *client, uint64_t context, uint64_t rank, uint64_t bytes, uint64_t *ret_bytes)
{
	struct raw_reply reply;
	uint64_t segment;

	allocate_lazy(client, context, 0, rank, bytes, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_eq_uint(reply.packet.fd_count, 1);
	segment = reply.message->allocate_segment->segment;
	*ret_bytes = reply.message->allocate_segment->bytes;
	raw_reply_free(&reply);
	return segment;
}

static uint64_t join_alone(struct raw_client *client, uint64_t context)
{
	struct raw_reply reply;
	struct raw_root root;
	uint64_t rank;

	raw_root_info(client, &root);
	raw_join_send(client, &root, 0, 1, context, 10000);
	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	rank = reply.message->join_comm->rank;
	raw_reply_free(&reply);
	return rank;
}

/* One for each rank, of a size of its first asking; given back, it may be made again. */
TEST(buffers_of_ranks_are_made_once)
{
	struct raw_client client;
	uint64_t context, rank, first, second, bytes;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	rank = join_alone(&client, context);
	first = buffer_of(&client, context, rank, 400 * MIB + 1, &bytes);
	check_eq_uint(bytes, 400 * MIB + 4096);
	check_eq_uint(buffer_of(&client, context, rank, 1, &bytes), first);
	check_eq_uint(bytes, 400 * MIB + 4096);
	check_eq_uint(free_memory(&client, context), 64 * MIB);
	raw_free(&client, first);
	second = buffer_of(&client, context, rank, 4096, &bytes);
	check_ne_uint(second, first);
	check_eq_uint(bytes, 4096);
	raw_leave(&client, rank);
	raw_client_stop(&client);
	stop();
}

TEST(buffers_need_a_rank_of_that_device)
{
	struct raw_client client;
	uint64_t first, second, rank, left, bytes;
	struct raw_reply reply;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	first = raw_open_context(&client, 0);
	second = raw_open_context(&client, 1);
	rank = join_alone(&client, first);
	left = join_alone(&client, first);
	raw_leave(&client, left);
	const struct {
		uint64_t context, rank;
		int kind;
		uint64_t bytes;
		enum cause cause;
	} cases[] = {
		{ first, rank + 1, 0, 4096, CAUSE_BAD_HANDLE },	{ first, UINT64_MAX, 0, 4096, CAUSE_BAD_HANDLE },
		{ first, left, 0, 4096, CAUSE_BAD_HANDLE },	{ second, rank, 0, 4096, CAUSE_BAD_HANDLE },
		{ first + 0x10000, rank, 0, 4096, CAUSE_BAD_HANDLE }, { first, rank, 1, 4096, CAUSE_ARGUMENT },
		{ first, rank, 2, 4096, CAUSE_ARGUMENT },	{ first, rank, 0, 0, CAUSE_ARGUMENT },
		{ first, rank, 0, UINT64_MAX, CAUSE_MEMORY },	{ first, rank, 0, 1ull << 45, CAUSE_MEMORY },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		allocate_lazy(&client, cases[i].context, cases[i].kind, cases[i].rank, cases[i].bytes, &reply);
		check_eq_uint(reply.message->cause, cases[i].cause);
		raw_reply_free(&reply);
	}
	/* addresses that are given back may be had again */
	for (int i = 0; i < 3; i++) {
		raw_free(&client, buffer_of(&client, first, rank, 6ull << 40, &bytes));
		check_eq_uint(bytes, 6ull << 40);
	}
	raw_client_stop(&client);
	stop();
}

/* A sealed, backed memory, that reads as zeros in lingering mappings once it is freed. */
TEST(freed_memory_is_gone_whatever_maps_it)
{
	struct raw_client client;
	struct raw_reply reply;
	unsigned char *base;
	uint64_t context;
	struct stat st;
	int fd;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	allocate(&client, context, 0, 8 * MIB, &reply);
	check_eq_uint(reply.message->cause, 0);
	fd = reply.packet.fds[0];
	check_eq_int(ftruncate(fd, 4096), -1);
	check_eq_int(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
	check_eq_int(fstat(fd, &st), 0);
	check_eq_uint(st.st_mode & 0777, 0);
	check_eq_uint((uint64_t)st.st_blocks * 512, 8 * MIB);
	base = mmap(NULL, 8 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(base != MAP_FAILED);
	memset(base, 0xaa, 8 * MIB);
	raw_free(&client, reply.message->allocate_segment->segment);
	check_eq_int(fstat(fd, &st), 0);
	check_eq_uint(st.st_blocks, 0);
	check_eq_uint(base[4 * MIB], 0);
	munmap(base, 8 * MIB);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	stop();
}

/* Requests that are under way when their context, or their session, goes. */
TEST(allocations_race_with_the_end)
{
	struct raw_client client;
	Hccld__Control__AllocateSegment message = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__CloseContext close_context = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT,
				second = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	start();
	for (int i = 0; i < 20; i++) {
		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		message.context = close_context.context = raw_open_context(&client, 0);
		message.bytes = 16 * MIB;
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
		request.allocate_segment = &message;
		raw_send(&client, &request);
		raw_send(&client, &request);
		if (i % 2) {
			second.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
			second.close_context = &close_context;
			raw_send(&client, &second);
			for (int k = 0; k < 3; k++) {
				check_eq_int(raw_receive(&client, &reply), 0);
				/*
				 * held until the sessions before this one are gone, the context may be gone
				 */
				check(reply.message->cause == 0 ||
				      reply.message->cause == CAUSE_ABORTED ||
				      reply.message->cause == CAUSE_BAD_HANDLE ||
				      reply.message->cause == CAUSE_MEMORY);
				raw_reply_free(&reply);
			}
			/* of this session; the one before may still be on its way out */
			raw_allocate(&client, raw_open_context(&client, 0), 4096, NULL);
		}
		raw_client_stop(&client);
	}
	for (unsigned tries = 0; tries < 4 * 100 * test_timeout_scale(); tries++) {
		raw_status(&reply);
		if (reply.message->status->devices[0]->memory_used == 0)
			break;
		raw_reply_free(&reply);
		usleep(50000);
	}
	check_eq_uint(reply.message->status->devices[0]->memory_used, 0);
	raw_reply_free(&reply);
	stop();
}
