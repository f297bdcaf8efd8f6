/* SPDX-License-Identifier: Apache-2.0 */
/* What a client would do, without the client: memory, a stream, two copies. */
#include "scheduler/selftest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

#include "base/log.h"
#include "base/memfd.h"
#include "proto/cleanup.h"
#include "proto/clock.h"
#include "proto/status.h"
#include "registry/segment.h"
#include "scheduler/scheduler.h"

#define SMALL_BYTES 4096u
#define LARGE_BYTES (768u << 10) /* a few slices, so that copy workers get some */
#define LARGE_FROM SMALL_BYTES
#define SMALL_TO (SMALL_BYTES + LARGE_BYTES)
#define LARGE_TO (SMALL_TO + SMALL_BYTES)
#define SEGMENT_BYTES (2 * SMALL_TO)
#define TIMEOUT_MS 10000u
#define SEGMENT_ID VIEW_ID(1, 0)

struct selftest {
	struct beacon beacon;
	int event_fd;
	struct scheduler *scheduler;
	struct view_yard yard;
	struct view_session session;
	struct view_context context;
	struct stream_ring *ring;
	struct segment_memory memory;
	struct scheduler_call call;
};

static void selftest_free(struct selftest *test)
{
	/* first: its thread works on the rest */
	test->scheduler = scheduler_free(test->scheduler);
	segment_memory_release(&test->memory);
	close_fdp(&test->event_fd);
	sparse_free(test->yard.yard, sizeof(struct yard));
	sparse_free(test->yard.contexts, HCCLD_YARD_CONTEXTS * sizeof(*test->yard.contexts));
	sparse_free(test->session.segments,
		    HCCLD_SEGMENTS_PER_SESSION * sizeof(*test->session.segments));
	sparse_free(test->session.ranks, HCCLD_RANKS_PER_SESSION * sizeof(*test->session.ranks));
	sparse_free(test->ring, sizeof(*test->ring));
	free(test);
}

static void selftest_notify(void *data)
{
}

static void selftest_liar(void *data, uint64_t session, const char *what)
{
}

static void selftest_type_mismatch(void *data, uint64_t comm, uint32_t source, uint32_t destination,
				   uint8_t source_type, uint8_t destination_type)
{
}

static int selftest_make_tables(struct selftest *test)
{
	void *yard, *contexts, *segments, *ranks, *ring;
	int r;

	r = sparse_new(sizeof(struct yard), &yard);
	if (r < 0)
		return r;
	test->yard.yard = yard;
	r = sparse_new(HCCLD_YARD_CONTEXTS * sizeof(*test->yard.contexts), &contexts);
	if (r < 0)
		return r;
	test->yard.contexts = contexts;
	r = sparse_new(HCCLD_SEGMENTS_PER_SESSION * sizeof(*test->session.segments), &segments);
	if (r < 0)
		return r;
	test->session.segments = segments;
	r = sparse_new(HCCLD_RANKS_PER_SESSION * sizeof(*test->session.ranks), &ranks);
	if (r < 0)
		return r;
	test->session.ranks = ranks;
	r = sparse_new(sizeof(*test->ring), &ring);
	if (r < 0)
		return r;
	test->ring = ring;
	return 0;
}

/* One context in a yard; its bit is set when there is work. */
static void selftest_make_views(struct selftest *test)
{
	struct view_context *context = &test->context;

	test->session.id = 1;
	context->session = &test->session;
	context->yard = &test->yard;
	context->words = &test->yard.yard->contexts[0];
	context->bit_word = &test->yard.yard->bits[0];
	context->bit = 1;
	atomic_store(&context->streams[0], test->ring);
	atomic_store(&context->stream_limit, 1);
	atomic_store(&test->yard.contexts[0], context);
	atomic_store(&test->yard.word_limit, 1);
}

static int selftest_start(struct selftest *test, uint32_t copy_threads)
{
	const struct scheduler_options options = {
		.beacon = &test->beacon,
		.event_fd = test->event_fd,
		.copy_threads = copy_threads,
		.data = test,
		.notify = selftest_notify,
		.liar = selftest_liar,
		.type_mismatch = selftest_type_mismatch,
	};
	int r;

	r = scheduler_new(&options, &test->scheduler);
	if (r < 0)
		return r;
	scheduler_yard_add(test->scheduler, &test->yard);
	return scheduler_start(test->scheduler);
}

/* Fresh memory, as a segment of the session: what a program's aclrtMalloc would give it. */
static int selftest_give_memory(struct selftest *test, uint32_t device)
{
	struct view_segment *segment = &test->session.segments[0];
	uint32_t *words;
	int r;

	r = segment_memory_new(SEGMENT_BYTES, &test->memory);
	if (r < 0)
		return r;
	words = test->memory.base;
	for (uint32_t i = 0; i < SMALL_TO / sizeof(*words); i++)
		words[i] = i * 2654435761u + device;
	segment->base = test->memory.base;
	segment->size = test->memory.bytes;
	segment->kind = SEGMENT_DEVICE;
	atomic_store_explicit(&segment->id, SEGMENT_ID, memory_order_release);
	return 0;
}

static void item_copy(union stream_slot *slots, uint32_t index, uint32_t next, uint64_t to,
		      uint64_t from, uint64_t bytes)
{
	slots[index].item = (struct item){ .kind = ITEM_COPY,
					   .bytes = bytes,
					   .segment = SEGMENT_ID,
					   .offset = to,
					   .next = LANE_END,
					   .next_lane = next,
					   .issue = index,
					   .done = index };
	slots[index + 1].item = (struct item){ .kind = ITEM_SOURCE,
					       .bytes = bytes,
					       .segment = SEGMENT_ID,
					       .offset = from,
					       .next = LANE_END,
					       .next_lane = LANE_END };
}

/* One task of two copies, told of as a client tells (R5). */
static uint64_t selftest_submit(struct selftest *test)
{
	struct yard_context *words = test->context.words;
	struct stream_ring *ring = test->ring;
	uint64_t tail = atomic_load(&ring->tail);
	union stream_slot slots[5];

	memset(slots, 0, sizeof(slots));
	slots[0].task = (struct task){ .kind = TASK_BATCH,
				       .slot_count = 5,
				       .item_count = 4,
				       .submitted_ns = clock_now_ns() };
	item_copy(slots + 1, 0, 2, SMALL_TO, 0, SMALL_BYTES);
	item_copy(slots + 1, 2, LANE_END, LARGE_TO, LARGE_FROM, LARGE_BYTES);
	for (uint32_t i = 0; i < 5; i++)
		memcpy(&ring->slots[(tail + i) % HCCLD_STREAM_SLOTS], &slots[i], sizeof(slots[i]));
	atomic_store_explicit(&ring->tail, tail + 5, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	for (uint64_t state = atomic_load(&words->state);
	     yard_kind(state) == CONTEXT_IDLE || yard_kind(state) == CONTEXT_PARKED;)
		if (atomic_compare_exchange_weak(&words->state, &state,
						 yard_next(state, CONTEXT_LEFT)))
			break;
	atomic_fetch_or(test->context.bit_word, test->context.bit);
	eventfd_write(test->event_fd, 1);
	return tail + 5;
}

/* A device takes some hundred microseconds, and the daemon is not ready before all of them are done. */
static void selftest_nap(void)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	nanosleep(&nap, NULL);
}

static int selftest_wait(struct selftest *test, uint64_t target)
{
	uint64_t give_up = clock_now_ns() + TIMEOUT_MS * 1000000ull;

	while (atomic_load_explicit(&test->ring->completed, memory_order_acquire) < target) {
		if (clock_now_ns() > give_up)
			return -ETIMEDOUT;
		selftest_nap();
	}
	return 0;
}

/* Takes the memory back from the engine, like a free of a client's. */
static bool segment_let_go(struct engine *engine, void *arg)
{
	struct selftest *test = arg;

	return engine_segment_detach(engine, &test->session, SEGMENT_ID);
}

static void segment_is_gone(void *arg)
{
	struct selftest *test = arg;

	segment_memory_release(&test->memory);
}

static int selftest_take_memory(struct selftest *test)
{
	uint64_t give_up = clock_now_ns() + TIMEOUT_MS * 1000000ull;

	atomic_store(&test->session.segments[0].retired, 1);
	test->call = (struct scheduler_call){ .run = segment_let_go, .done = segment_is_gone, .arg = test };
	scheduler_call(test->scheduler, &test->call);
	for (;;) {
		scheduler_collect(test->scheduler);
		if (!test->memory.base)
			break;
		if (clock_now_ns() > give_up)
			return -ETIMEDOUT;
		selftest_nap();
	}
	atomic_store(&test->session.segments[0].id, 0);
	atomic_store(&test->session.segments[0].retired, 0);
	return 0;
}

static int selftest_check(const struct selftest *test)
{
	const char *memory = test->memory.base;

	if (atomic_load(&test->ring->fault_count)) {
		log_debug("the engine reports: %s", status_of(test->ring->fault.cause)->text);
		return -EIO;
	}
	/* both copies and both places lie side by side */
	return memcmp(memory, memory + SMALL_TO, SMALL_BYTES + LARGE_BYTES) == 0 ? 0 : -EIO;
}

static int selftest_device(struct selftest *test, uint32_t device)
{
	int r;

	r = selftest_give_memory(test, device);
	if (r < 0)
		return r;
	r = selftest_wait(test, selftest_submit(test));
	if (r < 0)
		return r;
	r = selftest_check(test);
	if (r < 0)
		return r;
	return selftest_take_memory(test);
}

static const char *selftest_reason(int r)
{
	switch (r) {
	case -EIO:
		return "a copy has left wrong bytes";
	case -ETIMEDOUT:
		return "the engine has copied nothing for 10 s";
	case -ENOMEM:
		return "no memory is left on this node";
	case -EDQUOT:
		return "no descriptor is left (LimitNOFILE=, ulimit -n)";
	default:
		return strerror(-r);
	}
}

static int selftest_prepare(struct selftest *test, uint32_t copy_threads)
{
	int r;

	test->memory.fd = -1;
	test->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (test->event_fd < 0)
		return errno == EMFILE ? -EDQUOT : -errno;
	r = selftest_make_tables(test);
	if (r < 0)
		return r;
	selftest_make_views(test);
	return selftest_start(test, copy_threads);
}

int selftest_run(uint32_t device_count, uint32_t copy_threads)
{
	struct selftest *test = calloc(1, sizeof(*test));
	int r;

	if (!test)
		return -ENOMEM;
	r = selftest_prepare(test, copy_threads);
	if (r < 0)
		log_error("the self-test could not start: %s", selftest_reason(r));
	for (uint32_t device = 0; r == 0 && device < device_count; device++) {
		r = selftest_device(test, device);
		if (r < 0)
			log_error("the self-test of device %" PRIu32 " failed: %s", device,
				  selftest_reason(r));
	}
	/* a thread that hangs would never be joined; it keeps what it may still write to */
	if (r != -ETIMEDOUT)
		selftest_free(test);
	return r;
}
