/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking, advancing and leaving contexts: the rules R1 to R4 and R8 to R10 of tests/model/README.md, in the form in which the daemon's
 * engine is the only executor: clients never own a context, so what is undone is left PARKED even while threads sleep on `news`.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/executor.h"

static bool yard_take(struct view_context *context, uint64_t *state)
{
	return atomic_compare_exchange_strong_explicit(&context->words->state, state, yard_next(*state, CONTEXT_ENGINE),
						       memory_order_acq_rel, memory_order_acquire);
}

void context_wake(struct view_context *context)
{
	atomic_fetch_add_explicit(&context->words->news, 1, memory_order_acq_rel);
	syscall(SYS_futex, &context->words->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void context_dirty(struct engine *engine, struct view_context *context)
{
	if (!context)
		return;
	context->cut_news = true;
	if (context->dirty)
		return;
	if (context == engine->running) {
		engine->again = true;
		return;
	}
	context->dirty = true;
	context->dirty_next = engine->dirty;
	engine->dirty = context;
}

/* R2, @hard: R8. */
static void context_ring(struct view_context *context, bool hard)
{
	uint64_t state;

	if (!hard && !atomic_load_explicit(&context->words->asleep, memory_order_relaxed)) {
		context->unrung = true;
		return;
	}
	state = atomic_load_explicit(&context->words->state, memory_order_acquire);
	while (yard_kind(state) == CONTEXT_PARKED || yard_kind(state) == CONTEXT_SLEEP) {
		if (atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT),
							    memory_order_acq_rel, memory_order_acquire))
			break;
	}
	context->cut_news = true;
	bit_set(context);	/* the engine is awake: it is the one who rings */
}

void engine_ring_dirty(struct engine *engine)
{
	if (!engine->dirty)
		return;
	/* R1: what was published is visible before anybody's `asleep` is read */
	atomic_thread_fence(memory_order_seq_cst);
	while (engine->dirty) {
		struct view_context *context = engine->dirty;

		engine->dirty = context->dirty_next;
		context->dirty = false;
		context_ring(context, false);
	}
}

void engine_ring_hard(struct engine *engine, struct view_comm *comm)
{
	struct view_context *last = NULL;

	for (uint32_t i = 0; i < comm->size; i++) {
		struct view_context *context = atomic_load_explicit(&comm->contexts[i], memory_order_acquire);

		/* thousands of ranks of one process share a few */
		if (!context || context == last)
			continue;
		last = context;
		context_ring(context, true);
		context_wake(context);
	}
}

bool context_has_undone(struct view_context *context)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);

	for (uint32_t i = 0; i < limit; i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (ring && atomic_load_explicit(&ring->completed, memory_order_relaxed) !=
				    atomic_load_explicit(&ring->tail, memory_order_acquire))
			return true;
	}
	return false;
}

#define ROUNDS_PER_VISIT 8
#define WAKE_STEPS 16		/* what a system call costs */
#define LOOK_STEPS (1 << 20)	/* without a limit, but not for ever */

/*
 * Looks at each stream with work once, from the one on where the last visit ended. *@undone: streams that had work. True if a task was
 * completed. What the visit's steps do not suffice for is left for the next one (starved).
 */
static bool context_round(struct engine *engine, struct view_context *context, uint32_t limit, uint32_t *undone)
{
	uint32_t first = context->next_stream < limit ? context->next_stream : 0;
	bool completed = false;

	*undone = 0;
	context->next_stream = 0;
	/* they are all looked at several times in a visit */
	engine->steps -= limit;
	for (uint32_t n = 0; n < limit && !context->broken; n++) {
		uint32_t i = first + n < limit ? first + n : first + n - limit;
		struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (!ring || atomic_load_explicit(&ring->completed, memory_order_relaxed) ==
				     atomic_load_explicit(&ring->tail, memory_order_acquire))
			continue;
		if (*undone && engine->steps <= 0) {
			context->next_stream = i;
			context->starved = true;
			break;
		}
		++*undone;
		completed |= stream_advance(engine, context, ring);
		if (context->cut_ring == ring) {
			/* goes on right there: only one batch of a context is cut at a time */
			context->next_stream = i;
			break;
		}
	}
	return completed;
}

/*
 * True if a task was completed. Streams of one context may wait for each other: receives of a pair commit in number order whatever
 * their stream, and several ranks may share a context. So streams are looked at again while pairs of this very context change.
 */
static bool context_advance(struct engine *engine, struct view_context *context)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);
	bool completed = false;

	context->unrung = false;
	atomic_store_explicit(&context->words->asleep, 0, memory_order_relaxed);
	context->starved = context->watches = context->polls = context->awaits = false;
	engine->running = context;
	for (int round = 0;; round++) {
		uint32_t undone;

		engine->again = false;
		completed |= context_round(engine, context, limit, &undone);
		if (context->starved || !engine->again || undone < 2)
			break;
		if (round == ROUNDS_PER_VISIT || engine->steps <= 0) {
			context->starved = true;
			break;
		}
	}
	engine->running = NULL;
	return completed;
}

/* R1 for the own side: who sleeps on this context hears of completed tasks. */
static void context_announce(struct engine *engine, struct view_context *context)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&context->words->sleepers, memory_order_relaxed)) {
		context->unannounced = true;
		return;
	}
	/* who says that he sleeps and does not pays for it himself */
	engine->steps -= WAKE_STEPS;
	context->unannounced = false;
	context_wake(context);
}

void engine_wake_forgotten(struct view_context *context)
{
	if (!context->unannounced)
		return;
	context->unannounced = false;
	context_wake(context);
}

/* The client's inputs: they only grow, so that their sum changes when one of them does. */
static uint64_t context_inputs(struct view_context *context)
{
	uint32_t limit = atomic_load_explicit(&context->stream_limit, memory_order_acquire);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < limit; i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (ring)
			sum += atomic_load_explicit(&ring->tail, memory_order_acquire) +
			       atomic_load_explicit(&ring->host_done, memory_order_acquire);
	}
	return sum;
}

/*
 * What may have come between the last look and the store of the state: new tasks, host functions that have returned, by a client that saw
 * ENGINE and went away. Words of pairs and events are written by this thread alone; its rings come after this leave and find PARKED.
 */
static bool context_has_news(struct view_context *context, enum context_state left_as, uint64_t seen)
{
	return left_as == CONTEXT_IDLE ? context_has_undone(context) : context_inputs(context) != seen;
}

/* There is more to do, and no more steps for it: as a submitter would (R5). */
static void context_leave_more(struct view_context *context, uint64_t state)
{
	if (atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT), memory_order_acq_rel,
						    memory_order_acquire))
		bit_set(context);
}

/* R3, R4: @state is ours (ENGINE) on entry. */
static void context_run(struct engine *engine, struct view_context *context, uint64_t state)
{
	for (;;) {
		/* taken before the advance: what comes later makes the sums differ */
		uint64_t inputs = context_inputs(context);
		enum context_state kind;

		if (context_advance(engine, context))
			context_announce(engine, context);
		engine_ring_dirty(engine);
		/* the bit first: whoever sets it from here on is seen by the next round of the engine */
		bit_clear(context);
		if (context->broken)
			kind = CONTEXT_IDLE;
		else if (context->starved)
			kind = CONTEXT_LEFT;
		else
			kind = context_has_undone(context) ? CONTEXT_PARKED : CONTEXT_IDLE;
		if (kind == CONTEXT_PARKED) {
			context->unrung = false;
			atomic_store_explicit(&context->words->asleep, 1, memory_order_relaxed);
		}
		state = yard_next(state, kind);
		/* release: `asleep` and all we published are before it */
		atomic_store_explicit(&context->words->state, state, memory_order_release);
		if (kind == CONTEXT_LEFT) {
			bit_set(context);
			return;
		}
		/* with the fence of the submitter: it sees our state, or we see its tail */
		atomic_thread_fence(memory_order_seq_cst);
		if (context->broken || !context_has_news(context, kind, inputs))
			return;
		if (engine->steps <= 0) {
			context_leave_more(context, state);
			return;
		}
		if (!yard_take(context, &state))
			return;	/* somebody made it LEFT and set the bit */
		state = yard_next(state, CONTEXT_ENGINE);
	}
}

static bool context_look(struct engine *engine, struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire);

	if (context->broken || yard_kind(state) != CONTEXT_LEFT) {
		/* R10 */
		bit_clear(context);
		atomic_thread_fence(memory_order_seq_cst);
		state = atomic_load_explicit(&context->words->state, memory_order_acquire);
		if (!context->broken && yard_kind(state) == CONTEXT_LEFT)
			bit_set(context);
		return false;
	}
	if (!yard_take(context, &state))
		return false;
	/* with the fence of a submitter that saw LEFT: we see its tail */
	atomic_thread_fence(memory_order_seq_cst);
	context_run(engine, context, yard_next(state, CONTEXT_ENGINE));
	return true;
}

bool engine_look_for(struct engine *engine, struct view_context *context, int64_t steps, int64_t *ret_steps)
{
	bool worked;

	engine->steps = steps - 1;
	worked = context_look(engine, context);
	*ret_steps = steps - engine->steps;
	return worked;
}

bool engine_look(struct engine *engine, struct view_context *context)
{
	int64_t steps;

	return engine_look_for(engine, context, LOOK_STEPS, &steps);
}

void engine_mend(struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire);
	/* a liar may have said it only while a peer rang */
	bool silent = yard_kind(state) == CONTEXT_PARKED &&
		      (context->unrung || !atomic_load_explicit(&context->words->asleep, memory_order_relaxed));

	if (context->broken || (yard_kind(state) == CONTEXT_PARKED && !silent) || !context_has_undone(context))
		return;
	/* who finds LEFT relies on the bit: a liar may have written the one without the other */
	if (yard_kind(state) == CONTEXT_LEFT) {
		bit_set(context);
		return;
	}
	/* a submitter between its tail and its look at the state is no liar, and is helped by this, too */
	if (atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT), memory_order_acq_rel,
						    memory_order_acquire))
		bit_set(context);
}
