/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking, advancing and leaving contexts: the rules R1 to R4, R8 and R10 of tests/model/README.md. What is undone is left PARKED even while
 * threads sleep on `news`: they drive when they come back, and until then the engine does.
 *
 * HELD is for the engine alone: while copies of the context are under way, when a client has declined what it found, and while the engine looks
 * again (R4). Whoever has news for it sets its bit and leaves the state alone, so a bit counts also in what the engine has left since: it was
 * HELD when its state was read.
 *
 * What the engine keeps about a context in its view (a batch that was cut, say) is stale when a client has driven it since. A client that takes a
 * context changes its state word at least twice: the word that the engine has left, or that word made LEFT by a ring, says that nobody has.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/executor.h"
#include "proto/clock.h"

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

static bool is_rung(enum context_state kind, bool hard)
{
	return kind == CONTEXT_PARKED || kind == CONTEXT_SLEEP || (hard && kind == CONTEXT_PATIENT);
}

/* R2, @hard: R8. Whoever sleeps on `news` may go on sleeping: the engine drives what it makes LEFT. */
static void context_ring(struct view_context *context, bool hard)
{
	uint64_t state;

	if (!hard && !atomic_load_explicit(&context->words->asleep, memory_order_relaxed)) {
		context->unrung = true;
		return;
	}
	CRASH_POINT(38);
	state = atomic_load_explicit(&context->words->state, memory_order_acquire);
	while (is_rung(yard_kind(state), hard)) {
		if (atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT),
							    memory_order_acq_rel, memory_order_acquire))
			break;
	}
	CRASH_POINT(39);
	context->cut_news = true;
	if (KEEPS(ENGINE_RING_BIT))
		bit_set(context);	/* the engine is awake: it is the one who rings */
}

void engine_ring_dirty(struct engine *engine)
{
	if (!engine->dirty)
		return;
	CRASH_POINT(40);
	/* R1: what was published is visible before anybody's `asleep` is read */
	if (KEEPS(ENGINE_RING_FENCE))
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

	/* R8: with that of a client that leaves a context: it sees what its owner has said of itself, or we see that it has left */
	atomic_thread_fence(memory_order_seq_cst);
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
	context->starved = context->watches = context->polls = context->awaits = context->meets = false;
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
	CRASH_POINT(41);
	atomic_thread_fence(memory_order_seq_cst);
	if (!KEEPS(ENGINE_WAKE) || !atomic_load_explicit(&context->words->sleepers, memory_order_relaxed)) {
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

bool engine_context_has_undone(struct view_context *context)
{
	return context_has_undone(context);
}

bool engine_context_has_settled(struct view_context *context)
{
	enum context_state kind = yard_kind(atomic_load_explicit(&context->words->state, memory_order_acquire));

	if (context->broken || !context_has_undone(context))
		return true;
	if (kind == CONTEXT_LEFT || kind == CONTEXT_PATIENT || kind == CONTEXT_ENGINE)
		return false;
	/* `held`: room for its sends has been asked for */
	return !(atomic_load_explicit(context->bit_word, memory_order_relaxed) & context->bit) && !context->starved && !context->held;
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
 * ENGINE and went away. Words of events are written by this thread alone; its rings come after this leave and find PARKED. So are those
 * of pairs, unless clients drive: then context_look_again() has looked.
 */
static bool context_has_news(struct view_context *context, enum context_state left_as, uint64_t seen)
{
	return left_as == CONTEXT_IDLE ? context_has_undone(context) : context_inputs(context) != seen;
}

/* There is more to do, and no more steps for it: as a submitter would (R5). */
static void context_leave_more(struct view_context *context, uint64_t state)
{
	if (yard_kind(state) == CONTEXT_HELD ||
	    atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT), memory_order_acq_rel,
						    memory_order_acquire))
		bit_set(context);
}

/* True if a task was completed. */
static bool context_visit(struct engine *engine, struct view_context *context)
{
	bool completed = context_advance(engine, context);

	if (completed) {
		context->declined = false;
		context_announce(engine, context);
	}
	engine_ring_dirty(engine);
	return completed;
}

/* R4 */
static enum context_state context_kind(struct engine *engine, struct view_context *context)
{
	bool undone = !context->broken && context_has_undone(context);

	/* slices may be out, and their receives are nobody else's */
	if (context->transfers && context_is_shared(engine, context))
		return CONTEXT_HELD;
	/* what one thread of the client declines is not for the next one either */
	if (KEEPS(DECLINED) && context->declined && undone)
		return CONTEXT_HELD;
	if (context->starved && !context->broken)
		return CONTEXT_LEFT;
	if (!undone)
		return CONTEXT_IDLE;
	/* who sleeps is woken by the peer itself, and drives */
	return engine->direct && context_is_shared(engine, context) &&
			       atomic_load_explicit(&context->words->sleepers, memory_order_relaxed)
		       ? CONTEXT_SLEEP
		       : CONTEXT_PARKED;
}

/* Of R4 what is between the clearing of the bit and the fence. @state: the owned word, *@ret_state: what it has become. */
static void context_leave(struct view_context *context, uint64_t state, enum context_state kind, uint64_t *ret_state)
{
	if (kind == CONTEXT_PARKED || kind == CONTEXT_SLEEP || kind == CONTEXT_HELD) {
		context->unrung = false;
		atomic_store_explicit(&context->words->asleep, 1, memory_order_relaxed);
	}
	*ret_state = context->left_state = yard_next(state, kind);
	CRASH_POINT(42);
	/* release: `asleep` and all we published are before it */
	atomic_store_explicit(&context->words->state, *ret_state, memory_order_release);
	CRASH_POINT(43);
}

#define AGAIN_STEPS 8192

/*
 * R4's rescan of pairs, which clients write: one more visit, behind a fence, while the context is HELD, which only we take. What peers
 * publish before their fence is seen here, and what they publish later they tell by the bit.
 */
static void context_look_again(struct engine *engine, struct view_context *context, uint64_t *state)
{
	int64_t steps = engine->steps;
	bool completed;

	context_leave(context, *state, CONTEXT_HELD, state);
	atomic_thread_fence(memory_order_seq_cst);
	engine->steps = AGAIN_STEPS;
	completed = context_visit(engine, context);
	/* too long to be looked at in one go, and the look before was whole: from now on every millisecond or two */
	if (context->starved && engine->steps <= 0 && !completed) {
		context->cut_ring = NULL;
		context->starved = false;
		context_poll(engine, context);
	}
	engine->steps = steps - (AGAIN_STEPS - engine->steps);
}

/* R3, R4: @state is ours (ENGINE) on entry. */
static void context_run(struct engine *engine, struct view_context *context, uint64_t state)
{
	for (;;) {
		/* taken before the advance: what comes later makes the sums differ */
		uint64_t inputs = context_inputs(context);
		enum context_state kind;

		atomic_store_explicit(&context->words->asleep, 0, memory_order_relaxed);
		(void)context_visit(engine, context);
		CRASH_POINT(44);
		/* the bit first: whoever sets it from here on is seen by the next round of the engine */
		if (KEEPS(ENGINE_BIT_EARLY))
			bit_clear(context);
		if (KEEPS(ENGINE_LOOK_AGAIN) && context->meets && engine->shared && !context->starved && !context->broken)
			context_look_again(engine, context, &state);
		kind = context_kind(engine, context);
		context_leave(context, state, kind, &state);
		if (!KEEPS(ENGINE_BIT_EARLY))
			bit_clear(context);
		if (context->starved && kind != CONTEXT_IDLE && !context->broken) {
			bit_set(context);
			return;
		}
		/* with the fence of the submitter: it sees our state, or we see its tail */
		if (KEEPS(ENGINE_FENCE))
			atomic_thread_fence(memory_order_seq_cst);
		if (context->broken || !KEEPS(ENGINE_RESCAN) || !context_has_news(context, kind, inputs))
			return;
		if (engine->steps <= 0) {
			context_leave_more(context, state);
			return;
		}
		if (!yard_take(context, &state))
			return;	/* somebody made it LEFT and set the bit, or a client drives it */
		state = yard_next(state, CONTEXT_ENGINE);
	}
}

/* It is taken from a state in which the engine has not left it. */
static void context_forget(struct view_context *context, uint64_t state)
{
	if (state == context->left_state || state == yard_next(context->left_state, CONTEXT_LEFT))
		return;
	context->cut_ring = context->late_ring = NULL;
	context->declined = yard_kind(state) == CONTEXT_HELD;
}

/* Has the bit of a context in this state something to say? */
static bool is_for_engine(const struct view_context *context, uint64_t state)
{
	switch (yard_kind(state)) {
	case CONTEXT_LEFT:
	case CONTEXT_PATIENT:
	case CONTEXT_HELD:
		return !context->broken;
	case CONTEXT_PARKED:
	case CONTEXT_SLEEP:
		/* it was HELD before */
		return !context->broken && state == context->left_state;
	default:
		return false;
	}
}

#define PATIENT_TICKS 20u

/*
 * The second look at the same word, a tick later, finds that its client has not come back. One that comes back all the time, to submit, but
 * never waits, is not patient for ever either.
 */
static bool is_too_patient(struct engine *engine, struct view_context *context, uint64_t state)
{
	engine->met_patient = true;
	if (context->seen_state == state)
		return context->seen_tick != engine->tick;
	if (context->seen_tick != engine->tick)
		context->seen_ticks = context->seen_tick + 1 == engine->tick ? context->seen_ticks + 1 : 0;
	context->seen_state = state;
	context->seen_tick = engine->tick;
	return context->seen_ticks >= PATIENT_TICKS;
}

static bool context_look(struct engine *engine, struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire), taken = state;

	if (!is_for_engine(context, state)) {
		context->seen_ticks = 0;
		/* R10 */
		bit_clear(context);
		CRASH_POINT(45);
		atomic_thread_fence(memory_order_seq_cst);
		state = atomic_load_explicit(&context->words->state, memory_order_acquire);
		if (KEEPS(BIT_RECHECK) && is_for_engine(context, state))
			bit_set(context);
		return false;
	}
	if (yard_kind(state) == CONTEXT_PATIENT && !is_too_patient(engine, context, state))
		return false;
	if (!yard_take(context, &taken))
		return false;
	/* with the fence of a submitter that saw LEFT: we see its tail */
	atomic_thread_fence(memory_order_seq_cst);
	context->seen_ticks = 0;
	context_forget(context, state);
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

/* ---- for calls ---- */

bool context_take(struct engine *engine, struct view_context *context, uint64_t *ret_state)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire), taken;

	do {
		if (yard_kind(state) == CONTEXT_CLIENT && context_is_shared(engine, context))
			return false;
		taken = state;
	} while (!yard_take(context, &state));
	atomic_thread_fence(memory_order_seq_cst);
	context_forget(context, taken);
	*ret_state = yard_next(taken, CONTEXT_ENGINE);
	return true;
}

void context_give(struct engine *engine, struct view_context *context, uint64_t state)
{
	bool is_held = context->declined || (context->transfers && context_is_shared(engine, context));

	context_leave(context, state, is_held ? CONTEXT_HELD : CONTEXT_LEFT, &state);
	bit_set(context);
}

#define CLIENT_WAIT_NS 1000000000u

void engine_set_wait(struct engine *engine, struct engine_wait *wait)
{
	engine->wait = wait ? wait : &engine->own_wait;
}

bool engine_may_wait(struct engine *engine, const void *what)
{
	uint64_t now_ns = clock_now_ns();

	if (engine->wait->what != what)
		*engine->wait = (struct engine_wait){ .what = what, .since_ns = now_ns };
	return now_ns - engine->wait->since_ns < CLIENT_WAIT_NS;
}

void engine_waited(struct engine *engine)
{
	engine->wait->what = NULL;
}

/* ---- heartbeat ---- */

/* A thread sleeps and will drive; nobody has said otherwise while a peer rang. */
static bool is_asleep(struct view_context *context, enum context_state kind)
{
	if (context->unrung || !atomic_load_explicit(&context->words->asleep, memory_order_relaxed))
		return false;
	return kind == CONTEXT_PARKED ||
	       (kind == CONTEXT_SLEEP && atomic_load_explicit(&context->words->sleepers, memory_order_relaxed));
}

void engine_mend(struct engine *engine, struct view_context *context)
{
	uint64_t state = atomic_load_explicit(&context->words->state, memory_order_acquire);
	enum context_state kind = yard_kind(state);

	/* a thread that has it may be stopped for as long as it likes: whoever waits for it looks after himself */
	if (context->broken || (kind == CONTEXT_CLIENT && context_is_shared(engine, context)) || is_asleep(context, kind) || !context_has_undone(context))
		return;
	/* who finds these relies on the bit: a liar may have written the one without the other */
	if (kind == CONTEXT_LEFT || kind == CONTEXT_PATIENT || kind == CONTEXT_HELD) {
		bit_set(context);
		return;
	}
	/* a submitter between its tail and its look at the state is no liar, and is helped by this, too */
	if (atomic_compare_exchange_strong_explicit(&context->words->state, &state, yard_next(state, CONTEXT_LEFT), memory_order_acq_rel,
						    memory_order_acquire))
		bit_set(context);
}
