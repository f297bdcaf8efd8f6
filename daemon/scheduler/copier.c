/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One mailbox per worker with one writer at a time: EMPTY -> (engine) FULL -> (worker) DONE -> (engine) EMPTY. The slice is written
 * before FULL and its result before DONE (release), read after (acquire). A worker sleeps on the word itself.
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
#include "proto/clock.h"

enum mailbox { MAILBOX_EMPTY, MAILBOX_FULL, MAILBOX_DONE, MAILBOX_STOP };

struct worker {
	_Alignas(HCCLD_CACHE_LINE) _Atomic uint32_t mailbox;
	_Atomic uint32_t sleeping;
	struct engine_slice slice;
	pthread_t thread;
};

struct copier {
	uint32_t count, out;
	struct worker *workers;
};

#define BACKLOG_FOR_HELP (2 * (uint64_t)HCCLD_SLICE)	/* below, handing out costs more than it brings */
#define SPIN_NS 50000

static void futex_sleep(_Atomic uint32_t *word, uint32_t value)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_one(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t worker_wait(struct worker *worker)
{
	uint64_t since = clock_now_ns();
	uint32_t word;

	while ((word = atomic_load_explicit(&worker->mailbox, memory_order_acquire)) != MAILBOX_FULL && word != MAILBOX_STOP) {
		if (clock_now_ns() - since < SPIN_NS) {
			sched_yield();
			continue;
		}
		atomic_store_explicit(&worker->sleeping, 1, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst);
		word = atomic_load_explicit(&worker->mailbox, memory_order_acquire);
		if (word != MAILBOX_FULL && word != MAILBOX_STOP)
			futex_sleep(&worker->mailbox, word);
		atomic_store_explicit(&worker->sleeping, 0, memory_order_relaxed);
	}
	return word;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	while (worker_wait(worker) != MAILBOX_STOP) {
		struct engine_slice *slice = &worker->slice;

		slice->lost = guard_copy(slice->destination, slice->source, slice->bytes, slice->value, slice->non_temporal);
		atomic_store_explicit(&worker->mailbox, MAILBOX_DONE, memory_order_release);
	}
	return NULL;
}

static void worker_post(struct worker *worker, uint32_t word)
{
	atomic_store_explicit(&worker->mailbox, word, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&worker->sleeping, memory_order_relaxed))
		futex_wake_one(&worker->mailbox);
}

static void copier_stop(struct copier *copier)
{
	for (uint32_t i = 0; i < copier->count; i++) {
		worker_post(&copier->workers[i], MAILBOX_STOP);
		pthread_join(copier->workers[i].thread, NULL);
	}
}

int copier_new(uint32_t count, struct copier **ret_copier)
{
	struct copier *copier = calloc(1, sizeof(*copier));
	int r;

	if (!copier)
		return -ENOMEM;
	copier->workers = count ? aligned_alloc(HCCLD_CACHE_LINE, count * sizeof(*copier->workers)) : NULL;
	if (count && !copier->workers) {
		free(copier);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		copier->workers[i] = (struct worker){ .mailbox = MAILBOX_EMPTY };
		r = -pthread_create(&copier->workers[i].thread, NULL, worker_main, &copier->workers[i]);
		if (r < 0) {
			copier_stop(copier);
			free(copier->workers);
			free(copier);
			return r;
		}
		copier->count++;
	}
	*ret_copier = copier;
	return 0;
}

static bool worker_collect(struct copier *copier, struct worker *worker, struct engine *engine)
{
	if (atomic_load_explicit(&worker->mailbox, memory_order_acquire) != MAILBOX_DONE)
		return false;
	engine_slice_done(engine, &worker->slice);
	copier->out--;
	atomic_store_explicit(&worker->mailbox, MAILBOX_EMPTY, memory_order_relaxed);
	return true;
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

bool copier_run(struct copier *copier, struct engine *engine)
{
	bool moved = false;

	for (uint32_t i = 0; i < copier->count; i++) {
		struct worker *worker = &copier->workers[i];

		moved |= worker_collect(copier, worker, engine);
		if (engine_backlog(engine) < BACKLOG_FOR_HELP ||
		    atomic_load_explicit(&worker->mailbox, memory_order_relaxed) != MAILBOX_EMPTY)
			continue;
		if (!engine_slice_next(engine, &worker->slice))
			break;
		copier->out++;
		worker_post(worker, MAILBOX_FULL);
		moved = true;
	}
	return moved;
}

bool copier_is_busy(const struct copier *copier)
{
	return copier->out != 0;
}
