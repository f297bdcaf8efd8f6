/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/flow.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define READ_ROOM 65536u

enum record_kind {
	RECORD_FRAME = 1,
	RECORD_BULK = 2,
	RECORD_ACK = 3, /* its head: the position up to which frames are here */
};

/* Numbers are least significant byte first. */
struct flow_record {
	uint32_t size; /* of the payload */
	uint8_t head_size, kind;
	uint8_t reserved[2];
};
static_assert(sizeof(struct flow_record) == 8, "no holes");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers go as they are");

struct flow {
	const struct flow_events *events;
	void *data;
	int fd;
	/* out */
	unsigned char *ring;
	size_t room;
	uint64_t acked, sent, end;
	uint64_t boundary; /* the end of the record that `sent` is in, or `sent` */
	unsigned char *rest; /* of a bulk record, or an ack */
	size_t rest_begin, rest_end;
	/* in */
	uint64_t position, told; /* of frames that were taken; of what the other side was told */
	unsigned char *in;
	size_t in_begin, in_end;
	struct flow_record record; /* of the bulk whose payload is coming */
	unsigned char head[FLOW_HEAD_MAX];
	bool in_bulk;
	unsigned char *place;
	size_t placed;
};

int flow_new(size_t room, const struct flow_events *events, void *data, struct flow **ret_flow)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	assert(room && !(room & (room - 1)) && room > 2 * FLOW_FRAME_MAX);
	if (!flow)
		return -ENOMEM;
	flow->ring = malloc(room);
	flow->rest = malloc(sizeof(struct flow_record) + FLOW_HEAD_MAX + FLOW_BULK_MAX);
	flow->in = malloc(READ_ROOM);
	if (!flow->ring || !flow->rest || !flow->in) {
		flow_free(flow);
		return -ENOMEM;
	}
	flow->events = events;
	flow->data = data;
	flow->room = room;
	flow->fd = -1;
	*ret_flow = flow;
	return 0;
}

struct flow *flow_free(struct flow *flow)
{
	if (!flow)
		return NULL;
	free(flow->ring);
	free(flow->rest);
	free(flow->in);
	free(flow);
	return NULL;
}

static void ring_write(struct flow *flow, const void *data, size_t size)
{
	size_t at = flow->end & (flow->room - 1), first = flow->room - at < size ? flow->room - at : size;

	memcpy(flow->ring + at, data, first);
	memcpy(flow->ring, (const unsigned char *)data + first, size - first);
	flow->end += size;
}

static void ring_read(const struct flow *flow, uint64_t position, void *data, size_t size)
{
	size_t at = position & (flow->room - 1), first = flow->room - at < size ? flow->room - at : size;

	memcpy(data, flow->ring + at, first);
	memcpy((unsigned char *)data + first, flow->ring, size - first);
}

/* The end of the record that begins at @position. */
static uint64_t record_end(const struct flow *flow, uint64_t position)
{
	struct flow_record record;

	ring_read(flow, position, &record, sizeof(record));
	return position + sizeof(record) + record.head_size + record.size;
}

/* W1: the other side has frames up to @position. -EPROTO: no record of ours ends there, of those up to @limit. */
static int acked_set(struct flow *flow, uint64_t position, uint64_t limit)
{
	uint64_t at = flow->acked;

	if (position < flow->acked || position > limit)
		return -EPROTO;
	while (at < position)
		at = record_end(flow, at);
	if (at != position)
		return -EPROTO;
	flow->acked = position;
	return 0;
}

int flow_attach(struct flow *flow, int fd, uint64_t position)
{
	if (acked_set(flow, position, flow->end) < 0)
		return -EPROTO;
	flow_detach(flow);
	flow->sent = flow->boundary = position;
	flow->told = flow->position;
	flow->fd = fd;
	return 0;
}

void flow_detach(struct flow *flow)
{
	flow->fd = -1;
	flow->rest_begin = flow->rest_end = 0;
	flow->in_begin = flow->in_end = 0;
	flow->in_bulk = false;
}

bool flow_is_attached(const struct flow *flow)
{
	return flow->fd >= 0;
}

uint64_t flow_position(const struct flow *flow)
{
	return flow->position;
}

void flow_reset(struct flow *flow)
{
	flow_detach(flow);
	flow->acked = flow->sent = flow->end = flow->boundary = 0;
	flow->position = flow->told = 0;
}

/* ---- out ---- */

bool flow_send(struct flow *flow, const void *head, size_t head_size, const void *payload, size_t size)
{
	const struct flow_record record = { .size = (uint32_t)size, .head_size = (uint8_t)head_size, .kind = RECORD_FRAME };

	assert(head_size <= FLOW_HEAD_MAX && size <= FLOW_FRAME_MAX);
	if (sizeof(record) + head_size + size > flow->room - (flow->end - flow->acked))
		return false;
	ring_write(flow, &record, sizeof(record));
	ring_write(flow, head, head_size);
	ring_write(flow, payload, size);
	return true;
}

/* Bytes that the socket has taken, or -errno. */
static ssize_t socket_write(const struct flow *flow, const struct iovec *parts, size_t count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)parts, .msg_iovlen = count };
	ssize_t size;

	do
		size = sendmsg(flow->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return size;
}

/* W2. Parts of a record of which @taken bytes are sent. */
static void rest_keep(struct flow *flow, const struct iovec *parts, size_t count, size_t taken)
{
	flow->rest_begin = flow->rest_end = 0;
	for (size_t i = 0; i < count; i++) {
		size_t skip = taken < parts[i].iov_len ? taken : parts[i].iov_len;

		memcpy(flow->rest + flow->rest_end, (const unsigned char *)parts[i].iov_base + skip, parts[i].iov_len - skip);
		flow->rest_end += parts[i].iov_len - skip;
		taken -= skip;
	}
}

/* As flow_flush(). */
static int rest_flush(struct flow *flow)
{
	while (flow->rest_begin != flow->rest_end) {
		const struct iovec part = { flow->rest + flow->rest_begin, flow->rest_end - flow->rest_begin };
		ssize_t size = socket_write(flow, &part, 1);

		if (size < 0)
			return (int)size;
		flow->rest_begin += (size_t)size;
	}
	flow->rest_begin = flow->rest_end = 0;
	return 0;
}

bool flow_send_bulk(struct flow *flow, const void *head, size_t head_size, const void *payload, size_t size)
{
	const struct flow_record record = { .size = (uint32_t)size, .head_size = (uint8_t)head_size, .kind = RECORD_BULK };
	const struct iovec parts[] = { { (void *)&record, sizeof(record) }, { (void *)head, head_size }, { (void *)payload, size } };
	ssize_t taken;

	assert(head_size <= FLOW_HEAD_MAX && size && size <= FLOW_BULK_MAX);
	/* what was sent before is before it */
	if (flow->fd < 0 || flow_flush(flow) < 0)
		return false;
	taken = socket_write(flow, parts, 3);
	if (taken <= 0)
		return false;
	if ((size_t)taken < sizeof(record) + head_size + size)
		rest_keep(flow, parts, 3, (size_t)taken);
	return true;
}

/* Between two records. */
static void ack_add(struct flow *flow)
{
	const struct flow_record record = { .head_size = sizeof(flow->position), .kind = RECORD_ACK };
	const struct iovec parts[] = { { (void *)&record, sizeof(record) }, { &flow->position, sizeof(flow->position) } };

	flow->told = flow->position;
	rest_keep(flow, parts, 2, 0);
}

/* The ring up to @until. As flow_flush(). */
static int ring_flush(struct flow *flow, uint64_t until)
{
	while (flow->sent != until) {
		size_t at = flow->sent & (flow->room - 1), size = (size_t)(until - flow->sent);
		size_t first = flow->room - at < size ? flow->room - at : size;
		const struct iovec parts[] = { { flow->ring + at, first }, { flow->ring, size - first } };
		ssize_t taken = socket_write(flow, parts, size > first ? 2 : 1);

		if (taken < 0)
			return (int)taken;
		flow->sent += (size_t)taken;
		while (flow->boundary < flow->sent)
			flow->boundary = record_end(flow, flow->boundary);
	}
	return 0;
}

int flow_flush(struct flow *flow)
{
	int r;

	if (flow->fd < 0)
		return 0;
	r = rest_flush(flow);
	/* an ack goes where a record ends; half of a ring that waits for one is enough to keep the other side going */
	if (r == 0 && flow->position - flow->told >= flow->room / 8) {
		r = ring_flush(flow, flow->boundary);
		if (r == 0) {
			ack_add(flow);
			r = rest_flush(flow);
		}
	}
	return r == 0 ? ring_flush(flow, flow->end) : r;
}

/* ---- in ---- */

static int ack_take(struct flow *flow, const void *head)
{
	uint64_t position;

	memcpy(&position, head, sizeof(position));
	return acked_set(flow, position, flow->sent);
}

static int record_check(const struct flow_record *record)
{
	switch (record->kind) {
	case RECORD_FRAME: return record->head_size <= FLOW_HEAD_MAX && record->size <= FLOW_FRAME_MAX ? 0 : -EPROTO;
	case RECORD_BULK: return record->head_size <= FLOW_HEAD_MAX && record->size && record->size <= FLOW_BULK_MAX ? 0 : -EPROTO;
	case RECORD_ACK: return record->head_size == sizeof(uint64_t) && !record->size ? 0 : -EPROTO;
	default: return -EPROTO;
	}
}

/* Payload of the bulk that is coming, from what was read. */
static void bulk_fill(struct flow *flow)
{
	size_t left = flow->record.size - flow->placed, have = flow->in_end - flow->in_begin, size = left < have ? left : have;

	if (flow->place)
		memcpy(flow->place + flow->placed, flow->in + flow->in_begin, size);
	flow->in_begin += size;
	flow->placed += size;
}

static int bulk_end(struct flow *flow)
{
	flow->in_bulk = false;
	return flow->place ? flow->events->bulk_done(flow->data, flow->head, flow->record.head_size, flow->record.size) : 0;
}

/* The next record in what was read. 1; 0: it is not all there; negative errno. */
static int record_take(struct flow *flow)
{
	const unsigned char *at = flow->in + flow->in_begin, *head = at + sizeof(struct flow_record);
	size_t have = flow->in_end - flow->in_begin;
	struct flow_record record;
	int r;

	if (have < sizeof(record))
		return 0;
	memcpy(&record, at, sizeof(record));
	r = record_check(&record);
	if (r < 0)
		return r;
	if (have < sizeof(record) + record.head_size + (record.kind == RECORD_BULK ? 0 : record.size))
		return 0;
	if (record.kind == RECORD_BULK) {
		flow->record = record;
		memcpy(flow->head, head, record.head_size);
		flow->in_begin += sizeof(record) + record.head_size;
		flow->in_bulk = true;
		flow->placed = 0;
		flow->place = flow->events->bulk_place(flow->data, flow->head, record.head_size, record.size);
		return 1;
	}
	flow->in_begin += sizeof(record) + record.head_size + record.size;
	if (record.kind == RECORD_ACK)
		r = ack_take(flow, head);
	else
		r = flow->events->frame(flow->data, head, record.head_size, head + record.head_size, record.size);
	/* W3 */
	if (r == 0 && record.kind == RECORD_FRAME)
		flow->position += sizeof(record) + record.head_size + record.size;
	return r < 0 ? r : 1;
}

static int records_take(struct flow *flow)
{
	int r = 1;

	while (r > 0) {
		if (flow->in_bulk) {
			bulk_fill(flow);
			if (flow->placed < flow->record.size)
				break;
			r = bulk_end(flow);
			r = r < 0 ? r : 1;
			continue;
		}
		r = record_take(flow);
	}
	if (flow->in_begin == flow->in_end)
		flow->in_begin = flow->in_end = 0;
	return r < 0 ? r : 0;
}

/* Straight to where bulk belongs, and what follows it into our room. Bytes, 0: closed, or -errno. */
static ssize_t socket_read(struct flow *flow)
{
	struct iovec parts[2];
	size_t count = 0, direct = 0;
	ssize_t size;

	memmove(flow->in, flow->in + flow->in_begin, flow->in_end - flow->in_begin);
	flow->in_end -= flow->in_begin;
	flow->in_begin = 0;
	if (flow->in_bulk && flow->place) {
		direct = flow->record.size - flow->placed;
		parts[count++] = (struct iovec){ flow->place + flow->placed, direct };
	}
	parts[count++] = (struct iovec){ flow->in + flow->in_end, READ_ROOM - flow->in_end };
	do
		size = readv(flow->fd, parts, (int)count);
	while (size < 0 && errno == EINTR);
	if (size < 0 && errno == EFAULT && direct) {
		/* nothing was taken: the rest is passed over */
		flow->place = NULL;
		flow->events->bulk_lost(flow->data, flow->head, flow->record.head_size);
		return socket_read(flow);
	}
	if (size < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	if ((size_t)size <= direct) {
		flow->placed += (size_t)size;
	} else {
		flow->placed += direct;
		flow->in_end += (size_t)size - direct;
	}
	return size;
}

int flow_read(struct flow *flow, size_t most)
{
	size_t total = 0;

	while (flow->fd >= 0 && total < most) {
		ssize_t size = socket_read(flow);
		int r;

		if (size == -EAGAIN)
			break;
		if (size <= 0)
			return size ? (int)size : -ECONNRESET;
		total += (size_t)size;
		r = records_take(flow);
		if (r < 0)
			return r;
	}
	return total > 0;
}
