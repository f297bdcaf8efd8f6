/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets as no honest client uses them: packets with changed, missing and additional bytes, in any order, with descriptors, halves
 * of connections, many of them, none that reads. Two honest processes exchange data all the time and must not notice; the daemon must
 * live, serve the next client, and have nothing left in the end.
 *
 * Everything but timing follows from TEST_SEED.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "proto/status.h"
#include "tests/fuzz/bystander.h"
#include "tests/support/private_daemon.h"
#include "tests/support/raw_client.h"
#include "tests/support/test.h"

#define SECONDS 6
#define ROUND_LIMIT_MS 4000
#define PACKET_ROOM (HCCLD_PACKET_MAX + 4096u)

static struct private_daemon private_daemon;
static const char *const options[] = { "--device-memory", "256M", "--log-level", "error", NULL };

static uint64_t state;

static uint32_t below(uint32_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % limit;
}

static bool one_in(uint32_t n)
{
	return below(n) == 0;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* ---- packets: good ones first ---- */

static uint64_t contexts[8]; /* of the connection at hand, as replies have named them; so are the rest */
static struct raw_root root;

static size_t pack_hello(unsigned char *data, uint64_t id)
{
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	hello.magic = HCCLD_MAGIC;
	hello.version_low = HCCLD_VERSION_LOW;
	hello.version_high = HCCLD_VERSION_HIGH;
	hello.library = "fuzz";
	hello.process = "protocol";
	hello.role = one_in(4) ? HCCLD__CONTROL__HELLO__ROLE__TOOL : HCCLD__CONTROL__HELLO__ROLE__CLIENT;
	request.id = id;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	return hccld__control__request__pack(&request, data);
}

#define PACK(type, field, upper, ...)                                               \
	do {                                                                        \
		Hccld__Control__##type message = HCCLD__CONTROL__##upper##__INIT;   \
		__VA_ARGS__;                                                        \
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_##upper;          \
		request.field = &message;                                           \
		return hccld__control__request__pack(&request, data);               \
	} while (0)

static size_t pack_join(Hccld__Control__Request *request, unsigned char *data)
{
	Hccld__Control__JoinComm join = HCCLD__CONTROL__JOIN_COMM__INIT;

	join.key = root.key;
	join.secret.data = root.secret;
	join.secret.len = HCCLD_SECRET_BYTES;
	join.rank = below(2);
	join.size = 1 + below(2);
	join.context = contexts[below(8)];
	join.name = "name";
	join.udi = "udi";
	request->deadline_ms = 1 + below(100);
	request->body_case = HCCLD__CONTROL__REQUEST__BODY_JOIN_COMM;
	request->join_comm = &join;
	return hccld__control__request__pack(request, data);
}

static size_t pack_request(unsigned char *data, uint64_t id)
{
	static uint32_t peers[] = { 0, 1, 0, 1 };
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

	request.id = id;
	switch (below(16)) {
	case 0:
		return pack_hello(data, id);
	case 1:
		PACK(CreateStream, create_stream, CREATE_STREAM, message.context = contexts[below(8)]);
	case 2:
		PACK(DestroyStream, destroy_stream, DESTROY_STREAM, message.stream = below(8));
	case 3:
		PACK(AllocateSegment, allocate_segment, ALLOCATE_SEGMENT, message.context = contexts[below(8)];
		     message.bytes = 1 + below(3 << 20); message.kind = (Hccld__Control__AllocateSegment__Kind)below(3));
	case 4:
		PACK(FreeSegment, free_segment, FREE_SEGMENT, message.segment = contexts[below(8)]);
	case 5:
		PACK(MemoryInfo, memory_info, MEMORY_INFO, message.context = contexts[below(8)]);
	case 6:
		PACK(GetRootInfo, get_root_info, GET_ROOT_INFO, (void)message);
	case 7:
		return pack_join(&request, data);
	case 8:
		PACK(LeaveComm, leave_comm, LEAVE_COMM, message.rank = contexts[below(8)]);
	case 9:
		PACK(OpenPairs, open_pairs, OPEN_PAIRS, message.rank = contexts[below(8)]; message.n_send_to = below(5);
		     message.send_to = peers; message.map = below(2); message.mapped_pairs = below(4));
	case 10:
		PACK(List, list, LIST, message.kind = (Hccld__Control__List__Kind)below(4));
	case 11:
		PACK(CloseContext, close_context, CLOSE_CONTEXT, message.context = contexts[below(8)]);
	case 12:
		PACK(MapPeer, map_peer, MAP_PEER, message.rank = contexts[below(8)]; message.peer = below(3); message.segment = contexts[below(8)]);
	case 13:
		PACK(GrowComm, grow_comm, GROW_COMM, message.rank = contexts[below(8)]; message.pool = below(2); message.peer = below(3); message.pools = below(3));
	default:
		PACK(OpenContext, open_context, OPEN_CONTEXT, message.device = below(8));
	}
}

/* What replies give away, for later requests. */
static void learn(const Hccld__Control__Reply *reply)
{
	switch (reply->body_case) {
	case HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT:
		contexts[below(8)] = reply->open_context->context;
		break;
	case HCCLD__CONTROL__REPLY__BODY_ALLOCATE_SEGMENT:
		contexts[below(8)] = reply->allocate_segment->segment;
		break;
	case HCCLD__CONTROL__REPLY__BODY_JOIN_COMM:
		contexts[below(8)] = reply->join_comm->rank;
		break;
	case HCCLD__CONTROL__REPLY__BODY_GET_ROOT_INFO:
		root.key = reply->get_root_info->key;
		memcpy(root.secret, reply->get_root_info->secret.data, HCCLD_SECRET_BYTES);
		break;
	default:
		break;
	}
}

static size_t spoil(unsigned char *data, size_t size)
{
	switch (below(8)) {
	case 0: /* a bit or some */
		for (uint32_t i = 1 + below(4); i && size; i--)
			data[below((uint32_t)size)] ^= (unsigned char)(1u << below(8));
		return size;
	case 1: /* cut off */
		return below((uint32_t)size + 1);
	case 2: /* more behind it */
		for (uint32_t i = below(64); i && size < PACKET_ROOM; i--)
			data[size++] = (unsigned char)below(256);
		return size;
	case 3: /* a number of many bytes, a field without end */
		if (size > 4) {
			uint32_t at = below((uint32_t)size - 4);

			memset(data + at, 0xff, 4);
		}
		return size;
	case 4: /* large, and larger than can be */
		size = HCCLD_PACKET_MAX - 16 + below(32);
		for (size_t i = 0; i < size; i++)
			data[i] = (unsigned char)(i ^ state);
		return size;
	case 5: /* a field of a part of itself */
		if (size > 8)
			memmove(data + below((uint32_t)size / 2), data, size / 2);
		return size;
	case 6: /* one byte */
		data[0] = (unsigned char)below(256);
		return 1;
	default:
		return size;
	}
}

/* ---- sockets ---- */

static int give(int fd, const void *data, size_t size, int fd_count)
{
	union {
		char space[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fds[16];

	for (int i = 0; i < fd_count; i++)
		fds[i] = fd;
	if (fd_count) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, (size_t)fd_count * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* False: the daemon has hung up. */
static bool take(int fd)
{
	struct raw_reply reply;
	int r;

	for (;;) {
		r = packet_receive(fd, &reply.packet, MSG_DONTWAIT);
		if (r == -EAGAIN)
			return true;
		if (r < 0)
			return false;
		reply.message = hccld__control__reply__unpack(NULL, reply.packet.size, reply.packet.data);
		check_ptr(reply.message);
		/* an error always says what it is */
		check(reply.message->cause == 0 || *reply.message->text);
		learn(reply.message);
		raw_reply_free(&reply);
	}
}

/* A connection that is more or less spoilt. */
static void converse(void)
{
	static unsigned char data[PACKET_ROOM];
	bool is_mad = one_in(4), reads = !one_in(6);
	int fd = raw_connect();
	size_t size = pack_hello(data, 1);

	if (!one_in(16))
		give(fd, data, is_mad ? spoil(data, size) : size, 0);
	for (uint32_t steps = 1 + below(200), i = 2; i < steps; i++) {
		size = pack_request(data, i);
		if (is_mad && one_in(8))
			size = spoil(data, size);
		if (give(fd, data, size, one_in(64) ? (int)below(13) : 0) == -EAGAIN)
			usleep(100);
		if (one_in(512))
			shutdown(fd, below(3));
		if (reads && one_in(8))
			usleep(below(200));
		if (reads && !take(fd))
			break;
	}
	close(fd);
}

TEST_TIMEOUT(changed_packets_end_their_connection_only, 60)
{
	struct bystander bystander;
	struct holdings before;
	uint64_t seed = test_seed();
	time_t end;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	state = seed | 1;
	for (int i = 0; i < 10; i++)
		converse();
	usleep(500000);
	before = holdings_of(private_daemon.pid);
	bystander_start(&bystander, ROUND_LIMIT_MS);
	end = time(NULL) + SECONDS;
	for (uint64_t round = 0; time(NULL) < end; round++) {
		state = (seed + round) * 2 + 1;
		converse();
	}
	bystander_stop(&bystander);
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* A tool that asks and asks, reads nothing, and goes away. */
TEST_TIMEOUT(replies_that_nobody_reads_are_dropped, 60)
{
	struct holdings before;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	usleep(100000);
	before = holdings_of(private_daemon.pid);
	for (int i = 0; i < 50; i++) {
		Hccld__Control__Status status = HCCLD__CONTROL__STATUS__INIT;
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
		struct raw_client tool;

		raw_client_start(&tool, HCCLD__CONTROL__HELLO__ROLE__TOOL);
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_STATUS;
		request.status = &status;
		/* more than fit into the socket, fewer than end the connection */
		for (int n = 0; n < 2000; n++)
			if (packet_send(tool.fd, &request.base, NULL, 0, MSG_DONTWAIT) == -EAGAIN)
				break;
		usleep(5000);
		raw_client_stop(&tool);
	}
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Half of a connection is none. */
TEST_TIMEOUT(half_a_connection_ends, 60)
{
	struct raw_client clients[2];
	struct holdings before;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&clients[0], HCCLD__CONTROL__HELLO__ROLE__CLIENT); /* makes the yard */
	raw_client_stop(&clients[0]);
	usleep(400000);
	before = holdings_of(private_daemon.pid);
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		raw_client_start(&clients[0], HCCLD__CONTROL__HELLO__ROLE__CLIENT);
		raw_client_start(&clients[1], HCCLD__CONTROL__HELLO__ROLE__TOOL);
		raw_open_context(&clients[0], 0);
		for (int i = 0; i < 2; i++) {
			unsigned char data[256];

			shutdown(clients[i].fd, how);
			give(clients[i].fd, data, pack_hello(data, 7), 0);
			if (how == SHUT_RD)
				continue;
			/* the other side hears of it */
			for (int tries = 0; take(clients[i].fd); tries++) {
				check_lt_int(tries, 500);
				usleep(10000);
			}
		}
		for (int i = 0; i < 2; i++)
			raw_client_stop(&clients[i]);
	}
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* Some thousand that say nothing: others are served meanwhile, and those without HELLO do not stay. */
TEST_TIMEOUT(thousands_of_connections, 60)
{
	enum { COUNT = 3000 };
	static int fds[COUNT];
	struct rlimit limit = { 0 };
	struct bystander bystander;
	struct holdings before;
	struct raw_client client;

	check_eq_int(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < COUNT + 1000)
		test_skip("the limit of open files is too low");
	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_client_stop(&client);
	usleep(400000);
	before = holdings_of(private_daemon.pid);
	bystander_start(&bystander, ROUND_LIMIT_MS);
	for (int i = 0; i < COUNT; i++) {
		fds[i] = raw_connect();
		if (i % 2) {
			unsigned char data[256];

			give(fds[i], data, pack_hello(data, 1), 0);
		}
	}
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	raw_open_context(&client, 0);
	raw_client_stop(&client);
	for (int i = 0; i < COUNT; i++)
		close(fds[i]);
	bystander_stop(&bystander);
	holdings_settle(private_daemon.pid, &before);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}

/* A TCP socket with something to send that nobody reads: whoever closes it last waits. */
static int lingering_socket(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct linger linger = { .l_onoff = 1, .l_linger = 20 };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);
	static char data[1 << 16];

	check_eq_int(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	check_eq_int(listen(listener, 1), 0);
	check_eq_int(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	check_eq_int(connect(one, (struct sockaddr *)&address, sizeof(address)), 0);
	while (send(one, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	check_eq_int(setsockopt(one, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	/* the other end stays in the backlog of a listener that is not closed before this process ends */
	fcntl(listener, F_SETFD, FD_CLOEXEC);
	return one;
}

static void give_lingering(int fd, const void *data, size_t size)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int lingering = lingering_socket();

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &lingering, sizeof(int));
	(void)!sendmsg(fd, &msg, MSG_NOSIGNAL);
	close(lingering);
}

TEST_TIMEOUT(descriptors_that_are_slow_to_close, 60)
{
	unsigned char data[256];
	struct raw_client client;
	double since;
	pid_t child;

	check_eq_int(private_daemon_start(&private_daemon, options, NULL), 0);
	raw_client_start(&client, HCCLD__CONTROL__HELLO__ROLE__CLIENT);
	child = fork();
	if (child == 0) {
		struct raw_client own;

		raw_client_start(&own, HCCLD__CONTROL__HELLO__ROLE__TOOL);
		give_lingering(own.fd, data, pack_hello(data, 1));
		pause();
	}
	usleep(200000 * test_timeout_scale());
	since = seconds();
	raw_open_context(&client, 0);
	check_msg(seconds() - since < 2, "the daemon was busy for %.1f s", seconds() - since);
	kill(child, SIGKILL);
	check_eq_int(waitpid(child, NULL, 0), child);
	raw_client_stop(&client);
	check_eq_int(private_daemon_stop(&private_daemon), 0);
}
