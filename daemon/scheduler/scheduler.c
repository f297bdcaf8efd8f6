/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine thread. Gears: busy (looks at the bits round after round, yields between empty rounds); after SPIN_NS with nothing to do
 * patrol, while contexts are PATIENT or were lately (sleeps on the eventfd for a tick, then looks at the bits), else deep (sleeps on the
 * eventfd, a heartbeat every HEARTBEAT_MS). beacon.awake says which. Its path from a submission to a completion has no lock, no allocation, no
 * log and no system call but wake-ups.
 */
#include "scheduler/scheduler.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/calls.h"
#include "scheduler/copier.h"
#include "scheduler/events.h"
#include "scheduler/guard.h"
#include "scheduler/shared.h"
#include "scheduler/wake.h"
#include "engine/copy.h"
#include "proto/clock.h"
#include "proto/yielding.h"

#define SPIN_NS 60000
#define TICK_NS 450000u		/* what is PATIENT at two looks in different ticks is ours: within a millisecond */
#define LOOK_NS 100000u		/* at chunks that clients are to copy */
#define PATROL_NS 10000000u	/* so long after the last that was PATIENT */
#define RECOUNT_BEATS 20u	/* after clients may drive no more: threads that had been allowed to finish */
#define POLL_MS 2		/* between two looks at words in memory that streams wait for */
#define TRANSFERS 4096u

/*
 * Tenants get turns: in each pass the contexts of a tenant are looked at within its turn of steps; what it takes beyond is a debt. Alone it
 * has long turns. As long as another one has worked lately they are short, so that nobody waits for more than a short turn of each.
 */
#define LONG_TURN 8192
#define SHORT_TURN 64
#define CROWDED_PASSES 4096u
#define SHORT_SLICE 32768u	/* what the engine thread copies itself meanwhile */
#define LIVELY_PASSES 8u	/* after the last in which something was done: slices are short, in case that more comes */

struct scheduler {
	struct scheduler_options options;
	struct engine *engine;
	struct copier *copier;
	pthread_t thread;
	bool started;
	_Atomic(struct view_yard *) yards;	/* control pushes, the engine thread walks */
	struct calls calls;
	_Atomic bool stop;
	_Atomic uint64_t passes;
	struct events events;
	uint64_t worked_ns, beat_ns, polled_ns, tick_ns, patient_ns;
	bool patient;			/* one was, at `patient_ns` */
	bool in_patrol;			/* `awake` says so */
	_Atomic uint32_t wanted_path;	/* control thread */
	uint32_t path, recounts;	/* as of the last pass; beats that recount what is pending */
	bool was_direct;
	/* turns of tenants, engine thread */
	uint64_t pass;
	uint32_t crowded;		/* passes for which turns are short */
	struct view_share own, *worker;	/* of yards without share; whose turn it was last */
	bool worked;
	uint32_t lively;		/* LIVELY_PASSES, as they are left */
	struct yielding yielding;
};

static bool scheduler_run_calls(struct scheduler *scheduler)
{
	bool has_finished, worked = calls_run(&scheduler->calls, scheduler->engine, &has_finished);

	if (has_finished)
		scheduler->options.notify(scheduler->options.data);
	return worked;
}

/* ---- the thread ---- */

/* The tenant of @yard is looked at in this pass; at the first yard of it its turn begins. */
static void share_begin(struct scheduler *scheduler, struct view_share *share)
{
	int64_t turn = (scheduler->crowded ? SHORT_TURN : LONG_TURN) * (int64_t)share_weight(share);

	if (share->pass == scheduler->pass)
		return;
	share->pass = scheduler->pass;
	share->steps += turn;
	if (share->steps > turn)
		share->steps = turn;
}

/* Something was done for this tenant: a bit alone may be that of a context which is PATIENT, and costs nobody anything. */
static void share_worked(struct scheduler *scheduler, struct view_share *share)
{
	scheduler->worked = true;
	scheduler->lively = LIVELY_PASSES;
	if (scheduler->worker != share && scheduler->worker)
		scheduler->crowded = CROWDED_PASSES;
	scheduler->worker = share;
}

/* The bits of one word. False: the turn is over before @bits are. */
static bool word_run(struct scheduler *scheduler, struct view_yard *yard, struct view_share *share, uint32_t word, uint64_t bits)
{
	while (bits) {
		uint32_t bit = (uint32_t)__builtin_ctzll(bits);
		struct view_context *context;
		int64_t steps;

		share_begin(scheduler, share);
		if (share->steps <= 0) {
			yard->next_bit = word * 64 + bit;
			return false;
		}
		bits &= bits - 1;
		context = atomic_load_explicit(&yard->contexts[word * 64 + bit], memory_order_acquire);
		if (!context) {
			atomic_fetch_and_explicit(&yard->yard->bits[word], ~(1ull << bit), memory_order_acq_rel);
			continue;
		}
		if (engine_look_for(scheduler->engine, context, share->steps, &steps))
			share_worked(scheduler, share);
		share->steps -= steps;
	}
	return true;
}

/* From where the last turn has ended, all round. True: there was, or is, something to do. */
static bool yard_run(struct scheduler *scheduler, struct view_yard *yard)
{
	struct view_share *share = yard->share ? yard->share : &scheduler->own;
	uint32_t limit = atomic_load_explicit(&yard->word_limit, memory_order_acquire);
	uint32_t first = yard->next_bit / 64 < limit ? yard->next_bit / 64 : 0;
	uint64_t from = ~0ull << (yard->next_bit % 64);

	scheduler->worked = false;
	yard->next_bit = 0;
	for (uint32_t n = 0; limit && n <= limit; n++) {
		uint32_t word = first + n < limit ? first + n : first + n - limit;
		uint64_t bits = atomic_load_explicit(&yard->yard->bits[word], memory_order_acquire);

		/* the first word is looked at in two parts: what comes first, and what comes last */
		if (n == 0)
			bits &= from;
		else if (n == limit)
			bits &= ~from;
		if (!word_run(scheduler, yard, share, word, bits))
			return true;
	}
	return scheduler->worked;
}

/* @in_patrol: but for those of contexts that are PATIENT. */
static bool word_is_set(struct view_yard *yard, uint32_t word, bool in_patrol)
{
	uint64_t bits = atomic_load_explicit(&yard->yard->bits[word], memory_order_acquire);

	if (!in_patrol)
		return bits != 0;
	for (; bits; bits &= bits - 1) {
		uint32_t bit = word * 64 + (uint32_t)__builtin_ctzll(bits);
		const struct view_context *context = atomic_load_explicit(&yard->contexts[bit], memory_order_acquire);

		if (!context || yard_kind(atomic_load_explicit(&context->words->state, memory_order_acquire)) != CONTEXT_PATIENT)
			return true;
	}
	return false;
}

static bool scheduler_bits_set(struct scheduler *scheduler, bool in_patrol)
{
	for (struct view_yard *yard = atomic_load_explicit(&scheduler->yards, memory_order_acquire); yard; yard = yard->next)
		for (uint32_t word = 0; word < atomic_load_explicit(&yard->word_limit, memory_order_acquire); word++)
			if (word_is_set(yard, word, in_patrol))
				return true;
	return false;
}

static void context_beat(struct scheduler *scheduler, struct view_context *context, uint64_t now_ns)
{
	enum context_state kind = yard_kind(atomic_load_explicit(&context->words->state, memory_order_acquire));

	if (context->broken) {
		/* until its session is gone: an event may have been lost */
		event_liar(&scheduler->events, context->session, "a task that makes no sense");
		return;
	}
	if (scheduler->recounts)
		engine_recount(scheduler->engine, context);
	if (kind == CONTEXT_LEFT || kind == CONTEXT_PATIENT) {
		atomic_fetch_or_explicit(context->bit_word, context->bit, memory_order_acq_rel);
		return;
	}
	engine_mend(scheduler->engine, context);
	engine_wake_forgotten(context);
	if (kind != CONTEXT_IDLE)
		engine_check_timeouts(scheduler->engine, context, now_ns);
}

/* Time-outs, lies in the yard, and R10: what is LEFT without its bit gets it (the client that should have set it was stopped). */
static void scheduler_beat(struct scheduler *scheduler, uint64_t now_ns)
{
	scheduler->beat_ns = now_ns;
	/* nobody waits for what was counted wrong */
	if (!scheduler->recounts && scheduler->was_direct && engine_has_held(scheduler->engine))
		scheduler->recounts = 1;
	for (struct view_yard *yard = atomic_load_explicit(&scheduler->yards, memory_order_acquire); yard; yard = yard->next) {
		uint32_t limit = 64 * atomic_load_explicit(&yard->word_limit, memory_order_acquire);

		for (uint32_t i = 0; i < limit; i++) {
			struct view_context *context = atomic_load_explicit(&yard->contexts[i], memory_order_acquire);

			if (context)
				context_beat(scheduler, context, now_ns);
		}
	}
	scheduler->recounts -= scheduler->recounts > 0;
	engine_look_at_held(scheduler->engine);
}

static void scheduler_each(struct scheduler *scheduler, void (*run)(struct engine *engine, struct view_context *context))
{
	for (struct view_yard *yard = atomic_load_explicit(&scheduler->yards, memory_order_acquire); yard; yard = yard->next) {
		uint32_t limit = 64 * atomic_load_explicit(&yard->word_limit, memory_order_acquire);

		for (uint32_t i = 0; i < limit; i++) {
			struct view_context *context = atomic_load_explicit(&yard->contexts[i], memory_order_acquire);

			if (context)
				run(scheduler->engine, context);
		}
	}
}

/* Clients may drive from now on, or no more. */
static void scheduler_follow_path(struct scheduler *scheduler)
{
	uint32_t path = atomic_load_explicit(&scheduler->wanted_path, memory_order_acquire);
	struct beacon *beacon = scheduler->options.beacon;

	if (path == scheduler->path)
		return;
	scheduler->path = path;
	scheduler->was_direct |= path == PATH_DIRECT;
	scheduler->recounts = path == PATH_DIRECT ? 0 : RECOUNT_BEATS;
	engine_set_direct(scheduler->engine, path == PATH_DIRECT);
	scheduler_each(scheduler, engine_share);
	/* release: whoever reads it finds contexts as they must be */
	atomic_store_explicit(&beacon->local_path, path, memory_order_seq_cst);
	scheduler_each(scheduler, engine_recount);
}

/* One slice, copied by this thread. */
static bool scheduler_copy(struct scheduler *scheduler, uint64_t most)
{
	struct engine_slice slice;

	if (!engine_slice_next_of(scheduler->engine, most, &slice))
		return false;
	slice.lost = guard_copy(slice.destination, slice.source, slice.bytes, slice.value, slice.non_temporal);
	engine_slice_done(scheduler->engine, &slice);
	return true;
}

/*
 * A slice; where contexts had work lately in short ones, which cost some speed: as soon as one is to be looked at the rest waits. While
 * tenants share, one of them has bits at all times: short slices for as long as the looks at contexts have taken since @since_ns, so that
 * neither those who copy nor those who do not get all the time.
 */
static bool scheduler_copy_some(struct scheduler *scheduler, uint64_t since_ns)
{
	uint64_t looked_ns;

	if (!scheduler->crowded && !scheduler->lively)
		return scheduler_copy(scheduler, HCCLD_SLICE);
	if (!scheduler->crowded) {
		scheduler->lively--;
		if (!scheduler_copy(scheduler, SHORT_SLICE))
			return false;
		for (uint32_t i = 1; i < HCCLD_SLICE / SHORT_SLICE && !scheduler_bits_set(scheduler, true); i++)
			if (!scheduler_copy(scheduler, SHORT_SLICE))
				break;
		return true;
	}
	looked_ns = clock_now_ns();
	if (!scheduler_copy(scheduler, SHORT_SLICE))
		return false;
	while (clock_now_ns() - looked_ns < looked_ns - since_ns && scheduler_copy(scheduler, SHORT_SLICE))
		;
	return true;
}

static bool scheduler_pass(struct scheduler *scheduler)
{
	bool worked;
	uint64_t since_ns;

	scheduler_follow_path(scheduler);
	worked = scheduler_run_calls(scheduler);
	since_ns = scheduler->crowded ? clock_now_ns() : 0;

	scheduler->pass++;
	scheduler->crowded -= scheduler->crowded > 0;
	for (struct view_yard *yard = atomic_load_explicit(&scheduler->yards, memory_order_acquire); yard; yard = yard->next)
		worked |= yard_run(scheduler, yard);
	worked |= engine_collect_chunks(scheduler->engine);
	worked |= copier_run(scheduler->copier, scheduler->engine, scheduler->crowded > 0);
	worked |= scheduler_copy_some(scheduler, since_ns);
	atomic_fetch_add_explicit(&scheduler->passes, 1, memory_order_relaxed);
	return worked;
}

/*
 * Never waits, whatever a client has done to the eventfd: all have a descriptor of it, so each can clear O_NONBLOCK and take the count.
 */
static void scheduler_drain(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	uint64_t count;
	struct iovec iov = { .iov_base = &count, .iov_len = sizeof(count) };
	ssize_t n = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	/* before Linux 5.8 */
	if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS) && poll(&ready, 1, 0) > 0)
		n = read(fd, &count, sizeof(count));
	(void)n;
}

static int scheduler_sleep_ms(const struct scheduler *scheduler)
{
	/* a call that waits for a client is told by nobody */
	if (scheduler->calls.aside)
		return 1;
	return engine_polls(scheduler->engine) ? POLL_MS : HEARTBEAT_MS;
}

static void scheduler_awake(struct scheduler *scheduler)
{
	scheduler->in_patrol = false;
	atomic_store_explicit(&scheduler->options.beacon->awake, BEACON_AWAKE, memory_order_seq_cst);
}

/* Nothing to do for a while: sleep until a client, the control thread or the heartbeat wakes us, in patrol for a tick. */
static void scheduler_sleep(struct scheduler *scheduler, bool in_patrol)
{
	struct pollfd wait = { .fd = scheduler->options.event_fd, .events = POLLIN };
	struct beacon *beacon = scheduler->options.beacon;
	int woken = 1;

	atomic_store_explicit(&beacon->awake, in_patrol ? BEACON_PATROL : BEACON_ASLEEP, memory_order_relaxed);
	/* with the barrier of whoever sets a bit: it sees how we sleep, or we see its bit */
	atomic_thread_fence(memory_order_seq_cst);
	if (!scheduler_bits_set(scheduler, in_patrol) && !calls_are_new(&scheduler->calls) &&
	    !atomic_load_explicit(&scheduler->stop, memory_order_acquire) && !copier_has_done(scheduler->copier) &&
	    atomic_load_explicit(&scheduler->wanted_path, memory_order_acquire) == scheduler->path) {
		/* nobody tells that those who copy have gone */
		const bool is_left_to_clients = engine_has_free_chunks(scheduler->engine);
		const struct timespec tick = { .tv_nsec = is_left_to_clients ? LOOK_NS : TICK_NS };

		woken = in_patrol || is_left_to_clients ? ppoll(&wait, 1, &tick, NULL) : poll(&wait, 1, scheduler_sleep_ms(scheduler));
	}
	/* a tick has passed: patrol goes on, for `awake` says so still, unless the pass finds something */
	scheduler->in_patrol = in_patrol && woken == 0;
	if (scheduler->in_patrol)
		return;
	scheduler_awake(scheduler);
	scheduler_drain(scheduler->options.event_fd);
}

/* Between two passes. What is done now and then. */
static void scheduler_tick(struct scheduler *scheduler, uint64_t now_ns)
{
	if (engine_met_patient(scheduler->engine)) {
		scheduler->patient = true;
		scheduler->patient_ns = now_ns;
	}
	if (now_ns - scheduler->tick_ns >= TICK_NS) {
		scheduler->tick_ns = now_ns;
		engine_tick(scheduler->engine);
	}
	if (now_ns - scheduler->beat_ns > HEARTBEAT_MS * 1000000ull)
		scheduler_beat(scheduler, now_ns);
	if (engine_polls(scheduler->engine) && now_ns - scheduler->polled_ns > POLL_MS * 1000000ull) {
		scheduler->polled_ns = now_ns;
		engine_poll(scheduler->engine);
	}
}

static void scheduler_rest(struct scheduler *scheduler, uint64_t now_ns)
{
	bool in_patrol = scheduler->patient && now_ns - scheduler->patient_ns < PATROL_NS && !scheduler->calls.aside;

	scheduler->patient = in_patrol;
	scheduler_sleep(scheduler, in_patrol);
}

static void *scheduler_main(void *arg)
{
	struct scheduler *scheduler = arg;
	uint32_t rounds = 0;	/* that did something, since the clock was read */

	scheduler->worked_ns = scheduler->beat_ns = clock_now_ns();
	while (!atomic_load_explicit(&scheduler->stop, memory_order_acquire)) {
		bool worked = scheduler_pass(scheduler);
		uint64_t now_ns;

		if (worked && scheduler->in_patrol)
			scheduler_awake(scheduler);
		if (worked && ++rounds % 64)
			continue;	/* the clock is read now and then only */
		now_ns = clock_now_ns();
		scheduler_tick(scheduler, now_ns);
		if (rounds) {
			rounds = 0;
			scheduler->worked_ns = now_ns;
		}
		if (worked)
			continue;
		if ((now_ns - scheduler->worked_ns < SPIN_NS || copier_is_busy(scheduler->copier)) &&
		    yielding_step(&scheduler->yielding, 0, scheduler->worked_ns, now_ns))
			continue;
		scheduler_rest(scheduler, now_ns);
	}
	return NULL;
}

/* ---- control thread ---- */

int scheduler_new(const struct scheduler_options *options, struct scheduler **ret_scheduler)
{
	struct scheduler *scheduler = calloc(1, sizeof(*scheduler));
	struct engine_host host;
	int r;

	if (!scheduler)
		return -ENOMEM;
	scheduler->options = *options;
	scheduler->events.options = &scheduler->options;
	host = events_host(&scheduler->events);
	host.guard_begin = guard_begin;
	host.guard_end = guard_end;
	host.has_ended = shared_has_ended;
	r = engine_new(&host, TRANSFERS, &scheduler->engine);
	if (r == 0)
		r = guard_install();
	if (r == 0)
		shared_start(scheduler->engine);
	if (r == 0)
		r = copier_new(options->copy_threads, &options->beacon->awake, options->event_fd, &scheduler->copier);
	if (r < 0) {
		scheduler_free(scheduler);
		return r;
	}
	/* what clients of an earlier process were told holds until it is changed */
	scheduler->path = atomic_load(&options->beacon->local_path);
	atomic_store(&options->beacon->cache_kib, (uint32_t)(copy_cache() / 1024));
	atomic_init(&scheduler->wanted_path, scheduler->path);
	scheduler->was_direct = scheduler->path == PATH_DIRECT;
	engine_set_direct(scheduler->engine, scheduler->was_direct);
	*ret_scheduler = scheduler;
	return 0;
}

int scheduler_start(struct scheduler *scheduler)
{
	int r;

	scheduler_follow_path(scheduler);
	scheduler_each(scheduler, engine_recover);
	scheduler_awake(scheduler);
	r = -pthread_create(&scheduler->thread, NULL, scheduler_main, scheduler);
	scheduler->started = r == 0;
	/* by its creator: whoever hears that the daemon is ready finds the thread by its name (top -H, ping's test) */
	if (scheduler->started)
		(void)pthread_setname_np(scheduler->thread, "hccld-engine");
	return r;
}

struct scheduler *scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return NULL;
	if (scheduler->started) {
		atomic_store_explicit(&scheduler->stop, true, memory_order_release);
		wake_engine(scheduler->options.event_fd);
		pthread_join(scheduler->thread, NULL);
		/* what is still asked for happens here, with the thread gone */
		engine_abandon_helpers(scheduler->engine);
		scheduler->copier = copier_free(scheduler->copier, scheduler->engine);
		while (scheduler_run_calls(scheduler) || !calls_are_done(&scheduler->calls))
			;
		scheduler_collect(scheduler);
	}
	copier_free(scheduler->copier, scheduler->engine);
	engine_free(scheduler->engine);
	free(scheduler);
	return NULL;
}

void scheduler_yard_add(struct scheduler *scheduler, struct view_yard *yard)
{
	yard->next = atomic_load_explicit(&scheduler->yards, memory_order_relaxed);
	/* the engine thread may take the first one away meanwhile. Release: it finds the yard whole */
	while (!atomic_compare_exchange_weak_explicit(&scheduler->yards, &yard->next, yard, memory_order_release,
						      memory_order_relaxed))
		;
}

void scheduler_yard_remove(struct scheduler *scheduler, struct view_yard *yard)
{
	struct view_yard *first = yard, *previous;

	/* only this thread takes away, so what is not the first stays behind its predecessor */
	if (atomic_compare_exchange_strong_explicit(&scheduler->yards, &first, yard->next, memory_order_acq_rel,
						    memory_order_acquire))
		return;
	for (previous = first; previous->next != yard; previous = previous->next)
		;
	previous->next = yard->next;
}

/* What was stored for the engine thread is looked at soon. */
static void scheduler_nudge(struct scheduler *scheduler)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&scheduler->options.beacon->awake, memory_order_relaxed) != BEACON_AWAKE)
		wake_engine(scheduler->options.event_fd);
}

void scheduler_call(struct scheduler *scheduler, struct scheduler_call *call)
{
	calls_add(&scheduler->calls, call);
	scheduler_nudge(scheduler);
}

void scheduler_set_path(struct scheduler *scheduler, enum beacon_path path)
{
	atomic_store_explicit(&scheduler->wanted_path, (uint32_t)path, memory_order_release);
	scheduler_nudge(scheduler);
}

void scheduler_collect(struct scheduler *scheduler)
{
	struct scheduler_call *call;

	events_collect(&scheduler->events);
	call = calls_collect(&scheduler->calls);
	while (call) {
		struct scheduler_call *next = call->next;

		call->done(call->arg);
		call = next;
	}
}

uint64_t scheduler_passes(const struct scheduler *scheduler)
{
	return atomic_load_explicit(&scheduler->passes, memory_order_relaxed);
}
