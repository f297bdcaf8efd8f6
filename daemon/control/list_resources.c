/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of what operators hold: first each device with its budgets, then who holds it. What belongs to a rank (its channels, its
 * threads) is shown at the rank; the rest of a context, such as the vector cores of other streams, too, if it has one rank only, else at
 * the process. Vector cores of a kernel whose stream has gone stay where they were, as long as the rank is there.
 */
#include "control/control.h"
#include "control/page.h"
#include "control/query.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/cores.h"
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
	uint32_t notifies, cores, orphan_cores;
};

static bool has_one_rank(const struct context *context)
{
	return context && !list_is_empty(&context->ranks) && context->ranks.next == context->ranks.previous;
}

static uint32_t channel_notifies(const struct rank *rank)
{
	uint32_t count = 0;

	list_for_each(struct channel, channel, &rank->channels, link)
		count += channel->notifies ? channel->notifies->count : 0;
	return count;
}

/* The rank that holds them, by its handle. 0: none. */
static uint64_t cores_rank(const struct cores *cores)
{
	uint64_t rank = cores->stream ? thread_stream_rank(cores->stream) : cores->rank;

	return rank && session_rank(cores->session, rank) ? rank : 0;
}

static void add_cores(struct amounts *amounts, const struct cores *cores)
{
	amounts->cores += cores->count;
	amounts->orphan_cores += cores->stream ? 0 : cores->count;
}

/* Those of @session on @device that @rank holds; 0: that no rank holds. */
static void add_cores_of(struct amounts *amounts, const struct session *session, uint32_t device, uint64_t rank)
{
	list_for_each(struct cores, cores, &session->cores, link)
		if (cores->device == device && cores_rank(cores) == rank)
			add_cores(amounts, cores);
}

static struct amounts context_amounts(const struct context *context)
{
	struct amounts amounts = { 0 };

	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		amounts.notifies += notifies->count;
	list_for_each(struct cores, cores, &context->session->cores, link)
		if (cores->device == context->device)
			add_cores(&amounts, cores);
	return amounts;
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
	add_cores_of(&amounts, context->session, context->device, rank->handle);
	return amounts;
}

/*
 * What is left when the ranks on the device have theirs; not by rank_amounts() of each, which would look at all threads again. @context
 * NULL: it is closed, and kernels of it may still run.
 */
static struct amounts rest_amounts(const struct session *session, uint32_t device, const struct context *context)
{
	struct amounts amounts = { 0 };

	add_cores_of(&amounts, session, device, 0);
	if (!context)
		return amounts;
	list_for_each(struct notifies, notifies, &context->notifies.ranges, link)
		amounts.notifies += notifies->count;
	list_for_each(struct rank, rank, &context->ranks, link)
		amounts.notifies -= channel_notifies(rank);
	list_for_each(struct thread, thread, &context->threads, link)
		if (thread->rank && thread->notifies)
			amounts.notifies -= thread->notifies->count;
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

static Hccld__Control__Resource *list_holder(struct request *request, const struct session *session, uint32_t device,
					     const struct rank *rank, const struct amounts *amounts)
{
	Hccld__Control__Resource *message =
		resource_new(request,
			     rank ? HCCLD__CONTROL__RESOURCE__OWNER__RANK : HCCLD__CONTROL__RESOURCE__OWNER__PROCESS, device);

	if (!message)
		return NULL;
	message->pid = (uint32_t)session->view.pid;
	message->uid = session->uid;
	message->process = (char *)session->process;
	message->notifies = amounts->notifies;
	message->cores = amounts->cores;
	message->orphan_cores = amounts->orphan_cores;
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
		const struct rank *rank = session->places[i].rank;
		uint64_t cursor = holder_cursor(session, i + 1);
		Hccld__Control__Resource *message;
		struct amounts amounts;

		if (!rank || rank->is_closing || cursor <= page->after)
			continue;
		amounts = rank_amounts(rank);
		message = list_holder(page->request, session, rank->context->device, rank, &amounts);
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

		if (has_one_rank(context) || cursor <= page->after)
			continue;
		amounts = rest_amounts(session, i, context);
		if (!amounts.notifies && !amounts.cores)
			continue;
		message = list_holder(page->request, session, i, NULL, &amounts);
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
