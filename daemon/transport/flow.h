/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and bulk data to another node, over one TCP connection after the other. Knows nothing of what they mean. For the engine's thread: nothing
 * blocks, locks or allocates but flow_new().
 *
 * On the wire are records: struct flow_record, then its head, then its payload.
 *
 *   frames  arrive once and in order, whatever becomes of connections: they are kept in a ring until the other side has them.
 *   bulk    goes from where it lies to where it belongs, and is not kept: what was on its way when a connection is lost is asked for again by who
 *           needs it. On one connection bulk and frames keep their order.
 *
 * Invariants; positions count bytes of frames with their records, from the beginning:
 *
 *   W1  acked <= sent <= end, end - acked <= room: the ring has the frames from `acked` to `end`. A position that the other side says is the end of a
 *       record.
 *   W2  What of a bulk record the socket has not taken is in `rest`, and goes before anything else: no record begins in the middle of another one.
 *   W3  The receiver's position grows when a whole frame was taken; a new connection begins there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_HEAD_MAX 64u	/* bytes before a payload */
#define FLOW_FRAME_MAX 16384u	/* payload of a frame */
#define FLOW_BULK_MAX 1048576u	/* payload of a bulk record */

struct flow;

struct flow_events {
	/* A frame. 0, or -EPROTO and the connection ends. */
	int (*frame)(void *data, const void *head, size_t head_size, const void *payload, size_t size);
	/* Where the payload of a bulk record goes, @size bytes; NULL: nowhere. It is written until `bulk_done`, or the connection ends. */
	void *(*bulk_place)(void *data, const void *head, size_t head_size, size_t size);
	/* The place has no memory any more: the rest is passed over. */
	void (*bulk_lost)(void *data, const void *head, size_t head_size);
	/* It is there. As for `frame`. */
	int (*bulk_done)(void *data, const void *head, size_t head_size, size_t size);
};

/* @room: bytes of frames that can be under way, a power of two. -ENOMEM. */
int flow_new(size_t room, const struct flow_events *events, void *data, struct flow **ret_flow);
/* Takes NULL. */
struct flow *flow_free(struct flow *flow);

/*
 * A new connection, which stays the caller's until flow_detach(), and is non-blocking; the other side has frames up to @position. -EPROTO: it cannot
 * have. flow_position(): what to tell it.
 */
int flow_attach(struct flow *flow, int fd, uint64_t position);
void flow_detach(struct flow *flow);
bool flow_is_attached(const struct flow *flow);
uint64_t flow_position(const struct flow *flow);
/* Both sides begin anew: nothing is under way. Detached. */
void flow_reset(struct flow *flow);

/* Copies a frame into the ring. False: no room. It goes by the next flow_flush(). */
bool flow_send(struct flow *flow, const void *head, size_t head_size, const void *payload, size_t size);
/* Sends bulk at once, as far as the socket takes it, and copies the rest. False: not now; nothing was sent. */
bool flow_send_bulk(struct flow *flow, const void *head, size_t head_size, const void *payload, size_t size);
/* 0: all is sent that can be; -EAGAIN: the socket takes no more, it will be writable; another negative errno: the connection is lost. */
int flow_flush(struct flow *flow);
/* Reads and takes what has come, at most about @most bytes. 1: something; 0: nothing; -ECONNRESET: closed; another negative errno: lost. */
int flow_read(struct flow *flow, size_t most);
