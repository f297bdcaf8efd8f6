/* SPDX-License-Identifier: Apache-2.0 */
/* The one-screen summary: what there is, what waits longest, and whether that is bad. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/process.h"
#include "base/text.h"
#include "control/absent.h"
#include "control/channel_wait.h"
#include "control/connection.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/query.h"
#include "registry/comm.h"
#include "registry/cycle.h"
#include "registry/kernels.h"
#include "registry/reason.h"
#include "registry/lazy.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

#define STUCK_MS 5000u
#define NOTED_MS 1000u
#define LANES_PER_STREAM 256u
#define VERDICT_MAX 8192u /* circles of many ranks, and what to do about it */
#define STUCK_TOLD_MAX 4u /* communicators of which the verdict speaks */

/* What waits, and those that may be the worst of it. */
struct survey {
	uint32_t count;
	struct waiting oldest, oldest_missing; /* missing: its other side has not come */
	struct waiting held;		       /* the oldest send that a limit holds back */
	bool has_oldest, has_missing, has_held;
	bool has_slow_kernel; /* a host kernel that has been running for STUCK_MS */
	struct waiting stuck[STUCK_TOLD_MAX]; /* the oldest of each communicator for STUCK_MS */
	uint32_t stuck_count;
	bool has_more_stuck; /* and of others */
};

bool query_sees_all(const struct request *request)
{
	uint32_t uid = request->connection->peer.uid;

	return uid == 0 || uid == geteuid();
}

bool query_sees(const struct request *request, uint32_t uid)
{
	return query_sees_all(request) || request->connection->peer.uid == uid;
}

Hccld__Control__Device *query_device(struct request *request, uint32_t device)
{
	const struct device *source = &request->control->registry->devices[device];
	Hccld__Control__Device *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__device__init(message);
	message->device = device;
	message->backend = (char *)"host";
	message->memory_used = source->memory.used;
	message->memory_total = source->memory.total;
	message->contexts = source->contexts;
	message->streams = source->streams;
	return message;
}

/* Nothing is known of what it does, and of nobody else that it may wait for. */
static bool is_slow_kernel(const struct waiting *waiting)
{
	return waiting->blocks && waiting->is_begun && !waiting->lost_comm && waiting->age_ms >= NOTED_MS &&
	       !process_is_stopped(waiting->session->view.pid);
}

Hccld__Control__Waiting *query_waiting_new(struct request *request, const struct session *session, const struct comm *comm, uint32_t rank,
					   uint64_t age_ms)
{
	Hccld__Control__Waiting *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__waiting__init(message);
	if (comm) {
		message->comm = comm->id;
		message->comm_name = (char *)comm->name;
		message->rank = rank;
	}
	message->pid = (uint32_t)session->view.pid;
	message->process = (char *)session->process;
	message->age_ms = age_ms;
	return message;
}

Hccld__Control__Waiting *query_waiting(struct request *request, const struct waiting *waiting)
{
	Hccld__Control__Waiting *message = query_waiting_new(request, waiting->session, waiting->related, waiting->rank, waiting->age_ms);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	if (!message)
		return NULL;
	if (waiting->related) {
		message->peer = waiting->peer == UINT32_MAX ? 0 : waiting->peer;
		message->peer_pid = (uint32_t)waiting->peer_pid;
	}
	message->direction = waiting->direction;
	message->bytes = waiting->bytes;
	message->stream = waiting->stream;
	message->task = waiting->kind;
	message->event = waiting->event;
	message->notify = waiting->notify;
	message->blocks = waiting->blocks;
	message->peer_posted = waiting->is_posted;
	message->held = waiting->is_held;
	text_init(&text, buffer, sizeof(buffer));
	waiting_describe(waiting, false, &text);
	text_add(&text, ": ");
	waiting_explain(waiting, &text);
	if (is_slow_kernel(waiting))
		kernels_advise(waiting->session->view.pid, &text);
	message->reason = request_string(request, buffer);
	return message->reason ? message : NULL;
}

static void survey_add_stuck(struct survey *survey, const struct waiting *waiting)
{
	if (waiting->is_posted || !waiting->comm || waiting->age_ms < STUCK_MS)
		return;
	for (uint32_t i = 0; i < survey->stuck_count; i++) {
		if (survey->stuck[i].comm != waiting->comm)
			continue;
		if (waiting->age_ms > survey->stuck[i].age_ms)
			survey->stuck[i] = *waiting;
		return;
	}
	if (survey->stuck_count < STUCK_TOLD_MAX)
		survey->stuck[survey->stuck_count++] = *waiting;
	else
		survey->has_more_stuck = true;
}

static bool survey_add(void *data, const struct waiting *waiting)
{
	struct survey *survey = data;

	survey->count++;
	survey_add_stuck(survey, waiting);
	survey->has_slow_kernel |= waiting->blocks && waiting->is_begun && waiting->age_ms >= STUCK_MS;
	if (!survey->has_oldest || waiting->age_ms > survey->oldest.age_ms) {
		survey->oldest = *waiting;
		survey->has_oldest = true;
	}
	if (!waiting->is_posted &&
	    (!survey->has_missing || waiting->age_ms > survey->oldest_missing.age_ms)) {
		survey->oldest_missing = *waiting;
		survey->has_missing = true;
	}
	if (waiting->is_held && (!survey->has_held || waiting->age_ms > survey->held.age_ms)) {
		survey->held = *waiting;
		survey->has_held = true;
	}
	return true;
}

static void count_objects(const struct request *request, Hccld__Control__StatusReply *reply)
{
	struct registry *registry = request->control->registry;

	list_for_each(struct session, session, &registry->sessions, link) {
		if (!query_sees(request, session->uid)) {
			reply->hidden_sessions++;
			continue;
		}
		reply->sessions++;
		reply->streams += session->stream_slots.used;
	}
	list_for_each(struct comm, comm, &registry->comms, link)
		if (query_sees(request, comm->uid))
			reply->comms++;
		else
			reply->hidden_comms++;
}

/* A communicator whose ranks wait for others for longer than @age_ms, the longest; NULL: none. */
static const struct comm *find_incomplete(const struct request *request, uint64_t *age_ms)
{
	uint64_t now = clock_now_ns();
	const struct comm *worst = NULL;

	list_for_each(struct comm, comm, &request->control->registry->comms, link) {
		if (comm->state != COMM_JOINING || !query_sees(request, comm->uid))
			continue;
		for (uint32_t i = 0; i < comm->rendezvous.size; i++) {
			const struct joiner *joiner = comm->rendezvous.joiners[i];
			uint64_t age = joiner ? (now - joiner->since_ns) / 1000000 : 0;

			if (age <= *age_ms)
				continue;
			*age_ms = age;
			worst = comm;
		}
	}
	return worst;
}

static void plural(struct text *text, uint32_t count, const char *what)
{
	text_add(text, "%" PRIu32 " %s%s", count, what, count == 1 ? "" : "s");
}

/* What the verdict is about: what has waited longest, or what the limit of its tenant holds back. */
static const struct waiting *survey_worst(const struct survey *survey)
{
	bool is_limit = survey->has_held && survey->held.age_ms >= NOTED_MS &&
			survey->held.session->quota == survey->oldest_missing.session->quota;

	return is_limit ? &survey->held : &survey->oldest_missing;
}

static void write_acquire(const struct waiting *worst, struct text *text, int32_t *ret_pid)
{
	char buffer[HCCLD_TEXT_MAX];
	struct text blame;

	text_init(&blame, buffer, sizeof(buffer));
	text_add(text, "HcclChannelAcquire: ");
	/* the first one's state is told with the wait */
	if (waiting_blame(worst, &blame, ret_pid) > 0)
		text_add(text, "%s; ", buffer);
	channel_wait_describe(worst->channel, text);
}

/* What stands behind it comes first; *@ret_pid: the process to look at. */
static void write_waiting(const struct survey *survey, struct text *text, int32_t *ret_pid)
{
	const struct waiting *worst = survey_worst(survey);
	int distance;

	if (worst->channel) {
		write_acquire(worst, text, ret_pid);
		return;
	}
	if (worst->comm)
		text_add(text, "communicator %s: ", worst->comm->name);
	distance = waiting_blame(worst, text, ret_pid);
	if (distance >= 0)
		text_add(text, "; ");
	waiting_describe(worst, true, text);
	if (distance == 0)
		return;
	text_add(text, ": ");
	waiting_explain(worst, text);
}

/* True: it is part of one. */
static bool write_cycle(const struct waiting *waiting, struct text *text)
{
	return waiting->channel ? channel_wait_add_cycle(waiting->channel, text) : cycle_describe(waiting, text);
}

/* Besides that of @worst. A node may have several jobs, and each its own trouble. */
static void write_others(const struct survey *survey, const struct waiting *worst, struct text *text)
{
	for (uint32_t i = 0; i < survey->stuck_count; i++) {
		const struct waiting *other = &survey->stuck[i];

		if (other->comm == worst->comm)
			continue;
		text_add(text, "; also stuck: communicator %s: ", other->comm->name);
		waiting_describe(other, true, text);
		text_add(text, ": ");
		waiting_explain(other, text);
		(void)cycle_describe(other, text);
	}
	if (survey->has_more_stuck)
		text_add(text, "; and more communicators are stuck: hcclctl waiting");
}

/* @waits: it is known to wait: if it has a thread that runs just now, that looks for the end of the wait. */
static void write_advice(int32_t pid, bool waits, struct text *text)
{
	/* of a stopped one the reason says how it goes on */
	if (!waits && process_is_running(pid))
		text_add(text, "; pid %d is computing just now: if it should be here, look at it (gdb -p %d)", pid, pid);
	else if (!process_is_stopped(pid))
		text_add(text, "; look at pid %d (gdb -p %d)", pid, pid);
	text_add(text, "; hcclctl kill pid:%d ends it", pid);
}

static void write_incomplete(const struct comm *comm, uint64_t age_ms, struct text *text)
{
	const struct joiner *first = absent_first(comm);
	int32_t pid;

	text_add(text, "communicator %s is being created for %.1f s: ", comm->name, (double)age_ms / 1000);
	rendezvous_describe(&comm->rendezvous, text);
	pid = absent_explain(comm, text);
	if (age_ms < STUCK_MS || !first)
		return;
	absent_advise(comm, pid, text);
	text_add(text, "; hcclctl kill pid:%d ends the wait", first->pid);
}

/* Of what is well. */
static void write_running(const struct waiting *oldest, struct text *text)
{
	if (oldest->blocks)
		text_add(text, ", a host kernel of %" PRIu32 " block%s has been running", oldest->blocks, oldest->blocks == 1 ? "" : "s");
	else
		text_add(text, oldest->kind == TASK_HOST ? ", a host function has been running" : ", data has been moving");
	text_add(text, " for %.1f s", (double)oldest->age_ms / 1000);
	if (!oldest->blocks)
		return;
	if (oldest->related)
		text_add(text, " at rank %" PRIu32 " of communicator %s", oldest->rank, oldest->related->name);
	text_add(text, "%s pid %d", oldest->related ? "," : " in", oldest->session->view.pid);
	if (is_slow_kernel(oldest))
		kernels_advise(oldest->session->view.pid, text);
}

/* Kernels of all ranks of a communicator that may wait for one another. False: there are none. */
static bool write_kernels(const struct request *request, struct text *text)
{
	char buffer[HCCLD_TEXT_MAX];
	struct text kernels;

	text_init(&kernels, buffer, sizeof(buffer));
	list_for_each(struct comm, comm, &request->control->registry->comms, link) {
		if (!query_sees(request, comm->uid) || !kernels_describe_all(comm, STUCK_MS, &kernels))
			continue;
		text_add(text, "waiting: %s", buffer);
		return true;
	}
	return false;
}

static void write_healthy(const struct survey *survey, const Hccld__Control__StatusReply *reply, struct text *text)
{
	text_add(text, "healthy: ");
	plural(text, reply->sessions, "session");
	text_add(text, ", ");
	plural(text, reply->comms, "communicator");
	if (survey->has_oldest && survey->oldest.age_ms >= NOTED_MS)
		write_running(&survey->oldest, text);
	else
		text_add(text, ", nothing waits longer than 1 s");
}

/* The worst comes first. True: nothing is wrong. */
static bool write_verdict(const struct request *request, const struct survey *survey,
			  const Hccld__Control__StatusReply *reply, struct text *text)
{
	uint64_t join_ms = NOTED_MS;
	const struct comm *incomplete = find_incomplete(request, &join_ms);
	uint64_t missing_ms = survey->has_missing ? survey->oldest_missing.age_ms : 0;
	bool is_stuck = missing_ms >= STUCK_MS || (incomplete && join_ms >= STUCK_MS);
	bool is_circle = false;
	int32_t pid = 0;

	if (missing_ms >= NOTED_MS && (!incomplete || missing_ms >= join_ms)) {
		text_add(text, "%s: ", is_stuck ? "stuck" : "waiting");
		write_waiting(survey, text, &pid);
	} else if (incomplete) {
		text_add(text, "%s: ", is_stuck ? "stuck" : "waiting");
		write_incomplete(incomplete, join_ms, text);
	} else if (!survey->has_slow_kernel || !write_kernels(request, text)) {
		write_healthy(survey, reply, text);
	}
	if (missing_ms >= STUCK_MS)
		is_circle = write_cycle(&survey->oldest_missing, text);
	if (is_stuck && pid)
		write_advice(pid, is_circle, text);
	if (is_stuck)
		write_others(survey, survey_worst(survey), text);
	if (reply->hidden_sessions || reply->hidden_comms) {
		text_add(text, "; not shown, of other users: ");
		plural(text, reply->hidden_sessions, "session");
		text_add(text, ", ");
		plural(text, reply->hidden_comms, "communicator");
	}
	if (reply->draining)
		text_add(text, "; being drained by uid %" PRIu32 ": no new programs are let in",
			 reply->draining->uid);
	if (reply->stopping)
		text_add(text, "; being stopped, %" PRIu64 " s left", (reply->stopping->left_ms + 999) / 1000);
	return !is_stuck;
}

static int add_stopping(struct request *request, Hccld__Control__StatusReply *reply)
{
	const struct control *control = request->control;
	uint64_t now = clock_now_ns();

	if (!control->is_leaving)
		return 0;
	reply->stopping = request_alloc(request, sizeof(*reply->stopping));
	if (!reply->stopping)
		return -ENOMEM;
	hccld__control__stopping__init(reply->stopping);
	reply->stopping->left_ms = control->leave_ns > now ? (control->leave_ns - now) / 1000000 : 0;
	return 0;
}

static int add_devices(struct request *request, Hccld__Control__StatusReply *reply)
{
	uint32_t count = request->control->registry->device_count;

	reply->devices = request_alloc(request, count * sizeof(Hccld__Control__Device *));
	if (!reply->devices)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		reply->devices[i] = query_device(request, i);
		if (!reply->devices[i])
			return -ENOMEM;
		reply->n_devices++;
	}
	return 0;
}

static int add_oldest(struct request *request, const struct survey *survey, Hccld__Control__StatusReply *reply)
{
	const struct waiting *oldest = survey->has_missing ? &survey->oldest_missing : &survey->oldest;

	if (!survey->has_oldest)
		return 0;
	reply->oldest = oldest->channel ? channel_wait_message(request, oldest->channel) : query_waiting(request, oldest);
	return reply->oldest ? 0 : -ENOMEM;
}

int handle_status(struct request *request)
{
	const struct control *control = request->control;
	const struct waiting_filter filter = { .all_users = query_sees_all(request),
					       .uid = request->connection->peer.uid,
					       .lanes_per_stream = LANES_PER_STREAM };
	Hccld__Control__StatusReply *reply = &request->body.status;
	struct survey survey = { 0 };
	char buffer[VERDICT_MAX];
	struct text text;

	lazy_look(request->control->registry);
	hccld__control__status_reply__init(reply);
	reply->version = (char *)control->options.version;
	reply->pid = (uint32_t)getpid();
	reply->uptime_ms = (clock_now_ns() - control->started_ns) / 1000000;
	reply->incarnation =
		atomic_load_explicit(&control->registry->beacon->incarnation, memory_order_relaxed);
	reply->socket = (char *)control->options.socket_path;
	reply->local_path = control->options.local_path;
	reply->draining = request_alloc(request, sizeof(*reply->draining));
	if (!reply->draining)
		return -ENOMEM;
	reply->draining = query_draining(control, reply->draining);
	if (add_stopping(request, reply) < 0)
		return -ENOMEM;
	count_objects(request, reply);
	waiting_walk(control->registry, &filter, survey_add, &survey);
	channel_waits_walk(request, survey_add, &survey);
	reply->waiting_count = survey.count;
	if (add_oldest(request, &survey, reply) < 0)
		return -ENOMEM;
	text_init(&text, buffer, sizeof(buffer));
	reply->healthy = write_verdict(request, &survey, reply, &text);
	reply->verdict = request_string(request, buffer);
	if (!reply->verdict || add_devices(request, reply) < 0)
		return -ENOMEM;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_STATUS;
	request->reply.status = reply;
	return 0;
}
