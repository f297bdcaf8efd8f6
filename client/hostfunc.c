/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions. The engine knows only that there is one (TASK_HOST); which, this process keeps in a list per stream. A function is due
 * when `completed` has reached its task: the word that says so is the engine's commit, so nothing depends on what the engine told before
 * it was restarted. Whoever takes a function out of its list runs it: under `mutex`, so nobody else does, and nothing puts it back. That
 * number of its own, and no word of the engine, decides that it runs once.
 *
 * Threads sleep on session_host.news (handover.h). What this process changes itself (a list's next function, another thread for
 * it) it tells through that word as well.
 *
 * Host kernels (kernel.c) stand in the same lists. One thread takes them and goes on; the call is over when the last block says so.
 */
#include "client/hostfunc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "client/error.h"
#include "client/kernel.h"
#include "client/order.h"
#include "client/stream_state.h"
#include "proto/feature.h"

/* Owners, besides the threads of the program. */
#define LIBRARY 0u /* the thread of the library */
#define KERNELS 1u /* the one that starts kernels */

struct host_call {
	struct host_call *next;
	struct hccld_stream *stream;
	void (*function)(void *arg);
	void *arg;
	void (*drop)(void *arg); /* of the library's own: instead of `function` if that is not to run */
	struct kernel *kernel;	 /* it is none of these, but a host kernel */
	uint32_t kernel_blocks;
	uint64_t position, end;
	bool blocks, reports;
	bool is_orphan; /* its stream has ended while it ran */
};

/* Lock order: a stream's `submitting`, then this. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER; /* a function has returned */
static struct hccld_stream *streams;			   /* that have functions queued */
static bool has_thread;

static _Thread_local struct host_call *current; /* what this thread is running */
static _Thread_local bool is_library;

static uint64_t self(void)
{
	return is_library ? LIBRARY : (uint64_t)pthread_self();
}

/* ---- lists, with `mutex` ---- */

static uint64_t owner_of(const struct host_call *call)
{
	if (call->kernel)
		return KERNELS;
	return call->reports ? call->stream->host_thread : LIBRARY;
}

static void list_pop(struct hccld_stream *stream)
{
	stream->host_first = stream->host_first->next;
	if (!stream->host_first)
		stream->host_last = NULL;
}

/* It has not begun, and is not going to. */
static void call_drop(struct host_call *call)
{
	if (call->kernel)
		hccld_kernel_over(call->kernel);
	else if (call->drop)
		call->drop(call->arg);
	free(call);
}

/* I5: it is due, but its task was passed over, or taken out. */
static bool is_void(const struct stream_ring *ring, uint64_t position)
{
	uint64_t stopped = atomic_load_explicit(&ring->stopped, memory_order_relaxed);

	return (stopped && position >= stopped) ||
	       position < atomic_load_explicit(&ring->dropped, memory_order_relaxed);
}

/* The function of @stream that @owner is to run now, or NULL. */
static struct host_call *stream_due(struct hccld_stream *stream, uint64_t owner)
{
	struct host_call *call;

	while (!stream->host_running && (call = stream->host_first)) {
		/* acquire: what earlier tasks have written, and I5 */
		if (stream_completed(stream) < call->position)
			return NULL;
		if (!is_void(stream->ring, call->position))
			return owner_of(call) == owner ? call : NULL;
		list_pop(stream);
		call_drop(call);
	}
	return NULL;
}

static struct host_call *find_due(uint64_t owner)
{
	for (struct hccld_stream **at = &streams; *at;) {
		struct hccld_stream *stream = *at;
		struct host_call *call = stream_due(stream, owner);

		if (call)
			return call;
		if (!stream->host_first && !stream->host_running) {
			*at = stream->host_next;
			stream->host_listed = false;
			continue;
		}
		at = &stream->host_next;
	}
	return NULL;
}

/* With `mutex`. */
static void call_begin(struct host_call *call)
{
	struct hccld_stream *stream = call->stream;

	list_pop(stream);
	stream->host_running = call;
	atomic_store_explicit(&stream->ring->host_begun, call->end, memory_order_relaxed);
}

/* With `mutex`: it has returned. */
static void call_end(struct hccld_session *session, struct host_call *call)
{
	struct hccld_stream *stream = call->stream;

	if (!call->is_orphan) {
		struct hccld_handover handover = stream_handover(stream->context, session);

		stream->host_running = NULL;
		/* release: what the function has done is before it. It only grows: those that do not block are passed by later ones */
		atomic_store_explicit(&stream->ring->host_done, call->end, memory_order_release);
		hccld_handover_tell(&handover);
		if (stream->host_first && owner_of(stream->host_first) != self())
			hccld_host_news_tell(session_host(session->region));
	}
	pthread_cond_broadcast(&finished);
	free(call);
}

static int thread_start(struct hccld_session *session);

struct running {
	struct hccld_session *session;
	struct host_call *call;
};

/* The function has ended its thread, by pthread_exit(): for its stream that is the same. Functions that follow need another thread. */
static void run_exit(void *arg)
{
	const struct running *running = arg;

	order_release(running->call->stream);
	current = NULL;
	pthread_mutex_lock(&mutex);
	call_end(running->session, running->call);
	if (is_library) {
		has_thread = false;
		/* if there can be none, the next launch asks for it */
		(void)thread_start(running->session);
	}
	pthread_mutex_unlock(&mutex);
}

/* Unlocks `mutex` while the function runs. */
static void run(struct hccld_session *session, struct host_call *call)
{
	struct running running = { session, call };

	call_begin(call);
	pthread_mutex_unlock(&mutex);
	/* copies before it may still have to be written to memory of the program */
	hccld_stream_run_all_deferred();
	current = call;
	order_acquire(call->stream);
	pthread_cleanup_push(run_exit, &running);
	call->function(call->arg);
	pthread_cleanup_pop(0);
	order_release(call->stream);
	current = NULL;
	pthread_mutex_lock(&mutex);
	call_end(session, call);
}

/* Runs one function; false: none is due. */
static bool run_one(struct hccld_session *session, uint64_t owner)
{
	struct host_call *call;
	int cancel;

	/* a thread that is cancelled in the middle would leave the stream behind */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	call = find_due(owner);
	if (call)
		run(session, call);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	return call != NULL;
}

/* Drops what is never going to run, too. */
static bool is_due(void *arg)
{
	bool due;

	pthread_mutex_lock(&mutex);
	due = find_due(*(const uint64_t *)arg) != NULL;
	pthread_mutex_unlock(&mutex);
	return due;
}

/* Until something may be due, or @deadline. */
static void sleep_until_news(struct hccld_session *session, uint64_t owner, uint64_t deadline)
{
	uint64_t now = clock_now_ns(), left = deadline > now ? deadline - now : 0;

	hccld_host_news_sleep(session_host(session->region), is_due, &owner, deadline == STREAM_NEVER ? UINT64_MAX : left);
}

/* ---- the library's thread ---- */

static void *library_main(void *arg)
{
	struct hccld_session *session = arg;

	is_library = true;
	for (;;)
		if (!run_one(session, LIBRARY))
			sleep_until_news(session, LIBRARY, STREAM_NEVER);
	return NULL;
}

int hccld_host_thread_new(const char *name, void *(*main)(void *arg), void *arg)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t all, before;
	pthread_t thread;
	int r;

	/* signals are the program's, but for those of what the thread itself does */
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return -r;
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	return 0;
}

/* With `mutex`. */
static int thread_start(struct hccld_session *session)
{
	if (has_thread)
		return 0;
	if (hccld_host_thread_new("hccld-host", library_main, session) < 0)
		return hccld_error(CAUSE_HOST_MEMORY, "no thread to run host functions: the limit of processes (ulimit -u) or memory is used up");
	has_thread = true;
	return 0;
}

/* ---- calls ---- */

/* Under the stream's `submitting`: lists are in the order of the tasks. */
static void call_append(void *arg, uint64_t position, uint64_t end)
{
	struct host_call *call = arg;
	struct hccld_stream *stream = call->stream;

	call->position = position;
	call->end = end;
	pthread_mutex_lock(&mutex);
	if (stream->host_last)
		stream->host_last->next = call;
	else
		stream->host_first = call;
	stream->host_last = call;
	if (!stream->host_listed) {
		stream->host_listed = true;
		stream->host_next = streams;
		streams = stream;
	}
	pthread_mutex_unlock(&mutex);
}

static int submit(const struct host_call *content)
{
	struct hccld_stream *stream = content->stream;
	struct task task = { .kind = TASK_HOST,
			     .flags = (content->blocks ? 0 : TASK_NO_BLOCK) | (content->kernel ? TASK_KERNEL : 0),
			     .epoch = content->kernel_blocks,
			     .first_lane = LANE_END };
	struct hccld_making making = { .make = call_append };
	struct host_call *call = malloc(sizeof(*call));
	int r;

	if (!call)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory to queue a host function");
	*call = *content;
	making.arg = call;
	r = hccld_stream_submit_made(stream, &task, NULL, 0, &making);
	/* what fails has not come to call_append() */
	if (r < 0)
		free(call);
	return r;
}

static int launch(const struct host_call *content)
{
	struct hccld_session *session;
	int cancel, r;

	r = hccld_session_need(HCCLD_FEATURE_TASKS, "host functions", &session);
	if (r < 0)
		return r;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	if (!content->reports || !content->stream->host_thread)
		r = thread_start(session);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	return r < 0 ? r : submit(content);
}

int hccld_host_launch(struct hccld_stream *stream, void (*function)(void *arg), void *arg,
		      bool blocks, bool reports)
{
	return launch(&(struct host_call){ .stream = stream, .function = function, .arg = arg,
					   .blocks = blocks, .reports = reports });
}

int hccld_host_launch_own(struct hccld_stream *stream, void (*function)(void *arg),
			  void (*drop)(void *arg), void *arg)
{
	return launch(&(struct host_call){ .stream = stream, .function = function, .drop = drop,
					   .arg = arg, .blocks = true });
}

/* ---- host kernels ---- */

int hccld_host_launch_kernel(struct hccld_stream *stream, struct kernel *kernel, uint32_t blocks)
{
	return submit(&(struct host_call){
		.stream = stream, .kernel = kernel, .kernel_blocks = blocks, .blocks = true });
}

struct kernel *hccld_host_next_kernel(struct hccld_session *session, struct host_call **ret_call)
{
	struct host_call *call;

	for (;;) {
		pthread_mutex_lock(&mutex);
		call = find_due(KERNELS);
		if (call)
			call_begin(call);
		pthread_mutex_unlock(&mutex);
		if (call)
			break;
		sleep_until_news(session, KERNELS, STREAM_NEVER);
	}
	/* as for every host function */
	hccld_stream_run_all_deferred();
	*ret_call = call;
	return call->kernel;
}

void hccld_host_enter(struct host_call *call)
{
	current = call;
}

void hccld_host_kernel_end(struct hccld_session *session, struct host_call *call)
{
	pthread_mutex_lock(&mutex);
	hccld_kernel_over(call->kernel);
	call_end(session, call);
	pthread_mutex_unlock(&mutex);
}

void hccld_host_sweep(void)
{
	uint64_t owner = KERNELS;

	(void)is_due(&owner);
}

int hccld_host_subscribe(uint64_t thread, struct hccld_stream *stream)
{
	int r = 0;

	if (!thread)
		return hccld_error(CAUSE_ARGUMENT, "threadId is 0; expected what pthread_self() gives");
	pthread_mutex_lock(&mutex);
	if (stream->host_thread)
		r = hccld_error(CAUSE_SUBSCRIBED, "thread %#llx is subscribed for the reports of stream %u already",
				(unsigned long long)stream->host_thread, stream->place);
	else
		stream->host_thread = thread;
	pthread_mutex_unlock(&mutex);
	return r;
}

int hccld_host_unsubscribe(uint64_t thread, struct hccld_stream *stream)
{
	struct hccld_session *session;
	int cancel, r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	if (!thread || stream->host_thread != thread) {
		r = hccld_error(CAUSE_SUBSCRIBED, "thread %#llx is not subscribed for the reports of stream %u",
				(unsigned long long)thread, stream->place);
	} else {
		if (stream->host_first)
			r = thread_start(session);
		if (r == 0)
			stream->host_thread = LIBRARY;
	}
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
	if (r == 0)
		hccld_host_news_tell(session_host(session->region));
	return r;
}

static _Thread_local bool has_subscription;

static void find_subscription(struct hccld_stream *stream)
{
	has_subscription |= stream->host_thread == (uint64_t)pthread_self();
}

int hccld_host_process(int64_t timeout_ms)
{
	uint64_t deadline = hccld_deadline(timeout_ms), me = (uint64_t)pthread_self();
	struct hccld_session *session;
	bool has_run = false;
	int r;

	r = hccld_session_get(&session);
	if (r < 0)
		return r;
	if (current)
		return hccld_error(CAUSE_HOST_WAIT, "a host function cannot process reports");
	has_subscription = false;
	pthread_mutex_lock(&mutex);
	hccld_stream_each(find_subscription);
	pthread_mutex_unlock(&mutex);
	if (!has_subscription)
		return hccld_error(CAUSE_NOT_SUBSCRIBED, "thread %#llx is subscribed for the reports of no stream (aclrtSubscribeReport)",
				   (unsigned long long)me);
	for (;;) {
		while (run_one(session, me))
			has_run = true;
		if (has_run)
			return 0;
		if (clock_now_ns() >= deadline)
			return hccld_error(CAUSE_REPORT_TIMEOUT, "no callback became due within %lld ms", (long long)timeout_ms);
		sleep_until_news(session, me, deadline);
	}
}

/* ---- waits and ends ---- */

bool hccld_host_is_inside(void)
{
	return current != NULL;
}

int hccld_host_check_wait(const struct hccld_stream *stream, uint64_t target)
{
	const struct host_call *call, *mine = current;
	bool never;

	if (__builtin_expect(!mine, 1))
		return 0;
	never = mine->blocks && mine->stream == stream && target > mine->position;
	pthread_mutex_lock(&mutex);
	/* a function that only this thread would run */
	for (call = stream->host_first; call && call->position < target; call = call->next)
		never |= owner_of(call) == self();
	pthread_mutex_unlock(&mutex);
	if (!never)
		return 0;
	return hccld_error(CAUSE_HOST_WAIT,
			   "a host %s waits for stream %u, which cannot get there before that %s has returned",
			   mine->blocks ? "kernel" : "function", stream->place, mine->blocks ? "kernel" : "function");
}

void hccld_host_drain(struct hccld_stream *stream)
{
	int cancel;

	if (current)
		return;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	while (stream_is_alive(stream) && (stream->host_running || stream_due(stream, LIBRARY)))
		pthread_cond_wait(&finished, &mutex);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
}

void hccld_host_await_own(void)
{
	struct hccld_stream *stream;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_mutex_lock(&mutex);
	for (stream = streams; stream;) {
		if (!stream->host_running || !stream->host_running->drop) {
			stream = stream->host_next;
			continue;
		}
		pthread_cond_wait(&finished, &mutex);
		stream = streams;
	}
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(cancel, NULL);
}

void hccld_host_stop(struct hccld_stream *stream)
{
	struct kernel *running = NULL;

	hccld_kernel_await_launches(stream);
	pthread_mutex_lock(&mutex);
	while (stream->host_first) {
		struct host_call *call = stream->host_first;

		list_pop(stream);
		call_drop(call);
	}
	/* the library's own are short, and touch memory that the program may free when its stream has ended */
	while (stream->host_running && stream->host_running->drop)
		pthread_cond_wait(&finished, &mutex);
	if (stream->host_running) {
		stream->host_running->is_orphan = true;
		running = stream->host_running->kernel;
	}
	hccld_kernel_forget(stream, running);
	stream->host_running = NULL;
	stream->host_thread = LIBRARY;
	for (struct hccld_stream **at = &streams; stream->host_listed && *at; at = &(*at)->host_next) {
		if (*at != stream)
			continue;
		*at = stream->host_next;
		stream->host_listed = false;
		break;
	}
	pthread_cond_broadcast(&finished);
	pthread_mutex_unlock(&mutex);
	if (running)
		hccld_kernel_keep(stream, running);
}
