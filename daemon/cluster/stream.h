/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames between two nodes that arrive once and in order, however often the connection between them is lost. Knows no socket.
 *
 * A frame gets the next number when it is given to its stream, and is kept until the other side says that it has it. When there is a new
 * connection both say what they have, and send what the other has not. Invariants, of one direction:
 *
 *   S1  acked <= sent <= last; kept are the frames acked + 1 ... last, in order; sent is how far they were given to the present connection.
 *   S2  the receiver takes number received + 1 and no other. What it has taken before comes again only behind a new connection, and is left out.
 *   S3  acked <= the other side's received <= last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct stream {
	uint64_t last, sent, acked;
	uint64_t received;
	size_t bytes, limit; /* of frames that are kept */
	struct list frames;
	struct list *next; /* the first that was not given to the present connection, or the head */
};

void stream_init(struct stream *stream, size_t limit);
void stream_deinit(struct stream *stream);
/* As after stream_init(). */
void stream_reset(struct stream *stream);
/* Keeps a copy; it must have the number stream->last + 1. -ENOBUFS: so much is under way already; -ENOMEM. */
int stream_push(struct stream *stream, const void *data, size_t size);
/* The next frame for the present connection, valid until it is acked. False: there is none. */
bool stream_pop(struct stream *stream, const void **ret_data, size_t *ret_size);
/* The other side has @received. -EPROTO: it cannot have. */
int stream_ack(struct stream *stream, uint64_t received);
/* There is a new connection, and the other side has @received. -EPROTO: it cannot have. */
int stream_resume(struct stream *stream, uint64_t received);
/* A frame with @number has come. 1: it is new; 0: it was here before; -EPROTO: there is a gap. */
int stream_take(struct stream *stream, uint64_t number);
