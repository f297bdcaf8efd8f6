/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proto/packet.c: bytes and descriptors as they come out of a socket. The first byte says how many descriptors go with the packet,
 * the second what else is done to it. No descriptor stays open, and what could be unpacked comes out of a second trip as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/packet.h"
#include "tests/fuzz/input.h"

#define FDS_SENT_MAX 20

static int sockets[2] = { -1, -1 }, null_fd = -1;
static struct packet packet;

static void give(const void *data, size_t size, unsigned int fd_count)
{
	union {
		char space[CMSG_SPACE(FDS_SENT_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (fd_count) {
		struct cmsghdr *cmsg = (struct cmsghdr *)control.space;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		for (unsigned int i = 0; i < fd_count; i++)
			memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &null_fd, sizeof(int));
	}
	n = sendmsg(sockets[0], &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	insist(n == (ssize_t)size);
}

/* A message that was understood goes through packet_send() and comes back. */
static void trip(const ProtobufCMessage *message, unsigned int fd_count)
{
	static unsigned char before[HCCLD_PACKET_MAX];
	size_t size = protobuf_c_message_get_packed_size(message);
	int fds[HCCLD_PACKET_FDS_MAX + 1], r;

	for (unsigned int i = 0; i <= HCCLD_PACKET_FDS_MAX; i++)
		fds[i] = null_fd;
	r = packet_send(sockets[0], message, fds, fd_count, MSG_DONTWAIT);
	if (size > HCCLD_PACKET_MAX || fd_count > HCCLD_PACKET_FDS_MAX) {
		insist(r == -EMSGSIZE);
		return;
	}
	insist(r == 0);
	protobuf_c_message_pack(message, before);
	r = packet_receive(sockets[1], &packet, MSG_DONTWAIT);
	if (size == 0) {
		insist(r == -ECONNRESET);
		return;
	}
	insist(r == 0 && packet.size == size && packet.fd_count == fd_count && memcmp(packet.data, before, size) == 0);
	packet_close(&packet);
}

static void understand(unsigned int fd_count)
{
	Hccld__Control__Request *request = hccld__control__request__unpack(NULL, packet.size, packet.data);
	Hccld__Control__Reply *reply = hccld__control__reply__unpack(NULL, packet.size, packet.data);

	if (request)
		trip(&request->base, fd_count % (HCCLD_PACKET_FDS_MAX + 2));
	if (reply)
		trip(&reply->base, 0);
	hccld__control__request__free_unpacked(request, NULL);
	hccld__control__reply__free_unpacked(reply, NULL);
}

static int lowest_fd(void)
{
	int fd = fcntl(null_fd, F_DUPFD_CLOEXEC, 0);

	close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	unsigned int fd_count = input_byte(&input) % (FDS_SENT_MAX + 1), mode = input_byte(&input);
	int lowest, r;

	if (sockets[0] < 0) {
		null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		insist(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	}
	lowest = lowest_fd();
	insist(packet_receive(sockets[1], &packet, MSG_DONTWAIT) == -EAGAIN);
	give(input.data, input.size, fd_count);
	r = packet_receive(sockets[1], &packet, MSG_DONTWAIT);
	if (fd_count > HCCLD_PACKET_FDS_MAX || input.size > HCCLD_PACKET_MAX)
		insist(r == -EPROTO);
	else if (input.size == 0)
		insist(r == -ECONNRESET);
	else
		insist(r == 0 && packet.size == input.size && packet.fd_count == fd_count);
	if (r == 0) {
		if (packet.fd_count && mode % 2) {
			close(packet.fds[0]);
			packet.fds[0] = -1;
		}
		packet_close(&packet);
		understand(mode);
	}
	insist(lowest_fd() == lowest);
	if (mode == 0xff) {
		Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;

		close(sockets[0]);
		request.id = 1;
		insist(packet_receive(sockets[1], &packet, MSG_DONTWAIT) == -ECONNRESET);
		insist(packet_send(sockets[1], &request.base, NULL, 0, 0) == -EPIPE);
		close(sockets[1]);
		sockets[0] = -1;
		close(null_fd);
	}
	return 0;
}
