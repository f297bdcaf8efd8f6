/* SPDX-License-Identifier: Apache-2.0 */
/* What state a communicator is in: suspended, with an asynchronous error, or with ranks that have died. Any thread, with the comm pinned. */
#include "client/comm.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/drive.h"
#include "client/error.h"
#include "client/session.h"
#include "client/thread.h"
#include "proto/cleanup.h"
#include "proto/control.pb-c.h"
#include "proto/feature.h"
#include "proto/region.h"

/* ---- suspending ---- */

int hccld_comm_check_running(const struct hccld_comm *comm, uint32_t *ret_epoch)
{
	uint32_t epoch = atomic_load_explicit(&comm->region->members[comm->rank].epoch, memory_order_acquire);

	*ret_epoch = epoch;
	if (__builtin_expect(!(epoch & 1), 1))
		return 0;
	return hccld_error(CAUSE_SUSPENDED, "communicator %s: rank %u is suspended since HcclCommSuspend; call HcclCommResume first",
			   comm->name, comm->rank);
}

/* Did the rank's process end without HcclCommDestroy? */
static bool is_dead(const struct hccld_comm *comm, uint32_t rank)
{
	/* acquire: pid and wait status come before the word */
	return atomic_load_explicit(&comm->region->members[rank].word, memory_order_acquire) == MEMBER_DEAD;
}

/* Bit per rank, for who is resumed. */
static void dead_remember(const struct hccld_comm *comm, uint64_t *dead)
{
	for (uint32_t i = 0; i < comm->size; i++)
		dead[i / 64] |= (uint64_t)is_dead(comm, i) << i % 64;
}

/* The text that this thread has of hccld_comm_async_result(), if it has not been taken, and of which communicator. */
static _Thread_local struct {
	const void *handle;
	uint64_t serial;
} told;

static void told_forget(const struct hccld_comm *comm)
{
	if (told.handle == comm->handle && told.serial == hccld_error_serial())
		hccld_error_forget();
}

static void resumed(struct hccld_comm *comm, const uint64_t *dead)
{
	atomic_store_explicit(&comm->async_reported, false, memory_order_relaxed);
	atomic_store_explicit(&comm->call_failed, CAUSE_NONE, memory_order_relaxed);
	for (uint32_t i = 0; i < (comm->size + 63) / 64; i++)
		atomic_store_explicit(&comm->dead_known[i], dead[i], memory_order_relaxed);
	told_forget(comm);
	hccld_threads_resume(comm->task_rank);
}

int hccld_comm_set_suspended(struct hccld_comm *comm, bool suspended)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__SuspendComm suspend = HCCLD__CONTROL__SUSPEND_COMM__INIT;
	Hccld__Control__ResumeComm resume = HCCLD__CONTROL__RESUME_COMM__INIT;
	CLEANUP(freep) uint64_t *dead = calloc((comm->size + 63) / 64, sizeof(*dead));
	struct hccld_session *session;
	int r;

	if (!dead)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to resume communicator %s", comm->name);
	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	if (!(session->features & HCCLD_FEATURE_COMM))
		return hccld_error(CAUSE_UNBUILT, "hccld %s cannot suspend communicators; update hccld", session->daemon_version);
	suspend.rank = resume.rank = comm->task_rank;
	if (suspended) {
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_SUSPEND_COMM;
		request.suspend_comm = &suspend;
	} else {
		request.body_case = HCCLD__CONTROL__REQUEST__BODY_RESUME_COMM;
		request.resume_comm = &resume;
	}
	/* before: who dies from here on is a new error */
	dead_remember(comm, dead);
	hccld_drive_pause(comm->on);
	r = hccld_call_simple(session->connection, &request);
	hccld_drive_resume(comm->on);
	if (r == 0 && !suspended)
		resumed(comm, dead);
	return r;
}

/* ---- state ---- */

enum cause hccld_comm_async(const struct hccld_comm *comm, struct fault *ret_fault)
{
	const struct comm_member *member = &comm->region->members[comm->rank];

	/* acquire: with 2 the fault is complete; it changes when the rank is resumed, which its program does itself */
	if (atomic_load_explicit(&member->async, memory_order_acquire) != 2)
		return CAUSE_NONE;
	if (ret_fault)
		*ret_fault = member->fault;
	return (enum cause)member->fault.cause;
}

/* With a text that names one of those that died since the last HcclCommResume. */
static enum cause death_find(const struct hccld_comm *comm)
{
	const struct comm_member *member = NULL;
	uint32_t rank = 0, count = 0;
	char how[64];
	int r;

	for (uint32_t i = 0; i < comm->size; i++) {
		if (!is_dead(comm, i))
			continue;
		count++;
		if (member || atomic_load_explicit(&comm->dead_known[i / 64], memory_order_relaxed) >> i % 64 & 1)
			continue;
		member = &comm->region->members[i];
		rank = i;
	}
	if (!member)
		return CAUSE_NONE;
	exit_text(member->exit, how, sizeof(how));
	r = hccld_error(CAUSE_PEER_DEAD, "communicator %s: rank %u, pid %d, %s (dead ranks: %u of %u)", comm->name, rank, member->pid, how, count,
			comm->size);
	/* it is no text of a later error that brings none */
	(void)hccld_hccl_result(r);
	told.handle = comm->handle;
	told.serial = hccld_error_serial();
	return CAUSE_PEER_DEAD;
}

int hccld_comm_async_result(const struct hccld_comm *comm)
{
	struct hccld_session *session;
	enum cause cause = hccld_comm_async(comm, NULL);

	if (atomic_load_explicit(&comm->region->members[comm->rank].epoch, memory_order_acquire) & 1)
		return status_of(CAUSE_SUSPENDED)->hccl;
	/* its device was reset */
	if (!cause && atomic_load_explicit(&comm->region->members[comm->rank].word, memory_order_relaxed) != MEMBER_ALIVE)
		cause = CAUSE_ABORTED;
	if (!cause)
		cause = hccld_threads_fault(comm->task_rank);
	if (!cause)
		cause = atomic_load_explicit(&comm->call_failed, memory_order_relaxed);
	/* a watchdog that asks nothing else is to learn of ranks that died, and of a daemon that went for good */
	if (!cause)
		cause = death_find(comm);
	if (!cause && hccld_session_get(&session) == 0 && hccld_connection_is_gone(session->connection))
		cause = CAUSE_DAEMON_GONE;
	if (!cause)
		told_forget(comm);
	return status_of(cause)->hccl;
}

int hccld_comm_check_async(struct hccld_comm *comm)
{
	struct fault fault;

	/* a send that was not complete is reported by its stream. Daemons before 0.4 do not say, and what is in the offer is complete */
	if (hccld_comm_async(comm, &fault) != CAUSE_MISMATCH || fault.direction != ITEM_SEND ||
	    !(fault.was_complete || fault.local_bytes <= HCCLD_INLINE_MAX))
		return 0;
	if (atomic_exchange_explicit(&comm->async_reported, true, memory_order_relaxed))
		return 0;
	return hccld_error_fault(&fault, comm->name);
}
