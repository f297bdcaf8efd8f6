/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/loop.h"
#include "cluster/key.h"
#include "proto/cleanup.h"
#include "proto/clock.h"

static void wire_release(struct wire *wire)
{
	loop_fd_free(wire->watch);
	loop_timer_free(wire->timer);
	close_fdp(&wire->fd);
	frame_reader_deinit(&wire->reader);
	frame_writer_deinit(&wire->writer);
	free(wire);
}

static void wire_freep(struct wire **wire)
{
	if (*wire)
		wire_release(*wire);
}

struct wire *wire_free(struct wire *wire)
{
	if (!wire)
		return NULL;
	if (wire->state == WIRE_UP)
		(void)frame_flush(&wire->writer, wire->fd);
	wire->state = WIRE_DOWN;
	wire->was_given_up = true;
	if (!wire->is_calling)
		wire_release(wire);
	return NULL;
}

/* The last that is done with @wire in a callback of the loop. */
__attribute__((format(printf, 3, 4))) static void wire_down(struct wire *wire, int error, const char *format, ...)
{
	char why[WIRE_WHY_MAX];
	va_list arguments;

	if (wire->state == WIRE_DOWN)
		return;
	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	/* what says why to the other end, if it is there */
	(void)frame_flush(&wire->writer, wire->fd);
	wire->state = WIRE_DOWN;
	loop_fd_set(wire->watch, 0);
	loop_timer_stop(wire->timer);
	wire->events->down(wire->data, error, why);
}

static void wire_watch(struct wire *wire)
{
	int events = wire->state == WIRE_CONNECTING ? 0 : LOOP_READ;

	if (wire->state == WIRE_CONNECTING || frame_pending(&wire->writer))
		events |= LOOP_WRITE;
	loop_fd_set(wire->watch, events);
}

/* False: it is down. */
static bool wire_flush(struct wire *wire)
{
	size_t before = frame_pending(&wire->writer);
	int r = frame_flush(&wire->writer, wire->fd);

	wire->bytes_out += before - frame_pending(&wire->writer);
	if (r < 0 && r != -EAGAIN) {
		wire_down(wire, r, "the connection was lost: %s", strerror(-r));
		return false;
	}
	wire_watch(wire);
	return true;
}

/* An event of the owner's has answered @r. False: the wire is down, or gone. */
static bool wire_called(struct wire *wire, int r)
{
	wire->is_calling = false;
	if (wire->was_given_up) {
		wire_release(wire);
		return false;
	}
	if (r < 0)
		wire_down(wire, r, r == -EPROTO ? "it has sent what does not belong there" : "%s", strerror(-r));
	return r >= 0;
}

static void wire_fail_proof(struct wire *wire, int r)
{
	const struct handshake *handshake = &wire->handshake;

	if (r == -EPROTO)
		wire_down(wire, r, "what is there is no hccld");
	else if (r == -EACCES)
		wire_down(wire, r, "it has another key");
	else
		wire_down(wire, r, "it speaks versions %u to %u of the protocol between daemons, this hccld %u to %u: the %s one is too old",
			  handshake->their_low, handshake->their_high, LINK_VERSION_LOW, LINK_VERSION_HIGH,
			  handshake->their_high < LINK_VERSION_LOW ? "other" : "own");
}

/* One step of the handshake. 1: go on; 0: more must come; -1: it is down. */
static int wire_prove(struct wire *wire)
{
	unsigned char out[HANDSHAKE_OUT_MAX];
	const unsigned char *in;
	size_t size;
	int r;

	if (frame_next_bytes(&wire->reader, handshake_need(&wire->handshake), &in) <= 0)
		return 0;
	r = handshake_step(&wire->handshake, wire->key, in, out, &size);
	if (size && frame_add_bytes(&wire->writer, out, size) < 0)
		r = -ENOMEM;
	if (r < 0) {
		wire_fail_proof(wire, r);
		return -1;
	}
	if (!wire_flush(wire))
		return -1;
	if (handshake_need(&wire->handshake))
		return 1;
	wire->state = WIRE_UP;
	wire->is_calling = true;
	return wire_called(wire, wire->events->up(wire->data)) ? 1 : -1;
}

/* Of what was read. False: the wire is down, or gone. */
static bool wire_take(struct wire *wire)
{
	const unsigned char *frame;
	size_t size;
	int r;

	while (wire->state == WIRE_PROVING) {
		r = wire_prove(wire);
		if (r < 0)
			return false;
		if (r == 0)
			return true;
	}
	while ((r = frame_next(&wire->reader, &frame, &size)) > 0) {
		wire->is_calling = true;
		if (!wire_called(wire, wire->events->frame(wire->data, frame, size)))
			return false;
	}
	if (r < 0)
		wire_down(wire, r, "it has sent a frame of no possible size");
	return r == 0;
}

static void wire_connected(struct wire *wire)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
		error = errno;
	if (error) {
		wire_down(wire, -error, "cannot connect: %s", strerror(error));
		return;
	}
	wire->state = WIRE_PROVING;
	wire_flush(wire);
}

static void wire_ready(void *data, int events)
{
	struct wire *wire = data;
	int r;

	if (wire->state == WIRE_CONNECTING) {
		if (events & LOOP_WRITE)
			wire_connected(wire);
		return;
	}
	if (events & LOOP_WRITE && !wire_flush(wire))
		return;
	if (!(events & LOOP_READ))
		return;
	r = frame_read(&wire->reader, wire->fd);
	if (r > 0) {
		wire->bytes_in += (uint64_t)r;
		wire->heard_ns = clock_now_ns();
		wire_take(wire);
	} else if (r == 0) {
		wire_down(wire, -ECONNRESET, "%s",
			  wire->state == WIRE_UP ? "the other end has closed the connection" :
			  wire->handshake.is_connector && wire->handshake.has_greeting ?
						   "the other end has refused to talk: it has another key, or is busy; its log says which" :
						   "the other end has closed the connection before it said who it is");
	} else if (r != -EAGAIN) {
		wire_down(wire, r, "the connection was lost: %s", strerror(-r));
	}
}

static void wire_is_late(void *data)
{
	struct wire *wire = data;

	wire_down(wire, -ETIMEDOUT,
		  wire->state == WIRE_CONNECTING ? "cannot connect: no answer" :
		  wire->state == WIRE_PROVING	 ? "it has not said in time who it is" :
						   "it has said who it is, and not in time what it wants");
}

/* Takes @fd. */
static int wire_new(struct loop *loop, const struct key *key, int fd, bool is_connector, const struct wire_events *events, void *data,
		    struct wire **ret_wire)
{
	CLEANUP(close_fdp) int owned_fd = fd;
	CLEANUP(wire_freep) struct wire *wire = calloc(1, sizeof(*wire));
	unsigned char out[HANDSHAKE_OUT_MAX];
	size_t size;
	int r;

	if (!wire)
		return -ENOMEM;
	*wire = (struct wire){ .loop = loop, .key = key, .events = events, .data = data, .reader = { .limit = WIRE_FRAME_MAX } };
	wire->fd = take_fd(&owned_fd);
	wire->state = is_connector ? WIRE_CONNECTING : WIRE_PROVING;
	wire->heard_ns = clock_now_ns();
	(void)setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	handshake_init(&wire->handshake, is_connector, out, &size);
	r = size ? frame_add_bytes(&wire->writer, out, size) : 0;
	if (r == 0)
		r = loop_timer_new(loop, wire_is_late, wire, &wire->timer);
	if (r == 0)
		r = loop_fd_new(loop, wire->fd, is_connector ? LOOP_WRITE : LOOP_READ, wire_ready, wire, &wire->watch);
	if (r < 0)
		return r;
	*ret_wire = take_ptr(&wire);
	return 0;
}

int wire_connect(struct loop *loop, const struct key *key, const struct address *address, uint32_t timeout_ms, const struct wire_events *events,
		 void *data, struct wire **ret_wire)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address->socket, address->size) < 0 && errno != EINPROGRESS) {
		r = -errno;
		close(fd);
		return r;
	}
	r = wire_new(loop, key, fd, true, events, data, ret_wire);
	if (r < 0)
		return r;
	address_text(address, (*ret_wire)->peer);
	loop_timer_start((*ret_wire)->timer, timeout_ms, 0);
	return 0;
}

int wire_accept(struct loop *loop, const struct key *key, int fd, uint32_t timeout_ms, const struct wire_events *events, void *data,
		struct wire **ret_wire)
{
	char peer[ADDRESS_TEXT_MAX];
	int r;

	address_text_of_peer(fd, peer);
	r = wire_new(loop, key, fd, false, events, data, ret_wire);
	if (r < 0)
		return r;
	memcpy((*ret_wire)->peer, peer, sizeof(peer));
	loop_timer_start((*ret_wire)->timer, timeout_ms, 0);
	return 0;
}

void wire_set_owner(struct wire *wire, const struct wire_events *events, void *data)
{
	loop_timer_stop(wire->timer);
	wire->events = events;
	wire->data = data;
}

void wire_send(struct wire *wire, const void *frame, size_t size)
{
	int r;

	if (wire->state != WIRE_UP)
		return;
	if (frame_pending(&wire->writer) + size > WIRE_PENDING_MAX || frame_add(&wire->writer, frame, size) < 0) {
		/* the caller is in the middle of something: the loop finds it closed */
		shutdown(wire->fd, SHUT_RDWR);
		return;
	}
	if (frame_pending(&wire->writer) != size + FRAME_HEADER)
		return;
	r = frame_flush(&wire->writer, wire->fd);
	/* an error shows when the loop looks at the socket */
	if (r < 0)
		loop_fd_set(wire->watch, LOOP_READ | LOOP_WRITE);
	wire->bytes_out += size + FRAME_HEADER - frame_pending(&wire->writer);
}

size_t wire_pending(const struct wire *wire)
{
	return frame_pending(&wire->writer);
}
