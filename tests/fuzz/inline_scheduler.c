/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of daemon/scheduler/scheduler.h without threads: the engine passes when the fuzzer says so, between two turns of
 * the control thread.
 */
#include "tests/fuzz/inline_scheduler.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/hole.h"
#include "proto/clock.h"
#include "scheduler/events.h"
#include "scheduler/scheduler.h"
#include "tests/fuzz/input.h"

#define TRANSFERS 64u
#define LOOKS_MAX 1000u	/* in one turn: a context that always has something is no fault */

struct scheduler {
	struct scheduler_options options;
	struct engine *engine;
	struct view_yard *yards;
	struct scheduler_call *queue, **queue_end;
	struct scheduler_call *finished, **finished_end;
	struct events events;
};

static void no_guard(void)
{
}

static const void *nothing_lost(void)
{
	return NULL;
}

static struct sigaction previous;

/* Pages of lazy memory are made when they are touched, as by scheduler/guard.c. What is no hole ends as it would without us. */
static void bus_fault(int number, siginfo_t *info, void *context)
{
	if (!hole_fill(info->si_addr, true))
		sigaction(SIGBUS, &previous, NULL);
}

static void bus_watch(void)
{
	struct sigaction action = { .sa_sigaction = bus_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (!previous.sa_sigaction)
		insist(sigaction(SIGBUS, &action, &previous) == 0);
}

int scheduler_new(const struct scheduler_options *options, struct scheduler **ret_scheduler)
{
	struct scheduler *scheduler = calloc(1, sizeof(*scheduler));
	struct engine_host host;
	int r;

	insist(scheduler);
	bus_watch();
	scheduler->options = *options;
	scheduler->events.options = &scheduler->options;
	host = events_host(&scheduler->events);
	host.guard_begin = no_guard;
	host.guard_end = nothing_lost;
	scheduler->queue_end = &scheduler->queue;
	scheduler->finished_end = &scheduler->finished;
	r = engine_new(&host, TRANSFERS, &scheduler->engine);
	insist(r == 0);
	*ret_scheduler = scheduler;
	return 0;
}

static struct view_context *context_at(struct view_yard *yard, uint32_t index)
{
	return atomic_load_explicit(&yard->contexts[index], memory_order_acquire);
}

int scheduler_start(struct scheduler *scheduler)
{
	for (struct view_yard *yard = scheduler->yards; yard; yard = yard->next)
		for (uint32_t i = 0; i < HCCLD_YARD_CONTEXTS; i++)
			if (context_at(yard, i))
				engine_recover(scheduler->engine, context_at(yard, i));
	return 0;
}

static bool run_calls(struct scheduler *scheduler)
{
	bool worked = false;

	while (scheduler->queue) {
		struct scheduler_call *call = scheduler->queue;

		call->has_more = false;
		if (!call->run(scheduler->engine, call->arg))
			return worked | call->has_more;
		scheduler->queue = call->next;
		if (!scheduler->queue)
			scheduler->queue_end = &scheduler->queue;
		call->next = NULL;
		*scheduler->finished_end = call;
		scheduler->finished_end = &call->next;
		scheduler->options.notify(scheduler->options.data);
		worked = true;
	}
	return worked;
}

static bool run_yard(struct scheduler *scheduler, struct view_yard *yard)
{
	bool worked = false;

	for (uint32_t word = 0; word < HCCLD_YARD_CONTEXTS / 64; word++) {
		uint64_t bits = atomic_load(&yard->yard->bits[word]);

		for (; bits; bits &= bits - 1) {
			uint32_t bit = (uint32_t)__builtin_ctzll(bits);
			struct view_context *context = context_at(yard, word * 64 + bit);

			if (context)
				worked |= engine_look(scheduler->engine, context);
			else
				atomic_fetch_and(&yard->yard->bits[word], ~(1ull << bit));
		}
	}
	return worked;
}

static bool run_slice(struct scheduler *scheduler)
{
	struct engine_slice slice;

	if (!engine_slice_next(scheduler->engine, &slice))
		return false;
	if (slice.source)
		memmove(slice.destination, slice.source, slice.bytes);
	else
		memset(slice.destination, slice.value, slice.bytes);
	slice.lost = NULL;
	engine_slice_done(scheduler->engine, &slice);
	return true;
}

bool scheduler_turn(struct scheduler *scheduler)
{
	bool worked = false, again = true;

	for (uint32_t i = 0; again && i < LOOKS_MAX; i++) {
		again = run_calls(scheduler);
		for (struct view_yard *yard = scheduler->yards; yard; yard = yard->next)
			again |= run_yard(scheduler, yard);
		again |= run_slice(scheduler);
		worked |= again;
	}
	return worked;
}

void scheduler_beat(struct scheduler *scheduler, uint64_t later_ns)
{
	for (struct view_yard *yard = scheduler->yards; yard; yard = yard->next)
		for (uint32_t i = 0; i < HCCLD_YARD_CONTEXTS; i++) {
			struct view_context *context = context_at(yard, i);

			if (!context)
				continue;
			engine_mend(scheduler->engine, context);
			engine_check_timeouts(scheduler->engine, context, clock_now_ns() + later_ns);
			engine_wake_forgotten(context);
		}
	engine_look_at_held(scheduler->engine);
	(void)engine_poll(scheduler->engine);
}

void scheduler_set_path(struct scheduler *scheduler, enum beacon_path path)
{
}

struct scheduler *scheduler_free(struct scheduler *scheduler)
{
	if (!scheduler)
		return NULL;
	while (run_calls(scheduler) || scheduler->queue)
		run_slice(scheduler);
	scheduler_collect(scheduler);
	engine_free(scheduler->engine);
	free(scheduler);
	return NULL;
}

void scheduler_yard_add(struct scheduler *scheduler, struct view_yard *yard)
{
	yard->next = scheduler->yards;
	scheduler->yards = yard;
}

void scheduler_yard_remove(struct scheduler *scheduler, struct view_yard *yard)
{
	struct view_yard **link = &scheduler->yards;

	while (*link && *link != yard)
		link = &(*link)->next;
	if (*link)
		*link = yard->next;
}

void scheduler_call(struct scheduler *scheduler, struct scheduler_call *call)
{
	call->next = NULL;
	*scheduler->queue_end = call;
	scheduler->queue_end = &call->next;
}

void scheduler_collect(struct scheduler *scheduler)
{
	struct scheduler_call *call = scheduler->finished;

	events_collect(&scheduler->events);
	scheduler->finished = NULL;
	scheduler->finished_end = &scheduler->finished;
	while (call) {
		struct scheduler_call *next = call->next;

		call->done(call->arg);
		call = next;
	}
}

uint64_t scheduler_passes(const struct scheduler *scheduler)
{
	return 0;
}
