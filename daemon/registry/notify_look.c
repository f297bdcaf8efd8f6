/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the queued tasks of a session say of its notifies that were given back: whether one names them, and whether a record of them can
 * still come. Rings are the clients': whoever writes nonsense harms notifies of his own.
 *
 * A record comes before a wait if it is queued, and not behind a wait for the same notify that is at the head of its stream and has not got
 * what it wants. So does, of a counting notify, a wait that clears it and is not at the head itself. The rings are read one after the
 * other, while the engine goes on: if the notify has changed meanwhile nothing is known. If it has not, a head that had not got what it
 * wanted was one from the first ring to the last.
 */
#include <string.h>

#include "engine/engine.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

#define PLACE sizeof(struct notify_slot)
#define NONE UINT32_MAX

struct marks {
	uint64_t named[HCCLD_NOTIFIES_MAX / 64];
	uint64_t recorded[HCCLD_NOTIFIES_MAX / 64];
	uint64_t cleared[HCCLD_NOTIFIES_MAX / 64]; /* by waits */
};

static void mark(uint64_t *words, uint32_t id)
{
	words[id / 64] |= 1ull << (id % 64);
}

/* The id of this context that the item names, or NONE. */
static uint32_t item_id(const struct context *context, const volatile struct item *item)
{
	uint64_t offset = item->offset;

	if (item->kind != ITEM_PLACE || item->segment != context->notifies.segment->id || offset / PLACE >= HCCLD_NOTIFIES_MAX)
		return NONE;
	return (uint32_t)(offset / PLACE);
}

/* The notify that the task at @position, the head, waits for in vain; or NONE. */
static uint32_t head_awaits(struct context *context, const struct stream_ring *ring, uint64_t position)
{
	const struct item *item = &ring->slots[(position + 1) % HCCLD_STREAM_SLOTS].item;
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);
	uint32_t id = item_id(context, item);
	uint64_t word;

	/* a place that was handed out has memory behind it */
	if (id == NONE || !notifies_owner(context, id))
		return NONE;
	word = atomic_load_explicit(&notify_slot_at(context, id)->word, memory_order_acquire);
	if (engine_notify_compares(*(const volatile uint8_t *)&item->data_type, notify_value(word), (uint32_t)number, (uint32_t)(number >> 32)))
		return NONE;
	return id;
}

/*
 * What is queued in @ring: a task is there until `completed` has passed it, and the engine changes no notify for it afterwards (acquire).
 * Slots may be written anew meanwhile: then nothing is known.
 */
static void mark_ring(struct context *context, const struct stream_ring *ring, struct marks *marks)
{
	uint64_t begin = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire), position = begin;
	uint32_t awaited = NONE;

	if (tail - begin > HCCLD_STREAM_SLOTS)
		return; /* nonsense */
	while (position < tail) {
		const volatile struct task *task = &ring->slots[position % HCCLD_STREAM_SLOTS].task;
		uint32_t slots = task->slot_count, kind = task->kind;

		if (!slots || slots > tail - position)
			break;
		if (kind == TASK_NOTIFY_WAIT && position == begin && slots > 1)
			awaited = head_awaits(context, ring, position);
		for (uint32_t i = 1; (kind == TASK_NOTIFY_RECORD || kind == TASK_NOTIFY_WAIT) && i < slots; i++) {
			const volatile struct item *item = &ring->slots[(position + i) % HCCLD_STREAM_SLOTS].item;
			uint32_t id = item_id(context, item);

			if (id == NONE)
				continue;
			mark(marks->named, id);
			if (id != awaited && kind == TASK_NOTIFY_RECORD)
				mark(marks->recorded, id);
			if (id != awaited && kind == TASK_NOTIFY_WAIT && position != begin && item->peer == 1)
				mark(marks->cleared, id);
		}
		position += slots;
	}
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&ring->tail, memory_order_relaxed) - begin > HCCLD_STREAM_SLOTS)
		memset(marks, 0xff, sizeof(*marks));
}

static bool is_marked(const struct notifies *notifies, const uint64_t *words)
{
	for (uint32_t id = notifies->first; id < notifies->first + notifies->count; id++)
		if (words[id / 64] >> (id % 64) & 1)
			return true;
	return false;
}

/* It grows with every change (N1). */
static uint64_t changes_of(const struct notifies *notifies)
{
	uint64_t changes = 0;

	for (uint32_t id = notifies->first; id < notifies->first + notifies->count; id++)
		changes += atomic_load_explicit(&notify_slot_at(notifies->context, id)->word, memory_order_acquire) >> 32;
	return changes;
}

static void decide(struct notifies *notifies, const struct marks *marks)
{
	if (!is_marked(notifies, marks->named)) {
		notifies_end(notifies);
		return;
	}
	if (!notifies->may_have_waits || is_marked(notifies, marks->recorded) ||
	    (notifies->purpose == NOTIFY_COUNTING && is_marked(notifies, marks->cleared)) || changes_of(notifies) != notifies->changes)
		return;
	notifies_fail(notifies, CAUSE_ABORTED);
	notifies_set_decided(notifies);
	notifies->context->session->registry->failed_notifies = true;
}

void notifies_look(struct context *context)
{
	const struct session *session = context->session;
	uint64_t begin_ns = look_begin();
	struct marks marks = { 0 };

	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		if (notifies->may_have_waits)
			notifies->changes = changes_of(notifies);
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++)
		if (session->streams[i])
			mark_ring(context, session->streams[i]->ring, &marks);
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		if (notifies->is_settled)
			decide(notifies, &marks);
	look_end(&context->notifies.look, begin_ns);
}

void notifies_collect(struct context *context)
{
	if (context->notifies.settled_count && look_is_due(&context->notifies.look))
		notifies_look(context);
}
