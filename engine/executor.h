/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the executor; not for its users (engine.h). */
#pragma once

#include "engine/engine.h"
#include "engine/point.h"
#include "proto/status.h"

/* One load, whatever the compiler thinks: for what a client can change while we look, and is judged before it is used. */
#define read_once(field) (*(const volatile __typeof__(field) *)&(field))

/* A large copy in progress. Lives in the engine's pool. */
struct transfer {
	struct transfer *next;			/* in its flow */
	struct transfer *all_next, *all_previous;	/* all active ones */
	struct view_flow *flow;
	struct view_share *share;
	struct view_context *context;		/* whose task it is: the destination's */
	struct stream_ring *ring;
	struct item *item;			/* the receive or copy */
	struct view_comm *comm;			/* NULL: a copy or fill */
	struct view_pair *pair;
	uint32_t source, destination;
	uint64_t number;
	struct view_session *source_session;
	struct view_segment *source_segment, *destination_segment;
	unsigned char *to;
	const unsigned char *from;		/* NULL: fill */
	int value;
	uint64_t bytes, taken, copied;
	uint32_t out;				/* slices that have not come back */
	bool queued, cancelled;
	bool is_far;				/* its bytes come from another node */
	uint32_t attempt;			/* of these */
	const void *lost;
	struct chunks *chunks;			/* clients may help; NULL: they may not */
};

struct engine {
	struct engine_host host;
	struct transfer *pool, *free;		/* in `free` are those that have been used: the others' pages are never touched */
	struct transfer *all;			/* active transfers */
	struct view_share own;			/* of contexts without share */
	struct view_share *current;		/* round robin position */
	uint32_t transfers, transfers_used, transfers_new;	/* in the pool; of them taken; the lowest that was never taken */
	int64_t steps;				/* left of the visit */
	uint64_t backlog, cache;		/* bytes that wait to be copied; of the last cache */
	struct view_context *dirty;		/* contexts to ring at the end of this pass */
	struct view_context *pollers;	/* contexts that have polled */
	struct view_context *awaiting;	/* contexts that have awaited a notify */
	struct view_context *held;		/* contexts that wait for `pending` to go down, or for room */
	struct far_pair *pushing;		/* far.c: what other nodes pull from here */
	uint64_t far_sent;			/* frames to other nodes */
	struct view_context *running;		/* the one that is being advanced: not rung, but looked at `again` */
	bool again;
	bool shared;				/* clients may have driven contexts, ever */
	bool direct;				/* they may now */
	uint32_t tick;				/* what is PATIENT in two of them is ours */
	bool met_patient;
	struct engine_wait *wait, own_wait;	/* of the call that runs; that of all which have none */
	/* chunk.c */
	struct chunks *chunks_free, *chunks_used;
	uint64_t shared_min, chunk_min;		/* bytes of a copy that is shared, and of a chunk; 0: none is */
	bool is_narrow;				/* who helps needs the cores */
	bool abandons;				/* nobody who helps is waited for */
};

/* One task at the head of a stream, as one visit sees it. */
struct batch {
	struct engine *engine;
	struct view_context *context;
	struct stream_ring *ring;
	uint64_t position;		/* of the task's header slot */
	struct task task;		/* copy: judged once, never read again */
	struct item *items;		/* item i is items[(first + i) & mask]: in the ring or in a side buffer */
	uint64_t first, mask;
	struct view_rank *rank;		/* NULL for copies */
	uint64_t steps;			/* items looked at in this visit: bounded, whatever the links say */
	uint64_t steps_charged;		/* of them to the visit */
};

/* May threads of its client take it? Once true it stays so: one that was stopped just before may go on whenever it likes. */
static inline bool context_is_shared(const struct engine *engine, const struct view_context *context)
{
	return engine->shared && !context->session->never_drives;
}

static inline struct view_share *share_of(struct engine *engine, const struct view_context *context)
{
	return context->share ? context->share : &engine->own;
}

static inline void bit_set(struct view_context *context)
{
	atomic_fetch_or_explicit(context->bit_word, context->bit, memory_order_acq_rel);
}

static inline void bit_clear(struct view_context *context)
{
	atomic_fetch_and_explicit(context->bit_word, ~context->bit, memory_order_acq_rel);
}

static inline struct item *batch_item(struct batch *batch, uint32_t index)
{
	return &batch->items[(batch->first + index) & batch->mask];
}

/* task.c */
/* Reads the head task of @ring. 0, -EAGAIN: empty; -EPROTO: nonsense. */
int batch_open(struct engine *engine, struct view_context *context, struct stream_ring *ring, struct batch *ret_batch);
/* Runs what can be run at the head of the stream; true if anything was completed or published. */
bool stream_advance(struct engine *engine, struct view_context *context, struct stream_ring *ring);
void stream_fault(struct stream_ring *ring, const struct fault *fault);
/* Tasks at @position are passed over: they were taken out, or come after an error that stops the stream. */
bool stream_passes_over(const struct stream_ring *ring, uint64_t position);
void member_fault(struct comm_member *member, const struct fault *fault);
/* engine.c: pairs of the head task's issued and unfinished items fail: their numbers will never be completed by anybody. */
void stream_abort(struct engine *engine, struct view_context *context, struct stream_ring *ring);

/* meeting.c. 1: the head is finished, 0: not yet, -EPROTO: nonsense. */
int meeting_run(struct batch *batch);
/* The ITEM_PLACE of a task. */
struct place {
	struct item *item;
	void *address;		/* NULL: its memory is gone */
	uint64_t number;
	uint8_t comparison;
};
/* -EPROTO: the task has none, or none of @bytes at a multiple of 8, of 64 if it is to be a notify. */
int place_find(struct batch *batch, uint64_t bytes, struct place *ret_place);
struct task *task_slot(struct batch *batch);
/* The end of accesses to memory of @session's segments. */
void session_guard_end(struct engine *engine, struct view_session *session);
void meeting_time_out(struct batch *batch, uint64_t limit_ms);
void context_poll(struct engine *engine, struct view_context *context);
/* Contexts of the session that wait for an event or a word are looked at again. */
void session_ring_watchers(struct engine *engine, struct view_session *session);
void session_ring_pollers(struct engine *engine, struct view_session *session);	/* for a word only */
void context_unwatch(struct engine *engine, struct view_context *context);
/* Tasks up to @tail leave the ring: what they were to record counts as recorded. */
void stream_record_dropped(struct engine *engine, struct view_context *context, struct stream_ring *ring, uint64_t tail);

/* notify.c, reduce.c: as meeting_run() */
int notify_run(struct batch *batch);
int reduce_run(struct batch *batch);
struct fault notify_fault(struct batch *batch, enum cause cause, uint64_t waited_ms);
/* The head's change that was announced and not made, before any other head can run. */
void notify_recover(struct batch *batch);
/* The slice of the head's whose result is made and not written. The same. */
void reduce_recover(struct batch *batch);
/* Whoever waits for a notify looks again: memory goes. */
void notify_ring_all(struct engine *engine);
void context_forget_notifies(struct engine *engine, struct view_context *context);

/* send.c, receive.c: one lane of a batch. 1: the lane is finished, 0: not yet, -EPROTO: nonsense. */
int lane_send(struct batch *batch, uint32_t head_index);
int lane_receive(struct batch *batch, uint32_t head_index);

/* suspend.c: the member because of which barrier @number of @rank ends; LANE_END: none. */
uint32_t barrier_suspended(const struct view_comm *comm, uint32_t rank, uint32_t task_epoch, uint64_t number);

/* pair.c */
void pair_fail(struct engine *engine, struct view_comm *comm, uint32_t source, uint32_t destination, const struct fault *fault);
/*
 * P4: commits the receives up to @number, whose copies are done, if their source is still good. @source_segment: where they were
 * pulled from, NULL if they were inline. 0 or the cause why not.
 */
enum cause pair_commit(struct engine *engine, struct view_comm *comm, struct pair_ring *ring, uint32_t source, uint32_t destination,
		       uint64_t number, struct view_segment *source_segment);
/* Fills what both ends know: ranks, pid and exit of the peer. @direction 0: a barrier. */
struct fault pair_fault(struct view_comm *comm, enum cause cause, uint32_t rank, uint32_t peer, uint8_t direction);
/*
 * task.c: why the memory that a task names is not there. Of an import that is lost its owner's cause, with rank and process if it came with a
 * channel; else @fault is left as it is.
 */
void fault_explain_lost(struct fault *fault, struct view_session *session, uint64_t segment);

/* pending.c: bytes of the offers @first to @last, which are in the ring. */
uint64_t pending_bytes(const struct view_pair *pair, struct pair_ring *ring, uint64_t first, uint64_t last);
/* @context is looked at again when something has been received, or room has been made, at the latest by the next heartbeat. */
void pending_hold(struct engine *engine, struct view_context *context);
/* May @bytes more be offered? If not, @context is looked at again when they may. */
bool pending_allows(struct engine *engine, struct view_comm *comm, struct view_context *context, uint64_t bytes);
void pending_add(struct engine *engine, struct view_comm *comm, struct view_pair *pair, uint64_t bytes);
/* @bytes of the pair's offers, or what is left of them, are received or will never be. */
void pending_drop(struct engine *engine, struct view_comm *comm, struct view_pair *pair, uint64_t bytes);
/* The pair's, from its ring: after a restart, or when clients have driven it. None while they do. */
void pending_recount(struct engine *engine, struct view_comm *comm, struct view_pair *pair);
void pending_forget(struct engine *engine, struct view_context *context);

/*
 * engine.c: memory was lost at @address; the session whose segment it is must end: our view of that page is no longer its memory. @b may
 * be NULL.
 */
void engine_blame(struct engine *engine, struct view_session *a, struct view_session *b, const void *address);

/* transfer.c */
/* All of a far one is here. */
void transfer_arrived(struct engine *engine, struct transfer *transfer);
/* NULL: the pool is empty, come back. */
struct transfer *transfer_new(struct engine *engine, struct batch *batch, struct item *item, uint64_t bytes);
void transfer_queue(struct engine *engine, struct transfer *transfer);
/* Ends it as soon as no slice is out, and no chunk at a client's; true if it is gone. */
bool transfer_cancel(struct engine *engine, struct transfer *transfer);
/* C6, of a pair that has failed from @failed on: true if nobody writes any more what those receives get. */
bool transfer_cancel_failed(struct engine *engine, const struct view_pair *pair, uint64_t failed);
/* All of a stream, of a rank: true if none is under way any more. */
bool transfers_cancel_stream(struct engine *engine, const struct view_context *context, const struct stream_ring *ring);
bool transfers_cancel_rank(struct engine *engine, const struct view_rank *rank);

/* Has nothing of it come for long, because a process that helps is stopped? */
bool transfer_is_held_up(const struct transfer *transfer);
/* What a process that helped an earlier executor may still be writing: nothing of that receive goes on before it has ended. */
struct transfer *transfer_remain(struct engine *engine, struct view_context *context);
/* @taken bytes of it are somebody's, or done. What is left is to be had as slices, or, if not @is_offered, for helpers only. */
void transfer_offer(struct engine *engine, struct transfer *transfer, uint64_t taken, bool is_offered);

/* chunk.c: copies that clients may help with (C1 to C8) */
/* C1, if clients can help with it. @offer: where the source is. */
void chunks_open(struct engine *engine, struct transfer *transfer, const struct pair_offer *offer);
/* C2: a part of the transfer, of at most @most bytes, as @ret_slice->chunk says. False: there is none for us. */
bool chunks_next(struct transfer *transfer, uint64_t most, uint64_t *ret_at, uint64_t *ret_bytes, uint32_t *ret_chunk);
/* C3: @bytes of ours are copied. */
void chunks_done(struct chunks *chunks, uint32_t chunk, uint64_t bytes);
/* C6: from here on nobody claims any. */
void chunks_close(struct chunks *chunks);
/* C5, C6: every chunk is done, or, after chunks_close(), nobody writes any more. */
bool chunks_are_over(struct engine *engine, struct transfer *transfer);
/* Of a list of those in use, of which this one may go. */
struct transfer *chunks_next_used(const struct chunks *chunks, struct chunks **ret_next);
void chunks_release(struct engine *engine, struct chunks *chunks);
void chunks_free_all(struct engine *engine);
bool chunks_are_held_up(const struct chunks *chunks, uint64_t now_ns);
/* Of a yard, once, before anything in it runs: what earlier executors have left. */
void chunks_recover(struct engine *engine, struct view_yard *yard);

/* context.c */
/*
 * Takes @context for a call, whatever is undone: nobody else advances it until context_give(). False: a client has it. What a client has
 * changed since is forgotten.
 */
bool context_take(struct engine *engine, struct view_context *context, uint64_t *ret_state);
/* LEFT with its bit set, or HELD while copies of it are under way. */
void context_give(struct engine *engine, struct view_context *context, uint64_t state);
/*
 * A call that needs what a client has: may it be called again? For a second, about one thing (@what) at a time: a thread that runs leaves in
 * microseconds. engine_waited(): it needs to wait no more.
 */
bool engine_may_wait(struct engine *engine, const void *what);
void engine_waited(struct engine *engine);
/* Remembers to ring @context at the end of the pass. */
void context_dirty(struct engine *engine, struct view_context *context);
/* R1, R2: one fence, then rings what is remembered. */
void engine_ring_dirty(struct engine *engine);
void context_wake(struct view_context *context);
bool context_has_undone(struct view_context *context);

/* fair.c: pure */
void fair_add(struct view_flow **current, struct view_flow *flow);
void fair_remove(struct view_flow **current, struct view_flow *flow);
/* The flow whose turn it is, charged with @slice bytes; NULL if there is none. Each gets HCCLD_SLICE / 8 * weight a round. */
struct view_flow *fair_next(struct view_flow **current, uint64_t slice);
/* The same among tenants. */
void fair_share_add(struct view_share **current, struct view_share *share);
void fair_share_remove(struct view_share **current, struct view_share *share);
struct view_share *fair_share_next(struct view_share **current, uint64_t slice);
