/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks at which a stream meets something outside of it: events, host functions, words in memory. Executor's thread.
 *
 * Why nobody's wake-up is lost. Events are recorded, and waits for them looked at, by this thread alone: a wait that finds its version
 * missing leaves `watches` at its context before the next record can be made, and a record rings (R2) every context of the session that
 * watches. A word can be written by anybody at any time: a context that waits for one is also looked at again by engine_poll(). A host
 * function is over by `host_done`, an input like `tail`: the client stores it, and tells (R5); whoever leaves the context looks at it
 * after its fence (R4). That a function is due is told by session_host.news: the process enters `sleepers`, fences, reads `news`,
 * looks at `completed`, sleeps; this side stores `completed`, raises `news`, fences, reads `sleepers`.
 *
 * Why a kill between any two stores does no harm. A record is a store of the larger of two versions (E1), a value a plain store, a wait
 * no store: all may run again. A host function is told of before it is marked as told of, and is run by the process, once, whatever it
 * is told: it keeps the list. After a restart every context with undone work is looked at (R9), so that `watches` and the list of
 * engine_poll() need not survive. tests/model/meeting.py explores these.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/executor.h"
#include "proto/clock.h"
#include "proto/event.h"

int place_find(struct batch *batch, uint64_t bytes, struct place *ret_place)
{
	bool is_notify = batch->task.kind == TASK_NOTIFY_RECORD || batch->task.kind == TASK_NOTIFY_WAIT;
	struct view_session *session = batch->context->session;
	struct item *item = batch_item(batch, 0);
	struct view_segment *segment;
	uint64_t offset, id;

	if (batch->task.item_count != 1 || read_once(item->kind) != ITEM_PLACE)
		return -EPROTO;
	offset = read_once(item->offset);
	id = read_once(item->segment);
	segment = is_notify ? view_notify_find(session, id, offset) : view_segment_find(session, id, offset, bytes);
	/* the address counts: memory that was imported begins wherever its exporter's part does */
	if (segment && (uintptr_t)(segment->base + offset) % (is_notify ? sizeof(struct notify_slot) : sizeof(uint64_t)))
		return -EPROTO;
	*ret_place = (struct place){ .item = item, .comparison = read_once(item->data_type) };
	ret_place->number = atomic_load_explicit(&item->number, memory_order_relaxed);
	if (segment)
		ret_place->address = segment->base + offset;
	return 0;
}

struct task *task_slot(struct batch *batch)
{
	return &batch->ring->slots[batch->position % HCCLD_STREAM_SLOTS].task;
}

void session_guard_end(struct engine *engine, struct view_session *session)
{
	const void *lost = engine->host.guard_end();

	if (lost)
		engine_blame(engine, session, NULL, lost);
}

/* ---- contexts that wait for what no ring of theirs tells ---- */

static void context_watch(struct view_context *context)
{
	struct view_session *session = context->session;

	context->watches = true;
	if (context->in_watchers)
		return;
	context->in_watchers = true;
	context->watchers_next = session->watchers;
	session->watchers = context;
}

void context_poll(struct engine *engine, struct view_context *context)
{
	context_watch(context);
	context->polls = true;
	if (context->in_pollers)
		return;
	context->in_pollers = true;
	context->pollers_next = engine->pollers;
	engine->pollers = context;
}

void session_ring_watchers(struct engine *engine, struct view_session *session)
{
	for (struct view_context *context = session->watchers; context; context = context->watchers_next)
		if (context->watches)
			context_dirty(engine, context);
}

void session_ring_pollers(struct engine *engine, struct view_session *session)
{
	for (struct view_context *context = session->watchers; context; context = context->watchers_next)
		if (context->polls)
			context_dirty(engine, context);
}

bool engine_poll(struct engine *engine)
{
	struct view_context **at = &engine->pollers, *context;

	while ((context = *at)) {
		if (!context->polls) {
			*at = context->pollers_next;
			context->in_pollers = false;
			continue;
		}
		context_dirty(engine, context);
		at = &context->pollers_next;
	}
	engine_ring_dirty(engine);
	return engine->pollers != NULL;
}

void context_unwatch(struct engine *engine, struct view_context *context)
{
	struct view_context **at;

	if (context->in_watchers) {
		for (at = &context->session->watchers; *at != context;)
			at = &(*at)->watchers_next;
		*at = context->watchers_next;
	}
	if (context->in_pollers) {
		for (at = &engine->pollers; *at != context;)
			at = &(*at)->pollers_next;
		*at = context->pollers_next;
	}
	context->in_watchers = context->in_pollers = context->watches = context->polls = false;
}

/* ---- events ---- */

static void event_record(struct engine *engine, struct view_session *session, struct event_slot *event, uint64_t version)
{
	engine->host.guard_begin();
	/* E1: again after a crash, or after a later one */
	if (atomic_load_explicit(&event->recorded, memory_order_relaxed) < version) {
		atomic_store_explicit(&event->recorded_ns, clock_now_ns(), memory_order_relaxed);
		CRASH_POINT(21);
		atomic_store_explicit(&event->recorded, version, memory_order_release);
	}
	session_guard_end(engine, session);
	CRASH_POINT(22);
	session_ring_watchers(engine, session);
}

static int record_run(struct batch *batch)
{
	struct place place;
	int r;

	r = place_find(batch, sizeof(struct event_slot), &place);
	if (r < 0)
		return r;
	/* gone with its device: whoever waits finds that out */
	if (place.address)
		event_record(batch->engine, batch->context->session, place.address, place.number);
	return 1;
}

static int wait_gone(struct batch *batch)
{
	struct fault fault = { .cause = CAUSE_ABORTED };

	stream_fault(batch->ring, &fault);
	return 1;
}

static int event_wait_run(struct batch *batch)
{
	struct event_slot *event;
	struct place place;
	uint64_t recorded;
	int r;

	r = place_find(batch, sizeof(*event), &place);
	if (r < 0)
		return r;
	if (!place.address)
		return wait_gone(batch);
	event = place.address;
	batch->engine->host.guard_begin();
	/* acquire: with the chain of records it is behind what their streams have done */
	recorded = atomic_load_explicit(&event->recorded, memory_order_acquire);
	session_guard_end(batch->engine, batch->context->session);
	if (recorded >= place.number || atomic_load_explicit(&task_slot(batch)->outcome, memory_order_relaxed))
		return 1;
	context_watch(batch->context);
	return 0;
}

/* Whoever waits for an event must not hang because a task that records it is taken out of its ring: it counts as recorded. */
void stream_record_dropped(struct engine *engine, struct view_context *context, struct stream_ring *ring, uint64_t tail)
{
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_relaxed);
	struct batch batch = { .engine = engine, .context = context, .ring = ring, .items = &ring->slots[0].item,
			       .mask = HCCLD_STREAM_SLOTS - 1 };

	if (tail - position > HCCLD_STREAM_SLOTS)
		return;
	while (position < tail) {
		uint16_t slots;

		memcpy(&batch.task, &ring->slots[position % HCCLD_STREAM_SLOTS].task, sizeof(batch.task));
		slots = batch.task.slot_count;
		batch.position = position;
		batch.first = position + 1;
		if (!slots || slots > tail - position)
			return;	/* nonsense */
		if (batch.task.kind == TASK_RECORD && slots == 2)
			(void)record_run(&batch);
		position += slots;
	}
}

/* ---- host functions ---- */

static void session_tell_host(struct view_session *session)
{
	struct session_host *host = session_host(session->region);

	atomic_fetch_add_explicit(&host->news, 1, memory_order_acq_rel);
	/* with the fence of a thread that is about to sleep: it sees the news, or we see it */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&host->sleepers, memory_order_relaxed))
		syscall(SYS_futex, &host->news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int host_run(struct batch *batch)
{
	uint64_t end = batch->position + batch->task.slot_count;
	struct task *slot = task_slot(batch);
	bool blocks = !(batch->task.flags & TASK_NO_BLOCK);

	if (batch->task.item_count)
		return -EPROTO;
	/* acquire: what the function has done is behind it */
	if (blocks && atomic_load_explicit(&batch->ring->host_done, memory_order_acquire) >= end)
		return 1;
	if (!atomic_load_explicit(&slot->number, memory_order_relaxed)) {
		session_tell_host(batch->context->session);
		CRASH_POINT(23);
		atomic_store_explicit(&slot->number, 1, memory_order_relaxed);
		CRASH_POINT(24);
	}
	return !blocks;
}

/* ---- words in memory ---- */

static int write_run(struct batch *batch)
{
	struct place place;
	int r;

	r = place_find(batch, sizeof(uint64_t), &place);
	if (r < 0)
		return r;
	if (!place.address) {
		struct fault fault = { .cause = CAUSE_NOT_DEVICE_MEMORY, .direction = ITEM_COPY, .local_bytes = sizeof(uint64_t) };

		fault_explain_lost(&fault, batch->context->session, read_once(place.item->segment));
		if (!fault.comm)
			fault.direction = 0;
		stream_fault(batch->ring, &fault);
		return 1;
	}
	batch->engine->host.guard_begin();
	/* release: whoever finds the value finds what earlier tasks of the stream have done */
	atomic_store_explicit((_Atomic uint64_t *)place.address, place.number, memory_order_release);
	session_guard_end(batch->engine, batch->context->session);
	CRASH_POINT(25);
	return 1;
}

static bool value_compares(uint64_t word, uint64_t number, enum comparison comparison)
{
	switch (comparison) {
	case COMPARE_GREATER_EQUAL:
		return (int64_t)(word - number) >= 0;
	case COMPARE_EQUAL:
		return word == number;
	case COMPARE_AND:
		return word & number;
	case COMPARE_NOR:
		return ~(word | number);
	}
	return true;
}

static int value_wait_run(struct batch *batch)
{
	struct place place;
	uint64_t word;
	int r;

	r = place_find(batch, sizeof(uint64_t), &place);
	if (r < 0)
		return r;
	if (place.comparison > COMPARE_NOR)
		return -EPROTO;
	if (!place.address)
		return wait_gone(batch);
	batch->engine->host.guard_begin();
	word = atomic_load_explicit((_Atomic uint64_t *)place.address, memory_order_acquire);
	session_guard_end(batch->engine, batch->context->session);
	if (value_compares(word, place.number, (enum comparison)place.comparison) ||
	    atomic_load_explicit(&task_slot(batch)->outcome, memory_order_relaxed))
		return 1;
	context_poll(batch->engine, batch->context);
	return 0;
}

int meeting_run(struct batch *batch)
{
	switch (batch->task.kind) {
	case TASK_RECORD:
		return record_run(batch);
	case TASK_WAIT_EVENT:
		return event_wait_run(batch);
	case TASK_HOST:
		return host_run(batch);
	case TASK_WRITE:
		return write_run(batch);
	case TASK_WAIT_VALUE:
		return value_wait_run(batch);
	case TASK_NOTIFY_RECORD:
	case TASK_NOTIFY_WAIT:
		return notify_run(batch);
	default:
		return -EPROTO;
	}
}

void meeting_time_out(struct batch *batch, uint64_t limit_ms)
{
	struct fault fault = { .cause = CAUSE_EVENT_TIMEOUT, .waited_ms = limit_ms };

	if (batch->task.kind == TASK_NOTIFY_WAIT)
		fault = notify_fault(batch, CAUSE_EXEC_TIMEOUT, limit_ms);
	else if (batch->task.kind != TASK_WAIT_EVENT && batch->task.kind != TASK_WAIT_VALUE)
		return;
	/* the fault first: killed in between, the next beat does it again */
	stream_fault(batch->ring, &fault);
	atomic_store_explicit(&task_slot(batch)->outcome, 1, memory_order_relaxed);
	context_dirty(batch->engine, batch->context);
}

/* ---- taking tasks out ---- */

static uint64_t head_end(const struct stream_ring *ring, uint64_t completed, uint64_t tail)
{
	uint16_t slots = read_once(ring->slots[completed % HCCLD_STREAM_SLOTS].task.slot_count);

	return slots && slots <= tail - completed ? completed + slots : tail;
}

static void stream_drop(struct engine *engine, struct view_context *context, struct stream_ring *ring, bool only_head, uint32_t cause)
{
	uint64_t completed = atomic_load_explicit(&ring->completed, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct fault fault = { .cause = cause };

	if (only_head)
		tail = head_end(ring, completed, tail);
	if (tail == completed || tail - completed > HCCLD_STREAM_SLOTS)
		return;
	/* the error first, for `dropped` is a promise: killed from there on, the next executor finishes this (task_run()) */
	stream_fault(ring, &fault);
	CRASH_POINT(26);
	atomic_store_explicit(&ring->dropped, tail, memory_order_release);
	CRASH_POINT(27);
	stream_abort(engine, context, ring);
	stream_record_dropped(engine, context, ring, tail);
	atomic_store_explicit(&ring->completed, tail, memory_order_release);
	CRASH_POINT(28);
}

bool engine_stream_drop(struct engine *engine, struct view_context *context, struct stream_ring *ring, bool only_head,
			uint32_t cause)
{
	uint64_t state;
	bool taken;

	/* nor has it transfers, of which a process may have thousands elsewhere */
	if (atomic_load_explicit(&ring->tail, memory_order_acquire) == atomic_load_explicit(&ring->completed, memory_order_relaxed))
		return true;
	if (!transfers_cancel_stream(engine, context, ring))
		return false;
	taken = context_take(engine, context, &state);
	if (!taken && engine_may_wait(engine, ring))
		return false;
	engine_waited(engine);
	/* not taken: a thread that is stopped with what its process wants dropped; what it does later is its process's loss */
	stream_drop(engine, context, ring, only_head, cause);
	if (taken)
		context_give(engine, context, state);
	context_dirty(engine, context);
	engine_ring_dirty(engine);
	context_wake(context);
	return true;
}
