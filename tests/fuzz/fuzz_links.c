/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other daemons send: connections to a cluster, and those that it makes, all to this harness. The first byte says how long silence
 * may last. Then steps: a connection whose first bytes are the input's, or that proves the key and goes on with frames of the input's, or
 * with right ones in any order; time passes; connections end. When all have, the cluster holds none, and no descriptor stays open.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/loop.h"
#include "cluster/cluster.h"
#include "cluster/handshake.h"
#include "cluster/wire.h"
#include "proto/frame.h"
#include "proto/link.pb-c.h"
#include "tests/fuzz/inline_loop.h"
#include "tests/fuzz/input.h"

#define ENDS 4
#define TURNS_MAX 10000
#define OWN_NODE 2 /* others are 0 to 3, too */

static const struct key key = { .size = 32, .data = "the key of the fuzzer, 32 bytes." };

/* The other end of a connection of the cluster's. */
struct end {
	int fd; /* -1: none */
};

static struct end ends[ENDS];
static int listen_fd = -1, key_fd = -1;
static in_port_t listen_port;
static struct loop *loop;
static struct cluster *cluster;

/* Whatever an address says, it is here; a name that begins with x is unknown. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **ret_found)
{
	struct addrinfo *found;
	struct sockaddr_in *here;

	if (!host || host[0] == 'x')
		return EAI_NONAME;
	found = calloc(1, sizeof(*found) + sizeof(*here));
	insist(found);
	here = (struct sockaddr_in *)(found + 1);
	*here = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = listen_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	found->ai_family = AF_INET;
	found->ai_addr = (struct sockaddr *)here;
	found->ai_addrlen = sizeof(*here);
	*ret_found = found;
	return 0;
}

void freeaddrinfo(struct addrinfo *found)
{
	free(found);
}

static int lowest_fd(void)
{
	int fd = fcntl(key_fd, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

static int listener_open(in_port_t *ret_port)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	insist(fd >= 0 && bind(fd, (struct sockaddr *)&here, sizeof(here)) == 0 && listen(fd, 16) == 0);
	insist(getsockname(fd, (struct sockaddr *)&here, &size) == 0);
	*ret_port = here.sin_port;
	return fd;
}

static void begin_once(void)
{
	if (listen_fd >= 0)
		return;
	log_init(LOG_LEVEL_ERROR);
	listen_fd = listener_open(&listen_port);
	key_fd = memfd_create("key", MFD_CLOEXEC);
	insist(key_fd >= 0 && fchmod(key_fd, 0600) == 0 && write(key_fd, key.data, key.size) == (ssize_t)key.size);
	for (int i = 0; i < ENDS; i++)
		ends[i].fd = -1;
}

static void turn(void)
{
	int turns = 0;

	while (loop_turn(loop))
		insist(++turns < TURNS_MAX);
}

static void cluster_begin(uint8_t mode)
{
	struct cluster_options options = {
		.node = OWN_NODE, .name = "fuzzed", .version = "1", .soc_name = "chip", .devices = 8, .listen = "none", .port = 7411,
		.peers = mode & 1 ? "one two:80" : "none", .keepalive_ms = mode & 2 ? 0 : 60000, .peer_timeout_ms = mode & 4 ? 0 : 60000,
	};
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct address address = { .size = sizeof(here) };
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", key_fd);
	insist(loop_new(&loop) == 0 && cluster_new(loop, &options, path, &cluster) == 0 && cluster->has_key);
	memcpy(&address.socket, &here, sizeof(here));
	insist(listening_start(cluster, &address) == 0);
	address.size = sizeof(address.socket);
	insist(getsockname(cluster->listening[0].fd, (struct sockaddr *)&address.socket, &address.size) == 0);
	cluster->listening[0].address = address;
	cluster_start(cluster, 1);
}

/* With a reset: its port is free again. */
static void end_close(struct end *end)
{
	if (end->fd < 0)
		return;
	(void)setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger));
	close(end->fd);
	end->fd = -1;
}

static void end_send(const struct end *end, const void *data, size_t size)
{
	(void)!send(end->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	turn();
}

static void end_send_frame(const struct end *end, const void *data, size_t size)
{
	const uint32_t length = htonl((uint32_t)size);
	unsigned char bytes[FRAME_HEADER + 1024];

	insist(size <= 1024);
	memcpy(bytes, &length, FRAME_HEADER);
	memcpy(bytes + FRAME_HEADER, data, size);
	end_send(end, bytes, FRAME_HEADER + size);
}

static void end_send_message(const struct end *end, const Hccld__Link__Frame *frame)
{
	unsigned char bytes[1024];

	insist(hccld__link__frame__get_packed_size(frame) <= sizeof(bytes));
	end_send_frame(end, bytes, hccld__link__frame__pack(frame, bytes));
}

/* It knows the key. */
static void end_prove(const struct end *end, bool is_connector)
{
	unsigned char out[HANDSHAKE_OUT_MAX], in[sizeof(struct link_greeting)];
	struct handshake handshake;
	size_t size, need;

	handshake_init(&handshake, is_connector, out, &size);
	end_send(end, out, size);
	while ((need = handshake_need(&handshake)) > 0) {
		turn();
		if (recv(end->fd, in, need, MSG_DONTWAIT) != (ssize_t)need)
			return;
		insist(handshake_step(&handshake, &key, in, out, &size) == 0);
		end_send(end, out, size);
	}
}

static void end_begin(const struct end *end, bool is_connector, bool proves)
{
	/* what is sent is there in the next turn */
	insist(setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) == 0);
	turn();
	if (proves)
		end_prove(end, is_connector);
}

static void end_connect(struct end *end, bool proves)
{
	end_close(end);
	turn();
	end->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	insist(end->fd >= 0);
	/* a signal, or a pair of ports that was used just before: rare, and no fault of what is looked at */
	if (connect(end->fd, (struct sockaddr *)&cluster->listening[0].address.socket, cluster->listening[0].address.size) < 0) {
		end_close(end);
		return;
	}
	end_begin(end, true, proves);
}

/* One that the cluster has made, if there is one. */
static void end_accept(struct end *end, bool proves)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	end_close(end);
	end->fd = fd;
	end_begin(end, false, proves);
}

/* Small numbers, which meet each other; 3 of a stream: the one that the cluster has for this node. */
static uint64_t stream_id(struct input *input, uint64_t node, bool is_theirs)
{
	uint8_t choice = input_byte(input) % 4;
	struct link *link = cluster_find_node(cluster, node);

	if (choice < 3 || !link)
		return choice;
	return is_theirs ? link->met : link->own;
}

static void end_say_hello(const struct end *end, struct input *input, bool is_welcome)
{
	static char *addresses[] = { (char *)"x", (char *)"far:1", (char *)"[", (char *)"[::1]:80" };
	Hccld__Link__Frame frame = HCCLD__LINK__FRAME__INIT;
	Hccld__Link__Hello hello = HCCLD__LINK__HELLO__INIT;
	Hccld__Link__Welcome welcome = HCCLD__LINK__WELCOME__INIT;
	Hccld__Link__Streams streams = HCCLD__LINK__STREAMS__INIT;
	uint8_t more = input_byte(input);
	char *address = addresses[more / 4 % 4];

	hello.node = more % 4;
	streams.own = stream_id(input, hello.node, true);
	streams.met = stream_id(input, hello.node, false);
	frame.received = input_byte(input) % 8;
	hello.name = address;
	hello.port = more & 16 ? 80 : 0;
	hello.addresses = &address;
	hello.n_addresses = more & 32 ? 1 : 0;
	hello.streams = welcome.streams = more & 64 ? NULL : &streams;
	frame.body_case = is_welcome ? HCCLD__LINK__FRAME__BODY_WELCOME : HCCLD__LINK__FRAME__BODY_HELLO;
	if (is_welcome)
		frame.welcome = &welcome;
	else
		frame.hello = &hello;
	end_send_message(end, &frame);
}

static void end_say(const struct end *end, struct input *input)
{
	Hccld__Link__Frame frame = HCCLD__LINK__FRAME__INIT;
	Hccld__Link__Beat beat = HCCLD__LINK__BEAT__INIT;
	Hccld__Link__Answer answer = HCCLD__LINK__ANSWER__INIT;
	Hccld__Link__Bye bye = HCCLD__LINK__BYE__INIT;
	uint8_t kind = input_byte(input);
	struct link *link = cluster_find_node(cluster, kind / 4 % 4);

	frame.number = input_byte(input) % 8;
	frame.received = input_byte(input) % 4;
	answer.cookie = link ? link->beat_cookie : 5;
	bye.reason = (Hccld__Link__Bye__Reason)(kind / 16);
	if (kind % 4 == 0) {
		frame.body_case = HCCLD__LINK__FRAME__BODY_BEAT;
		frame.beat = &beat;
	} else if (kind % 4 == 1) {
		frame.body_case = HCCLD__LINK__FRAME__BODY_ANSWER;
		frame.answer = &answer;
	} else if (kind % 4 == 2) {
		frame.body_case = HCCLD__LINK__FRAME__BODY_BYE;
		frame.bye = &bye;
	}
	end_send_message(end, &frame);
}

static void end_send_input(const struct end *end, struct input *input, bool as_frame)
{
	size_t size = input_byte(input);

	size = size < input->size ? size : input->size;
	if (as_frame)
		end_send_frame(end, input->data, size);
	else
		end_send(end, input->data, size);
	input->data += size;
	input->size -= size;
}

/* Something for the other side, as a user of the link would. */
static void node_push(struct input *input)
{
	struct link *link = cluster_find_node(cluster, input_byte(input) % 4);

	if (link)
		insist(stream_push(&link->stream, "\x08\x01", 2) == 0);
}

static void step(struct input *input)
{
	uint8_t what = input_byte(input);
	struct end *end = &ends[what / 16 % ENDS];

	switch (what % 16) {
	case 0:
	case 1:
		end_connect(end, what % 16);
		break;
	case 2:
	case 3:
		end_accept(end, what % 16 == 3);
		break;
	case 4:
		loop_advance(loop);
		turn();
		break;
	case 5:
		end_close(end);
		turn();
		break;
	case 6:
		node_push(input);
		break;
	default:
		if (end->fd < 0)
			break;
		if (what % 16 < 9)
			end_send_input(end, input, what % 16 == 7);
		else if (what % 16 < 13)
			end_say_hello(end, input, what % 16 == 12);
		else
			end_say(end, input);
	}
}

static void check_links(void)
{
	uint32_t count = 0;

	list_for_each(struct link, link, &cluster->links, link) {
		count++;
		insist(link->node && link->node != OWN_NODE && link->own);
		insist((link->state == LINK_UP) == (link->wire != NULL));
		insist(link->stream.acked <= link->stream.sent && link->stream.sent <= link->stream.last);
		insist(!link->dial || link->dial->to == link);
	}
	insist(count == cluster->link_count && count <= 2 + ENDS * 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	int lowest, fd;

	begin_once();
	lowest = lowest_fd();
	cluster_begin(input_byte(&input));
	turn();
	while (!input_is_empty(&input)) {
		step(&input);
		check_links();
	}
	/* no more connections come, and all that are there end */
	for (int i = 0; i < ENDS; i++)
		end_close(&ends[i]);
	while ((fd = accept(listen_fd, NULL, NULL)) >= 0)
		end_close(&(struct end){ fd });
	turn();
	insist(cluster->arrival_count == 0 && list_is_empty(&cluster->arrivals));
	list_for_each(struct link, link, &cluster->links, link)
		insist(!link->wire);
	cluster = cluster_free(cluster);
	loop = loop_free(loop);
	while ((fd = accept(listen_fd, NULL, NULL)) >= 0)
		end_close(&(struct end){ fd });
	insist(lowest_fd() == lowest);
	return 0;
}
