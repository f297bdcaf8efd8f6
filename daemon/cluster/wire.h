/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One TCP connection to another daemon: connects or is accepted, proves and is proved who is there, then carries frames. For the thread of the
 * loop. A wire that goes down stays where it is until its owner frees it, in `down` at the earliest.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/address.h"
#include "cluster/handshake.h"
#include "proto/frame.h"

struct key;
struct loop;
struct loop_fd;
struct loop_timer;

#define WIRE_FRAME_MAX 65536u	 /* bytes of a frame, without its header */
#define WIRE_PENDING_MAX 4194304u /* bytes that a socket has not taken */
#define WIRE_WHY_MAX 192u

struct wire_events {
	/* Both ends have proved that they know the key. 0, or a negative errno and it goes down. */
	int (*up)(void *data);
	/* A frame, valid during the call. As above. */
	int (*frame)(void *data, const unsigned char *frame, size_t size);
	/* The last call, once; @why is a sentence without a period. */
	void (*down)(void *data, int error, const char *why);
};

enum wire_state {
	WIRE_CONNECTING,
	WIRE_PROVING,
	WIRE_UP,
	WIRE_DOWN,
};

struct wire {
	struct loop *loop;
	const struct key *key;
	const struct wire_events *events;
	void *data;
	enum wire_state state;
	bool is_calling; /* in one of the events */
	bool was_given_up; /* by its owner meanwhile: wire_free() is to come */
	int fd;
	struct loop_fd *watch;
	struct loop_timer *timer;
	struct handshake handshake;
	struct frame_reader reader;
	struct frame_writer writer;
	uint64_t bytes_in, bytes_out;
	uint64_t heard_ns; /* when something came last */
	char peer[ADDRESS_TEXT_MAX];
};

/* Begins to connect; @key stays the caller's. -ENOMEM or why it cannot begin. At most @timeout_ms until wire_set_owner(). */
int wire_connect(struct loop *loop, const struct key *key, const struct address *address, uint32_t timeout_ms, const struct wire_events *events,
		 void *data, struct wire **ret_wire);
/* The same with a connection that was accepted. Takes @fd in every case. */
int wire_accept(struct loop *loop, const struct key *key, int fd, uint32_t timeout_ms, const struct wire_events *events, void *data,
		struct wire **ret_wire);
/* It is what it was made for; who hears of it from now on. */
void wire_set_owner(struct wire *wire, const struct wire_events *events, void *data);
/* Sends a frame of at most WIRE_FRAME_MAX bytes. What goes wrong is told by `down`, later. */
void wire_send(struct wire *wire, const void *frame, size_t size);
/* Bytes that wait for the socket. */
size_t wire_pending(const struct wire *wire);
/* Sends what the socket takes at once, and closes. Takes NULL. Also from events. */
struct wire *wire_free(struct wire *wire);
