/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#include "control/monitor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/query.h"
#include "control/request.h"
#include "control/user.h"
#include "registry/comm.h"
#include "registry/registry.h"
#include "registry/session.h"

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void event_begin(Hccld__Control__Event *event, const char *kind)
{
	hccld__control__event__init(event);
	event->kind = (char *)kind;
	event->time_ms = now_ms();
}

static int event_push(struct connection *connection, Hccld__Control__Event *event)
{
	Hccld__Control__Event *list[] = { event };
	Hccld__Control__Events events = HCCLD__CONTROL__EVENTS__INIT;
	Hccld__Control__Reply reply = HCCLD__CONTROL__REPLY__INIT;

	events.n_events = 1;
	events.events = list;
	reply.body_case = HCCLD__CONTROL__REPLY__BODY_EVENTS;
	reply.events = &events;
	return connection_push(connection, &reply);
}

void monitor_tell_lost(struct connection *connection)
{
	Hccld__Control__Event event;

	event_begin(&event, "lost");
	event.lost = connection->lost_events;
	if (event_push(connection, &event) == -EAGAIN)
		return;
	connection->lost_events = 0;
	connection_set_events(connection);
}

static void event_post(struct control *control, Hccld__Control__Event *event, bool is_public)
{
	list_for_each(struct connection, connection, &control->connections, link) {
		uint32_t uid = connection->peer.uid;
		bool may_see = is_public || uid == 0 || uid == geteuid() || uid == event->uid;

		if (!connection->is_monitor || !may_see)
			continue;
		/* in order: nothing before those that were lost are told of */
		if (!connection->lost_events && event_push(connection, event) != -EAGAIN)
			continue;
		connection->lost_events++;
		connection_set_events(connection);
	}
}

static void event_set_session(Hccld__Control__Event *event, const struct session *session)
{
	event->session = session->view.id;
	event->pid = (uint32_t)session->view.pid;
	event->uid = session->uid;
	event->process = (char *)session->process;
}

void monitor_session(struct control *control, const char *kind, const struct session *session,
		   const char *text)
{
	Hccld__Control__Event event;

	if (!control->monitor_count)
		return;
	event_begin(&event, kind);
	event_set_session(&event, session);
	event.text = (char *)text;
	event_post(control, &event, false);
}

void monitor_comm(struct control *control, const char *kind, const struct comm *comm,
		enum cause cause, const char *text)
{
	Hccld__Control__Event event;

	if (!control->monitor_count)
		return;
	event_begin(&event, kind);
	event.comm = comm->id;
	event.comm_name = (char *)comm->name;
	event.size = comm->view.size ? comm->view.size : comm->rendezvous.size;
	event.uid = comm->uid;
	event.cause = (char *)(cause ? status_of(cause)->name : "");
	event.text = (char *)text;
	event_post(control, &event, false);
}

void monitor_admin(struct control *control, const char *kind, uint32_t uid, const char *text)
{
	Hccld__Control__Event event;

	if (!control->monitor_count)
		return;
	event_begin(&event, kind);
	event.uid = uid;
	event.text = (char *)text;
	event_post(control, &event, true);
}

void monitor_refused(const struct request *request, enum cause cause, const char *text)
{
	const struct connection *connection = request->connection;
	Hccld__Control__Event event;

	if (!request->control->monitor_count)
		return;
	if (cause != CAUSE_MEMORY && cause != CAUSE_HOST_MEMORY && cause != CAUSE_STREAMS &&
	    cause != CAUSE_NOTIFIES && cause != CAUSE_LIMIT)
		return;
	event_begin(&event, "refused");
	event.pid = (uint32_t)connection->peer.pid;
	event.uid = connection->peer.uid;
	if (connection->session)
		event_set_session(&event, connection->session);
	event.cause = (char *)status_of(cause)->name;
	event.text = (char *)text;
	event_post(request->control, &event, false);
}

/* Each event of a user costs a packet for each of these, whoever's turn it is. */
static int monitor_check(struct request *request)
{
	const struct connection *own = request->connection;
	uint32_t count = 0;

	if (own->is_monitor || user_is_special(own->user))
		return 0;
	list_for_each(struct connection, connection, &request->control->connections, link)
		count += connection->is_monitor && connection->user == own->user;
	if (count < HCCLD_MONITORS_PER_USER)
		return 0;
	return request_fail(request, CAUSE_LIMIT,
			    "%" PRIu32
			    " connections of uid %" PRIu32
			    " are sent events, which is the most that one user may have",
			    count, own->user->uid);
}

int handle_monitor(struct request *request)
{
	struct connection *connection = request->connection;
	struct control *control = request->control;
	Hccld__Control__MonitorReply *reply = &request->body.monitor;
	int r;

	if (connection->state != CONNECTION_TOOL)
		return -EPROTO;
	r = monitor_check(request);
	if (r < 0)
		return r;
	hccld__control__monitor_reply__init(reply);
	reply->pid = (uint32_t)getpid();
	reply->incarnation =
		atomic_load_explicit(&control->registry->beacon->incarnation, memory_order_relaxed);
	reply->draining = request_alloc(request, sizeof(*reply->draining));
	if (!reply->draining)
		return -ENOMEM;
	reply->draining = query_draining(control, reply->draining);
	reply->sessions = control->registry->session_count;
	reply->comms = control->registry->comm_count;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_MONITOR;
	request->reply.monitor = reply;
	if (!connection->is_monitor)
		control->monitor_count++;
	connection->is_monitor = true;
	return 0;
}
