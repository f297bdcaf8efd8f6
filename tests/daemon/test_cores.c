/* SPDX-License-Identifier: Apache-2.0 */
/* Vector cores as the daemon counts them: budgets, refusals, what gives them back, and what a restart keeps. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/feature.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"
#include "tests/support/worker.h"

#define BUDGET 16u

static struct private_daemon private_daemon;
static char refusal[HCCLD_TEXT_MAX]; /* of the last request */

static void start(const char *more)
{
	const char *const options[] = { "--devices", "2", "--vector-cores-per-device", "16", "--log-level", "error", more, NULL };

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

static uint32_t call(struct raw_client *client, Hccld__Control__Request *request)
{
	struct raw_reply reply;
	uint32_t cause;

	raw_call(client, request, &reply);
	snprintf(refusal, sizeof(refusal), "%s", reply.message->text);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

static uint32_t take(struct raw_client *client, uint64_t context, uint32_t stream, uint32_t count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores message = HCCLD__CONTROL__TAKE_CORES__INIT;

	message.context = context;
	message.stream = stream;
	message.count = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &message;
	return call(client, &request);
}

static uint32_t give(struct raw_client *client, uint64_t context, uint32_t stream)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GiveCores message = HCCLD__CONTROL__GIVE_CORES__INIT;

	message.context = context;
	message.stream = stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GIVE_CORES;
	request.give_cores = &message;
	return call(client, &request);
}

static uint32_t keep(struct raw_client *client, uint64_t context, uint32_t stream, uint32_t count, uint64_t holder)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__KeepCores message = HCCLD__CONTROL__KEEP_CORES__INIT;

	message.context = context;
	message.stream = stream;
	message.count = count;
	message.holder = holder;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KEEP_CORES;
	request.keep_cores = &message;
	return call(client, &request);
}

/* Those of a kernel whose stream has gone. */
static uint32_t give_kept(struct raw_client *client, uint64_t holder)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GiveCores message = HCCLD__CONTROL__GIVE_CORES__INIT;

	message.holder = holder;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GIVE_CORES;
	request.give_cores = &message;
	return call(client, &request);
}

/* Of both devices, as the list has it. */
static void check_used(uint32_t first, uint32_t second)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	struct raw_client tool;
	struct raw_reply reply;
	uint32_t held[2] = { 0 };

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	list.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_ge_uint(reply.message->list->n_resources, 2);
	check_eq_uint(reply.message->list->resources[0]->cores, first);
	check_eq_uint(reply.message->list->resources[0]->core_budget, BUDGET);
	check_eq_uint(reply.message->list->resources[1]->cores, second);
	for (size_t i = 2; i < reply.message->list->n_resources; i++)
		held[reply.message->list->resources[i]->device] += reply.message->list->resources[i]->cores;
	check_eq_uint(held[0], first);
	check_eq_uint(held[1], second);
	raw_reply_free(&reply);
	raw_client_stop(&tool);
}

/* As if kernels were queued in a stream: what holds cores without is taken for one that gives them back soon. */
static void queue_kernel(struct raw_client *client, uint32_t stream)
{
	struct stream_ring *ring = session_stream(client->region, stream);
	uint64_t tail = atomic_load(&ring->tail);

	memset(&ring->slots[tail % HCCLD_STREAM_SLOTS], 0, sizeof(ring->slots[0]));
	ring->slots[tail % HCCLD_STREAM_SLOTS].task =
		(struct task){ .kind = TASK_HOST, .flags = TASK_KERNEL, .slot_count = 1, .first_lane = LANE_END, .epoch = 4 };
	atomic_store(&ring->tail, tail + 1);
}

TEST(cores_are_counted_by_stream)
{
	struct raw_client client;
	uint64_t context, other;
	uint32_t one, two, elsewhere;

	start(NULL);
	join_in(&client);
	context = raw_open_context(&client, 0);
	other = raw_open_context(&client, 1);
	one = raw_create_stream(&client, context);
	two = raw_create_stream(&client, context);
	elsewhere = raw_create_stream(&client, other);
	check_eq_uint(take(&client, context, one, 4), 0);
	check_used(4, 0);
	/* the largest counts, not the sum; asked again it is what it was */
	check_eq_uint(take(&client, context, one, 10), 0);
	check_eq_uint(take(&client, context, one, 3), 0);
	check_eq_uint(take(&client, context, one, 10), 0);
	check_used(10, 0);
	check_eq_uint(take(&client, context, two, 6), 0);
	check_eq_uint(take(&client, other, elsewhere, BUDGET), 0);
	check_used(16, 16);
	check_eq_uint(give(&client, context, one), 0);
	check_eq_uint(give(&client, context, one), 0);
	check_used(6, 16);
	raw_destroy_stream(&client, two);
	check_used(0, 16);
	raw_close_context(&client, other);
	check_used(0, 0);
	check_eq_uint(take(&client, context, one, BUDGET), 0);
	raw_client_stop(&client);
	stop();
}

TEST(cores_are_refused)
{
	struct raw_client client, second;
	uint64_t context, other, theirs, since;
	uint32_t one, two, elsewhere, stream;
	char text[100];

	start(NULL);
	join_in(&client);
	context = raw_open_context(&client, 0);
	other = raw_open_context(&client, 1);
	one = raw_create_stream(&client, context);
	two = raw_create_stream(&client, context);
	elsewhere = raw_create_stream(&client, other);
	check_eq_uint(take(&client, context, one, 0), CAUSE_ARGUMENT);
	check_str_contains(refusal, "at least one block");
	check_eq_uint(take(&client, context, elsewhere, 1), CAUSE_BAD_HANDLE);
	check_str_contains(refusal, "no such stream");
	check_eq_uint(take(&client, context, two + 20, 1), CAUSE_BAD_HANDLE);
	check_eq_uint(take(&client, context, UINT32_MAX, 1), CAUSE_BAD_HANDLE);
	check_eq_uint(take(&client, context + 1, one, 1), CAUSE_BAD_HANDLE);
	check_eq_uint(give(&client, other, one), CAUSE_BAD_HANDLE);
	check_eq_uint(give(&client, context, UINT32_MAX), CAUSE_BAD_HANDLE);
	check_eq_uint(take(&client, context, one, BUDGET + 1), CAUSE_ARGUMENT);
	check_str_contains(refusal, "a host kernel of 17 blocks: device 0 has 16 vector cores, and can never run it");
	check_eq_uint(take(&client, context, one, UINT32_MAX), CAUSE_ARGUMENT);
	check_used(0, 0);

	check_eq_uint(take(&client, context, one, 9), 0);
	queue_kernel(&client, one);
	join_in(&second);
	theirs = raw_open_context(&second, 0);
	stream = raw_create_stream(&second, theirs);
	since = clock_now_ns();
	check_eq_uint(take(&second, theirs, stream, 8), CAUSE_CORES);
	check_lt_uint(clock_now_ns() - since, 400000000u * test_timeout_scale());
	snprintf(text, sizeof(text), "device 0 has 16 vector cores, of which 9 are in use; pid %d (", (int)getpid());
	check_str_contains(refusal, text);
	check_str_contains(refusal, ": 9; wait until they have ended, use fewer blocks, or raise [devices] vector_cores_per_device");
	check_eq_uint(take(&client, context, two, 8), CAUSE_CORES);
	check_eq_uint(take(&client, context, one, BUDGET), 0);
	/* nothing is left of what was refused */
	check_used(16, 0);
	/* the end of a process frees all */
	raw_client_stop(&client);
	check_eq_uint(take(&second, theirs, stream, BUDGET), 0);
	check_used(16, 0);
	raw_client_stop(&second);
	stop();
}

/* A stream that has no kernel queued gives its cores back soon: who wants them waits that long. */
TEST(cores_that_are_about_to_be_free_are_waited_for)
{
	struct raw_client client, second;
	uint64_t context, theirs, id;
	uint32_t stream, other;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores message = HCCLD__CONTROL__TAKE_CORES__INIT;
	struct raw_reply reply;

	start(NULL);
	join_in(&client);
	join_in(&second);
	context = raw_open_context(&client, 0);
	stream = raw_create_stream(&client, context);
	theirs = raw_open_context(&second, 0);
	other = raw_create_stream(&second, theirs);
	check_eq_uint(take(&client, context, stream, 9), 0);
	message.context = theirs;
	message.stream = other;
	message.count = BUDGET;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &message;
	id = raw_send(&second, &request);
	usleep(100000);
	check_eq_uint(give(&client, context, stream), 0);
	check_eq_int(raw_receive(&second, &reply), 0);
	check_eq_uint(reply.message->id, id);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	check_used(16, 0);
	/* one that does not */
	check_eq_uint(take(&client, context, stream, 1), CAUSE_CORES);
	raw_client_stop(&client);
	raw_client_stop(&second);
	stop();
}

/* Many requests wait for what many streams hold that have queues and no kernel. */
#define WAITING 60
#define MANY 256u

static void hold_all(struct raw_client *client)
{
	uint64_t context = raw_open_context(client, 0);

	for (uint32_t i = 0; i < MANY; i++) {
		uint32_t stream = raw_create_stream(client, context);
		struct stream_ring *ring = session_stream(client->region, stream);

		check_eq_uint(take(client, context, stream, 1), 0);
		for (uint32_t slot = 0; slot < 60; slot++)
			ring->slots[slot].task = (struct task){ .kind = TASK_HOST, .slot_count = 1, .first_lane = LANE_END };
		atomic_store(&ring->tail, 60);
	}
}

static void wait_for_all(struct raw_client *client)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores message = HCCLD__CONTROL__TAKE_CORES__INIT;

	message.context = raw_open_context(client, 0);
	message.stream = raw_create_stream(client, message.context);
	message.count = MANY;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &message;
	for (int i = 0; i < WAITING; i++)
		raw_send(client, &request);
}

/* That the daemon's control thread has had a core. */
static uint64_t control_ns(void)
{
	unsigned long long ns = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)private_daemon.pid, (int)private_daemon.pid);
	file = fopen(path, "r");
	check_ptr(file);
	check_eq_int(fscanf(file, "%llu", &ns), 1);
	fclose(file);
	return ns;
}

/* Who takes and gives as fast as it can makes the daemon do nothing for those who wait for more than there is. */
TEST(requests_that_wait_for_cores_cost_a_give_nothing)
{
	const char *const options[] = { "--devices", "2", "--vector-cores-per-device", "256", "--log-level", "error", NULL };
	struct raw_client holder, waiter, client;
	uint64_t context, since;
	uint32_t stream;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	join_in(&holder);
	join_in(&waiter);
	join_in(&client);
	context = raw_open_context(&client, 1);
	stream = raw_create_stream(&client, context);
	hold_all(&holder);
	wait_for_all(&waiter);
	usleep(10000);
	since = control_ns();
	for (int i = 0; i < 300; i++) {
		check_eq_uint(take(&client, context, stream, 1), 0);
		check_eq_uint(give(&client, context, stream), 0);
	}
	check_lt_uint(control_ns() - since, 120000000u * test_timeout_scale());
	/* none is lost */
	for (int i = 0; i < WAITING; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&waiter, &reply), 0);
		check_eq_uint(reply.message->cause, CAUSE_CORES);
		raw_reply_free(&reply);
	}
	raw_client_stop(&holder);
	raw_client_stop(&waiter);
	raw_client_stop(&client);
	stop();
}

/* The first that fits is done, whatever waits before it. */
TEST(cores_that_are_given_back_go_to_a_request_that_they_are_enough_for)
{
	struct raw_client holder, large, small;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores message = HCCLD__CONTROL__TAKE_CORES__INIT;
	uint64_t context;
	uint32_t one, two;
	struct raw_reply reply;

	start(NULL);
	join_in(&holder);
	join_in(&large);
	join_in(&small);
	context = raw_open_context(&holder, 0);
	one = raw_create_stream(&holder, context);
	two = raw_create_stream(&holder, context);
	check_eq_uint(take(&holder, context, one, 4), 0);
	check_eq_uint(take(&holder, context, two, BUDGET - 4), 0);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &message;
	message.context = raw_open_context(&large, 0);
	message.stream = raw_create_stream(&large, message.context);
	message.count = BUDGET;
	raw_send(&large, &request);
	message.context = raw_open_context(&small, 0);
	message.stream = raw_create_stream(&small, message.context);
	message.count = 3;
	raw_send(&small, &request);
	check_eq_uint(give(&holder, context, one), 0);
	check_eq_int(raw_receive(&small, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	check_used(BUDGET - 1, 0);
	check_eq_int(raw_receive(&large, &reply), 0);
	check_eq_uint(reply.message->cause, CAUSE_CORES);
	raw_reply_free(&reply);
	raw_client_stop(&holder);
	raw_client_stop(&large);
	raw_client_stop(&small);
	stop();
}

TEST(cores_survive_a_restart)
{
	struct raw_client client;
	uint64_t context;
	uint32_t one, two;

	start("--keeper");
	join_in(&client);
	context = raw_open_context(&client, 1);
	one = raw_create_stream(&client, context);
	two = raw_create_stream(&client, context);
	check_eq_uint(take(&client, context, one, 3), 0);
	check_eq_uint(take(&client, context, one, 9), 0);
	check_eq_uint(take(&client, context, two, 5), 0);
	check_eq_uint(give(&client, context, two), 0);
	check_eq_uint(take(&client, context, two, 2), 0);
	worker_kill(private_daemon.pid);
	/* asked again, as the library does that had no answer */
	check_eq_uint(take(&client, context, one, 9), 0);
	check_used(0, 11);
	queue_kernel(&client, one);
	check_eq_uint(take(&client, context, two, 8), CAUSE_CORES);
	check_eq_uint(give(&client, context, two), 0);
	raw_destroy_stream(&client, one);
	check_used(0, 0);
	raw_client_stop(&client);
	stop();
}

TEST(cores_of_a_kernel_outlive_its_stream)
{
	struct raw_client client, second;
	uint64_t context, other;
	uint32_t one, two;

	start(NULL);
	join_in(&client);
	join_in(&second);
	context = raw_open_context(&client, 0);
	other = raw_open_context(&client, 1);
	one = raw_create_stream(&client, context);
	two = raw_create_stream(&client, other);
	check_eq_uint(keep(&client, context, one, 1, 7), CAUSE_ARGUMENT);
	check_eq_uint(take(&client, context, one, 10), 0);
	check_eq_uint(take(&client, other, two, 6), 0);
	check_eq_uint(keep(&client, context, one, 3, 0), CAUSE_ARGUMENT);
	check_eq_uint(keep(&client, context, one, 0, 7), CAUSE_ARGUMENT);
	check_eq_uint(keep(&client, context, one, 11, 7), CAUSE_ARGUMENT);
	check_eq_uint(keep(&client, context, two, 3, 7), CAUSE_BAD_HANDLE);
	check_used(10, 6);
	/* what it does not keep is free, and comes back by another request */
	check_eq_uint(keep(&client, context, one, 3, 7), 0);
	check_used(3, 6);
	check_eq_uint(keep(&client, context, one, 3, 7), 0);
	check_eq_uint(give(&client, context, one), 0);
	check_eq_uint(take(&client, context, one, BUDGET - 2), CAUSE_CORES);
	check_str_contains(refusal, ": 3 (3 by kernels that still run, their stream has gone)");
	check_eq_uint(take(&client, context, one, BUDGET - 3), 0);
	check_eq_uint(keep(&client, context, one, 2, 8), 0);
	raw_destroy_stream(&client, one);
	check_used(5, 6);
	check_eq_uint(keep(&client, other, two, 4, 9), 0);
	raw_close_context(&client, other);
	check_used(5, 4);
	/* names are each session's own; whoever has none gives nothing */
	check_eq_uint(give_kept(&second, 7), 0);
	check_used(5, 4);
	check_eq_uint(give_kept(&client, 7), 0);
	check_eq_uint(give_kept(&client, 7), 0);
	check_used(2, 4);
	raw_client_stop(&client);
	other = raw_open_context(&second, 0);
	check_eq_uint(take(&second, other, raw_create_stream(&second, other), BUDGET), 0);
	check_used(16, 0);
	raw_client_stop(&second);
	stop();
}

TEST(cores_of_a_kernel_without_a_stream_survive_a_restart)
{
	struct raw_client client;
	uint64_t context;
	uint32_t one, two;

	start("--keeper");
	join_in(&client);
	context = raw_open_context(&client, 1);
	one = raw_create_stream(&client, context);
	two = raw_create_stream(&client, context);
	check_eq_uint(take(&client, context, one, 9), 0);
	check_eq_uint(take(&client, context, two, 5), 0);
	check_eq_uint(keep(&client, context, one, 4, 1), 0);
	worker_kill(private_daemon.pid);
	/* asked again */
	check_eq_uint(keep(&client, context, one, 4, 1), 0);
	check_used(0, 9);
	raw_destroy_stream(&client, one);
	check_eq_uint(keep(&client, context, two, 5, 2), 0);
	raw_close_context(&client, context);
	worker_kill(private_daemon.pid);
	check_used(0, 9);
	check_eq_uint(give_kept(&client, 1), 0);
	check_used(0, 5);
	raw_client_stop(&client);
	for (int i = 0; i < 2; i++) {
		join_in(&client);
		context = raw_open_context(&client, 1);
		check_eq_uint(take(&client, context, raw_create_stream(&client, context), BUDGET), 0);
		raw_client_stop(&client);
	}
	stop();
}
