/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to join a communicator. */
#include "control/join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/memfd.h"
#include "base/text.h"
#include "control/absent.h"
#include "control/control.h"
#include "control/dispatch.h"
#include "control/meeting.h"
#include "control/monitor.h"
#include "control/obituary.h"
#include "control/request.h"
#include "control/teardown.h"
#include "control/tenants.h"
#include "proto/cleanup.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/pairs.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"

/* Moves the timer to the earliest deadline of all communicators. */
static void joins_arm(struct control *control)
{
	uint64_t earliest = UINT64_MAX, now = clock_now_ns();

	list_for_each(struct comm, comm, &control->registry->comms, link) {
		uint64_t deadline = comm->state == COMM_JOINING
					    ? rendezvous_deadline(&comm->rendezvous)
					    : UINT64_MAX;

		if (deadline < earliest)
			earliest = deadline;
	}
	if (earliest == UINT64_MAX)
		loop_timer_stop(control->join_timer);
	else
		/* rounded up: never before the time */
		loop_timer_start(control->join_timer,
				 earliest > now ? (earliest - now) / 1000000 + 1 : 0, 0);
}

/* The joiner has its answer. */
static void joiner_free(struct joiner *joiner)
{
	list_remove(&joiner->link);
	joiner->session->joiner_count--;
	joiner->session->quota->joiners--;
	free(joiner);
}

/* Takes rank @i out of the communicator; NULL: nobody waits for it. */
static struct joiner *joiner_take(struct comm *comm, uint32_t i)
{
	struct joiner *joiner = comm->rendezvous.joiners[i];

	if (joiner)
		rendezvous_remove(&comm->rendezvous, joiner);
	return joiner;
}

void join_fail(struct comm *comm, enum cause cause, const char *text)
{
	const struct log_fields fields = { .event = EVENT_COMM_FAILED, .comm = comm->name };
	uint32_t size = comm->rendezvous.size;

	log_event(LOG_LEVEL_NOTICE, &fields, "%s", text);
	monitor_comm(comm->registry->data, "comm-failed", comm, cause, text);
	comm_fail(comm, cause, text);
	for (uint32_t i = 0; i < size; i++) {
		struct joiner *joiner = joiner_take(comm, i);

		if (!joiner)
			continue;
		comm_tell(comm, joiner->session, joiner->rank);
		request_finish(joiner->data, request_fail(joiner->data, cause, "%s", text));
		joiner_free(joiner);
	}
	comm_collect(comm);
}

void join_cancel(struct joiner *joiner, const char *what)
{
	struct comm *comm = joiner->comm;
	struct request *request = joiner->data;
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "communicator %s: rank %" PRIu32 " (pid %d) %s while it was created; ",
		 comm->name, joiner->rank, joiner->pid, what);
	rendezvous_describe(&comm->rendezvous, &text);
	rendezvous_remove(&comm->rendezvous, joiner);
	comm_tell(comm, joiner->session, joiner->rank);
	request_finish(request, request_fail(request, CAUSE_ABORTED, "%s", buffer));
	joiner_free(joiner);
	join_fail(comm, CAUSE_PEER_LEFT, buffer);
}

int handle_cancel_join(struct request *request)
{
	struct session *session = request_session(request);
	struct control *control = request->control;

	list_for_each(struct joiner, joiner, &session->joiners, link) {
		if (joiner->request != request->message->cancel_join->request)
			continue;
		join_cancel(joiner, "was destroyed with HcclCommDestroy");
		joins_arm(control);
		return 0;
	}
	return request_fail(request, CAUSE_NOT_FOUND, "no join of this process waits with that number");
}

void joins_abort(struct control *control, struct session *session, struct context *context,
		 int32_t exit)
{
	bool is_dead = session->is_ending;

	while (!list_is_empty(&session->joiners)) {
		struct joiner *joiner = NULL;
		char buffer[HCCLD_TEXT_MAX], how[64] = "reset its device";
		struct comm *comm;
		struct text text;

		list_for_each(struct joiner, other, &session->joiners, link)
			if (!context || other->context == context)
				joiner = other;
		if (!joiner)
			break;
		comm = joiner->comm;
		text_init(&text, buffer, sizeof(buffer));
		if (is_dead)
			exit_text(exit, how, sizeof(how));
		text_add(&text,
			 "communicator %s: rank %" PRIu32
			 " (pid %d): %s while the communicator was created",
			 comm->name, joiner->rank, joiner->pid, how);
		join_fail(comm, is_dead ? CAUSE_PEER_DEAD : CAUSE_PEER_LEFT, buffer);
	}
	joins_arm(control);
}

static void join_expire(struct comm *comm)
{
	const struct joiner *first = absent_first(comm);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "communicator %s: ", comm->name);
	rendezvous_describe(&comm->rendezvous, &text);
	text_add(&text, "; pid %d has waited for %" PRIu64 " ms", first->pid, (clock_now_ns() - first->since_ns) / 1000000);
	absent_advise(comm, absent_explain(comm, &text), &text);
	absent_remember(comm);
	join_fail(comm, CAUSE_INIT_TIMEOUT, buffer);
}

void joins_expire(void *data)
{
	struct control *control = data;
	uint64_t now = clock_now_ns();

	list_for_each(struct comm, comm, &control->registry->comms, link)
		if (comm->state == COMM_JOINING && rendezvous_deadline(&comm->rendezvous) <= now)
			join_expire(comm);
	joins_arm(control);
}

/* What a rank of a communicator that is ready gets. */
static int join_reply(struct request *request, const struct rank *rank)
{
	const struct comm *comm = rank->comm;
	const struct extent *first = list_entry(comm->extents.next, struct extent, link);
	Hccld__Control__JoinCommReply *reply = &request->body.join_comm;
	CLEANUP(close_fdp) int fd = -1;
	int r;

	r = memfd_read_only(first->fd, &fd);
	if (r < 0)
		return r;
	r = request_add_fd(request, fd);
	if (r < 0)
		return r;
	hccld__control__join_comm_reply__init(reply);
	reply->rank = rank->handle;
	reply->comm = comm->id;
	reply->name = request_string(request, rank->name);
	if (!reply->name)
		return -ENOMEM;
	request->reply.body_case = HCCLD__CONTROL__REPLY__BODY_JOIN_COMM;
	request->reply.join_comm = reply;
	return 0;
}

/* The tenant may not have the region. */
static void join_refuse_region(struct comm *comm)
{
	uint64_t bytes = comm_region_size(comm->rendezvous.size);
	bool is_memory = quota_is_short(comm->quota, QUOTA_MEMORY, bytes);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "communicator %s: ", comm->name);
	if (is_memory)
		quota_describe(comm->quota, QUOTA_MEMORY, bytes, &text);
	else
		quota_describe(comm->quota, QUOTA_DESCRIPTORS, 1, &text);
	join_fail(comm, is_memory ? CAUSE_HOST_MEMORY : CAUSE_LIMIT, buffer);
}

static void join_complete(struct comm *comm)
{
	uint32_t size = comm->rendezvous.size;
	int r = comm_form(comm);

	if (r == -EUSERS) {
		join_refuse_region(comm);
		return;
	}
	if (r < 0) {
		enum cause cause = r == -ENOBUFS ? CAUSE_HOST_MEMORY : status_cause(r);
		char buffer[HCCLD_TEXT_MAX];
		struct text text;

		text_init(&text, buffer, sizeof(buffer));
		text_add(&text, "communicator %s: the region of %" PRIu32 " ranks cannot be made: ", comm->name, size);
		if (r == -ENOBUFS)
			tenants_describe_host(comm->registry, comm_region_size(size), &text);
		text_add(&text, "%s", r == -ENOBUFS ? "; " TENANTS_HOST_REMEDY : status_of(cause)->text);
		join_fail(comm, cause, buffer);
		return;
	}
	log_debug("communicator %s: %" PRIu32 " ranks are ready", comm->name, size);
	for (uint32_t i = 0; i < size; i++) {
		struct joiner *joiner = joiner_take(comm, i);
		struct request *request = joiner->data;

		r = join_reply(request, comm->ranks[i]);
		/* the others are told that it has left; what they have to do with it fails */
		if (r < 0)
			teardown_lost_rank(request->control, comm->ranks[i]);
		request_finish(request, r);
		joiner_free(joiner);
	}
	rendezvous_deinit(&comm->rendezvous);
	monitor_comm(comm->registry->data, "comm-ready", comm, CAUSE_NONE, "");
}

/* Compares in a time that tells nothing about where they differ. */
static bool secret_matches(const struct comm *comm, const ProtobufCBinaryData *secret)
{
	unsigned char difference = 0;

	if (secret->len != HCCLD_SECRET_BYTES)
		return false;
	for (size_t i = 0; i < HCCLD_SECRET_BYTES; i++)
		difference |= (unsigned char)(comm->secret[i] ^ secret->data[i]);
	return difference == 0;
}

/* Of the same user, but not allowed to share memory. */
static int join_refuse_stranger(struct request *request, const struct comm *comm)
{
	const struct tenant_key *key = &request_session(request)->tenant->key;
	const char *cgroup = comm->quota ? comm->quota->cgroup : "";

	if (strcmp(cgroup, key->cgroup) == 0)
		return request_fail(
			request, CAUSE_PERMISSION,
			"communicator %s belongs to processes of uid %" PRIu32
			" in another user namespace (container): the ranks of a communicator must have the same",
			comm->name, comm->uid);
	return request_fail(request, CAUSE_PERMISSION,
			    "communicator %s belongs to processes in cgroup %s, this one is in %s: "
			    "with [limits] tenant = uid+cgroup all ranks must be in one",
			    comm->name, *cgroup ? cgroup : "/", *key->cgroup ? key->cgroup : "/");
}

/* The communicator that the request may join. */
static int join_find(struct request *request, const Hccld__Control__JoinComm *join,
		     struct comm **ret_comm)
{
	struct session *session = request_session(request);
	struct comm *comm;

	if (join->size == 0 || join->size > HCCLD_RANKS_MAX || join->rank >= join->size)
		return request_fail(request, CAUSE_ARGUMENT,
				    "rank %" PRIu32 " of %" PRIu32
				    ": a communicator has 1 to %u ranks, counted from 0",
				    join->rank, join->size, HCCLD_RANKS_MAX);
	if (strlen(join->name) >= HCCLD_COMM_NAME_MAX || strlen(join->udi) >= HCCLD_UDI_MAX)
		return request_fail(request, CAUSE_ARGUMENT,
				    "the name of a communicator has at most %u bytes",
				    HCCLD_COMM_NAME_MAX - 1);
	if (meeting_is(join))
		return meeting_find(request, join, ret_comm);
	comm = join->key ? comm_find(session->registry, join->key) : NULL;
	if (!comm || comm->origin != COMM_ROOT_INFO)
		return request_fail(
			request, CAUSE_NOT_FOUND,
			"the root info is unknown here: the process that made it has ended, or it is from another node or another hccld");
	if (!secret_matches(comm, &join->secret))
		return request_fail(request, CAUSE_PERMISSION,
				    "the root info is not the one that hccld has given out");
	if (comm->uid != session->uid)
		return request_fail(request, CAUSE_PERMISSION,
				    "communicator %s belongs to uid %" PRIu32
				    ", this process to uid %" PRIu32
				    ": the ranks of a communicator must have one user",
				    comm->name, comm->uid, session->uid);
	if (comm->tenant && comm->tenant != session->tenant->id)
		return join_refuse_stranger(request, comm);
	if (comm->state == COMM_FAILED)
		return request_fail(request, comm->failure, "%s",
				    comm->failure_text ? comm->failure_text
						       : status_of(comm->failure)->text);
	comm_set_tenant(comm, session);
	*ret_comm = comm;
	return 0;
}

/*
 * The communicator is complete: right only for a request that comes again because the daemon was
 * restarted before its reply.
 */
static int join_again(struct request *request, const struct comm *comm, uint32_t index)
{
	const struct rank *rank = index < comm->view.size ? comm->ranks[index] : NULL;
	struct comm_member *member;

	if (rank && rank->session == request_session(request) &&
	    rank->request == request->message->id)
		return join_reply(request, rank);
	if (index >= comm->view.size)
		return request_fail(request, CAUSE_ARGUMENT,
				    "rank %" PRIu32 ": communicator %s has %" PRIu32
				    " ranks and is complete",
				    index, comm->name, comm->view.size);
	member = &comm->view.region->members[index];
	return request_fail(
		request, CAUSE_ARGUMENT,
		"rank %" PRIu32
		" is already taken by pid %d: communicator %s is complete, another one needs a new root info",
		index, member->pid, comm->name);
}

static struct joiner *joiner_new(struct request *request, const Hccld__Control__JoinComm *join,
				 struct comm *comm, struct context *context)
{
	struct session *session = request_session(request);
	uint32_t deadline_ms = request->message->deadline_ms;
	struct joiner *joiner = calloc(1, sizeof(*joiner));

	if (!joiner)
		return NULL;
	list_init(&joiner->link);
	joiner->comm = comm;
	joiner->session = session;
	joiner->context = context;
	joiner->rank = join->rank;
	joiner->device = context->device;
	joiner->pid = session->view.pid;
	joiner->request = request->message->id;
	joiner->since_ns = clock_now_ns();
	joiner->deadline_ns = joiner->since_ns +
			      (deadline_ms ? deadline_ms : HCCLD_REQUEST_DEADLINE_MS) * 1000000ull;
	text_clean(joiner->name, sizeof(joiner->name), join->name);
	joiner->data = request;
	return joiner;
}

/* A number that a message has, in as many bits as are kept. */
static uint32_t limited(uint32_t value, uint32_t high)
{
	return value < high ? value : high;
}

static void settings_write(struct comm *comm, const Hccld__Control__CommSettings *settings)
{
	comm->settings = (struct comm_settings){
		.op_expansion_mode = (uint8_t)limited(settings->op_expansion_mode, UINT8_MAX),
		.deterministic = (uint8_t)limited(settings->deterministic, UINT8_MAX),
		.retry_levels = (uint8_t)limited(settings->retry_levels, UINT8_MAX),
		.retry_count = (uint8_t)limited(settings->retry_count, UINT8_MAX),
		.retry_hold_ms = (uint16_t)limited(settings->retry_hold_ms, UINT16_MAX),
		.retry_interval_ms = (uint16_t)limited(settings->retry_interval_ms, UINT16_MAX),
		.buffer_mb = settings->buffer_mb,
		.qos = (uint8_t)limited(settings->qos, 1 + COMM_QOS_MAX),
	};
}

/*
 * The rank cannot join as it asks, so the others would wait for it in vain: all are told, at once
 * and the same. @r: the error, with words in the request or without.
 */
static int join_refuse(struct request *request, struct comm *comm, uint32_t rank, int r)
{
	enum cause cause = status_cause(r);
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	text_init(&text, buffer, sizeof(buffer));
	text_add(&text, "communicator %s: pid %d cannot join as rank %" PRIu32 ": %s", comm->name,
		 request_session(request)->view.pid, rank,
		 *request->text ? request->text : status_of(cause)->text);
	if (comm->origin == COMM_TABLE)
		text_add(&text, "; two jobs that use one rank table at a time need a different HCCLD_JOB each");
	if (comm->rendezvous.joined) {
		/* before it may be gone */
		comm_tell(comm, request_session(request), rank);
		join_fail(comm, cause, buffer);
	}
	return request_fail(request, cause, "%s", buffer);
}

static int join_add(struct request *request, const Hccld__Control__JoinComm *join,
		    struct comm *comm, struct context *context)
{
	struct control *control = request->control;
	struct session *session = request_session(request);
	CLEANUP(freep) struct joiner *joiner = joiner_new(request, join, comm, context);
	struct text text;
	int r;

	if (!joiner)
		return -ENOMEM;
	text_init(&text, request->text, sizeof(request->text));
	r = rendezvous_add(&comm->rendezvous, joiner, join->size, &text);
	if (r < 0)
		return r;
	if (*joiner->name && comm->rendezvous.joined == 1)
		memcpy(comm->name, joiner->name, sizeof(comm->name));
	if (*join->udi)
		text_clean(comm->udi, sizeof(comm->udi), join->udi);
	if (join->settings && (comm->rendezvous.joined == 1 || join->rank == 0))
		settings_write(comm, join->settings);
	list_append(&session->joiners, &take_ptr(&joiner)->link);
	session->joiner_count++;
	session->quota->joiners++;
	if (r == 1)
		join_complete(comm); /* which frees this request with the others */
	joins_arm(control);
	return REQUEST_LATER;
}

int handle_join_comm(struct request *request)
{
	const Hccld__Control__JoinComm *join = request->message->join_comm;
	struct session *session = request_session(request);
	struct context *context = session_context(session, join->context);
	struct rank *again = meeting_is(join) ? meeting_again(request) : NULL;
	struct comm *comm = NULL;
	int r;

	if (again)
		return join_reply(request, again);
	r = join_find(request, join, &comm);
	if (r < 0)
		return r;
	if (comm->state == COMM_READY && context)
		return join_again(request, comm, join->rank);
	if (!context)
		r = request_fail(request, CAUSE_BAD_HANDLE, "the device context is gone");
	else if (session->rank_slots.used + session->joiner_count >= HCCLD_RANKS_PER_SESSION)
		r = request_fail(request, CAUSE_LIMIT,
				 "a process has at most %u ranks in all its communicators",
				 HCCLD_RANKS_PER_SESSION);
	else if (session->quota->ranks + session->quota->joiners >= HCCLD_RANKS_PER_USER)
		r = request_fail(request, CAUSE_LIMIT,
				 "the processes of uid %" PRIu32 " have %u ranks, which is the most that one user may have",
				 session->uid, HCCLD_RANKS_PER_USER);
	else
		r = join_add(request, join, comm, context);
	if (r < 0 && comm->state == COMM_JOINING) {
		r = join_refuse(request, comm, join->rank, r);
		joins_arm(request->control);
	}
	return r;
}
