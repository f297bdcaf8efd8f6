/* SPDX-License-Identifier: Apache-2.0 */
/* One protobuf message per SOCK_SEQPACKET packet, with its descriptors. */
#include "proto/packet.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "proto/cleanup.h"

int packet_send(int fd, const ProtobufCMessage *message, const int *fds, size_t fd_count, int flags)
{
	unsigned char data[HCCLD_PACKET_MAX];
	union {
		char space[CMSG_SPACE(sizeof(int) * HCCLD_PACKET_FDS_MAX)];
		struct cmsghdr align;
	} control;
	size_t size = protobuf_c_message_get_packed_size(message);
	struct iovec iov = { .iov_base = data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (size > sizeof(data) || fd_count > HCCLD_PACKET_FDS_MAX)
		return -EMSGSIZE;
	protobuf_c_message_pack(message, data);
	if (fd_count) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		if (sendmsg(fd, &msg, flags | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* Takes the descriptors of @msg into @packet; those beyond the limit are closed and reported. */
static int packet_take_fds(struct packet *packet, struct msghdr *msg)
{
	int r = 0;

	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t count;

		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(int), sizeof(int));
			if (packet->fd_count < HCCLD_PACKET_FDS_MAX) {
				packet->fds[packet->fd_count++] = fd;
			} else {
				close(fd);
				r = -EPROTO;
			}
		}
	}
	return r;
}

int packet_receive(int fd, struct packet *packet, int flags)
{
	union {
		char space[CMSG_SPACE(sizeof(int) * (HCCLD_PACKET_FDS_MAX + 8))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = packet->data, .iov_len = sizeof(packet->data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof(control) };
	ssize_t n;
	bool lost;
	int r;

	packet->fd_count = 0;
	do {
		n = recvmsg(fd, &msg, flags | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r = packet_take_fds(packet, &msg);
	/* the kernel says it in the same way whether our buffer or our table of descriptors is full */
	lost = (msg.msg_flags & MSG_CTRUNC) && packet->fd_count < HCCLD_PACKET_FDS_MAX;
	if (r < 0 || (msg.msg_flags & (lost ? MSG_TRUNC : MSG_TRUNC | MSG_CTRUNC))) {
		packet_close(packet);
		return -EPROTO;
	}
	packet->size = (size_t)n;
	if (lost) {
		packet_close(packet);
		return -EMFILE;
	}
	if (n == 0) {
		packet_close(packet);
		return -ECONNRESET;
	}
	return 0;
}

void packet_close(struct packet *packet)
{
	for (size_t i = 0; i < packet->fd_count; i++)
		if (packet->fds[i] >= 0)
			close(packet->fds[i]);
	packet->fd_count = 0;
}
