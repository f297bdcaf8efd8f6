/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/kernels.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/text.h"
#include "proto/ring.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/session.h"
#include "registry/waiting.h"

/* Those of one context that have been running for long. */
struct running {
	uint64_t age_ms; /* for how long, at least */
	uint32_t count, blocks;
	uint64_t shortest_ms;
};

static bool running_found(void *data, const struct waiting *waiting)
{
	struct running *running = data;

	if (waiting->kind != TASK_HOST || !waiting->blocks || !waiting->is_begun || waiting->age_ms < running->age_ms)
		return true;
	if (!running->count || waiting->age_ms < running->shortest_ms)
		running->shortest_ms = waiting->age_ms;
	running->count++;
	running->blocks = waiting->blocks;
	return true;
}

/* Ranks of one context are threads, with a kernel each; which one has launched which is not known. */
static bool has_one_each(const struct rank *rank, struct running *running)
{
	uint32_t count = 0;

	list_for_each(struct rank, other, &rank->context->ranks, link)
		count += other->comm == rank->comm;
	waiting_walk_context(rank->context, rank->session, running_found, running);
	return running->count >= count;
}

bool kernels_describe_all(const struct comm *comm, uint64_t age_ms, struct text *text)
{
	uint64_t shortest_ms = UINT64_MAX;
	const struct rank *first = NULL;
	uint32_t blocks = 0;

	if (comm->state != COMM_READY || comm->rank_count < 2)
		return false;
	for (uint32_t i = 0; i < comm->view.size; i++) {
		struct running running = { .age_ms = age_ms };

		if (!comm->ranks[i])
			continue;
		if (!has_one_each(comm->ranks[i], &running))
			return false;
		if (running.shortest_ms < shortest_ms)
			shortest_ms = running.shortest_ms;
		if (!first)
			blocks = running.blocks;
		first = first ? first : comm->ranks[i];
	}
	if (!first)
		return false;
	text_add(text,
		 "host kernels of all %" PRIu32 " ranks of communicator %s (of rank %" PRIu32 ", pid %d: %" PRIu32
		 " block%s) have been running for %.1f s or longer: they compute, or wait for flags of one another that nobody sets",
		 comm->rank_count, comm->name, first->rank, first->session->view.pid, blocks, blocks == 1 ? "" : "s", (double)shortest_ms / 1000);
	kernels_advise(first->session->view.pid, text);
	return true;
}

void kernels_advise(int32_t pid, struct text *text)
{
	text_add(text, "; gdb -p %d shows where, in threads called hccld-kernel", pid);
}
