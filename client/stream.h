/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams: submitting tasks, waiting, errors in flight. Submit and wait are the hot path: no request to the daemon, no allocation, and
 * a system call only to wake or to sleep.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/session.h"
#include "proto/ring.h"

struct hccld_stream;	/* what an aclrtStream points to */

/* A stream is its own handle; handles are looked up, never followed. */
int hccld_stream_new(struct hccld_context *context, struct hccld_stream **ret_stream);
/* Waits for queued work unless @force. The handle is invalid afterwards. */
int hccld_stream_destroy(void *handle, bool force);
/* Those of a context that the program has made (current.h): waits for each and ends it. */
void hccld_stream_destroy_owned(struct hccld_context *context, uint64_t owner);
/*
 * For thread.c: the stream at @place, which the daemon has made with a thread. It is not destroyed by itself. -ENXIO: the context that had
 * @id is gone, and the stream with it.
 */
int hccld_stream_adopt(struct hccld_context *context, uint64_t id, uint32_t place, struct hccld_stream **ret_stream);
/*
 * Its end, around the request that takes the thread away. close: the handle is unknown, and nobody writes to the ring any more; false: it
 * has ended already. closed: the daemon has let go of it.
 */
bool hccld_stream_close(struct hccld_stream *stream, uint64_t *ret_completed);
void hccld_stream_closed(struct hccld_stream *stream, uint64_t completed);
/* Before that: waits for what is queued, host functions included. Errors in flight are forgotten. */
void hccld_stream_finish_work(struct hccld_stream *stream);
/* The stream of a handle; NULL gives the default stream of the current context. -EBADF: unknown handle; text set. Lock-free. */
int hccld_stream_get(void *handle, struct hccld_stream **ret_stream);
/* The library's own, of a context; the program has no handle of it. */
int hccld_stream_get_inner(struct hccld_context *context, struct hccld_stream **ret_stream);
struct hccld_context *hccld_stream_context(struct hccld_stream *stream);

/*
 * Copies one task into the ring and tells the engine. @task: kind, rank, timeout_ms, first_lane are the caller's, the rest is filled in.
 * @items: item_count slots as they are to stand in shared memory (lanes linked, cursors and numbers zeroed); more than fit a quarter of
 * the ring go to a side buffer. Blocks while the ring is full. Several threads may submit to one stream.
 */
int hccld_stream_submit(struct hccld_stream *stream, struct task *task, const struct item *items, uint32_t item_count);

/*
 * The same for a task that depends on its place in the stream: @make runs when there is room, before the engine can see the task, which
 * has the slots [@position, @end). It may change @items and must not block.
 */
struct hccld_making {
	void (*make)(void *arg, uint64_t position, uint64_t end);
	void *arg;
};
int hccld_stream_submit_made(struct hccld_stream *stream, struct task *task, const struct item *items, uint32_t item_count,
			     const struct hccld_making *making);

/* A place in a stream, for as long as that lives. */
struct hccld_point {
	struct hccld_stream *stream;	/* NULL: none */
	uint64_t serial, position;
};
/* Has the stream still to come to it? A stream that has ended has not. */
bool hccld_point_is_pending(const struct hccld_point *point);
struct hccld_point hccld_point_of(struct hccld_stream *stream, uint64_t position);
/* Waits until it is not. -ETOOMANYREFS (no text) after @timeout_ms; -1: never. Reports no errors in flight. */
int hccld_point_wait(const struct hccld_point *point, int64_t timeout_ms);
/* Streams wait for each other from now on: who finds one complete runs what the others have left to do in this process, too. */
void hccld_stream_entangle(void);
/* Runs what all streams have left to do in this process for tasks that are done. */
void hccld_stream_run_all_deferred(void);

/* aclrtStreamGetId: below HCCLD_STREAMS_PER_SESSION. */
uint32_t hccld_stream_id(const struct hccld_stream *stream);
/* Is it still the stream that had that serial number? */
uint64_t hccld_stream_serial(const struct hccld_stream *stream);
bool hccld_stream_is(const struct hccld_stream *stream, uint64_t number);
/* Errors in flight so far, told or not. The newest; false: there are only @known. */
uint32_t hccld_stream_fault_count(const struct hccld_stream *stream);
bool hccld_stream_fault(const struct hccld_stream *stream, uint32_t known, struct fault *ret_fault);
/* How many more this process can have. */
uint32_t hccld_stream_room(void);
/* aclrtGetThreadLastTaskId; false: this thread has submitted nothing. */
bool hccld_thread_last_task(uint32_t *ret_task);

/* What the program says about a stream, for it to ask again. */
struct hccld_stream_settings {
	uint32_t priority, flags;
	uint32_t overflow_switch, custom_tag, cache_op_info;
};
struct hccld_stream_settings *hccld_stream_settings(struct hccld_stream *stream);
/* 1: tasks after an error are passed over, and new ones refused with it. -EOPNOTSUPP. */
int hccld_stream_set_failure_mode(struct hccld_stream *stream, uint64_t mode);
uint64_t hccld_stream_failure_mode(const struct hccld_stream *stream);
/*
 * Ends what is queued, or (@only_head) what runs now: with CAUSE_STREAM_ABORTED, or, of all streams of @context (@stream NULL), with
 * CAUSE_TASK_ABORTED. @deadline_ms 0: as for every request.
 */
int hccld_stream_abort(struct hccld_context *context, struct hccld_stream *stream, bool only_head, uint32_t deadline_ms);

/* Waits until all that was submitted before the call is done. @timeout_ms -1: no limit; expiry -ETOOMANYREFS (507046). Returns the
 * first error in flight that was not reported yet (text set); reported once. */
int hccld_stream_wait(struct hccld_stream *stream, int64_t timeout_ms);
/* Has the calling thread, in its waits, lately shared its processor with others that run? */
bool hccld_stream_wait_is_crowded(void);
/* 1 if everything is done, 0 if not, negative errno. Does not report errors in flight. */
int hccld_stream_query(struct hccld_stream *stream);

/* Runs @action(@arg) in the first thread that finds the task submitted last complete (wait, query, submit, destroy); for staging of
 * pageable memory and side buffers. */
int hccld_stream_defer(struct hccld_stream *stream, void (*action)(void *arg), void *arg);

/*
 * The same for one task, tied to it without a gap. @cancel runs instead if the stream ends before the task is done. @writes, @size: memory
 * that @action writes, for hccld_stream_settle().
 */
struct hccld_after {
	void (*action)(void *arg);
	void (*cancel)(void *arg);
	void *arg;
	const void *writes;
	size_t size;
};
int hccld_stream_submit_after(struct hccld_stream *stream, struct task *task, const struct item *items, uint32_t item_count,
			      const struct hccld_after *after);
/* Before memory is read that an earlier task of the stream may still have to write through its action: waits for that task. */
int hccld_stream_settle(struct hccld_stream *stream, const void *address, size_t size);
/*
 * Does the stream wait for something that may write memory of the program (a host function, another stream, somebody who writes a value)?
 * If not, all such things that it has waited for are done.
 */
bool hccld_stream_is_held(const struct hccld_stream *stream);

/*
 * For device.c: every stream of a context. wait: returns the first error met, after waiting for all. stop: handles become unknown,
 * waiters leave; before the daemon takes the context down. end: afterwards.
 */
int hccld_stream_wait_all(struct hccld_context *context, int64_t timeout_ms);
void hccld_stream_stop_all(struct hccld_context *context);
void hccld_stream_end_all(struct hccld_context *context);
