/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about settings: who may ask, who may change. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define NOBODY 65534

static struct private_daemon private_daemon;

static void set_level(struct raw_client *tool, const char *level, struct raw_reply *reply)
{
	Hccld__Control__SetLogLevel message = HCCLD__CONTROL__SET_LOG_LEVEL__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	message.level = (char *)level;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_SET_LOG_LEVEL;
	request.set_log_level = &message;
	raw_call(tool, &request, reply);
}

static void check_level(struct raw_client *tool, const char *level)
{
	Hccld__Control__GetConfig message = HCCLD__CONTROL__GET_CONFIG__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	const Hccld__Control__Setting *found = NULL;
	struct raw_reply reply;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_CONFIG;
	request.get_config = &message;
	raw_call(tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	for (size_t i = 0; i < reply.message->config->n_settings; i++)
		if (strcmp(reply.message->config->settings[i]->key, "log_level") == 0)
			found = reply.message->config->settings[i];
	check_ptr(found);
	check_eq_str(found->value, level);
	raw_reply_free(&reply);
}

TEST(the_daemons_user_sets_the_log_level)
{
	struct raw_client tool;
	struct raw_reply reply;

	check_eq_int(private_daemon_start(&private_daemon, NULL, "[log]\nlog_level = notice\n"), 0);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	check_level(&tool, "notice");
	set_level(&tool, "error", &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	check_level(&tool, "error");
	set_level(&tool, "\n\033", &reply);
	check_eq_uint(reply.message->cause, CAUSE_ARGUMENT);
	check_str_contains(reply.message->text, "there are error, warning, notice, info and debug");
	raw_reply_free(&reply);
	check_level(&tool, "error");
	raw_client_stop(&tool);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* SO_PEERCRED has the effective ids of the one who connected. */
TEST(somebody_else_does_not)
{
	struct raw_client tool;
	struct raw_reply reply;

	if (geteuid() != 0)
		test_skip("needs root, to be somebody else");
	check_eq_int(private_daemon_start(&private_daemon, NULL, NULL), 0);
	/* the directory is the test's */
	check_eq_int(chmod(private_daemon.directory, 0755), 0);
	check_eq_int(chmod(private_daemon.socket, 0666), 0);
	check_eq_int(seteuid(NOBODY), 0);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	set_level(&tool, "debug", &reply);
	check_eq_uint(reply.message->cause, CAUSE_PERMISSION);
	check_str_contains(reply.message->text, "only root and the daemon's own user");
	raw_reply_free(&reply);
	check_level(&tool, "info");
	raw_client_stop(&tool);
	check_eq_int(seteuid(0), 0);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}
