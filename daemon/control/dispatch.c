/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet to its handler. */
#include "control/dispatch.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/log.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/request.h"
#include "control/retry.h"
#include "control/user.h"
#include "proto/packet.h"
#include "registry/session.h"

#define REQUESTS_MAX (2 * HCCLD_RANKS_PER_SESSION) /* of one client at a time */
#define UNPACKED_MAX (1u << 20) /* bytes of one request; the largest honest one has 32 KiB */
#define UNPACKED_OF_ALL_MAX (16u << 20) /* of those of one client that wait */

#define CASE(name) HCCLD__CONTROL__REQUEST__BODY_##name

static const struct {
	Hccld__Control__Request__BodyCase body;
	int (*handle)(struct request *request);
	bool is_query; /* tools may ask too */
} handlers[] = {
	{ CASE(OPEN_CONTEXT), handle_open_context, false },
	{ CASE(CLOSE_CONTEXT), handle_close_context, false },
	{ CASE(CREATE_STREAM), handle_create_stream, false },
	{ CASE(DESTROY_STREAM), handle_destroy_stream, false },
	{ CASE(ALLOCATE_SEGMENT), handle_allocate_segment, false },
	{ CASE(FREE_SEGMENT), handle_free_segment, false },
	{ CASE(MEMORY_INFO), handle_memory_info, false },
	{ CASE(GET_ROOT_INFO), handle_get_root_info, false },
	{ CASE(JOIN_COMM), handle_join_comm, false },
	{ CASE(LEAVE_COMM), handle_leave_comm, false },
	{ CASE(OPEN_PAIRS), handle_open_pairs, false },
	{ CASE(MAP_PEER), handle_map_peer, false },
	{ CASE(GROW_COMM), handle_grow_comm, false },
	{ CASE(CANCEL_JOIN), handle_cancel_join, false },
	{ CASE(SUSPEND_COMM), handle_suspend_comm, false },
	{ CASE(RESUME_COMM), handle_resume_comm, false },
	{ CASE(ABORT_TASKS), handle_abort_tasks, false },
	{ CASE(EXPORT_MEMORY), handle_export_memory, false },
	{ CASE(ALLOW_IMPORT), handle_allow_import, false },
	{ CASE(IMPORT_MEMORY), handle_import_memory, false },
	{ CASE(END_EXPORT), handle_end_export, false },
	{ CASE(LIST_LOST), handle_list_lost, false },
	{ CASE(DESCRIBE_DEVICE), handle_describe_device, false },
	{ CASE(CREATE_NOTIFIES), handle_create_notifies, false },
	{ CASE(FREE_NOTIFIES), handle_free_notifies, false },
	{ CASE(RESET_NOTIFIES), handle_reset_notifies, false },
	{ CASE(TAKE_CORES), handle_take_cores, false },
	{ CASE(GIVE_CORES), handle_give_cores, false },
	{ CASE(KEEP_CORES), handle_keep_cores, false },
	{ CASE(REGISTER_MEMORY), handle_register_memory, false },
	{ CASE(UNREGISTER_MEMORY), handle_unregister_memory, false },
	{ CASE(OFFER_CHANNELS), handle_offer_channels, false },
	{ CASE(AWAIT_CHANNELS), handle_await_channels, false },
	{ CASE(DESCRIBE_CHANNEL), handle_describe_channel, false },
	{ CASE(CLOSE_CHANNELS), handle_close_channels, false },
	{ CASE(MAP_IMPORT), handle_map_import, false },
	{ CASE(CREATE_THREAD), handle_create_thread, false },
	{ CASE(DESTROY_THREAD), handle_destroy_thread, false },
	{ CASE(STATUS), handle_status, true },
	{ CASE(LIST), handle_list, true },
	{ CASE(GET_CONFIG), handle_get_config, true },
	{ CASE(SET_LOG_LEVEL), handle_set_log_level, true },
	{ CASE(KILL_SESSION), handle_kill_session, true },
	{ CASE(DRAIN), handle_drain, true },
	{ CASE(PING), handle_ping, true },
	{ CASE(MONITOR), handle_monitor, true },
};

bool dispatch_begins(const struct request *request)
{
	switch (request->message->body_case) {
	case CASE(HELLO):
		return request->message->hello->role != HCCLD__CONTROL__HELLO__ROLE__TOOL;
	case CASE(OPEN_CONTEXT):
	case CASE(CREATE_STREAM):
	case CASE(CREATE_THREAD):
	case CASE(ALLOCATE_SEGMENT):
	case CASE(GET_ROOT_INFO):
	case CASE(JOIN_COMM):
	case CASE(CREATE_NOTIFIES):
	case CASE(TAKE_CORES):
	case CASE(REGISTER_MEMORY):
	case CASE(OFFER_CHANNELS):
		return true;
	default:
		return false;
	}
}

/* -EPROTO: the message does not belong here. */
static int dispatch_request(struct connection *connection, struct request *request)
{
	Hccld__Control__Request__BodyCase body = request->message->body_case;

	if (request->control->is_leaving && dispatch_begins(request))
		return request_fail(
			request, CAUSE_DAEMON_GONE,
			"hccld is being stopped and begins nothing new; try again when it has been started again");
	if (body == CASE(HELLO))
		return handle_hello(request);
	if (connection->state == CONNECTION_NEW)
		return -EPROTO;
	if (connection->request_count > REQUESTS_MAX)
		return request_fail(request, CAUSE_LIMIT,
				    "more than %u requests of one process at a time", REQUESTS_MAX);
	if (connection->user->requests > connection->control->options.requests_per_user &&
	    !user_is_special(connection->user))
		return request_fail(
			request, CAUSE_LIMIT,
			"requests of uid %u in flight: %u of %u; raise [limits] requests_per_user; hcclctl config says where it is set",
			connection->user->uid, connection->user->requests - 1,
			connection->control->options.requests_per_user);
	for (size_t i = 0; i < sizeof(handlers) / sizeof(handlers[0]); i++) {
		if (handlers[i].body != body)
			continue;
		if (connection->state == CONNECTION_TOOL && !handlers[i].is_query)
			return -EPROTO;
		return handlers[i].handle(request);
	}
	return request_fail(request, CAUSE_UNBUILT,
			    "hccld %s does not know this request; update hccld",
			    connection->control->options.version);
}

/*
 * Fields of two bytes, of which a packet has thousands, take some fifty when they are unpacked, also
 * those that nobody knows: what a message becomes has a limit of its own.
 */
static void *unpack_allocate(void *data, size_t size)
{
	size_t *unpacked = data;

	/* what the allocator itself needs for each */
	*unpacked += size + 16;
	return *unpacked > UNPACKED_MAX ? NULL : malloc(size);
}

static void unpack_free(void *data, void *pointer)
{
	(void)data;
	free(pointer);
}

/* Room to unpack one packet when malloc() gives none; nothing is ever freed in it. */
static struct {
	_Alignas(16) unsigned char bytes[4 * HCCLD_PACKET_MAX];
	size_t used;
} spare;

static void *spare_alloc(void *data, size_t size)
{
	size_t at = (spare.used + 15) & ~(size_t)15;

	if (size > sizeof(spare.bytes) - at)
		return NULL;
	spare.used = at + size;
	return spare.bytes + at;
}

static void spare_free(void *data, void *pointer)
{
}

/* The reply needs no memory. */
static void dispatch_out_of_memory(struct connection *connection, uint64_t id)
{
	Hccld__Control__Reply reply = HCCLD__CONTROL__REPLY__INIT;

	log_warning("%s: no memory for its request", connection_name(connection));
	reply.id = id;
	reply.cause = CAUSE_HOST_MEMORY;
	reply.text = (char *)"hccld itself is out of memory; the request was not begun";
	if (packet_send(connection->fd, &reply.base, NULL, 0, MSG_DONTWAIT) < 0)
		connection_fail(connection, "no memory for its request");
}

/* A packet that cannot be unpacked: for lack of memory, or because it is malformed? */
static void dispatch_refuse(struct connection *connection, const struct packet *packet)
{
	ProtobufCAllocator allocator = { spare_alloc, spare_free, NULL };
	const Hccld__Control__Request *message;

	spare.used = 0;
	message = hccld__control__request__unpack(&allocator, packet->size, packet->data);
	if (message)
		dispatch_out_of_memory(connection, message->id);
	else
		connection_fail(connection, "it has sent a malformed packet");
}

void dispatch_again(struct request *request)
{
	struct connection *connection = request->connection;
	int r = dispatch_request(connection, request);

	if (r == -EPROTO) {
		request_free(request);
		connection_fail(connection, "it has sent a message that is out of order");
	} else if (r != REQUEST_LATER && !retry_hold(request, r)) {
		request_finish(request, r);
	}
}

static bool is_under_way(const struct connection *connection, uint64_t id)
{
	list_for_each(struct request, request, &connection->requests, link)
		if (request->message->id == id)
			return true;
	return false;
}

/*
 * A client that sees a new incarnation sends again what is not answered for a while. The first copy may have waited in the socket for us,
 * and is the one that is answered: done twice, it would make a stream or memory that nobody knows. What another process of ours has read
 * we have not.
 */
static bool is_copy(struct connection *connection, uint64_t id)
{
	uint64_t *received = connection->received;

	if (!connection->session || !connection->session->is_restored)
		return false;
	for (uint32_t i = 0; i < RECEIVED_MAX && i < connection->received_count; i++)
		if (received[i] == id)
			return true;
	if (is_under_way(connection, id))
		return true;
	received[connection->received_count++ % RECEIVED_MAX] = id;
	return false;
}

void dispatch_packet(struct connection *connection, const struct packet *packet)
{
	size_t unpacked = 0;
	ProtobufCAllocator allocator = { unpack_allocate, unpack_free, &unpacked };
	Hccld__Control__Request *message =
		hccld__control__request__unpack(&allocator, packet->size, packet->data);
	struct request *request;

	if (!message) {
		dispatch_refuse(connection, packet);
		return;
	}
	if (is_copy(connection, message->id)) {
		hccld__control__request__free_unpacked(message, NULL);
		return;
	}
	if (connection->unpacked + unpacked > UNPACKED_OF_ALL_MAX) {
		hccld__control__request__free_unpacked(message, NULL);
		connection_fail(connection, "its requests that wait are too large");
		return;
	}
	request = request_new(connection, message, unpacked);
	if (!request) {
		dispatch_out_of_memory(connection, message->id);
		hccld__control__request__free_unpacked(message, NULL);
		return;
	}
	dispatch_again(request);
}
