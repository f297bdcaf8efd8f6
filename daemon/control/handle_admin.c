/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators do: end a session, drain, ask whether both threads are alive. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/cluster.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/monitor.h"
#include "control/query.h"
#include "control/request.h"
#include "control/teardown.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "scheduler/scheduler.h"

#define PROBES_MAX 64u
#define PING_BYTES_MAX 32768u

/* ---- ending a session ---- */

static struct session *kill_find(struct request *request,
				 const Hccld__Control__KillSession *message)
{
	list_for_each(struct session, session, &request->control->registry->sessions, link) {
		bool is_it = message->session ? session->view.id == message->session :
						(uint32_t)session->view.pid == message->pid;

		if (is_it && !session->is_ending)
			return session;
	}
	return NULL;
}

static int kill_reply(struct request *request, const struct session *session)
{
	Hccld__Control__KillSessionReply *reply = &request->body.kill_session;

	hccld__control__kill_session_reply__init(reply);
	reply->session = session->view.id;
	reply->pid = (uint32_t)session->view.pid;
	reply->uid = session->uid;
	reply->process = request_string(request, session->process);
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_KILL_SESSION;
	request->reply.kill_session = reply;
	return reply->process ? 0 : -ENOMEM;
}

int handle_kill_session(struct request *request)
{
	const Hccld__Control__KillSession *message = request->message->kill_session;
	uint32_t uid = request->connection->peer.uid;
	struct session *session = kill_find(request, message);
	struct connection *owner;
	char text[64];
	int r;

	/* who ends it must not be the one that is ended */
	if (request->connection->state != CONNECTION_TOOL)
		return -EPROTO;
	if (!message->session && !message->pid)
		return request_fail(request, CAUSE_ARGUMENT, "neither a session nor a process");
	if (!session && message->session)
		return request_fail(request, CAUSE_NOT_FOUND, "there is no session %" PRIu64,
				    message->session);
	if (!session)
		return request_fail(request, CAUSE_NOT_FOUND,
				    "process %" PRIu32 " has no session", message->pid);
	if (!query_sees(request, session->uid))
		return request_fail(request, CAUSE_PERMISSION,
				    "session %" PRIu64
				    " belongs to uid %" PRIu32
				    ": only that user, root and the user of hccld may end it",
				    session->view.id, session->uid);
	r = kill_reply(request, session);
	if (r < 0)
		return r;
	log_event(LOG_LEVEL_NOTICE,
		  &(struct log_fields){ .event = EVENT_ADMINISTRATION,
					.session = session->view.id,
					.pid = session->view.pid,
					.has_uid = true,
					.uid = uid },
		  "session %" PRIu64 " of process '%s' (pid %d, uid %" PRIu32
		  ") is ended by uid %" PRIu32 " (pid %d)",
		  session->view.id, session->process, session->view.pid, session->uid, uid,
		  request->connection->peer.pid);
	owner = session->owner;
	r = teardown_session(request, session, exit_by_administrator(uid));
	if (r < 0)
		return r;
	exit_text(exit_by_administrator(uid), text, sizeof(text));
	if (owner)
		connection_dismiss(owner, text);
	return r;
}

/* ---- draining ---- */

Hccld__Control__Draining *query_draining(const struct control *control,
					 Hccld__Control__Draining *message)
{
	const struct record_drain *drain = registry_draining(control->registry);

	if (!drain)
		return NULL;
	hccld__control__draining__init(message);
	message->uid = drain->uid;
	message->age_ms = (clock_now_ns() - drain->since_ns) / 1000000;
	return message;
}

int query_check_draining(struct request *request, const char *what)
{
	Hccld__Control__Draining draining;

	if (!query_draining(request->control, &draining))
		return 0;
	return request_fail(request, CAUSE_LIMIT,
			    "hccld is being drained: uid %" PRIu32
			    " lets no %s in, since %" PRIu64
			    " s; use another node, or ask for 'hcclctl undrain'",
			    draining.uid, what, draining.age_ms / 1000);
}

static int drain_set(struct request *request, bool on)
{
	struct registry *registry = request->control->registry;
	const struct process_identity *peer = &request->connection->peer;
	bool was_on = registry_draining(registry);

	if (!query_sees_all(request))
		return request_fail(request, CAUSE_PERMISSION,
				    "only root and the user of hccld may drain it");
	if (on == was_on)
		return 0;
	log_event(LOG_LEVEL_NOTICE,
		  &(struct log_fields){
			  .event = EVENT_ADMINISTRATION, .has_uid = true, .uid = peer->uid },
		  "%s by uid %" PRIu32 " (pid %d)",
		  on ? "drained: no new programs and communicators are let in, asked" :
		       "no longer drained, asked",
		  peer->uid, peer->pid);
	if (on) {
		int r = registry_drain(registry, peer->uid, peer->pid);

		if (r < 0)
			return r;
	} else {
		registry_undrain(registry);
	}
	monitor_admin(request->control, on ? "drain" : "undrain", peer->uid, "");
	return 0;
}

int handle_drain(struct request *request)
{
	Hccld__Control__Drain__Action action = request->message->drain->action;
	Hccld__Control__DrainReply *reply = &request->body.drain;
	const struct registry *registry = request->control->registry;
	int r = 0;

	if (action != HCCLD__CONTROL__DRAIN__ACTION__ASK)
		r = drain_set(request, action == HCCLD__CONTROL__DRAIN__ACTION__DRAIN);
	if (r < 0)
		return r;
	hccld__control__drain_reply__init(reply);
	reply->draining = request_alloc(request, sizeof(*reply->draining));
	if (!reply->draining)
		return -ENOMEM;
	reply->draining = query_draining(request->control, reply->draining);
	reply->sessions = registry->session_count;
	reply->comms = registry->comm_count;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_DRAIN;
	request->reply.drain = reply;
	return 0;
}

/* ---- ping ---- */

struct probe {
	struct scheduler_call call;
	struct request *request;
	uint64_t started_ns;
};

/* Engine thread. */
static bool probe_run(struct engine *engine, void *arg)
{
	(void)engine;
	(void)arg;
	return true;
}

static void probe_done(void *arg)
{
	struct probe *probe = arg;
	struct request *request = probe->request;
	Hccld__Control__PingReply *reply = &request->body.ping;

	request->control->probe_count--;
	hccld__control__ping_reply__init(reply);
	reply->engine_us = (clock_now_ns() - probe->started_ns) / 1000;
	if (!request->control->is_stopping)
		reply->passes = scheduler_passes(request->control->scheduler);
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_PING;
	request->reply.ping = reply;
	request_finish(request, 0);
	free(probe);
}

/* To another node. */
struct far_probe {
	struct link_ping ping;
	struct request *request;
	struct link *link; /* as long as the ping is in its list */
};

static void far_probe_done(struct link_ping *ping, uint64_t round_trip_ns)
{
	struct far_probe *probe = (struct far_probe *)ping;
	struct request *request = probe->request;
	Hccld__Control__PingReply *reply = &request->body.ping;

	request->control->probe_count--;
	if (!round_trip_ns) {
		request_finish(request, request_fail(request, CAUSE_BUSY, "the connection to node %s was lost before it answered", probe->link->name));
		free(probe);
		return;
	}
	hccld__control__ping_reply__init(reply);
	reply->round_trip_ns = round_trip_ns;
	reply->name = request_string(request, probe->link->name);
	reply->address = request_string(request, probe->link->address);
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_PING;
	request->reply.ping = reply;
	request_finish(request, reply->name && reply->address ? 0 : -ENOMEM);
	free(probe);
}

static int ping_node(struct request *request, const char *node, uint32_t size)
{
	struct link *link = cluster_find(request->control->options.cluster, node);
	struct far_probe *probe;

	if (!link)
		return request_fail(request, CAUSE_NOT_FOUND, "there is no link to a node %s; hcclctl links shows those there are", node);
	if (size > PING_BYTES_MAX)
		return request_fail(request, CAUSE_ARGUMENT, "a ping has at most %u bytes", PING_BYTES_MAX);
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->ping.done = far_probe_done;
	probe->request = request;
	probe->link = link;
	if (link_ping(link, size, &probe->ping) < 0) {
		free(probe);
		return request_fail(request, CAUSE_BUSY, "the link to node %s is %s: %s", link->name, link_state_name(link->state), link->why);
	}
	request->control->probe_count++;
	return REQUEST_LATER;
}

int handle_ping(struct request *request)
{
	const Hccld__Control__Ping *message = request->message->ping;
	struct control *control = request->control;
	struct probe *probe;

	if (control->probe_count >= PROBES_MAX)
		return request_fail(request, CAUSE_BUSY,
				    "%u earlier pings have not been answered", PROBES_MAX);
	if (*message->node)
		return ping_node(request, message->node, message->size);
	probe = calloc(1, sizeof(*probe));
	if (!probe)
		return -ENOMEM;
	probe->request = request;
	probe->started_ns = clock_now_ns();
	probe->call =
		(struct scheduler_call){ .run = probe_run, .done = probe_done, .arg = probe };
	control->probe_count++;
	scheduler_call(control->scheduler, &probe->call);
	return REQUEST_LATER;
}
