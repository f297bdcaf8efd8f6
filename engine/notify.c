/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that record notifies and wait for them (proto/notify.h). Executor's thread.
 *
 * Why nothing is recorded or taken twice. A change is announced in the task's `number`, then made (N1). Whatever is looked at again (after
 * a kill, in another visit) has been done if the notify's count has come as far. That holds as long as nobody else changes the notify
 * between the two (N2): they are made in one go, and after a kill engine_recover(), which goes over all contexts before the first is
 * looked at, makes what a head has announced and not made. There is one such head at most. The count decides, never the word that was
 * announced: a client that writes its own `number` loses or repeats its own task and nothing else.
 *
 * Why nobody's wake-up is lost. A head that waits stores its context's index in `waiter` (N3); a change rings that context (R2), whoever's
 * it is. A second context that waits for the same notify takes the place of the first, which is polled from then on. After a restart all
 * contexts with undone work are looked at (R9). When memory or a channel goes all who wait for a notify look again: they find it retired,
 * or `failed`; what was recorded before that is taken first.
 *
 * A record that is passed over (stop_on_failure, `dropped`) or whose stream ends is not made, unlike that of an event: a notify says that
 * data is there, often to another process, and it is not. As on the hardware its wait ends by its time-out. An event ends waits of the
 * process itself, which knows that it has taken the work away.
 */
#include <errno.h>

#include "engine/executor.h"
#include "proto/notify.h"

static uint32_t value_after(uint8_t change, uint32_t value, uint32_t operand)
{
	switch (change) {
	case NOTIFY_ADD:
		return value + operand;
	case NOTIFY_OR:
		return value | operand;
	case NOTIFY_AND:
		return value & operand;
	default:
		return operand;
	}
}

static bool place_is_sound(const struct batch *batch, const struct place *place)
{
	if (batch->task.kind == TASK_NOTIFY_WAIT)
		return place->comparison <= NOTIFY_EQUAL_MASKED;
	return place->comparison <= NOTIFY_OR || place->comparison == NOTIFY_AND;
}

/* Whoever waits for it looks again. The index is judged: what is in the memory is not ours. */
static void notify_ring(struct engine *engine, struct view_context *context, struct notify_slot *slot)
{
	uint32_t waiter = atomic_load_explicit(&slot->waiter, memory_order_relaxed);

	if (waiter && waiter <= HCCLD_YARD_CONTEXTS)
		context_dirty(engine, atomic_load_explicit(&context->yard->contexts[waiter - 1], memory_order_acquire));
}

static void notify_make(struct batch *batch, struct notify_slot *slot, uint64_t word, uint32_t value)
{
	uint64_t next = notify_next(word, value);

	/* N1 */
	atomic_store_explicit(&task_slot(batch)->number, next, memory_order_release);
	CRASH_POINT(30);
	/* release: whoever finds the value finds what earlier tasks of the stream have done */
	atomic_store_explicit(&slot->word, next, memory_order_release);
	CRASH_POINT(31);
	notify_ring(batch->engine, batch->context, slot);
}

/* Makes the task's change, if it is due and was not made. True: the task is done. */
static bool notify_try(struct batch *batch, const struct place *place)
{
	struct notify_slot *slot = place->address;
	uint64_t announced = atomic_load_explicit(&task_slot(batch)->number, memory_order_relaxed);
	uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);
	uint32_t operand = (uint32_t)place->number, mask = (uint32_t)(place->number >> 32);

	if (announced && notify_has_come(word, announced))
		return true;
	if (batch->task.kind == TASK_NOTIFY_RECORD) {
		notify_make(batch, slot, word, value_after(place->comparison, notify_value(word), operand));
		return true;
	}
	if (!engine_notify_compares(place->comparison, notify_value(word), operand, mask))
		return false;
	/* one that does not clear may be looked at again, and find it changed: nobody has seen that it was over */
	if (read_once(place->item->peer) == 1)
		notify_make(batch, slot, word, 0);
	return true;
}

static void context_await(struct batch *batch, struct notify_slot *slot)
{
	struct view_context *context = batch->context, *other = NULL;
	uint32_t waiter = atomic_load_explicit(&slot->waiter, memory_order_relaxed);

	if (waiter != context->index + 1) {
		if (waiter && waiter <= HCCLD_YARD_CONTEXTS)
			other = atomic_load_explicit(&context->yard->contexts[waiter - 1], memory_order_acquire);
		/* it may wait for this one still */
		if (other && other != context && other->awaits)
			context_poll(batch->engine, other);
		atomic_store_explicit(&slot->waiter, context->index + 1, memory_order_relaxed);
	}
	context->awaits = true;
	if (context->in_awaiting)
		return;
	context->in_awaiting = true;
	context->awaiting_next = batch->engine->awaiting;
	batch->engine->awaiting = context;
}

/* What it waits for, and what is there. */
static void fault_set_wish(struct fault *fault, struct batch *batch)
{
	const struct item *item = batch_item(batch, 0);
	uint32_t value = 0;
	int r;

	batch->engine->host.guard_begin();
	r = engine_notify_value(batch->context->session, read_once(item->segment), read_once(item->offset), &value);
	session_guard_end(batch->engine, batch->context->session);
	if (r < 0)
		return;
	fault->local_type = (uint8_t)(1 + read_once(item->data_type));
	fault->local_bytes = atomic_load_explicit(&item->number, memory_order_relaxed);
	fault->remote_bytes = value;
}

struct fault notify_fault(struct batch *batch, enum cause cause, uint64_t waited_ms)
{
	const struct item *item = batch_item(batch, 0);
	uint64_t id = read_once(item->segment);
	struct view_segment *segment = view_segment_of(batch->context->session, id, 0, 0);
	struct fault fault = { .cause = cause, .direction = ITEM_PLACE, .waited_ms = waited_ms };

	/* only the own ones are known by a number */
	if (segment && !segment->is_import)
		fault.number = 1 + read_once(item->offset) / sizeof(struct notify_slot);
	if (cause == CAUSE_EXEC_TIMEOUT)
		fault_set_wish(&fault, batch);
	return fault;
}

/* @missing: the segment that is not there, or 0. An import goes with its owner, everything else with its context. */
static int notify_fail(struct batch *batch, enum cause cause, uint64_t missing)
{
	struct fault fault = notify_fault(batch, cause, 0);

	fault_explain_lost(&fault, batch->context->session, missing);
	stream_fault(batch->ring, &fault);
	return 1;
}

int notify_run(struct batch *batch)
{
	struct view_session *session = batch->context->session;
	struct place place;
	uint32_t failed = 0;
	bool done;
	int r;

	r = place_find(batch, sizeof(struct notify_slot), &place);
	if (r < 0)
		return r;
	if (!place_is_sound(batch, &place))
		return -EPROTO;
	/* given up */
	if (atomic_load_explicit(&task_slot(batch)->outcome, memory_order_relaxed))
		return 1;
	if (!place.address)
		return notify_fail(batch, CAUSE_ABORTED, read_once(place.item->segment));
	batch->engine->host.guard_begin();
	done = notify_try(batch, &place);
	if (!done)
		failed = atomic_load_explicit(&((struct notify_slot *)place.address)->failed, memory_order_acquire);
	if (!done && !failed)
		context_await(batch, place.address);
	session_guard_end(batch->engine, session);
	return failed ? notify_fail(batch, failed < CAUSE_COUNT ? (enum cause)failed : CAUSE_PEER_LEFT, 0) : done;
}

void notify_recover(struct batch *batch)
{
	struct place place;

	if (!atomic_load_explicit(&task_slot(batch)->number, memory_order_relaxed) || stream_passes_over(batch->ring, batch->position) ||
	    place_find(batch, sizeof(struct notify_slot), &place) < 0 || !place_is_sound(batch, &place) || !place.address)
		return;
	batch->engine->host.guard_begin();
	(void)notify_try(batch, &place);
	session_guard_end(batch->engine, batch->context->session);
	engine_ring_dirty(batch->engine);
}

void notify_ring_all(struct engine *engine)
{
	for (struct view_context *context = engine->awaiting; context; context = context->awaiting_next)
		if (context->awaits)
			context_dirty(engine, context);
}

void context_forget_notifies(struct engine *engine, struct view_context *context)
{
	struct view_context **at = &engine->awaiting;

	if (context->in_awaiting) {
		while (*at != context)
			at = &(*at)->awaiting_next;
		*at = context->awaiting_next;
	}
	context->in_awaiting = context->awaits = false;
}

/* ---- for the owner ---- */

bool engine_notify_compares(uint8_t compare, uint32_t value, uint32_t operand, uint32_t mask)
{
	switch (compare) {
	case NOTIFY_LESS:
		return value < operand;
	case NOTIFY_EQUAL:
		return value == operand;
	case NOTIFY_BIGGER:
		return value > operand;
	case NOTIFY_BIGGER_OR_EQUAL:
		return value >= operand;
	default:
		return (value & mask) == (operand & mask);
	}
}

void engine_notify_ring(struct engine *engine)
{
	notify_ring_all(engine);
	engine_ring_dirty(engine);
}

static int slot_find(struct view_session *session, uint64_t id, uint64_t offset, struct notify_slot **ret_slot)
{
	struct view_segment *segment = view_notify_find(session, id, offset);

	if (!segment)
		return -ENOENT;
	if ((uintptr_t)(segment->base + offset) % sizeof(struct notify_slot))
		return -EINVAL;
	*ret_slot = (struct notify_slot *)(segment->base + offset);
	return 0;
}

int engine_notify_reset(struct engine *engine, struct view_context *context, uint64_t segment, uint64_t offset)
{
	struct notify_slot *slot;
	uint64_t word;
	int r;

	r = slot_find(context->session, segment, offset, &slot);
	if (r < 0)
		return r;
	engine->host.guard_begin();
	word = atomic_load_explicit(&slot->word, memory_order_relaxed);
	atomic_store_explicit(&slot->word, notify_next(word, 0), memory_order_release);
	notify_ring(engine, context, slot);
	session_guard_end(engine, context->session);
	engine_ring_dirty(engine);
	return 0;
}

int engine_notify_value(struct view_session *session, uint64_t segment, uint64_t offset, uint32_t *ret_value)
{
	struct notify_slot *slot;
	int r;

	r = slot_find(session, segment, offset, &slot);
	if (r == 0)
		*ret_value = notify_value(atomic_load_explicit(&slot->word, memory_order_acquire));
	return r;
}
