/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers tell nobody that they have received the last of it, so the rings are looked at. */
#include "control/growth_watch.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/log.h"
#include "base/loop.h"
#include "control/control.h"
#include "registry/comm.h"
#include "registry/growth.h"
#include "registry/registry.h"
#include "scheduler/scheduler.h"

#define AGAIN_MS 200

static bool look_run(struct engine *engine, void *arg)
{
	engine_look_at_held(engine);
	return true;
}

static void growth_look(struct control *control);

static void look_done(void *arg)
{
	struct control *control = arg;

	control->is_growth_looked_for = false;
	if (control->is_growth_looked_for_again && !control->is_stopping)
		growth_look(control);
}

/* Contexts that wait for room look again. */
static void growth_look(struct control *control)
{
	control->is_growth_looked_for_again = control->is_growth_looked_for;
	if (control->is_growth_looked_for)
		return;
	control->is_growth_looked_for = true;
	control->growth_look = (struct scheduler_call){ .run = look_run, .done = look_done, .arg = control };
	scheduler_call(control->scheduler, &control->growth_look);
}

void growth_make(void *data, uint64_t comm_id, uint32_t source, uint32_t destination, uint32_t pools)
{
	struct control *control = data;
	struct comm *comm = idmap_get(&control->registry->comm_ids, comm_id);
	int r;

	/* a rank that is going sends no more */
	if (control->is_stopping || !comm || !comm->ranks[source] || comm->ranks[source]->is_closing)
		return;
	/* as for requests (retry.h): processes may have ended of which we have not heard yet */
	r = growth_answer(comm, source, destination, pools, control->ending_count || !comm->is_put_off);
	comm->is_put_off = r < 0;
	if (r == -EAGAIN)
		return;
	if (r == -EUSERS || r == -ENOBUFS || r == -ENOMEM)
		log_event(LOG_LEVEL_NOTICE,
			  &(struct log_fields){ .event = EVENT_LIMIT_REFUSED, .comm = comm->name, .has_rank = true, .rank = source, .is_frequent = true },
			  "communicator %s: small sends of rank %" PRIu32 " wait for their receivers: %s leaves no memory for copies of them", comm->name,
			  source, r == -EUSERS ? "[limits] memory_per_tenant or descriptors_per_tenant" : "the node");
	growth_look(control);
}

void growth_watch(struct control *control)
{
	if (!control->registry->growths_linger || control->is_growth_timed || control->is_growth_passing)
		return;
	control->is_growth_timed = true;
	loop_timer_start(control->growth_timer, AGAIN_MS, 0);
}

static bool pass_run(struct engine *engine, void *arg)
{
	/* whatever it had found in the view is behind it */
	return true;
}

static void pass_done(void *arg)
{
	struct control *control = arg;

	control->is_growth_passing = false;
	if (control->is_stopping)
		return;
	list_for_each(struct comm, comm, &control->registry->comms, link)
		if (comm->is_retracted)
			growths_reclaim(comm);
	growth_watch(control);
}

void growth_watch_again(void *data)
{
	struct control *control = data;
	uint64_t comm_id = control->growth_comm;
	uint32_t rank = control->growth_rank;
	bool lingers = false, is_retracted = false;

	control->is_growth_timed = false;
	control->growth_comm = 0;
	control->growth_rank = 0;
	list_for_each(struct comm, comm, &control->registry->comms, link) {
		lingers |= comm->lingers;
		if (comm->state != COMM_READY || comm->id < comm_id || (comm->id != comm_id && !comm->lingers) || control->growth_comm)
			continue;
		rank = growths_retract(comm, comm->id == comm_id ? rank : 0);
		lingers |= comm->lingers;
		is_retracted |= comm->is_retracted;
		/* one after the other: each turn is short */
		control->growth_comm = rank < comm->view.size ? comm->id : comm->id + 1;
		control->growth_rank = rank < comm->view.size ? rank : 0;
	}
	control->registry->growths_linger = lingers || control->growth_rank;
	if (is_retracted) {
		control->is_growth_passing = true;
		control->growth_pass = (struct scheduler_call){ .run = pass_run, .done = pass_done, .arg = control };
		scheduler_call(control->scheduler, &control->growth_pass);
	}
	growth_watch(control);
}
