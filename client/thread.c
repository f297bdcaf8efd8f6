/* SPDX-License-Identifier: Apache-2.0 */
/* Making and ending threads: which communicator has which, and how many it may have. */
#include "client/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "client/channel.h"
#include "client/comm.h"
#include "client/error.h"
#include "client/stream.h"
#include "client/thread_request.h"
#include "client/thread_table.h"
#include "proto/ring.h"

#define threads hccld_thread_places

static int closing_cancel; /* between close and closed */

/* ---- making ---- */

struct wish {
	enum hccld_thread_kind kind;
	int32_t use;
	uint32_t engine, notify_count;
	uint64_t rank, comm;
	struct hccld_context *context;
	uint64_t context_id;
	struct hccld_stream *stream; /* NULL: a new one */
};

static struct wish wish_of(const struct hccld_comm *comm, enum hccld_thread_kind kind, uint32_t engine, uint32_t notify_count)
{
	return (struct wish){ .kind = kind,
			      .engine = engine,
			      .notify_count = notify_count,
			      .rank = comm->task_rank,
			      .comm = comm->comm,
			      .context = comm->on,
			      .context_id = comm->context };
}

static int part_new(const struct wish *wish, struct hccld_thread_part *ret_part, uint32_t *ret_place)
{
	const struct hccld_thread_wish request = { .context = wish->context_id,
						   .rank = wish->rank,
						   .engine = wish->engine,
						   .notify_count = wish->notify_count,
						   .stream = wish->stream ? hccld_stream_id(wish->stream) + 1 : 0 };

	return hccld_thread_request_new(&request, ret_part, ret_place);
}

static int thread_fill(struct hccld_thread *thread, const struct wish *wish)
{
	uint32_t place;
	int r;

	r = part_new(wish, &thread->parts[0], &place);
	if (r < 0)
		return r;
	thread->stream = wish->stream;
	if (!wish->stream) {
		r = hccld_stream_adopt(wish->context, wish->context_id, place, &thread->stream);
		if (r < 0 && r != -ENXIO)
			hccld_thread_request_end(thread->parts[0].id);
		if (r < 0)
			return r;
	}
	thread->stream_serial = hccld_stream_serial(thread->stream);
	thread->has_stream = !wish->stream;
	thread->kind = wish->kind;
	thread->use = wish->use;
	thread->engine = wish->engine;
	thread->rank = wish->rank;
	thread->comm = wish->comm;
	thread->context = wish->context;
	thread->context_id = wish->context_id;
	thread->faults = hccld_stream_fault_count(thread->stream);
	thread->is_busy = thread->is_closing = false;
	atomic_store_explicit(&thread->part_count, 1, memory_order_relaxed);
	/* release: whoever gets the handle sees the fields */
	atomic_fetch_or_explicit(&thread->word, THREAD_ALIVE, memory_order_release);
	return 0;
}

static int thread_new(const struct wish *wish, struct hccld_thread **ret_thread)
{
	struct hccld_thread *thread = hccld_thread_place_take();
	int r;

	if (!thread)
		return hccld_error(CAUSE_LIMIT, "this process has %u threads of communicators, the most it can have", THREAD_PLACES);
	r = thread_fill(thread, wish);
	if (r < 0) {
		hccld_thread_place_free(thread);
		return r;
	}
	*ret_thread = thread;
	return 0;
}

/* ---- ending ---- */

/* Nobody begins to use it from now on, and nobody writes into its ring; the daemon has yet to hear of it. */
static void close_begin(struct hccld_thread *thread)
{
	thread->is_closing = hccld_thread_take_life(thread);
	if (thread->is_closing && thread->has_stream)
		thread->has_stream = hccld_stream_close(thread->stream, &thread->completed);
}

static void close_end(struct hccld_thread *thread)
{
	thread->is_closing = false;
	if (thread->has_stream)
		hccld_stream_closed(thread->stream, thread->completed);
	hccld_thread_put(thread);
}

static void thread_end(struct hccld_thread *thread)
{
	close_begin(thread);
	if (!thread->is_closing)
		return;
	for (uint32_t i = 0; i < atomic_load_explicit(&thread->part_count, memory_order_relaxed); i++)
		hccld_thread_request_end(thread->parts[i].id);
	close_end(thread);
}

/* The program has destroyed the stream: the daemon has taken the thread away with it. */
static void drop_lost(void)
{
	for (uint32_t i = 0; i < hccld_thread_limit; i++)
		if (hccld_thread_is_alive(&threads[i]) && !hccld_stream_is(threads[i].stream, threads[i].stream_serial) && hccld_thread_take_life(&threads[i]))
			hccld_thread_put(&threads[i]);
}

void hccld_threads_close(uint64_t rank)
{
	closing_cancel = hccld_threads_lock();
	for (uint32_t i = 0; i < hccld_thread_limit; i++)
		if (hccld_thread_is_alive(&threads[i]) && threads[i].rank == rank)
			close_begin(&threads[i]);
}

void hccld_threads_closed(uint64_t rank)
{
	for (uint32_t i = 0; i < hccld_thread_limit; i++)
		if (threads[i].is_closing && threads[i].rank == rank)
			close_end(&threads[i]);
	hccld_threads_unlock(closing_cancel);
}

void hccld_threads_forget(const struct hccld_context *context)
{
	int cancel = hccld_threads_lock();

	for (uint32_t i = 0; i < hccld_thread_limit; i++)
		if (hccld_thread_is_alive(&threads[i]) && threads[i].context == context && hccld_thread_take_life(&threads[i]))
			hccld_thread_put(&threads[i]);
	hccld_threads_unlock(cancel);
}

/* ---- of communicators ---- */

struct held {
	uint32_t threads, streams, notifies;
};

static uint32_t notifies_of(const struct hccld_thread *thread)
{
	uint32_t count = 0;

	/* acquire: the parts are whole */
	for (uint32_t i = 0; i < atomic_load_explicit(&thread->part_count, memory_order_acquire); i++)
		count += thread->parts[i].count;
	return count;
}

/* What the communicator has of what the program has asked for. */
static struct held held_by(uint64_t rank)
{
	struct held held = { 0 };

	for (uint32_t i = 0; i < hccld_thread_limit; i++) {
		const struct hccld_thread *thread = &threads[i];

		if (!hccld_thread_is_alive(thread) || thread->rank != rank || thread->kind >= HCCLD_THREAD_FREE)
			continue;
		held.threads++;
		held.streams += thread->has_stream;
		held.notifies += notifies_of(thread);
	}
	return held;
}

static int room_check(const struct hccld_comm *comm, const char *function, uint32_t count, uint32_t notify_count)
{
	const struct held held = held_by(comm->task_rank);
	const uint64_t asked = (uint64_t)(count ? count : 1) * notify_count;

	/* as HCCL: what can never be had is a wrong argument once it has given something */
	if (held.threads && (count > HCCLD_THREADS_PER_COMM || notify_count > HCCLD_THREAD_NOTIFIES_PER_COMM))
		return hccld_error(CAUSE_ARGUMENT, "%s: threadNum is %u, notifies of each %u; expected at most %u threads and %u notifies",
				   function, count, notify_count, HCCLD_THREADS_PER_COMM, HCCLD_THREAD_NOTIFIES_PER_COMM);
	if (count > HCCLD_THREADS_PER_COMM || held.streams + count > HCCLD_THREADS_PER_COMM)
		return hccld_error(CAUSE_STREAMS,
				   "%s: threads of communicator %s: %u, and %u asked; a communicator has at most %u: destroy it, or use them again",
				   function, comm->name, held.streams, count, HCCLD_THREADS_PER_COMM);
	if (held.notifies + asked > HCCLD_THREAD_NOTIFIES_PER_COMM)
		return hccld_error(CAUSE_NOTIFIES,
				   "%s: the threads of communicator %s have %u notifies, %" PRIu64 " asked; those of a communicator have at most %u",
				   function, comm->name, held.notifies, asked, HCCLD_THREAD_NOTIFIES_PER_COMM);
	return 0;
}

/* With the lock: the communicator is not being left, and did not end with its device. */
static int comm_check(const struct hccld_comm *comm, const char *function)
{
	if (hccld_comm_is_alive(comm))
		return hccld_comm_check_context(comm);
	return hccld_error(CAUSE_BAD_HANDLE, "%s: communicator %s is being destroyed by another thread", function, comm->name);
}

/* @count of them, or none. With the lock. */
static int threads_new(const struct wish *wish, uint32_t count, uint64_t *ret_handles)
{
	struct hccld_thread *made[HCCLD_THREADS_PER_CALL];
	uint32_t made_count = 0;
	int r = 0;

	while (r == 0 && made_count < count) {
		r = thread_new(wish, &made[made_count]);
		made_count += r == 0;
	}
	for (uint32_t i = 0; i < made_count; i++) {
		if (r < 0)
			thread_end(made[i]);
		else
			ret_handles[i] = hccld_thread_handle(made[i]);
	}
	return r;
}

int hccld_threads_acquire(struct hccld_comm *comm, const char *function, uint32_t engine, uint32_t count, uint32_t notify_count,
			  uint64_t *ret_handles)
{
	const struct wish wish = wish_of(comm, HCCLD_THREAD_PLAIN, engine, notify_count);
	int cancel = hccld_threads_lock(), r;

	drop_lost();
	r = comm_check(comm, function);
	if (r == 0)
		r = room_check(comm, function, count, notify_count);
	if (r == 0)
		r = threads_new(&wish, count, ret_handles);
	hccld_threads_unlock(cancel);
	return r;
}

/* With the lock. */
static struct hccld_thread *find(uint64_t rank, enum hccld_thread_kind kind, int32_t use, const struct hccld_stream *stream)
{
	for (uint32_t i = 0; i < hccld_thread_limit; i++) {
		struct hccld_thread *thread = &threads[i];

		if (hccld_thread_is_alive(thread) && thread->rank == rank && thread->kind == kind && thread->use == use && !thread->is_busy &&
		    (!stream || thread->stream == stream))
			return thread;
	}
	return NULL;
}

/* One that is acquired again, for an operator with more notifies: it keeps its handle, and gets what is missing. */
static int thread_extend(struct hccld_thread *thread, const struct hccld_comm *comm, const char *function, uint32_t wanted)
{
	uint32_t have = notifies_of(thread), parts = atomic_load_explicit(&thread->part_count, memory_order_relaxed), place;
	struct wish wish = wish_of(comm, thread->kind, thread->engine, wanted - have);
	int r;

	if (wanted <= have)
		return 0;
	r = room_check(comm, function, 0, wanted - have);
	if (r < 0)
		return r;
	if (parts == HCCLD_THREAD_PARTS)
		return hccld_error(CAUSE_NOTIFIES,
				   "%s: this thread got more notifies %u times, and has %u now; ask for all at the first call",
				   function, parts - 1, have);
	wish.stream = thread->stream;
	r = part_new(&wish, &thread->parts[parts], &place);
	if (r == 0)
		atomic_store_explicit(&thread->part_count, parts + 1, memory_order_release);
	return r;
}

int hccld_thread_acquire_stream(struct hccld_comm *comm, const char *function, uint32_t engine, void *stream, uint32_t notify_count,
				uint64_t *ret_handle)
{
	struct wish wish = wish_of(comm, HCCLD_THREAD_STREAM, engine, notify_count);
	struct hccld_thread *thread;
	int cancel, r;

	r = hccld_comm_stream(comm, function, stream, &wish.stream);
	if (r < 0)
		return r;
	cancel = hccld_threads_lock();
	drop_lost();
	r = comm_check(comm, function);
	thread = find(comm->task_rank, HCCLD_THREAD_STREAM, 0, wish.stream);
	if (r == 0 && thread)
		r = thread_extend(thread, comm, function, notify_count);
	else if (r == 0)
		r = room_check(comm, function, 0, notify_count);
	if (r == 0 && !thread)
		r = thread_new(&wish, &thread);
	if (r == 0)
		*ret_handle = hccld_thread_handle(thread);
	hccld_threads_unlock(cancel);
	return r;
}

int hccld_thread_acquire_dedicated(struct hccld_comm *comm, const char *function, uint32_t engine, int32_t use, uint32_t notify_count,
				   uint64_t *ret_handle)
{
	struct wish wish = wish_of(comm, HCCLD_THREAD_DEDICATED, engine, notify_count);
	struct hccld_thread *thread;
	int cancel = hccld_threads_lock(), r;

	wish.use = use;
	r = comm_check(comm, function);
	thread = find(comm->task_rank, HCCLD_THREAD_DEDICATED, use, NULL);
	if (r == 0 && thread)
		r = thread_extend(thread, comm, function, notify_count);
	else if (r == 0)
		r = room_check(comm, function, 1, notify_count);
	if (r == 0 && !thread)
		r = thread_new(&wish, &thread);
	if (r == 0)
		*ret_handle = hccld_thread_handle(thread);
	hccld_threads_unlock(cancel);
	return r;
}

int hccld_thread_take_own(struct hccld_comm *comm, enum hccld_thread_kind kind, struct hccld_thread **ret_thread)
{
	const struct wish wish = wish_of(comm, kind, 0, 0);
	struct hccld_thread *thread;
	int cancel = hccld_threads_lock(), r;

	r = comm_check(comm, "the channel");
	thread = find(comm->task_rank, kind, 0, NULL);
	if (r == 0 && !thread)
		r = thread_new(&wish, &thread);
	if (r == 0) {
		thread->is_busy = kind == HCCLD_THREAD_AWAIT;
		atomic_fetch_add_explicit(&thread->word, 1, memory_order_relaxed);
		*ret_thread = thread;
	}
	hccld_threads_unlock(cancel);
	return r;
}

void hccld_thread_release(struct hccld_thread *thread)
{
	int cancel = hccld_threads_lock();

	thread->is_busy = false;
	hccld_threads_unlock(cancel);
	hccld_thread_put(thread);
}

/* ---- of devices ---- */

int hccld_threads_allocate(uint32_t engine, uint32_t count, uint32_t notify_count, uint64_t *ret_handles)
{
	struct wish wish = { .kind = HCCLD_THREAD_FREE, .engine = engine, .notify_count = notify_count };
	int cancel, r;

	r = hccld_context_current(&wish.context);
	if (r < 0)
		return r;
	wish.context_id = wish.context->id;
	cancel = hccld_threads_lock();
	r = threads_new(&wish, count, ret_handles);
	hccld_threads_unlock(cancel);
	return r;
}

static int free_check(uint64_t handle, struct hccld_thread **ret_thread)
{
	int r = hccld_thread_get("HcommThreadFree", handle, ret_thread);

	if (r == -EBADF)
		return hccld_error(CAUSE_NOT_FOUND, "HcommThreadFree: thread is %#llx: that is no thread of this process, or it has ended",
				   (unsigned long long)handle);
	if (r == 0 && (*ret_thread)->kind != HCCLD_THREAD_FREE) {
		hccld_thread_put(*ret_thread);
		return hccld_error(CAUSE_NOT_FOUND,
				   "HcommThreadFree: thread is %#llx, which belongs to a communicator: it ends with HcclCommDestroy",
				   (unsigned long long)handle);
	}
	return r;
}

/* A thread that is named twice is not there for the second time. */
static int repeat_check(const uint64_t *handles, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (handles[i] == handles[j])
				return hccld_error(CAUSE_NOT_FOUND, "HcommThreadFree: threads[%u] is %#llx, as threads[%u]: expected each thread once",
						   i, (unsigned long long)handles[i], j);
	return 0;
}

/* The pins that free_check() has taken go. */
static void free_all(struct hccld_thread *const *pinned, uint32_t count, bool is_wanted)
{
	int cancel;

	for (uint32_t i = 0; i < count && is_wanted; i++)
		hccld_stream_finish_work(pinned[i]->stream);
	cancel = hccld_threads_lock();
	for (uint32_t i = 0; i < count; i++) {
		if (is_wanted)
			thread_end(pinned[i]);
		hccld_thread_put(pinned[i]);
	}
	hccld_threads_unlock(cancel);
}

int hccld_threads_free(const uint64_t *handles, uint32_t count)
{
	struct hccld_thread *pinned[HCCLD_THREADS_PER_CALL];
	uint32_t pinned_count = 0;
	int r = 0;

	if (count > HCCLD_THREADS_PER_CALL)
		return hccld_error(CAUSE_ARGUMENT, "HcommThreadFree: threadNum is %u; expected at most %u", count, HCCLD_THREADS_PER_CALL);
	while (r == 0 && pinned_count < count) {
		r = free_check(handles[pinned_count], &pinned[pinned_count]);
		pinned_count += r == 0;
	}
	if (r == 0)
		r = repeat_check(handles, count);
	free_all(pinned, pinned_count, r == 0);
	return r;
}

/* ---- what is asked of them ---- */

int hccld_thread_notify(const struct hccld_thread *thread, const char *function, uint32_t index, struct hccld_notify_place *ret_place)
{
	uint32_t left = index;

	/* acquire: the parts are whole */
	for (uint32_t i = 0; i < atomic_load_explicit(&thread->part_count, memory_order_acquire); i++) {
		const struct hccld_thread_part *part = &thread->parts[i];

		if (left < part->count) {
			ret_place->segment = part->segment;
			ret_place->offset = (uint64_t)(part->first + left) * sizeof(struct notify_slot);
			return 0;
		}
		left -= part->count;
	}
	return hccld_error(CAUSE_NULL, "%s: notify index is %u; the thread was acquired with %u notifies, counted from 0", function, index,
			   notifies_of(thread));
}

/* Which of the thread's notifies has the id; UINT32_MAX: none. */
static uint32_t index_of(const struct hccld_thread *thread, uint64_t id)
{
	uint32_t before = 0;

	for (uint32_t i = 0; i < atomic_load_explicit(&thread->part_count, memory_order_acquire); i++) {
		const struct hccld_thread_part *part = &thread->parts[i];

		if (id >= part->first && id - part->first < part->count)
			return before + (uint32_t)(id - part->first);
		before += part->count;
	}
	return UINT32_MAX;
}

/* With the lock: the thread that has the notify; NULL: it is no thread's. */
static const struct hccld_thread *find_by_notify(const struct hccld_context *context, uint64_t id, uint32_t *ret_index)
{
	for (uint32_t i = 0; i < hccld_thread_limit; i++) {
		if (!hccld_thread_is_alive(&threads[i]) || threads[i].context != context)
			continue;
		*ret_index = index_of(&threads[i], id);
		if (*ret_index != UINT32_MAX)
			return &threads[i];
	}
	return NULL;
}

/* "notify 1 of a thread of communicator x"; false: it is no thread's. */
static bool name_notify(const struct hccld_context *context, uint64_t id, char *buffer, size_t size)
{
	const struct hccld_thread *thread;
	char name[HCCLD_COMM_NAME_MAX];
	uint32_t index;
	int cancel = hccld_threads_lock();

	thread = find_by_notify(context, id, &index);
	if (thread) {
		hccld_comm_name_find(thread->comm, name, sizeof(name));
		snprintf(buffer, size, "notify %u of a thread%s%s", index, thread->rank ? " of communicator " : "", name);
	}
	hccld_threads_unlock(cancel);
	return thread;
}

void hccld_thread_describe_wait(struct hccld_stream *stream, const struct fault *fault, char *buffer, size_t size)
{
	const struct hccld_context *context = hccld_stream_context(stream);
	char name[320];

	/* the fault has 1 + the id of an own notify */
	if (fault->number && (name_notify(context, fault->number - 1, name, sizeof(name)) ||
			      hccld_channel_name_notify(context, fault->number - 1, name, sizeof(name))))
		snprintf(buffer, size, "stream %u, %s (number %llu of the device): ", hccld_stream_id(stream), name,
			 (unsigned long long)fault->number - 1);
	else
		snprintf(buffer, size, "stream %u: ", hccld_stream_id(stream));
}

/* With the lock. Of a stream of the program, which does other things, too: what has gone wrong with this rank's notifies. */
static bool fault_is_of(const struct fault *fault, const struct hccld_thread *thread)
{
	const struct hccld_thread *other;
	uint32_t index;

	if (thread->has_stream || fault->comm == thread->comm)
		return true;
	if (fault->direction != ITEM_PLACE || !fault->number)
		return false;
	other = find_by_notify(thread->context, fault->number - 1, &index);
	return (other ? other->rank : hccld_channel_rank_of_notify(thread->context, fault->number - 1)) == thread->rank;
}

uint32_t hccld_threads_fault(uint64_t rank)
{
	uint32_t cause = 0;
	int cancel = hccld_threads_lock();

	for (uint32_t i = 0; i < hccld_thread_limit && !cause; i++) {
		const struct hccld_thread *thread = &threads[i];
		struct fault fault;

		if (hccld_thread_is_alive(thread) && thread->rank == rank && hccld_stream_is(thread->stream, thread->stream_serial) &&
		    hccld_stream_fault(thread->stream, thread->faults, &fault) && fault_is_of(&fault, thread))
			cause = fault.cause;
	}
	hccld_threads_unlock(cancel);
	return cause;
}

void hccld_threads_resume(uint64_t rank)
{
	int cancel = hccld_threads_lock();

	for (uint32_t i = 0; i < hccld_thread_limit; i++)
		if (hccld_thread_is_alive(&threads[i]) && threads[i].rank == rank)
			threads[i].faults = hccld_stream_fault_count(threads[i].stream);
	hccld_threads_unlock(cancel);
}
