/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few boxes per worker, filled and collected in order, so that a worker finds its next slice while the engine copies one itself. Each
 * box has one writer at a time: EMPTY -> (engine) FULL -> (worker) DONE -> (engine) EMPTY. The slice is written before FULL and its
 * result before DONE (release), read after (acquire). A worker sleeps on the word of the box that it comes to next.
 */
#include "scheduler/copier.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "scheduler/guard.h"
#include "scheduler/wake.h"
#include "proto/clock.h"
#include "proto/yielding.h"

#define BOXES 4u
#define BACKLOG_FOR_HELP (uint64_t)HCCLD_SLICE	/* below, handing out costs more than it brings */
#define SPIN_NS 50000

enum box_state { BOX_EMPTY, BOX_FULL, BOX_DONE, BOX_STOP };

struct box {
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t state;
	struct engine_slice slice;
};

struct worker {
	struct box boxes[BOXES];
	_Atomic uint32_t sleeping;
	uint32_t filled, collected;	/* by the engine, so far */
	struct yielding yielding;
	const _Atomic uint32_t *awake;	/* enum beacon_awake */
	int event_fd;
	pthread_t thread;
};

struct copier {
	uint32_t count, crowded_count, out;
	struct worker *workers;
};

static void futex_sleep(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_one(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t worker_wait(struct worker *worker, struct box *box)
{
	uint64_t since = clock_now_ns();
	uint32_t state;

	while ((state = atomic_load_explicit(&box->state, memory_order_acquire)) != BOX_FULL && state != BOX_STOP) {
		uint64_t now = clock_now_ns();

		if (now - since < SPIN_NS && yielding_step(&worker->yielding, 0, since, now))
			continue;
		atomic_store_explicit(&worker->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		state = atomic_load_explicit(&box->state, memory_order_acquire);
		if (state != BOX_FULL && state != BOX_STOP)
			futex_sleep(&box->state, state);
		atomic_store_explicit(&worker->sleeping, 0, memory_order_relaxed);
	}
	return state;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	pthread_setname_np(pthread_self(), "hccld-copy");
	for (uint32_t i = 0;; i = (i + 1) % BOXES) {
		struct box *box = &worker->boxes[i];
		struct engine_slice *slice = &box->slice;

		if (worker_wait(worker, box) == BOX_STOP)
			return NULL;
		slice->lost = guard_copy(slice->destination, slice->source, slice->bytes, slice->value, slice->non_temporal);
		atomic_store_explicit(&box->state, BOX_DONE, memory_order_release);
		/* with the engine's barrier between awake = 0 and its look at the boxes */
		atomic_thread_fence(memory_order_seq_cst);
		if (atomic_load_explicit(worker->awake, memory_order_relaxed) != BEACON_AWAKE)
			wake_engine(worker->event_fd);
	}
}

static struct box *worker_free_box(struct worker *worker)
{
	struct box *box = &worker->boxes[worker->filled % BOXES];

	return atomic_load_explicit(&box->state, memory_order_relaxed) == BOX_EMPTY ? box : NULL;
}

static void worker_post(struct worker *worker, enum box_state state)
{
	struct box *box = &worker->boxes[worker->filled++ % BOXES];

	atomic_store_explicit(&box->state, state, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&worker->sleeping, memory_order_relaxed))
		futex_wake_one(&box->state);
}

static void copier_stop(struct copier *copier)
{
	for (uint32_t i = 0; i < copier->count; i++) {
		worker_post(&copier->workers[i], BOX_STOP);
		pthread_join(copier->workers[i].thread, NULL);
	}
}

/* Half of the cores are the clients', one is the engine's. */
static uint32_t spare_cores(void)
{
	cpu_set_t set;
	int cores = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return cores >= 2 ? (uint32_t)cores / 2 - 1 : 0;
}

int copier_new(uint32_t count, const _Atomic uint32_t *awake, int event_fd, struct copier **ret_copier)
{
	struct copier *copier = calloc(1, sizeof(*copier));
	uint32_t spare;
	int r;

	if (!copier)
		return -ENOMEM;
	copier->workers = count ? aligned_alloc(HCCLD_CACHE_LINE, count * sizeof(*copier->workers)) : NULL;
	if (count && !copier->workers) {
		free(copier);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		copier->workers[i] = (struct worker){ .awake = awake, .event_fd = event_fd };
		r = -pthread_create(&copier->workers[i].thread, NULL, worker_main, &copier->workers[i]);
		if (r < 0) {
			copier_stop(copier);
			free(copier->workers);
			free(copier);
			return r;
		}
		copier->count++;
	}
	spare = spare_cores();
	copier->crowded_count = count < spare ? count : spare;
	*ret_copier = copier;
	return 0;
}

static bool worker_collect(struct copier *copier, struct worker *worker, struct engine *engine)
{
	uint32_t before = worker->collected;

	for (;; worker->collected++, copier->out--) {
		struct box *box = &worker->boxes[worker->collected % BOXES];

		if (atomic_load_explicit(&box->state, memory_order_acquire) != BOX_DONE)
			return worker->collected != before;
		engine_slice_done(engine, &box->slice);
		atomic_store_explicit(&box->state, BOX_EMPTY, memory_order_relaxed);
	}
}

struct copier *copier_free(struct copier *copier, struct engine *engine)
{
	if (!copier)
		return NULL;
	while (copier->out) {
		for (uint32_t i = 0; i < copier->count; i++)
			worker_collect(copier, &copier->workers[i], engine);
		sched_yield();
	}
	copier_stop(copier);
	free(copier->workers);
	free(copier);
	return NULL;
}

static bool worker_help(struct copier *copier, struct worker *worker, struct engine *engine)
{
	struct box *box = worker_free_box(worker);

	if (engine_backlog(engine) < BACKLOG_FOR_HELP || !box || !engine_slice_next(engine, &box->slice))
		return false;
	copier->out++;
	worker_post(worker, BOX_FULL);
	return true;
}

bool copier_run(struct copier *copier, struct engine *engine, bool crowded)
{
	uint32_t count = crowded ? copier->crowded_count : copier->count;
	bool moved = false, helped;

	for (uint32_t i = 0; i < copier->count; i++)
		moved |= worker_collect(copier, &copier->workers[i], engine);
	/* one slice each, again and again: what is left is spread over the workers */
	do {
		helped = false;
		for (uint32_t i = 0; i < count; i++)
			helped |= worker_help(copier, &copier->workers[i], engine);
		moved |= helped;
	} while (helped);
	return moved;
}

bool copier_is_busy(const struct copier *copier)
{
	return copier->out != 0;
}

bool copier_has_done(const struct copier *copier)
{
	for (uint32_t i = 0; i < copier->count; i++) {
		const struct worker *worker = &copier->workers[i];

		if (atomic_load_explicit(&worker->boxes[worker->collected % BOXES].state, memory_order_acquire) == BOX_DONE)
			return true;
	}
	return false;
}
