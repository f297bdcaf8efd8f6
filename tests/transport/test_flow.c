/* SPDX-License-Identifier: Apache-2.0 */
/* Frames arrive once and in order, bulk where it belongs, over connections with little room that are cut at any byte. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"
#include "transport/flow.h"

#define ROOM 65536u
#define BULK_ROOM (2u << 20)

struct head {
	uint64_t serial;
	uint32_t size, seed;
};

struct side {
	struct flow *flow;
	int fd;
	uint64_t sent, received;       /* frames */
	uint64_t bulk_sent, bulk_done; /* serials */
	uint64_t bulk_after;	       /* frames that were sent before the newest bulk that came */
	unsigned char *place;
	bool refuses; /* bulk has no place */
	uint32_t lost;
};

static struct side sides[2];
static uint64_t seed = 1;

static uint32_t below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

static void fill(unsigned char *data, uint32_t size, uint32_t from)
{
	for (uint32_t i = 0; i < size; i++)
		data[i] = (unsigned char)(from + i * 7 + i / 256);
}

static bool is_filled(const unsigned char *data, uint32_t size, uint32_t from)
{
	for (uint32_t i = 0; i < size; i++)
		if (data[i] != (unsigned char)(from + i * 7 + i / 256))
			return false;
	return true;
}

static int take_frame(void *data, const void *head, size_t head_size, const void *payload, size_t size)
{
	struct side *side = data;
	struct head got;

	check_eq_uint(head_size, sizeof(got));
	memcpy(&got, head, sizeof(got));
	check_eq_uint(got.serial, side->received + 1);
	check_eq_uint(got.size, size);
	check(is_filled(payload, got.size, got.seed));
	side->received++;
	return 0;
}

static void *bulk_place(void *data, const void *head, size_t head_size, size_t size)
{
	struct side *side = data;

	check_le_uint(size, BULK_ROOM);
	return side->refuses ? NULL : side->place;
}

static int bulk_done(void *data, const void *head, size_t head_size, size_t size)
{
	struct side *side = data;
	struct head got;

	memcpy(&got, head, sizeof(got));
	check_eq_uint(got.size, size);
	check_gt_uint(got.serial, side->bulk_done);
	check(is_filled(side->place, got.size, got.seed));
	side->bulk_done = got.serial;
	return 0;
}

static void bulk_lost(void *data, const void *head, size_t head_size)
{
	((struct side *)data)->lost++;
}

static const struct flow_events events = { .frame = take_frame, .bulk_place = bulk_place, .bulk_lost = bulk_lost, .bulk_done = bulk_done };

static void connect_sides(void)
{
	int fds[2];

	check_eq_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
	for (int i = 0; i < 2; i++) {
		(void)setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 + (int)below(60000) }, sizeof(int));
		sides[i].fd = fds[i];
	}
	for (int i = 0; i < 2; i++)
		check_eq_int(flow_attach(sides[i].flow, fds[i], flow_position(sides[1 - i].flow)), 0);
}

static void cut(void)
{
	for (int i = 0; i < 2; i++) {
		flow_detach(sides[i].flow);
		close(sides[i].fd);
		sides[i].fd = -1;
	}
}

static void start(void)
{
	for (int i = 0; i < 2; i++) {
		sides[i] = (struct side){ .fd = -1, .place = malloc(BULK_ROOM) };
		check_eq_int(flow_new(ROOM, &events, &sides[i], &sides[i].flow), 0);
	}
}

static void stop(void)
{
	cut();
	for (int i = 0; i < 2; i++) {
		flow_free(sides[i].flow);
		free(sides[i].place);
	}
}

static bool send_frame(struct side *side, uint32_t size)
{
	static unsigned char payload[FLOW_FRAME_MAX];
	const struct head head = { .serial = side->sent + 1, .size = size, .seed = below(256) };

	fill(payload, size, head.seed);
	if (!flow_send(side->flow, &head, sizeof(head), payload, size))
		return false;
	side->sent++;
	return true;
}

static bool send_bulk(struct side *side, uint32_t size)
{
	static unsigned char payload[FLOW_BULK_MAX];
	const struct head head = { .serial = side->bulk_sent + 1, .size = size, .seed = below(256) };

	fill(payload, size, head.seed);
	if (!flow_send_bulk(side->flow, &head, sizeof(head), payload, size))
		return false;
	side->bulk_sent++;
	/* it is ours again */
	memset(payload, 0, size);
	return true;
}

static void act(struct side *side)
{
	static const uint32_t sizes[] = { 0, 1, 40, 1000, 8192, FLOW_FRAME_MAX };
	static const uint32_t bulks[] = { 1, 1000, 65536, 262144, FLOW_BULK_MAX };
	int r;

	switch (below(8)) {
	case 0:
	case 1: send_frame(side, sizes[below(6)]); break;
	case 2:
		if (side->fd >= 0)
			send_bulk(side, bulks[below(5)]);
		break;
	case 3:
	case 4:
		r = flow_flush(side->flow);
		check(r == 0 || r == -EAGAIN);
		break;
	default:
		r = flow_read(side->flow, 1 + below(200000));
		check(r == 0 || r == 1);
	}
}

/* All frames are there. */
static void settle(void)
{
	for (uint32_t turns = 0; sides[0].received != sides[1].sent || sides[1].received != sides[0].sent; turns++) {
		check_lt_uint(turns, 1000000);
		for (int i = 0; i < 2; i++) {
			flow_flush(sides[i].flow);
			check(flow_read(sides[i].flow, 100000) >= 0);
		}
	}
}

TEST_TIMEOUT(everything_arrives, 60)
{
	start();
	connect_sides();
	for (uint32_t i = 0; i < 60000; i++)
		act(&sides[below(2)]);
	settle();
	check_gt_uint(sides[0].sent, 1000);
	check_eq_uint(sides[0].bulk_done, sides[1].bulk_sent);
	check_eq_uint(sides[1].bulk_done, sides[0].bulk_sent);
	check_gt_uint(sides[0].bulk_done, 20);
	stop();
}

TEST_TIMEOUT(frames_survive_cuts, 60)
{
	start();
	for (uint32_t cuts = 0; cuts < 400; cuts++) {
		connect_sides();
		for (uint32_t i = below(300); i; i--)
			act(&sides[below(2)]);
		cut();
		/* without a connection they wait in the ring */
		send_frame(&sides[cuts % 2], 100);
	}
	connect_sides();
	settle();
	check_gt_uint(sides[0].sent, 1000);
	check_gt_uint(sides[0].bulk_done, 5);
	stop();
}

TEST(a_ring_that_is_full_says_so)
{
	uint32_t count = 0;

	start();
	while (send_frame(&sides[0], 1000))
		count++;
	check_eq_uint(count, ROOM / (8 + sizeof(struct head) + 1000));
	check(!send_bulk(&sides[0], 10));
	connect_sides();
	settle();
	/* acks make room */
	for (uint32_t i = 0; i < 20 * count; i++) {
		check(send_frame(&sides[0], 1000));
		if (i % 8 == 0)
			settle();
	}
	settle();
	stop();
}

TEST(bulk_without_a_place_is_passed_over)
{
	start();
	connect_sides();
	sides[1].refuses = true;
	for (uint32_t i = 0; i < 20; i++) {
		send_bulk(&sides[0], 200000);
		send_frame(&sides[0], 10);
		for (int k = 0; k < 50; k++) {
			flow_flush(sides[0].flow);
			flow_read(sides[1].flow, 100000);
		}
	}
	settle();
	check_eq_uint(sides[1].received, 20);
	check_eq_uint(sides[1].bulk_done, 0);
	stop();
}

/* Its memory goes in the middle. */
TEST(bulk_into_memory_that_is_gone)
{
	unsigned char *kept;

	start();
	connect_sides();
	kept = sides[1].place;
	sides[1].place = mmap(NULL, BULK_ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(sides[1].place != MAP_FAILED);
	check(send_bulk(&sides[0], FLOW_BULK_MAX));
	flow_read(sides[1].flow, 1);
	check_eq_int(mprotect(sides[1].place, BULK_ROOM, PROT_NONE), 0);
	send_frame(&sides[0], 10);
	settle();
	check_eq_uint(sides[1].lost, 1);
	check_eq_uint(sides[1].bulk_done, 0);
	munmap(sides[1].place, BULK_ROOM);
	sides[1].place = kept;
	stop();
}

/* ---- lies ---- */

static int lie(const void *bytes, size_t size)
{
	int r = 0;

	check_eq_int(send(sides[0].fd, bytes, size, 0), (int)size);
	for (int i = 0; i < 3 && r >= 0; i++)
		r = flow_read(sides[1].flow, 100000);
	return r;
}

TEST(lies_end_the_connection)
{
	/* kind 0; 9; a head, a frame, bulk that are too large; bulk of nothing; an ack without a number, with a payload */
	static const unsigned char records[][8] = { { 0, 0, 0, 0, 0, 0 },
						    { 0, 0, 0, 0, 0, 9 },
						    { 0, 0, 0, 0, FLOW_HEAD_MAX + 1, 1 },
						    { 1, 0x40, 0, 0, 0, 1 },
						    { 1, 0, 0x10, 0, 0, 2 },
						    { 0, 0, 0, 0, 16, 2 },
						    { 0, 0, 0, 0, 7, 3 },
						    { 1, 0, 0, 0, 8, 3 } };

	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		start();
		connect_sides();
		check_eq_int(lie(records[i], 8), -EPROTO);
		stop();
	}
}

TEST(lies_about_what_has_arrived)
{
	static const uint64_t positions[] = { 1, 8, 40, 1048, UINT64_MAX };

	/* of the receiver's: nothing is sent of which that could be the end */
	for (size_t i = 0; i < sizeof(positions) / sizeof(positions[0]); i++) {
		unsigned char ack[16] = { 0, 0, 0, 0, 8, 3 };

		start();
		connect_sides();
		check(send_frame(&sides[1], 1000));
		check_eq_int(flow_flush(sides[1].flow), 0);
		memcpy(ack + 8, &positions[i], 8);
		check_eq_int(lie(ack, sizeof(ack)), -EPROTO);
		cut();
		check_eq_int(flow_attach(sides[1].flow, 0, positions[i]), -EPROTO);
		stop();
	}
}

TEST(a_reset_begins_anew)
{
	start();
	connect_sides();
	for (int i = 0; i < 10; i++)
		send_frame(&sides[0], 1000);
	settle();
	cut();
	for (int i = 0; i < 2; i++) {
		flow_reset(sides[i].flow);
		check_eq_uint(flow_position(sides[i].flow), 0);
		check(!flow_is_attached(sides[i].flow));
	}
	sides[0].sent = sides[1].received = 0;
	connect_sides();
	send_frame(&sides[0], 10);
	settle();
	check_eq_uint(sides[1].received, 1);
	stop();
}
