/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circles of waiting operations. The nodes are contexts (a process on a device): what a context has not posted it may be unable to post
 * while it waits itself. A search in depth from one operation; a context is entered once.
 */
#include "registry/cycle.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/text.h"
#include "proto/cleanup.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/session.h"
#include "registry/waiting.h"

#define DEPTH_MAX 64u
#define ENTERED_MAX 1024u
#define EDGES_MAX 32u /* of one context */

/* One step: `waiting` is an operation of `context`, and leads to the next one's context. */
struct step {
	const struct context *context;
	struct waiting waiting;
};

struct search {
	const struct context *entered[ENTERED_MAX];
	uint32_t entered_count;
	struct step path[DEPTH_MAX];
	uint32_t depth;
	uint32_t circle_start; /* in path, once it is found */
};

struct edges {
	struct waiting waiting[EDGES_MAX];
	uint32_t count;
};

/* A small send waits for nobody, unless the limit of its tenant holds it back: that makes no deadlock of the program's. */
static bool is_edge(const struct waiting *waiting)
{
	return waiting->comm && !waiting->is_posted && waiting->peer < waiting->comm->view.size &&
	       !(waiting->is_held && waiting->bytes <= HCCLD_INLINE_MAX);
}

static bool edge_found(void *data, const struct waiting *waiting)
{
	struct edges *edges = data;

	if (is_edge(waiting))
		edges->waiting[edges->count++] = *waiting;
	return edges->count < EDGES_MAX;
}

/* False: it was there before, or there is no room for more. */
static bool search_enter(struct search *search, const struct context *context)
{
	for (uint32_t i = 0; i < search->entered_count; i++)
		if (search->entered[i] == context)
			return false;
	if (search->entered_count == ENTERED_MAX)
		return false;
	search->entered[search->entered_count++] = context;
	return true;
}

static bool search_go(struct search *search, const struct rank *rank);

/* @waiting, of @context, as the next step; true: a circle. */
static bool search_follow(struct search *search, const struct context *context,
			  const struct waiting *waiting)
{
	const struct rank *peer = waiting->comm->ranks[waiting->peer];

	/* ranks of one context: it may post on another stream */
	if (!peer || peer->context == context || search->depth == DEPTH_MAX)
		return false;
	search->path[search->depth++] = (struct step){ context, *waiting };
	for (uint32_t i = 0; i < search->depth; i++) {
		if (search->path[i].context == peer->context) {
			search->circle_start = i;
			return true;
		}
	}
	if (search_go(search, peer))
		return true;
	search->depth--;
	return false;
}

static bool search_go(struct search *search, const struct rank *rank)
{
	struct edges edges = { .count = 0 };

	if (!search_enter(search, rank->context))
		return false;
	waiting_walk_context(rank->context, rank->session, edge_found, &edges);
	for (uint32_t i = 0; i < edges.count; i++)
		if (search_follow(search, rank->context, &edges.waiting[i]))
			return true;
	return false;
}

static void describe_rank(const struct waiting *waiting, bool with_comm, bool with_pid,
			  struct text *text)
{
	text_add(text, "rank %" PRIu32, waiting->rank);
	if (with_comm)
		text_add(text, " of %s", waiting->comm->name);
	if (with_pid)
		text_add(text, " (pid %d)", waiting->session->view.pid);
}

static void describe_circle(const struct search *search, struct text *text)
{
	const struct step *first = &search->path[search->circle_start];
	bool several = false, has_barrier = false;

	for (const struct step *step = first; step < search->path + search->depth; step++) {
		several |= step->waiting.comm != first->waiting.comm;
		has_barrier |= !step->waiting.direction;
	}
	text_add(text, "; deadlock: ");
	for (const struct step *step = first; step < search->path + search->depth; step++) {
		describe_rank(&step->waiting, several, true, text);
		text_add(text, step == first ? " waits for " : ", which waits for ");
	}
	describe_rank(&first->waiting, several, false, text);
	if (several || has_barrier)
		text_add(text, "; let all of them come to %s in the same order", several ? "these communicators" : "barriers and transfers");
	else
		text_add(text, "; post these in one HcclBatchSendRecv or between HcclGroupStart and HcclGroupEnd");
}

void cycle_describe(const struct waiting *start, struct text *text)
{
	CLEANUP(freep) struct search *search = NULL;
	const struct rank *self;

	if (!is_edge(start))
		return;
	self = start->comm->ranks[start->rank];
	search = calloc(1, sizeof(*search));
	if (!self || !search || !search_enter(search, self->context))
		return;
	if (search_follow(search, self->context, start))
		describe_circle(search, text);
}
