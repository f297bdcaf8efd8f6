/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of tenants and users: each refusal names the limit, who holds most and the setting; nobody
 * is disconnected for asking, no other user feels it, and a reload changes them.
 */
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define MIB (1ull << 20)
#define USER_A 61001u
#define USER_B 61002u

static struct private_daemon private_daemon;

static void start(const char *config)
{
	static const char *const options[] = { "--devices", "2", "--device-memory", "256M",
					       "--log-level", "error", NULL };

	check_eq_int(private_daemon_start(&private_daemon, options, config), 0);
	/* children of other users have to reach the socket */
	chmod(private_daemon.directory, 0755);
	chmod(private_daemon.socket, 0666);
}

static void stop(void)
{
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Other settings; waits until they count: @is_there is true then. */
static void reload(const char *config, bool (*is_there)(struct raw_client *client),
		   struct raw_client *client)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/hccld.conf", private_daemon.directory);
	file = fopen(path, "we");
	check_ptr(file);
	fputs(config, file);
	fclose(file);
	check_eq_int(kill(private_daemon.pid, SIGHUP), 0);
	for (unsigned tries = 0; tries < 250 * test_timeout_scale(); tries++) {
		if (is_there(client))
			return;
		usleep(20000);
	}
	check_msg(false, "the new settings do not count");
}

static void need_root(void)
{
	if (geteuid() != 0)
		test_skip("only root can become other users");
}

/* Runs @body as user @uid in a process of its own, which must end well. */
static void as_user(uint32_t uid, void (*body)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		check(setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
		      setresuid(uid, uid, uid) == 0);
		body();
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	check_eq_int(status, 0);
}

static void ask_segment(struct raw_client *client, uint64_t context, int kind, uint64_t bytes,
			struct raw_reply *ret_reply)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	allocate.context = context;
	allocate.kind = (Hccld__Control__AllocateSegment__Kind)kind;
	allocate.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &allocate;
	raw_call(client, &request, ret_reply);
}

static uint32_t ask_stream(struct raw_client *client, uint64_t context, struct raw_reply *ret_reply)
{
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	create.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	raw_call(client, &request, ret_reply);
	return ret_reply->message->cause;
}

static uint32_t ask_root_info(struct raw_client *client, struct raw_reply *ret_reply)
{
	Hccld__Control__GetRootInfo body = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &body;
	raw_call(client, &request, ret_reply);
	return ret_reply->message->cause;
}

/* A HELLO that may be refused: its cause, with the text in @text[1024]. */
static uint32_t ask_session(Hccld__Control__Hello__Role role, char *text, int *ret_fd)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client client = { .fd = raw_connect() };
	struct raw_reply reply;
	uint32_t cause;

	hello.magic = HCCLD_MAGIC;
	hello.version_low = hello.version_high = HCCLD_VERSION_HIGH;
	hello.process = "asks";
	hello.role = role;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	raw_call(&client, &request, &reply);
	cause = reply.message->cause;
	snprintf(text, 1024, "%s", reply.message->text);
	raw_reply_free(&reply);
	*ret_fd = client.fd;
	return cause;
}

static void check_refusal(struct raw_reply *reply, enum cause cause, const char *begin,
			  const char *setting)
{
	char part[128];

	check_eq_uint(reply->message->cause, cause);
	check_msg(strncmp(reply->message->text, begin, strlen(begin)) == 0, "'%s' instead of '%s'",
		  reply->message->text, begin);
	snprintf(part, sizeof(part), "; raise [limits] %s; hcclctl config says where it is set", setting);
	check_str_contains(reply->message->text, part);
	raw_reply_free(reply);
}

TEST(memory_of_all_kinds_has_one_limit)
{
	struct raw_client client, other;
	struct raw_reply reply;
	uint64_t context, segment;
	char begin[128];

	start("[limits]\nmemory_per_tenant = 64M\n");
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&other, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	segment = raw_allocate(&client, context, 40 * MIB, NULL);
	ask_segment(&other, raw_open_context(&other, 1), 1, 16 * MIB, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	snprintf(begin, sizeof(begin),
		 "memory of uid %u: 56.0 MiB of 64 MiB used, 16 MiB asked; most is held by pid %d raw-client (",
		 geteuid(), getpid());
	ask_segment(&client, context, 0, 16 * MIB, &reply);
	check_refusal(&reply, CAUSE_MEMORY, begin, "memory_per_tenant");
	ask_segment(&client, context, 1, 16 * MIB, &reply);
	check_refusal(&reply, CAUSE_HOST_MEMORY, begin, "memory_per_tenant");
	/* what is left is what is free, on a device that has more, and can be had, and what was given back */
	check_eq_uint(raw_free_memory(&client, context, NULL) / MIB, 7);
	raw_allocate(&other, raw_open_context(&other, 1), 7 * MIB, NULL);
	raw_free(&client, segment);
	raw_allocate(&client, context, 40 * MIB, NULL);
	raw_client_stop(&client);
	raw_client_stop(&other);
	stop();
}

TEST(streams_and_communicators_have_limits)
{
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;
	char begin[128];

	start("[limits]\nstreams_per_tenant = 3\ncommunicators_per_tenant = 2\n");
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	for (int i = 0; i < 3; i++) {
		check_eq_uint(ask_stream(&client, context, &reply), 0);
		raw_reply_free(&reply);
	}
	snprintf(begin, sizeof(begin),
		 "streams of uid %u: 3 of 3 used, 1 asked; held by pid %d raw-client (3)", geteuid(),
		 getpid());
	ask_stream(&client, context, &reply);
	check_refusal(&reply, CAUSE_STREAMS, begin, "streams_per_tenant");
	raw_destroy_stream(&client, 0);
	check_eq_uint(ask_stream(&client, context, &reply), 0);
	raw_reply_free(&reply);
	for (int i = 0; i < 2; i++) {
		check_eq_uint(ask_root_info(&client, &reply), 0);
		raw_reply_free(&reply);
	}
	snprintf(begin, sizeof(begin),
		 "communicators of uid %u: 2 of 2 used, 1 asked; held by pid %d raw-client (2)",
		 geteuid(), getpid());
	ask_root_info(&client, &reply);
	check_refusal(&reply, CAUSE_LIMIT, begin, "communicators_per_tenant");
	raw_client_stop(&client);
	/* they went with their process */
	for (unsigned tries = 0; tries < 100 * test_timeout_scale(); tries++) {
		bool is_empty;

		raw_status(&reply);
		is_empty = reply.message->status->comms == 0;
		raw_reply_free(&reply);
		if (is_empty)
			break;
		usleep(10000);
	}
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check_eq_uint(ask_root_info(&client, &reply), 0);
	raw_reply_free(&reply);
	raw_client_stop(&client);
	stop();
}

TEST(descriptors_have_a_limit)
{
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;
	char begin[128];

	start("[limits]\ndescriptors_per_tenant = 16\n");
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	for (int i = 0; i < 13; i++)
		raw_allocate(&client, context, 4096, NULL);
	snprintf(begin, sizeof(begin), "descriptors of uid %u: 16 of 16 used, 1 asked; held by",
		 geteuid());
	ask_segment(&client, context, 0, 4096, &reply);
	check_refusal(&reply, CAUSE_LIMIT, begin, "descriptors_per_tenant");
	raw_client_stop(&client);
	stop();
}

static bool has_a_stream_more(struct raw_client *client)
{
	uint64_t context = raw_open_context(client, 0);
	struct raw_reply reply;
	uint32_t cause = ask_stream(client, context, &reply);

	raw_reply_free(&reply);
	return cause == 0;
}

static bool has_no_stream_more(struct raw_client *client)
{
	uint64_t context = raw_open_context(client, 0);
	struct raw_reply reply;
	uint32_t cause = ask_stream(client, context, &reply);

	if (cause == 0)
		raw_destroy_stream(client, reply.message->create_stream->stream);
	raw_reply_free(&reply);
	return cause == CAUSE_STREAMS;
}

/* Lowered below what is there: that stays, also when it is used; raised: more at once. */
TEST(a_reload_changes_limits)
{
	struct raw_client client;
	struct raw_reply reply;
	uint64_t context;

	start("[limits]\nstreams_per_tenant = 5\n");
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	for (int i = 0; i < 4; i++)
		raw_create_stream(&client, context);
	reload("[limits]\nstreams_per_tenant = 2\n", has_no_stream_more, &client);
	check_eq_uint(ask_stream(&client, context, &reply), CAUSE_STREAMS);
	check_str_contains(reply.message->text, ": 4 of 2 used, 1 asked");
	raw_reply_free(&reply);
	raw_destroy_stream(&client, 0);
	raw_destroy_stream(&client, 1);
	check_eq_uint(ask_stream(&client, context, &reply), CAUSE_STREAMS);
	raw_reply_free(&reply);
	raw_destroy_stream(&client, 2);
	raw_create_stream(&client, context);
	reload("[limits]\nstreams_per_tenant = 3\n", has_a_stream_more, &client);
	raw_client_stop(&client);
	stop();
}

static void list(struct raw_client *client, Hccld__Control__List__Kind kind, struct raw_reply *ret_reply)
{
	Hccld__Control__List list = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	list.kind = kind;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &list;
	raw_call(client, &request, ret_reply);
	check_eq_uint(ret_reply->message->cause, 0);
}

/* Bytes behind all memfds of the daemon. */
static uint64_t memfd_bytes(void)
{
	ino_t seen[1024];
	char path[300], target[256];
	uint64_t bytes = 0;
	size_t count = 0;
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", private_daemon.pid);
	dir = opendir(path);
	check_ptr(dir);
	while ((entry = readdir(dir))) {
		struct stat st;
		size_t i = 0;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", private_daemon.pid, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n < 7 || strncmp(target, "/memfd:", 7) != 0 || stat(path, &st) < 0)
			continue;
		while (i < count && seen[i] != st.st_ino)
			i++;
		if (i < count)
			continue;
		check_lt_uint(count, 1024);
		seen[count++] = st.st_ino;
		bytes += (uint64_t)st.st_blocks * 512;
	}
	closedir(dir);
	return bytes;
}

/* Every byte has an owner and a kind, and what a tenant is charged is what its processes and communicators have. */
TEST(the_list_of_memory_adds_up)
{
	uint64_t context, ranks[2], total = 0, charged = 0, held = 0;
	struct raw_client client, tool;
	struct raw_reply reply;
	struct raw_root root;

	start(NULL);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	context = raw_open_context(&client, 0);
	raw_create_stream(&client, context);
	raw_create_stream(&client, context);
	for (int kind = 0; kind < 3; kind++) {
		ask_segment(&client, context, kind, (uint64_t)(3 + kind) * 100000, &reply);
		check_eq_uint(reply.message->cause, 0);
		raw_reply_free(&reply);
	}
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < 2; i++)
		raw_join_send(&client, &root, i, 2, context, 10000);
	for (uint32_t i = 0; i < 2; i++) {
		check_eq_int(raw_receive(&client, &reply), 0);
		ranks[i] = reply.message->join_comm->rank;
		raw_reply_free(&reply);
	}
	raw_open_pair(&client, ranks[0], 1);
	list(&tool, HCCLD__CONTROL__LIST__KIND__MEMORY, &reply);
	check_eq_uint(reply.message->list->n_memory, 3);
	for (size_t i = 0; i < 3; i++) {
		const Hccld__Control__MemoryUse *use = reply.message->list->memory[i];
		uint64_t bytes = use->device + use->host + use->side + use->rings + use->regions;

		total += bytes;
		held += use->owner == HCCLD__CONTROL__MEMORY_USE__OWNER__DAEMON ? 0 : bytes;
	}
	check_eq_uint(reply.message->list->memory[0]->device, 303104);
	check_eq_uint(reply.message->list->memory[0]->host, 401408);
	check_eq_uint(reply.message->list->memory[0]->side, 503808);
	raw_reply_free(&reply);
	check_eq_uint(total, memfd_bytes());
	list(&tool, HCCLD__CONTROL__LIST__KIND__TENANTS, &reply);
	check_eq_uint(reply.message->list->n_tenants, 1);
	check_eq_uint(reply.message->list->tenants[0]->uid, geteuid());
	for (size_t i = 0; i < reply.message->list->tenants[0]->n_limits; i++) {
		const Hccld__Control__Limit *limit = reply.message->list->tenants[0]->limits[i];

		if (strcmp(limit->name, "memory") != 0)
			continue;
		charged = limit->used;
		check_eq_uint(limit->top_pid, (uint32_t)getpid());
		check_eq_uint(limit->limit, UINT64_MAX);
	}
	check_eq_uint(charged, held);
	raw_reply_free(&reply);
	raw_client_stop(&tool);
	raw_client_stop(&client);
	stop();
}

static void take_two_sessions(void)
{
	char text[1024], begin[128];
	int fds[3];

	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[0]), 0);
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[1]), 0);
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[2]), CAUSE_LIMIT);
	snprintf(begin, sizeof(begin), "sessions of uid %u: 2 of 2 used, 1 asked; held by pid %d asks (1), pid ", geteuid(), getpid());
	check_str_contains(text, begin);
	check_str_contains(text, "raise [limits] sessions_per_tenant; hcclctl config says where it is set");
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

TEST(sessions_are_counted_for_each_user)
{
	char text[1024];
	int fds[2];
	pid_t pid;
	int status, go[2];
	char byte;

	need_root();
	start("[limits]\nsessions_per_tenant = 2\n");
	check_eq_int(pipe(go), 0);
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[0]), 0);
	/* user A holds its two while user B takes two */
	pid = fork();
	if (pid == 0) {
		close(go[0]);
		check_eq_int(setresuid(USER_A, USER_A, USER_A), 0);
		check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[0]), 0);
		check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[1]), 0);
		check_eq_int((int)write(go[1], "1", 1), 1);
		pause();
		_exit(1);
	}
	close(go[1]);
	check_eq_int((int)read(go[0], &byte, 1), 1);
	as_user(USER_B, take_two_sessions);
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[1]), 0);
	kill(pid, SIGKILL);
	check_eq_int(waitpid(pid, &status, 0), pid);
	close(go[0]);
	close(fds[0]);
	close(fds[1]);
	stop();
}

static void connect_too_often(void)
{
	char text[1024];
	int fds[80], count = 0;

	for (int i = 0; i < 10; i++)
		fds[count++] = raw_connect();
	/* told why; a tool may still look */
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__CLIENT, text, &fds[count++]),
		      CAUSE_LIMIT);
	check_str_contains(text, "connections of uid 61001: 10 of 10 used, 1 asked");
	check_str_contains(text, "raise [limits] connections_per_user; hcclctl config says where it is set");
	check_eq_uint(ask_session(HCCLD__CONTROL__HELLO__ROLE__TOOL, text, &fds[count++]), 0);
	for (int i = 0; i < count; i++)
		close(fds[i]);
}

TEST(connections_are_counted_for_each_user)
{
	need_root();
	start("[limits]\nconnections_per_user = 10\n");
	as_user(USER_A, connect_too_often);
	stop();
}

static void many_requests(void)
{
	struct raw_client client;
	struct raw_reply reply;
	struct raw_root root;
	uint64_t context;

	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	context = raw_open_context(&client, 0);
	raw_root_info(&client, &root);
	for (uint32_t i = 0; i < 16; i++)
		raw_join_send(&client, &root, i, 64, context, 20000);
	raw_join_send(&client, &root, 16, 64, context, 20000);
	check_eq_int(raw_receive(&client, &reply), 0);
	check_eq_uint(reply.message->cause, CAUSE_LIMIT);
	check_str_contains(reply.message->text, "requests of uid 61001 in flight: 16 of 16");
	check_str_contains(reply.message->text, "raise [limits] requests_per_user; hcclctl config says where it is set");
	raw_reply_free(&reply);
	raw_client_stop(&client);
}

TEST(requests_are_counted_for_each_user)
{
	need_root();
	start("[limits]\nrequests_per_user = 16\n");
	as_user(USER_A, many_requests);
	stop();
}

/* ---- weights ---- */

static bool has_weight(struct raw_client *client, uint32_t weight)
{
	Hccld__Control__List message = HCCLD__CONTROL__LIST__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	bool found = false;

	message.kind = HCCLD__CONTROL__LIST__KIND__TENANTS;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LIST;
	request.list = &message;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	for (size_t i = 0; i < reply.message->list->n_tenants; i++)
		if (reply.message->list->tenants[i]->uid == geteuid())
			found = reply.message->list->tenants[i]->weight == weight;
	raw_reply_free(&reply);
	return found;
}

static bool has_weight_5(struct raw_client *client)
{
	return has_weight(client, 5);
}

static bool has_weight_1(struct raw_client *client)
{
	return has_weight(client, 1);
}

TEST(a_reload_changes_weights)
{
	struct raw_client client;
	char config[96];

	snprintf(config, sizeof(config), "[limits]\ntenant_weights = %u=3\n", geteuid());
	start(config);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	check(has_weight(&client, 3));
	snprintf(config, sizeof(config), "[limits]\ntenant_weights = 61009=7 %u=5\n", geteuid());
	reload(config, has_weight_5, &client);
	/* nonsense changes nothing, also not the settings beside it */
	snprintf(config, sizeof(config), "[limits]\ntenant_weights = %u=500\n", geteuid());
	reload(config, has_weight_5, &client);
	reload("[limits]\n", has_weight_1, &client);
	raw_client_stop(&client);
	stop();
}
