/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of programs' own operators: a stream, made with it or an earlier one of the program, and a range of notifies, for a rank or for
 * a context alone. A thread ends with its rank, its stream or its context, whichever goes first. Control thread.
 *
 * Three records are written for one request: notifies, thread, stream. After a kill in between the request comes again, and finds its
 * notifies by its id; a thread without its stream is dropped. They are removed stream first, so what is left then is dropped, too (its
 * notifies are closed before). A thread whose rank is gone after a restart was about to go with it: teardown_orphans() goes on with that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct context;
struct notifies;
struct registry;
struct session;
struct stream;

struct thread {
	struct list link; /* context->threads, or a teardown once it is closing */
	struct context *context;
	struct stream *stream;
	struct notifies *notifies; /* NULL: it has none */
	uint64_t id;		   /* within the session */
	uint64_t rank;		   /* handle; 0: none */
	uint64_t request;	   /* id of the request that made it: it may come again */
	uint32_t engine;	   /* CommEngine */
	uint32_t record;
	bool is_own_stream; /* made with it, and goes with it */
};

struct thread_wish {
	uint64_t rank, request;
	uint32_t engine;
	struct notifies *notifies; /* NULL: none; the caller's if this fails */
	struct stream *stream;	   /* NULL: a new one */
};

/* -ENFILE: the session has HCCLD_THREADS_PER_SESSION; -EMFILE: the user has too many; others from stream_reserve(). */
int thread_new(struct context *context, const struct thread_wish *wish, struct thread **ret_thread);
/* NULL: there is none. */
struct thread *thread_find(struct session *session, uint64_t id);
/* What request @request of @session has got already, before the daemon was restarted; NULL: nothing. */
struct thread *thread_again(struct context *context, uint64_t request);
/* One of a rank, by its handle, or on a stream; NULL: there is none. */
struct thread *thread_first(const struct context *context, uint64_t rank, const struct stream *stream);
/* The rank, by its handle, of the first of the threads on a stream; 0: none. */
uint64_t thread_stream_rank(const struct stream *stream);
/* One whose rank is gone. */
struct thread *thread_first_lost(const struct context *context);
/* After its stream, if that goes, and when the engine has made a pass since notifies_close(): out of records and counts, and freed. */
void thread_remove(struct thread *thread);
/* After streams and notifies. -ENOENT: its stream is missing, or the memory of its notifies; -EPROTO: it does not fit the rest. */
int thread_restore(struct context *context, uint32_t index);
