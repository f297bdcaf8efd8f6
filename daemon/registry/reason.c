/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, and for what, in words. Reads shared memory as waiting.c does. */
#include "registry/reason.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/process.h"
#include "base/text.h"
#include "proto/notify.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/recorder.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

static bool member_is_suspended(const struct comm *comm, uint32_t rank)
{
	/* a copy within a communicator has no peer */
	return rank < comm->view.size &&
	       atomic_load_explicit(&comm->view.region->members[rank].epoch, memory_order_acquire) & 1;
}

/* Of the barrier of @data; as it was when that was found: others may enter meanwhile. */
static bool is_missing(const void *data, uint32_t rank)
{
	const struct waiting *waiting = data;

	if (waiting->is_posted || rank == waiting->rank)
		return false;
	return rank == waiting->peer || !waiting_has_entered(waiting->comm, rank, waiting->number);
}

/* "ranks 0 and 2" that have not entered its barrier, of which somebody has not: the list is not empty. */
static uint32_t describe_missing(const struct waiting *waiting, struct text *text)
{
	return text_add_ranks(text, waiting->comm->view.size, is_missing, waiting);
}

static bool is_meeting(const struct waiting *waiting)
{
	return waiting->kind == TASK_WAIT_EVENT || waiting->kind == TASK_WAIT_VALUE ||
	       waiting->kind == TASK_HOST || waiting->kind == TASK_NOTIFY_WAIT;
}

/* Also what a rank sends to itself, and reductions. */
static bool is_copy(const struct waiting *waiting)
{
	return waiting->direction == ITEM_COPY || waiting->direction == ITEM_FILL || waiting->direction == ITEM_REDUCE;
}

/* What a notify that counts is to become; a plain one is to be recorded, that goes without saying. */
static void add_wish(const struct waiting *waiting, struct text *text)
{
	uint32_t operand = (uint32_t)waiting->number, mask = (uint32_t)(waiting->number >> 32);

	if (waiting->compare == NOTIFY_EQUAL && operand == 1 && waiting->value == 0)
		return;
	text_add(text, " to become ");
	if (waiting->compare == NOTIFY_EQUAL_MASKED)
		text_add(text, "%#" PRIx32 " in the bits %#" PRIx32 " (it is %#" PRIx32 ")", operand & mask, mask, waiting->value);
	else
		text_add(text, "%s%" PRIu32 "%s (it is %" PRIu32 ")",
			 waiting->compare == NOTIFY_LESS ? "less than " : waiting->compare == NOTIFY_BIGGER ? "more than " : "", operand,
			 waiting->compare == NOTIFY_BIGGER_OR_EQUAL ? " or more" : "", waiting->value);
}

static void describe_meeting(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "stream %" PRIu32 " of pid %d waits ", waiting->stream, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	if (waiting->kind == TASK_WAIT_EVENT)
		text_add(text, "for event %" PRIu32, waiting->event);
	else if (waiting->kind == TASK_NOTIFY_WAIT && waiting->notify)
		text_add(text, "for notify %" PRIu64 " of device %" PRIu32, waiting->notify - 1, waiting->device);
	else if (waiting->kind == TASK_NOTIFY_WAIT)
		text_add(text, "for a notify of another process");
	else if (waiting->blocks)
		text_add(text, "for a host kernel of %" PRIu32 " block%s", waiting->blocks, waiting->blocks == 1 ? "" : "s");
	else if (waiting->kind == TASK_HOST)
		text_add(text, "for a host function");
	else
		text_add(text, "for a value in memory (%#" PRIx64 ")", waiting->number);
	if (waiting->kind == TASK_NOTIFY_WAIT)
		add_wish(waiting, text);
}

static void describe_held(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "rank %" PRIu32 "'s send of ", waiting->rank);
	text_add_bytes(text, waiting->bytes);
	text_add(text, " to rank %" PRIu32 " (pid %d) is held back by %s (", waiting->peer, waiting->peer_pid,
		 quota_setting(QUOTA_PENDING));
	text_add_bytes(text, waiting->session->registry->limits.values[QUOTA_PENDING]);
	text_add(text, ")");
	if (with_age)
		text_add(text, " for %.1f s", (double)waiting->age_ms / 1000);
}

/* ", which ranks 0 and 2 have not entered" */
static void add_missing(const struct waiting *waiting, struct text *text)
{
	text_add(text, ", which ");
	text_add(text, describe_missing(waiting, text) == 1 ? " has not entered" : " have not entered");
}

/* "rank 0 (pid 6453) waits 5.2 s in barrier 7 for rank 1"; without those it waits for if all are there. */
static void describe_barrier(const struct waiting *waiting, bool with_age, struct text *text)
{
	const char *have = with_age ? "has been" : "is";

	text_add(text, "rank %" PRIu32 " (pid %d) ", waiting->rank, waiting->session->view.pid);
	if (waiting->is_entering)
		text_add(text, "%s about to enter barrier %" PRIu64, have, waiting->number);
	else
		text_add(text, "waits ");
	if (with_age)
		text_add(text, waiting->is_entering ? " for %.1f s" : "%.1f s ", (double)waiting->age_ms / 1000);
	if (!waiting->is_entering)
		text_add(text, "in barrier %" PRIu64, waiting->number);
	if (waiting->is_posted)
		return;
	if (waiting->is_entering) {
		add_missing(waiting, text);
		return;
	}
	text_add(text, " for ");
	describe_missing(waiting, text);
}

void waiting_describe(const struct waiting *waiting, bool with_age, struct text *text)
{
	if (is_meeting(waiting)) {
		describe_meeting(waiting, with_age, text);
		return;
	}
	if (waiting->is_held) {
		describe_held(waiting, with_age, text);
		return;
	}
	if (is_copy(waiting)) {
		text_add(text, "pid %d ", waiting->session->view.pid);
		text_add(text, waiting->direction == ITEM_FILL ? "fills " : waiting->direction == ITEM_REDUCE ? "reduces " : "copies ");
		text_add_bytes(text, waiting->bytes);
		if (with_age)
			text_add(text, " for %.1f s", (double)waiting->age_ms / 1000);
		return;
	}
	if (!waiting->direction) {
		describe_barrier(waiting, with_age, text);
		return;
	}
	text_add(text, "rank %" PRIu32 " (pid %d) waits ", waiting->rank, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	text_add(text, "for rank %" PRIu32 " (pid %d%s) to %s ", waiting->peer, waiting->peer_pid,
		 member_is_suspended(waiting->comm, waiting->peer) ? ", suspended" : "",
		 waiting->direction == ITEM_RECEIVE ? "send" : "receive");
	text_add_bytes(text, waiting->bytes);
}

struct busy {
	struct waiting waiting;
	bool found;
};

static bool busy_found(void *data, const struct waiting *waiting)
{
	struct busy *busy = data;

	busy->waiting = *waiting;
	busy->found = true;
	return false;
}

/* Among what the process of a rank is at: what says most about why another one waits for that rank. */
struct cause_of {
	const struct waiting *of;
	struct waiting waiting;
	uint32_t grade; /* 0: nothing found */
};

static uint32_t cause_grade(const struct waiting *of, const struct waiting *other)
{
	bool is_same = other->comm && other->comm == of->comm && other->rank == of->peer;

	if (is_same && !other->direction)
		return 6;
	if (is_same && other->peer == of->rank)
		return 5;
	if (other->kind == TASK_HOST)
		return 4;
	if (other->comm && !other->is_posted)
		return 3;
	return other->is_posted ? 1 : 2;
}

static bool cause_found(void *data, const struct waiting *waiting)
{
	struct cause_of *cause = data;
	uint32_t grade = cause_grade(cause->of, waiting);

	if (grade > cause->grade) {
		cause->waiting = *waiting;
		cause->grade = grade;
	}
	return true;
}

/* What @peer is at, while @of waits for it; false: it has nothing queued. */
static bool find_cause(const struct waiting *of, const struct rank *peer, struct waiting *ret_cause)
{
	struct cause_of cause = { .of = of };

	waiting_walk_context(peer->context, peer->session, cause_found, &cause);
	*ret_cause = cause.waiting;
	return cause.grade;
}

static const char *verb(uint32_t direction)
{
	return direction == ITEM_RECEIVE ? "receive" : "send";
}

/* "rank 1 has not posted that send" */
static void explain_absence(const struct waiting *waiting, struct text *text)
{
	if (waiting->direction)
		text_add(text, "rank %" PRIu32 " has not posted that %s", waiting->peer,
			 waiting->direction == ITEM_RECEIVE ? "send" : "receive");
	else
		text_add(text, "rank %" PRIu32 " has not entered it", waiting->peer);
}

/* @other, of the process of the rank that @waiting waits for, is a transfer with the rank that waits. */
static void explain_facing(const struct waiting *waiting, const struct waiting *other, struct text *text)
{
	text_add(text, "rank %" PRIu32 "'s stream is at a %s of ", other->rank, verb(other->direction));
	text_add_bytes(text, other->bytes);
	text_add(text, " %s rank %" PRIu32, other->direction == ITEM_RECEIVE ? "from" : "to", waiting->rank);
	if (waiting->direction == other->direction)
		text_add(text, ": both %s, nobody %s", verb(other->direction),
			 other->direction == ITEM_RECEIVE ? "sends" : "receives");
}

static void explain_barrier(const struct waiting *waiting, const struct waiting *other, struct text *text)
{
	bool is_same = !waiting->direction && other->comm == waiting->comm && other->number >= waiting->number;

	if (is_same) {
		text_add(text, "rank %" PRIu32 " %s", other->rank,
			 other->is_entering && other->number == waiting->number ? "is about to enter it" : "has entered it by now");
		return;
	}
	text_add(text, "rank %" PRIu32 " is %s barrier %" PRIu64, other->rank, other->is_entering ? "about to enter" : "in",
		 other->number);
	if (other->comm != waiting->comm)
		text_add(text, " of communicator %s", other->comm->name);
	if (other->is_posted)
		text_add(text, ", which everybody%s has entered", other->is_entering ? " else" : "");
	else if (other->comm == waiting->comm && is_missing(other, waiting->rank))
		text_add(text, ", which rank %" PRIu32 " has not entered", waiting->rank);
	else
		add_missing(other, text);
}

/* Of a host function or kernel: "it" comes before. */
static void explain_run(const struct waiting *waiting, struct text *text)
{
	if (waiting->is_begun)
		text_add(text, "has run for %.1f s", (double)waiting->age_ms / 1000);
	else if (waiting->blocks)
		text_add(text, "has not begun yet");
	else
		text_add(text, "was not called yet: its thread does not call aclrtProcessReport, or runs another one");
	if (waiting->lost_comm)
		text_add(text, ", and may wait for rank %" PRIu32 " (pid %d) of communicator %s, whose process has ended", waiting->lost_rank,
			 atomic_load_explicit(&waiting->lost_comm->view.region->members[waiting->lost_rank].pid, memory_order_relaxed),
			 waiting->lost_comm->name);
}

/* "the host function of stream 0 of rank 1 (pid 6453) has run for 5.2 s"; @rank: whose it is. */
static void explain_host(const struct waiting *other, uint32_t rank, struct text *text)
{
	if (other->blocks)
		text_add(text, "the host kernel (blocks: %" PRIu32 ")", other->blocks);
	else
		text_add(text, "the host function");
	text_add(text, " of stream %" PRIu32 " of rank %" PRIu32 " (pid %d) ", other->stream, rank,
		 other->session->view.pid);
	explain_run(other, text);
}

static void explain_meeting(const struct waiting *waiting, struct text *text);

static void explain_elsewhere(const struct waiting *waiting, const struct waiting *other, struct text *text)
{
	explain_absence(waiting, text);
	text_add(text, ": ");
	if (is_meeting(other)) {
		describe_meeting(other, true, text);
		text_add(text, ": ");
		explain_meeting(other, text);
	} else if (is_copy(other)) {
		text_add(text, "its stream is busy with a %s of ",
			 other->direction == ITEM_FILL ? "fill" : other->direction == ITEM_REDUCE ? "reduction" : "copy");
		text_add_bytes(text, other->bytes);
	} else if (other->is_posted) {
		text_add(text, "its stream moves data with rank %" PRIu32 " of communicator %s", other->peer, other->comm->name);
	} else {
		text_add(text, "its stream is at a %s of ", verb(other->direction));
		text_add_bytes(text, other->bytes);
		text_add(text, " %s rank %" PRIu32 " (pid %d)", other->direction == ITEM_RECEIVE ? "from" : "to", other->peer,
			 other->peer_pid);
		if (other->comm != waiting->comm)
			text_add(text, " of communicator %s", other->comm->name);
	}
}

static void explain_cause(const struct waiting *waiting, const struct waiting *other, struct text *text)
{
	if (other->kind == TASK_HOST)
		explain_host(other, waiting->peer, text);
	else if (other->comm && other->is_held)
		describe_held(other, true, text);
	else if (other->comm && !other->direction)
		explain_barrier(waiting, other, text);
	else if (other->comm && other->comm == waiting->comm && other->peer == waiting->rank)
		explain_facing(waiting, other, text);
	else
		explain_elsewhere(waiting, other, text);
}

/* "; " and what the stream is at, if it waits. */
static void add_stream(struct session *session, const struct stream *stream, struct text *text)
{
	struct busy busy = { 0 };

	waiting_walk_stream(session, stream, busy_found, &busy);
	if (!busy.found)
		return;
	text_add(text, "; ");
	waiting_describe(&busy.waiting, true, text);
}

static void explain_recorder(const struct waiting *waiting, struct text *text)
{
	uint32_t place = waiting->recorder - 1;
	const struct stream *stream = session_stream_at((struct session *)waiting->session, place);

	text_add(text, "stream %" PRIu32 " has not recorded it yet", place);
	if (stream)
		add_stream((struct session *)waiting->session, stream, text);
}

/* The last one to look for: who records a notify is known only while a task of it is queued. */
static void explain_notify(const struct waiting *waiting, struct text *text)
{
	struct recorder recorder = recorder_find(waiting);

	if (!recorder.session) {
		text_add(text, "no stream has a task queued that records it");
	} else if (recorder.session == waiting->session && recorder.stream->index == waiting->stream) {
		text_add(text, "what records it is queued in the same stream, behind this wait");
	} else {
		text_add(text, "stream %" PRIu32 " of pid %d has not recorded it yet", recorder.stream->index, recorder.session->view.pid);
		add_stream(recorder.session, recorder.stream, text);
	}
}

static void explain_meeting(const struct waiting *waiting, struct text *text)
{
	int32_t pid = waiting->session->view.pid;

	if (process_is_stopped(pid)) {
		text_add(text, "process %d ", pid);
		text_add_stopped(text, pid);
	} else if (waiting->kind == TASK_WAIT_EVENT && waiting->recorder) {
		explain_recorder(waiting, text);
	} else if (waiting->kind == TASK_WAIT_EVENT) {
		text_add(text, "no stream is to record it (aclrtRecordEvent was not called)");
	} else if (waiting->kind == TASK_NOTIFY_WAIT) {
		explain_notify(waiting, text);
	} else if (waiting->kind == TASK_WAIT_VALUE) {
		text_add(text, "nobody has written it");
	} else {
		text_add(text, "it ");
		explain_run(waiting, text);
	}
}

static void explain_stopped(const struct waiting *waiting, struct text *text)
{
	text_add(text, "process %d of rank %" PRIu32 " ", waiting->peer_pid, waiting->peer);
	text_add_stopped(text, waiting->peer_pid);
}

/* Why the rank that it waits for does not do its part. */
static void explain_peer(const struct waiting *waiting, struct text *text)
{
	const struct rank *peer = waiting->comm->ranks[waiting->peer];
	struct waiting other;

	if (!peer) {
		text_add(text, "rank %" PRIu32 " has ended", waiting->peer);
	} else if (process_is_stopped(waiting->peer_pid)) {
		explain_stopped(waiting, text);
	} else if (find_cause(waiting, peer, &other)) {
		explain_cause(waiting, &other, text);
	} else {
		explain_absence(waiting, text);
		text_add(text, " and has no work queued");
	}
}

void waiting_explain(const struct waiting *waiting, struct text *text)
{
	if (is_meeting(waiting)) {
		explain_meeting(waiting, text);
		return;
	}

	if (waiting->is_posted && waiting->kind == TASK_BARRIER) {
		text_add(text, waiting->is_entering ? "everybody else has entered it" : "everybody has entered it, it is ending");
		return;
	}
	if (waiting->is_posted) {
		text_add(text, waiting->comm && !is_copy(waiting) ? "both sides are there, data is moving" : "data is moving");
		return;
	}
	explain_peer(waiting, text);
	/* the limit comes after what its receiver could do */
	if (waiting->is_held) {
		text_add(text, "; ");
		quota_describe_held(waiting->session->quota, text);
	}
}

#define STEPS_MAX 64 /* from rank to rank */

int waiting_blame(const struct waiting *start, struct text *text, int32_t *ret_pid)
{
	struct waiting at = *start, other;

	*ret_pid = is_meeting(start) || !start->comm ? start->session->view.pid : start->peer_pid;
	for (int step = 0; step < STEPS_MAX; step++) {
		const struct rank *peer = at.comm && !at.is_posted && !at.is_held && at.peer < at.comm->view.size ?
						  at.comm->ranks[at.peer] : NULL;
		bool is_busy;

		if (!peer)
			return -1;
		if (process_is_stopped(at.peer_pid)) {
			explain_stopped(&at, text);
			*ret_pid = at.peer_pid;
			return step;
		}
		is_busy = find_cause(&at, peer, &other);
		if (is_busy && other.kind != TASK_HOST) {
			at = other;
			continue;
		}
		*ret_pid = at.peer_pid;
		if (is_busy)
			explain_host(&other, at.peer, text);
		else if (step)
			text_add(text, "rank %" PRIu32 " (pid %d) has no work queued", at.peer, at.peer_pid);
		return is_busy || step ? step : -1;
	}
	return -1;
}
