/* SPDX-License-Identifier: Apache-2.0 */
/* Streams against a model: whatever becomes of connections, all arrive once and in order. And what liars are told. */
#include "cluster/stream.h"

#include <errno.h>
#include <string.h>

#include "tests/support/test.h"

#define FLIGHT_MAX 256
#define FRAME_MAX 40

/* On its way in one direction: a number and an answer, as the messages of proto/link.proto carry them. */
struct packet {
	uint64_t number, received;
	size_t size;
	unsigned char data[FRAME_MAX];
};

struct side {
	struct stream stream;
	uint64_t pushed, taken, pushed_bytes;
	struct packet flight[FLIGHT_MAX]; /* to this side */
	uint32_t flight_count;
};

static uint64_t state;

static uint32_t random_below(uint32_t bound)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 11) % bound;
}

static size_t frame_make(uint64_t number, unsigned char data[FRAME_MAX])
{
	size_t size = 8 + number * 7 % (FRAME_MAX - 8);

	memcpy(data, &number, sizeof(number));
	for (size_t i = sizeof(number); i < size; i++)
		data[i] = (unsigned char)(number + i);
	return size;
}

/* S1, and that the bytes are counted. */
static void check_invariants(const struct side *from, const struct side *to)
{
	const struct stream *stream = &from->stream;
	unsigned char data[FRAME_MAX];
	size_t bytes = 0;

	check_eq_uint(stream->last, from->pushed);
	check_le_uint(stream->acked, stream->sent);
	check_le_uint(stream->sent, stream->last);
	check_le_uint(stream->acked, to->stream.received);
	check_le_uint(to->stream.received, stream->last);
	for (uint64_t number = stream->acked + 1; number <= stream->last; number++)
		bytes += frame_make(number, data);
	check_eq_uint(stream->bytes, bytes);
	check_le_uint(bytes, stream->limit);
}

static void side_push(struct side *side)
{
	unsigned char data[FRAME_MAX];
	size_t size = frame_make(side->pushed + 1, data);
	int r = stream_push(&side->stream, data, size);

	if (side->stream.limit - side->stream.bytes < size && r < 0) {
		check_eq_int(r, -ENOBUFS);
		return;
	}
	check_eq_int(r, 0);
	side->pushed++;
}

static void side_send(struct side *from, struct side *to)
{
	struct packet *packet = &to->flight[to->flight_count];
	const void *data;

	if (to->flight_count == FLIGHT_MAX)
		return;
	*packet = (struct packet){ .received = from->stream.received };
	if (random_below(4) && stream_pop(&from->stream, &data, &packet->size)) {
		check_le_uint(packet->size, FRAME_MAX);
		memcpy(packet->data, data, packet->size);
		/* as the sender has numbered it: the data says the same */
		packet->number = from->stream.sent;
	}
	to->flight_count++;
}

static void side_receive(struct side *side)
{
	unsigned char data[FRAME_MAX];
	struct packet packet;
	int r;

	if (!side->flight_count)
		return;
	packet = side->flight[0];
	memmove(side->flight, side->flight + 1, --side->flight_count * sizeof(packet));
	check_eq_int(stream_ack(&side->stream, packet.received), 0);
	if (!packet.number)
		return;
	r = stream_take(&side->stream, packet.number);
	check_ge_int(r, 0);
	if (r == 0) {
		check_le_uint(packet.number, side->taken);
		return;
	}
	side->taken++;
	check_eq_uint(packet.number, side->taken);
	check_eq_uint(packet.size, frame_make(side->taken, data));
	check_eq_mem(packet.data, data, packet.size);
}

/* Both say what they have, and go on. What was on its way is lost. */
static void reconnect(struct side *a, struct side *b)
{
	uint64_t of_a = a->stream.received, of_b = b->stream.received;

	a->flight_count = b->flight_count = 0;
	check_eq_int(stream_resume(&a->stream, of_b), 0);
	check_eq_int(stream_resume(&b->stream, of_a), 0);
	check_eq_uint(a->stream.sent, of_b);
	check_eq_uint(a->stream.acked, of_b);
}

static void model(size_t limit, uint32_t loss_of)
{
	static struct side a, b;

	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	stream_init(&a.stream, limit);
	stream_init(&b.stream, limit);
	for (uint32_t i = 0; i < 20000; i++) {
		struct side *self = random_below(2) ? &a : &b, *other = self == &a ? &b : &a;

		switch (random_below(4)) {
		case 0:
			side_push(self);
			break;
		case 1:
			side_send(self, other);
			break;
		default:
			side_receive(self);
		}
		if (random_below(loss_of) == 0)
			reconnect(&a, &b);
		check_invariants(&a, &b);
		check_invariants(&b, &a);
	}
	while (a.taken < b.pushed || b.taken < a.pushed) {
		side_send(&a, &b);
		side_send(&b, &a);
		side_receive(&a);
		side_receive(&b);
	}
	check_eq_uint(a.taken, b.pushed);
	check_eq_uint(b.taken, a.pushed);
	check_gt_uint(a.taken, 100);
	stream_deinit(&a.stream);
	stream_deinit(&b.stream);
}

TEST(all_arrive_once_and_in_order)
{
	state = test_seed() | 1;
	model(1000, 5000);
	model(1000, 100);
	model(1000, 20);
	model(90, 50);
	model(1 << 20, 300);
}

static void push(struct stream *stream, uint32_t count)
{
	while (count--)
		check_eq_int(stream_push(stream, "12345678", 8), 0);
}

static void pop(struct stream *stream, uint32_t count)
{
	const void *data;
	size_t size;

	while (count--) {
		check(stream_pop(stream, &data, &size));
		check_eq_uint(size, 8);
	}
}

TEST(limit)
{
	struct stream stream;

	stream_init(&stream, 24);
	push(&stream, 2);
	check_eq_int(stream_push(&stream, "123456789", 9), -ENOBUFS);
	check_eq_uint(stream.last, 2);
	push(&stream, 1);
	check_eq_int(stream_push(&stream, "1", 1), -ENOBUFS);
	/* sent is not enough: it may be needed again */
	pop(&stream, 3);
	check_eq_int(stream_push(&stream, "1", 1), -ENOBUFS);
	check_eq_int(stream_ack(&stream, 1), 0);
	check_eq_int(stream_push(&stream, "12345678", 8), 0);
	check_eq_int(stream_push(&stream, "1", 1), -ENOBUFS);
	check_eq_uint(stream.last, 4);
	pop(&stream, 1);
	check(!stream_pop(&stream, &(const void *){ NULL }, &(size_t){ 0 }));
	stream_deinit(&stream);
}

TEST(size_that_wraps)
{
	struct stream stream;

	stream_init(&stream, 24);
	push(&stream, 1);
	check_eq_int(stream_push(&stream, "", SIZE_MAX), -ENOBUFS);
	check_eq_int(stream_push(&stream, "", SIZE_MAX - 4), -ENOBUFS);
	check_eq_uint(stream.last, 1);
	stream_deinit(&stream);
}

TEST(ack_of_what_was_not_sent)
{
	struct stream stream;

	stream_init(&stream, 1000);
	check_eq_int(stream_ack(&stream, 0), 0);
	check_eq_int(stream_ack(&stream, 1), -EPROTO);
	push(&stream, 3);
	check_eq_int(stream_ack(&stream, 1), -EPROTO);
	pop(&stream, 2);
	check_eq_int(stream_ack(&stream, 3), -EPROTO);
	check_eq_int(stream_ack(&stream, UINT64_MAX), -EPROTO);
	check_eq_uint(stream.acked, 0);
	check_eq_uint(stream.bytes, 24);
	check_eq_int(stream_ack(&stream, 2), 0);
	/* an older answer says nothing new */
	check_eq_int(stream_ack(&stream, 1), 0);
	check_eq_uint(stream.acked, 2);
	check_eq_uint(stream.bytes, 8);
	stream_deinit(&stream);
}

TEST(gaps)
{
	struct stream stream;

	stream_init(&stream, 1000);
	check_eq_int(stream_take(&stream, 2), -EPROTO);
	check_eq_int(stream_take(&stream, 1), 1);
	check_eq_int(stream_take(&stream, 1), 0);
	check_eq_int(stream_take(&stream, 3), -EPROTO);
	check_eq_int(stream_take(&stream, UINT64_MAX), -EPROTO);
	check_eq_int(stream_take(&stream, 2), 1);
	check_eq_uint(stream.received, 2);
	stream_deinit(&stream);
}

TEST(resume_that_cannot_be)
{
	struct stream stream;

	stream_init(&stream, 1000);
	check_eq_int(stream_resume(&stream, 1), -EPROTO);
	push(&stream, 4);
	pop(&stream, 3);
	check_eq_int(stream_ack(&stream, 2), 0);
	check_eq_int(stream_resume(&stream, 5), -EPROTO);
	check_eq_int(stream_resume(&stream, UINT64_MAX), -EPROTO);
	check_eq_int(stream_resume(&stream, 1), -EPROTO);
	check_eq_int(stream_resume(&stream, 0), -EPROTO);
	/* and nothing has changed */
	check_eq_uint(stream.acked, 2);
	check_eq_uint(stream.sent, 3);
	check_eq_uint(stream.bytes, 16);
	pop(&stream, 1);
	stream_deinit(&stream);
}

TEST(resume_sends_again)
{
	struct stream stream;
	const void *data;
	size_t size;

	stream_init(&stream, 1000);
	for (char c = 'a'; c <= 'e'; c++)
		check_eq_int(stream_push(&stream, &c, 1), 0);
	for (int i = 0; i < 4; i++)
		check(stream_pop(&stream, &data, &size));
	check_eq_int(stream_resume(&stream, 2), 0);
	for (char c = 'c'; c <= 'e'; c++) {
		check(stream_pop(&stream, &data, &size));
		check_eq_int(*(const char *)data, c);
	}
	check(!stream_pop(&stream, &data, &size));
	/* pushed behind the end, it is next */
	check_eq_int(stream_push(&stream, "f", 1), 0);
	check(stream_pop(&stream, &data, &size));
	check_eq_int(*(const char *)data, 'f');
	/* it has all */
	check_eq_int(stream_resume(&stream, 6), 0);
	check(!stream_pop(&stream, &data, &size));
	check_eq_uint(stream.bytes, 0);
	stream_deinit(&stream);
}

TEST(reset_begins_at_one)
{
	struct stream stream;

	stream_init(&stream, 24);
	push(&stream, 3);
	pop(&stream, 2);
	check_eq_int(stream_take(&stream, 1), 1);
	stream_reset(&stream);
	check_eq_uint(stream.last | stream.sent | stream.acked | stream.received | stream.bytes, 0);
	check_eq_uint(stream.limit, 24);
	check(!stream_pop(&stream, &(const void *){ NULL }, &(size_t){ 0 }));
	push(&stream, 3);
	check_eq_int(stream_take(&stream, 1), 1);
	stream_deinit(&stream);
}
