/* SPDX-License-Identifier: Apache-2.0 */
/* A client that ends in any way leaves nothing behind. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/region.h"
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

static uint32_t daemon_fds(void)
{
	char path[64];
	uint32_t count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/fd", private_daemon.pid);
	directory = opendir(path);
	check_ptr(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Waits until nothing of any client is left. */
static void check_empty(uint32_t fds)
{
	struct raw_reply reply;
	const Hccld__Control__StatusReply *status = NULL;
	uint64_t used = 0;

	for (unsigned tries = 0; tries < 4 * 100 * test_timeout_scale(); tries++) {
		raw_status(&reply);
		status = reply.message->status;
		used = 0;
		for (size_t i = 0; i < status->n_devices; i++)
			used += status->devices[i]->memory_used + status->devices[i]->contexts +
				status->devices[i]->streams;
		if (!status->sessions && !status->comms && !status->streams && !used &&
		    daemon_fds() <= fds)
			break;
		raw_reply_free(&reply);
		usleep(50000);
	}
	check_eq_uint(status->sessions, 0);
	check_eq_uint(status->comms, 0);
	check_eq_uint(status->streams, 0);
	check_eq_uint(used, 0);
	check(status->healthy);
	raw_reply_free(&reply);
	usleep(50000);
	check_le_uint(daemon_fds(), fds);
}

/* A process with contexts, streams, memory, root infos, and two ranks of a communicator. */
static void use_everything(struct raw_client *client)
{
	struct raw_root root;
	struct raw_reply reply;
	uint64_t contexts[2], handle = 0;

	raw_client_start(client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (uint32_t i = 0; i < 2; i++) {
		contexts[i] = raw_open_context(client, i);
		for (int k = 0; k < 10; k++) {
			raw_create_stream(client, contexts[i]);
			raw_allocate(client, contexts[i], 4096u << k, NULL);
		}
	}
	raw_root_info(client, &root);
	raw_root_info(client, &root);
	raw_join_send(client, &root, 0, 2, contexts[0], 10000);
	raw_join_send(client, &root, 1, 2, contexts[1], 10000);
	for (int i = 0; i < 2; i++) {
		check_eq_int(raw_receive(client, &reply), 0);
		check_eq_uint(reply.message->cause, 0);
		handle = reply.message->join_comm->rank;
		raw_reply_free(&reply);
	}
	raw_open_pair(client, handle, 0);
	raw_open_pair(client, handle, 1);
	/* one that stays half-way */
	raw_root_info(client, &root);
	raw_join_send(client, &root, 1, 2, contexts[1], 10000);
}

TEST(closing_the_socket_frees_everything)
{
	struct raw_client client;
	uint32_t fds;

	start();
	/* the yard of this user stays */
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&client);
	usleep(400000);
	fds = daemon_fds();
	for (int i = 0; i < 10; i++) {
		use_everything(&client);
		raw_client_stop(&client);
	}
	check_empty(fds);
	stop();
}

TEST(killing_the_process_frees_everything)
{
	struct raw_client client;
	uint32_t fds;
	pid_t children[20];

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&client);
	usleep(400000);
	fds = daemon_fds();
	for (int i = 0; i < 20; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			/* killed at any point */
			for (;;)
				use_everything(&client);
		}
	}
	for (int i = 0; i < 20; i++) {
		usleep(20000);
		kill(children[i], SIGKILL);
	}
	for (int i = 0; i < 20; i++)
		waitpid(children[i], NULL, 0);
	check_empty(fds);
	stop();
}

/* A forked child that keeps the socket open does not keep the session of its dead parent alive. */
TEST(a_child_that_holds_the_socket_keeps_nothing)
{
	struct raw_client client;
	struct raw_reply reply;
	int status, held[2];
	char byte;

	start();
	check_eq_int(pipe(held), 0);
	if (fork() == 0) {
		use_everything(&client);
		if (fork() == 0) {
			/* until the test has seen that the session is gone */
			close(held[1]);
			_exit(read(held[0], &byte, 1) == 1);
		}
		_exit(7);
	}
	close(held[0]);
	check(wait(&status) > 0);
	for (unsigned tries = 0; tries < 4 * 100 * test_timeout_scale(); tries++) {
		raw_status(&reply);
		status = (int)reply.message->status->sessions;
		raw_reply_free(&reply);
		if (!status)
			break;
		usleep(20000);
	}
	check_eq_int(status, 0);
	close(held[1]);
	usleep(50000);
	stop();
}

static void check_member_exit(bool is_killed)
{
	const struct comm_region *region;
	struct raw_client client;
	pid_t child;

	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	child = raw_fork_rank(&client, is_killed ? -1 : 3, &region);
	if (is_killed)
		kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (unsigned tries = 0; tries < 4 * 100 * test_timeout_scale() && region->members[1].word == MEMBER_ALIVE; tries++)
		usleep(10000);
	check_eq_uint(region->members[1].word, MEMBER_DEAD);
	check_eq_int(region->members[1].pid, child);
	check_eq_int(region->members[1].exit, is_killed ? SIGKILL : 3 << 8);
	check_eq_uint(region->members[0].word, MEMBER_ALIVE);
	raw_rank_region_free(region);
	raw_client_stop(&client);
}

TEST(members_say_how_their_process_ended)
{
	start();
	check_member_exit(true);
	check_member_exit(false);
	stop();
}

TEST_TIMEOUT(two_hundred_sessions_end_quickly, 60)
{
	static struct raw_client clients[200];
	uint32_t fds;

	start();
	raw_client_start(&clients[0], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&clients[0]);
	usleep(400000);
	fds = daemon_fds();
	for (int i = 0; i < 200; i++)
		use_everything(&clients[i]);
	for (int i = 0; i < 200; i++)
		raw_client_stop(&clients[i]);
	check_empty(fds);
	stop();
}

/* Takes all of a device and dies. Returns when its parent may know that. */
static void take_all_and_die(int status)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct raw_client client;
		void *base;

		raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_allocate(&client, raw_open_context(&client, 0), 60 << 20, &base);
		memset(base, 1, 60 << 20);
		if (status < 0)
			raise(SIGKILL);
		_exit(status);
	}
	check_eq_int(waitpid(pid, NULL, 0), pid);
}

/* Who waits for the end of a process hears of it before the daemon does. */
TEST(what_a_dead_process_held_can_be_had_at_once)
{
	static const char *const options[] = { "--device-memory", "64M", "--sessions-per-tenant", "2", "--log-level", "error", NULL };
	struct raw_client client, second;
	uint64_t context;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	for (int i = 0; i < 8; i++) {
		take_all_and_die(i % 2 ? -1 : 0);
		raw_free(&client, raw_allocate(&client, context, 60 << 20, NULL));
		/* its session, too */
		take_all_and_die(i % 2 ? 0 : -1);
		raw_client_start(&second, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_client_stop(&second);
	}
	raw_client_stop(&client);
	stop();
}
