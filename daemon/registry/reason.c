/* SPDX-License-Identifier: Apache-2.0 */
/* What waits, and for what, in words. Reads shared memory as waiting.c does. */
#include "registry/reason.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/process.h"
#include "base/text.h"
#include "proto/region.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

static bool member_is_suspended(const struct comm *comm, uint32_t rank)
{
	/* a copy within a communicator has no peer */
	return rank < comm->view.size &&
	       atomic_load_explicit(&comm->view.region->members[rank].epoch, memory_order_acquire) & 1;
}

static void describe_missing(const struct waiting *waiting, struct text *text)
{
	uint32_t size = waiting->comm->view.size, end, runs = 0;

	for (uint32_t i = 0; i < size; i = end + 1) {
		end = i;
		if (waiting_has_entered(waiting->comm, i, waiting->number))
			continue;
		while (end + 1 < size && !waiting_has_entered(waiting->comm, end + 1, waiting->number))
			end++;
		if (++runs > 8) {
			text_add(text, ", ...");
			return;
		}
		text_add_range(text, i, end);
	}
}

static bool is_meeting(const struct waiting *waiting)
{
	return waiting->kind == TASK_WAIT_EVENT || waiting->kind == TASK_WAIT_VALUE ||
	       waiting->kind == TASK_HOST;
}

static void describe_meeting(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "stream %" PRIu32 " of pid %d waits ", waiting->stream, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	if (waiting->kind == TASK_WAIT_EVENT)
		text_add(text, "for event %" PRIu32, waiting->event);
	else if (waiting->kind == TASK_HOST)
		text_add(text, "for a host function");
	else
		text_add(text, "for a value in memory (%#" PRIx64 ")", waiting->number);
}

static void describe_held(const struct waiting *waiting, bool with_age, struct text *text)
{
	text_add(text, "rank %" PRIu32 "'s send of ", waiting->rank);
	text_add_bytes(text, waiting->bytes);
	text_add(text, " to rank %" PRIu32 " is held back by %s (", waiting->peer, quota_setting(QUOTA_PENDING));
	text_add_bytes(text, waiting->session->registry->limits.values[QUOTA_PENDING]);
	text_add(text, ")");
	if (with_age)
		text_add(text, " for %.1f s", (double)waiting->age_ms / 1000);
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
	if (!waiting->comm) {
		text_add(text, "pid %d ", waiting->session->view.pid);
		text_add(text, waiting->direction == ITEM_FILL ? "fills " : "copies ");
		text_add_bytes(text, waiting->bytes);
		if (with_age)
			text_add(text, " for %.1f s", (double)waiting->age_ms / 1000);
		return;
	}
	text_add(text, "rank %" PRIu32 " (pid %d) waits ", waiting->rank, waiting->session->view.pid);
	if (with_age)
		text_add(text, "%.1f s ", (double)waiting->age_ms / 1000);
	if (!waiting->direction) {
		text_add(text, "in barrier %" PRIu64 " for rank ", waiting->number);
		describe_missing(waiting, text);
		return;
	}
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

/* The first thing that @rank waits for; false: it has nothing queued. */
static bool rank_find_busy(const struct rank *rank, struct busy *ret_busy)
{
	*ret_busy = (struct busy){ 0 };
	waiting_walk_context(rank->context, rank->session, busy_found, ret_busy);
	return ret_busy->found;
}

static void explain_busy(const struct waiting *waiting, const struct waiting *other,
			 struct text *text)
{
	if (is_meeting(other)) {
		text_add(text, "its ");
		describe_meeting(other, true, text);
	} else if (!other->comm) {
		text_add(text, "its stream is busy with a %s of ",
			 other->direction == ITEM_FILL ? "fill" : "copy");
		text_add_bytes(text, other->bytes);
	} else if (other->comm == waiting->comm && other->peer == waiting->rank) {
		/* both wait for each other */
		text_add(text,
			 "its stream has another operation with rank %" PRIu32
			 " first: it waits for it to %s ",
			 waiting->rank, other->direction == ITEM_RECEIVE ? "send" : "receive");
		text_add_bytes(text, other->bytes);
	} else if (!other->direction) {
		text_add(text, "it is in a barrier of communicator %s", other->comm->name);
	} else if (other->is_posted) {
		text_add(text,
			 "its stream is busy moving data with rank %" PRIu32 " of communicator %s",
			 other->peer, other->comm->name);
	} else {
		text_add(text,
			 "it waits itself for rank %" PRIu32 " (pid %d) of communicator %s to %s ",
			 other->peer, other->peer_pid, other->comm->name,
			 other->direction == ITEM_RECEIVE ? "send" : "receive");
		text_add_bytes(text, other->bytes);
	}
}

static void explain_recorder(const struct waiting *waiting, struct text *text)
{
	uint32_t place = waiting->recorder - 1;
	struct busy busy = { 0 };
	const struct stream *stream = session_stream_at((struct session *)waiting->session, place);

	text_add(text, "stream %" PRIu32 " has not recorded it yet", place);
	if (!stream)
		return;
	waiting_walk_stream((struct session *)waiting->session, stream, busy_found, &busy);
	if (!busy.found)
		return;
	text_add(text, "; ");
	waiting_describe(&busy.waiting, true, text);
}

static void explain_meeting(const struct waiting *waiting, struct text *text)
{
	if (process_is_stopped(waiting->session->view.pid))
		text_add(text, "process %d is stopped (SIGSTOP or a debugger)", waiting->session->view.pid);
	else if (waiting->kind == TASK_WAIT_EVENT && waiting->recorder)
		explain_recorder(waiting, text);
	else if (waiting->kind == TASK_WAIT_EVENT)
		text_add(text, "no stream is to record it (aclrtRecordEvent was not called)");
	else if (waiting->kind == TASK_WAIT_VALUE)
		text_add(text, "nobody has written it");
	else if (waiting->is_posted)
		text_add(text, "it has run for %.1f s", (double)waiting->age_ms / 1000);
	else
		text_add(text, "it was not called yet: its thread does not call aclrtProcessReport, or runs another one");
}

void waiting_explain(const struct waiting *waiting, struct text *text)
{
	const struct rank *peer;
	struct busy busy;

	if (is_meeting(waiting)) {
		explain_meeting(waiting, text);
		return;
	}

	if (waiting->is_posted) {
		text_add(text, waiting->comm ? "both sides are there, data is moving" : "data is moving");
		return;
	}
	if (waiting->is_held) {
		quota_describe_held(waiting->session->quota, text);
		return;
	}
	peer = waiting->comm->ranks[waiting->peer];
	if (!peer) {
		text_add(text, "rank %" PRIu32 " has ended", waiting->peer);
		return;
	}
	if (process_is_stopped(waiting->peer_pid)) {
		text_add(text, "process %d of rank %" PRIu32 " is stopped (SIGSTOP or a debugger)",
			 waiting->peer_pid, waiting->peer);
		return;
	}
	text_add(text, "rank %" PRIu32 " has %s and ", waiting->peer,
		 waiting->direction ? "posted nothing to it" : "not entered it");
	if (rank_find_busy(peer, &busy))
		explain_busy(waiting, &busy.waiting, text);
	else
		text_add(text, "has no work queued");
}
