/* SPDX-License-Identifier: Apache-2.0 */
/* Frames over a socket pair, in pieces of any size. */
#include "proto/frame.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test.h"

#define LIMIT 65536u
#define ROOM_KEPT 65536u /* what is larger is given back when it is empty */

static void pair_open(int fds[2])
{
	check_eq_int(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
}

static void pair_close(int fds[2])
{
	close(fds[0]);
	close(fds[1]);
}

static void give(int fd, const void *data, size_t size)
{
	check_eq_int(send(fd, data, size, 0), (ssize_t)size);
}

static size_t header_put(unsigned char *at, uint32_t length)
{
	at[0] = (unsigned char)(length >> 24);
	at[1] = (unsigned char)(length >> 16);
	at[2] = (unsigned char)(length >> 8);
	at[3] = (unsigned char)length;
	return FRAME_HEADER;
}

static unsigned char byte_of(uint32_t frame, size_t at)
{
	return (unsigned char)(frame * 31 + at * 7 + at / 251);
}

static size_t frame_put(unsigned char *at, uint32_t frame, uint32_t length)
{
	size_t size = header_put(at, length);

	for (uint32_t i = 0; i < length; i++)
		at[size++] = byte_of(frame, i);
	return size;
}

static void frame_check(uint32_t frame, const unsigned char *data, size_t size, size_t wanted)
{
	check_eq_uint(size, wanted);
	for (size_t i = 0; i < size; i++)
		check_msg(data[i] == byte_of(frame, i), "frame %u differs at byte %zu", frame, i);
}

/* The same bytes in pieces of every size, and each frame comes as soon as its last byte is there. */
TEST(pieces_of_every_size)
{
	static const uint32_t lengths[] = { 1, 2, 3, 4, 5, 60, 255, 256, 257, 1 };
	const uint32_t count = sizeof(lengths) / sizeof(lengths[0]);
	unsigned char all[2048];
	size_t total = 0, ends[16];
	int fds[2];

	for (uint32_t i = 0; i < count; i++) {
		total += frame_put(all + total, i, lengths[i]);
		ends[i] = total;
	}
	pair_open(fds);
	for (size_t piece = 1; piece <= total; piece++) {
		struct frame_reader reader = { .limit = LIMIT };
		uint32_t frame = 0;
		size_t size;

		for (size_t at = 0; at < total; at += piece) {
			size_t now = total - at < piece ? total - at : piece;
			const unsigned char *data;

			give(fds[0], all + at, now);
			check_eq_int(frame_read(&reader, fds[1]), (int)now);
			check_eq_int(frame_read(&reader, fds[1]), -EAGAIN);
			for (; frame < count && ends[frame] <= at + now; frame++) {
				check_eq_int(frame_next(&reader, &data, &size), 1);
				frame_check(frame, data, size, lengths[frame]);
			}
			check_eq_int(frame_next(&reader, &data, &size), 0);
		}
		check_eq_uint(frame, count);
		frame_reader_deinit(&reader);
		check_eq_uint(reader.limit, LIMIT);
		check_null(reader.data);
	}
	pair_close(fds);
}

static void refuse(const unsigned char *bytes, size_t size, uint32_t limit)
{
	struct frame_reader reader = { .limit = limit };
	const unsigned char *data;
	size_t length;
	int fds[2];

	pair_open(fds);
	give(fds[0], bytes, size);
	while (frame_read(&reader, fds[1]) > 0)
		;
	check_eq_int(frame_next(&reader, &data, &length), -EPROTO);
	check_eq_int(frame_next(&reader, &data, &length), -EPROTO);
	/* and reading on makes no room for it */
	give(fds[0], "more", 4);
	check_eq_int(frame_read(&reader, fds[1]), 4);
	check_le_uint(reader.room, 16384);
	check_eq_int(frame_next(&reader, &data, &length), -EPROTO);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

TEST(lengths_that_cannot_be)
{
	static const uint32_t huge[] = { 65537, 1u << 24, 0x7fffffff, 0x80000000u, 0xfffffffcu, 0xffffffffu };
	unsigned char bytes[64];

	header_put(bytes, 0);
	refuse(bytes, FRAME_HEADER, LIMIT);
	for (size_t i = 0; i < sizeof(huge) / sizeof(huge[0]); i++) {
		header_put(bytes, huge[i]);
		refuse(bytes, FRAME_HEADER, LIMIT);
		memset(bytes + FRAME_HEADER, 1, sizeof(bytes) - FRAME_HEADER);
		refuse(bytes, sizeof(bytes), LIMIT);
	}
	header_put(bytes, 11);
	refuse(bytes, sizeof(bytes), 10);
}

/* The largest that is allowed comes; the good ones before a bad one come, too. */
TEST(limit_is_the_last_that_is_allowed)
{
	struct frame_reader reader = { .limit = 10 };
	unsigned char bytes[64];
	const unsigned char *data;
	size_t size = frame_put(bytes, 1, 10), length;
	int fds[2];

	size += frame_put(bytes + size, 2, 9);
	size += header_put(bytes + size, 0);
	pair_open(fds);
	give(fds[0], bytes, size);
	check_eq_int(frame_read(&reader, fds[1]), (int)size);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(1, data, length, 10);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(2, data, length, 9);
	check_eq_int(frame_next(&reader, &data, &length), -EPROTO);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

TEST(limit_changes_between_frames)
{
	struct frame_reader reader = { .limit = 10 };
	unsigned char bytes[64];
	const unsigned char *data;
	size_t size = frame_put(bytes, 1, 10), length;
	int fds[2];

	size += frame_put(bytes + size, 2, 11);
	pair_open(fds);
	give(fds[0], bytes, size);
	check_eq_int(frame_read(&reader, fds[1]), (int)size);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	check_eq_int(frame_next(&reader, &data, &length), -EPROTO);
	reader.limit = 11;
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(2, data, length, 11);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

/* What comes before the frames, and frames right behind it. */
TEST(bytes_without_header)
{
	struct frame_reader reader = { .limit = 48 };
	unsigned char bytes[128];
	const unsigned char *data;
	size_t length;
	int fds[2];

	memset(bytes, 'g', 48);
	frame_put(bytes + 48, 3, 5);
	pair_open(fds);
	for (size_t i = 0; i < 48; i++) {
		check_eq_int(frame_next_bytes(&reader, 48, &data), 0);
		give(fds[0], bytes + i, 1);
		check_eq_int(frame_read(&reader, fds[1]), 1);
	}
	check_eq_int(frame_next_bytes(&reader, 49, &data), -EPROTO);
	give(fds[0], bytes + 48, FRAME_HEADER + 5);
	check_eq_int(frame_read(&reader, fds[1]), (int)FRAME_HEADER + 5);
	check_eq_int(frame_next_bytes(&reader, 48, &data), 1);
	check_eq_mem(data, bytes, 48);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(3, data, length, 5);
	check_eq_int(frame_next_bytes(&reader, 1, &data), 0);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

TEST(reader_tells_the_end)
{
	struct frame_reader reader = { .limit = LIMIT };
	const unsigned char *data;
	size_t length;
	int fds[2];

	pair_open(fds);
	check_eq_int(frame_read(&reader, fds[1]), -EAGAIN);
	give(fds[0], "\0\0\0\1x\0\0", 7);
	shutdown(fds[0], SHUT_WR);
	check_eq_int(frame_read(&reader, fds[1]), 7);
	check_eq_int(frame_read(&reader, fds[1]), 0);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	check_eq_int(frame_next(&reader, &data, &length), 0);
	check_eq_int(frame_read(&reader, -1), -EBADF);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

/* All that a writer has goes through the pair, in as many turns as the socket needs. Returns how many. */
static uint32_t pump(struct frame_writer *writer, struct frame_reader *reader, int fds[2], uint32_t count, const uint32_t *lengths)
{
	uint32_t frame = 0, turns = 0;
	const unsigned char *data;
	size_t size, left;
	int r;

	do {
		left = frame_pending(writer);
		r = frame_flush(writer, fds[0]);
		check(r == 0 || r == -EAGAIN);
		check_eq_int(r == 0, frame_pending(writer) == 0);
		check(left == 0 || frame_pending(writer) < left);
		turns += r != 0;
		while ((r = frame_read(reader, fds[1])) > 0)
			for (; frame_next(reader, &data, &size) == 1; frame++)
				frame_check(frame, data, size, lengths[frame]);
		check_eq_int(r, -EAGAIN);
	} while (frame < count);
	check_eq_uint(frame_pending(writer), 0);
	return turns;
}

TEST(writes_in_parts)
{
	static const uint32_t lengths[] = { 1, 65536, 40000, 3, 65535, 65536, 12345, 65536, 1 };
	const uint32_t count = sizeof(lengths) / sizeof(lengths[0]);
	static unsigned char body[FRAME_HEADER + LIMIT];
	struct frame_reader reader = { .limit = LIMIT };
	struct frame_writer writer = { 0 };
	size_t total = 0;
	int fds[2];

	pair_open(fds);
	check_eq_int(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int)), 0);
	for (uint32_t i = 0; i < count; i++) {
		frame_put(body, i, lengths[i]);
		check_eq_int(frame_add(&writer, body + FRAME_HEADER, lengths[i]), 0);
		total += FRAME_HEADER + lengths[i];
		check_eq_uint(frame_pending(&writer), total);
	}
	check_gt_uint(pump(&writer, &reader, fds, count, lengths), 3);
	/* nothing is left of the large ones */
	check_eq_uint(writer.room, 0);
	check_eq_int(frame_next_bytes(&reader, 1, &(const unsigned char *){ NULL }), 0);
	check_le_uint(reader.room, ROOM_KEPT);
	frame_writer_deinit(&writer);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

/* More is added while some waits. */
TEST(adds_between_writes)
{
	enum { COUNT = 500 };
	static uint32_t lengths[COUNT];
	static unsigned char body[FRAME_HEADER + LIMIT];
	struct frame_reader reader = { .limit = LIMIT };
	struct frame_writer writer = { 0 };
	uint32_t seed = (uint32_t)test_seed() | 1, frame = 0, blocked = 0;
	const unsigned char *data;
	size_t size;
	int fds[2];

	pair_open(fds);
	check_eq_int(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int)), 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		seed = seed * 1664525 + 1013904223;
		lengths[i] = 1 + (seed >> 8) % ((seed >> 4) % 10 == 0 ? LIMIT : 700);
		frame_put(body, i, lengths[i]);
		check_eq_int(frame_add(&writer, body + FRAME_HEADER, lengths[i]), 0);
		blocked += frame_flush(&writer, fds[0]) == -EAGAIN;
		if (frame_read(&reader, fds[1]) > 0)
			for (; frame_next(&reader, &data, &size) == 1; frame++)
				frame_check(frame, data, size, lengths[frame]);
	}
	check_gt_uint(blocked, 0);
	while (frame < COUNT) {
		int r = frame_flush(&writer, fds[0]);

		check(r == 0 || r == -EAGAIN);
		check_gt_int(frame_read(&reader, fds[1]), 0);
		for (; frame_next(&reader, &data, &size) == 1; frame++)
			frame_check(frame, data, size, lengths[frame]);
	}
	check_eq_uint(frame_pending(&writer), 0);
	frame_writer_deinit(&writer);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

TEST(room_shrinks_when_it_is_empty)
{
	static unsigned char frame[FRAME_HEADER + LIMIT];
	struct frame_reader reader = { .limit = LIMIT };
	const unsigned char *data;
	size_t size = frame_put(frame, 1, LIMIT), length;
	int fds[2];

	pair_open(fds);
	check_eq_int(setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int)), 0);
	give(fds[0], frame, size);
	while (frame_read(&reader, fds[1]) > 0)
		;
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(1, data, length, LIMIT);
	check_gt_uint(reader.room, ROOM_KEPT);
	check_eq_int(frame_next(&reader, &data, &length), 0);
	check_eq_uint(reader.room, 0);
	/* a small one keeps its room, and a half one is not lost */
	size = frame_put(frame, 2, 100);
	give(fds[0], frame, size - 1);
	check_eq_int(frame_read(&reader, fds[1]), (int)size - 1);
	check_eq_int(frame_next(&reader, &data, &length), 0);
	give(fds[0], frame + size - 1, 1);
	check_eq_int(frame_read(&reader, fds[1]), 1);
	check_eq_int(frame_next(&reader, &data, &length), 1);
	frame_check(2, data, length, 100);
	check_eq_int(frame_next(&reader, &data, &length), 0);
	check_gt_uint(reader.room, 0);
	check_le_uint(reader.room, ROOM_KEPT);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

/* One that never ends gets no more room than the largest frame needs. */
TEST(room_has_a_limit)
{
	static unsigned char frame[FRAME_HEADER + LIMIT];
	struct frame_reader reader = { .limit = LIMIT };
	const unsigned char *data;
	size_t length, size = frame_put(frame, 5, LIMIT);
	int fds[2];

	pair_open(fds);
	for (size_t at = 0; at < size; at += 100) {
		give(fds[0], frame + at, size - at < 100 ? size - at : 100);
		check_gt_int(frame_read(&reader, fds[1]), 0);
		check_le_uint(reader.room, 2 * ROOM_KEPT + 8192);
		check_eq_int(frame_next(&reader, &data, &length), size - at <= 100);
	}
	frame_check(5, data, length, LIMIT);
	frame_reader_deinit(&reader);
	pair_close(fds);
}

TEST(lost_connection)
{
	struct frame_writer writer = { 0 };
	int fds[2];

	pair_open(fds);
	check_eq_int(frame_flush(&writer, fds[0]), 0);
	check_eq_int(frame_add(&writer, "abc", 3), 0);
	close(fds[1]);
	check_eq_int(frame_flush(&writer, fds[0]), -EPIPE);
	check_eq_uint(frame_pending(&writer), FRAME_HEADER + 3);
	frame_writer_deinit(&writer);
	check_eq_uint(frame_pending(&writer), 0);
	close(fds[0]);
}

TEST(bytes_and_frames_in_order)
{
	struct frame_writer writer = { 0 };
	char got[32];
	int fds[2];

	pair_open(fds);
	check_eq_int(frame_add_bytes(&writer, "head", 4), 0);
	check_eq_int(frame_add(&writer, "x", 1), 0);
	check_eq_int(frame_add_bytes(&writer, "tail", 4), 0);
	check_eq_int(frame_flush(&writer, fds[0]), 0);
	check_eq_int(recv(fds[1], got, sizeof(got), 0), 13);
	check_eq_mem(got, "head\0\0\0\1xtail", 13);
	frame_writer_deinit(&writer);
	pair_close(fds);
}
