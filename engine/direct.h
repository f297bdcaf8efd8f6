/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor in a client: a thread that submits or waits takes its own context (R3), advances it, and leaves it (R4). It does what goes
 * well and nothing else: heads that are batches, between living ranks, of memory that is mapped. Whatever else a head needs it declines:
 * the context is HELD, the engine's alone, until that has finished a task of it. So every failure, every record of one, and every task of another kind has
 * one author, the daemon's engine (engine/task.c), and what is here can be read as the proof that nothing goes wrong silently.
 *
 * tests/model/README.md, "The rules when clients drive, too", is the contract; R1 to R7 in the comments are its rules.
 *
 * Why it may: items and stream rings are this process's own, so a batch needs no judgement. Pair rings and offers are what another process
 * can write: words are read once, offers judged, and every address lies in a mapping of ours, of a size that the daemon said. A context
 * that somebody has written nonsense about harms its own process and its partners.
 *
 * What other executors need is in shared memory whenever the context is left: numbers and cursors of items, words of pairs. The order of
 * stores to a pair is that of proto/pair.h; between two stores nobody takes over, because the death of a client ends its tasks.
 *
 * Threads. Fields of struct direct_context from `state` to `wish` belong to who has the context in state CLIENT, or to who has called
 * direct_intrude(): that keeps all threads of the process from driving it.
 */
#pragma once

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/eager.h"
#include "proto/region.h"
#include "proto/ring.h"
#include "proto/yard.h"

#ifndef DIRECT_COPY_MAX			/* tests take less */
#define DIRECT_COPY_MAX (4u << 20)	/* bytes of one message; larger ones are the engine's, which has copy workers */
#endif
#define DIRECT_BUDGET_ALL UINT64_MAX
#define DIRECT_EXTENTS_MAX 128u		/* of one communicator; those of pairs grow, so a few are enough for all pairs that there can be */

/* Memory as this process has it mapped. */
struct direct_segment {
	_Atomic uint64_t id;		/* (last) within the session that owns it; 0: none */
	unsigned char *base;		/* NULL, of a peer: it may not be mapped */
	uint64_t size;
	bool is_writable;		/* of a peer */
	bool is_refused;		/* it may not be mapped to be written */
};

/* A context in the yard, to be rung. */
struct direct_bell {
	struct yard_context *words;
	_Atomic uint64_t *bit_word;
	uint64_t bit;
};

/* Another rank of a communicator, as one rank of this process sees it. */
struct direct_peer {
	struct pair_ring *out, *in;	/* mapped; NULL: not yet */
	struct pair_rest *rest_out, *rest_in;
	struct pair_wide *wide_out, *wide_in; /* the same, if they have one */
	uint32_t wide_index;		/* of wide_out: number of the place where it begins */
	uint64_t received;		/* of `out`, when it was looked at last: its line is the peer's, and costs a transfer */
	struct direct_bell bell;	/* of its context */
	struct direct_peer *rung_next;	/* in the list of those that this pass has news for */
	bool rung;
	/* memory of its that is mapped: good as long as the member's `retired` is `generation` */
	uint32_t generation, mapped_count, mapped_room;
	struct direct_segment *mapped;
};

/* Some places of a communicator: pair rings, a pool or a wide ring. */
struct direct_extent {
	uint64_t place, bytes;		/* from the first place on */
	unsigned char *base;
	uint64_t size;			/* of the mapping */
};

/* One rank of this process in one communicator. */
struct direct_rank {
	uint64_t handle;		/* task.rank */
	const struct comm_region *region;
	uint32_t rank, size;
	struct direct_peer *peers;	/* [size] */
	struct direct_extent extents[DIRECT_EXTENTS_MAX];
	uint32_t extent_count;
	uint32_t pool_count, pool_first; /* eager pools; the one that had room last */
	struct eager_place pools[HCCLD_EAGER_POOLS];
	uint64_t full_until_ns;		/* room for what is eager was refused, and is not asked for again until then: such sends wait for their receivers */
	bool is_unmapped;		/* there is, but it could not be mapped here: the engine does these */
};

/* Of the whole process; by VIEW_INDEX of an id. */
struct direct_process {
	_Atomic uint32_t rank_limit;	/* ranks below this may be set; only grows. Before the table: nearly all of it is never touched */
	/* one table of two things, as of each the first few are used */
	struct {
		struct direct_segment segment;
		_Atomic(struct direct_rank *) rank;	/* of the first HCCLD_RANKS_PER_SESSION */
	} places[HCCLD_SEGMENTS_PER_SESSION];
};
static_assert(HCCLD_RANKS_PER_SESSION <= HCCLD_SEGMENTS_PER_SESSION, "enough places");

enum direct_need {
	NEED_NOTHING,
	NEED_SEGMENT,	/* of the peer's memory, mapped */
	NEED_WRITABLE,	/* the same, to be written: a copy can do without this process */
	NEED_EXTENTS,	/* that the communicator has got since: mapped */
	NEED_POOL,	/* another eager pool */
	NEED_WIDE,	/* a wide ring to the peer */
};

/* What a pass would have needed. */
struct direct_wish {
	enum direct_need need;
	uint32_t peer;
	uint64_t handle;		/* of the rank */
	uint64_t segment;
};

enum direct_left {
	DIRECT_DONE,	/* nothing is undone */
	DIRECT_WAITS,	/* for peers */
	DIRECT_MORE,	/* the budget is used up */
	DIRECT_DECLINED,
};

struct direct_context {
	struct direct_bell bell;
	const struct beacon *beacon;
	int event_fd;
	struct direct_process *process;
	struct copy_table *copies;	/* of the yard; NULL: it has none */
	uint32_t index;			/* in the yard */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t intruders;
	_Atomic uint32_t scanners;	/* threads that look at tables though they have left the context */
	/* see above */
	uint64_t state;			/* of the context while it is CLIENT */
	struct direct_peer *rung;
	bool completed;			/* tasks since R1 was done for the own side */
	bool again;			/* a pair of which both ends are in this context has changed */
	bool is_thorough;		/* this pass looks at the words of members, too */
	bool copies_sends;		/* who drives says: what fits is sent as a copy, also to who has asked for it */
	bool met_large;			/* this pass has declined a copy that it may soon help with */
	uint64_t budget;		/* bytes that this pass may still copy */
	struct direct_wish wish;
	/* streams; entries below `ring_limit` may be set, and are looked at without ownership, too. Last: few are used */
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t ring_limit;
	_Atomic(struct stream_ring *) rings[HCCLD_STREAMS_PER_SESSION];
};

/* ---- for who submits or waits ---- */

/* Is the context the clients', as far as one can see without taking it? */
bool direct_may_take(const struct direct_context *context);
/* R3. False: it is owned, or the engine's. Between it and direct_leave() nothing may cancel the thread. */
bool direct_take(struct direct_context *context);
/*
 * Advances all streams once, as far as it goes and @budget bytes suffice. @is_thorough: also finds out that a peer is gone for good. While it
 * returns DIRECT_WAITS it may be called again, after direct_publish().
 */
enum direct_left direct_pass(struct direct_context *context, uint64_t budget, bool is_thorough);
/* R1, R2: tells those for whom the passes have stored something. */
void direct_publish(struct direct_context *context);
/* The same, and R4, @left: what the last pass has returned. Peers, and the engine, do the rest. */
void direct_leave(struct direct_context *context, enum direct_left left);
/*
 * Leaves it for as long as a request takes that this thread needs before it goes on, so that nobody goes on with less. direct_come_back() behind
 * it: true: it is taken again; false: somebody else has it, or tables are being changed.
 */
void direct_go_away(struct direct_context *context);
bool direct_come_back(struct direct_context *context);
/*
 * R6, driver: leaves the context so that news for it wake the threads of this process, and sleeps, at most @ns; unless @is_over(@arg), or
 * there is something to do. True: it is not taken any more; false: it still is, and *@ret_left is what the last pass has returned.
 */
bool direct_sleep(struct direct_context *context, bool (*is_over)(const void *arg), const void *arg, uint64_t ns, enum direct_left *ret_left);
/*
 * For who waits, whether he has the context or not: copies a chunk of a large copy that the engine has opened, from or to a rank of this context.
 * False: there is nothing to do, or something is missing: then @wish says what, which is left as it is otherwise.
 */
bool direct_help(struct direct_context *context, struct direct_wish *wish);
/* R7, after it: what somebody has left for a thread that sleeps no longer. */
void direct_wake_up(struct direct_context *context);

/* ---- for who changes tables ---- */

/* Until direct_retreat() no thread of this process drives the context, from the return on. Waits for a pass that is under way. Nests. */
void direct_intrude(struct direct_context *context);
void direct_retreat(struct direct_context *context);
/* With the context intruded. The stream is driven from the retreat on; -ENOSPC. */
int direct_add_ring(struct direct_context *context, struct stream_ring *ring);
void direct_remove_ring(struct direct_context *context, struct stream_ring *ring);

/* ---- direct_lane.c ---- */

/* The head of @ring, a batch of @rank (NULL: of copies only): DIRECT_DONE: all its items are finished. */
enum direct_left direct_batch(struct direct_context *context, struct stream_ring *ring, const struct task *task, struct direct_rank *rank);
/* What the heads wait for, as a sum: another one after something has come. The context is taken, or the thread is among `scanners`. */
uint64_t direct_inputs(const struct direct_context *context);
/* Memory of a peer as it is mapped. NULL: it is not. The context is taken, or the thread is among `scanners`. */
const struct direct_segment *direct_peer_segment(const struct direct_rank *rank, uint32_t peer, uint64_t id);
/* The bit of the context at @place of the yard is set, and the engine looks. */
void direct_tell_engine(const struct direct_context *context, uint32_t place);
/* @peer is to be rung at the end of the pass. */
void direct_touch(struct direct_context *context, struct direct_peer *peer);
