/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames on a stream of bytes, between daemons: the length of what follows in 4 bytes, the most significant first, then so many bytes. A
 * length is judged before anything is allocated for it. Sockets are non-blocking.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER 4u

/* One end's input. All zeros but @limit: nothing was read. */
struct frame_reader {
	uint32_t limit; /* bytes of one frame, without its header; may change between frames */
	unsigned char *data;
	size_t room, begin, end; /* of @data: what was read and not taken */
};

/* One end's output. All zeros: empty. */
struct frame_writer {
	unsigned char *data;
	size_t room, begin, end;
};

/*
 * Reads what has come, as far as one frame needs it, or more. Bytes read; 0: the other end has closed; -EAGAIN: nothing has come; -ENOMEM,
 * another negative errno: the connection is lost.
 */
int frame_read(struct frame_reader *reader, int fd);
/*
 * The next frame, valid until the next call of any of these. 1; 0: it is not complete; -EPROTO: it says to be empty or larger than the limit, and
 * so it stays.
 */
int frame_next(struct frame_reader *reader, const unsigned char **ret_data, size_t *ret_size);
/* The next @size bytes, at most the limit, without a header: what comes before the frames. As above. */
int frame_next_bytes(struct frame_reader *reader, size_t size, const unsigned char **ret_data);
void frame_reader_deinit(struct frame_reader *reader);

/* @size > 0. -ENOMEM. */
int frame_add(struct frame_writer *writer, const void *data, size_t size);
/* The same without a header. */
int frame_add_bytes(struct frame_writer *writer, const void *data, size_t size);
/* Sends what the socket takes. 0: all is sent; -EAGAIN: some is left; another negative errno: the connection is lost. */
int frame_flush(struct frame_writer *writer, int fd);
size_t frame_pending(const struct frame_writer *writer);
void frame_writer_deinit(struct frame_writer *writer);
