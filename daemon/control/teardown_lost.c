/* SPDX-License-Identifier: Apache-2.0 */
/* Taking away what nobody asks for: what a process could not be told of, what a restart has left behind. */
#include "base/log.h"
#include "control/control.h"
#include "control/teardown_take.h"
#include "registry/comm.h"
#include "registry/context.h"
#include "registry/lazy.h"
#include "registry/notify.h"
#include "registry/registry.h"
#include "registry/segment.h"
#include "registry/session.h"
#include "registry/thread.h"

/* NULL: no memory, which is logged. */
static struct teardown *teardown_unasked(struct control *control, struct session *session, const char *what)
{
	struct teardown *teardown = teardown_make(control, session, NULL);

	if (!teardown)
		log_error("no memory to take %s of pid %d away", what, session->view.pid);
	return teardown;
}

void teardown_lost_segment(struct control *control, struct segment *segment)
{
	struct teardown *teardown = teardown_unasked(control, segment->context->session, "a segment");

	if (!teardown)
		return;
	teardown_take_segment(teardown, segment);
	teardown_start(teardown);
}

void teardown_lost_rank(struct control *control, struct rank *rank)
{
	struct teardown *teardown = teardown_unasked(control, rank->session, "a rank");

	if (!teardown)
		return;
	teardown_take_rank(teardown, rank, MEMBER_LEFT, -1);
	teardown_start(teardown);
}

void teardown_lost_notifies(struct control *control, struct notifies *notifies)
{
	struct teardown *teardown = teardown_unasked(control, notifies->context->session, "notifies");

	if (teardown)
		teardown_take_notifies(teardown, notifies);
}

/* Their rank has gone, and they were about to go with it. */
static void teardown_lost_threads(struct control *control, struct context *context)
{
	struct thread *thread = thread_first_lost(context);
	struct teardown *teardown = thread ? teardown_unasked(control, context->session, "threads") : NULL;

	if (!teardown)
		return;
	for (; thread; thread = thread_first_lost(context))
		teardown_take_thread(teardown, thread);
	teardown_start(teardown);
}

void teardown_orphans(struct control *control)
{
	struct registry *registry = control->registry;

	list_for_each(struct session, session, &registry->sessions, link)
		for (uint32_t i = 0; i < registry->device_count; i++) {
			if (!session->contexts[i])
				continue;
			teardown_lost_threads(control, session->contexts[i]);
			list_for_each(struct segment, segment, &session->contexts[i]->segments, link)
				if ((segment->is_orphan && list_is_empty(&segment->imports)) || lazy_is_stray(segment))
					teardown_lost_segment(control, segment);
		}
}
