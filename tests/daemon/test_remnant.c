/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the yard of sessions that have ended before their processes: nobody gets them while a thread could still write there. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/daemon/scene.h"
#include "tests/support/test.h"

#define CLIENT HCCLD__CONTROL__HELLO__ROLE__CLIENT

static struct private_daemon private_daemon;

static void start(const char *config)
{
	static const char *const options[] = { "--keeper", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, config), 0);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Place in the yard. */
static uint32_t open_context(struct raw_client *client, uint32_t device)
{
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t index;

	open.device = device;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	index = reply.message->open_context->yard_index;
	raw_reply_free(&reply);
	return index;
}

/* Which place the next context gets. */
static uint32_t next_place(void)
{
	struct raw_client probe;
	uint32_t index;

	raw_client_start(&probe, CLIENT);
	index = open_context(&probe, 0);
	raw_close_context(&probe, raw_open_context(&probe, 0));
	raw_client_stop(&probe);
	return index;
}

static void wait_for_place(uint32_t index)
{
	for (unsigned tries = 0; tries < 500 * test_timeout_scale() && next_place() != index; tries++)
		usleep(10000);
	check_eq_uint(next_place(), index);
}

enum how {
	STAYS,
	CLOSES, /* when it is told to */
	LIES,
};

/* A process with a session and two contexts, which it may have driven. */
struct process {
	pid_t pid;
	int orders, told;
	uint64_t session;
	uint32_t places[2];
};

static void process_run(const struct process *process, uint64_t features, enum how how)
{
	struct process said = { .pid = getpid() };
	struct raw_client client;
	char byte;

	raw_client_start_with(&client, CLIENT, features);
	said.session = client.session;
	for (uint32_t i = 0; i < 2; i++)
		said.places[i] = open_context(&client, i);
	check_eq_int((int)write(process->told, &said, sizeof(said)), (int)sizeof(said));
	check_eq_int((int)read(process->orders, &byte, 1), 1);
	if (how == CLOSES)
		close(client.fd);
	if (how == LIES)
		check_eq_int((int)send(client.fd, "\xff\xff\xff", 3, 0), 3);
	check_eq_int((int)write(process->told, &byte, 1), 1);
	pause();
	_exit(0);
}

static void process_start(struct process *process, uint64_t features, enum how how)
{
	int orders[2], told[2];
	struct process said;
	pid_t pid;

	check(pipe(orders) == 0 && pipe(told) == 0);
	pid = fork();
	if (pid == 0)
		process_run(&(struct process){ .orders = orders[0], .told = told[1] }, features, how);
	close(orders[0]);
	close(told[1]);
	check_eq_int((int)read(told[0], &said, sizeof(said)), (int)sizeof(said));
	*process = said;
	process->orders = orders[1];
	process->told = told[0];
}

static void process_order(const struct process *process)
{
	char byte = 'x';

	check_eq_int((int)write(process->orders, &byte, 1), 1);
	check_eq_int((int)read(process->told, &byte, 1), 1);
}

static void process_end(const struct process *process)
{
	check_eq_int(kill(process->pid, SIGKILL), 0);
	check_eq_int(waitpid(process->pid, NULL, 0), process->pid);
	close(process->orders);
	close(process->told);
}

/* Both of its places are free when it ends, and not before, whether the daemon is restarted in between or not. */
static void check_held(const struct process *process, int restarts)
{
	check_eq_uint(process->places[0], 1);
	check_eq_uint(process->places[1], 2);
	check_eq_uint(next_place(), 3);
	/* more within 10 s, and the registry is dropped */
	while (restarts--) {
		scene_kill_worker();
		check_eq_uint(next_place(), 3);
	}
	process_end(process);
	wait_for_place(1);
}

TEST_TIMEOUT(places_of_a_killed_session_wait_for_its_process, 60)
{
	struct raw_client other;
	struct process process;

	start(NULL);
	raw_client_start(&other, CLIENT);
	check_eq_uint(open_context(&other, 0), 0);
	process_start(&process, HCCLD_FEATURES, STAYS);
	check_eq_uint(next_place(), 3);
	raw_kill_session(process.session);
	raw_wait_for_sessions(1);
	check_held(&process, 2);
	raw_client_stop(&other);
	stop();
}

TEST_TIMEOUT(places_of_a_liar_wait_for_its_process, 60)
{
	struct raw_client other;
	struct process process;

	start(NULL);
	raw_client_start(&other, CLIENT);
	check_eq_uint(open_context(&other, 0), 0);
	process_start(&process, HCCLD_FEATURES, LIES);
	process_order(&process);
	raw_wait_for_sessions(1);
	check_held(&process, 2);
	raw_client_stop(&other);
	stop();
}

/* The session had not ended when the daemon died. */
TEST_TIMEOUT(places_wait_when_the_daemon_dies_first, 60)
{
	struct raw_client other;
	struct process process;
	struct raw_reply reply;
	pid_t worker;

	start(NULL);
	raw_client_start(&other, CLIENT);
	check_eq_uint(open_context(&other, 0), 0);
	process_start(&process, HCCLD_FEATURES, CLOSES);
	raw_status(&reply);
	worker = (pid_t)reply.message->status->pid;
	raw_reply_free(&reply);
	check_eq_int(kill(worker, SIGSTOP), 0);
	process_order(&process);
	check_eq_int(kill(worker, SIGKILL), 0);
	raw_wait_for_sessions(1);
	check_held(&process, 1);
	raw_client_stop(&other);
	stop();
}

/* The process ends while no daemon is there. */
TEST_TIMEOUT(places_are_free_when_the_process_ends_in_a_restart, 60)
{
	struct raw_client other;
	struct process process;
	struct raw_reply reply;
	pid_t worker;

	start(NULL);
	raw_client_start(&other, CLIENT);
	check_eq_uint(open_context(&other, 0), 0);
	process_start(&process, HCCLD_FEATURES, STAYS);
	raw_kill_session(process.session);
	check_eq_uint(next_place(), 3);
	raw_status(&reply);
	worker = (pid_t)reply.message->status->pid;
	raw_reply_free(&reply);
	check_eq_int(kill(worker, SIGSTOP), 0);
	process_end(&process);
	check_eq_int(kill(worker, SIGKILL), 0);
	wait_for_place(1);
	raw_client_stop(&other);
	stop();
}

/* Who cannot drive writes nothing, and who is dead neither. */
TEST_TIMEOUT(other_places_are_free_at_once, 60)
{
	struct raw_client other;
	struct process process;

	start(NULL);
	raw_client_start(&other, CLIENT);
	check_eq_uint(open_context(&other, 0), 0);
	process_start(&process, HCCLD_FEATURES & ~HCCLD_FEATURE_DIRECT, STAYS);
	raw_kill_session(process.session);
	check_eq_uint(next_place(), 1);
	process_end(&process);
	process_start(&process, HCCLD_FEATURES, STAYS);
	check_eq_uint(process.places[0], 1);
	process_end(&process);
	wait_for_place(1);
	raw_client_stop(&other);
	stop();
}

/* Its threads have let go of it before the client asks. */
TEST(the_place_of_a_device_that_is_reset_is_free)
{
	struct raw_client client;
	uint32_t index;

	start(NULL);
	raw_client_start_with(&client, CLIENT, HCCLD_FEATURES);
	for (int i = 0; i < 3; i++) {
		uint64_t context = raw_open_context(&client, 3);

		index = open_context(&client, 3);
		check_eq_uint(index, 0);
		check_eq_uint(open_context(&client, 4), 1);
		raw_close_context(&client, context);
		check_eq_uint(open_context(&client, 5), 0);
		raw_close_context(&client, raw_open_context(&client, 5));
		raw_close_context(&client, raw_open_context(&client, 4));
	}
	raw_client_stop(&client);
	stop();
}

/* A yard that nobody shares any more goes, and with it all places: the next process of the tenant has another one. */
TEST_TIMEOUT(no_place_waits_in_a_yard_that_has_gone, 60)
{
	struct process process;

	start(NULL);
	process_start(&process, HCCLD_FEATURES, STAYS);
	check_eq_uint(process.places[0], 0);
	raw_kill_session(process.session);
	wait_for_place(0);
	scene_kill_worker();
	check_eq_uint(next_place(), 0);
	process_end(&process);
	stop();
}

/* What it holds counts: processes that live on and connect again and again would take all places. */
TEST_TIMEOUT(what_waits_counts_as_a_session, 60)
{
	struct raw_client other, third;
	struct process process;
	struct raw_reply reply;
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	start("[limits]\nsessions_per_tenant = 2\n");
	raw_client_start(&other, CLIENT);
	process_start(&process, HCCLD_FEATURES, STAYS);
	raw_kill_session(process.session);
	hello.magic = HCCLD_MAGIC;
	hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	for (int i = 0; i < 2; i++) {
		third = (struct raw_client){ .fd = raw_connect(), .event_fd = -1 };
		raw_call(&third, &request, &reply);
		check_eq_uint(reply.message->cause, CAUSE_LIMIT);
		raw_reply_free(&reply);
		raw_client_stop(&third);
		scene_kill_worker();
	}
	process_end(&process);
	wait_for_place(0);
	raw_client_stop(&other);
	stop();
}
