/* SPDX-License-Identifier: Apache-2.0 */
/* A client of the control protocol without the client library. */
#include "tests/support/raw_client.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/region.h"
#include "tests/support/test.h"

int raw_connect(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv("HCCLD_SOCKET");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	check(path && strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	check(fd >= 0);
	check_msg(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0,
		  "connect to %s: %s", path, strerror(errno));
	return fd;
}

void raw_reply_free(struct raw_reply *reply)
{
	hccld__control__reply__free_unpacked(reply->message, NULL);
	packet_close(&reply->packet);
	reply->message = NULL;
}

uint64_t raw_send(struct raw_client *client, Hccld__Control__Request *request)
{
	request->id = ++client->next_id;
	check_eq_int(packet_send(client->fd, &request->base, NULL, 0, 0), 0);
	return request->id;
}

int raw_receive(struct raw_client *client, struct raw_reply *ret_reply)
{
	int r = packet_receive(client->fd, &ret_reply->packet, 0);

	ret_reply->message = NULL;
	if (r < 0)
		return -ECONNRESET;
	ret_reply->message =
		hccld__control__reply__unpack(NULL, ret_reply->packet.size, ret_reply->packet.data);
	check_ptr(ret_reply->message);
	return 0;
}

void raw_call(struct raw_client *client, Hccld__Control__Request *request,
	      struct raw_reply *ret_reply)
{
	uint64_t id = raw_send(client, request);

	check_eq_int(raw_receive(client, ret_reply), 0);
	check_eq_uint(ret_reply->message->id, id);
}

/* A request that must succeed. */
static void raw_call_ok(struct raw_client *client, Hccld__Control__Request *request,
			struct raw_reply *ret_reply)
{
	raw_call(client, request, ret_reply);
	check_msg(ret_reply->message->cause == 0, "request refused: %s", ret_reply->message->text);
}

/* A request that must succeed and whose reply has nothing of interest. */
static void raw_do(struct raw_client *client, Hccld__Control__Request *request)
{
	struct raw_reply reply;

	raw_call_ok(client, request, &reply);
	raw_reply_free(&reply);
}

static void *raw_map(int fd, uint64_t bytes, int protection)
{
	void *base = mmap(NULL, bytes, protection, MAP_SHARED, fd, 0);

	check_msg(base != MAP_FAILED, "mmap: %s", strerror(errno));
	return base;
}

void raw_client_start(struct raw_client *client, Hccld__Control__Hello__Role role)
{
	raw_client_start_with(client, role, 0);
}

void raw_client_start_with(struct raw_client *client, Hccld__Control__Hello__Role role,
			   uint64_t features)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;

	memset(client, 0, sizeof(*client));
	client->event_fd = -1;
	client->fd = raw_connect();
	hello.magic = HCCLD_MAGIC;
	hello.version_low = HCCLD_VERSION_LOW;
	hello.version_high = HCCLD_VERSION_HIGH;
	hello.features = features;
	hello.library = "test";
	hello.process = "raw-client";
	hello.role = role;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	raw_call_ok(client, &request, &reply);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_HELLO);
	client->session = reply.message->hello->session;
	client->device_count = reply.message->hello->device_count;
	if (role == HCCLD__CONTROL__HELLO__ROLE__CLIENT) {
		check_eq_uint(reply.packet.fd_count, 4);
		client->region =
			raw_map(reply.packet.fds[0], SESSION_REGION_SIZE, PROT_READ | PROT_WRITE);
		client->yard =
			raw_map(reply.packet.fds[1], sizeof(struct yard), PROT_READ | PROT_WRITE);
		client->beacon = raw_map(reply.packet.fds[2], 4096, PROT_READ);
		check(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, reply.packet.fds[2],
			   0) == MAP_FAILED);
		client->event_fd = reply.packet.fds[3];
		reply.packet.fds[3] = -1;
	}
	raw_reply_free(&reply);
}

void raw_client_stop(struct raw_client *client)
{
	close(client->fd);
	if (client->event_fd >= 0)
		close(client->event_fd);
	if (client->region) {
		munmap(client->region, SESSION_REGION_SIZE);
		munmap(client->yard, sizeof(struct yard));
		munmap((void *)client->beacon, 4096);
	}
	client->fd = client->event_fd = -1;
	client->region = NULL;
}

uint64_t raw_open_context(struct raw_client *client, uint32_t device)
{
	Hccld__Control__OpenContext open = HCCLD__CONTROL__OPEN_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint64_t context;

	open.device = device;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_CONTEXT;
	request.open_context = &open;
	raw_call_ok(client, &request, &reply);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT);
	context = reply.message->open_context->context;
	raw_reply_free(&reply);
	return context;
}

void raw_close_context(struct raw_client *client, uint64_t context)
{
	Hccld__Control__CloseContext close_context = HCCLD__CONTROL__CLOSE_CONTEXT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	close_context.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CLOSE_CONTEXT;
	request.close_context = &close_context;
	raw_do(client, &request);
}

uint32_t raw_create_stream(struct raw_client *client, uint64_t context)
{
	Hccld__Control__CreateStream create = HCCLD__CONTROL__CREATE_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint32_t stream;

	create.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_CREATE_STREAM;
	request.create_stream = &create;
	raw_call_ok(client, &request, &reply);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM);
	stream = reply.message->create_stream->stream;
	check_eq_uint(session_stream(client->region, stream)->magic, STREAM_MAGIC);
	raw_reply_free(&reply);
	return stream;
}

void raw_destroy_stream(struct raw_client *client, uint32_t stream)
{
	Hccld__Control__DestroyStream destroy = HCCLD__CONTROL__DESTROY_STREAM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	destroy.stream = stream;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_DESTROY_STREAM;
	request.destroy_stream = &destroy;
	raw_do(client, &request);
}

uint64_t raw_allocate(struct raw_client *client, uint64_t context, uint64_t bytes, void **ret_base)
{
	Hccld__Control__AllocateSegment allocate = HCCLD__CONTROL__ALLOCATE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint64_t segment;

	allocate.context = context;
	allocate.bytes = bytes;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request.allocate_segment = &allocate;
	raw_call_ok(client, &request, &reply);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT);
	check_eq_uint(reply.packet.fd_count, 1);
	segment = reply.message->allocate_segment->segment;
	if (ret_base)
		*ret_base = raw_map(reply.packet.fds[0], reply.message->allocate_segment->bytes,
				    PROT_READ | PROT_WRITE);
	raw_reply_free(&reply);
	return segment;
}

uint64_t raw_free_memory(struct raw_client *client, uint64_t context, uint64_t *ret_total)
{
	Hccld__Control__MemoryInfo info = HCCLD__CONTROL__MEMORY_INFO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_reply reply;
	uint64_t bytes;

	info.context = context;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_MEMORY_INFO;
	request.memory_info = &info;
	raw_call(client, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	bytes = reply.message->memory_info->free;
	if (ret_total)
		*ret_total = reply.message->memory_info->total;
	raw_reply_free(&reply);
	return bytes;
}

void raw_free(struct raw_client *client, uint64_t segment)
{
	Hccld__Control__FreeSegment free_segment = HCCLD__CONTROL__FREE_SEGMENT__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	free_segment.segment = segment;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_FREE_SEGMENT;
	request.free_segment = &free_segment;
	raw_do(client, &request);
}

void raw_root_info(struct raw_client *client, struct raw_root *ret_root)
{
	Hccld__Control__GetRootInfo get = HCCLD__CONTROL__GET_ROOT_INFO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GetRootInfoReply *root;
	struct raw_reply reply;

	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GET_ROOT_INFO;
	request.get_root_info = &get;
	raw_call_ok(client, &request, &reply);
	check_eq_int(reply.message->body_case, HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO);
	root = reply.message->get_root_info;
	check_eq_uint(root->secret.len, HCCLD_SECRET_BYTES);
	ret_root->key = root->key;
	memcpy(ret_root->secret, root->secret.data, HCCLD_SECRET_BYTES);
	check_lt_uint(strlen(root->name), sizeof(ret_root->name));
	strcpy(ret_root->name, root->name);
	raw_reply_free(&reply);
}

uint64_t raw_join_send(struct raw_client *client, const struct raw_root *root, uint32_t rank,
		       uint32_t size, uint64_t context, uint32_t deadline_ms)
{
	Hccld__Control__JoinComm join = HCCLD__CONTROL__JOIN_COMM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	join.key = root->key;
	join.secret.data = (unsigned char *)root->secret;
	join.secret.len = HCCLD_SECRET_BYTES;
	join.rank = rank;
	join.size = size;
	join.context = context;
	request.deadline_ms = deadline_ms;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request.join_comm = &join;
	return raw_send(client, &request);
}

void raw_leave(struct raw_client *client, uint64_t rank)
{
	Hccld__Control__LeaveComm leave = HCCLD__CONTROL__LEAVE_COMM__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	leave.rank = rank;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_LEAVE_COMM;
	request.leave_comm = &leave;
	raw_do(client, &request);
}

void raw_open_pair(struct raw_client *client, uint64_t rank, uint32_t send_to)
{
	Hccld__Control__OpenPairs open = HCCLD__CONTROL__OPEN_PAIRS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	open.rank = rank;
	open.n_send_to = 1;
	open.send_to = &send_to;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request.open_pairs = &open;
	raw_do(client, &request);
}

_Noreturn static void rank_process(const struct raw_root *root, int joined_fd, int status)
{
	struct raw_client own;
	struct raw_reply reply;

	raw_client_start(&own, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_join_send(&own, root, 1, 2, raw_open_context(&own, 0), 10000);
	check_eq_int(raw_receive(&own, &reply), 0);
	check_eq_int(write(joined_fd, "1", 1), 1);
	while (status < 0)
		pause();
	_exit(status);
}

pid_t raw_fork_rank(struct raw_client *client, int status, const struct comm_region **ret_region)
{
	uint64_t context = raw_open_context(client, 0);
	struct raw_reply reply;
	struct raw_root root;
	int joined[2];
	pid_t child;
	char byte;

	check_eq_int(pipe(joined), 0);
	raw_root_info(client, &root);
	child = fork();
	check_ge_int(child, 0);
	if (child == 0)
		rank_process(&root, joined[1], status);
	raw_join_send(client, &root, 0, 2, context, 10000);
	check_eq_int(raw_receive(client, &reply), 0);
	check_eq_uint(reply.message->cause, 0);
	*ret_region = raw_map(reply.packet.fds[0], comm_region_size(2), PROT_READ);
	raw_reply_free(&reply);
	check_eq_int(read(joined[0], &byte, 1), 1);
	close(joined[0]);
	close(joined[1]);
	return child;
}

void raw_rank_region_free(const struct comm_region *region)
{
	munmap((void *)region, comm_region_size(2));
}

void raw_status(struct raw_reply *ret_reply)
{
	Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client tool;

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
	request.status = &status;
	raw_call_ok(&tool, &request, ret_reply);
	check_eq_int(ret_reply->message->body_case, HCCLD__CONTROL__REPLY__BODY_STATUS);
	raw_client_stop(&tool);
}

uint32_t raw_session_count(void)
{
	struct raw_reply reply;
	uint32_t count;

	raw_status(&reply);
	count = reply.message->status->sessions;
	raw_reply_free(&reply);
	return count;
}

void raw_wait_for_sessions(uint32_t count)
{
	for (unsigned int tries = 0; tries < 500 * test_timeout_scale() && raw_session_count() != count; tries++)
		usleep(10000);
	check_eq_uint(raw_session_count(), count);
}

void raw_kill_session(uint64_t session)
{
	Hccld__Control__KillSession body = HCCLD__CONTROL__KILL_SESSION__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	struct raw_client tool;
	struct raw_reply reply;

	raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
	body.session = session;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KILL_SESSION;
	request.kill_session = &body;
	raw_call(&tool, &request, &reply);
	check_eq_uint(reply.message->cause, 0);
	raw_reply_free(&reply);
	raw_client_stop(&tool);
}
