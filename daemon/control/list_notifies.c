/* SPDX-License-Identifier: Apache-2.0 */
/* The list of notifies: who has them, what they hold, who waits. */
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "registry/thread.h"

#define LOOKS_MAX (1u << 20) /* at heads of streams, in one reply: those who wait for the rest are not told */

/* Sessions come by growing id. */
static uint64_t notifies_cursor(const struct session *session, uint32_t device, uint32_t first)
{
	return session->view.id << 23 | (uint64_t)device << 17 | (first + 1);
}
_Static_assert(HCCLD_NOTIFIES_MAX <= 1 << 16 && HCCLD_DEVICES_MAX <= 1 << 6, "fits the cursor");

static const char *purpose_name(enum notify_purpose purpose)
{
	static const char *const names[] = {
		[NOTIFY_PLAIN] = "acl",
		[NOTIFY_COUNTING] = "counting",
		[NOTIFY_OF_THREAD] = "thread",
		[NOTIFY_OF_CHANNEL] = "channel",
	};

	return (unsigned int)purpose < sizeof(names) / sizeof(names[0]) ? names[purpose] : "";
}

/* Does the head of @ring wait for the notify at @slot? A client can write it at any time: everything is read once, and judged. */
static bool head_waits_for(struct view_session *session, const struct stream_ring *ring, const struct notify_slot *slot)
{
	uint64_t position = atomic_load_explicit(&ring->completed, memory_order_acquire);
	const volatile struct task *task = &ring->slots[position % HCCLD_STREAM_SLOTS].task;
	const volatile struct item *item = &ring->slots[(position + 1) % HCCLD_STREAM_SLOTS].item;
	uint64_t offset = item->offset;
	const struct view_segment *segment;

	if (position == atomic_load_explicit(&ring->tail, memory_order_acquire) || task->kind != TASK_NOTIFY_WAIT || task->side)
		return false;
	segment = view_notify_find(session, item->segment, offset);
	return segment && segment->base + offset == (const unsigned char *)slot;
}

/* The word is what clients and the engine have left there: it may name nobody, or somebody who waits no more. */
static bool list_waiter(const struct tenant *tenant, const struct notify_slot *slot, Hccld__Control__Notifies *message, uint32_t *left)
{
	uint32_t waiter = atomic_load_explicit(&slot->waiter, memory_order_relaxed);
	struct view_context *context;
	uint32_t limit;

	if (!waiter || waiter > HCCLD_YARD_CONTEXTS)
		return false;
	context = atomic_load_explicit(&tenant->view.contexts[waiter - 1], memory_order_acquire);
	limit = context ? atomic_load_explicit(&context->stream_limit, memory_order_acquire) : 0;
	for (uint32_t i = 0; i < limit && *left; i++, --*left) {
		const struct stream_ring *ring = atomic_load_explicit(&context->streams[i], memory_order_acquire);

		if (!ring || !head_waits_for(context->session, ring, slot))
			continue;
		message->waiter_pid = (uint32_t)context->session->pid;
		message->waiter_stream = (uint32_t)(((const char *)ring - (const char *)session_stream(context->session->region, 0)) /
						    SESSION_STREAM_STRIDE);
		return true;
	}
	return false;
}

/* Whose channel or thread they are of. */
static void add_rank(const struct notifies *notifies, Hccld__Control__Notifies *message)
{
	struct session *session = notifies->context->session;
	const struct channel *channel = notifies->purpose == NOTIFY_OF_CHANNEL ? channel_find(session, notifies->request) : NULL;
	const struct rank *rank = channel ? channel->rank : NULL;

	if (notifies->purpose == NOTIFY_OF_THREAD)
		list_for_each(struct thread, thread, &notifies->context->threads, link)
			if (thread->notifies == notifies)
				rank = session_rank(session, thread->rank);
	if (!rank)
		return;
	message->comm_name = rank->comm->name;
	message->rank = rank->rank;
	message->peer = channel ? channel->peer : 0;
}

static Hccld__Control__Notifies *list_range(struct request *request, const struct notifies *notifies, uint32_t *left)
{
	struct session *session = notifies->context->session;
	Hccld__Control__Notifies *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__notifies__init(message);
	message->session = session->view.id;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = session->process;
	message->device = notifies->context->device;
	message->first = notifies->first;
	message->count = notifies->count;
	message->purpose = (char *)purpose_name(notifies->purpose);
	message->is_closing = notifies->is_closing;
	add_rank(notifies, message);
	for (uint32_t i = 0; i < notifies->count; i++) {
		const struct notify_slot *slot = notify_slot_at(notifies->context, notifies->first + i);
		uint32_t value = notify_value(atomic_load_explicit(&slot->word, memory_order_relaxed));

		message->value = i ? message->value : value;
		message->set_count += value != 0;
		if (!message->waiter_pid && list_waiter(session->tenant, slot, message, left))
			message->waited_for = notifies->first + i;
	}
	return message;
}

static bool list_notifies_of(struct page *page, struct context *context, uint32_t *left)
{
	uint32_t id = 0;

	notifies_collect(context->session);
	while (id < HCCLD_NOTIFIES_MAX && !list_is_empty(&context->notifies.ranges)) {
		const struct notifies *notifies = context->notifies.owners[id];
		uint64_t cursor = notifies_cursor(context->session, context->device, id);
		Hccld__Control__Notifies *message;

		id += notifies ? notifies->count : 1;
		if (!notifies || cursor <= page->after)
			continue;
		message = list_range(page->request, notifies, left);
		if (!page_add(page, message ? &message->base : NULL, cursor))
			return false;
	}
	return true;
}

void list_notifies(struct page *page)
{
	struct request *request = page->request;
	const Hccld__Control__List *list = request->message->list;
	const struct registry *registry = request->control->registry;
	uint32_t left = LOOKS_MAX;

	list_for_each(struct session, session, &registry->sessions, link) {
		if ((list->session && session->view.id != list->session) ||
		    (list->pid && (uint32_t)session->view.pid != list->pid) || !query_sees(request, session->uid))
			continue;
		for (uint32_t i = 0; i < registry->device_count; i++)
			if (session->contexts[i] && !list_notifies_of(page, session->contexts[i], &left))
				return;
	}
}
