/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a pair: failing it, committing receives. The order of stores is that of proto/pair.h (P1 to P5); each CRASH_POINT stands
 * between two stores after which a killed executor must be replaceable.
 */
#include "engine/executor.h"

struct fault pair_fault(struct view_comm *comm, enum cause cause, uint32_t rank, uint32_t peer, uint8_t direction)
{
	const struct comm_member *member = &comm->region->members[peer];
	struct fault fault = {
		.cause = cause,
		.rank = rank,
		.peer = peer,
		.peer_pid = atomic_load_explicit(&member->pid, memory_order_relaxed),
		.peer_exit = atomic_load_explicit(&member->exit, memory_order_relaxed),
		.direction = direction,
		.comm = comm->id,
	};

	if ((cause == CAUSE_PEER_LEFT || cause == CAUSE_PEER_GAVE_UP) &&
	    atomic_load_explicit(&member->async, memory_order_acquire) == 2) {
		const struct fault *theirs = &member->fault;
		bool is_first = !theirs->first_cause;

		fault.first_cause = is_first ? theirs->cause : theirs->first_cause;
		/* a death is named by the dead, anything else by whom it met */
		fault.first_rank = !is_first ? theirs->first_rank : theirs->cause == CAUSE_PEER_DEAD ? theirs->peer : theirs->rank;
		fault.first_pid = is_first ? theirs->peer_pid : theirs->first_pid;
		fault.first_exit = is_first ? theirs->peer_exit : theirs->first_exit;
	}
	return fault;
}

void pair_fail(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination, const struct fault *fault)
{
	struct view_pair *pair = view_pair_of(comm, source, destination);
	struct pair_ring *ring = atomic_load_explicit(&pair->ring, memory_order_acquire);
	uint64_t number = fault->number ? fault->number : 1, failed;

	if (!ring)
		return;
	/* an earlier number may fail after a later one (that of another stream, say): then everything from there on has failed */
	failed = atomic_load_explicit(view_pair_failed(pair, ring), memory_order_acquire);
	if (failed && failed <= number)
		return;
	/* an earlier writer may have died before it stored `failed` */
	*pair->fault = *fault;
	CRASH_POINT(1);
	pending_drop(engine, comm, pair, UINT64_MAX);
	/* P5: release, so that whoever sees `failed` sees the record. Before `received`, which stays where it is. */
	atomic_store_explicit(view_pair_failed(pair, ring), number, memory_order_release);
	CRASH_POINT(2);
	context_dirty(engine, atomic_load_explicit(&comm->contexts[source], memory_order_acquire));
	context_dirty(engine, atomic_load_explicit(&comm->contexts[destination], memory_order_acquire));
}

enum cause pair_commit(struct engine *engine, struct view_comm *comm, struct pair_ring *ring, uint32_t source, uint32_t destination,
		       uint64_t number, struct view_segment *source_segment)
{
	uint64_t bytes, failed;

	/*
	 * The copies' loads are before this fence, the checks behind it: whoever invalidates the source stores its word first and reuses
	 * the memory later, so a copy that saw reused memory sees the word here.
	 */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&comm->region->abort, memory_order_relaxed))
		return CAUSE_ABORTED;
	if (source_segment) {
		/* in this order: an owner that goes stores his word before his memory goes, and that is the reason then */
		uint32_t retired = atomic_load_explicit(&source_segment->retired, memory_order_acquire);
		uint32_t word = atomic_load_explicit(&comm->region->members[source].word, memory_order_relaxed);

		if (word != MEMBER_ALIVE)
			return word == MEMBER_LEFT ? CAUSE_PEER_LEFT : CAUSE_PEER_DEAD;
		if (retired)
			return CAUSE_PEER_MEMORY;
	}
	if (atomic_load_explicit(&ring->revoked, memory_order_relaxed) >= number)
		return CAUSE_PEER_MEMORY;
	/* the source has heard of a failure, and may have used its memory again */
	failed = atomic_load_explicit(&ring->failed, memory_order_relaxed);
	if (failed && failed <= number)
		return CAUSE_PEER_GAVE_UP;
	CRASH_POINT(3);
	bytes = pending_bytes(view_pair_of(comm, source, destination), ring,
			      atomic_load_explicit(&ring->received, memory_order_relaxed) + 1, number);
	/* P4: the commit. Release: whoever sees it sees the bytes, and the source may write its buffer again. */
	atomic_store_explicit(&ring->received, number, memory_order_release);
	CRASH_POINT(4);
	pending_drop(engine, comm, view_pair_of(comm, source, destination), bytes);
	context_dirty(engine, atomic_load_explicit(&comm->contexts[source], memory_order_acquire));
	context_dirty(engine, atomic_load_explicit(&comm->contexts[destination], memory_order_acquire));
	return CAUSE_NONE;
}
