/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROOM_MIN 4096u
#define ROOM_KEPT 65536u /* what is larger goes when it is empty */

/* Room for @more bytes behind @end, by moving what is there to the front, or to a larger place. */
static int room_make(unsigned char **data, size_t *room, size_t *begin, size_t *end, size_t more)
{
	size_t used = *end - *begin, wanted = *room ? *room : ROOM_MIN;
	unsigned char *larger;

	if (*room - *end >= more)
		return 0;
	if (used)
		memmove(*data, *data + *begin, used);
	*begin = 0;
	*end = used;
	if (*room - used >= more)
		return 0;
	while (wanted - used < more)
		wanted *= 2;
	larger = realloc(*data, wanted);
	if (!larger)
		return -ENOMEM;
	*data = larger;
	*room = wanted;
	return 0;
}

static void room_shrink(unsigned char **data, size_t *room, size_t *begin, size_t *end)
{
	if (*begin != *end)
		return;
	*begin = *end = 0;
	if (*room <= ROOM_KEPT)
		return;
	free(*data);
	*data = NULL;
	*room = 0;
}

static uint32_t length_at(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

int frame_read(struct frame_reader *reader, int fd)
{
	size_t have = reader->end - reader->begin, more = ROOM_MIN;
	ssize_t size;
	int r;

	if (have >= FRAME_HEADER) {
		uint32_t length = length_at(reader->data + reader->begin);

		/* a length that is refused below needs no room */
		if (length <= reader->limit && FRAME_HEADER + (size_t)length > have + more)
			more = FRAME_HEADER + (size_t)length - have;
	}
	r = room_make(&reader->data, &reader->room, &reader->begin, &reader->end, more);
	if (r < 0)
		return r;
	do
		size = recv(fd, reader->data + reader->end, reader->room - reader->end, MSG_DONTWAIT);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	reader->end += (size_t)size;
	return (int)size;
}

int frame_next_bytes(struct frame_reader *reader, size_t size, const unsigned char **ret_data)
{
	room_shrink(&reader->data, &reader->room, &reader->begin, &reader->end);
	if (size > reader->limit)
		return -EPROTO;
	if (reader->end - reader->begin < size)
		return 0;
	*ret_data = reader->data + reader->begin;
	reader->begin += size;
	return 1;
}

int frame_next(struct frame_reader *reader, const unsigned char **ret_data, size_t *ret_size)
{
	uint32_t length;

	room_shrink(&reader->data, &reader->room, &reader->begin, &reader->end);
	if (reader->end - reader->begin < FRAME_HEADER)
		return 0;
	length = length_at(reader->data + reader->begin);
	if (!length || length > reader->limit)
		return -EPROTO;
	if (reader->end - reader->begin - FRAME_HEADER < length)
		return 0;
	*ret_data = reader->data + reader->begin + FRAME_HEADER;
	*ret_size = length;
	reader->begin += FRAME_HEADER + (size_t)length;
	return 1;
}

void frame_reader_deinit(struct frame_reader *reader)
{
	free(reader->data);
	*reader = (struct frame_reader){ .limit = reader->limit };
}

int frame_add_bytes(struct frame_writer *writer, const void *data, size_t size)
{
	int r = room_make(&writer->data, &writer->room, &writer->begin, &writer->end, size);

	if (r < 0)
		return r;
	memcpy(writer->data + writer->end, data, size);
	writer->end += size;
	return 0;
}

int frame_add(struct frame_writer *writer, const void *data, size_t size)
{
	const unsigned char header[FRAME_HEADER] = { (unsigned char)(size >> 24), (unsigned char)(size >> 16), (unsigned char)(size >> 8),
						     (unsigned char)size };
	int r = room_make(&writer->data, &writer->room, &writer->begin, &writer->end, FRAME_HEADER + size);

	if (r < 0)
		return r;
	memcpy(writer->data + writer->end, header, FRAME_HEADER);
	memcpy(writer->data + writer->end + FRAME_HEADER, data, size);
	writer->end += FRAME_HEADER + size;
	return 0;
}

int frame_flush(struct frame_writer *writer, int fd)
{
	while (writer->begin != writer->end) {
		ssize_t size = send(fd, writer->data + writer->begin, writer->end - writer->begin, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EWOULDBLOCK ? -EAGAIN : -errno;
		writer->begin += (size_t)size;
	}
	room_shrink(&writer->data, &writer->room, &writer->begin, &writer->end);
	return 0;
}

size_t frame_pending(const struct frame_writer *writer)
{
	return writer->end - writer->begin;
}

void frame_writer_deinit(struct frame_writer *writer)
{
	free(writer->data);
	*writer = (struct frame_writer){ 0 };
}
