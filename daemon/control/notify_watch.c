/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits for notifies that were given back. What they wait for may be a record that is queued: so nothing is known when the notify goes, and
 * nobody tells when the last record has run, or is gone. The rings are looked at until it has.
 */
#include "base/loop.h"
#include "control/control.h"
#include "control/notifies.h"
#include "engine/engine.h"
#include "registry/context.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "scheduler/scheduler.h"

#define AGAIN_MS 50
#define TURN_NS 2000000u /* then the others have their turn */
#define PART 20u	 /* of our time, at most */

static bool ring_run(struct engine *engine, void *arg)
{
	engine_notify_ring(engine);
	return true;
}

static void watch(struct control *control, uint64_t spent_ns);

static void ring_done(void *arg)
{
	struct control *control = arg;

	control->is_notify_ringing = false;
	if (!control->is_stopping)
		watch(control, 0);
}

/* Rings who waits, and comes again if there is anything left. @spent_ns: what the last look took. */
static void watch(struct control *control, uint64_t spent_ns)
{
	struct registry *registry = control->registry;
	uint64_t pause_ms = (PART - 1) * spent_ns / 1000000;

	if (registry->failed_notifies && !control->is_notify_ringing) {
		registry->failed_notifies = false;
		control->is_notify_ringing = true;
		control->notify_ring = (struct scheduler_call){ .run = ring_run, .done = ring_done, .arg = control };
		scheduler_call(control->scheduler, &control->notify_ring);
	}
	/* not put off by whoever gives back one after the other */
	if (!registry->undecided_notifies || control->is_notify_timed)
		return;
	control->is_notify_timed = true;
	loop_timer_start(control->notify_timer, pause_ms > AGAIN_MS ? pause_ms : AGAIN_MS, 0);
}

void notifies_watch(struct control *control)
{
	watch(control, 0);
}

static bool session_is_undecided(const struct session *session)
{
	for (uint32_t i = 0; i < session->registry->device_count; i++)
		if (session->contexts[i] && session->contexts[i]->notifies.undecided_count)
			return true;
	return false;
}

void notifies_watch_again(void *data)
{
	struct control *control = data;
	struct registry *registry = control->registry;
	uint64_t begin_ns = look_begin(), after = control->notify_after;

	control->is_notify_timed = false;
	control->notify_after = 0;
	list_for_each(struct session, session, &registry->sessions, link) {
		if (session->view.id <= after || !session_is_undecided(session))
			continue;
		notifies_collect(session);
		if (look_begin() - begin_ns < TURN_NS)
			continue;
		control->notify_after = session->view.id;
		break;
	}
	watch(control, look_begin() - begin_ns);
}
