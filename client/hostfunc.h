/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: functions of the program that run at their place in a stream, in a thread of this process: the one that was subscribed
 * for the stream's reports, or one of the library's that starts with the first use.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct hccld_session;
struct hccld_stream;
struct host_call;
struct kernel;

/*
 * Queues @function(@arg). @blocks: later tasks of the stream wait until it has returned. @reports: the subscribed thread runs it, if there
 * is one when it becomes due. Nothing runs it twice; it does not run if its stream ends, is aborted or stops at an error before.
 */
int hccld_host_launch(struct hccld_stream *stream, void (*function)(void *arg), void *arg, bool blocks, bool reports);
/* For memory.c: a short function of the library's own that waits for nobody. @drop(@arg) instead if it does not run; neither if this fails. */
int hccld_host_launch_own(struct hccld_stream *stream, void (*function)(void *arg), void (*drop)(void *arg), void *arg);
/* @thread: as pthread_self() gives it. -ENOCSI: the stream has one. */
int hccld_host_subscribe(uint64_t thread, struct hccld_stream *stream);
/* What is queued goes to the library's thread. -ENOCSI: the stream has another one, or none. */
int hccld_host_unsubscribe(uint64_t thread, struct hccld_stream *stream);
/*
 * Runs what is due in this thread's streams; waits for it up to @timeout_ms (-1: for ever). -ENODATA: nothing came; -EUNATCH: this thread is
 * subscribed to nothing.
 */
int hccld_host_process(int64_t timeout_ms);

/* Does a host function run in this thread? */
bool hccld_host_is_inside(void);
/* For wait.c: -EDEADLK if the caller runs in a host function without which the stream cannot come to @target. */
int hccld_host_check_wait(const struct hccld_stream *stream, uint64_t target);
/* For stream.c: until the library's thread has run what is due. Nothing if a host function of this stream asks. */
void hccld_host_drain(struct hccld_stream *stream);
/* For stream_control.c: until none of the library's own runs, after tasks were taken out. */
void hccld_host_await_own(void);
/* For stream.c: forgets what has not begun; the ring is not touched any more afterwards. */
void hccld_host_stop(struct hccld_stream *stream);

/* ---- for kernel.c ---- */

/* A detached thread to which no signals of the program go. A negative errno; no text. */
int hccld_host_thread_new(const char *name, void *(*main)(void *arg), void *arg);
/* Queues @kernel. From then on hccld_kernel_over() comes once for it, unless this fails. */
int hccld_host_launch_kernel(struct hccld_stream *stream, struct kernel *kernel, uint32_t blocks);
/* Waits for a kernel that is due, and takes it. One thread asks. */
struct kernel *hccld_host_next_kernel(struct hccld_session *session, struct host_call **ret_call);
/* This thread runs a block of it; NULL: no longer. */
void hccld_host_enter(struct host_call *call);
/* All blocks have returned: the stream goes on. */
void hccld_host_kernel_end(struct hccld_session *session, struct host_call *call);
/* Kernels that are not going to run, because their stream has stopped at an error, are over. */
void hccld_host_sweep(void);
