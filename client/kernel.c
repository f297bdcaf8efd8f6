/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host kernels: threads and vector cores.
 *
 * All blocks of a kernel must run at the same time, and no kernel may wait for the end of another stream's: they may wait for each other.
 *   K1  A stream runs one kernel at a time, of at most `held` blocks.
 *   K2  There are at least as many threads as all streams hold, and the kernels of streams that have ended still use. A launch that cannot
 *       have them is refused. So there is a thread for each block of a kernel that is due.
 *   K3  `held` is what the daemon has granted: it grows before the kernel is queued, and is given back when none has been queued for a
 *       while (LINGER_NS), so that a program which launches one kernel after the other asks once. While a request about it is under way
 *       nobody else changes it.
 *   K4  What a kernel has that runs when its stream ends is its own, under a name, until it has ended: the daemon is told before it takes the
 *       stream away, and again when the kernel is over. So nobody else gets a core on which a block still runs.
 * One thread takes kernels that are due and never runs a block; another one gives back cores. Both and the blocks' threads stay until the
 * process ends, which waits for none of them.
 *
 * Lock order: that of hostfunc.c, then this.
 */
#include "client/kernel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "client/error.h"
#include "client/hostfunc.h"
#include "client/order.h"
#include "client/stream_state.h"
#include "client/strict.h"
#include "proto/feature.h"

#define LINGER_NS 10000000u
#define ARGS_ALIGNMENT 64u

struct kernel {
	struct kernel *next; /* in the queue, or in `ended` */
	void (*function)(uint32_t block_index, uint32_t block_count, void *args);
	struct hccld_stream *stream;
	struct host_call *call;
	uint64_t number; /* of the launch */
	uint32_t blocks;
	uint32_t taken;	       /* blocks that have a thread */
	uint64_t holder;       /* K4; 0: its stream has its cores */
	bool is_kept, is_over; /* of those with a holder: the daemon knows it; it has ended */
	_Atomic uint32_t left; /* that have not returned */
	_Alignas(ARGS_ALIGNMENT) unsigned char args[];
};

/* What is to be done when kernels with a lower number are over. */
struct sequel {
	struct sequel *next;
	void (*action)(void *base, uint64_t size);
	void *base;
	uint64_t size;
	uint64_t before;  /* these kernels */
	uint64_t kernels; /* of them that are not over */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;	  /* the queue has something */
static pthread_cond_t settled = PTHREAD_COND_INITIALIZER; /* a request, or a launch, is over */
static pthread_cond_t holding = PTHREAD_COND_INITIALIZER; /* a stream holds cores, or `ended` has something */
static struct kernel *first, *last;			  /* the queue: due, with blocks that have no thread yet */
static struct hccld_stream *holders;
static struct hccld_session *session;
static uint32_t threads;
static uint64_t promised; /* K2: what all streams hold */
static uint64_t orphaned; /* K2: blocks of streams that have ended */
static struct kernel *ended; /* K4: over, and the daemon has to hear of it */
static uint64_t last_holder;
static bool has_starter, has_collector;
static uint64_t launched; /* kernels ever, also those that are being launched */
static uint64_t unfinished; /* of them, that are not over */
static struct sequel *sequels;

/* ---- requests ---- */

static int request_take(const struct hccld_stream *stream, uint32_t count)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__TakeCores take = HCCLD__CONTROL__TAKE_CORES__INIT;

	take.context = stream->context->id;
	take.stream = stream->place;
	take.count = count;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_TAKE_CORES;
	request.take_cores = &take;
	return hccld_call_simple(session->connection, &request);
}

/* Of @stream, or (NULL) of the kernel called @holder. */
static int request_give(const struct hccld_stream *stream, uint64_t holder)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__GiveCores give = HCCLD__CONTROL__GIVE_CORES__INIT;

	give.context = stream ? stream->context->id : 0;
	give.stream = stream ? stream->place : 0;
	give.holder = holder;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_GIVE_CORES;
	request.give_cores = &give;
	return hccld_call_simple(session->connection, &request);
}

static int request_keep(const struct hccld_stream *stream, const struct kernel *kernel)
{
	Hccld__Control__Request request = HCCLD__CONTROL__REQUEST__INIT;
	Hccld__Control__KeepCores keep = HCCLD__CONTROL__KEEP_CORES__INIT;

	keep.context = stream->context->id;
	keep.stream = stream->place;
	keep.count = kernel->blocks;
	keep.holder = kernel->holder;
	request.body_case = HCCLD__CONTROL__REQUEST__BODY_KEEP_CORES;
	request.keep_cores = &keep;
	return hccld_call_simple(session->connection, &request);
}

/* ---- threads ---- */

static void queue_push(struct kernel *kernel)
{
	kernel->next = NULL;
	if (last)
		last->next = kernel;
	else
		first = kernel;
	last = kernel;
}

/* A block for this thread. */
static struct kernel *queue_take(uint32_t *ret_block)
{
	struct kernel *kernel = first;

	*ret_block = kernel->taken++;
	if (kernel->taken == kernel->blocks) {
		first = kernel->next;
		if (!first)
			last = NULL;
	}
	return kernel;
}

static int thread_new(void);

static void block_end(struct kernel *kernel)
{
	order_release(kernel->stream);
	hccld_strict_close();
	hccld_host_enter(NULL);
	/* what all blocks have done is before what the last one says */
	if (atomic_fetch_sub_explicit(&kernel->left, 1, memory_order_acq_rel) == 1)
		hccld_host_kernel_end(session, kernel->call);
}

/* The block has ended its thread, by pthread_exit(): for its kernel that is the same, and K2 needs another thread. */
static void block_exit(void *kernel)
{
	block_end(kernel);
	pthread_mutex_lock(&mutex);
	threads--;
	/* if there can be none, the next launch asks for it */
	(void)thread_new();
	pthread_mutex_unlock(&mutex);
}

/* For debuggers. The kernel takes 15 characters. */
static void name_thread(uint32_t block)
{
	static _Thread_local uint32_t named; /* + 1 */
	char name[32];

	if (named == block + 1)
		return;
	named = block + 1;
	snprintf(name, sizeof(name), block < 100 ? "hccld-kernel-%u" : "hccld-k-%u", block);
	(void)prctl(PR_SET_NAME, name);
}

/* Inlined into a function with a cleanup handler gcc warns of its setjmp(). */
__attribute__((noinline)) static void block_begin(struct kernel *kernel, uint32_t block)
{
	name_thread(block);
	hccld_host_enter(kernel->call);
	hccld_strict_open();
	order_acquire(kernel->stream);
}

static void *block_main(void *arg)
{
	struct kernel *kernel;
	uint32_t block;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_mutex_lock(&mutex);
	for (;;) {
		while (!first)
			pthread_cond_wait(&work, &mutex);
		kernel = queue_take(&block);
		pthread_mutex_unlock(&mutex);
		block_begin(kernel, block);
		pthread_cleanup_push(block_exit, kernel);
		kernel->function(block, kernel->blocks, kernel->args);
		pthread_cleanup_pop(0);
		block_end(kernel);
		pthread_mutex_lock(&mutex);
	}
	return NULL;
}

/* With `mutex`. */
static int thread_new(void)
{
	int r = hccld_host_thread_new("hccld-kernel", block_main, NULL);

	threads += r == 0;
	return r;
}

static void *starter_main(void *arg)
{
	for (;;) {
		struct host_call *call;
		struct kernel *kernel = hccld_host_next_kernel(session, &call);

		pthread_mutex_lock(&mutex);
		kernel->call = call;
		queue_push(kernel);
		for (uint32_t i = 0; i < kernel->blocks; i++)
			pthread_cond_signal(&work);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

/* ---- vector cores, with `mutex` ---- */

static void holder_unlink(struct hccld_stream *stream)
{
	struct hccld_stream **at = &holders;

	while (*at && *at != stream)
		at = &(*at)->kernels.next;
	if (*at)
		*at = stream->kernels.next;
}

static void set_held(struct hccld_stream *stream, uint32_t held)
{
	struct kernel_stream *kernels = &stream->kernels;

	if (!kernels->held && held) {
		kernels->next = holders;
		holders = stream;
		pthread_cond_signal(&holding);
	} else if (kernels->held && !held) {
		holder_unlink(stream);
	}
	promised = promised - kernels->held + held;
	kernels->held = held;
}

/* K3. Unlocks `mutex` meanwhile. */
static int ask(struct hccld_stream *stream, uint32_t count)
{
	int r;

	stream->kernels.is_asking = true;
	pthread_mutex_unlock(&mutex);
	r = count ? request_take(stream, count) : request_give(stream, 0);
	pthread_mutex_lock(&mutex);
	stream->kernels.is_asking = false;
	/* one that cannot be given back is not there any more */
	if (r == 0 || !count)
		set_held(stream, count);
	pthread_cond_broadcast(&settled);
	return r;
}

static struct hccld_stream *find_idle(uint64_t before_ns)
{
	struct hccld_stream *stream = holders;

	while (stream && (stream->kernels.queued || stream->kernels.is_asking || !stream_is_alive(stream) ||
			  stream->kernels.idle_since_ns > before_ns))
		stream = stream->kernels.next;
	return stream;
}

/* K4. Unlocks `mutex` meanwhile. */
static void give_ended(void)
{
	struct kernel *kernel;

	while ((kernel = ended)) {
		ended = kernel->next;
		pthread_mutex_unlock(&mutex);
		(void)request_give(NULL, kernel->holder);
		free(kernel);
		pthread_mutex_lock(&mutex);
	}
}

static void *collector_main(void *arg)
{
	const struct timespec linger = { .tv_nsec = LINGER_NS };
	struct hccld_stream *stream;

	pthread_mutex_lock(&mutex);
	for (;;) {
		give_ended();
		while (!holders && !ended)
			pthread_cond_wait(&holding, &mutex);
		if (ended)
			continue;
		pthread_mutex_unlock(&mutex);
		nanosleep(&linger, NULL);
		hccld_host_sweep();
		pthread_mutex_lock(&mutex);
		while ((stream = find_idle(clock_now_ns() - LINGER_NS)))
			(void)ask(stream, 0);
	}
	return NULL;
}

/* ---- launching ---- */

/* With `mutex`: K2, and those that serve all. */
static int threads_ensure(void)
{
	int r = 0;

	if (!has_starter)
		r = hccld_host_thread_new("hccld-starter", starter_main, NULL);
	has_starter |= r == 0;
	if (r == 0 && !has_collector)
		r = hccld_host_thread_new("hccld-cores", collector_main, NULL);
	has_collector |= r == 0;
	while (r == 0 && threads < promised + orphaned)
		r = thread_new();
	if (r < 0)
		return hccld_error(CAUSE_HOST_MEMORY,
				   "no threads for the blocks of a host kernel: this process has %u for them, and needs %llu; the limit of processes (ulimit -u) or memory is used up",
				   threads, (unsigned long long)(promised + orphaned));
	return 0;
}

static void queued_remove(struct kernel_stream *kernels)
{
	if (--kernels->queued == 0)
		kernels->idle_since_ns = clock_now_ns();
}

/* With `mutex`: the kernel of that launch does not run any more. */
static void launch_over(uint64_t number)
{
	unfinished--;
	for (struct sequel **at = &sequels; *at;) {
		struct sequel *sequel = *at;

		if (number >= sequel->before || --sequel->kernels) {
			at = &sequel->next;
			continue;
		}
		*at = sequel->next;
		sequel->action(sequel->base, sequel->size);
		free(sequel);
	}
}

static void launch_end(struct hccld_stream *stream, const struct kernel *failed)
{
	pthread_mutex_lock(&mutex);
	if (failed) {
		queued_remove(&stream->kernels);
		launch_over(failed->number);
	}
	stream->kernels.launching--;
	pthread_cond_broadcast(&settled);
	pthread_mutex_unlock(&mutex);
}

/* Counts the kernel among those that are queued, with its cores and threads. */
static int launch_begin(struct hccld_session *found, struct hccld_stream *stream, struct kernel *kernel)
{
	const uint32_t blocks = kernel->blocks;
	struct kernel_stream *kernels = &stream->kernels;
	int r = 0;

	pthread_mutex_lock(&mutex);
	/* whoever ends it waits for those that are counted, and counts from 0 then: a later one must not be taken off that */
	if (!stream_is_alive(stream)) {
		pthread_mutex_unlock(&mutex);
		return hccld_stream_handle_error(stream);
	}
	if (!session)
		session = found;
	kernels->launching++;
	kernels->queued++;
	kernel->number = launched++;
	unfinished++;
	while (kernels->is_asking)
		pthread_cond_wait(&settled, &mutex);
	if (!stream_is_alive(stream))
		r = hccld_stream_handle_error(stream);
	else if (kernels->held < blocks)
		r = ask(stream, blocks);
	if (r == 0)
		r = threads_ensure();
	pthread_mutex_unlock(&mutex);
	if (r < 0)
		launch_end(stream, kernel);
	return r;
}

static struct kernel *kernel_new(struct hccld_stream *stream, uint32_t blocks, const void *args, size_t size)
{
	struct kernel *kernel = NULL;

	if (size < SIZE_MAX / 2)
		kernel = aligned_alloc(ARGS_ALIGNMENT,
				       (sizeof(*kernel) + size + ARGS_ALIGNMENT - 1) / ARGS_ALIGNMENT * ARGS_ALIGNMENT);
	if (!kernel)
		return NULL;
	memset(kernel, 0, sizeof(*kernel));
	kernel->stream = stream;
	kernel->blocks = blocks;
	atomic_store_explicit(&kernel->left, blocks, memory_order_relaxed);
	if (size)
		memcpy(kernel->args, args, size);
	return kernel;
}

int hccld_kernel_launch(struct hccld_stream *stream, void (*function)(uint32_t block_index, uint32_t block_count, void *args),
			uint32_t blocks, const void *args, size_t size)
{
	struct hccld_session *found;
	struct kernel *kernel;
	int cancel, r;

	r = hccld_session_need(HCCLD_FEATURE_RESOURCES, "host kernels", &found);
	if (r < 0)
		return r;
	kernel = kernel_new(stream, blocks, args, size);
	if (!kernel)
		return hccld_error(CAUSE_HOST_MEMORY, "no memory for %zu bytes of arguments of a host kernel", size);
	kernel->function = function;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	r = launch_begin(found, stream, kernel);
	if (r == 0) {
		r = hccld_host_launch_kernel(stream, kernel, blocks);
		launch_end(stream, r < 0 ? kernel : NULL);
	}
	pthread_setcancelstate(cancel, NULL);
	if (r < 0)
		free(kernel);
	return r;
}

void hccld_kernels_then(void (*action)(void *base, uint64_t size), void *base, uint64_t size)
{
	struct sequel *sequel = NULL;

	pthread_mutex_lock(&mutex);
	if (unfinished)
		sequel = malloc(sizeof(*sequel));
	if (sequel) {
		*sequel = (struct sequel){ sequels, action, base, size, launched, unfinished };
		sequels = sequel;
	} else if (!unfinished) {
		action(base, size);
	}
	/* no memory, and they run: it is never done, which harms nobody but this process */
	pthread_mutex_unlock(&mutex);
}

bool hccld_kernels_run(void)
{
	bool run;

	pthread_mutex_lock(&mutex);
	run = unfinished != 0;
	pthread_mutex_unlock(&mutex);
	return run;
}

/* ---- for hostfunc.c ---- */

/* With `mutex`: a kernel without a stream is over, and the daemon knows of it. */
static void ended_push(struct kernel *kernel)
{
	kernel->next = ended;
	ended = kernel;
	pthread_cond_signal(&holding);
}

void hccld_kernel_over(struct kernel *kernel)
{
	pthread_mutex_lock(&mutex);
	launch_over(kernel->number);
	if (kernel->holder) {
		orphaned -= kernel->blocks;
		kernel->is_over = true;
		if (kernel->is_kept)
			ended_push(kernel);
		pthread_mutex_unlock(&mutex);
		return;
	}
	queued_remove(&kernel->stream->kernels);
	pthread_mutex_unlock(&mutex);
	free(kernel);
}

void hccld_kernel_await_launches(struct hccld_stream *stream)
{
	pthread_mutex_lock(&mutex);
	while (stream->kernels.launching || stream->kernels.is_asking)
		pthread_cond_wait(&settled, &mutex);
	pthread_mutex_unlock(&mutex);
}

void hccld_kernel_forget(struct hccld_stream *stream, struct kernel *running)
{
	pthread_mutex_lock(&mutex);
	if (running) {
		orphaned += running->blocks;
		running->holder = ++last_holder;
	}
	stream->kernels.queued = 0;
	if (stream->kernels.held)
		set_held(stream, 0);
	pthread_mutex_unlock(&mutex);
}

void hccld_kernel_keep(struct hccld_stream *stream, struct kernel *running)
{
	/* if it fails the connection is gone: what comes next fails, too, and says so */
	if (request_keep(stream, running) < 0)
		hccld_error_forget();
	pthread_mutex_lock(&mutex);
	running->is_kept = true;
	if (running->is_over)
		ended_push(running);
	pthread_mutex_unlock(&mutex);
}
