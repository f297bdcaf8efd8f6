/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's process is killed and comes back with everything. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/region.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

static struct private_daemon private_daemon;

static void start(void)
{
	static const char *const options[] = { "--keeper", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* The worker's pid, and of it what Status says. */
static pid_t status_pid(uint32_t *ret_sessions, uint32_t *ret_comms, uint32_t *ret_incarnation)
{
	struct raw_reply reply;
	pid_t pid;

	raw_status(&reply);
	pid = (pid_t)reply.message->status->pid;
	*ret_sessions = reply.message->status->sessions;
	*ret_comms = reply.message->status->comms;
	*ret_incarnation = reply.message->status->incarnation;
	raw_reply_free(&reply);
	return pid;
}

/* Kills the worker and waits until the next one serves. */
static void kill_worker(void)
{
	uint32_t sessions, comms, before, after;
	pid_t pid = status_pid(&sessions, &comms, &before), next;

	check_eq_int(kill(pid, SIGKILL), 0);
	/* the socket is the same: this waits in its backlog */
	next = status_pid(&sessions, &comms, &after);
	check_ne_int(next, pid);
	check_eq_uint(after, before + 1);
}

/* Two clients with one rank each, and what the first has beside. */
struct pair_of_clients {
	struct raw_client clients[2];
	const struct comm_region *region;
	uint64_t contexts[2], handles[2], segment;
	uint32_t stream;
	unsigned char *memory;
};

static void pair_start(struct pair_of_clients *pair)
{
	struct raw_reply reply;
	struct raw_root root;

	for (uint32_t i = 0; i < 2; i++) {
		raw_client_start(&pair->clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		pair->contexts[i] = raw_open_context(&pair->clients[i], i);
	}
	pair->stream = raw_create_stream(&pair->clients[0], pair->contexts[0]);
	pair->segment =
		raw_allocate(&pair->clients[0], pair->contexts[0], 4 << 20, (void **)&pair->memory);
	memset(pair->memory, 0x5a, 4 << 20);
	raw_root_info(&pair->clients[0], &root);
	for (uint32_t i = 0; i < 2; i++)
		raw_join_send(&pair->clients[i], &root, i, 2, pair->contexts[i], 10000);
	for (uint32_t i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&pair->clients[i], &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		pair->handles[i] = reply.message->join_comm->rank;
		if (i == 0)
			pair->region = mmap(NULL, comm_region_size(2), PROT_READ, MAP_SHARED,
					    reply.packet.fds[0], 0);
		raw_reply_free(&reply);
	}
	check(pair->region != MAP_FAILED);
	raw_open_pair(&pair->clients[0], pair->handles[0], 1);
}

static void pair_stop(struct pair_of_clients *pair)
{
	munmap(pair->memory, 4 << 20);
	munmap((void *)pair->region, comm_region_size(2));
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&pair->clients[i]);
}

/* Everything can go on: no id is given twice, what was there is known. */
static void pair_use(struct pair_of_clients *pair)
{
	struct raw_client *first = &pair->clients[0], *second = &pair->clients[1];
	uint64_t again;

	again = raw_allocate(first, pair->contexts[0], 4096, NULL);
	check_gt_uint(again >> 16, pair->segment >> 16);
	check_eq_uint(raw_open_context(first, 0), pair->contexts[0]);
	raw_open_pair(second, pair->handles[1], 0);
	check_eq_uint(comm_region_directory((struct comm_region *)pair->region, 2)[2], 2);
	check_ne_uint(raw_create_stream(first, pair->contexts[0]), pair->stream);
	raw_leave(second, pair->handles[1]);
	check_eq_uint(pair->region->members[1].word, MEMBER_LEFT);
	raw_free(first, pair->segment);
	check_eq_uint(pair->memory[12345], 0);
	raw_destroy_stream(first, pair->stream);
}

TEST_TIMEOUT(sessions_survive_a_kill, 60)
{
	struct pair_of_clients pair;
	struct raw_client client;
	uint32_t sessions, comms, incarnation;

	start();
	pair_start(&pair);
	check_eq_uint(pair.clients[0].beacon->contexts, 2);
	kill_worker();
	check_eq_uint(pair.clients[0].beacon->incarnation, 2);
	status_pid(&sessions, &comms, &incarnation);
	check_eq_uint(sessions, 2);
	check_eq_uint(comms, 1);
	check_eq_uint(pair.clients[0].beacon->contexts, 2);
	check_eq_uint(pair.memory[12345], 0x5a);
	check_eq_uint(pair.region->members[0].word, MEMBER_ALIVE);
	pair_use(&pair);
	/* frees that come again because their reply was lost are no error */
	kill_worker();
	raw_free(&pair.clients[0], pair.segment);
	raw_leave(&pair.clients[1], pair.handles[1]);
	raw_destroy_stream(&pair.clients[0], pair.stream);
	pair_stop(&pair);
	usleep(400000);
	status_pid(&sessions, &comms, &incarnation);
	check_eq_uint(sessions, 0);
	check_eq_uint(comms, 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_uint(client.beacon->contexts, 0);
	raw_client_stop(&client);
	stop();
}

/* The first copy waits in the socket while no daemon runs, the second is sent because that takes long: it is one stream. */
TEST_TIMEOUT(a_request_that_was_in_the_socket_is_done_once, 60)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	uint32_t sessions, comms, incarnation;
	struct raw_client client;
	struct raw_reply reply;
	uint64_t id;
	pid_t pid;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	create.context = raw_open_context(&client, 0);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	pid = status_pid(&sessions, &comms, &incarnation);
	check_eq_int(kill(pid, SIGSTOP), 0);
	raw_send(&client, &request);
	client.next_id--;
	id = raw_send(&client, &request);
	raw_send(&client, &request);
	check_eq_int(kill(pid, SIGKILL), 0);
	for (int i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		check_eq_uint(reply.message->id, id + (uint64_t)i);
		raw_reply_free(&reply);
	}
	raw_client_stop(&client);
	stop();
}

/* A request without reply is sent again, as it was. */
TEST_TIMEOUT(a_join_that_was_cut_off_is_sent_again, 60)
{
	struct raw_client clients[2];
	struct raw_reply reply;
	struct raw_root root;
	uint64_t contexts[2], handle;

	start();
	for (uint32_t i = 0; i < 2; i++) {
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		contexts[i] = raw_open_context(&clients[i], i);
	}
	raw_root_info(&clients[0], &root);
	raw_join_send(&clients[0], &root, 0, 2, contexts[0], 10000);
	usleep(50000);
	kill_worker();
	clients[0].next_id--;
	raw_join_send(&clients[0], &root, 0, 2, contexts[0], 10000);
	raw_join_send(&clients[1], &root, 1, 2, contexts[1], 10000);
	for (uint32_t i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&clients[i], &reply), 0);
		check_msg(reply.message->cause == 0, "%s", reply.message->text);
		handle = reply.message->join_comm->rank;
		raw_reply_free(&reply);
	}
	/* also when only the reply was lost */
	kill_worker();
	clients[1].next_id--;
	raw_join_send(&clients[1], &root, 1, 2, contexts[1], 10000);
	check_eq_int(raw_receive(&clients[1], &reply), 0);
	check_msg(reply.message->cause == 0, "%s", reply.message->text);
	check_eq_uint(reply.message->join_comm->rank, handle);
	raw_reply_free(&reply);
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&clients[i]);
	stop();
}

/* A client that dies while no worker runs. */
TEST_TIMEOUT(deaths_in_between_are_found, 60)
{
	uint32_t sessions, comms, incarnation;
	const struct comm_region *region;
	struct raw_client client;
	pid_t child, worker;
	int status;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	child = raw_fork_rank(&client, -1, &region);
	worker = status_pid(&sessions, &comms, &incarnation);
	/* stopped, the worker notices nothing */
	kill(worker, SIGSTOP);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	kill(worker, SIGKILL);
	for (unsigned tries = 0; tries < 4 * 200 * test_timeout_scale() && region->members[1].word == MEMBER_ALIVE; tries++)
		usleep(20000);
	check_eq_uint(region->members[1].word, MEMBER_DEAD);
	check_eq_int(region->members[1].exit, SIGKILL);
	raw_rank_region_free(region);
	raw_client_stop(&client);
	stop();
}

/* What both sides have said in HELLO: the next worker sends what the client knows, and no more. */
TEST_TIMEOUT(features_outlive_the_worker, 60)
{
	struct raw_client with, without;
	struct raw_reply reply;

	start();
	raw_client_start_with(&with, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	raw_client_start(&without, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	kill_worker();
	raw_kill_session(with.session);
	check_eq_int(raw_receive(&with, &reply), 0);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_FAREWELL);
	raw_reply_free(&reply);
	check_eq_int(raw_receive(&with, &reply), -ECONNRESET);
	raw_kill_session(without.session);
	check_eq_int(raw_receive(&without, &reply), -ECONNRESET);
	raw_client_stop(&with);
	raw_client_stop(&without);
	stop();
}

/* Fewer devices in the file are for a start without sessions: a crash is no time to take them away. */
TEST(sessions_keep_their_devices)
{
	static const char *const options[] = { "--keeper", NULL };
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;
	char path[128];
	FILE *file;

	check_eq_int(private_daemon_start(&private_daemon, options, "[devices]\ndevices = 4\n"), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 2);
	snprintf(path, sizeof(path), "%s/hccld.conf", private_daemon.directory);
	file = fopen(path, "we");
	check_ptr(file);
	fputs("[devices]\ndevices = 2\n", file);
	fclose(file);
	kill_worker();
	raw_allocate(&client, context, 4096, NULL);
	raw_status(&reply);
	/* 3 are needed: the last one goes */
	check_eq_uint(reply.message->status->n_devices, 3);
	check_eq_uint(reply.message->status->sessions, 1);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	for (unsigned tries = 0;; tries++) {
		uint32_t sessions, comms, incarnation;

		status_pid(&sessions, &comms, &incarnation);
		if (!sessions)
			break;
		check(tries < 250 * test_timeout_scale());
		usleep(20000);
	}
	kill_worker();
	raw_status(&reply);
	check_eq_uint(reply.message->status->n_devices, 2);
	raw_reply_free(&reply);
	stop();
}

/* Soon: the keeper does that when it has found its worker dead. */
static void check_socket_goes(void)
{
	struct stat st;

	for (unsigned tries = 0; tries < 250 * test_timeout_scale() && stat(private_daemon.socket, &st) == 0; tries++)
		usleep(20000);
	check_eq_int(stat(private_daemon.socket, &st), -1);
}

/* The keeper stops with its worker, and takes the socket along. */
TEST(stopping_the_keeper_stops_the_worker)
{
	uint32_t sessions, comms, incarnation;
	pid_t worker;

	start();
	worker = status_pid(&sessions, &comms, &incarnation);
	check_ne_int(worker, private_daemon.pid);
	check_eq_int(kill(private_daemon.pid, SIGTERM), 0);
	for (unsigned tries = 0; tries < 250 * test_timeout_scale() && kill(worker, 0) == 0; tries++)
		usleep(20000);
	check_eq_int(kill(worker, 0), -1);
	check_socket_goes();
	stop();
}

/* As on request: it cleans up. (It may stay a zombie here, so its pid tells nothing.) */
TEST(a_killed_keeper_takes_the_worker_along)
{
	uint32_t sessions, comms, incarnation;

	start();
	check_ne_int(status_pid(&sessions, &comms, &incarnation), private_daemon.pid);
	private_daemon_kill(&private_daemon);
	check_socket_goes();
	private_daemon_stop(&private_daemon);
}

/* Three quick deaths in a row: the registry is given up, the daemon serves. */
TEST_TIMEOUT(a_registry_that_kills_is_dropped, 60)
{
	struct raw_client client;
	struct raw_reply reply;
	uint32_t sessions, comms, incarnation;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (int i = 0; i < 3; i++) {
		pid_t pid = status_pid(&sessions, &comms, &incarnation);

		check_eq_uint(sessions, 1);
		check_eq_int(kill(pid, SIGKILL), 0);
	}
	status_pid(&sessions, &comms, &incarnation);
	check_eq_uint(sessions, 0);
	check_eq_int(raw_receive(&client, &reply), -ECONNRESET);
	raw_client_stop(&client);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&client);
	stop();
}

/*
 * Descriptors are the worker's and the keeper's; nothing that they start or that is a client gets
 * one.
 */
TEST(strangers_cannot_talk_to_the_keeper)
{
	char line[256], address[128] = "";
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	static const char *const messages[] = { "READY=1", "FDSTOREREMOVE=1\nFDNAME=registry",
						"FDSTORE=1\nFDNAME=listen", "\n\n\n=\n",
						"FDNAME=" };
	uint32_t sessions, comms, incarnation;
	struct raw_client client;
	FILE *sockets;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	/* every abstract datagram address of five digits may be a keeper's; ours is among them */
	sockets = fopen("/proc/net/unix", "re");
	check_ptr(sockets);
	while (fgets(line, sizeof(line), sockets)) {
		if (sscanf(line, "%*s %*s %*s %*s 0002 %*s %*s @%127s", address) != 1 ||
		    strlen(address) != 5)
			continue;
		memcpy(name.sun_path + 1, address, 5);
		for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
			sendto(fd, messages[i], strlen(messages[i]), MSG_DONTWAIT,
			       (struct sockaddr *)&name, sizeof(sa_family_t) + 6);
	}
	fclose(sockets);
	check_ne_str(address, "");
	close(fd);
	usleep(50000);
	kill_worker();
	status_pid(&sessions, &comms, &incarnation);
	check_eq_uint(sessions, 1);
	raw_client_stop(&client);
	stop();
}
