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
/* The stream of a handle; NULL gives the default stream of the current context. -EBADF: unknown handle; text set. Lock-free. */
int hccld_stream_get(void *handle, struct hccld_stream **ret_stream);
struct hccld_context *hccld_stream_context(struct hccld_stream *stream);

/*
 * Copies one task into the ring and tells the engine. @task: kind, rank, timeout_ms, first_lane are the caller's, the rest is filled in.
 * @items: item_count slots as they are to stand in shared memory (lanes linked, cursors and numbers zeroed); more than fit a quarter of
 * the ring go to a side buffer. Blocks while the ring is full. Several threads may submit to one stream.
 */
int hccld_stream_submit(struct hccld_stream *stream, struct task *task, const struct item *items, uint32_t item_count);

/* Waits until all that was submitted before the call is done. @timeout_ms -1: no limit; expiry -ETOOMANYREFS (507046). Returns the
 * first error in flight that was not reported yet (text set); reported once. */
int hccld_stream_wait(struct hccld_stream *stream, int64_t timeout_ms);
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
 * For device.c: every stream of a context. wait: returns the first error met, after waiting for all. stop: handles become unknown,
 * waiters leave; before the daemon takes the context down. end: afterwards.
 */
int hccld_stream_wait_all(struct hccld_context *context, int64_t timeout_ms);
void hccld_stream_stop_all(struct hccld_context *context);
void hccld_stream_end_all(struct hccld_context *context);
