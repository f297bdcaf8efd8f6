/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, and for what, in words. Reads shared memory as waiting.c does. */
#include "registry/reason.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/process.h"
#include "base/text.h"
#include "proto/notify.h"
#include "proto/region.h"
#include "registry/cause.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/recorder.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/waiting.h"
#include "registry/whose.h"

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

bool waiting_is_meeting(const struct waiting *waiting)
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

/* Of a channel whose rank is known: only the rank at the other end can record it. */
static bool is_of_channel(const struct waiting *waiting)
{
	return waiting->kind == TASK_NOTIFY_WAIT && waiting->related && waiting->purpose == NOTIFY_OF_CHANNEL &&
	       waiting->peer < waiting->related->view.size;
}

static void describe_channel(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "rank %" PRIu32 " (pid %d) waits ", waiting->rank, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	text_add(text, "for notify %" PRIu32 " of its channel to rank %" PRIu32 " (pid %d) of communicator %s", waiting->notify_index,
		 waiting->peer, waiting->peer_pid, waiting->related->name);
}

/* Its number, and whose it is. */
static void describe_notify(const struct waiting *waiting, struct text *text)
{
	if (!waiting->owner) {
		text_add(text, "for a notify of another process");
		return;
	}
	text_add(text, "for notify %" PRIu32 " of device %" PRIu32, waiting->notify_id, waiting->owner->context->device);
	if (waiting->owner->context->session != waiting->session)
		text_add(text, " of pid %d", waiting->owner->context->session->view.pid);
	else if (waiting->purpose == NOTIFY_OF_THREAD)
		text_add(text, " (notify %" PRIu32 " of a thread", waiting->notify_index);
	if (waiting->purpose != NOTIFY_OF_THREAD || waiting->owner->context->session != waiting->session)
		return;
	if (waiting->related)
		text_add(text, " of rank %" PRIu32 " of communicator %s", waiting->rank, waiting->related->name);
	text_add(text, ")");
}

static void describe_kernel(const struct waiting *waiting, struct text *text)
{
	text_add(text, "for a host kernel of %" PRIu32 " block%s", waiting->blocks, waiting->blocks == 1 ? "" : "s");
	if (waiting->related)
		text_add(text, " of rank %" PRIu32 " of communicator %s", waiting->rank, waiting->related->name);
}

static void describe_meeting(const struct waiting *waiting, bool with_age, struct text *text)
{
	if (is_of_channel(waiting)) {
		describe_channel(waiting, with_age, text);
		return;
	}
	text_add(text, "stream %" PRIu32 " of pid %d waits ", waiting->stream, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	if (waiting->kind == TASK_WAIT_EVENT)
		text_add(text, "for event %" PRIu32, waiting->event);
	else if (waiting->kind == TASK_NOTIFY_WAIT)
		describe_notify(waiting, text);
	else if (waiting->blocks)
		describe_kernel(waiting, text);
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

static void describe_acquire(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "rank %" PRIu32 " (pid %d) waits ", waiting->rank, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	text_add(text, "in HcclChannelAcquire for rank %" PRIu32 " (pid %d)", waiting->peer, waiting->peer_pid);
}

void waiting_describe(const struct waiting *waiting, bool with_age, struct text *text)
{
	if (waiting_is_meeting(waiting)) {
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
	if (waiting->kind == WAITING_CHANNEL) {
		describe_acquire(waiting, with_age, text);
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
		text_add(text, "has not begun yet%s",
			 waiting->is_behind ? ": the kernel or function before it on this stream was aborted, and has not returned" : "");
	else
		text_add(text, "was not called yet: its thread does not call aclrtProcessReport, or runs another one");
	if (waiting->lost_comm) {
		int32_t pid = waiting_member_pid(waiting->lost_comm, waiting->lost_rank);

		text_add(text, ", and may wait for rank %" PRIu32 " (pid %d) of communicator %s, whose process ", waiting->lost_rank, pid,
			 waiting->lost_comm->name);
		if (waiting->lost_is_stopped)
			text_add_stopped(text, pid);
		else
			text_add(text, "has ended");
	}
}

void explain_host(const struct waiting *other, uint32_t rank, struct text *text)
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
	if (other->kind == WAITING_CHANNEL) {
		describe_acquire(other, true, text);
	} else if (waiting_is_meeting(other)) {
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
	else if (other->kind == TASK_BARRIER)
		explain_barrier(waiting, other, text);
	else if (other->comm && other->comm == waiting->comm && other->peer == waiting->rank && other->kind == TASK_BATCH)
		explain_facing(waiting, other, text);
	else
		explain_elsewhere(waiting, other, text);
}

/* Nobody else is to blame for what it waits for. */
static void add_own_stop(int32_t pid, struct text *text)
{
	if (!process_is_stopped(pid))
		return;
	text_add(text, "; process %d ", pid);
	text_add_stopped(text, pid);
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
	/* host functions and kernels are the process's to run, nothing else is */
	if (busy.waiting.kind == TASK_HOST)
		add_own_stop(session->view.pid, text);
}

static void explain_recorder(const struct waiting *waiting, struct text *text)
{
	uint32_t place = waiting->recorder - 1;
	const struct stream *stream = session_stream_at((struct session *)waiting->session, place);

	text_add(text, "stream %" PRIu32 " has not recorded it yet", place);
	if (stream)
		add_stream((struct session *)waiting->session, stream, text);
}

/* The only rank that can record it has not queued that: what it is at. */
static void explain_channel(const struct waiting *waiting, struct text *text)
{
	const struct rank *peer = waiting->related->ranks[waiting->peer];
	struct target target;
	struct waiting other;

	if (!peer) {
		text_add(text, "rank %" PRIu32 " has ended", waiting->peer);
		return;
	}
	if (process_is_stopped(waiting->peer_pid)) {
		text_add(text, "rank %" PRIu32 " (pid %d) ", waiting->peer, waiting->peer_pid);
		text_add_stopped(text, waiting->peer_pid);
		return;
	}
	text_add(text, "rank %" PRIu32 " has no task queued that records it", waiting->peer);
	target = target_rank(peer);
	if (!cause_find(waiting, &target, &other))
		return;
	text_add(text, "; ");
	waiting_describe(&other, true, text);
}

/* "pid 4711, which has exported it, has no task queued that records it" */
static void explain_process(int32_t pid, const char *verb, struct text *text)
{
	text_add(text, "pid %d, which has %s it, ", pid, verb);
	if (process_is_stopped(pid))
		text_add_stopped(text, pid);
	else
		text_add(text, "has no task queued that records it");
}

/* Nobody has queued that: who could, other processes first. A wait is done by the daemon: it goes on while its own process is stopped. */
static void explain_unrecorded(const struct waiting *waiting, struct text *text)
{
	const struct context *importers[IMPORTERS_MAX];
	uint32_t count = whose_importers(waiting, importers);
	int32_t pid = waiting->session->view.pid;

	if (is_of_channel(waiting)) {
		explain_channel(waiting, text);
	} else if (waiting->owner && waiting->owner->context->session != waiting->session) {
		explain_process(waiting->owner->context->session->view.pid, "exported", text);
	} else if (count == 1) {
		explain_process(importers[0]->session->view.pid, "imported", text);
	} else {
		text_add(text, "no stream has a task queued that records it");
		for (uint32_t i = 0; i < count; i++)
			text_add(text, "%s%d", i ? ", " : "; it was imported by pids ", importers[i]->session->view.pid);
		if (!count)
			add_own_stop(pid, text);
	}
}

/* The last one to look for: who records a notify is known only while a task of it is queued. */
static void explain_notify(const struct waiting *waiting, struct text *text)
{
	uint32_t left = TARGET_TASKS;
	struct recorder recorder = recorder_find(waiting, &left);

	if (!recorder.session) {
		explain_unrecorded(waiting, text);
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

	if (waiting->kind == TASK_HOST && process_is_stopped(pid)) {
		text_add(text, "process %d ", pid);
		text_add_stopped(text, pid);
	} else if (waiting->kind == TASK_WAIT_EVENT && waiting->recorder) {
		explain_recorder(waiting, text);
	} else if (waiting->kind == TASK_WAIT_EVENT) {
		text_add(text, "no stream is to record it (aclrtRecordEvent was not called)");
		add_own_stop(pid, text);
	} else if (waiting->kind == TASK_NOTIFY_WAIT) {
		explain_notify(waiting, text);
	} else if (waiting->kind == TASK_WAIT_VALUE) {
		text_add(text, "nobody has written it");
		add_own_stop(pid, text);
	} else {
		text_add(text, "it ");
		explain_run(waiting, text);
	}
}

void explain_stopped(const struct waiting *waiting, struct text *text)
{
	text_add(text, "process %d of rank %" PRIu32 " ", waiting->peer_pid, waiting->peer);
	text_add_stopped(text, waiting->peer_pid);
}

/* Why the rank that it waits for does not do its part. */
static void explain_peer(const struct waiting *waiting, struct text *text)
{
	const struct rank *peer = waiting->comm->ranks[waiting->peer];
	struct target target = target_rank(peer);
	struct waiting other;

	if (!peer) {
		text_add(text, "rank %" PRIu32 " has ended", waiting->peer);
	} else if (process_is_stopped(waiting->peer_pid)) {
		explain_stopped(waiting, text);
	} else if (cause_find(waiting, &target, &other)) {
		explain_cause(waiting, &other, text);
	} else {
		explain_absence(waiting, text);
		text_add(text, " and has no work queued");
	}
}

/* A thread of its process has its context, and nobody else copies meanwhile. */
static bool is_driven(const struct waiting *waiting)
{
	const struct stream *stream = session_stream_at((struct session *)waiting->session, waiting->stream);

	return stream && context_is_driven(stream->context);
}

void waiting_explain(const struct waiting *waiting, struct text *text)
{
	if (waiting_is_meeting(waiting)) {
		explain_meeting(waiting, text);
		return;
	}

	if (waiting->is_posted && waiting->kind == TASK_BARRIER) {
		text_add(text, waiting->is_entering ? "everybody else has entered it" : "everybody has entered it, it is ending");
		return;
	}
	if (waiting->is_posted) {
		text_add(text, waiting->comm && !is_copy(waiting) ? "both sides are there, data is moving" : "data is moving");
		if (is_driven(waiting))
			add_own_stop(waiting->session->view.pid, text);
		return;
	}
	explain_peer(waiting, text);
	/* the limit comes after what its receiver could do */
	if (waiting->is_held) {
		text_add(text, "; ");
		quota_describe_held(waiting->session->quota, text);
	}
}
