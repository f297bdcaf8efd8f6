/* SPDX-License-Identifier: Apache-2.0 */
/* Taking, advancing and leaving a context by a thread of its own process: R1 to R7. */
#include "engine/direct.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/head.h"
#include "engine/point.h"
#include "engine/view.h"

#define ROUNDS_PER_PASS 8
#define INTRUDER_YIELDS 100u
#define COME_BACK_YIELDS 1000u
#define NEWS_MAX 4u		/* peers that a leave tells without a fence of their own */
#define TASKS_PER_PASS 256	/* of one stream: other threads may submit without end */

static uint64_t state_load(const struct yard_context *words)
{
	return atomic_load_explicit(&words->state, memory_order_acquire);
}

static bool state_change(struct yard_context *words, uint64_t *state, enum context_state kind)
{
	return atomic_compare_exchange_strong(&words->state, state, yard_next(*state, kind));
}

/* ---- the engine ---- */

static void engine_wake(const struct direct_context *context)
{
	static const uint64_t one = 1;

	/* write() would be a point of cancellation */
	if (syscall(SYS_write, context->event_fd, &one, sizeof(one)) < 0) {
		/* full: the engine has been woken and has not come to read it */
	}
}

/* The state is stored, and a fence behind it: sets the bit. @is_patient: a tick is soon enough. */
static void engine_tell(const struct direct_context *context, const struct direct_bell *bell, bool is_patient)
{
	uint32_t awake;

	if (!(atomic_load(bell->bit_word) & bell->bit) && KEEPS(TELL_BIT))
		atomic_fetch_or(bell->bit_word, bell->bit);
	else if (is_patient && atomic_load(&context->beacon->awake) != BEACON_ASLEEP)
		/*
		 * An engine that is awake looks at a bit that is set, and before it clears it, at the state once more: it sees ours (R10). If it
		 * went to sleep before the bit was set, of which R2 may have told a sleeper only, it is seen asleep: all of it is seq_cst.
		 */
		return;
	CRASH_POINT(101);
	/* the engine stores `awake`, fences, reads the bits (R10) */
	if (KEEPS(TELL_FENCE))
		atomic_thread_fence(memory_order_seq_cst);
	awake = atomic_load_explicit(&context->beacon->awake, memory_order_relaxed);
	if (!KEEPS(TELL_AWAKE))
		return;
	if (awake == BEACON_ASLEEP || (awake == BEACON_PATROL && !is_patient))
		engine_wake(context);
}

void direct_tell_engine(const struct direct_context *context, uint32_t place)
{
	struct yard *yard = &((struct yard_region *)((char *)context->copies - offsetof(struct yard_region, copies)))->yard;
	const struct direct_bell bell = { &yard->contexts[place], &yard->bits[place / 64], UINT64_C(1) << place % 64 };

	engine_tell(context, &bell, false);
}

/* ---- R2 ---- */

static void sleepers_wake(struct yard_context *words)
{
	atomic_fetch_add(&words->news, 1);
	syscall(SYS_futex, &words->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static bool ring_change(struct yard_context *words, uint64_t *state, enum context_state kind)
{
	if (KEEPS(RING_CAS))
		return state_change(words, state, kind);
	atomic_store(&words->state, yard_next(*state, kind));
	return true;
}

static void peer_ring(const struct direct_context *context, const struct direct_bell *bell)
{
	uint64_t state = state_load(bell->words);

	CRASH_POINT(102);
	for (;;) {
		switch (yard_kind(state)) {
		case CONTEXT_PARKED:
			if (!ring_change(bell->words, &state, CONTEXT_LEFT))
				continue;
			CRASH_POINT(103);
			engine_tell(context, bell, false);
			return;
		case CONTEXT_HELD:
			if (KEEPS(RING_HELD))
				engine_tell(context, bell, false);
			return;
		case CONTEXT_SLEEP:
			if (!ring_change(bell->words, &state, CONTEXT_PATIENT))
				continue;
			CRASH_POINT(104);
			if (KEEPS(RING_BIT))
				atomic_fetch_or(bell->bit_word, bell->bit);
			CRASH_POINT(105);
			/* behind the state: who gives up sleeping takes himself out, then looks at it */
			if (!KEEPS(RING_TRUSTS_SLEEP) || atomic_load(&bell->words->sleepers))
				sleepers_wake(bell->words);
			else
				engine_tell(context, bell, true);
			return;
		default:
			return;
		}
	}
}

void direct_touch(struct direct_context *context, struct direct_peer *peer)
{
	if (peer->bell.words == context->bell.words) {
		context->again = true;
		return;
	}
	if (peer->rung)
		return;
	peer->rung = true;
	peer->rung_next = context->rung;
	context->rung = peer;
}

/* R1, R2: what was stored is visible before anybody's `asleep` or `sleepers` is read. */
void direct_publish(struct direct_context *context)
{
	if (!context->rung && !context->completed)
		return;
	CRASH_POINT(106);
	if (KEEPS(RING_FENCE))
		atomic_thread_fence(memory_order_seq_cst);
	while (context->rung) {
		struct direct_peer *peer = context->rung;

		context->rung = peer->rung_next;
		peer->rung = false;
		if (__builtin_expect(atomic_load_explicit(&peer->bell.words->asleep, memory_order_relaxed) != 0, 0))
			peer_ring(context, &peer->bell);
	}
	CRASH_POINT(107);
	if (context->completed && atomic_load_explicit(&context->bell.words->sleepers, memory_order_relaxed))
		sleepers_wake(context->bell.words);
	context->completed = false;
}

/* ---- R3 ---- */

static bool is_intruded(const struct direct_context *context)
{
	return atomic_load_explicit(&context->intruders, memory_order_relaxed) != 0;
}

static bool is_free(uint64_t state)
{
	return yard_is_free(state) || (!KEEPS(TAKE_HELD) && yard_kind(state) == CONTEXT_HELD);
}

bool direct_may_take(const struct direct_context *context)
{
	return is_free(atomic_load_explicit(&context->bell.words->state, memory_order_relaxed)) &&
	       atomic_load_explicit(&context->beacon->local_path, memory_order_relaxed) == PATH_DIRECT &&
	       !is_intruded(context);
}

bool direct_take(struct direct_context *context)
{
	uint64_t state = state_load(context->bell.words);

	if (!direct_may_take(context) || !is_free(state) || !state_change(context->bell.words, &state, CONTEXT_CLIENT))
		return false;
	CRASH_POINT(108);
	context->state = yard_next(state, CONTEXT_CLIENT);
	if (atomic_load_explicit(&context->bell.words->asleep, memory_order_relaxed))
		atomic_store_explicit(&context->bell.words->asleep, 0, memory_order_relaxed);
	/* with the intruder's count: it sees CLIENT, or we see it. Both are seq_cst */
	if (__builtin_expect(atomic_load(&context->intruders) != 0, 0) && KEEPS(TAKE_INTRUDED)) {
		direct_leave(context, DIRECT_MORE);
		return false;
	}
	return true;
}

/* ---- advancing ---- */

/* May the head run here? Its rank is alive, in no trouble, and was not when it was submitted. */
static struct direct_rank *rank_find(const struct direct_context *context, const struct task *task)
{
	struct direct_rank *rank = atomic_load_explicit(&context->process->places[VIEW_INDEX(task->rank) % HCCLD_RANKS_PER_SESSION].rank,
							memory_order_acquire);
	const struct comm_member *member;

	if (!rank || rank->handle != task->rank)
		return NULL;
	member = &rank->region->members[rank->rank];
	if (atomic_load_explicit(&rank->region->abort, memory_order_relaxed) ||
	    atomic_load_explicit(&rank->region->suspensions, memory_order_acquire) ||
	    atomic_load_explicit(&member->word, memory_order_acquire) != MEMBER_ALIVE ||
	    atomic_load_explicit(&member->epoch, memory_order_acquire) != task->epoch)
		return NULL;
	return rank;
}

static enum direct_left stream_pass(struct direct_context *context, struct stream_ring *ring)
{
	uint64_t completed = atomic_load_explicit(&ring->completed, memory_order_relaxed);
	uint32_t tasks = 0;

	while (completed != atomic_load_explicit(&ring->tail, memory_order_acquire)) {
		const struct task *task = &ring->slots[completed % HCCLD_STREAM_SLOTS].task;
		struct direct_rank *rank = NULL;
		enum direct_left left;

		if (task->kind != TASK_BATCH || atomic_load_explicit(&ring->stopped, memory_order_relaxed) ||
		    atomic_load_explicit(&ring->dropped, memory_order_relaxed) > completed ||
		    (task->rank && !(rank = rank_find(context, task))))
			return DIRECT_DECLINED;
		left = direct_batch(context, ring, task, rank);
		if (left != DIRECT_DONE)
			return left;
		CRASH_POINT(109);
		/* I2. Release: the waiter sees the bytes that the task brought */
		completed += task->slot_count;
		atomic_store_explicit(&ring->completed, completed, memory_order_release);
		context->completed = true;
		CRASH_POINT(110);
		if (++tasks == TASKS_PER_PASS)
			return DIRECT_MORE;
	}
	return DIRECT_DONE;
}

enum direct_left direct_pass(struct direct_context *context, uint64_t budget, bool is_thorough)
{
	enum direct_left left;

	context->budget = budget;
	context->is_thorough = is_thorough;
	context->met_large = false;
	for (int round = 0; round < ROUNDS_PER_PASS; round++) {
		left = DIRECT_DONE;
		context->again = false;
		for (uint32_t i = 0; i < atomic_load_explicit(&context->ring_limit, memory_order_relaxed); i++) {
			struct stream_ring *ring = atomic_load_explicit(&context->rings[i], memory_order_relaxed);
			enum direct_left of_ring = ring ? stream_pass(context, ring) : DIRECT_DONE;

			left = of_ring > left ? of_ring : left;
		}
		if (!context->again)
			break;
	}
	if (context->again && left == DIRECT_WAITS)
		left = DIRECT_MORE;
	return left;
}

/* ---- R4, R6 ---- */

/* Any thread: rings of streams stay mapped. */
static bool has_undone(const struct direct_context *context)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&context->ring_limit, memory_order_acquire); i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->rings[i], memory_order_acquire);

		if (ring && atomic_load_explicit(&ring->completed, memory_order_relaxed) !=
				    atomic_load_explicit(&ring->tail, memory_order_acquire))
			return true;
	}
	return false;
}

/* Ours again, after it was left with @state. False: somebody else has it, or made it LEFT. */
static bool take_back(struct direct_context *context, uint64_t state)
{
	if (!state_change(context->bell.words, &state, CONTEXT_CLIENT))
		return false;
	CRASH_POINT(111);
	context->state = yard_next(state, CONTEXT_CLIENT);
	if (atomic_load_explicit(&context->bell.words->asleep, memory_order_relaxed))
		atomic_store_explicit(&context->bell.words->asleep, 0, memory_order_relaxed);
	return true;
}

/* From here on the context is not ours: what else there is to do needs copies. The new state. */
static uint64_t state_store(struct direct_context *context, enum context_state kind)
{
	uint64_t state = yard_next(context->state, kind);

	CRASH_POINT(112);
	/* release: all that was done is before it. The fence is with that of a submitter, who sees our state, or we see his tail */
	atomic_store_explicit(&context->bell.words->state, state, memory_order_release);
	if (KEEPS(LEAVE_FENCE))
		atomic_thread_fence(memory_order_seq_cst);
	CRASH_POINT(113);
	return KEEPS(OWN_WORD) ? state : context->state;
}

static void mark_heads(const struct direct_context *context)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&context->ring_limit, memory_order_relaxed); i++) {
		struct stream_ring *ring = atomic_load_explicit(&context->rings[i], memory_order_relaxed);
		uint64_t completed = ring ? atomic_load_explicit(&ring->completed, memory_order_relaxed) : 0;

		if (ring && completed != atomic_load_explicit(&ring->tail, memory_order_acquire))
			stream_mark_head(ring, completed);
	}
}

/*
 * Peers' heads wait: leaves it as SLEEP, for those who sleep on `news`. False: something has come in the meantime, and it is ours still, or
 * again; *@ret_left says how it stands.
 */
static bool leave_asleep(struct direct_context *context, bool (*is_over)(const void *arg), const void *arg, enum direct_left *ret_left)
{
	bool is_left = true;
	uint64_t inputs = direct_inputs(context), state;

	*ret_left = direct_pass(context, DIRECT_BUDGET_ALL, true);
	direct_publish(context);
	if (*ret_left != DIRECT_WAITS || is_intruded(context) || (is_over && is_over(arg)))
		return false;
	mark_heads(context);
	atomic_fetch_add(&context->scanners, 1);
	if (KEEPS(ASLEEP))
		atomic_store_explicit(&context->bell.words->asleep, 1, memory_order_relaxed);
	state = state_store(context, CONTEXT_SLEEP);
	/* with the fence of a peer that publishes: it sees `asleep`, or we see what it has published */
	if (KEEPS(SLEEP_RESCAN) && direct_inputs(context) != inputs && take_back(context, state))
		is_left = false;
	atomic_fetch_sub(&context->scanners, 1);
	return is_left;
}

bool direct_sleep(struct direct_context *context, bool (*is_over)(const void *arg), const void *arg, uint64_t ns, enum direct_left *ret_left)
{
	struct timespec timeout = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
	struct yard_context *words = context->bell.words;
	uint32_t news = atomic_load(&words->news);
	bool is_left;

	atomic_fetch_add(&words->sleepers, 1);
	is_left = leave_asleep(context, is_over, arg, ret_left);
	CRASH_POINT(114);
	if (!KEEPS(NEWS_FIRST))
		news = atomic_load(&words->news);
	/* another thread of this process may have driven meanwhile: it did what we wait for before it looked at `sleepers` */
	if (is_left && !is_over(arg))
		syscall(SYS_futex, &words->news, FUTEX_WAIT, news, &timeout, NULL, 0);
	CRASH_POINT(115);
	atomic_fetch_sub(&words->sleepers, 1);
	return is_left;
}

/* Whom the passes had news for, apart from the context, which is about to be somebody else's. */
struct news {
	struct direct_bell bells[NEWS_MAX];
	uint32_t count;
	bool completed;
};

static void news_take(struct direct_context *context, struct news *ret_news)
{
	ret_news->count = 0;
	while (context->rung && ret_news->count < NEWS_MAX) {
		struct direct_peer *peer = context->rung;

		context->rung = peer->rung_next;
		peer->rung = false;
		ret_news->bells[ret_news->count++] = peer->bell;
	}
	ret_news->completed = context->completed;
	/* there are many */
	if (context->rung)
		direct_publish(context);
	context->completed = false;
}

/* R1 and R2, behind the fence of a leave: one is enough for both. @words: of the context that was left. */
static void news_tell(const struct direct_context *context, struct yard_context *words, const struct news *news)
{
	for (uint32_t i = 0; i < news->count; i++)
		if (__builtin_expect(atomic_load_explicit(&news->bells[i].words->asleep, memory_order_relaxed) != 0, 0))
			peer_ring(context, &news->bells[i]);
	if (news->completed && atomic_load_explicit(&words->sleepers, memory_order_relaxed))
		sleepers_wake(words);
}

void direct_leave(struct direct_context *context, enum direct_left left)
{
	const struct direct_bell own = context->bell;
	struct news news;
	uint64_t state;

	/* another thread of this process sleeps, and is to be woken by what comes for it */
	if (left == DIRECT_WAITS && atomic_load_explicit(&own.words->sleepers, memory_order_relaxed)) {
		direct_publish(context);
		if (leave_asleep(context, NULL, NULL, &left))
			return;
	}
	news_take(context, &news);
	if (left != DIRECT_DONE) {
		if (left == DIRECT_DECLINED)
			atomic_store_explicit(&own.words->asleep, 1, memory_order_relaxed);
		(void)state_store(context, left == DIRECT_DECLINED ? CONTEXT_HELD : CONTEXT_PATIENT);
		news_tell(context, own.words, &news);
		engine_tell(context, &own, left != DIRECT_DECLINED);
		return;
	}
	state = state_store(context, CONTEXT_IDLE);
	news_tell(context, own.words, &news);
	/* a task that came between the last look and the state: its submitter saw CLIENT, and went away */
	if (KEEPS(LEAVE_RESCAN) && has_undone(context) && state_change(own.words, &state, CONTEXT_PATIENT))
		engine_tell(context, &own, true);
}

void direct_go_away(struct direct_context *context)
{
	direct_publish(context);
	atomic_fetch_add(&context->bell.words->sleepers, 1);
	/*
	 * `asleep` stays 0, and there is no rescan (R4): this thread is going to look anyway, and whoever rang would have the engine go on. Should it
	 * not come back the heartbeat finds a sleeper that cannot be rung (engine_mend()).
	 */
	(void)state_store(context, CONTEXT_SLEEP);
}

bool direct_come_back(struct direct_context *context)
{
	atomic_fetch_sub(&context->bell.words->sleepers, 1);
	/* others may change tables, for a moment */
	for (uint32_t i = 0; i < COME_BACK_YIELDS; i++) {
		if (direct_take(context))
			return true;
		if (yard_kind(state_load(context->bell.words)) != CONTEXT_SLEEP)
			return false;
		sched_yield();
	}
	return false;
}

void direct_wake_up(struct direct_context *context)
{
	enum context_state kind = yard_kind(state_load(context->bell.words));

	CRASH_POINT(116);
	if (KEEPS(LEFT_BEHIND) && (kind == CONTEXT_PATIENT || kind == CONTEXT_LEFT) && direct_take(context))
		direct_leave(context, direct_pass(context, DIRECT_BUDGET_ALL, false));
}

/* ---- tables ---- */

void direct_intrude(struct direct_context *context)
{
	static const struct timespec moment = { .tv_nsec = 50000 };

	atomic_fetch_add(&context->intruders, 1);
	/* the state first: a scanner counts himself before he leaves */
	for (uint32_t i = 0; yard_kind(atomic_load(&context->bell.words->state)) == CONTEXT_CLIENT || atomic_load(&context->scanners); i++) {
		/* whoever drives may have a lower priority */
		if (i < INTRUDER_YIELDS)
			sched_yield();
		else
			syscall(SYS_nanosleep, &moment, NULL);	/* no point of cancellation */
	}
}

void direct_retreat(struct direct_context *context)
{
	atomic_fetch_sub(&context->intruders, 1);
	/*
	 * Whoever was woken meanwhile could not take it, and who rang has told nobody else (R2). Both accesses are seq_cst: a thread that is
	 * woken later sees the count, or its ring is seen here.
	 */
	if (yard_kind(atomic_load(&context->bell.words->state)) == CONTEXT_PATIENT && KEEPS(RETREAT_TELLS))
		engine_tell(context, &context->bell, true);
}

int direct_add_ring(struct direct_context *context, struct stream_ring *ring)
{
	uint32_t limit = atomic_load_explicit(&context->ring_limit, memory_order_relaxed), i = 0;

	while (i < limit && atomic_load_explicit(&context->rings[i], memory_order_relaxed))
		i++;
	if (i == HCCLD_STREAMS_PER_SESSION)
		return -ENOSPC;
	atomic_store_explicit(&context->rings[i], ring, memory_order_release);
	if (i == limit)
		atomic_store_explicit(&context->ring_limit, limit + 1, memory_order_release);
	return 0;
}

void direct_remove_ring(struct direct_context *context, struct stream_ring *ring)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&context->ring_limit, memory_order_relaxed); i++)
		if (atomic_load_explicit(&context->rings[i], memory_order_relaxed) == ring)
			atomic_store_explicit(&context->rings[i], NULL, memory_order_release);
}
