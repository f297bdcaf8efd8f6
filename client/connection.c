/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket to the daemon. Among the threads that wait for replies one reads (`reading`), the others sleep on `arrived`; when the reader
 * has its own reply, the next one takes over. A reply goes to the call with its id; one that nobody waits for is dropped.
 *
 * Locks: `sending` keeps ids in the order of the packets; `mutex` guards the list of calls and `reading`. Never both at a time.
 * Cancellation is off in here: it would leave `reading` or a lock behind.
 */
#include "client/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/error.h"
#include "client/reply.h"
#include "proto/cleanup.h"
#include "proto/clock.h"
#include "proto/feature.h"
#include "proto/yard.h"

#define SOCKET_SYSTEM "/run/hccld/hccld.sock"
#define SOCKET_USER "hccld/hccld.sock"
#define LOOK_MS 200	   /* how often a wait looks at the beacon */
#define LOST_MS 300	   /* a daemon answers in less what it has read */
#define PATIENCE_MS 30000u /* beyond a request's deadline, before the daemon counts as gone */

struct hccld_connection {
	int fd;
	_Atomic bool gone;
	_Atomic(const struct beacon *) beacon;
	pthread_mutex_t sending;
	uint64_t next_id; /* `sending` */
	pthread_mutex_t mutex;
	pthread_cond_t arrived;
	bool reading;
	struct hccld_call *calls; /* without reply */
	char farewell[HCCLD_TEXT_MAX]; /* `mutex`: why the daemon has ended the session, empty: it has not said */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct packet packet; /* of the reader; last, and never cleared: its pages are made when they are used */
};

static int cancel_off(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static void cancel_restore(int *state)
{
	pthread_setcancelstate(*state, NULL);
}

/* ---- finding the daemon ---- */

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

int hccld_socket_path(char *path, size_t size)
{
	const char *given = secure_getenv("HCCLD_SOCKET");
	const char *runtime = secure_getenv("XDG_RUNTIME_DIR");
	int n;

	if (given && *given) {
		n = snprintf(path, size, "%s", given);
	} else {
		n = snprintf(path, size, "%s", SOCKET_SYSTEM);
		if (runtime && *runtime == '/' && !is_socket(SOCKET_SYSTEM)) {
			char user[sizeof(((struct sockaddr_un *)0)->sun_path)];

			if ((size_t)snprintf(user, sizeof(user), "%s/" SOCKET_USER, runtime) <
				    sizeof(user) &&
			    is_socket(user))
				n = snprintf(path, size, "%s", user);
		}
	}
	if (n < 0 || (size_t)n >= size)
		return hccld_error(CAUSE_DAEMON_GONE,
				   "the path in HCCLD_SOCKET is longer than %zu bytes", size - 1);
	return 0;
}

static int connect_error(const char *path, int error)
{
	if (error == EACCES || error == EPERM)
		return hccld_error(
			CAUSE_PERMISSION,
			"no permission to use hccld at %s; join the group that owns the socket, or set HCCLD_SOCKET",
			path);
	return hccld_error(CAUSE_DAEMON_GONE, "no hccld answers at %s: %s", path,
			   error == ENOENT	   ? "there is no such socket"
			   : error == ECONNREFUSED ? (is_socket(path) ? "nobody listens" : "that is no socket")
			   : error == EAGAIN	   ? "it does not accept connections"
						   : strerror(error));
}

static int socket_connect(const char *path, int *ret_fd)
{
	const uint64_t give_up = clock_now_ns() + PATIENCE_MS * UINT64_C(1000000);
	struct timeval limit = { .tv_sec = PATIENCE_MS / 1000 };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	CLEANUP(close_fdp)
	int fd = -1;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return hccld_error(CAUSE_SYSTEM_CALL, "socket: %s", strerror(errno));
	/* a daemon that hangs with a full backlog must not hang its clients */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	memcpy(address.sun_path, path, strlen(path) + 1);
	/* a signal ends the wait for a daemon whose backlog is full; the limit is for all of it */
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		if (errno != EINTR || clock_now_ns() >= give_up)
			return connect_error(path, errno == EINTR ? EAGAIN : errno);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- calls ---- */

static uint32_t incarnation_of(struct hccld_connection *connection)
{
	const struct beacon *beacon =
		atomic_load_explicit(&connection->beacon, memory_order_acquire);

	return beacon ? atomic_load_explicit(&beacon->incarnation, memory_order_acquire) : 0;
}

static void call_unlink(struct hccld_connection *connection, struct hccld_call *call)
{
	for (struct hccld_call **slot = &connection->calls; *slot; slot = &(*slot)->next) {
		if (*slot == call) {
			*slot = call->next;
			break;
		}
	}
	call->next = NULL;
}

/* With `mutex`: nobody will answer any more. */
static void fail_all(struct hccld_connection *connection)
{
	atomic_store(&connection->gone, true);
	for (struct hccld_call *call = connection->calls; call; call = call->next) {
		call->error = -ENOTCONN;
		call->done = true;
	}
	connection->calls = NULL;
}

/* With `sending`. The socket blocks for a slice at a time, so that a hang-up is noticed. @fd goes with it; -1: none. */
static int send_packed(struct hccld_connection *connection, const void *data, size_t size, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)data, .iov_len = size };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		message.msg_control = control.space;
		message.msg_controllen = sizeof(control.space);
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	for (;;) {
		struct pollfd pollfd = { .fd = connection->fd, .events = POLLOUT };

		if (atomic_load_explicit(&connection->gone, memory_order_relaxed))
			return -ENOTCONN;
		if (sendmsg(connection->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != ENOBUFS)
			return -ENOTCONN;
		poll(&pollfd, 1, LOOK_MS);
	}
}

/* hccld_call_start() with a descriptor, which stays the caller's; -1: none. */
static int call_start(struct hccld_connection *connection, Hccld__Control__Request *request,
		      struct hccld_call *call, int fd)
{
	CLEANUP(cancel_restore)
	__attribute__((unused)) int cancel = cancel_off();
	size_t size;
	int r;

	memset(call, 0, sizeof(*call));
	for (size_t i = 0; i < HCCLD_PACKET_FDS_MAX; i++)
		call->fds[i] = -1;
	call->patience_ms =
		(request->deadline_ms ? request->deadline_ms : HCCLD_REQUEST_DEADLINE_MS) +
		PATIENCE_MS;
	call->give_up_ns = clock_now_ns() + call->patience_ms * UINT64_C(1000000);

	pthread_mutex_lock(&connection->sending);
	request->id = call->id = ++connection->next_id;
	size = protobuf_c_message_get_packed_size(&request->base);
	if (size > HCCLD_PACKET_MAX) {
		pthread_mutex_unlock(&connection->sending);
		return hccld_error(CAUSE_LIMIT, "a request of %zu bytes to hccld; %u is the most",
				   size, HCCLD_PACKET_MAX);
	}
	call->packed = malloc(size);
	if (!call->packed) {
		pthread_mutex_unlock(&connection->sending);
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for a request to hccld");
	}
	call->packed_size = (uint32_t)protobuf_c_message_pack(&request->base, call->packed);

	pthread_mutex_lock(&connection->mutex);
	call->next = connection->calls;
	connection->calls = call;
	pthread_mutex_unlock(&connection->mutex);

	call->incarnation = incarnation_of(connection);
	r = send_packed(connection, call->packed, call->packed_size, fd);
	pthread_mutex_unlock(&connection->sending);
	if (r < 0) {
		pthread_mutex_lock(&connection->mutex);
		fail_all(connection);
		pthread_cond_broadcast(&connection->arrived);
		pthread_mutex_unlock(&connection->mutex);
		hccld_call_end(call);
		return hccld_connection_gone_error(connection, "");
	}
	return 0;
}

int hccld_call_start(struct hccld_connection *connection, Hccld__Control__Request *request,
		     struct hccld_call *call)
{
	return call_start(connection, request, call, -1);
}

/* With `mutex`: a packet that no request has asked for. */
static void take_push(struct hccld_connection *connection, const Hccld__Control__Reply *reply)
{
	if (reply->body_case == HCCLD__CONTROL__REPLY__BODY_FAREWELL)
		snprintf(connection->farewell, sizeof(connection->farewell), "%s", reply->text);
}

/* With `mutex`: gives a packet to the call it answers. */
static void deliver(struct hccld_connection *connection, struct packet *packet, bool fds_lost)
{
	Hccld__Control__Reply *reply = hccld_reply_unpack(packet);
	struct hccld_call *call = connection->calls;

	while (call && reply && call->id != reply->id)
		call = call->next;
	if (!reply || !call) {
		/* malformed, pushed, or the second answer to a request that was sent twice around a restart */
		if (reply) {
			take_push(connection, reply);
			hccld_reply_free(reply);
		}
		packet_close(packet);
		return;
	}
	call_unlink(connection, call);
	call->reply = reply;
	call->fds_lost = fds_lost;
	call->fd_count = (uint32_t)packet->fd_count;
	for (size_t i = 0; i < packet->fd_count; i++)
		call->fds[i] = packet->fds[i];
	packet->fd_count = 0;
	call->done = true;
}

/* With `mutex`, which is released meanwhile: reads at most one packet. */
static void read_one(struct hccld_connection *connection)
{
	struct pollfd pollfd = { .fd = connection->fd, .events = POLLIN };
	int r = -EAGAIN;

	connection->reading = true;
	pthread_mutex_unlock(&connection->mutex);
	if (poll(&pollfd, 1, LOOK_MS) > 0)
		r = packet_receive(connection->fd, &connection->packet, MSG_DONTWAIT);
	pthread_mutex_lock(&connection->mutex);
	connection->reading = false;
	if (r == 0 || r == -EMFILE)
		deliver(connection, &connection->packet, r == -EMFILE);
	else if (r != -EAGAIN)
		fail_all(connection);
	pthread_cond_broadcast(&connection->arrived);
}

/* After a hang-up: what has come before it and nobody has read. */
static void read_rest(struct hccld_connection *connection)
{
	pthread_mutex_lock(&connection->mutex);
	/* if it had not read all of ours, the first try says so instead of giving what is there */
	for (int misses = 0; misses < 2 && !connection->reading;) {
		if (packet_receive(connection->fd, &connection->packet, MSG_DONTWAIT) == 0)
			deliver(connection, &connection->packet, false);
		else
			misses++;
	}
	pthread_cond_broadcast(&connection->arrived);
	pthread_mutex_unlock(&connection->mutex);
}

int hccld_connection_gone_error(struct hccld_connection *connection, const char *when)
{
	char farewell[HCCLD_TEXT_MAX];

	read_rest(connection);
	pthread_mutex_lock(&connection->mutex);
	memcpy(farewell, connection->farewell, sizeof(farewell));
	pthread_mutex_unlock(&connection->mutex);
	if (*farewell)
		return hccld_error(CAUSE_DAEMON_GONE, "hccld at %s has ended the session of this process%s: %s", connection->path, when, farewell);
	return hccld_error(CAUSE_DAEMON_GONE, beacon_is_stopping(atomic_load(&connection->beacon)) ?
			   "hccld at %s was stopped by SIGTERM (systemctl stop, say)%s; start hccld, then the program again" :
			   "hccld at %s has ended, or has ended this process's session (its log says why)%s", connection->path, when);
}

/* With `mutex`: another thread reads. */
static void await_reader(struct hccld_connection *connection)
{
	uint64_t until = clock_now_ns() + LOOK_MS * UINT64_C(1000000);
	struct timespec deadline = { .tv_sec = (time_t)(until / 1000000000u),
				     .tv_nsec = (long)(until % 1000000000u) };

	pthread_cond_timedwait(&connection->arrived, &connection->mutex, &deadline);
}

/*
 * A daemon that started anew does not know what the old one had read and not answered. It does get what the old one had not read, and
 * the old one's last replies may still have to be read by us. So: once the socket has been empty in both directions, the request is with
 * the new daemon or lost; and it is lost if no answer comes for a while.
 */
static bool must_send_again(struct hccld_connection *connection, struct hccld_call *call)
{
	struct pollfd pollfd = { .fd = connection->fd, .events = POLLIN };
	int unread = 0;

	if (incarnation_of(connection) == call->incarnation)
		return false;
	if (!call->lost_ns && poll(&pollfd, 1, 0) == 0 &&
	    ioctl(connection->fd, SIOCOUTQ, &unread) == 0 && unread == 0)
		call->lost_ns = clock_now_ns() + LOST_MS * UINT64_C(1000000);
	return call->lost_ns && clock_now_ns() >= call->lost_ns;
}

/* With `mutex`, which is released meanwhile. */
static void send_again(struct hccld_connection *connection, struct hccld_call *call)
{
	int r;

	pthread_mutex_unlock(&connection->mutex);
	pthread_mutex_lock(&connection->sending);
	call->incarnation = incarnation_of(connection);
	call->lost_ns = 0;
	call->give_up_ns = clock_now_ns() + call->patience_ms * UINT64_C(1000000);
	r = send_packed(connection, call->packed, call->packed_size, -1);
	pthread_mutex_unlock(&connection->sending);
	pthread_mutex_lock(&connection->mutex);
	if (r < 0)
		fail_all(connection);
}

/* What the reply says, as errno and text. */
static int reply_result(struct hccld_call *call)
{
	if (!call->reply->cause && call->fds_lost)
		return hccld_error(CAUSE_LIMIT, "no descriptor is left for what hccld grants: this process has as many files open as it may (ulimit -n)");
	if (!call->reply->cause)
		return 0;
	return hccld_error(call->reply->cause, "%s",
			   call->reply->text && *call->reply->text
				   ? call->reply->text
				   : status_of(call->reply->cause)->text);
}

int hccld_call_wait(struct hccld_connection *connection, struct hccld_call *call)
{
	CLEANUP(cancel_restore)
	__attribute__((unused)) int cancel = cancel_off();

	pthread_mutex_lock(&connection->mutex);
	while (!call->done) {
		if (connection->reading)
			await_reader(connection);
		else
			read_one(connection);
		if (call->done)
			break;
		if (must_send_again(connection, call))
			send_again(connection, call);
		if (!call->done && clock_now_ns() >= call->give_up_ns) {
			call_unlink(connection, call);
			pthread_mutex_unlock(&connection->mutex);
			return hccld_error(CAUSE_DAEMON_GONE,
					   "hccld at %s does not answer a request since %u s",
					   connection->path, call->patience_ms / 1000);
		}
	}
	pthread_mutex_unlock(&connection->mutex);
	return call->error ? hccld_connection_gone_error(connection, "") : reply_result(call);
}

void hccld_call_end(struct hccld_call *call)
{
	if (call->reply)
		hccld_reply_free(call->reply);
	call->reply = NULL;
	for (uint32_t i = 0; i < call->fd_count; i++)
		if (call->fds[i] >= 0)
			close(call->fds[i]);
	call->fd_count = 0;
	free(call->packed);
	call->packed = NULL;
}

int hccld_call_simple(struct hccld_connection *connection, Hccld__Control__Request *request)
{
	struct hccld_call call;
	int r = hccld_call_make(connection, request, &call);

	hccld_call_end(&call);
	return r;
}

int hccld_connection_pushed(struct hccld_connection *connection, int timeout_ms, struct hccld_call *ret_call)
{
	struct pollfd pollfd = { .fd = connection->fd, .events = POLLIN };
	struct packet *packet = &connection->packet;
	Hccld__Control__Reply *reply;
	int r = poll(&pollfd, 1, timeout_ms);

	if (r <= 0)
		return r < 0 && errno != EINTR ? -ENOTCONN : -ETIMEDOUT;
	if (packet_receive(connection->fd, packet, MSG_DONTWAIT) < 0)
		return -ENOTCONN;
	reply = hccld_reply_unpack(packet);
	packet_close(packet);
	if (!reply)
		return -ENOTCONN;
	*ret_call = (struct hccld_call){ .reply = reply };
	return 0;
}

/* ---- the connection ---- */

static void connection_freep(struct hccld_connection **connection)
{
	hccld_connection_free(*connection);
}

static int say_hello(struct hccld_connection *connection, Hccld__Control__Hello__Role role, int namespace_fd, struct hccld_call *ret_hello)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__Hello hello = HCCLD__CONTROL__HELLO__INIT;
	char library[] = HCCLD_LIBRARY_VERSION, process[HCCLD_PROCESS_NAME_MAX];
	int r;

	snprintf(process, sizeof(process), "%s", program_invocation_short_name);
	hello.magic = HCCLD_MAGIC;
	hello.version_low = HCCLD_VERSION_LOW;
	hello.version_high = HCCLD_VERSION_HIGH;
	hello.features = HCCLD_FEATURES;
	hello.library = library;
	hello.process = process;
	hello.role = role;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	r = call_start(connection, &request, ret_hello, namespace_fd);
	if (r < 0)
		return r;
	r = hccld_call_wait(connection, ret_hello);
	if (r == 0 && ret_hello->reply->body_case != HCCLD__CONTROL__REPLY__BODY_HELLO)
		r = hccld_error(CAUSE_PROTOCOL, "hccld at %s answered HELLO with something else",
				connection->path);
	if (r < 0)
		hccld_call_end(ret_hello);
	return r;
}

/*
 * A client tells which user namespace it is in, so that only processes of one share memory. A daemon of release 0.1.0 hangs up, or cannot be
 * sent descriptors at all: it gets the same HELLO without.
 */
static int connection_hello(struct hccld_connection *connection, Hccld__Control__Hello__Role role, struct hccld_call *ret_hello)
{
	CLEANUP(close_fdp) int namespace_fd = -1;
	int r;

	if (role == HCCLD__CONTROL__HELLO__ROLE__CLIENT)
		namespace_fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
	r = say_hello(connection, role, namespace_fd, ret_hello);
	if (namespace_fd < 0 || r != -ENOTCONN)
		return r;
	hccld_error_forget();
	close_fdp(&connection->fd);
	atomic_store(&connection->gone, false);
	r = socket_connect(connection->path, &connection->fd);
	return r < 0 ? r : say_hello(connection, role, -1, ret_hello);
}

int hccld_connection_new(Hccld__Control__Hello__Role role, struct hccld_call *ret_hello,
			 struct hccld_connection **ret_connection)
{
	CLEANUP(cancel_restore)
	__attribute__((unused)) int cancel = cancel_off();
	CLEANUP(connection_freep)
	struct hccld_connection *connection = NULL;
	pthread_condattr_t attributes;
	int r;

	connection = malloc(sizeof(*connection));
	if (!connection)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for the connection to hccld");
	memset(connection, 0, offsetof(struct hccld_connection, packet) + offsetof(struct packet, data));
	connection->fd = -1;
	pthread_mutex_init(&connection->sending, NULL);
	pthread_mutex_init(&connection->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&connection->arrived, &attributes);
	pthread_condattr_destroy(&attributes);

	r = hccld_socket_path(connection->path, sizeof(connection->path));
	if (r < 0)
		return r;
	r = socket_connect(connection->path, &connection->fd);
	if (r < 0)
		return r;
	r = connection_hello(connection, role, ret_hello);
	if (r < 0)
		return r;
	*ret_connection = take_ptr(&connection);
	return 0;
}

struct hccld_connection *hccld_connection_free(struct hccld_connection *connection)
{
	if (!connection)
		return NULL;
	if (connection->fd >= 0)
		close(connection->fd);
	pthread_cond_destroy(&connection->arrived);
	pthread_mutex_destroy(&connection->mutex);
	pthread_mutex_destroy(&connection->sending);
	free(connection);
	return NULL;
}

void hccld_connection_abandon(struct hccld_connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	connection->fd = -1;
}

void hccld_connection_set_beacon(struct hccld_connection *connection, const void *beacon)
{
	atomic_store_explicit(&connection->beacon, (const struct beacon *)beacon,
			      memory_order_release);
}

bool hccld_connection_is_gone(struct hccld_connection *connection)
{
	struct pollfd pollfd = { .fd = connection->fd, .events = POLLRDHUP };
	int cancel;

	if (atomic_load_explicit(&connection->gone, memory_order_relaxed))
		return true;
	cancel = cancel_off();
	if (poll(&pollfd, 1, 0) > 0 &&
	    (pollfd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)))
		atomic_store(&connection->gone, true);
	cancel_restore(&cancel);
	return atomic_load_explicit(&connection->gone, memory_order_relaxed);
}
