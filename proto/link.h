/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two daemons say to each other on a TCP connection before they speak link.proto. The one that has connected (C) and the other (A):
 *
 *   C -> A  greeting
 *   A -> C  greeting
 *   C -> A  proof    HMAC-SHA-256 by the key, of the label below of C and both greetings, C's first
 *   A -> C  proof    the same with the label of A
 *
 * then frames (proto/frame.h), each a message Frame, in both directions. So each proves that it knows the key before the other reads anything of
 * variable size, who has not proved it is told nothing but a random number, and a proof is good for one connection and one direction. Payload
 * that follows is neither encrypted nor authenticated: who can change packets on the way can change it.
 */
#pragma once

#include <stdint.h>

#define LINK_MAGIC "hccldlnk"
#define LINK_MAGIC_BYTES 8u
#define LINK_NONCE_BYTES 32u
#define LINK_PROOF_BYTES 32u
#define LINK_LABEL_CONNECTOR "hccld link: I have connected"
#define LINK_LABEL_ACCEPTOR "hccld link: I have accepted"
#define LINK_PORT 7411u
#define LINK_VERSION_LOW 1u	/* oldest protocol between daemons that this build speaks */
#define LINK_VERSION_HIGH 1u	/* newest */

/* Numbers are most significant byte first. */
struct link_greeting {
	unsigned char magic[LINK_MAGIC_BYTES];
	unsigned char version_low[2], version_high[2];
	unsigned char reserved[4];	/* 0; not looked at */
	unsigned char nonce[LINK_NONCE_BYTES];
};
_Static_assert(sizeof(struct link_greeting) == 48, "no holes");
