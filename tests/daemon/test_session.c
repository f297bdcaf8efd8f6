/* SPDX-License-Identifier: Apache-2.0 */
/* The first message, and messages that should not be. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;

static void start(void)
{
	check_eq_int(private_daemon_start(&private_daemon, NULL, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

static void hello(struct raw_client *client, uint32_t magic, uint32_t low, uint32_t high)
{
	Hccld__Control__Hello message = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.magic = magic;
	message.version_low = low;
	message.version_high = high;
	message.library = "9.9";
	message.process = "p";
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &message;
	raw_send(client, &request);
}

static void check_hung_up(struct raw_client *client)
{
	struct raw_reply reply;

	check_eq_int(raw_receive(client, &reply), -ECONNRESET);
	close(client->fd);
}

TEST(hello_gives_a_session)
{
	struct raw_client client, other;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	/* all processes of a tenant can write there: the next one finds what it needs all the same */
	client.yard->magic = client.yard->version = 0;
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_ne_uint(client.session, 0);
	check_ne_uint(client.session, other.session);
	check_eq_uint(client.device_count, 8);
	check_eq_uint(((struct session_region *)client.region)->magic, SESSION_MAGIC);
	check_eq_uint(other.yard->magic, YARD_MAGIC);
	check_eq_uint(other.yard->version, YARD_VERSION);
	check_eq_uint(client.beacon->incarnation, 1);
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

TEST(versions_without_overlap_are_refused_in_words)
{
	struct raw_client client = { .fd = -1 };
	struct raw_reply reply;

	start();
	client.fd = raw_connect();
	hello(&client, HCCLD_MAGIC, HCCLD_VERSION_HIGH + 1, HCCLD_VERSION_HIGH + 3);
	check_eq_int(raw_receive(&client, &reply), 0);
	check_eq_uint(reply.message->cause, CAUSE_VERSION);
	check_str_contains(reply.message->text, "libhccld 9.9 speaks protocol 2 to 4");
	check_str_contains(reply.message->text, "hccld is too old");
	raw_reply_free(&reply);
	hello(&client, HCCLD_MAGIC, 0, HCCLD_VERSION_LOW - 1);
	check_eq_int(raw_receive(&client, &reply), 0);
	check_eq_uint(reply.message->cause, CAUSE_VERSION);
	check_str_contains(reply.message->text, "the program's libhccld is too old");
	raw_reply_free(&reply);
	close(client.fd);
	stop();
}

TEST(garbage_ends_its_session_and_no_other)
{
	struct raw_client good, bad = { .fd = -1 };
	static const char garbage[] = "\xff\xff\xff\xff garbage";

	start();
	raw_client_start(&good, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	bad.fd = raw_connect();
	check_eq_int(send(bad.fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	check_hung_up(&bad);
	bad.fd = raw_connect();
	hello(&bad, 12345, 1, 1);
	check_hung_up(&bad);
	raw_client_start(&bad, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_int(send(bad.fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	check_eq_int(packet_receive(bad.fd, &(struct packet){ 0 }, 0), -ECONNRESET);
	raw_client_stop(&bad);
	raw_open_context(&good, 0);
	raw_client_stop(&good);
	stop();
}

TEST(messages_out_of_order_end_the_session)
{
	struct raw_client client = { .fd = -1 };
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	start();
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	/* before HELLO */
	client.fd = raw_connect();
	raw_send(&client, &request);
	check_hung_up(&client);
	/* a tool has no contexts */
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	raw_send(&client, &request);
	check_hung_up(&client);
	/* HELLO twice */
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	hello(&client, HCCLD_MAGIC, 1, 1);
	check_hung_up(&client);
	stop();
}

TEST(requests_of_a_newer_library_are_answered)
{
	struct raw_client client;
	struct raw_reply reply;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_UNBUILT);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	stop();
}

/* A client that asks and never reads is ended when its replies pile up. */
TEST(replies_that_nobody_reads_have_a_bound)
{
	struct raw_client lazy, good;
	Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	int r = 0, sent = 0;

	start();
	raw_client_start(&lazy, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	raw_client_start(&good, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	/*
	 * its requests are not read while its replies wait: at some time the socket takes no more
	 */
	while (r == 0 && sent++ < 100000)
		r = packet_send(lazy.fd, &request.base, NULL, 0, MSG_DONTWAIT);
	check_eq_int(r, -EAGAIN);
	raw_open_context(&good, 1);
	/* and all that were asked are answered once it reads */
	for (int i = 0; i < sent - 1; i++) {
		struct raw_reply reply;

		check_eq_int(raw_receive(&lazy, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
	raw_client_stop(&lazy);
	raw_client_stop(&good);
	stop();
}

TEST(numbers_out_of_range_are_refused)
{
	struct raw_client client;
	struct raw_reply reply;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	Hccld__Control__DestroyStream destroy = HCCLD__CONTROL__DESTROY_STREAM__INIT;
	Hccld__Control__FreeSegment free_segment = HCCLD__CONTROL__FREE_SEGMENT__INIT;
	Hccld__Control__LeaveComm leave = HCCLD__CONTROL__LEAVE_COMM__INIT;
	static const uint64_t numbers[] = { 0,	     1,		 0xffff,	0x10000,
					    0x1ffff, UINT64_MAX, UINT64_MAX - 1 };

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	open.device = 8;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_NO_DEVICE);
	check_str_contains(reply.message->text, "8 devices");
	raw_reply_free(&reply);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		destroy.stream = (uint32_t)numbers[i];
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM;
		request.destroy_stream = &destroy;
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
		free_segment.segment = numbers[i];
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
		request.free_segment = &free_segment;
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
		leave.rank = numbers[i];
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_LEAVE_COMM;
		request.leave_comm = &leave;
		raw_call(&client, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_BAD_HANDLE);
		raw_reply_free(&reply);
	}
	raw_client_stop(&client);
	stop();
}

/* All places of a session, and what comes after them. */
TEST(streams_have_a_limit)
{
	struct raw_client client;
	struct raw_reply reply;
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	create.context = raw_open_context(&client, 0);
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++)
		check_eq_uint(raw_create_stream(&client, create.context), i);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_STREAMS);
	check_str_contains(reply.message->text, "1024 streams");
	raw_reply_free(&reply);
	raw_destroy_stream(&client, 77);
	check_eq_uint(raw_create_stream(&client, create.context), 77);
	raw_close_context(&client, create.context);
	raw_client_stop(&client);
	stop();
}

/*
 * A daemon at @socket until it has said that it serves. Not by timeout(1): that sends SIGCONT, too, and LeakSanitizer, which stops all threads at the
 * end, then waits for one of them for ever.
 */
static void serve_and_stop(const char *binary, const char *socket)
{
	char line[512];
	int fds[2], status;
	FILE *output;
	pid_t pid;

	check_eq_int(pipe(fds), 0);
	pid = fork();
	check_ge_int(pid, 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execl(binary, binary, "--no-keeper", "--socket", socket, NULL);
		_exit(127);
	}
	close(fds[1]);
	output = fdopen(fds[0], "r");
	check_ptr(output);
	do
		check_ptr(fgets(line, sizeof(line), output));
	while (!strstr(line, "serves"));
	check_eq_int(kill(pid, SIGTERM), 0);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	fclose(output);
}

TEST(a_living_daemon_is_not_replaced_a_dead_ones_socket_is)
{
	char command[512];
	const char *binary = getenv("HCCLD_BINARY");
	struct stat st;

	start();
	snprintf(command, sizeof(command),
		 "%s --no-keeper --socket %s 2>&1 | grep -q 'another hccld serves'", binary,
		 private_daemon.socket);
	check_eq_int(system(command), 0);
	check_eq_int(stat(private_daemon.socket, &st), 0);
	private_daemon_kill(&private_daemon);
	check_eq_int(stat(private_daemon.socket, &st), 0);
	serve_and_stop(binary, private_daemon.socket);
	/* removed when it is stopped */
	check_eq_int(stat(private_daemon.socket, &st), -1);
	private_daemon_stop(&private_daemon);
}
