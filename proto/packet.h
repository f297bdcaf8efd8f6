/* SPDX-License-Identifier: Apache-2.0 */
/* One protobuf message per SOCK_SEQPACKET packet, with its descriptors. Stateless; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <protobuf-c/protobuf-c.h>

#include "proto/limits.h"

struct packet {
	size_t size;
	int fds[HCCLD_PACKET_FDS_MAX];
	size_t fd_count;
	unsigned char data[HCCLD_PACKET_MAX];	/* last: most packets touch its first page only */
};

/*
 * Sends @message. The descriptors stay the caller's. @flags: MSG_DONTWAIT or 0. -EMSGSIZE: larger than HCCLD_PACKET_MAX. -EAGAIN: the
 * socket is full. -EPIPE, -ECONNRESET: the other side is gone.
 */
int packet_send(int fd, const ProtobufCMessage *message, const int *fds, size_t fd_count, int flags);

/*
 * Receives one packet into @packet, whose descriptors (CLOEXEC) then belong to the caller: packet_close(). 0 bytes: -ECONNRESET (hang-up).
 * -EAGAIN with MSG_DONTWAIT. -EPROTO: truncated packet or descriptors (all closed). -EMFILE: this process has no descriptors left for
 * those of the packet; its message is there all the same.
 */
int packet_receive(int fd, struct packet *packet, int flags);

/* Closes the descriptors that were not taken (set to -1). */
void packet_close(struct packet *packet);
