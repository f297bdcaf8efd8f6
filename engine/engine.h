/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: advances contexts on shared memory. It never waits, takes no lock, allocates nothing after engine_new() and keeps
 * nothing that another executor could need: kill it at any store, and the next one goes on from the words in shared memory.
 *
 * All functions with a struct engine are for one thread, the executor's (in the daemon: the engine thread).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/view.h"

struct engine;
struct far_frame;

/* What the executor needs from the process it lives in. */
struct engine_host {
	void *data;
	/*
	 * Small copies are made by the executor itself between these two; guard_end() gives NULL, or the address at which memory was lost
	 * in between (SIGBUS).
	 */
	void (*guard_begin)(void);
	const void *(*guard_end)(void);
	/* A client wrote nonsense into shared memory; its session must end. @what is static. */
	void (*liar)(void *data, struct view_session *session, const char *what);
	/* Types of equal size differ; said once per pair. */
	void (*type_mismatch)(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint8_t source_type,
			      uint8_t destination_type);
	/*
	 * Sends of @source would complete without their receivers if it had an eager pool more than @pools, or, with another rank for @destination,
	 * a wide ring to that. The answer comes with the view (enum view_room), and with engine_look_at_held(). False: it is not known yet; asked
	 * again by a later look. NULL: nobody makes room.
	 */
	bool (*no_room)(void *data, struct view_comm *comm, uint32_t source, uint32_t destination, uint32_t pools);
	/*
	 * Sends a frame with @size bytes of @payload, which it copies between guard_begin() and guard_end(), to another node (view_far.nodes). False: that has
	 * no room now; far_look() and far_push() are called again when it has.
	 */
	bool (*far_send)(void *data, void *node, const struct view_comm *comm, const struct far_frame *frame, const void *payload, size_t size);
	/* What comes for [@to, @to + @size) by far_place() goes nowhere from here on. */
	void (*far_forget)(void *data, void *node, const void *to, size_t size);
	/* It has no room for what must not be lost: it counts as lost itself. */
	void (*far_fail)(void *data, void *node);
	/* Is the process of @session proven gone? Of one whose member word says dead: the session may have ended alone. NULL: it is. */
	bool (*has_ended)(void *data, const struct view_session *session);
};

/*
 * There are two kinds of executors: this one, and threads of clients that advance their own contexts while they submit or wait. What they do
 * not do (failures, large copies, all but batches) they leave to this one.
 */

/* @transfers: how many large copies may be in progress at a time. -ENOMEM. @host is copied. */
int engine_new(const struct engine_host *host, uint32_t transfers, struct engine **ret_engine);
struct engine *engine_free(struct engine *engine);

/*
 * May threads of clients take contexts? Not at first. True: then engine_share() for every context, and only then they are told (beacon.
 * local_path). False: after they were told; some may be in the middle, and some may not have read it yet. Pending bytes are counted only
 * while they may not: afterwards engine_recount() for every context.
 */
void engine_set_direct(struct engine *engine, bool is_direct);
/*
 * Copies of more than @min bytes between processes are shared with threads of clients that wait for them, in chunks of @chunk bytes or more, while
 * clients may drive. More than DIRECT_COPY_MAX: who drives must not end a receive that an earlier executor has shared. @is_narrow: cores are few;
 * slices of such copies come only when no client helps. Not at first.
 */
void engine_share_copies(struct engine *engine, uint64_t min, uint64_t chunk, bool is_narrow);
/* Between looks, as long as it is called: what clients have done of shared copies. True: one has ended. */
bool engine_collect_chunks(struct engine *engine);
/* Are there chunks that nobody has taken, though no slice is offered? Then the engine has to come back in a moment. */
bool engine_has_free_chunks(const struct engine *engine);
/* The daemon ends: no client that helps is waited for. Its memory stays mapped where it is. */
void engine_abandon_helpers(struct engine *engine);
void engine_share(struct engine *engine, struct view_context *context);
void engine_recount(struct engine *engine, struct view_context *context);

/* ---- contexts ---- */

/*
 * Rule R10 for one context whose bit is set: takes it if it is LEFT (PARKED, HELD), advances it and leaves it (R4). One that is PATIENT is
 * taken at the second look that finds it the same, in another tick, or when it was PATIENT in many ticks. Otherwise clears the bit. Returns true if something was done.
 */
bool engine_look(struct engine *engine, struct view_context *context);
/* A new tick: half a millisecond or so. */
void engine_tick(struct engine *engine);
/* Has a look met one that was PATIENT since this was asked last? */
bool engine_met_patient(struct engine *engine);
/*
 * The same within about @steps, of which one at least is done; what is left is LEFT, with its bit set. *@ret_steps: how many it was, which
 * may be more.
 */
bool engine_look_for(struct engine *engine, struct view_context *context, int64_t steps, int64_t *ret_steps);
/*
 * Heartbeat, and when room was made or refused: sends that wait for a limit of pending bytes, which may have been raised, or for room are looked at
 * again. Are there any?
 */
void engine_look_at_held(struct engine *engine);
bool engine_has_held(const struct engine *engine);
/* Heartbeat: wakes who may sleep on a task that was completed when nobody said so (`sleepers` is the clients' word). */
void engine_wake_forgotten(struct view_context *context);

/*
 * Ages of heads: fails what exceeded its time-out. To be called for every context every 100 ms or so, with one @now_ns for all of them: what
 * a tenant's contexts have in lanes beyond a limit is for the next time. What a client has is left alone: it is driven.
 */
void engine_check_timeouts(struct engine *engine, struct view_context *context, uint64_t now_ns);

/*
 * Heartbeat, between looks: the yard can be written by every process of the tenant. A context with undone work in a state that no honest
 * process has left it in (owned while nobody runs it, idle, parked without saying so all the time, asleep with nobody who sleeps, LEFT without
 * its bit) becomes LEFT with its bit set. CLIENT is left alone once clients may drive.
 */
void engine_mend(struct engine *engine, struct view_context *context);

/*
 * Rule R9 after a start with contexts of a previous process: rebuilds the counters of pairs and barriers from the items' numbers, makes
 * every context with undone work LEFT with its bit set, wakes all sleepers. What a client has is left alone. To be called for every context
 * before the first engine_look().
 */
void engine_recover(struct engine *engine, struct view_context *context);

/*
 * Words that streams wait for can be written by anybody: looks again at the contexts that wait for one, to be called every millisecond or
 * two while it returns true.
 */
bool engine_poll(struct engine *engine);
bool engine_polls(const struct engine *engine);

/* Unconditional ring (R8) of every context that has a rank in @comm. */
void engine_ring_hard(struct engine *engine, struct view_comm *comm);

/* ---- large copies, in slices ---- */

struct engine_slice {
	struct transfer *transfer;
	void *destination;
	const void *source;	/* NULL: fill with value */
	size_t bytes;
	int value;
	bool non_temporal;
	uint32_t chunk;		/* of a shared copy */
	const void *lost;	/* the copier's: NULL, or the address at which memory was lost */
};

/* What a call waits for, and since when: kept between its runs. Zero at first. */
struct engine_wait {
	const void *what;
	uint64_t since_ns;
};
/* The engine_*() that follow belong to the call that has @wait; NULL: to none. */
void engine_set_wait(struct engine *engine, struct engine_wait *wait);

/* At least 1. */
uint32_t share_weight(const struct view_share *share);
/* The next slice by weighted deficit round robin; false: none. It must come back by engine_slice_done(). */
bool engine_slice_next(struct engine *engine, struct engine_slice *ret_slice);
/* The same, of at most @most bytes, which is HCCLD_SLICE or less. */
bool engine_slice_next_of(struct engine *engine, uint64_t most, struct engine_slice *ret_slice);
/* The slice is copied, or memory was lost. Commits the receive when it was the last one. */
void engine_slice_done(struct engine *engine, const struct engine_slice *slice);
/* Bytes of transfers that no slice has been taken of yet. */
uint64_t engine_backlog(const struct engine *engine);

/* ---- notifies (proto/notify.h), by an entry of @context's session ---- */

/*
 * Its value becomes 0, which counts as a change. -ENOENT: the memory is gone; -EINVAL: there is no notify at @offset. Asked for again after
 * a restart it is done again: it takes away what was recorded in between.
 */
int engine_notify_reset(struct engine *engine, struct view_context *context, uint64_t segment, uint64_t offset);
/* Any thread that may use the view; without the guard. As above. */
int engine_notify_value(struct view_session *session, uint64_t segment, uint64_t offset, uint32_t *ret_value);
/* Does a wait with these end at @value? @compare: enum notify_compare. */
bool engine_notify_compares(uint8_t compare, uint32_t value, uint32_t operand, uint32_t mask);
/* All that wait for a notify look at it again. */
void engine_notify_ring(struct engine *engine);

/* ---- taking views back; the owner frees after they have run. False: slices are still out, call again after engine_slice_done(). ---- */

/* The stream goes; pairs of issued items that are not finished fail with CAUSE_ABORTED. */
bool engine_stream_detach(struct engine *engine, struct view_context *context, struct stream_ring *ring);
/*
 * Takes all that is queued, or the head, out of the ring, with an error of @cause; pairs of issued items that are not finished fail with CAUSE_ABORTED.
 * The stream stays.
 */
bool engine_stream_drop(struct engine *engine, struct view_context *context, struct stream_ring *ring, bool only_head,
			uint32_t cause);
/*
 * No copy touches the segment's memory any more, also not by the entries of those who have imported it. `retired` of all of them is set
 * before.
 */
bool engine_segment_detach(struct engine *engine, struct view_session *session, uint64_t id);
/* No copy touches [@base, @base + @bytes) any more; entries in it that must not be used again are retired before. */
bool engine_memory_detach(struct engine *engine, const void *base, uint64_t bytes);
/* No copy goes by an entry that is retired, of whatever session. */
bool engine_retired_detach(struct engine *engine);
/*
 * The rank left or died: its member word says so before. Transfers from and to it end, its entry in comm->contexts is cleared, everyone
 * in the communicator is rung hard.
 */
bool engine_rank_detach(struct engine *engine, struct view_rank *rank);
/*
 * The rank is suspended: its member's epoch says so before. What it has in flight, and what others have with it, ends with CAUSE_SUSPENDED;
 * pairs and barriers are empty then, and go on from there when it is resumed.
 */
bool engine_rank_suspend(struct engine *engine, struct view_rank *rank);
/* The rank runs again, as its epoch says: forgets its asynchronous error, and rings everyone who may have waited for it. */
void engine_rank_resume(struct engine *engine, struct view_rank *rank);
/* Is a task of the context not done? Any thread. */
bool engine_context_has_undone(struct view_context *context);
/* Has the engine done what it can of the context, as long as nobody does more? What others are to do, and clients themselves, does not count. */
bool engine_context_has_settled(struct view_context *context);
/* After its streams and ranks. */
bool engine_context_detach(struct engine *engine, struct view_context *context);
