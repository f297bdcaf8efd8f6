/* SPDX-License-Identifier: Apache-2.0 */
/* One end of the exchange that proto/link.h describes. Knows no socket: bytes go in, bytes come out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/link.h"

struct key;

#define HANDSHAKE_OUT_MAX sizeof(struct link_greeting)

struct handshake {
	bool is_connector, has_greeting, is_done;
	uint32_t version; /* once the other end's greeting is there */
	uint32_t their_low, their_high;
	struct link_greeting mine, theirs;
};

/* @ret_out: what the connector sends first; nothing of the other (*ret_size 0). */
void handshake_init(struct handshake *handshake, bool is_connector, unsigned char ret_out[HANDSHAKE_OUT_MAX], size_t *ret_size);
/* How many bytes handshake_step() wants next; 0: it is over. */
size_t handshake_need(const struct handshake *handshake);
/*
 * @in: so many. What is to be sent then is in @ret_out, also if it fails. 0; -EPROTO: that is no hccld; -EPROTONOSUPPORT: no version is spoken by
 * both (their_low, their_high); -EACCES: it has another key.
 */
int handshake_step(struct handshake *handshake, const struct key *key, const unsigned char *in, unsigned char ret_out[HANDSHAKE_OUT_MAX],
		   size_t *ret_size);
