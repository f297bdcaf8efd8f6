/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stream.c, wait.c, submit.c and deferred.c share; for nobody else. Locks of a stream, in this order: `submitting` (producers; the
 * only writers of slots and tail), `deferring` (the actions; held while they run, so that whoever reports completion has seen them done),
 * then the locks of memory and connection.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/handover.h"
#include "client/kernel.h"
#include "client/stream.h"
#include "proto/clock.h"

#define STREAM_NEVER UINT64_MAX
#define STREAM_SLEEP_MS 500u /* a sleeper looks whether the daemon is still there */

enum stream_state {
	STREAM_FREE = 0,
	STREAM_ALIVE = 1,
	STREAM_ENDED = 2,   /* hccld_stream_destroy() finishes it */
	STREAM_STOPPED = 3, /* hccld_stream_end_all() finishes it */
};

struct deferred {
	struct deferred *next;
	uint64_t position; /* due when `completed` has reached it */
	uint64_t order;	   /* in which the actions of all streams were queued */
	struct hccld_after after;
};

struct hccld_stream {
	_Alignas(256) _Atomic uint32_t state;
	uint32_t place; /* in the session region */
	struct hccld_context *context;
	uint64_t owner; /* hccld_context_owner() */
	bool is_of_thread; /* hccld_stream_adopt() */
	struct stream_ring *ring;
	_Atomic uint64_t tail; /* of the ring; our own copy counts */
	_Atomic uint64_t serial; /* of the use of this entry */
	struct hccld_stream_settings settings;
	pthread_mutex_t submitting;
	_Atomic uint64_t held; /* end of the newest task that waits, or is a host function */
	_Atomic bool is_full; /* whoever has `submitting` waits for room */
	_Atomic uint32_t queries; /* in vain */
	pthread_mutex_t deferring;
	_Atomic uint64_t deferred_position; /* of `first`; STREAM_NEVER */
	struct deferred *first, *last;
	/* hostfunc.c, with its mutex */
	struct host_call *host_first, *host_last, *host_running;
	struct hccld_stream *host_next; /* in the list of streams with calls */
	uint64_t host_thread; /* that processes its reports; 0: the library's */
	bool host_listed;
	struct kernel_stream kernels;
};

static inline bool stream_is_alive(const struct hccld_stream *stream)
{
	return atomic_load_explicit(&stream->state, memory_order_acquire) == STREAM_ALIVE;
}

static inline uint64_t stream_completed(const struct hccld_stream *stream)
{
	/* acquire: what the tasks have written is visible */
	return atomic_load_explicit(&stream->ring->completed, memory_order_acquire);
}

static inline struct hccld_handover stream_handover(const struct hccld_context *context,
						    const struct hccld_session *session)
{
	return (struct hccld_handover){ context->words, context->bit_word, context->bit,
					session->beacon, session->event_fd };
}

/* ---- stream.c ---- */

int hccld_stream_handle_error(void *handle);
/* Calls @found for every stream of the process that is alive. */
void hccld_stream_each(void (*found)(struct hccld_stream *stream));

/* ---- wait.c ---- */

/* Of CLOCK_MONOTONIC, in ns; STREAM_NEVER for -1. */
uint64_t hccld_deadline(int64_t timeout_ms);
/*
 * Until `completed` has reached @target. -ETOOMANYREFS (no text) at @deadline, -ECANCELED if the stream ended meanwhile, -ENOTCONN. Not a
 * point of cancellation: neither syscall() nor sched_yield() is one.
 */
int hccld_stream_wait_completed(struct hccld_stream *stream, uint64_t target, uint64_t deadline);
/* All that is queued; then its actions, then the first error in flight. -ETOOMANYREFS: no text. */
int hccld_stream_wait_until(struct hccld_stream *stream, uint64_t deadline);
int hccld_stream_timeout_error(int64_t timeout_ms);
/* Threads that sleep on @context look again. */
void hccld_stream_wake_sleepers(struct hccld_context *context);

/* ---- submit.c ---- */

/* The context has gone, and the segments of its side buffers with it. */
void hccld_stream_forget_sides(struct hccld_context *context);

/* ---- deferred.c ---- */

/* NULL without memory; text set. */
struct deferred *hccld_deferred_new(const struct hccld_after *after);
/* With `submitting` held: positions never go back in the list. */
void hccld_deferred_push(struct hccld_stream *stream, struct deferred *deferred);
/* Do streams wait for one another? */
bool hccld_deferred_is_entangled(void);
/* Runs what is due. Whoever comes while another thread runs an action waits for it: what is completed must be visible. */
void hccld_deferred_run(struct hccld_stream *stream, uint64_t completed);
/* The stream is over: actions up to @completed run, the others are cancelled. */
void hccld_deferred_finish(struct hccld_stream *stream, uint64_t completed);
