/* SPDX-License-Identifier: Apache-2.0 */
/* The first request of a connection, and requests about device contexts and streams. */
#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "base/process.h"
#include "base/text.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/monitor.h"
#include "control/query.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "control/user.h"
#include "proto/cleanup.h"
#include "proto/feature.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "scheduler/scheduler.h"

/* Which side is too old, in words. */
static int hello_check_version(struct request *request, const Hccld__Control__Hello *hello)
{
	const char *version = request->control->options.version;
	char library[40];

	if (hello->version_low <= HCCLD_VERSION_HIGH && hello->version_high >= HCCLD_VERSION_LOW &&
	    hello->version_low <= hello->version_high)
		return 0;
	text_clean(library, sizeof(library), hello->library);
	return request_fail(request, CAUSE_VERSION,
			    "libhccld %s speaks protocol %" PRIu32 " to %" PRIu32
			    ", hccld %s speaks %u to %u: %s is too old, update it",
			    library, hello->version_low, hello->version_high, version,
			    HCCLD_VERSION_LOW, HCCLD_VERSION_HIGH,
			    hello->version_low > HCCLD_VERSION_HIGH ? "hccld"
								    : "the program's libhccld");
}

static uint32_t hello_version(const Hccld__Control__Hello *hello)
{
	return hello->version_high < HCCLD_VERSION_HIGH ? hello->version_high : HCCLD_VERSION_HIGH;
}

static void hello_reply(struct request *request, uint32_t version, uint64_t session)
{
	const struct control_options *options = &request->control->options;
	Hccld__Control__HelloReply *reply = &request->body.hello;

	hccld__control__hello_reply__init(reply);
	reply->version = version;
	reply->features = HCCLD_FEATURES;
	reply->daemon = (char *)options->version;
	reply->session = session;
	reply->device_count = request->control->registry->device_count;
	reply->soc_name = (char *)options->soc_name;
	reply->allow_duplicate_items = options->allow_duplicate_items;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_HELLO;
	request->reply.hello = reply;
}

/* The reply of a client that has a session now. */
static int hello_welcome(struct request *request, const struct session *session)
{
	const struct registry *registry = request->control->registry;
	const int fds[] = { session->region_fd, session->tenant->yard_fd,
			    registry->beacon_read_only_fd, registry->event_fd };
	int r;

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		r = request_add_fd(request, fds[i]);
		if (r < 0)
			return r;
	}
	hello_reply(request, session->version, session->view.id);
	return 0;
}

/* Which of the things that a session needs is at its limit? */
static int hello_refuse(struct request *request, const struct quota *quota)
{
	static const struct {
		enum quota_kind kind;
		uint64_t amount;
	} needs[] = { { QUOTA_SESSIONS, 1 },
		      { QUOTA_DESCRIPTORS, 3 },
		      { QUOTA_MEMORY, SESSION_STREAM_OFFSET } };
	size_t i = 0;

	while (i + 1 < sizeof(needs) / sizeof(needs[0]) &&
	       !quota_is_short(quota, needs[i].kind, needs[i].amount))
		i++;
	return tenants_refuse(request, CAUSE_LIMIT, quota, needs[i].kind, needs[i].amount);
}

static int hello_make_session(struct request *request, const Hccld__Control__Hello *hello,
			      int pidfd, struct session **ret_session)
{
	struct control *control = request->control;
	struct connection *connection = request->connection;
	struct session_identity identity = { .pid = connection->peer.pid,
					     .uid = connection->peer.uid,
					     .version = hello_version(hello),
					     .features = (uint32_t)(hello->features & HCCLD_FEATURES),
					     .process = hello->process,
					     .library = hello->library };
	struct tenant_key key;
	struct tenant *tenant;
	int r;

	r = tenants_key(connection, pidfd, &key);
	if (r < 0)
		return r;
	r = tenants_get(control, &key, &tenant);
	if (r == -EUSERS)
		return request_fail(
			request, CAUSE_LIMIT,
			"the processes of uid %" PRIu32
			" that hccld serves are in %u user namespaces, which is the most that one user may have",
			key.uid, HCCLD_TENANTS_PER_USER);
	if (r < 0)
		return r;
	r = session_new(control->registry, tenant, &identity, connection->fd, pidfd, ret_session);
	if (r == -EUSERS)
		r = hello_refuse(request, tenant->quota);
	if (r < 0)
		tenants_collect(control, tenant);
	return r;
}

/* All connections, or those of the user, are taken. */
static int hello_refuse_surplus(struct request *request)
{
	const struct control *control = request->control;
	const struct user *user = request->connection->user;
	uint32_t limit = control->options.connections_per_user;

	if (user->connections > limit)
		return request_fail(
			request, CAUSE_LIMIT,
			"connections of uid %" PRIu32 ": %" PRIu32 " of %" PRIu32
			" used, 1 asked; raise [limits] connections_per_user; hcclctl config says where it is set",
			user->uid, user->connections - 1, limit);
	return request_fail(request, CAUSE_LIMIT,
			    "hccld has %" PRIu32
			    " connections; the last places are for root and its own user",
			    control->connection_count);
}

static int hello_client(struct request *request, const Hccld__Control__Hello *hello)
{
	struct connection *connection = request->connection;
	CLEANUP(close_fdp) int pidfd = -1;
	struct session *session;
	int r;

	if (connection->is_surplus)
		return hello_refuse_surplus(request);
	r = process_peer_pidfd(connection->fd, connection->peer.pid, &pidfd);
	if (r == 0)
		r = hello_make_session(request, hello, pidfd, &session);
	if (r == -ESRCH)
		return request_fail(request, CAUSE_ABORTED,
				    "the process that made this connection has ended");
	if (r == -EDQUOT && !*request->text)
		return request_fail(request, CAUSE_LIMIT,
				    "hccld serves %" PRIu32
				    " processes and has no room or no descriptors for more",
				    request->control->registry->session_count);
	if (r < 0)
		return r;
	r = connection_bind(connection, session, take_fd(&pidfd));
	if (r < 0) {
		struct tenant *tenant = session->tenant;

		session_remove(session);
		tenants_collect(request->control, tenant);
		return r;
	}
	monitor_session(request->control, "session-start", session, "");
	return hello_welcome(request, session);
}

/* On the reserve only the tools of root and of the daemon's own user are served. */
static int hello_check_room(struct request *request, const Hccld__Control__Hello *hello)
{
	const struct connection *connection = request->connection;

	if (!connection->is_reserved ||
	    (!connection->is_refused && hello->role == HCCLD__CONTROL__HELLO__ROLE__TOOL))
		return 0;
	return request_fail(
		request, CAUSE_LIMIT,
		"hccld has %" PRIu32
		" connections and no descriptor for one more; LimitNOFILE= of hccld.service (or ulimit -n) is the limit, hcclctl ps shows who holds them",
		request->control->connection_count);
}

int handle_hello(struct request *request)
{
	const Hccld__Control__Hello *hello = request->message->hello;
	struct connection *connection = request->connection;
	int r;

	if (hello->magic != HCCLD_MAGIC)
		return -EPROTO;
	/* sent again because its reply was lost in a restart of the daemon */
	if (connection->state == CONNECTION_CLIENT && connection->session->is_restored)
		return hello_welcome(request, connection->session);
	if (connection->state != CONNECTION_NEW)
		return -EPROTO;
	r = hello_check_version(request, hello);
	if (r < 0)
		return r;
	r = hello_check_room(request, hello);
	if (r < 0)
		return r;
	if (hello->role != HCCLD__CONTROL__HELLO__ROLE__TOOL) {
		r = query_check_draining(request, "new programs");
		return r < 0 ? r : hello_client(request, hello);
	}
	if (connection->user_namespace)
		return -EPROTO;
	connection_set_tool(connection);
	hello_reply(request, hello_version(hello), 0);
	return 0;
}

static int open_context_new(struct request *request, struct session *session, uint32_t device,
			    struct context **ret_context)
{
	int r = context_new(session, device, ret_context);

	if (r == -EDQUOT)
		return request_fail(request, CAUSE_LIMIT,
				    "the processes of uid %" PRIu32
				    " have %u device contexts; there is no room for more",
				    session->uid, HCCLD_YARD_CONTEXTS);
	if (r == -EUSERS)
		return request_fail(
			request, CAUSE_LIMIT,
			"the processes of uid %" PRIu32
			" have %u device contexts in all user namespaces, which is the most that one user may have",
			session->uid, HCCLD_CONTEXTS_PER_USER);
	return r;
}

int handle_open_context(struct request *request)
{
	Hccld__Control__OpenContextReply *reply = &request->body.open_context;
	struct session *session = request_session(request);
	uint32_t device = request->message->open_context->device;
	struct context *context;
	int r;

	if (device >= session->registry->device_count)
		return request_fail(request, CAUSE_NO_DEVICE,
				    "there is no device %" PRIu32 ": hccld has %" PRIu32
				    " devices, counted from 0 (hccld --devices)",
				    device, session->registry->device_count);
	context = session->contexts[device];
	if (!context) {
		r = open_context_new(request, session, device, &context);
		if (r < 0)
			return r;
	}
	hccld__control__open_context_reply__init(reply);
	reply->context = context->id;
	reply->yard_index = context->view.index;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_OPEN_CONTEXT;
	request->reply.open_context = reply;
	return 0;
}

int handle_close_context(struct request *request)
{
	struct session *session = request_session(request);
	uint64_t id = request->message->close_context->context;
	struct context *context = session_context(session, id);

	if (context)
		return teardown_context(request, context);
	/*
	 * it may have been closed before the daemon was restarted, and the client has not heard of
	 * it
	 */
	if (session->is_restored && session_gave_id(session, id))
		return teardown_again(request);
	return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such device context");
}

int handle_create_stream(struct request *request)
{
	Hccld__Control__CreateStreamReply *reply = &request->body.create_stream;
	struct session *session = request_session(request);
	struct context *context =
		session_context(session, request->message->create_stream->context);
	struct stream *stream;
	int r;

	if (!context)
		return request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	r = stream_new(context, &stream);
	if (r < 0)
		return tenants_refuse_stream(request, session, r);
	hccld__control__create_stream_reply__init(reply);
	reply->stream = stream->index;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_CREATE_STREAM;
	request->reply.create_stream = reply;
	return 0;
}

int handle_destroy_stream(struct request *request)
{
	struct session *session = request_session(request);
	uint32_t index = request->message->destroy_stream->stream;
	struct stream *stream = session_stream_at(session, index);

	if (stream)
		return teardown_stream(request, stream);
	/*
	 * it may have been destroyed before the daemon was restarted, and the client has not heard
	 * of it
	 */
	if (session->is_restored && index < HCCLD_STREAMS_PER_SESSION)
		return teardown_again(request);
	return request_fail(request, CAUSE_BAD_HANDLE, "this process has no such stream");
}
