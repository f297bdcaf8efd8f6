/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_daemon --socket PATH --ready-fd N [...]: answers hcclctl with made-up data, so that its
 * behaviour can be tested for states that are hard to bring about, and for daemons that misbehave
 * (FAKE_DAEMON_MODE). Ends on SIGTERM; one client at a time. Prints its arguments.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/packet.h"
#include "proto/ring.h"
#include "proto/status.h"

static const char *mode;
static char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];

static void stop(int signal)
{
	unlink(socket_path);
	_exit(0);
}

static bool is_mode(const char *name)
{
	return !strcmp(mode, name);
}

static char *text(const char *plain)
{
	/* Escape sequences, bytes that are no UTF-8, an overlong NUL, quotes, C1 controls. */
	return (char *)(is_mode("odd")
				? "\x1b[31mred\x07 \xff\xfe \xc0\x80 \"q\" \\ \xc2\x9b new\nline \xc3\xa9"
				: plain);
}

static void answer_hello(Hccld__Control__Reply *reply)
{
	static Hccld__Control__HelloReply hello;

	hccld__control__hello_reply__init(&hello);
	hello.version = 1;
	hello.daemon = text("9.8.7");
	hello.session = UINT64_MAX;
	hello.device_count = 4;
	hello.soc_name = text("Ascend910_9391");
	reply->body_case = HCCLD__CONTROL__REPLY__BODY_HELLO;
	reply->hello = &hello;
}

static Hccld__Control__Device *device(uint32_t number)
{
	static Hccld__Control__Device devices[64];
	Hccld__Control__Device *device = &devices[number];

	hccld__control__device__init(device);
	device->device = number;
	device->backend = text("host");
	device->memory_total = is_mode("odd") ? (number ? UINT64_MAX : 0) : UINT64_C(64) << 30;
	device->memory_used = number == 1 ? UINT64_C(3) << 29 : 0;
	device->contexts = number == 1;
	return device;
}

static Hccld__Control__Waiting *waiting(uint32_t number)
{
	static Hccld__Control__Waiting waitings[8];
	Hccld__Control__Waiting *waiting = &waitings[number];

	hccld__control__waiting__init(waiting);
	waiting->comm = 7;
	waiting->comm_name = text("world");
	waiting->rank = number;
	waiting->pid = 4711 + number;
	waiting->process = text("ring");
	waiting->direction = is_mode("odd") ? 4000000000u + number
			     : number	    ? ITEM_SEND
					    : ITEM_RECEIVE;
	waiting->peer = number + 1;
	waiting->bytes = 4096;
	waiting->age_ms = 12000;
	waiting->reason = text("rank 1 has not posted the send");
	return waiting;
}

static void answer_status(Hccld__Control__Reply *reply)
{
	static Hccld__Control__StatusReply status;
	static Hccld__Control__Device *devices[64];
	size_t count = is_mode("odd") ? 64 : 4;

	hccld__control__status_reply__init(&status);
	for (uint32_t i = 0; i < count; i++)
		devices[i] = device(i);
	status.version = text("9.8.7");
	status.pid = 77;
	status.uptime_ms = is_mode("odd") ? UINT64_MAX : 3723000;
	status.incarnation = 2;
	status.socket = socket_path;
	status.n_devices = count;
	status.devices = devices;
	status.sessions = 3;
	status.comms = 1;
	if (is_mode("others")) {
		status.hidden_sessions = 3;
		status.hidden_comms = 1;
	}
	status.healthy = !is_mode("stuck");
	status.verdict = text(is_mode("stuck") ? "stuck: rank 0 waits for rank 1"
					       : "healthy: nothing is stuck");
	if (is_mode("stuck") || is_mode("odd")) {
		status.waiting_count = 2;
		status.oldest = waiting(0);
	}
	reply->body_case = HCCLD__CONTROL__REPLY__BODY_STATUS;
	reply->status = &status;
}

/* Two pages, each with one object of the kind that was asked for. */
static void answer_list(Hccld__Control__Reply *reply, const Hccld__Control__List *request)
{
	static Hccld__Control__ListReply list;
	static Hccld__Control__Session session, *sessions[] = { &session };
	static Hccld__Control__Comm comm, *comms[] = { &comm };
	static Hccld__Control__Member members[6], *member_list[6];
	static Hccld__Control__Device *devices[1];
	static Hccld__Control__Waiting *waitings[1];
	static uint32_t used[] = { 0, 1, 2, 5 };
	uint32_t page = request->after ? 1 : 0;

	hccld__control__list_reply__init(&list);
	hccld__control__session__init(&session);
	hccld__control__comm__init(&comm);
	session.session = UINT64_MAX - page;
	session.pid = 4711 + page;
	session.process = text("ring");
	session.library = text("0.1.0");
	session.n_devices = 4;
	session.devices = used;
	session.memory = 3 << 20;
	comm.comm = 7 + page;
	comm.name = text("world");
	comm.state = text("ready");
	comm.udi = text("");
	comm.size = 6;
	comm.n_members = 6;
	comm.members = member_list;
	for (uint32_t i = 0; i < 6; i++) {
		hccld__control__member__init(&members[i]);
		members[i].rank = i;
		members[i].pid = 100 + i;
		members[i].state = text("alive");
		if (page && i == 1) {
			members[i].pid = 0;
			members[i].state = text("missing");
		}
		member_list[i] = &members[i];
	}
	devices[0] = device(page);
	waitings[0] = waiting(page);
	if (!is_mode("empty") && !is_mode("others")) {
		list.n_sessions = request->kind == HCCLD__CONTROL__LIST__KIND__SESSIONS;
		list.n_comms = request->kind == HCCLD__CONTROL__LIST__KIND__COMMS;
		list.n_devices = request->kind == HCCLD__CONTROL__LIST__KIND__DEVICES;
		list.n_waiting = request->kind == HCCLD__CONTROL__LIST__KIND__WAITING;
		list.next = is_mode("endless") ? 1 : page ? 0 : 1;
	}
	list.sessions = sessions;
	list.comms = comms;
	list.devices = devices;
	list.waiting = waitings;
	reply->body_case = HCCLD__CONTROL__REPLY__BODY_LIST;
	reply->list = &list;
}

/* False: hang up. */
static bool answer(int fd, const Hccld__Control__Request *request)
{
	Hccld__Control__Reply reply = HCCLD__CONTROL__REPLY__INIT;

	reply.id = request->id;
	switch (request->body_case) {
	case HCCLD__CONTROL__REQUEST__BODY_HELLO:
		answer_hello(&reply);
		if (is_mode("version")) {
			reply.cause = CAUSE_VERSION;
			reply.text =
				(char *)"the client is too old: it speaks protocol 1, this hccld needs 2";
			reply.body_case = HCCLD__CONTROL__REPLY__BODY__NOT_SET;
		}
		break;
	case HCCLD__CONTROL__REQUEST__BODY_STATUS:
		answer_status(&reply);
		break;
	case HCCLD__CONTROL__REQUEST__BODY_LIST:
		answer_list(&reply, request->list);
		break;
	default:
		return false;
	}
	if (request->body_case != HCCLD__CONTROL__REQUEST__BODY_HELLO) {
		if (is_mode("hangup"))
			return false;
		if (is_mode("silent"))
			return true;
		if (is_mode("garbage"))
			return send(fd, "\xff\xff\xff\xff garbage", 12, MSG_NOSIGNAL) > 0;
		if (is_mode("other"))
			answer_hello(&reply);
		if (is_mode("refuse")) {
			reply.cause = CAUSE_PERMISSION;
			reply.text = (char *)"only root may ask";
			reply.body_case = HCCLD__CONTROL__REPLY__BODY__NOT_SET;
		}
	}
	return packet_send(fd, &reply.base, NULL, 0, 0) == 0;
}

static void serve(int fd)
{
	static struct packet packet;
	bool go_on = true;

	while (go_on && packet_receive(fd, &packet, 0) == 0) {
		Hccld__Control__Request *request =
			hccld__control__request__unpack(NULL, packet.size, packet.data);

		packet_close(&packet);
		go_on = request && answer(fd, request);
		if (request)
			hccld__control__request__free_unpacked(request, NULL);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int ready_fd = -1, fd;

	mode = getenv("FAKE_DAEMON_MODE") ?: "normal";
	printf("pid %d:", getpid());
	for (int i = 1; i < argc; i++)
		printf(" %s", argv[i]);
	putchar('\n');
	fflush(stdout);
	for (int i = 1; i + 1 < argc; i++) {
		if (!strcmp(argv[i], "--socket"))
			snprintf(socket_path, sizeof(socket_path), "%s", argv[i + 1]);
		if (!strcmp(argv[i], "--ready-fd"))
			ready_fd = atoi(argv[i + 1]);
	}
	signal(SIGTERM, is_mode("stubborn") ? SIG_IGN : stop);
	if (is_mode("broken")) {
		fprintf(stderr, "no room for devices\n");
		return 3;
	}
	memcpy(address.sun_path, socket_path, sizeof(socket_path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(fd, 16) < 0) {
		perror(socket_path);
		return 1;
	}
	if (ready_fd >= 0 && write(ready_fd, "1\n", 2) == 2)
		close(ready_fd);
	for (;;) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			serve(client);
	}
}
