/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/whose.h"

#include <stddef.h>

#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/recorder.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/thread.h"
#include "registry/waiting.h"

static void set_rank(struct waiting *waiting, const struct rank *rank)
{
	waiting->related = rank->comm;
	waiting->rank = rank->rank;
}

/* Only the rank at the other end of the channel can record it. */
static void set_channel(struct waiting *waiting, const struct notifies *notifies)
{
	list_for_each(struct rank, rank, &notifies->context->ranks, link) {
		list_for_each(struct channel, channel, &rank->channels, link) {
			if (channel->notifies != notifies)
				continue;
			set_rank(waiting, rank);
			if (channel->peer >= rank->comm->view.size)
				return;
			waiting->peer = channel->peer;
			waiting->peer_pid = waiting_member_pid(rank->comm, channel->peer);
			return;
		}
	}
}

static void set_thread(struct waiting *waiting, const struct notifies *notifies)
{
	list_for_each(struct thread, thread, &notifies->context->threads, link) {
		const struct rank *rank;

		if (thread->notifies != notifies)
			continue;
		rank = thread->rank ? session_rank(thread->context->session, thread->rank) : NULL;
		if (rank)
			set_rank(waiting, rank);
		return;
	}
}

void whose_notify(struct waiting *waiting, const struct segment *segment)
{
	const struct segment *origin = segment->is_import ? segment->origin : segment;
	const struct notifies *notifies;
	uint64_t offset;

	if (!origin)
		return;
	offset = (uint64_t)((const char *)waiting->place - (const char *)origin->memory.base);
	notifies = offset < HCCLD_NOTIFIES_MAX * sizeof(struct notify_slot) ?
			   notifies_of(origin->context, (uint32_t)(offset / sizeof(struct notify_slot))) : NULL;
	if (!notifies)
		return;
	waiting->owner = origin;
	waiting->purpose = notifies->purpose;
	waiting->notify_id = (uint32_t)(offset / sizeof(struct notify_slot));
	waiting->notify_index = waiting->notify_id - notifies->first;
	if (segment->is_import)
		return;
	if (notifies->purpose == NOTIFY_OF_CHANNEL)
		set_channel(waiting, notifies);
	else if (notifies->purpose == NOTIFY_OF_THREAD)
		set_thread(waiting, notifies);
}

static bool is_among(const struct session *session, const struct context *const *found, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (found[i]->session == session)
			return true;
	return false;
}

uint32_t whose_importers(const struct waiting *waiting, const struct context *found[IMPORTERS_MAX])
{
	uint64_t offset = (uint64_t)waiting->notify_id * sizeof(struct notify_slot);
	uint32_t count = 0;

	if (!waiting->owner)
		return 0;
	list_for_each(struct segment, import, &waiting->owner->imports, import_link) {
		const struct session *session = import->context->session;

		if (session == waiting->session || offset < import->offset || offset - import->offset >= import->memory.bytes ||
		    is_among(session, found, count))
			continue;
		found[count++] = import->context;
		if (count == IMPORTERS_MAX)
			break;
	}
	return count;
}

struct target target_rank(const struct rank *rank)
{
	return rank ? (struct target){ .context = rank->context, .session = rank->session, .rank = rank } : (struct target){ 0 };
}

bool target_may_be_at(const struct target *target, const struct waiting *waiting)
{
	return !target->rank || waiting->related != target->rank->comm || waiting->rank == target->rank->rank;
}

static struct target target_peer(const struct comm *comm, uint32_t rank)
{
	return target_rank(comm && rank < comm->view.size ? comm->ranks[rank] : NULL);
}

static struct target target_notify(const struct waiting *waiting, uint32_t *left)
{
	struct recorder recorder = recorder_find(waiting, left);
	const struct context *importers[IMPORTERS_MAX];

	if (recorder.session)
		return (struct target){ recorder.stream->context, recorder.session, recorder.stream, NULL };
	if (waiting->purpose == NOTIFY_OF_CHANNEL)
		return target_peer(waiting->related, waiting->peer);
	if (waiting->owner && waiting->owner->context->session != waiting->session)
		return (struct target){ .context = waiting->owner->context, .session = waiting->owner->context->session };
	if (whose_importers(waiting, importers) == 1)
		return (struct target){ .context = importers[0], .session = importers[0]->session };
	return (struct target){ 0 };
}

struct target target_of(const struct waiting *waiting, uint32_t *left)
{
	struct session *session = (struct session *)waiting->session;
	const struct stream *stream;

	if (waiting->is_posted || waiting->is_held)
		return (struct target){ 0 };
	if (waiting->comm)
		return target_peer(waiting->comm, waiting->peer);
	if (waiting->kind == TASK_NOTIFY_WAIT)
		return target_notify(waiting, left);
	if (waiting->kind != TASK_WAIT_EVENT || !waiting->recorder)
		return (struct target){ 0 };
	stream = session_stream_at(session, waiting->recorder - 1);
	return stream ? (struct target){ stream->context, session, stream, NULL } : (struct target){ 0 };
}
