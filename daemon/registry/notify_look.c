/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the queued tasks of a session say of its notifies that were given back: whether one names them, and whether a record of them can
 * still come. Rings are the clients': whoever writes nonsense harms notifies of his own.
 *
 * A record comes before a wait if it is queued, and not behind a wait for the same notify that is at the head of its stream and has not got
 * what it wants. So does, of a counting notify, a wait that clears it and is not at the head itself. The rings are read one after the
 * other, once for all contexts of the session, while the engine goes on: if the notify has changed meanwhile nothing is known. If it has not, a head that had not got what it
 * wanted was one from the first ring to the last.
 */
#include <string.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"

#define PLACE sizeof(struct notify_slot)

struct marks {
	uint64_t named[HCCLD_NOTIFIES_MAX / 64];
	uint64_t recorded[HCCLD_NOTIFIES_MAX / 64];
	uint64_t cleared[HCCLD_NOTIFIES_MAX / 64]; /* by waits */
};

static struct marks marks_of[HCCLD_DEVICES_MAX]; /* control thread; of contexts that have something to decide, during a look */

/* A notify that an item names. */
struct named {
	struct context *context; /* NULL: none that is to be decided on */
	uint32_t id;
};

/* What is to be looked at; NULL: the session has no context of the device, or that has nothing to decide. */
static struct context *context_at(const struct session *session, uint32_t device)
{
	struct context *context = session->contexts[device];

	return context && context->notifies.settled_count ? context : NULL;
}

static struct named item_names(struct session *session, const volatile struct item *item)
{
	const struct named none = { 0 };
	uint64_t offset = item->offset;
	struct segment *segment;

	if (item->kind != ITEM_PLACE || offset / PLACE >= HCCLD_NOTIFIES_MAX)
		return none;
	segment = session_segment(session, item->segment);
	if (!segment || segment->is_import || segment->kind != SEGMENT_NOTIFY || context_at(session, segment->context->device) != segment->context)
		return none;
	return (struct named){ segment->context, (uint32_t)(offset / PLACE) };
}

/* The notify that the task at @position, the head, waits for in vain; or none. */
static struct named head_awaits(struct session *session, const struct stream_ring *ring, uint64_t position)
{
	const struct item *item = &ring->slots[(position + 1) % HCCLD_STREAM_SLOTS].item;
	uint64_t number = atomic_load_explicit(&item->number, memory_order_relaxed);
	struct named named = item_names(session, item);
	uint64_t word;

	/* a place that was handed out has memory behind it */
	if (!named.context || !notifies_owner(named.context, named.id))
		return (struct named){ 0 };
	word = atomic_load_explicit(&notify_slot_at(named.context, named.id)->word, memory_order_acquire);
	if (engine_notify_compares(*(const volatile uint8_t *)&item->data_type, notify_value(word), (uint32_t)number, (uint32_t)(number >> 32)))
		return (struct named){ 0 };
	return named;
}

/* Of a task of @kind, not ahead of one that waits for @awaited in vain. @clears: so it does if it is a wait. */
static void mark_item(struct named named, struct named awaited, uint32_t kind, bool clears)
{
	struct marks *marks = &marks_of[named.context->device];

	bits_set(marks->named, named.id);
	if (named.context == awaited.context && named.id == awaited.id)
		return;
	if (kind == TASK_NOTIFY_RECORD)
		bits_set(marks->recorded, named.id);
	else if (clears)
		bits_set(marks->cleared, named.id);
}

/* Of all contexts; nothing is known then. */
static void mark_all(const struct session *session)
{
	for (uint32_t device = 0; device < session->registry->device_count; device++)
		if (context_at(session, device))
			memset(&marks_of[device], 0xff, sizeof(marks_of[device]));
}

/*
 * What is queued in @ring: a task is there until `completed` has passed it, and the engine changes no notify for it afterwards (acquire).
 * Slots may be written anew meanwhile: then nothing is known.
 */
static void mark_ring(struct session *session, const struct stream_ring *ring)
{
	uint64_t begin = atomic_load_explicit(&ring->completed, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire), position = begin;
	struct named awaited = { 0 };

	if (tail - begin > HCCLD_STREAM_SLOTS)
		return; /* nonsense */
	while (position < tail) {
		const volatile struct task *task = &ring->slots[position % HCCLD_STREAM_SLOTS].task;
		uint32_t slots = task->slot_count, kind = task->kind;

		if (!slots || slots > tail - position)
			break;
		if (kind == TASK_NOTIFY_WAIT && position == begin && slots > 1)
			awaited = head_awaits(session, ring, position);
		for (uint32_t i = 1; (kind == TASK_NOTIFY_RECORD || kind == TASK_NOTIFY_WAIT) && i < slots; i++) {
			const volatile struct item *item = &ring->slots[(position + i) % HCCLD_STREAM_SLOTS].item;
			struct named named = item_names(session, item);

			if (named.context)
				mark_item(named, awaited, kind, position != begin && item->peer == 1);
		}
		position += slots;
	}
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&ring->tail, memory_order_relaxed) - begin > HCCLD_STREAM_SLOTS)
		mark_all(session);
}

static bool is_marked(const struct notifies *notifies, const uint64_t *words)
{
	for (uint32_t id = notifies->first; id < notifies->first + notifies->count; id++)
		if (bits_get(words, id))
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

static void decide(struct notifies *notifies)
{
	const struct marks *marks = &marks_of[notifies->context->device];

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

static void look_start(struct context *context)
{
	memset(&marks_of[context->device], 0, sizeof(marks_of[context->device]));
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		if (notifies->may_have_waits)
			notifies->changes = changes_of(notifies);
}

static void look_decide(struct context *context)
{
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		if (notifies->is_settled)
			decide(notifies);
}

void notifies_look(struct session *session)
{
	const uint32_t device_count = session->registry->device_count;
	uint64_t begin_ns = look_begin();

	for (uint32_t device = 0; device < device_count; device++)
		if (context_at(session, device))
			look_start(session->contexts[device]);
	for (uint32_t i = 0; i < HCCLD_STREAMS_PER_SESSION; i++)
		if (session->places[i].stream)
			mark_ring(session, session->places[i].stream->ring);
	for (uint32_t device = 0; device < device_count; device++)
		if (context_at(session, device))
			look_decide(session->contexts[device]);
	look_end(&session->notify_look, begin_ns);
}

static bool has_settled(const struct session *session)
{
	for (uint32_t device = 0; device < session->registry->device_count; device++)
		if (context_at(session, device))
			return true;
	return false;
}

void notifies_collect(struct session *session)
{
	if (has_settled(session) && look_is_due(&session->notify_look))
		notifies_look(session);
}
