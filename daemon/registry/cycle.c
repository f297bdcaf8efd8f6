/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circles of waiting operations. The nodes are contexts (a process on a device): what a context has not posted it may be unable to post
 * while it waits itself; and single streams, of what is queued there already. A search in depth from one operation; a node is entered once.
 */
#include "registry/cycle.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "proto/cleanup.h"
#include "registry/channel.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/session.h"
#include "registry/waiting.h"
#include "registry/whose.h"

#define DEPTH_MAX 64u
#define ENTERED_MAX 1024u
#define EDGES_MAX 32u /* of one context */

/* One step: `waiting` is an operation of `context`, and leads to the next one. */
struct step {
	const struct context *context;
	struct waiting waiting;
};

struct search {
	struct target entered[ENTERED_MAX];
	uint32_t entered_count;
	uint32_t left; /* tasks to look at for who records something */
	struct step path[DEPTH_MAX];
	uint32_t depth;
	uint32_t circle_start; /* in path, once it is found */
};

struct edges {
	const struct target *node;
	struct waiting waiting[EDGES_MAX];
	uint32_t count;
};

/* A small send waits for nobody, unless the limit of its tenant holds it back: that makes no deadlock of the program's. */
static bool is_edge(const struct waiting *waiting)
{
	if (waiting->kind == TASK_NOTIFY_WAIT || waiting->kind == TASK_WAIT_EVENT)
		return true;
	return waiting->comm && !waiting->is_posted && waiting->peer < waiting->comm->view.size &&
	       !(waiting->is_held && waiting->bytes <= HCCLD_INLINE_MAX);
}

static bool edge_found(void *data, const struct waiting *waiting)
{
	struct edges *edges = data;

	if (is_edge(waiting) && target_may_be_at(edges->node, waiting))
		edges->waiting[edges->count++] = *waiting;
	return edges->count < EDGES_MAX;
}

/* False: it was there before, or there is no room for more. */
static bool search_enter(struct search *search, const struct target *node)
{
	for (uint32_t i = 0; i < search->entered_count; i++)
		if (search->entered[i].context == node->context && search->entered[i].stream == node->stream &&
		    search->entered[i].rank == node->rank)
			return false;
	if (search->entered_count == ENTERED_MAX)
		return false;
	search->entered[search->entered_count++] = *node;
	return true;
}

static bool search_go(struct search *search, const struct target *node);

/* Is the operation of @step one of those that @node may be at? */
static bool is_at(const struct step *step, const struct target *node)
{
	return step->context == node->context && (!node->stream || step->waiting.stream == node->stream->index) &&
	       target_may_be_at(node, &step->waiting);
}

/* @waiting, of @context, as the next step; true: a circle. */
static bool search_follow(struct search *search, const struct context *context,
			  const struct waiting *waiting)
{
	struct target next = target_of(waiting, &search->left);

	/* a rank for itself: it may post on another stream; behind itself in its stream: the reason says it */
	if (!next.context || search->depth == DEPTH_MAX ||
	    (next.context == context && !next.stream && target_may_be_at(&next, waiting)) ||
	    (next.context == context && next.stream && next.stream->index == waiting->stream))
		return false;
	search->path[search->depth++] = (struct step){ context, *waiting };
	for (uint32_t i = 0; i < search->depth; i++) {
		if (is_at(&search->path[i], &next)) {
			search->circle_start = i;
			return true;
		}
	}
	if (search_go(search, &next))
		return true;
	search->depth--;
	return false;
}

static bool search_go(struct search *search, const struct target *node)
{
	struct edges edges = { .node = node };

	if (!search_enter(search, node))
		return false;
	if (node->stream)
		waiting_walk_stream(node->session, node->stream, edge_found, &edges);
	else
		waiting_walk_context(node->context, node->session, edge_found, &edges);
	for (uint32_t i = 0; i < edges.count; i++)
		if (search_follow(search, node->context, &edges.waiting[i]))
			return true;
	return false;
}

/* Streams of processes that have no rank in it, or several streams of one. */
static bool is_of_rank(const struct waiting *waiting)
{
	return waiting->related && (waiting->kind != TASK_NOTIFY_WAIT || waiting->purpose == NOTIFY_OF_CHANNEL);
}

static void describe_node(const struct waiting *waiting, bool with_comm, bool with_pid,
			  struct text *text)
{
	if (!is_of_rank(waiting)) {
		text_add(text, "stream %" PRIu32 " of pid %d", waiting->stream, waiting->session->view.pid);
		return;
	}
	text_add(text, "rank %" PRIu32, waiting->rank);
	if (with_comm)
		text_add(text, " of %s", waiting->related->name);
	if (with_pid)
		text_add(text, " (pid %d)", waiting->session->view.pid);
}

/* What to do about it. */
static void advise(const struct search *search, bool has_several, struct text *text)
{
	bool has_barrier = false, has_record = false, has_channel = false, has_other = false;

	for (const struct step *step = search->path + search->circle_start; step < search->path + search->depth; step++) {
		has_barrier |= step->waiting.kind == TASK_BARRIER;
		has_record |= step->waiting.kind == TASK_NOTIFY_WAIT || step->waiting.kind == TASK_WAIT_EVENT;
		has_channel |= step->waiting.kind == WAITING_CHANNEL;
		has_other |= step->waiting.kind != WAITING_CHANNEL;
	}
	if (has_channel && has_other)
		text_add(text, "; let all of them call HcclChannelAcquire first, or all of them later");
	else if (has_channel && !has_several)
		/* two that acquire a channel to each other have met, unless it is not the same one */
		text_add(text, search->depth - search->circle_start == 2 ?
				       "; let both acquire channels of the same engine and protocol, in the same order" :
				       "; acquire these channels in one HcclChannelAcquire, or in the same order at all ranks");
	else if (has_record)
		text_add(text, "; let one of them record before it waits");
	else if (has_several || has_barrier)
		text_add(text, "; let all of them come to %s in the same order", has_several ? "these communicators" : "barriers and transfers");
	else
		text_add(text, "; post sends and receives in one HcclBatchSendRecv or between HcclGroupStart and HcclGroupEnd");
}

static void describe_circle(const struct search *search, struct text *text)
{
	const struct step *first = &search->path[search->circle_start];
	bool several = false;

	for (const struct step *step = first; step < search->path + search->depth; step++)
		several |= is_of_rank(&step->waiting) && is_of_rank(&first->waiting) && step->waiting.related != first->waiting.related;
	text_add(text, "; deadlock: ");
	for (const struct step *step = first; step < search->path + search->depth; step++) {
		describe_node(&step->waiting, several, true, text);
		text_add(text, step == first ? " waits for " : ", which waits for ");
	}
	describe_node(&first->waiting, several, false, text);
	advise(search, several, text);
}

/* Whose @waiting is; NULL: its stream has gone. */
static const struct context *context_of(const struct waiting *waiting)
{
	const struct stream *stream;

	if (waiting->channel)
		return waiting->channel->rank->context;
	stream = session_stream_at((struct session *)waiting->session, waiting->stream);
	return stream ? stream->context : NULL;
}

bool cycle_describe(const struct waiting *start, struct text *text)
{
	CLEANUP(freep) struct search *search = NULL;
	const struct context *context = context_of(start);

	if (!is_edge(start) || !context)
		return false;
	search = calloc(1, sizeof(*search));
	if (!search)
		return false;
	search->left = TARGET_TASKS;
	if (!search_follow(search, context, start))
		return false;
	describe_circle(search, text);
	return true;
}
