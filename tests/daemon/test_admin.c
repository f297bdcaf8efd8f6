/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators ask for: sessions ended, draining, pings, events. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define OTHER_UID 65534

static struct private_daemon private_daemon;
static struct raw_client tool;

static void start(void)
{
	check_eq_int(private_daemon_start(&private_daemon, NULL, NULL), 0);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
}

static void stop(void)
{
	raw_client_stop(&tool);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* A connection as of another user. */
static void start_as_other(struct raw_client *client, Hccld__Control__Hello__Role role)
{
	if (getuid() != 0)
		test_skip("needs root: connects as another user");
	check_eq_int(chmod(private_daemon.directory, 0711), 0);
	check_eq_int(chmod(private_daemon.socket, 0666), 0);
	check_eq_int(seteuid(OTHER_UID), 0);
	raw_client_start(client, role);
	check_eq_int(seteuid(0), 0);
}

static void ask_kill(struct raw_client *client, uint64_t session, uint32_t pid, struct raw_reply *reply)
{
	Hccld__Control__KillSession message = HCCLD__CONTROL__KILL_SESSION__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.session = session;
	message.pid = pid;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KILL_SESSION;
	request.kill_session = &message;
	raw_call(client, &request, reply);
}

static uint32_t kill_session(struct raw_client *client, uint64_t session)
{
	struct raw_reply reply;
	uint32_t cause;

	ask_kill(client, session, 0, &reply);
	cause = reply.message->cause;
	if (!cause) {
		check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_KILL_SESSION);
		check_eq_uint(reply.message->kill_session->session, session);
	}
	raw_reply_free(&reply);
	return cause;
}

static void ask_drain(struct raw_client *client, Hccld__Control__Drain__Action action, struct raw_reply *reply)
{
	Hccld__Control__Drain message = HCCLD__CONTROL__DRAIN__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.action = action;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DRAIN;
	request.drain = &message;
	raw_call(client, &request, reply);
}

static uint32_t drain(struct raw_client *client, Hccld__Control__Drain__Action action)
{
	struct raw_reply reply;
	uint32_t cause;

	ask_drain(client, action, &reply);
	cause = reply.message->cause;
	raw_reply_free(&reply);
	return cause;
}

static void monitor(struct raw_client *client)
{
	Hccld__Control__Monitor message = HCCLD__CONTROL__MONITOR__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MONITOR;
	request.monitor = &message;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_MONITOR);
	raw_reply_free(&reply);
}

/* The next event must be of @kind. */
static const Hccld__Control__Event *event(struct raw_client *client, const char *kind, struct raw_reply *reply)
{
	check_eq_int(raw_receive(client, reply), 0);
	check_eq_uint(reply->message->id, 0);
	check_eq_int(reply->message->body_case, HCCLD__CONTROL__REPLY__BODY_EVENTS);
	check_eq_uint(reply->message->events->n_events, 1);
	check_eq_str(reply->message->events->events[0]->kind, kind);
	return reply->message->events->events[0];
}

static void expect_event(struct raw_client *client, const char *kind, uint64_t session)
{
	struct raw_reply reply;

	check_eq_uint(event(client, kind, &reply)->session, session);
	raw_reply_free(&reply);
}

static uint32_t sessions(void)
{
	struct raw_reply reply;
	uint32_t count;

	raw_status(&reply);
	count = reply.message->status->sessions;
	raw_reply_free(&reply);
	return count;
}

TEST(a_killed_session_is_told_and_leaves_nothing)
{
	struct raw_client client, other;
	struct raw_reply reply;
	uint64_t context;

	start();
	raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, HCCLD_FEATURES);
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_create_stream(&client, context);
	raw_allocate(&client, context, 4 << 20, NULL);
	check_eq_uint(kill_session(&tool, client.session), 0);
	/* what it had is gone when the reply is there */
	raw_status(&reply);
	check_eq_uint(reply.message->status->sessions, 1);
	check_eq_uint(reply.message->status->streams, 0);
	check_eq_uint(reply.message->status->devices[0]->memory_used, 0);
	raw_reply_free(&reply);
	check_eq_int(raw_receive(&client, &reply), 0);
	check_eq_uint(reply.message->id, 0);
	check_eq_uint(reply.message->cause, CAUSE_DAEMON_GONE);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_FAREWELL);
	check_str_contains(reply.message->text, "session ended by an administrator (uid ");
	raw_reply_free(&reply);
	check_eq_int(raw_receive(&client, &reply), -ECONNRESET);
	raw_client_stop(&client);
	/* the rest goes on */
	raw_open_context(&other, 0);
	check_eq_uint(kill_session(&tool, client.session), CAUSE_NOT_FOUND);
	check_eq_uint(kill_session(&tool, 1u << 30), CAUSE_NOT_FOUND);
	check_eq_uint(kill_session(&tool, 0), CAUSE_ARGUMENT);
	raw_client_stop(&other);
	stop();
}

TEST(a_client_that_knows_no_farewell_gets_none)
{
	struct raw_client client;
	struct raw_reply reply;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	ask_kill(&tool, 0, (uint32_t)getpid(), &reply);
	check_eq_uint(reply.message->cause, 0);
	check_eq_uint(reply.message->kill_session->session, client.session);
	check_eq_str(reply.message->kill_session->process, "raw-client");
	raw_reply_free(&reply);
	check_eq_int(raw_receive(&client, &reply), -ECONNRESET);
	raw_client_stop(&client);
	stop();
}

TEST(ranks_that_wait_for_a_killed_one_are_told_who_did_it)
{
	struct raw_client first, second;
	struct raw_root root;
	struct raw_reply reply;
	char text[80];

	start();
	raw_client_start(&first, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&second, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&first, &root);
	raw_join_send(&first, &root, 0, 3, raw_open_context(&first, 0), 0);
	raw_join_send(&second, &root, 1, 3, raw_open_context(&second, 1), 0);
	/* both have joined: the daemon answers one after the other */
	raw_client_stop(&tool);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	while (sessions() != 2)
		usleep(1000);
	usleep(20000);
	check_eq_uint(kill_session(&tool, second.session), 0);
	check_eq_int(raw_receive(&first, &reply), 0);
	check_eq_uint(reply.message->cause, CAUSE_PEER_DEAD);
	snprintf(text, sizeof(text), "rank 1 (pid %d): session ended by an administrator (uid %u)", getpid(), getuid());
	check_str_contains(reply.message->text, text);
	raw_reply_free(&reply);
	raw_client_stop(&first);
	raw_client_stop(&second);
	stop();
}

TEST(a_client_cannot_end_sessions)
{
	struct raw_client client, victim;
	struct raw_reply reply;
	Hccld__Control__KillSession message = HCCLD__CONTROL__KILL_SESSION__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&victim, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	message.session = client.session;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KILL_SESSION;
	request.kill_session = &message;
	raw_send(&client, &request);
	check_eq_int(raw_receive(&client, &reply), -ECONNRESET);
	raw_open_context(&victim, 0);
	raw_client_stop(&client);
	raw_client_stop(&victim);
	stop();
}

TEST(users_end_their_own_sessions_only)
{
	struct raw_client mine, theirs, their_tool;
	struct raw_reply reply;

	start();
	start_as_other(&their_tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	start_as_other(&theirs, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&mine, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	ask_kill(&their_tool, mine.session, 0, &reply);
	check_eq_uint(reply.message->cause, CAUSE_PERMISSION);
	check_str_contains(reply.message->text, "belongs to uid 0");
	raw_reply_free(&reply);
	raw_open_context(&mine, 0);
	check_eq_uint(drain(&their_tool, HCCLD__CONTROL__DRAIN__ACTION__DRAIN), CAUSE_PERMISSION);
	check_eq_uint(drain(&their_tool, HCCLD__CONTROL__DRAIN__ACTION__ASK), 0);
	check_eq_uint(kill_session(&their_tool, theirs.session), 0);
	raw_client_stop(&theirs);
	raw_client_stop(&mine);
	raw_client_stop(&their_tool);
	stop();
}

TEST(a_user_is_told_that_others_have_objects)
{
	struct raw_client mine, their_tool;
	Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_root root;
	struct raw_reply reply;

	start();
	raw_client_start(&mine, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&mine, &root);
	start_as_other(&their_tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	raw_call(&their_tool, &request, &reply);
	check_eq_uint(reply.message->status->sessions, 0);
	check_eq_uint(reply.message->status->hidden_sessions, 1);
	check_eq_uint(reply.message->status->hidden_comms, 1);
	check_str_contains(reply.message->status->verdict, "not shown, of other users: 1 session, 1 communicator");
	raw_reply_free(&reply);
	raw_client_stop(&their_tool);
	raw_client_stop(&mine);
	stop();
}

/* A HELLO as a program's; the reply's cause, and its text. */
static uint32_t knock(char text[HCCLD_TEXT_MAX])
{
	struct raw_client client = { .fd = raw_connect() };
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t cause;

	hello.magic = HCCLD_MAGIC;
	hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	raw_call(&client, &request, &reply);
	cause = reply.message->cause;
	snprintf(text, HCCLD_TEXT_MAX, "%s", reply.message->text);
	raw_reply_free(&reply);
	close(client.fd);
	return cause;
}

TEST(drained_nothing_new_is_let_in_and_the_rest_goes_on)
{
	Hccld__Control__GetRootInfo get = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client client;
	char text[HCCLD_TEXT_MAX];
	struct raw_reply reply;
	struct raw_root root;

	start();
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_root_info(&client, &root);
	ask_drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__DRAIN, &reply);
	check_eq_uint(reply.message->cause, 0);
	check_ptr(reply.message->drain->draining);
	check_eq_uint(reply.message->drain->draining->uid, getuid());
	check_eq_uint(reply.message->drain->sessions, 1);
	check_eq_uint(reply.message->drain->comms, 1);
	raw_reply_free(&reply);
	check_eq_uint(knock(text), CAUSE_LIMIT);
	check_str_contains(text, "being drained");
	check_str_contains(text, "hcclctl undrain");
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &get;
	raw_call(&client, &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_LIMIT);
	check_str_contains(reply.message->text, "no new communicators");
	raw_reply_free(&reply);
	/* one that was about to be made is made */
	raw_join_send(&client, &root, 0, 1, raw_open_context(&client, 0), 0);
	check_eq_int(raw_receive(&client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	raw_status(&reply);
	check_ptr(reply.message->status->draining);
	check_str_contains(reply.message->status->verdict, "being drained by uid");
	raw_reply_free(&reply);
	check_eq_uint(drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__UNDRAIN), 0);
	check_eq_uint(drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__UNDRAIN), 0);
	check_eq_uint(knock(text), 0);
	raw_client_stop(&client);
	stop();
}

TEST(pings_are_answered_by_the_engine)
{
	Hccld__Control__Ping ping = HCCLD__CONTROL__PING__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client leaver;
	struct raw_reply reply;

	start();
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_PING;
	request.ping = &ping;
	for (int i = 0; i < 200; i++) {
		raw_call(&tool, &request, &reply);
		check_eq_uint(reply.message->cause, 0);
		check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_PING);
		check_gt_uint(reply.message->ping->passes, 0);
		raw_reply_free(&reply);
	}
	/* who does not wait for the answer */
	for (int i = 0; i < 100; i++) {
		raw_client_start(&leaver, HCCLD__CONTROL__HELLO__ROLE__TOOL);
		raw_send(&leaver, &request);
		raw_client_stop(&leaver);
	}
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	stop();
}

TEST(events_come_in_order_to_those_who_ask)
{
	struct raw_client watcher, client;
	struct raw_root root;
	struct raw_reply reply;

	start();
	raw_client_start(&watcher, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	monitor(&watcher);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	expect_event(&watcher, "session-start", client.session);
	raw_root_info(&client, &root);
	raw_join_send(&client, &root, 0, 1, raw_open_context(&client, 0), 0);
	check_eq_int(raw_receive(&client, &reply), 0);
	raw_reply_free(&reply);
	check_eq_uint(event(&watcher, "comm-ready", &reply)->size, 1);
	raw_reply_free(&reply);
	check_eq_uint(drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__DRAIN), 0);
	check_eq_uint(event(&watcher, "drain", &reply)->uid, getuid());
	raw_reply_free(&reply);
	knock((char[HCCLD_TEXT_MAX]){ 0 });
	check_str_contains(event(&watcher, "refused", &reply)->text, "being drained");
	raw_reply_free(&reply);
	check_eq_uint(drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__UNDRAIN), 0);
	expect_event(&watcher, "undrain", 0);
	check_eq_uint(kill_session(&tool, client.session), 0);
	check_str_contains(event(&watcher, "session-end", &reply)->text, "by an administrator");
	raw_reply_free(&reply);
	event(&watcher, "comm-gone", &reply);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	raw_client_stop(&watcher);
	stop();
}

TEST(a_slow_monitor_is_told_what_it_has_lost_and_holds_nobody_up)
{
	struct raw_client watcher, client;
	struct raw_reply reply;
	uint64_t seen = 0, lost = 0;
	const uint64_t turns = 2000;

	start();
	raw_client_start(&watcher, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	monitor(&watcher);
	for (uint64_t i = 0; i < turns; i++)
		check_eq_uint(drain(&tool, i % 2 ? HCCLD__CONTROL__DRAIN__ACTION__UNDRAIN : HCCLD__CONTROL__DRAIN__ACTION__DRAIN), 0);
	while (seen + lost < turns) {
		check_eq_int(raw_receive(&watcher, &reply), 0);
		check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_EVENTS);
		if (reply.message->events->events[0]->lost)
			lost += reply.message->events->events[0]->lost;
		else
			seen++;
		raw_reply_free(&reply);
	}
	check_eq_uint(seen + lost, turns);
	check_gt_uint(lost, 0);
	/* and goes on */
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	expect_event(&watcher, "session-start", client.session);
	raw_client_stop(&client);
	raw_client_stop(&watcher);
	stop();
}

TEST(users_see_the_events_of_their_own)
{
	struct raw_client watcher, mine, theirs;

	start();
	start_as_other(&watcher, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	monitor(&watcher);
	raw_client_start(&mine, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	start_as_other(&theirs, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	expect_event(&watcher, "session-start", theirs.session);
	check_eq_uint(drain(&tool, HCCLD__CONTROL__DRAIN__ACTION__DRAIN), 0);
	expect_event(&watcher, "drain", 0);
	raw_client_stop(&mine);
	raw_client_stop(&theirs);
	raw_client_stop(&watcher);
	stop();
}

/* Each event is a packet for each of them. */
TEST(a_user_has_few_monitors)
{
	struct raw_client watchers[HCCLD_MONITORS_PER_USER + 1], mine;
	Hccld__Control__Monitor message = HCCLD__CONTROL__MONITOR__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	start();
	for (uint32_t i = 0; i <= HCCLD_MONITORS_PER_USER; i++) {
		start_as_other(&watchers[i], HCCLD__CONTROL__HELLO__ROLE__TOOL);
		if (i < HCCLD_MONITORS_PER_USER)
			monitor(&watchers[i]);
	}
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MONITOR;
	request.monitor = &message;
	raw_call(&watchers[HCCLD_MONITORS_PER_USER], &request, &reply);
	check_eq_uint(reply.message->cause, CAUSE_LIMIT);
	raw_reply_free(&reply);
	raw_client_start(&mine, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	monitor(&mine);
	raw_client_stop(&mine);
	for (uint32_t i = 0; i <= HCCLD_MONITORS_PER_USER; i++)
		raw_client_stop(&watchers[i]);
	stop();
}
