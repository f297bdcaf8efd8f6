/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that become a communicator, or do not. */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/region.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define RANKS 16

static struct private_daemon private_daemon;

static void start(void)
{
	check_eq_int(private_daemon_start(&private_daemon, NULL, NULL), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* The reply to a join that fails. */
static void check_join_fails(struct raw_client *client, enum cause cause, const char *part)
{
	struct raw_reply reply;

	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, cause);
	check_str_contains(reply.message->text, part);
	raw_reply_free(&reply);
}

/* Returns the handle; *@ret_region: extent 0 if not NULL. */
static uint64_t check_joined(struct raw_client *client, const struct comm_region **ret_region,
			     uint32_t size)
{
	struct raw_reply reply;
	uint64_t handle;

	check_eq_int(raw_receive(client, &reply), 0);
	check_msg(reply.message->cause == 0, "join: %s", reply.message->text);
	check_eq_uint(reply.packet.fd_count, 1);
	handle = reply.message->join_comm->rank;
	if (ret_region) {
		check(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reply.packet.fds[0],
			   0) == MAP_FAILED);
		*ret_region = mmap(NULL, comm_region_size(size), PROT_READ, MAP_SHARED,
				   reply.packet.fds[0], 0);
		check(*ret_region != MAP_FAILED);
	}
	raw_reply_free(&reply);
	return handle;
}

TEST(ranks_of_many_sessions_join)
{
	struct raw_client clients[RANKS];
	const struct comm_region *region;
	struct raw_root root;
	uint64_t handles[RANKS];

	start();
	for (uint32_t i = 0; i < RANKS; i++)
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&clients[3], &root);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_join_send(&clients[i], &root, i, RANKS, raw_open_context(&clients[i], i % 8),
			      10000);
	for (uint32_t i = 0; i < RANKS; i++) {
		handles[i] = check_joined(&clients[i], &region, RANKS);
		check_eq_uint(region->magic, COMM_REGION_MAGIC);
		check_eq_uint(region->size, RANKS);
		for (uint32_t k = 0; k < RANKS; k++) {
			check_eq_uint(region->members[k].word, MEMBER_ALIVE);
			check_eq_int(region->members[k].pid, getpid());
			check_eq_uint(region->members[k].device, k % 8);
		}
		if (i + 1 < RANKS)
			munmap((void *)region, comm_region_size(RANKS));
	}
	raw_open_pair(&clients[0], handles[0], 5);
	check_eq_uint(comm_region_directory((struct comm_region *)region, RANKS)[5], 1);
	raw_leave(&clients[2], handles[2]);
	check_eq_uint(region->members[2].word, MEMBER_LEFT);
	munmap((void *)region, comm_region_size(RANKS));
	for (uint32_t i = 0; i < RANKS; i++)
		raw_client_stop(&clients[i]);
	stop();
}

/* Many ranks in one process and on one device are normal. */
TEST(ranks_of_one_context_join)
{
	struct raw_client client;
	struct raw_root root;
	uint64_t context, handles[RANKS];

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_join_send(&client, &root, i, RANKS, context, 10000);
	for (uint32_t i = 0; i < RANKS; i++)
		handles[i] = check_joined(&client, NULL, RANKS);
	for (uint32_t i = 0; i < RANKS; i++)
		for (uint32_t k = 0; k < RANKS; k++)
			raw_open_pair(&client, handles[i], k);
	for (uint32_t i = 0; i < RANKS; i++)
		raw_leave(&client, handles[i]);
	raw_client_stop(&client);
	stop();
}

TEST(missing_ranks_are_named_at_the_deadline)
{
	struct raw_client clients[3];
	struct raw_root root;

	start();
	for (uint32_t i = 0; i < 3; i++)
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&clients[0], &root);
	raw_join_send(&clients[0], &root, 0, 8, raw_open_context(&clients[0], 0), 10000);
	/* the earliest deadline ends it for all */
	raw_join_send(&clients[1], &root, 3, 8, raw_open_context(&clients[1], 0), 200);
	check_join_fails(&clients[0], CAUSE_INIT_TIMEOUT, "6 of 8 ranks are missing: ranks 1-2 and 4-7;");
	check_join_fails(&clients[1], CAUSE_INIT_TIMEOUT, "6 of 8 ranks are missing: ranks 1-2 and 4-7;");
	/* who comes too late is told at once */
	raw_join_send(&clients[2], &root, 4, 8, raw_open_context(&clients[2], 0), 10000);
	check_join_fails(&clients[2], CAUSE_INIT_TIMEOUT, "6 of 8 ranks are missing: ranks 1-2 and 4-7;");
	for (uint32_t i = 0; i < 3; i++)
		raw_client_stop(&clients[i]);
	stop();
}

TEST(joins_that_do_not_fit_are_refused)
{
	struct raw_client client;
	struct raw_root root, wrong;
	uint64_t context;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	wrong = root;
	wrong.key++;
	raw_join_send(&client, &wrong, 0, 2, context, 1000);
	check_join_fails(&client, CAUSE_NOT_FOUND, "root info is unknown");
	wrong = root;
	wrong.secret[31] ^= 1;
	raw_join_send(&client, &wrong, 0, 2, context, 1000);
	check_join_fails(&client, CAUSE_PERMISSION, "root info");
	raw_join_send(&client, &root, 2, 2, context, 1000);
	check_join_fails(&client, CAUSE_ARGUMENT, "rank 2 of 2");
	raw_join_send(&client, &root, 0, 0, context, 1000);
	check_join_fails(&client, CAUSE_ARGUMENT, "1 to 4096 ranks");
	raw_join_send(&client, &root, 0, HCCLD_RANKS_MAX + 1, context, 1000);
	check_join_fails(&client, CAUSE_ARGUMENT, "1 to 4096 ranks");
	raw_join_send(&client, &root, 0, 2, context + 1, 1000);
	check_join_fails(&client, CAUSE_BAD_HANDLE, "context");
	/* nobody waits: that was no harm */
	raw_join_send(&client, &root, 0, 2, context, 10000);
	raw_join_send(&client, &root, 1, 2, context, 10000);
	check_joined(&client, NULL, 2);
	check_joined(&client, NULL, 2);
	/* complete: good for one communicator */
	raw_join_send(&client, &root, 1, 2, context, 10000);
	check_join_fails(&client, CAUSE_ARGUMENT, "already taken");
	raw_client_stop(&client);
	stop();
}

/* Who waits would wait in vain: told at once, and the same as the one that is refused. */
TEST(a_refused_join_ends_the_others)
{
	static const struct {
		uint32_t rank, size, context;
		enum cause cause;
		const char *text;
	} cases[] = {
		{ 0, 3, 0, CAUSE_ARGUMENT, "rank 0 is already taken by pid " },
		{ 1, 4, 0, CAUSE_ARGUMENT, "joins with a size of 4 ranks, the ranks before it have joined with 3" },
		{ 1, 3, 7, CAUSE_BAD_HANDLE, "cannot join as rank 1: the device context is gone" },
	};
	struct raw_client clients[3];
	struct raw_root root;

	start();
	for (uint32_t i = 0; i < 3; i++)
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		raw_root_info(&clients[2], &root);
		raw_join_send(&clients[0], &root, 0, 3, raw_open_context(&clients[0], 0), 10000);
		usleep(20000);
		raw_join_send(&clients[1], &root, cases[i].rank, cases[i].size,
			      raw_open_context(&clients[1], 0) + cases[i].context, 10000);
		for (uint32_t k = 0; k < 2; k++)
			check_join_fails(&clients[k], cases[i].cause, cases[i].text);
		/* and who comes later */
		raw_join_send(&clients[2], &root, 2, 3, raw_open_context(&clients[2], 0), 10000);
		check_join_fails(&clients[2], cases[i].cause, cases[i].text);
	}
	for (uint32_t i = 0; i < 3; i++)
		raw_client_stop(&clients[i]);
	stop();
}

TEST(a_death_ends_the_join_of_the_others)
{
	struct raw_client client;
	struct raw_root root;
	uint64_t context;
	pid_t child;
	int ready[2];
	char byte;

	start();
	check_eq_int(pipe(ready), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	child = fork();
	if (child == 0) {
		struct raw_client own;

		raw_client_start(&own, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_join_send(&own, &root, 1, 3, raw_open_context(&own, 0), 10000);
		check_eq_int(write(ready[1], "1", 1), 1);
		pause();
	}
	check_eq_int(read(ready[0], &byte, 1), 1);
	raw_join_send(&client, &root, 0, 3, context, 10000);
	usleep(100000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	check_join_fails(&client, CAUSE_PEER_DEAD, "killed by signal 9");
	raw_join_send(&client, &root, 2, 3, context, 10000);
	check_join_fails(&client, CAUSE_PEER_DEAD, "rank 1 (pid ");
	close(ready[0]);
	close(ready[1]);
	raw_client_stop(&client);
	stop();
}

/* The process that made the root info may end; the ranks that wait for one another go on. */
TEST(the_root_may_go_when_others_have_joined)
{
	struct raw_client root_client, clients[2];
	struct raw_root root;

	start();
	raw_client_start(&root_client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&root_client, &root);
	for (uint32_t i = 0; i < 2; i++)
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_join_send(&clients[0], &root, 0, 2, raw_open_context(&clients[0], 0), 10000);
	usleep(50000);
	raw_client_stop(&root_client);
	usleep(400000);
	raw_join_send(&clients[1], &root, 1, 2, raw_open_context(&clients[1], 0), 10000);
	check_joined(&clients[0], NULL, 2);
	check_joined(&clients[1], NULL, 2);
	/* but a root info that nobody has used goes with its process */
	raw_root_info(&clients[0], &root);
	raw_client_stop(&clients[0]);
	usleep(400000);
	raw_join_send(&clients[1], &root, 1, 2, raw_open_context(&clients[1], 0), 10000);
	check_join_fails(&clients[1], CAUSE_NOT_FOUND, "has ended");
	raw_client_stop(&clients[1]);
	stop();
}

TEST(pairs_are_made_once_and_checked)
{
	struct raw_client client;
	struct raw_reply reply;
	struct raw_root root;
	const struct comm_region *region;
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	uint32_t peers[] = { 1, 2, 1, 0 }, count = 0;
	_Atomic uint32_t *directory;
	uint64_t context, handle;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < 3; i++)
		raw_join_send(&client, &root, i, 3, context, 10000);
	handle = check_joined(&client, &region, 3);
	check_joined(&client, NULL, 3);
	check_joined(&client, NULL, 3);
	open.rank = handle;
	open.n_send_to = open.n_receive_from = 4;
	open.send_to = open.receive_from = peers;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	directory = comm_region_directory((struct comm_region *)region, 3);
	for (int i = 0; i < 9; i++)
		count += directory[i] != 0;
	check_eq_uint(count, 5); /* 0-1, 1-0, 0-2, 2-0, 0-0 */
	peers[3] = 3;
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_ARGUMENT);
	raw_reply_free(&reply);
	munmap((void *)region, comm_region_size(3));
	raw_client_stop(&client);
	stop();
}

#define STRANGER 61001u

static void send_table_join(struct raw_client *client, const unsigned char *digest, uint32_t rank, uint32_t deadline_ms)
{
	Hccld__Control__JoinComm join = HCCLD__CONTROL__JOIN_COMM__INIT;
	Hccld__Control__JoinTable table = HCCLD__CONTROL__JOIN_TABLE__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	table.digest.data = (unsigned char *)digest;
	table.digest.len = 16;
	join.table = &table;
	join.rank = rank;
	join.size = 2;
	join.context = raw_open_context(client, 0);
	request.deadline_ms = deadline_ms;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request.join_comm = &join;
	raw_send(client, &request);
}

/* Becomes tenant 3, says so by a byte, and joins with a digest that is made the same as tenant 1's. */
static void join_forged(int out, useconds_t wait_us)
{
	/* FNV-1a of "table", this and tenant 3 is that of "table", the other and tenant 1 */
	static const unsigned char forged[] = { 0x03, 0x02, 0xc4, 0xae, 0x3a, 0x99, 0x58, 0x9c,
						0x15, 0x02, 0x30, 0x43, 0x24, 0xe2, 0x2c, 0x44 };
	struct raw_client client;

	check(setgroups(0, NULL) == 0 && setresgid(STRANGER, STRANGER, STRANGER) == 0 &&
	      setresuid(STRANGER, STRANGER, STRANGER) == 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_int((int)write(out, "1", 1), 1);
	usleep(wait_us);
	send_table_join(&client, forged, 1, 700);
	check_join_fails(&client, CAUSE_INIT_TIMEOUT, "0");
	raw_client_stop(&client);
	_exit(0);
}

/* Digests are no secrets: whoever forges one meets nobody of another tenant, and is in nobody's way. */
static void meet_beside_forgery(bool forgery_first)
{
	static const unsigned char digest[] = { 0xbd, 0x35, 0xd1, 0xd6, 0x15, 0xe4, 0x0d, 0xd0,
						0x87, 0xd8, 0xb2, 0x90, 0x53, 0xb7, 0x69, 0x05 };
	struct raw_client clients[2];
	int pipes[2], status;
	char byte;
	pid_t pid;

	if (geteuid() != 0)
		test_skip("only root can become another user");
	start();
	chmod(private_daemon.directory, 0755);
	chmod(private_daemon.socket, 0666);
	/* tenant 1; the other process is tenant 3 */
	raw_client_start(&clients[0], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_int(pipe(pipes), 0);
	pid = fork();
	if (pid == 0)
		join_forged(pipes[1], forgery_first ? 0 : 100000);
	check_eq_int((int)read(pipes[0], &byte, 1), 1);
	if (forgery_first)
		usleep(100000);
	send_table_join(&clients[0], digest, 0, 20000);
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
	raw_client_start(&clients[1], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	send_table_join(&clients[1], digest, 1, 20000);
	check_joined(&clients[0], NULL, 2);
	check_joined(&clients[1], NULL, 2);
	for (uint32_t i = 0; i < 2; i++)
		raw_client_stop(&clients[i]);
	close(pipes[0]);
	close(pipes[1]);
	stop();
}

TEST(forged_digests_meet_nobody_else)
{
	meet_beside_forgery(false);
}

TEST(forged_digests_are_in_nobodys_way)
{
	meet_beside_forgery(true);
}

/* All ranks of a communicator; the last handle. */
static uint64_t take_all_ranks(struct raw_client *client)
{
	struct raw_root root;
	uint64_t context = raw_open_context(client, 0), rank = 0;

	raw_root_info(client, &root);
	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION; i++)
		raw_join_send(client, &root, i, HCCLD_RANKS_PER_SESSION, context, 0);
	for (uint32_t i = 0; i < HCCLD_RANKS_PER_SESSION; i++)
		rank = check_joined(client, NULL, HCCLD_RANKS_PER_SESSION);
	return rank;
}

static uint32_t join_alone(struct raw_client *client)
{
	struct raw_reply reply;
	struct raw_root root;
	uint32_t cause;

	raw_root_info(client, &root);
	raw_join_send(client, &root, 0, 1, raw_open_context(client, 1), 0);
	check_eq_int(raw_receive(client, &reply), 0);
	cause = reply.message->cause;
	if (cause)
		check_str_contains(reply.message->text, "have 65536 ranks, which is the most that one user may have");
	raw_reply_free(&reply);
	return cause;
}

static void wait_for_sessions(uint32_t count)
{
	struct raw_reply reply;
	uint32_t sessions;

	for (unsigned tries = 0;; tries++) {
		raw_status(&reply);
		sessions = reply.message->status->sessions;
		raw_reply_free(&reply);
		if (sessions == count)
			return;
		check(tries < 1500 * test_timeout_scale());
		usleep(20000);
	}
}

TEST(ranks_are_counted_for_each_user)
{
	enum { FULL = HCCLD_RANKS_PER_USER / HCCLD_RANKS_PER_SESSION };
	struct raw_client clients[FULL], last;
	uint64_t rank = 0;

	start();
	for (uint32_t i = 0; i < FULL; i++) {
		raw_client_start(&clients[i], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		rank = take_all_ranks(&clients[i]);
	}
	raw_client_start(&last, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_uint(join_alone(&last), CAUSE_LIMIT);
	/* one that goes makes room for one */
	raw_leave(&clients[FULL - 1], rank);
	check_eq_uint(join_alone(&last), 0);
	check_eq_uint(join_alone(&last), CAUSE_LIMIT);
	/* a process that ends makes room for all that it had */
	raw_client_stop(&clients[0]);
	wait_for_sessions(FULL);
	check_eq_uint(join_alone(&last), 0);
	for (uint32_t i = 1; i < FULL; i++)
		raw_client_stop(&clients[i]);
	wait_for_sessions(1);
	raw_client_stop(&last);
	stop();
}
