/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a chain of waits. */
#include <inttypes.h>
#include <stddef.h>

#include "base/process.h"
#include "base/text.h"
#include "proto/region.h"
#include "registry/cause.h"
#include "registry/context.h"
#include "registry/reason.h"
#include "registry/session.h"
#include "registry/waiting.h"
#include "registry/whose.h"

#define STEPS_MAX 64 /* from one that waits to the next */

/* Whom to look at as long as nothing better is found. */
static int32_t first_suspect(const struct waiting *start)
{
	uint32_t left = TARGET_TASKS;
	struct target target;

	if (start->lost_is_stopped)
		return waiting_member_pid(start->lost_comm, start->lost_rank);
	if (start->comm)
		return start->peer_pid;
	target = target_of(start, &left);
	return target.session ? target.session->view.pid : start->session->view.pid;
}

/* @at is where the chain ends, or its process is not the one that has to do something. */
static void blame_end(const struct waiting *at, struct text *text, int32_t *ret_pid)
{
	waiting_describe(at, true, text);
	text_add(text, ": ");
	waiting_explain(at, text);
	*ret_pid = at->session->view.pid;
}

/* Of a target with nothing to do. False: nothing is to be said that the reason of @at does not say. */
static bool blame_idle(const struct waiting *at, const struct target *target, int step, struct text *text, int32_t *ret_pid)
{
	*ret_pid = target->session->view.pid;
	if (!step || target->stream)
		return false;
	if (waiting_is_meeting(at)) {
		waiting_describe(at, true, text);
		text_add(text, ": ");
		waiting_explain(at, text);
	} else {
		text_add(text, "rank %" PRIu32 " (pid %d) has no work queued", at->peer, at->peer_pid);
	}
	return true;
}

/* @other, a host function or kernel, is what @at waits for. */
static void blame_host(const struct waiting *at, const struct waiting *other, struct text *text, int32_t *ret_pid)
{
	*ret_pid = other->session->view.pid;
	if (at->comm)
		explain_host(other, at->peer, text);
	else
		blame_end(other, text, ret_pid);
	if (other->lost_is_stopped)
		*ret_pid = waiting_member_pid(other->lost_comm, other->lost_rank);
}

int waiting_blame(const struct waiting *start, struct text *text, int32_t *ret_pid)
{
	uint32_t left = TARGET_TASKS;
	struct waiting at = *start, other;

	*ret_pid = first_suspect(start);
	for (int step = 0; step < STEPS_MAX; step++) {
		struct target target = target_of(&at, &left);
		bool is_end = !target.session && waiting_is_meeting(&at) && step;

		if (is_end)
			blame_end(&at, text, ret_pid);
		if (!target.session)
			return is_end ? step : -1;
		if (!target.stream && process_is_stopped(target.session->view.pid)) {
			*ret_pid = target.session->view.pid;
			if (at.comm)
				explain_stopped(&at, text);
			else
				return blame_idle(&at, &target, step, text, ret_pid) ? step : -1;
			return step;
		}
		if (!cause_find(&at, &target, &other))
			return blame_idle(&at, &target, step, text, ret_pid) ? step : -1;
		if (other.kind == TASK_HOST) {
			blame_host(&at, &other, text, ret_pid);
			return step;
		}
		at = other;
	}
	return -1;
}
