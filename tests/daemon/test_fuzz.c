/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that no honest client would send: right in form with wrong numbers, wrong in form, with
 * descriptors nobody asked for, and nonsense in shared memory. The daemon must answer or end the
 * session, serve the next client, and have nothing left in the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proto/feature.h"
#include "proto/status.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define SECONDS 6

static struct private_daemon private_daemon;
static uint64_t pool[64]; /* numbers that were good once */
static struct raw_root root;

static uint64_t number(void)
{
	switch (random() % 6) {
	case 0:
		return (uint64_t)random() % 8;
	case 1:
		return ((uint64_t)random() << 32) ^ (uint64_t)random();
	case 2:
		return UINT64_MAX - (uint64_t)random() % 3;
	default:
		return pool[random() % 64];
	}
}

static void remember(uint64_t value)
{
	pool[random() % 64] = value;
}

union body {
	Hccld__Control__Hello hello;
	Hccld__Control__OpenContext open_context;
	Hccld__Control__CloseContext close_context;
	Hccld__Control__CreateStream create_stream;
	Hccld__Control__DestroyStream destroy_stream;
	Hccld__Control__AllocateSegment allocate_segment;
	Hccld__Control__FreeSegment free_segment;
	Hccld__Control__MemoryInfo memory_info;
	Hccld__Control__GetRootInfo get_root_info;
	Hccld__Control__JoinComm join_comm;
	Hccld__Control__LeaveComm leave_comm;
	Hccld__Control__OpenPairs open_pairs;
	Hccld__Control__MapPeer map_peer;
	Hccld__Control__GrowComm grow_comm;
	Hccld__Control__Status status;
	Hccld__Control__List list;
};

static uint32_t peers[64];

static void make_join(Hccld__Control__Request *request, union body *body)
{
	hccld__control__join_comm__init(&body->join_comm);
	body->join_comm.key = random() % 4 ? root.key : number();
	body->join_comm.secret.data = root.secret;
	body->join_comm.secret.len =
		random() % 8 ? HCCLD_SECRET_BYTES : (size_t)random() % HCCLD_SECRET_BYTES;
	body->join_comm.rank = (uint32_t)random() % 4;
	body->join_comm.size = random() % 8 ? 1 + (uint32_t)random() % 3 : (uint32_t)number();
	body->join_comm.context = number();
	body->join_comm.name = random() % 4 ? "" : "name\n\xff";
	request->deadline_ms = 1 + (uint32_t)random() % 50;
	request->body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request->join_comm = &body->join_comm;
}

static void make_pairs(Hccld__Control__Request *request, union body *body)
{
	hccld__control__open_pairs__init(&body->open_pairs);
	for (int i = 0; i < 64; i++)
		peers[i] = random() % 16 ? (uint32_t)random() % 4 : (uint32_t)number();
	body->open_pairs.rank = number();
	body->open_pairs.n_send_to = (size_t)random() % 64;
	body->open_pairs.n_receive_from = (size_t)random() % 64;
	body->open_pairs.send_to = body->open_pairs.receive_from = peers;
	body->open_pairs.map = random() % 2;
	body->open_pairs.mapped_pairs = random() % 2 ? 0 : (uint32_t)number();
	request->body_case = HCCLD__CONTROL__REQUEST__BODY_OPEN_PAIRS;
	request->open_pairs = &body->open_pairs;
}

static void make_memory(Hccld__Control__Request *request, union body *body)
{
	hccld__control__allocate_segment__init(&body->allocate_segment);
	body->allocate_segment.context = number();
	body->allocate_segment.kind = (Hccld__Control__AllocateSegment__Kind)(random() % 5 - 1);
	body->allocate_segment.bytes = random() % 2 ? (uint64_t)random() % (4 << 20) : number();
	request->body_case = HCCLD__CONTROL__REQUEST__BODY_ALLOCATE_SEGMENT;
	request->allocate_segment = &body->allocate_segment;
}

#define MAKE(type, field, upper, ...)                                       \
	do {                                                                \
		hccld__control__##type##__init(&body->field);               \
		__VA_ARGS__;                                                \
		request->body_case = HCCLD__CONTROL__REQUEST__BODY_##upper; \
		request->field = &body->field;                              \
	} while (0)

static void make_request(Hccld__Control__Request *request, union body *body)
{
	hccld__control__request__init(request);
	switch (random() % 17) {
	case 0:
	case 1:
		MAKE(open_context, open_context, OPEN_CONTEXT,
		     body->open_context.device = (uint32_t)random() % 9);
		break;
	case 2:
		MAKE(close_context, close_context, CLOSE_CONTEXT,
		     body->close_context.context = number());
		break;
	case 3:
	case 4:
		MAKE(create_stream, create_stream, CREATE_STREAM,
		     body->create_stream.context = number());
		break;
	case 5:
		MAKE(destroy_stream, destroy_stream, DESTROY_STREAM,
		     body->destroy_stream.stream =
			     (uint32_t)(random() % 2 ? (uint64_t)random() % 16 : number()));
		break;
	case 6:
		make_memory(request, body);
		break;
	case 7:
		MAKE(free_segment, free_segment, FREE_SEGMENT,
		     body->free_segment.segment = number());
		break;
	case 8:
		MAKE(memory_info, memory_info, MEMORY_INFO, body->memory_info.context = number());
		break;
	case 9:
		MAKE(get_root_info, get_root_info, GET_ROOT_INFO, (void)0);
		break;
	case 10:
		make_join(request, body);
		break;
	case 11:
		MAKE(leave_comm, leave_comm, LEAVE_COMM, body->leave_comm.rank = number());
		break;
	case 12:
		make_pairs(request, body);
		break;
	case 13:
		MAKE(map_peer, map_peer, MAP_PEER, body->map_peer.rank = number(); body->map_peer.segment = number();
		     body->map_peer.peer = random() % 16 ? (uint32_t)random() % 4 : (uint32_t)number());
		break;
	case 14:
		MAKE(grow_comm, grow_comm, GROW_COMM, body->grow_comm.rank = number(); body->grow_comm.pool = random() % 2;
		     body->grow_comm.peer = body->grow_comm.pools = random() % 16 ? (uint32_t)random() % 4 : (uint32_t)number());
		break;
	case 15:
		MAKE(status, status, STATUS, (void)0);
		break;
	default:
		MAKE(list, list, LIST, body->list.after = number();
		     body->list.kind = (Hccld__Control__List__Kind)(random() % 6 - 1));
	}
}

/* Sends it, one time in a while with some bytes changed, cut off, or with descriptors. */
static int send_request(struct raw_client *client, Hccld__Control__Request *request)
{
	unsigned char data[8192];
	size_t size;

	request->id = ++client->next_id;
	if (random() % 64) {
		int fd = client->event_fd;

		return packet_send(client->fd, &request->base, &fd, random() % 32 == 0, 0);
	}
	size = hccld__control__request__pack(request, data);
	for (int i = 0; i < 4 && size; i++)
		data[(size_t)random() % size] ^= (unsigned char)(1 << random() % 8);
	size -= (size_t)random() % (size / 2 + 1);
	return send(client->fd, data, size, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void read_reply(struct raw_client *client, const struct raw_reply *reply)
{
	const Hccld__Control__Reply *message = reply->message;

	switch (message->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT:
		remember(message->open_context->context);
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		remember(message->allocate_segment->segment);
		break;
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		remember(message->join_comm->rank);
		break;
	case HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO:
		root.key = message->get_root_info->key;
		memcpy(root.secret, message->get_root_info->secret.data, HCCLD_SECRET_BYTES);
		break;
	default:
		check(message->cause == 0 || *message->text);
	}
	(void)client;
}

/* Nonsense in the rings, for whoever reads them: the engine, and status reports. */
static void scribble(struct raw_client *client)
{
	struct stream_ring *ring = session_stream(client->region, (uint32_t)random() % 16);
	uint64_t *words = (uint64_t *)ring;

	if (ring->magic != STREAM_MAGIC)
		return;
	for (int i = 0; i < 32; i++)
		words[random() % (int)(sizeof(*ring) / 8)] = number();
	atomic_store(&ring->tail, atomic_load(&ring->completed) + (uint64_t)random() % 8);
	for (int i = 0; i < 8; i++)
		ring->slots[(ring->completed + (uint64_t)i) % HCCLD_STREAM_SLOTS].task =
			(struct task){ .kind = (uint8_t)(random() % 4),
				       .slot_count = (uint16_t)(random() % 4),
				       .item_count = (uint32_t)random() % 4,
				       .rank = number(),
				       .side = random() % 2 ? 0 : number(),
				       .first_lane = (uint32_t)random() % 4 };
	client->yard->contexts[ring->context % HCCLD_YARD_CONTEXTS].state = yard_next(
		client->yard->contexts[ring->context % HCCLD_YARD_CONTEXTS].state, CONTEXT_LEFT);
	client->yard->bits[random() % 64] = ~0ull;
	check_eq_int(write(client->event_fd, &(uint64_t){ 1 }, 8), 8);
}

static bool step(struct raw_client *client, uint32_t *waiting)
{
	Hccld__Control__Request request;
	struct raw_reply reply;
	union body body;

	make_request(&request, &body);
	if (send_request(client, &request) < 0)
		return false;
	++*waiting;
	if (random() % 16 == 0)
		scribble(client);
	while (*waiting > 20) {
		if (raw_receive(client, &reply) < 0)
			return false;
		read_reply(client, &reply);
		raw_reply_free(&reply);
		--*waiting;
	}
	return true;
}

static void check_empty(void)
{
	struct raw_reply reply;
	const Hccld__Control__StatusReply *status = NULL;

	for (unsigned tries = 0; tries < 4 * 100 * test_timeout_scale(); tries++) {
		raw_status(&reply);
		status = reply.message->status;
		if (!status->sessions && !status->comms && !status->devices[0]->memory_used)
			break;
		raw_reply_free(&reply);
		usleep(50000);
	}
	check_eq_uint(status->sessions, 0);
	check_eq_uint(status->comms, 0);
	for (size_t i = 0; i < status->n_devices; i++)
		check_eq_uint(status->devices[i]->memory_used, 0);
	raw_reply_free(&reply);
}

TEST_TIMEOUT(nothing_that_a_client_sends_ends_the_daemon, 60)
{
	static const char *const options[] = { "--device-memory", "64M", "--log-level", "error",
					       NULL };
	time_t end = time(NULL) + SECONDS;

	srandom((unsigned int)test_seed());
	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	while (time(NULL) < end) {
		struct raw_client client;
		struct timeval patience = { .tv_sec = 5 };
		uint32_t waiting = 0;
		int steps = (int)(random() % 2000);

		raw_client_start_with(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT, random() % 2 ? HCCLD_FEATURE_DIRECT : 0);
		/*
		 * a changed byte may make a request without answer out of another: its length or
		 * kind
		 */
		setsockopt(client.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		while (steps-- && step(&client, &waiting))
			;
		raw_client_stop(&client);
	}
	check_empty();
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}
