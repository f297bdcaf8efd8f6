/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of programs' own operators, by requests as they are on the wire: wrong ones, and what goes with what. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;

static void start(const char *config)
{
	const char *const options[] = { "--devices", "2", "--log-level", "error", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, config), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

struct wish {
	uint64_t context, rank;
	uint32_t engine, notifies, stream;
};

struct made {
	uint64_t thread, segment;
	uint32_t stream, first;
};

/* The cause; @text must be in what is said. */
static uint32_t create(struct raw_client *client, struct wish wish, const char *text, struct made *ret_made)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateThread message = HCCLD__CONTROL__CREATE_THREAD__INIT;
	struct raw_reply reply;
	uint32_t cause;

	message.context = wish.context;
	message.rank = wish.rank;
	message.engine = wish.engine;
	message.notify_count = wish.notifies;
	message.stream = wish.stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_THREAD;
	request.create_thread = &message;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	if (cause) {
		check_str_contains(reply.message->text, text ? text : "(none)");
	} else if (ret_made) {
		ret_made->thread = reply.message->create_thread->thread;
		ret_made->stream = reply.message->create_thread->stream;
		ret_made->segment = reply.message->create_thread->notify_segment;
		ret_made->first = reply.message->create_thread->first_notify;
	}
	raw_reply_free(&reply);
	return cause;
}

static uint32_t destroy(struct raw_client *client, uint64_t thread)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DestroyThread message = HCCLD__CONTROL__DESTROY_THREAD__INIT;
	struct raw_reply reply;
	uint32_t cause;

	message.thread = thread;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_THREAD;
	request.destroy_thread = &message;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

static uint32_t destroy_stream(struct raw_client *client, uint32_t stream)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DestroyStream message = HCCLD__CONTROL__DESTROY_STREAM__INIT;
	struct raw_reply reply;
	uint32_t cause;

	message.stream = stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM;
	request.destroy_stream = &message;
	raw_call(client, &request, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

/* How many threads a tool sees, page by page; *ret_notifies: of all. */
static uint32_t count(uint32_t *ret_notifies)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	uint32_t threads = 0, notifies = 0;
	struct raw_client tool;
	struct raw_reply reply;

	raw_client_start_with(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL, HCCLD_FEATURES);
	list.kind = HCCLD__CONTROL__LIST__KIND__THREADS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	do {
		raw_call(&tool, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		threads += (uint32_t)reply.message->list->n_threads;
		for (size_t i = 0; i < reply.message->list->n_threads; i++)
			notifies += reply.message->list->threads[i]->notify_count;
		list.after = reply.message->list->next;
		raw_reply_free(&reply);
	} while (list.after);
	raw_client_stop(&tool);
	if (ret_notifies)
		*ret_notifies = notifies;
	return threads;
}

static uint64_t join_alone(struct raw_client *client, uint64_t context)
{
	struct raw_reply reply;
	struct raw_root root;
	uint64_t rank;

	raw_root_info(client, &root);
	raw_join_send(client, &root, 0, 1, context, 0);
	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	rank = reply.message->join_comm->rank;
	raw_reply_free(&reply);
	return rank;
}

TEST(wrong_requests_for_threads_are_refused)
{
	struct raw_client client, other;
	uint64_t context, context2, rank;
	uint32_t stream;
	struct made made;

	start(NULL);
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	raw_client_start_with(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	context2 = raw_open_context(&client, 1);
	rank = join_alone(&client, context);
	stream = raw_create_stream(&client, context);
	check_eq_uint(create(&client, (struct wish){ .context = 77 }, "context is gone", NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(create(&other, (struct wish){ .context = context }, "context is gone", NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(create(&client, (struct wish){ .context = context, .rank = rank + 1 }, "no such rank", NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(create(&client, (struct wish){ .context = context2, .rank = rank }, "device of its communicator", NULL),
		      CAUSE_ARGUMENT);
	check_eq_uint(create(&client, (struct wish){ .context = context, .engine = 6 }, "engine 6", NULL), CAUSE_ARGUMENT);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 1025 }, "1025 notifies", NULL), CAUSE_ARGUMENT);
	check_eq_uint(create(&client, (struct wish){ .context = context, .stream = stream + 2 }, "no such stream", NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(create(&client, (struct wish){ .context = context2, .stream = stream + 1 }, "no such stream", NULL),
		      CAUSE_BAD_HANDLE);
	check_eq_uint(create(&client, (struct wish){ .context = context, .stream = UINT32_MAX }, "no such stream", NULL), CAUSE_BAD_HANDLE);
	check_eq_uint(count(NULL), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .rank = rank, .notifies = 3 }, NULL, &made), 0);
	check_ne_uint(made.segment, 0);
	check_eq_uint(destroy(&other, made.thread), CAUSE_NOT_FOUND);
	check_eq_uint(destroy(&client, made.thread + 1), CAUSE_NOT_FOUND);
	check_eq_uint(destroy(&client, 0), CAUSE_NOT_FOUND);
	check_eq_uint(count(NULL), 1);
	check_eq_uint(destroy(&client, made.thread), 0);
	check_eq_uint(destroy(&client, made.thread), CAUSE_NOT_FOUND);
	check_eq_uint(count(NULL), 0);
	raw_client_stop(&other);
	raw_client_stop(&client);
	stop();
}

TEST(a_thread_goes_with_what_it_is_made_of)
{
	struct made of_rank, alone, wrapped, twice, on_other;
	uint64_t context, rank;
	struct raw_client client;
	uint32_t stream, notifies;

	start(NULL);
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	rank = join_alone(&client, context);
	stream = raw_create_stream(&client, context);
	check_eq_uint(create(&client, (struct wish){ .context = context, .rank = rank, .notifies = 3 }, NULL, &of_rank), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 4 }, NULL, &alone), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .stream = stream + 1, .notifies = 5 }, NULL, &wrapped), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .rank = rank, .stream = stream + 1, .notifies = 6 }, NULL, &twice), 0);
	/* on the stream of another thread, of a rank that goes before it */
	check_eq_uint(create(&client, (struct wish){ .context = context, .stream = of_rank.stream + 1 }, NULL, &on_other), 0);
	check_eq_uint(wrapped.stream, stream);
	check_eq_uint(count(&notifies), 5);
	check_eq_uint(notifies, 18);
	raw_leave(&client, rank);
	check_eq_uint(count(&notifies), 2);
	check_eq_uint(notifies, 9);
	check_eq_uint(destroy_stream(&client, of_rank.stream), CAUSE_BAD_HANDLE);
	check_eq_uint(destroy(&client, on_other.thread), CAUSE_NOT_FOUND);
	raw_destroy_stream(&client, stream);
	check_eq_uint(count(&notifies), 1);
	check_eq_uint(destroy(&client, wrapped.thread), CAUSE_NOT_FOUND);
	/* a liar's own loss: the stream of a thread can be destroyed, and takes it along */
	raw_destroy_stream(&client, alone.stream);
	check_eq_uint(count(NULL), 0);
	for (int i = 0; i < 300; i++)
		check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = i % 2 }, NULL, &alone), 0);
	check_eq_uint(count(&notifies), 300);
	check_eq_uint(notifies, 150);
	raw_close_context(&client, context);
	check_eq_uint(count(NULL), 0);
	raw_client_stop(&client);
	stop();
}

TEST(threads_have_limits)
{
	uint64_t context;
	struct raw_client client;
	struct made made = { 0 };
	uint32_t stream;

	start("[limits]\nstreams_per_tenant = 2\nnotifies_per_tenant = 10\n");
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 11 }, "notifies_per_tenant", NULL), CAUSE_NOTIFIES);
	stream = raw_create_stream(&client, context);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 10 }, NULL, &made), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context }, "streams_per_tenant", NULL), CAUSE_STREAMS);
	check_eq_uint(destroy(&client, made.thread), 0);
	raw_destroy_stream(&client, stream);
	/* the notifies of a thread that could not have a stream are back */
	stream = raw_create_stream(&client, context);
	raw_create_stream(&client, context);
	for (int i = 0; i < 3; i++)
		check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 10 }, "streams_per_tenant", NULL), CAUSE_STREAMS);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 10, .stream = stream + 1 }, NULL, &made), 0);
	check_eq_uint(destroy(&client, made.thread), 0);
	/* threads that cost nothing else */
	for (uint32_t i = 0; i < HCCLD_THREADS_PER_SESSION; i++)
		check_eq_uint(create(&client, (struct wish){ .context = context, .stream = stream + 1 }, NULL, &made), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .stream = stream + 1 }, "4096 threads", NULL), CAUSE_LIMIT);
	check_eq_uint(count(NULL), HCCLD_THREADS_PER_SESSION);
	raw_destroy_stream(&client, stream);
	check_eq_uint(count(NULL), 0);
	raw_client_stop(&client);
	stop();
}

static void send_free(struct raw_client *client, uint64_t segment)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__FreeSegment message = HCCLD__CONTROL__FREE_SEGMENT__INIT;

	message.segment = segment;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
	request.free_segment = &message;
	raw_send(client, &request);
}

static void send_destroy(struct raw_client *client, uint64_t thread)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__DestroyThread message = HCCLD__CONTROL__DESTROY_THREAD__INIT;

	message.thread = thread;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_THREAD;
	request.destroy_thread = &message;
	raw_send(client, &request);
}

/* Replies that came before. */
static void kill_worker(struct raw_client *client)
{
	struct raw_reply reply;
	char bytes[64];
	pid_t pid;

	raw_status(&reply);
	pid = (pid_t)reply.message->status->pid;
	raw_reply_free(&reply);
	check_eq_int(kill(pid, SIGKILL), 0);
	raw_status(&reply);
	check_ne_int((pid_t)reply.message->status->pid, pid);
	raw_reply_free(&reply);
	while (recv(client->fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* Its notifies are closed, its stream is there still: freeing much memory holds up what the process asks for after that. */
TEST(a_thread_that_was_ending_over_a_restart_ends)
{
	static const char *const options[] = { "--devices", "2", "--keeper", "--log-level", "error", NULL };
	struct raw_client client;
	struct made made, other;
	uint64_t context, segment;
	uint32_t notifies;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	segment = raw_allocate(&client, context, 512u << 20, NULL);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 2 }, NULL, &made), 0);
	send_free(&client, segment);
	send_destroy(&client, made.thread);
	kill_worker(&client);
	/* its notifies are gone, it is not */
	kill_worker(&client);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 1 }, NULL, &other), 0);
	check_eq_uint(destroy(&client, made.thread), 0);
	check_eq_uint(count(&notifies), 1);
	check_eq_uint(notifies, 1);
	check_eq_uint(destroy(&client, other.thread), 0);
	raw_client_stop(&client);
	stop();
}

static void send_close(struct raw_client *client, uint64_t context)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CloseContext message = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;

	message.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
	request.close_context = &message;
	raw_send(client, &request);
}

/* The memory of its notifies is not restored, its stream is: no reason to end the session. */
TEST(a_context_that_was_closing_over_a_restart_is_closed)
{
	static const char *const options[] = { "--devices", "2", "--keeper", "--log-level", "error", NULL };
	struct raw_client client;
	uint64_t context, segment;
	uint32_t notifies;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	segment = raw_allocate(&client, context, 512u << 20, NULL);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 2 }, NULL, NULL), 0);
	send_free(&client, segment);
	send_close(&client, context);
	kill_worker(&client);
	raw_close_context(&client, context);
	context = raw_open_context(&client, 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 1 }, NULL, NULL), 0);
	check_eq_uint(count(&notifies), 1);
	check_eq_uint(notifies, 1);
	raw_client_stop(&client);
	stop();
}

static void take_cores(struct raw_client *client, uint64_t context, uint32_t stream, uint32_t cores)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores message = HCCLD__CONTROL__TAKE_CORES__INIT;
	struct raw_reply reply;

	message.context = context;
	message.stream = stream;
	message.count = cores;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &message;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
}

/* Notifies and cores of those who hold some, in the order of the list. */
static size_t holders(uint32_t notifies[4], uint32_t cores[4])
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	struct raw_client tool;
	struct raw_reply reply;
	size_t found = 0;

	list.kind = HCCLD__CONTROL__LIST__KIND__RESOURCES;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_client_start_with(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL, HCCLD_FEATURES);
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	for (size_t i = 0; i < reply.message->list->n_resources; i++) {
		const Hccld__Control__Resource *row = reply.message->list->resources[i];

		if (row->owner == HCCLD__CONTROL__RESOURCE__OWNER__DEVICE)
			continue;
		check_lt_uint(found, 4);
		notifies[found] = row->notifies;
		cores[found++] = row->cores;
	}
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	return found;
}

/* A stream has its cores once, however many threads are on it. */
TEST(threads_on_one_stream_have_its_cores_once)
{
	uint32_t notifies[4], cores[4];
	struct raw_client client;
	uint64_t context, one, two;
	uint32_t stream;

	start(NULL);
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	context = raw_open_context(&client, 0);
	one = join_alone(&client, context);
	two = join_alone(&client, context);
	stream = raw_create_stream(&client, context);
	for (int i = 0; i < 3; i++)
		check_eq_uint(create(&client, (struct wish){ .context = context, .rank = one, .notifies = 2, .stream = stream + 1 }, NULL, NULL), 0);
	check_eq_uint(create(&client, (struct wish){ .context = context, .rank = two, .notifies = 1 }, NULL, NULL), 0);
	take_cores(&client, context, stream, 5);
	check_eq_uint(holders(notifies, cores), 2);
	check_eq_uint(notifies[0], 6);
	check_eq_uint(cores[0], 5);
	check_eq_uint(notifies[1], 1);
	check_eq_uint(cores[1], 0);
	/* and what no rank has is its process's */
	check_eq_uint(create(&client, (struct wish){ .context = context, .notifies = 3 }, NULL, NULL), 0);
	take_cores(&client, context, raw_create_stream(&client, context), 7);
	check_eq_uint(holders(notifies, cores), 3);
	check_eq_uint(notifies[2], 3);
	check_eq_uint(cores[2], 7);
	raw_client_stop(&client);
	stop();
}
