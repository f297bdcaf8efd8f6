/* SPDX-License-Identifier: Apache-2.0 */
#include "control/absent.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/process.h"
#include "base/text.h"
#include "registry/comm.h"
#include "registry/registry.h"
#include "registry/session.h"

#define LOOKED_AT_MAX 64u /* processes, in /proc */

const struct joiner *absent_first(const struct comm *comm)
{
	const struct joiner *first = NULL;

	for (uint32_t i = 0; i < comm->rendezvous.size; i++) {
		const struct joiner *joiner = comm->rendezvous.joiners[i];

		if (joiner && (!first || joiner->since_ns < first->since_ns))
			first = joiner;
	}
	return first;
}

/* Ranks that have met apart from @comm, though they may belong to it: two tables, or each with a root info of its own. */
static bool is_rival(const struct comm *comm, const struct comm *other)
{
	if (other == comm || other->origin != comm->origin || other->uid != comm->uid || other->state != COMM_JOINING ||
	    !other->rendezvous.joined)
		return false;
	if (comm->origin == COMM_TABLE)
		return true;
	return comm->origin == COMM_ROOT_INFO && other->rendezvous.size == comm->rendezvous.size;
}

/* Of the ranks in @other the one to name: of root infos one that @comm lacks. */
static const struct joiner *rival_joiner(const struct comm *comm, const struct comm *other)
{
	for (uint32_t i = 0; i < other->rendezvous.size; i++) {
		const struct joiner *joiner = other->rendezvous.joiners[i];

		if (joiner && (comm->origin == COMM_TABLE || !comm->rendezvous.joiners[i]))
			return joiner;
	}
	return NULL;
}

static struct comm_rival find_rival(const struct comm *comm)
{
	list_for_each(struct comm, other, &comm->registry->comms, link) {
		const struct joiner *joiner = is_rival(comm, other) ? rival_joiner(comm, other) : NULL;

		if (joiner)
			return (struct comm_rival){ joiner->pid, joiner->rank, other->rendezvous.size, false };
	}
	return comm->rival;
}

void absent_remember(const struct comm *comm)
{
	list_for_each(struct comm, other, &comm->registry->comms, link) {
		const struct joiner *joiner = is_rival(other, comm) ? rival_joiner(other, comm) : NULL;

		if (joiner)
			other->rival = (struct comm_rival){ joiner->pid, joiner->rank, comm->rendezvous.size, true };
	}
}

static bool is_idle(const struct session *session, const struct comm *comm)
{
	return session->uid == comm->uid && !session->is_ending && !session->rank_slots.used && !session->joiner_count;
}

/* Of processes that have joined nothing: those that are stopped, or else those of the job of a rank that waits. The first of them, or 0. */
static int32_t explain_idle(const struct comm *comm, struct text *text)
{
	const struct joiner *first = absent_first(comm);
	uint32_t looked_at = 0, stopped_count = 0;
	int32_t stopped = 0, idle = 0;
	bool is_near = false;

	if (!first)
		return 0;
	list_for_each(struct session, session, &comm->registry->sessions, link) {
		int32_t pid = session->view.pid;
		bool is_related;

		if (!is_idle(session, comm) || looked_at++ >= LOOKED_AT_MAX)
			continue;
		is_related = process_is_related(pid, first->pid);
		if (process_is_stopped(pid)) {
			if (!stopped || (is_related && !is_near))
				stopped = pid;
			is_near |= is_related;
			stopped_count++;
		} else if (is_related && !idle) {
			idle = pid;
		}
	}
	if (stopped) {
		text_add(text, "; pid %d has joined nothing", stopped);
		if (stopped_count > 1)
			text_add(text, ", as %" PRIu32 " more,", stopped_count - 1);
		text_add(text, " and ");
		text_add_stopped(text, stopped);
	} else if (idle) {
		text_add(text, "; pid %d has joined nothing yet", idle);
	}
	return stopped ? stopped : idle;
}

int32_t absent_explain(const struct comm *comm, struct text *text)
{
	struct comm_rival rival = find_rival(comm);

	if (!rival.pid)
		return explain_idle(comm, text);
	text_add(text, "; pid %d %s as rank %" PRIu32 " of %" PRIu32 " with %s", rival.pid, rival.is_over ? "has waited" : "waits",
		 rival.rank, rival.size,
		 comm->origin == COMM_TABLE ? "a table that differs, or for another HCCLD_JOB: compare them" :
					      "another root info: one rank calls HcclGetRootInfo, and all others get its bytes");
	return 0;
}

void absent_advise(const struct comm *comm, int32_t pid, struct text *text)
{
	static const char *const reached[] = {
		[COMM_ROOT_INFO] = "got the same root info",
		[COMM_TABLE] = "read the same rank table in the same job",
		[COMM_PART] = "called HcclCreateSubCommConfig with the same rankIds and subCommId",
	};
	bool is_one = comm->rendezvous.size - comm->rendezvous.joined == 1;

	if (pid && process_is_stopped(pid)) {
		/* how it goes on was told */
		if (is_one)
			return;
		pid = 0;
	}
	text_add(text, "; ");
	if (pid)
		text_add(text, "look at pid %d (gdb -p %d)%s", pid, pid, is_one ? "" : " and for the others");
	else
		text_add(text, "look for %s", is_one ? "this process" : "these processes");
	text_add(text, ", and whether %s %s", is_one ? "it" : "they", reached[comm->origin]);
}
