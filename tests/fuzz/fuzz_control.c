/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control thread, whole: connections, handlers, registry, teardown, restart; the engine passes in between, all in one thread. The
 * bytes are steps: requests on four connections (the second with little room for replies, the third of another user, when root runs
 * this) that are right in form or changed, nonsense in the rings of their streams, replies and events that nobody reads, hang-ups,
 * limits that change, time that passes, a new daemon on the registry of the old one.
 *
 * After the steps all connections are closed: nothing may be left, no descriptor, no object, no byte that is accounted for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hole.h"
#include "base/log.h"
#include "base/loop.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/monitor.h"
#include "proto/packet.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/restore.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "tests/fuzz/control_case.h"
#include "tests/fuzz/control_tasks.h"
#include "tests/fuzz/inline_loop.h"
#include "tests/fuzz/inline_scheduler.h"
#include "tests/fuzz/memory_store.h"

#define CLIENTS 4u
#define RESTARTS_MAX 2u
#define PACKET_ROOM 16384u
#define TURNS_MAX 1000u
#define OTHER_USER 65534u
#define NARROW_BYTES 2304 /* the least that the kernel gives, for a few events */
#define FDS_MAX 16u

static struct loop *loop;
static struct registry *registry;
static struct control *control;
static int listen_fd = -1, user_namespace_fd = -1, net_namespace_fd = -1;
static int clients[CLIENTS];
static bool said_hello[CLIENTS], is_deaf[CLIENTS];
static struct numbers numbers;
static struct scene scenes[CLIENTS];
static uint64_t next_id;
static unsigned int restarts;

/* ---- the daemon ---- */

/* Two settings are as good as all. */
static bool some_setting(void *data, size_t index, struct control_setting *ret_setting)
{
	*ret_setting = (struct control_setting){ .section = "section", .key = "key", .initial = "", .help = "", .value = "1",
						 .where = "", .allowed = "0 or 1" };
	return index < 2;
}

static const char *some_files(void *data)
{
	return "one\ntwo\n";
}

static void set_log_level(void *data, uint32_t level, uint32_t uid)
{
	insist(level <= LOG_LEVEL_DEBUG);
}

static struct quota_limits no_limits(void)
{
	struct quota_limits limits = { .weights = "equal" };

	for (unsigned int i = 0; i < QUOTA_KINDS; i++)
		limits.values[i] = UINT64_MAX;
	return limits;
}

static void daemon_start(void)
{
	struct registry_options options = { .device_count = 2, .device_memory = 4 << 20, .host_memory = 4 << 20, .notifies = 256, .cores_per_device = 48,
					    .limits = no_limits() };
	static const struct control_options control_options = { .version = "0", .soc_name = "soc", .socket_path = "/socket",
								.connections_per_user = 4, .requests_per_user = 4,
								.hooks = { NULL, some_setting, some_files, set_log_level } };
	bool is_inherited;

	insist(registry_new(&options, memory_store(), &registry, &is_inherited) == 0);
	if (is_inherited)
		registry_restore(registry);
	insist(control_new(&control_options, loop, registry, listen_fd, &control) == 0);
	memory_store_drop_rest();
}

static void turn(void)
{
	bool worked = true;

	for (unsigned int i = 0; worked && i < TURNS_MAX; i++) {
		worked = loop_turn(loop);
		worked |= scheduler_turn(control->scheduler);
	}
}

static void daemon_restart(void)
{
	/* a stop on request is no fault of the registry's */
	records_settled(registry->records);
	control = control_free(control);
	registry = registry_free(registry);
	memory_store_restart();
	daemon_start();
	turn();
}

static void daemon_once(void)
{
	static const sa_family_t any = AF_UNIX;

	if (loop)
		return;
	log_init(LOG_LEVEL_ERROR);
	insist(loop_new(&loop) == 0);
	/* nobody connects to this one, whose name the kernel makes up: connections are made below */
	listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	user_namespace_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	net_namespace_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	insist(listen_fd >= 0 && bind(listen_fd, (const struct sockaddr *)&any, sizeof(any)) == 0 && listen(listen_fd, 1) == 0);
	daemon_start();
}

/* ---- clients ---- */

static void client_open(unsigned int index)
{
	bool is_other = index == 2 && geteuid() == 0;
	int sockets[2], r;

	if (is_other)
		insist(seteuid(OTHER_USER) == 0);
	insist(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
	if (is_other)
		insist(seteuid(0) == 0);
	if (index == 1)
		insist(setsockopt(sockets[1], SOL_SOCKET, SO_SNDBUF, &(int){ NARROW_BYTES }, sizeof(int)) == 0);
	r = connection_new(control, sockets[1], false);
	insist(r == 0 || r == -EDQUOT);
	if (r < 0) {
		close(sockets[0]);
		return;
	}
	clients[index] = sockets[0];
	said_hello[index] = is_deaf[index] = false;
}

static void client_close(unsigned int index)
{
	if (clients[index] >= 0)
		close(clients[index]);
	clients[index] = -1;
}

static void client_send(unsigned int index, const unsigned char *data, size_t size, const int *fds, unsigned int fd_count)
{
	union {
		char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} ancillary = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count) {
		struct cmsghdr *cmsg = (struct cmsghdr *)ancillary.space;

		msg.msg_control = ancillary.space;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, fd_count * sizeof(int));
	}
	(void)!sendmsg(clients[index], &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* One of a user namespace is right, in HELLO alone: too many, or of something else, or too late. */
static unsigned int some_fds(struct input *input, int *fds)
{
	const int kinds[] = { user_namespace_fd, listen_fd, net_namespace_fd };
	uint8_t mode = input_byte(input);
	unsigned int count = mode < 64 ? mode % 13 : mode < 96;

	for (unsigned int i = 0; i < count; i++)
		fds[i] = mode % 4 == 0 || kinds[mode % 3] < 0 ? user_namespace_fd : kinds[mode % 3];
	return user_namespace_fd < 0 ? 0 : count;
}

/* Every reply is whole, and an error says what it is. */
static void client_read(unsigned int index)
{
	static struct packet packet;

	while (clients[index] >= 0 && !is_deaf[index]) {
		int r = packet_receive(clients[index], &packet, MSG_DONTWAIT);
		Hccld__Control__Reply *reply;

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			client_close(index);
			return;
		}
		reply = hccld__control__reply__unpack(NULL, packet.size, packet.data);
		insist(reply);
		insist(reply->cause == 0 || *reply->text);
		insist(reply->cause == 0 ||
		       (packet.fd_count == 0 && (reply->body_case == HCCLD__CONTROL__REPLY__BODY__NOT_SET ||
						 reply->body_case == HCCLD__CONTROL__REPLY__BODY_FAREWELL)));
		numbers_learn(&numbers, reply);
		scene_learn(&scenes[index], reply);
		hccld__control__reply__free_unpacked(reply, NULL);
		packet_close(&packet);
	}
}

static void clients_read(void)
{
	for (unsigned int i = 0; i < CLIENTS; i++)
		client_read(i);
}

/* ---- nonsense in shared memory ---- */

static struct session *some_session(struct input *input)
{
	uint8_t skip = input_byte(input) % CLIENTS;
	struct session *found = NULL;

	list_for_each(struct session, session, &registry->sessions, link) {
		found = session;
		if (!skip--)
			break;
	}
	return found;
}

static void submit(struct input *input)
{
	struct session *session = some_session(input);
	const struct stream *stream = session ? session_stream_at(session, input_byte(input) % 4) : NULL;
	struct stream_ring *ring = stream ? stream->ring : NULL;
	uint8_t mode = input_byte(input);
	uint32_t count = mode % 4;
	uint64_t tail;
	union stream_slot items[4];
	struct task task;

	if (!ring)
		return;
	tail = atomic_load(&ring->tail);
	task = (struct task){ .kind = mode & 0x10 ? TASK_BARRIER : TASK_BATCH,
			      .slot_count = (uint16_t)(count + 1),
			      .item_count = count,
			      .rank = mode & 0x20 ? 0 : numbers_take(&numbers, input),
			      .side = mode & 0x40 ? numbers_take(&numbers, input) : 0,
			      .timeout_ms = mode & 0x80 ? 1 : 0,
			      .first_lane = count ? 0 : LANE_END };
	if (task.kind == TASK_BARRIER)
		task.slot_count = (uint16_t)(task.item_count = 0) + 1;
	if (input_byte(input) == 0xff) {
		task.slot_count = (uint16_t)input_size(input);
		task.item_count = (uint32_t)input_size(input);
		task.first_lane = input_byte(input);
	}
	for (uint32_t i = 0; i < count; i++)
		some_item(input, &numbers, &items[i]);
	if (mode == 0x44 || mode == 0x48 || mode % 16 == 0) {
		count = 2;
		some_meeting(input, &numbers, &task, items);
	}
	for (uint32_t i = 0; i < count; i++)
		memcpy(&ring->slots[(tail + 1 + i) % HCCLD_STREAM_SLOTS], &items[i], sizeof(items[i]));
	task.epoch = input_byte(input) % 8 < 6 ? 0 : input_byte(input) % 4;
	memcpy(&ring->slots[tail % HCCLD_STREAM_SLOTS].task, &task, sizeof(task));
	atomic_store(&ring->tail, tail + task.slot_count);
	if (mode & 8) { /* the engine is not told */
		atomic_store(&stream->context->view.words->state, yard_next(0, CONTEXT_PARKED));
		return;
	}
	atomic_store(&stream->context->view.words->state, yard_next(atomic_load(&stream->context->view.words->state), CONTEXT_LEFT));
	atomic_fetch_or(stream->context->view.bit_word, stream->context->view.bit);
}

static void scribble(struct input *input)
{
	struct session *session = some_session(input);
	uint8_t mode = input_byte(input);
	uint32_t at = (uint32_t)input_word(input, 2);
	uint64_t value = input_size(input);
	const struct stream *stream = session ? session_stream_at(session, mode % 4) : NULL;

	if (!session)
		return;
	if (mode & 0x80) /* the yard of its tenant: the state of some contexts, the bits */
		memcpy((char *)session->tenant->view.yard + at % (64 + HCCLD_YARD_CONTEXTS / 8 + 512) / 8 * 8, &value, 8);
	else if (stream)
		memcpy((char *)stream->ring + at % (64 * 20) / 8 * 8, &value, 8);
}

/* ---- steps ---- */

static void spoil(struct input *input, unsigned char *data, size_t *size)
{
	uint8_t mode = input_byte(input);

	for (uint8_t i = mode % 4; i && *size; i--)
		data[input_byte(input) % *size] ^= (unsigned char)(1u << input_byte(input) % 8);
	if (mode & 0x40)
		*size = input_byte(input) % (*size + 1);
	if (mode & 0x80)
		for (uint8_t i = input_byte(input) % 32; i; i--)
			data[(*size)++] = input_byte(input);
}

static void message(struct input *input, unsigned int index, bool is_spoilt)
{
	static unsigned char data[PACKET_ROOM];
	unsigned int fd_count = 0;
	int fds[FDS_MAX];
	size_t size;

	if (!said_hello[index]) {
		size = message_hello(input, ++next_id, data);
		fd_count = some_fds(input, fds);
		said_hello[index] = true;
	} else {
		size = message_make(input, &numbers, ++next_id, data);
	}
	if (is_spoilt) {
		spoil(input, data, &size);
		if (input_byte(input) % 64 < 2)
			fd_count = some_fds(input, fds);
	}
	client_send(index, data, size, fds, fd_count);
}

static void raw_packet(struct input *input, unsigned int index)
{
	size_t size = input_byte(input);

	if (size > input->size)
		size = input->size;
	client_send(index, input->data, size, NULL, 0);
	input->data += size;
	input->size -= size;
}

/* What the daemon's own process does. */
static void daemon_step(struct input *input)
{
	uint8_t what = input_byte(input);
	struct quota_limits limits = registry->limits;

	switch (what % 8) {
	case 0: /* what others do, for those who watch */
		for (uint8_t i = what / 8; i; i--)
			monitor_admin(control, "drain", 0, "");
		break;
	case 1: /* SIGTERM */
		control->is_leaving = what & 0x80;
		break;
	case 2: /* the next ones are another tenant's */
		control->options.tenant_has_cgroup = what & 0x80;
		break;
	default:
		limits.values[what / 8 % QUOTA_KINDS] = what & 0x80 ? UINT64_MAX : input_size(input);
		quotas_set_limits(registry, &limits);
	}
}

/* Two connections, of one user or of two, become ranks of a communicator with all that own operators have; or begin to. */
static void scene(struct input *input, unsigned int index)
{
	static unsigned char data[PACKET_ROOM];
	unsigned int other = (index + 3) % CLIENTS;
	uint8_t mode = input_byte(input);

	if (clients[other] < 0)
		client_open(other);
	for (unsigned int i = 0; i < 2 * SCENE_PARTS; i++) {
		/* the first may wait for its channel before the second offers its end */
		bool is_apart = !(mode & 0x80) && i >= 2 * SCENE_OFFER;
		unsigned int at = i - 2 * SCENE_OFFER, rest = SCENE_PARTS - SCENE_OFFER;
		unsigned int part = is_apart ? SCENE_OFFER + at % rest : i / 2, who = is_apart ? at / rest : i % 2;
		unsigned int which = who ? other : index;

		scenes[which].rank_index = who;
		if (part > (mode & 0x7fu) || clients[which] < 0)
			continue;
		if (part || !said_hello[which])
			client_send(which, data, scene_make(part, &scenes[which], &numbers, ++next_id, data), NULL, 0);
		said_hello[which] = true;
		turn();
		clients_read();
	}
}

static void step(struct input *input)
{
	uint8_t what = input_byte(input);
	unsigned int index = what / 64 % CLIENTS;

	if (clients[index] < 0)
		client_open(index);
	switch (what % 64) {
	default:
		message(input, index, false);
		break;
	case 40 ... 45:
		submit(input);
		break;
	case 46 ... 47:
		scribble(input);
		break;
	case 48 ... 51:
		message(input, index, true);
		break;
	case 52:
		raw_packet(input, index);
		break;
	case 53:
		client_close(index);
		break;
	case 54:
		shutdown(clients[index], what / 64);
		break;
	case 55:
		usleep(1000);
		loop_advance(loop);
		break;
	case 56:
		scheduler_beat(control->scheduler, what & 0x80 ? 2000000000ull : 0);
		break;
	case 57:
		if (restarts++ < RESTARTS_MAX)
			daemon_restart();
		break;
	case 58: /* a reply that nobody reads */
		message(input, index, false);
		turn();
		return;
	case 59: /* sent together */
		for (uint8_t i = input_byte(input) % 8; i; i--)
			message(input, index, false);
		break;
	case 60: /* replies and events wait until it listens again, or hangs up */
		is_deaf[index] = !is_deaf[index];
		break;
	case 61: /* HELLO once more, as after a restart */
		said_hello[index] = false;
		break;
	case 62 ... 63:
		what % 2 ? scene(input, index) : daemon_step(input);
		break;
	}
	turn();
	clients_read();
}

/* What a daemon keeps that is no session's. */
static void daemon_reset(void)
{
	struct quota_limits limits = no_limits();

	quotas_set_limits(registry, &limits);
	registry_undrain(registry);
	control->is_leaving = control->options.tenant_has_cgroup = false;
}

static void check_empty(void)
{
	/* a user who has had his share of the control thread waits for time to pass (control/user.h) */
	for (unsigned int i = 0; i < 10000 && (registry->session_count || control->connection_count); i++) {
		if (i >= 10)
			usleep(200);
		loop_advance(loop);
		turn();
	}
	/* root infos of sessions that a restart has dropped */
	registry_sweep(registry);
	insist(control->monitor_count == 0 && control->probe_count == 0);
	insist(registry->session_count == 0 && control->connection_count == 0);
	insist(registry->comm_count == 0 && registry->stream_count == 0);
	insist(registry->host.used == 0);
	for (uint32_t i = 0; i < registry->device_count; i++)
		insist(registry->devices[i].memory.used == 0 && registry->devices[i].contexts == 0);
	list_for_each(struct tenant, tenant, &registry->tenants, link)
		insist(tenant->contexts.used == 0);
}

/* Descriptors of this process but pipes, which are to the symbolizer. */
static unsigned int fd_count_now(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned int count = 0;
	char target[8];

	insist(dir);
	while ((entry = readdir(dir)))
		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target)) > 5)
			count += strncmp(target, "pipe:", 5) != 0;
	closedir(dir);
	return count;
}

/* Those that a client has sent are closed by another thread (base/discard.h). */
static unsigned int fd_count(unsigned int expected)
{
	unsigned int count = fd_count_now();

	for (unsigned int tries = 0; expected && count > expected && tries < 10000; tries++) {
		usleep(100);
		count = fd_count_now();
	}
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned int stored, tenants_seen = UINT_MAX, open_fds;
	struct input input = { data, size };
	unsigned int tenants = 0;

	daemon_once();
	(void)hole_watch(NULL, 0); /* opens its descriptor, which stays */
	restarts = 0;
	next_id = 1;
	memset(&numbers, 0, sizeof(numbers));
	memset(scenes, 0, sizeof(scenes));
	for (unsigned int i = 0; i < CLIENTS; i++)
		clients[i] = -1;
	daemon_reset();
	while (!input_is_empty(&input))
		step(&input);
	for (unsigned int i = 0; i < CLIENTS; i++)
		client_close(i);
	turn();
	check_empty();
	/* a tenant stays, with its yard */
	list_for_each(struct tenant, tenant, &registry->tenants, link)
		tenants++;
	/* fewer: some of an earlier input were not closed yet when they were counted */
	if (tenants == tenants_seen)
		insist(fd_count(open_fds) <= open_fds && memory_store_count() == stored);
	open_fds = fd_count(0);
	tenants_seen = tenants;
	stored = memory_store_count();
	return 0;
}
