/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine thread: which context and which copy runs next. The control thread talks to it through calls (below) and through views
 * (engine/view.h); nothing here knows sockets, messages or the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/line.h"
#include "engine/engine.h"

#ifndef HEARTBEAT_MS	/* tests take more */
#define HEARTBEAT_MS 100
#endif
#define SCHEDULER_CALL_NS 200000u	/* after which a run() that has more to do ends: contexts of all wait meanwhile */

struct scheduler;

struct scheduler_options {
	struct beacon *beacon;		/* writable mapping; `awake` is the engine thread's */
	int event_fd;			/* eventfd, non-blocking; clients write it when `awake` is too little for them; stays the caller's */
	uint32_t copy_threads;		/* 0: the engine thread copies alone */
	void *data;
	/* Any thread: make the control thread call scheduler_collect() soon (uv_async_send). */
	void (*notify)(void *data);
	/* From scheduler_collect(), on the control thread. The session may be gone already. */
	void (*liar)(void *data, uint64_t session, const char *what);
	void (*type_mismatch)(void *data, uint64_t comm, uint32_t source, uint32_t destination, uint8_t source_type,
			      uint8_t destination_type);
	/* As in struct engine_host; whoever answers says so with a call of engine_look_at_held(). NULL: nobody does. */
	void (*no_room)(void *data, uint64_t comm, uint32_t source, uint32_t destination, uint32_t pools);
};

/* Something to do on the engine thread between two steps, and then on the control thread. Embedded in what it is about. */
struct scheduler_call {
	bool (*run)(struct engine *engine, void *arg);	/* engine thread; false: not yet, run again soon */
	void (*done)(void *arg);	/* control thread, in scheduler_collect(); may free the call */
	void *arg;
	struct line *line;	/* NULL: no other call waits for this one, nor it for others */
	bool has_more;			/* set by run() before it says false: nothing to wait for, but the others have their turn */
	/* private */
	struct scheduler_call *next;
	struct engine_wait wait;
};

/* -ENOMEM. Nothing runs until scheduler_start(): add the yards (and their contexts) of a previous process first. */
int scheduler_new(const struct scheduler_options *options, struct scheduler **ret_scheduler);
/* Recovers all contexts (R9) and starts the threads. -EAGAIN and others from pthread_create. */
int scheduler_start(struct scheduler *scheduler);
/* Stops the threads; outstanding calls are run and done before it returns. Takes NULL. */
struct scheduler *scheduler_free(struct scheduler *scheduler);

/* Control thread. The yard is looked at from now on; for as long as the scheduler lives. */
void scheduler_yard_add(struct scheduler *scheduler, struct view_yard *yard);
/*
 * In the run() of a call, on the engine thread: the yard, which has no contexts, is walked no more and
 * may be freed once the call is done.
 */
void scheduler_yard_remove(struct scheduler *scheduler, struct view_yard *yard);
/* Control thread. Calls begin in the order given, but behind what their line waits for. */
void scheduler_call(struct scheduler *scheduler, struct scheduler_call *call);
/* Control thread, after notify(). */
void scheduler_collect(struct scheduler *scheduler);
/*
 * Control thread: what beacon.local_path is to be. The engine thread stores it, and nobody else: it has to be ready for threads of clients that
 * take contexts. They may do so for a while after PATH_ENGINE is back; limits of pending bytes hold from then on. At first it is what it was
 * in memory.
 */
void scheduler_set_path(struct scheduler *scheduler, enum beacon_path path);
/* Control thread, any time: passes of the engine loop so far (for the watchdog). */
uint64_t scheduler_passes(const struct scheduler *scheduler);
