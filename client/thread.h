/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, as HCCL calls execution queues: a stream and notifies, of a communicator or of a device alone. Handles are numbers that are
 * looked up and never followed. A thread ends with its communicator, its stream, its device or by hccld_threads_free(); whoever has it
 * pinned may go on using what is in it: its stream answers that it is gone.
 *
 * Any OS thread. All return 0 or a negative errno with the text set.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/notify_task.h"
#include "client/session.h"

struct fault;
struct hccld_comm;
struct hccld_stream;

#define HCCLD_THREADS_PER_COMM 40u	   /* LOCAL_STREAM_MAX_NUM of HCCL */
#define HCCLD_THREAD_NOTIFIES_PER_COMM 64u /* LOCAL_NOTIFY_MAX_NUM */
#define HCCLD_THREADS_PER_CALL 1000u	   /* HcommThreadAlloc */
#define HCCLD_THREAD_ENGINES 6u		   /* CommEngine */

/* What the daemon knows as one thread; one that is acquired again with more notifies has several. */
#define HCCLD_THREAD_PARTS 8u
struct hccld_thread_part {
	uint64_t id, segment;
	uint32_t first, count; /* notifies */
};

enum hccld_thread_kind {
	HCCLD_THREAD_PLAIN,	/* of HcclThreadAcquire and its kin */
	HCCLD_THREAD_STREAM,	/* on a stream of the program */
	HCCLD_THREAD_DEDICATED, /* `use` says for what */
	HCCLD_THREAD_FREE,	/* of HcommThreadAlloc: without a communicator */
	HCCLD_THREAD_ISSUE,	/* of the library itself: what is queued without a thread */
	HCCLD_THREAD_AWAIT,	/* the same for what waits, one for each OS thread that does */
};

struct hccld_thread {
	_Atomic uint64_t word; /* generation << 32 | alive << 31 | pins; see thread.c */
	enum hccld_thread_kind kind;
	int32_t use;
	uint32_t engine;
	uint64_t rank; /* the daemon's handle of (communicator, rank); 0: none */
	uint64_t comm; /* its id of the communicator */
	struct hccld_context *context;
	uint64_t context_id;
	struct hccld_stream *stream;
	uint64_t stream_serial;
	_Atomic uint32_t part_count; /* stored after the part */
	struct hccld_thread_part parts[HCCLD_THREAD_PARTS];
	/* thread.c, with its lock: errors of its stream that HcclCommResume has forgiven; a wait of an OS thread uses it; it is being ended */
	uint32_t faults;
	bool is_busy, is_closing, has_stream;
	uint64_t completed; /* while it is being ended */
	_Atomic bool is_taken; /* the place is in use */
};

/* @count threads of the communicator with @notify_count notifies each: all or none. -ENOSR, -ENOSPC, -EDQUOT. */
int hccld_threads_acquire(struct hccld_comm *comm, const char *function, uint32_t engine, uint32_t count, uint32_t notify_count,
			  uint64_t *ret_handles);
/* The thread on @stream, a handle; one that is there gets the notifies that it lacks. */
int hccld_thread_acquire_stream(struct hccld_comm *comm, const char *function, uint32_t engine, void *stream, uint32_t notify_count,
				uint64_t *ret_handle);
/* The thread for @use, the same at each call; it gets the notifies that it lacks, too. */
int hccld_thread_acquire_dedicated(struct hccld_comm *comm, const char *function, uint32_t engine, int32_t use, uint32_t notify_count,
				   uint64_t *ret_handle);
/* Without a communicator, on the current device, with @notify_count notifies each. */
int hccld_threads_allocate(uint32_t engine, uint32_t count, uint32_t notify_count, uint64_t *ret_handles);
/* Threads of hccld_threads_allocate(): all or, with -ENOENT, none. Waits for what is queued. */
int hccld_threads_free(const uint64_t *handles, uint32_t count);
/* A thread of the library's own; that for waits is the caller's until hccld_thread_release(). Pinned. */
int hccld_thread_take_own(struct hccld_comm *comm, enum hccld_thread_kind kind, struct hccld_thread **ret_thread);
void hccld_thread_release(struct hccld_thread *thread);

/* For texts: "AICPU". */
const char *hccld_engine_name(uint32_t engine);
/* Pins the thread of a handle until hccld_thread_put(). -EBADF: there is none, or its stream was destroyed. */
int hccld_thread_get(const char *function, uint64_t handle, struct hccld_thread **ret_thread);
void hccld_thread_put(struct hccld_thread *thread);
static inline void hccld_thread_putp(struct hccld_thread **thread)
{
	if (*thread)
		hccld_thread_put(*thread);
	*thread = NULL;
}
/* -EFAULT: it has not so many notifies (the code of HCCL for that is that of a NULL pointer). */
int hccld_thread_notify(const struct hccld_thread *thread, const char *function, uint32_t index, struct hccld_notify_place *ret_place);

/* For wait.c: "stream 3 waits for notify 1 of a thread of communicator x: ", as far as it is known whose notify a fault is about. */
void hccld_thread_describe_wait(struct hccld_stream *stream, const struct fault *fault, char *buffer, size_t size);

/*
 * For comm.c, around the request to leave: what the rank has ends; a lock is held in between. What is queued in streams of its threads is
 * dropped: a rank can leave whatever happens.
 */
void hccld_threads_close(uint64_t rank);
void hccld_threads_closed(uint64_t rank);
/* The cause of an error in flight in one of its threads, 0: none. */
uint32_t hccld_threads_fault(uint64_t rank);
/* HcclCommResume: those so far are forgotten. */
void hccld_threads_resume(uint64_t rank);
/* For device.c: the threads of a context have ended with it. */
void hccld_threads_forget(const struct hccld_context *context);
