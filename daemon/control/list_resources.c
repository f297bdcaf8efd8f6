/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what operators hold: first each device with its budgets, then who holds it. What belongs to a rank (its channels, its
 * threads) is shown at the rank; the rest of a context, such as the vector cores of other streams, too, if it has one rank only, else at
 * the process.
 */
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/thread.h"

#define RANK_CURSORS (HCCLD_RANKS_PER_SESSION + HCCLD_DEVICES_MAX)
_Static_assert(RANK_CURSORS < 1 << 16, "fits the cursor");

/* Devices have the first cursors, then those of sessions come by growing id: ranks by their place, then contexts by their device. */
static uint64_t holder_cursor(const struct session *session, uint32_t place)
{
	return (session->view.id << 16) + HCCLD_DEVICES_MAX + place;
}

struct amounts {
	uint32_t notifies, cores;
};

/* Of a context, in all. */
static struct amounts context_amounts(const struct context *context)
{
	struct amounts amounts = { 0 };

	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		amounts.notifies += notifies->count;
	list_for_each(struct stream, stream, &context->streams, link)
		amounts.cores += stream->cores;
	return amounts;
}

static bool has_one_rank(const struct context *context)
{
	return !list_is_empty(&context->ranks) && context->ranks.next == context->ranks.previous;
}

static uint32_t channel_notifies(const struct rank *rank)
{
	uint32_t count = 0;

	list_for_each(struct channel, channel, &rank->channels, link)
		count += channel->notifies ? channel->notifies->count : 0;
	return count;
}

/* The rank that holds the cores of a stream, by its handle: that of the first of the threads on it. 0: none. */
static uint64_t stream_rank(const struct stream *stream)
{
	const struct thread *thread = stream->thread_count ? thread_first(stream->context, 0, stream) : NULL;

	return thread ? thread->rank : 0;
}

/* What is known to be of @rank: all of its context, if that has no other. */
static struct amounts rank_amounts(const struct rank *rank)
{
	const struct context *context = rank->context;
	struct amounts amounts = { 0 };

	if (has_one_rank(context))
		return context_amounts(context);
	amounts.notifies = channel_notifies(rank);
	list_for_each(struct thread, thread, &context->threads, link)
		if (thread->rank == rank->handle && thread->notifies)
			amounts.notifies += thread->notifies->count;
	list_for_each(struct stream, stream, &context->streams, link)
		if (stream->cores && stream_rank(stream) == rank->handle)
			amounts.cores += stream->cores;
	return amounts;
}

/* What is left of the context when its ranks have theirs; not by rank_amounts() of each, which would look at all threads again. */
static struct amounts rest_amounts(const struct context *context)
{
	struct amounts amounts = context_amounts(context);

	list_for_each(struct rank, rank, &context->ranks, link)
		amounts.notifies -= channel_notifies(rank);
	list_for_each(struct thread, thread, &context->threads, link)
		if (thread->rank && thread->notifies)
			amounts.notifies -= thread->notifies->count;
	list_for_each(struct stream, stream, &context->streams, link)
		if (stream->cores && stream_rank(stream))
			amounts.cores -= stream->cores;
	return amounts;
}

static Hccld__Control__Resource *resource_new(struct request *request, Hccld__Control__Resource__Owner owner,
					      uint32_t device)
{
	Hccld__Control__Resource *message = request_alloc(request, sizeof(*message));

	if (!message)
		return NULL;
	hccld__control__resource__init(message);
	message->owner = owner;
	message->device = device;
	return message;
}

static Hccld__Control__Resource *list_device(struct request *request, uint32_t number)
{
	const struct registry *registry = request->control->registry;
	const struct device *device = &registry->devices[number];
	Hccld__Control__Resource *message = resource_new(request, HCCLD__CONTROL__RESOURCE__OWNER__DEVICE, number);

	if (!message)
		return NULL;
	message->channels = device->channels;
	message->notifies = device->notifies;
	message->notify_budget = registry->notifies_per_device;
	message->cores = device->cores;
	message->core_budget = registry->cores_per_device;
	return message;
}

static Hccld__Control__Resource *list_holder(struct request *request, const struct context *context, const struct rank *rank,
					     const struct amounts *amounts)
{
	const struct session *session = context->session;
	Hccld__Control__Resource *message =
		resource_new(request,
			     rank ? HCCLD__CONTROL__RESOURCE__OWNER__RANK : HCCLD__CONTROL__RESOURCE__OWNER__PROCESS,
			     context->device);

	if (!message)
		return NULL;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = (char *)session->process;
	message->notifies = amounts->notifies;
	message->cores = amounts->cores;
	if (rank) {
		message->comm = rank->comm->id;
		message->comm_name = rank->comm->name;
		message->rank = rank->rank;
		message->channels = rank->channel_count;
	}
	return message;
}

static bool list_ranks_of(struct page *page, const struct session *session)
{
	for (uint32_t i = 0; session->rank_slots.used && i < HCCLD_RANKS_PER_SESSION; i++) {
		const struct rank *rank = session->ranks[i];
		uint64_t cursor = holder_cursor(session, i + 1);
		Hccld__Control__Resource *message;
		struct amounts amounts;

		if (!rank || rank->is_closing || cursor <= page->after)
			continue;
		amounts = rank_amounts(rank);
		message = list_holder(page->request, rank->context, rank, &amounts);
		if (!page_add(page, message ? &message->base : NULL, cursor))
			return false;
	}
	return true;
}

/* What no rank has. */
static bool list_contexts_of(struct page *page, const struct session *session)
{
	for (uint32_t i = 0; i < page->request->control->registry->device_count; i++) {
		const struct context *context = session->contexts[i];
		uint64_t cursor = holder_cursor(session, HCCLD_RANKS_PER_SESSION + i + 1);
		Hccld__Control__Resource *message;
		struct amounts amounts;

		if (!context || has_one_rank(context) || cursor <= page->after)
			continue;
		amounts = rest_amounts(context);
		if (!amounts.notifies && !amounts.cores)
			continue;
		message = list_holder(page->request, context, NULL, &amounts);
		if (!page_add(page, message ? &message->base : NULL, cursor))
			return false;
	}
	return true;
}

void list_resources(struct page *page)
{
	struct request *request = page->request;
	const struct registry *registry = request->control->registry;

	for (uint64_t i = page->after; i < registry->device_count; i++) {
		Hccld__Control__Resource *message = list_device(request, (uint32_t)i);

		if (!page_add(page, message ? &message->base : NULL, i + 1))
			return;
	}
	list_for_each(struct session, session, &registry->sessions, link) {
		if (!query_sees(request, session->uid))
			continue;
		if (!list_ranks_of(page, session) || !list_contexts_of(page, session))
			return;
	}
}
