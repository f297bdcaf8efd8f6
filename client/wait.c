/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for a stream: a waiter spins a little, yields a little, then sleeps on the context's futex word. Where the context is free it takes
 * it and drives (client/drive.h); else another thread, or the daemon's engine, does. Any thread, any number per stream.
 */
#include "client/stream_state.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/crowd.h"
#include "client/drive.h"
#include "client/error.h"
#include "client/exception.h"
#include "client/hostfunc.h"
#include "client/order.h"
#include "client/thread.h"
#include "proto/pause.h"
#include "proto/yielding.h"

#define SPIN_STEPS 256u	 /* some microseconds: who is busy on another core answers in less */
#define QUERY_LOOK 64u	 /* every so many queries in vain look whether the daemon is there */

static struct yielding yielding;
static _Thread_local struct crowd crowd;
static _Atomic uint32_t waiting; /* threads of this process that wait for a stream, and have not just begun */

static bool is_over(const struct hccld_stream *stream, uint64_t target)
{
	return stream_completed(stream) >= target || !stream_is_alive(stream);
}

static uint32_t cpu_count(void)
{
	static _Atomic uint32_t known;
	uint32_t count = atomic_load_explicit(&known, memory_order_relaxed);
	cpu_set_t set;

	if (count)
		return count;
	count = sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
	atomic_store_explicit(&known, count, memory_order_relaxed);
	return count;
}

/* Of the system: a thread that is pinned has the others to wait for. */
static long processor_count(void)
{
	static _Atomic long known;
	long count = atomic_load_explicit(&known, memory_order_relaxed);

	if (!count) {
		count = sysconf(_SC_NPROCESSORS_ONLN);
		if (count < 1)
			count = 1;
		atomic_store_explicit(&known, count, memory_order_relaxed);
	}
	return count;
}

/* If they are spread evenly. */
static uint32_t ranks_per_processor(const struct hccld_session *session)
{
	return session->beacon ? atomic_load_explicit(&session->beacon->contexts, memory_order_relaxed) / (uint32_t)processor_count() : 0;
}

struct aim {
	const struct hccld_stream *stream;
	uint64_t target;
};

static bool is_aim_over(const void *arg)
{
	const struct aim *aim = arg;

	return is_over(aim->stream, aim->target);
}

/* Nothing to sleep for: it is done, or this thread may drive. */
static bool is_aim_over_or_free(const void *arg)
{
	const struct aim *aim = arg;

	return is_over(aim->stream, aim->target) || (aim->stream->context->drives && direct_may_take(&aim->stream->context->direct));
}

/* One wait. */
struct wait {
	struct hccld_stream *stream;
	const struct hccld_session *session;
	uint64_t target, deadline;
	uint64_t start;		/* of spinning, and of yielding */
	uint64_t look;		/* when to look for the daemon again */
	bool spins;		/* it pays to spin first */
	uint32_t steps;
};

void hccld_stream_wake_sleepers(struct hccld_context *context)
{
	hccld_handover_wake(&(struct hccld_handover){ .words = context->words });
}

static int gone_error(const struct hccld_session *session)
{
	return hccld_connection_gone_error(session->connection, " while the stream had work");
}

bool hccld_stream_wait_is_crowded(void)
{
	return crowd.is_crowded;
}

/* Spinning pays while nobody else wants the processor. */
static bool wait_may_spin(void)
{
	return !crowd.is_crowded && processor_count() > 1 && atomic_load_explicit(&waiting, memory_order_relaxed) <= cpu_count();
}

/* A moment passes, without a sleep. False: it is time for one. */
static bool wait_step(struct wait *wait)
{
	uint64_t now;

	if (wait->spins) {
		if (++wait->steps < SPIN_STEPS)
			return true;
		wait->spins = false;
	}
	now = clock_now_ns();
	if (!wait->start) {
		wait->start = now;
		atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
	}
	if (now - wait->start >= crowd_yield_ns(&crowd) || !yielding_step(&yielding, ranks_per_processor(wait->session), wait->start, now))
		return false;
	if (yielding_is_paused(&yielding, now))
		crowd_is_certain(&crowd);
	else
		crowd_yielded(&crowd, crowd_switches);
	return true;
}

/*
 * How long to sleep at most. Looks for the daemon once per slice, and before it gives up: a sleep can always be cut short by signals and by
 * news of other streams, and a program may wait a short time over and over again. -ETOOMANYREFS, -ENOTCONN.
 */
static int wait_slice(struct wait *wait, uint64_t *ret_ns)
{
	const uint64_t slice = STREAM_SLEEP_MS * UINT64_C(1000000);
	uint64_t now = clock_now_ns(), until;

	if (!wait->look)
		wait->look = now + slice;
	until = wait->look < wait->deadline ? wait->look : wait->deadline;
	if (now >= until) {
		const struct hccld_handover handover = stream_handover(wait->stream->context, wait->session);

		if (hccld_connection_is_gone(wait->session->connection) && !is_over(wait->stream, wait->target))
			return gone_error(wait->session);
		/* costs nothing, and mends what a crash could have broken */
		hccld_handover_tell(&handover);
		if (now >= wait->deadline)
			return -ETOOMANYREFS;
		wait->look = now + slice;
		until = wait->look;
	}
	*ret_ns = until - now;
	return 0;
}

/* Something has come: the next may be soon. */
static void wait_renew(struct wait *wait)
{
	wait->steps = 0;
	if (wait->start)
		wait->start = clock_now_ns();
}

/* Copies a chunk of a large copy, if there is one to be had. True: go on, there may be more. */
static bool wait_help(struct wait *wait, struct direct_wish *wish)
{
	if (!direct_help(&wait->stream->context->direct, wish))
		return false;
	wait_renew(wait);
	return true;
}

/* Drives the context, which is taken, until the wait is over, or somebody else has to go on. It is left then. */
static void wait_driving(struct wait *wait)
{
	struct direct_context *direct = &wait->stream->context->direct;
	const struct aim aim = { wait->stream, wait->target };
	struct direct_wish wish;
	enum direct_left left;
	uint64_t ns = 0;

	direct->copies_sends = crowd.is_crowded;
	for (direct->wish.need = NEED_NOTHING;;) {
		left = direct_pass(direct, DIRECT_BUDGET_ALL, false);
		if (is_over(wait->stream, wait->target))
			break;
		wish = direct->wish;
		if (wish.need >= NEED_POOL) {
			direct_go_away(direct);
			(void)hccld_drive_fulfil(&wish);
			if (!direct_come_back(direct))
				return;
			direct->wish.need = NEED_NOTHING;
			continue;
		}
		if (left == DIRECT_DECLINED || wish.need != NEED_NOTHING ||
		    atomic_load_explicit(&direct->intruders, memory_order_relaxed))
			break;
		direct_publish(direct);
		if (wait_help(wait, &direct->wish))
			continue;
		if (direct->wish.need != NEED_NOTHING)
			break;
		if (wait_step(wait))
			continue;
		if (wait_slice(wait, &ns) < 0)
			break;
		if (direct_sleep(direct, is_aim_over, &aim, ns, &left)) {
			crowd_slept(&crowd, clock_now_ns() - wait->start);
			direct_wake_up(direct);
			return;
		}
		if (left == DIRECT_DECLINED || is_over(wait->stream, wait->target))
			break;
	}
	wish = direct->wish;
	/* the engine is about to open it */
	if (left == DIRECT_DECLINED && direct->met_large)
		wait_renew(wait);
	direct_leave(direct, left);
	(void)hccld_drive_fulfil(&wish);
}

static int wait_loop(struct wait *wait)
{
	struct hccld_context *context = wait->stream->context;
	const struct aim aim = { wait->stream, wait->target };

	while (!is_over(wait->stream, wait->target)) {
		uint64_t ns;
		int r;

		if (context->drives && direct_take(&context->direct)) {
			wait_driving(wait);
			if (is_over(wait->stream, wait->target))
				break;
		}
		if (context->drives) {
			struct direct_wish wish = { .need = NEED_NOTHING };

			if (wait_help(wait, &wish) || (wish.need != NEED_NOTHING && hccld_drive_fulfil(&wish)))
				continue;
		}
		if (wait->spins)
			cpu_pause();
		if (wait_step(wait))
			continue;
		r = wait_slice(wait, &ns);
		if (r < 0)
			return r;
		if (!is_aim_over_or_free(&aim)) {
			const struct hccld_handover handover = stream_handover(context, wait->session);

			hccld_handover_sleep(&handover, is_aim_over_or_free, &aim, ns);
			crowd_slept(&crowd, clock_now_ns() - wait->start);
		}
	}
	return 0;
}

int hccld_stream_wait_completed(struct hccld_stream *stream, uint64_t target, uint64_t deadline)
{
	/* its place may be another's afterwards */
	const bool is_of_thread = stream->is_of_thread;
	struct wait wait = { .stream = stream, .target = target, .deadline = deadline };
	struct hccld_session *session;
	int r;

	if (stream_completed(stream) >= target)
		return 0;
	r = hccld_host_check_wait(stream, target);
	if (r == 0)
		r = hccld_session_get(&session);
	if (r < 0)
		return r;
	wait.session = session;
	wait.spins = wait_may_spin();
	r = wait_loop(&wait);
	if (wait.start)
		atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
	if (r == 0 && !stream_is_alive(stream))
		return hccld_error(CAUSE_ABORTED,
				   is_of_thread ? "the communicator (HcclCommDestroy), or the thread (HcommThreadFree) that the stream belongs to, was destroyed while it was waited for"
						: "the stream was destroyed while a thread waited for it");
	return r;
}

/* There are @count errors in flight, and nobody was told of those behind @seen. */
__attribute__((noinline)) static int fault_tell(struct hccld_stream *stream, uint32_t seen, uint32_t count)
{
	struct stream_ring *ring = stream->ring;
	struct fault fault;
	char where[384] = "";
	int r;

	memcpy(&fault, &ring->fault, sizeof(fault));
	/* the executor overwrites `fault` only after this store (I4); if another thread has won, it tells */
	if (!atomic_compare_exchange_strong(&ring->fault_seen, &seen, count))
		return 0;
	if (fault.direction == ITEM_PLACE)
		hccld_thread_describe_wait(stream, &fault, where, sizeof(where));
	r = hccld_error_fault_at(&fault, where);
	hccld_exception_report(stream, status_of(fault.cause)->acl);
	return r;
}

/* The first error in flight that nobody was told of yet. */
static int fault_take(struct hccld_stream *stream)
{
	uint32_t seen = atomic_load_explicit(&stream->ring->fault_seen, memory_order_relaxed);
	uint32_t count = atomic_load_explicit(&stream->ring->fault_count, memory_order_acquire);

	return __builtin_expect(count == seen, 1) ? 0 : fault_tell(stream, seen, count);
}

uint64_t hccld_deadline(int64_t timeout_ms)
{
	return timeout_ms < 0 ? STREAM_NEVER : clock_now_ns() + (uint64_t)timeout_ms * 1000000u;
}

int hccld_stream_wait_until(struct hccld_stream *stream, uint64_t deadline)
{
	uint64_t target = atomic_load_explicit(&stream->tail, memory_order_acquire);
	int r;

	r = hccld_stream_wait_completed(stream, target, deadline);
	if (r < 0)
		return r;
	order_acquire(stream);
	hccld_deferred_run(stream, target);
	if (__builtin_expect(hccld_deferred_is_entangled(), 0))
		hccld_stream_run_all_deferred();
	return fault_take(stream);
}

/* ---- points ---- */

bool hccld_stream_is_held(const struct hccld_stream *stream)
{
	if (stream_completed(stream) < atomic_load_explicit(&stream->held, memory_order_relaxed))
		return true;
	/* what it has waited for may be a copy of another stream that has not been written to memory of the program yet */
	if (hccld_deferred_is_entangled())
		hccld_stream_run_all_deferred();
	return false;
}

struct hccld_point hccld_point_of(struct hccld_stream *stream, uint64_t position)
{
	return (struct hccld_point){ stream, atomic_load(&stream->serial), position };
}

bool hccld_point_is_pending(const struct hccld_point *point)
{
	struct hccld_stream *stream = point->stream;

	if (!stream || !stream_is_alive(stream) || atomic_load(&stream->serial) != point->serial)
		return false;
	if (stream_completed(stream) < point->position)
		return true;
	order_acquire(stream);
	return false;
}

int hccld_point_wait(const struct hccld_point *point, int64_t timeout_ms)
{
	int r = 0;

	if (hccld_point_is_pending(point))
		r = hccld_stream_wait_completed(point->stream, point->position, hccld_deadline(timeout_ms));
	if (r == 0 && point->stream)
		order_acquire(point->stream);
	if (r == -ECANCELED) {
		hccld_error_forget();
		r = 0;
	}
	if (r == 0)
		hccld_stream_run_all_deferred();
	return r;
}

int hccld_stream_timeout_error(int64_t timeout_ms)
{
	return hccld_error(
		CAUSE_SYNC_TIMEOUT,
		"the queued work did not finish within %lld ms; hcclctl status shows what it waits for",
		(long long)timeout_ms);
}

int hccld_stream_wait(struct hccld_stream *stream, int64_t timeout_ms)
{
	int r = hccld_stream_wait_until(stream, hccld_deadline(timeout_ms));

	return r == -ETOOMANYREFS ? hccld_stream_timeout_error(timeout_ms) : r;
}

int hccld_stream_query(struct hccld_stream *stream)
{
	uint64_t target = atomic_load_explicit(&stream->tail, memory_order_acquire);
	struct hccld_session *session;

	if (stream_completed(stream) >= target) {
		order_acquire(stream);
		hccld_deferred_run(stream, target);
		if (hccld_deferred_is_entangled())
			hccld_stream_run_all_deferred();
		return 1;
	}
	/* programs poll in loops: let the engine have the core, and see to it that the loop ends when the daemon has */
	if (atomic_fetch_add_explicit(&stream->queries, 1, memory_order_relaxed) % QUERY_LOOK)
		return 0;
	if (hccld_session_get(&session) == 0 && hccld_connection_is_gone(session->connection))
		return gone_error(session);
	sched_yield();
	return 0;
}
