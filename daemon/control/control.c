/* SPDX-License-Identifier: Apache-2.0 */
/* Ties sockets, registry and scheduler together. */
#include "control/control.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/loop.h"
#include "control/channel_wait.h"
#include "control/connection.h"
#include "control/growth_watch.h"
#include "control/monitor.h"
#include "control/notifies.h"
#include "control/remnants.h"
#include "control/retry.h"
#include "control/join.h"
#include "control/listener.h"
#include "control/teardown.h"
#include "control/user.h"
#include "proto/cleanup.h"
#include "proto/status.h"
#include "registry/comm.h"
#include "registry/lazy.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/tenant.h"
#include "scheduler/scheduler.h"

#define LAZY_MS 1000 /* between two looks when nobody asks */

/* Any thread. */
static void control_notify(void *data)
{
	struct control *control = data;

	loop_wake(control->wake);
}

static void control_collect(void *data)
{
	struct control *control = data;

	if (control->scheduler) /* a wake-up may still be on its way when it is gone */
		scheduler_collect(control->scheduler);
}

static void control_liar(void *data, uint64_t session_id, const char *what)
{
	struct control *control = data;
	struct session *session = idmap_get(&control->registry->session_ids, session_id);

	if (session && session->owner)
		connection_fail(session->owner, what);
}

static void control_type_mismatch(void *data, uint64_t comm_id, uint32_t source,
				  uint32_t destination, uint8_t source_type,
				  uint8_t destination_type)
{
	struct control *control = data;
	const struct comm *comm = idmap_get(&control->registry->comm_ids, comm_id);

	if (comm)
		log_warning("communicator %s: rank %" PRIu32 " sends %s, rank %" PRIu32
			    " receives %s: the bytes are passed as they are",
			    comm->name, source, data_type_name(source_type), destination,
			    data_type_name(destination_type));
}

static void control_comm_gone(void *data, const struct comm *comm)
{
	monitor_comm(data, "comm-gone", comm, CAUSE_NONE, "");
}

static void control_look(void *data)
{
	struct control *control = data;

	lazy_look(control->registry);
	lazy_measure(control->registry);
	if (list_is_empty(&control->registry->lazy))
		loop_timer_stop(control->lazy_timer);
}

void control_watch_lazy(struct control *control)
{
	/* the first one */
	if (control->registry->lazy.next->next == &control->registry->lazy)
		lazy_measure(control->registry);
	loop_timer_start(control->lazy_timer, LAZY_MS, LAZY_MS);
}

static int control_start_scheduler(struct control *control)
{
	const struct scheduler_options options = {
		.beacon = control->registry->beacon,
		.event_fd = control->registry->event_fd,
		.copy_threads = control->options.copy_threads,
		.data = control,
		.notify = control_notify,
		.liar = control_liar,
		.type_mismatch = control_type_mismatch,
		.no_room = growth_make,
	};
	int r;

	r = scheduler_new(&options, &control->scheduler);
	if (r < 0)
		return r;
	scheduler_set_path(control->scheduler, control->options.local_path);
	list_for_each(struct tenant, tenant, &control->registry->tenants, link) {
		scheduler_yard_add(control->scheduler, &tenant->view);
		tenant->is_scheduled = true;
	}
	/*
	 * before the engine starts: whoever sees the new incarnation sends again what had no reply
	 */
	atomic_fetch_add_explicit(&control->registry->beacon->incarnation, 1, memory_order_release);
	return scheduler_start(control->scheduler);
}

/*
 * Sessions of the previous process. Those that have ended meanwhile are found by their pidfds in
 * the first turn of the loop.
 */
static void control_adopt(struct control *control)
{
	list_for_each(struct session, session, &control->registry->sessions, link) {
		if (connection_adopt(control, session) == 0)
			continue;
		log_error("session %" PRIu64 " (pid %d) cannot be taken over", session->view.id,
			  session->view.pid);
		session_end(control, session, -1);
	}
}

struct control *control_free(struct control *control)
{
	if (!control)
		return NULL;
	control->listener = listener_free(control->listener);
	list_for_each(struct connection, connection, &control->connections, link)
		connection_free(connection);
	list_for_each(struct session, session, &control->registry->sessions, link) {
		joins_abort(control, session, NULL, -1);
		channel_waits_abort(session);
	}
	remnants_forget(control);
	retry_drop(control);
	/* what was being taken down is taken down to the end, in the engine and then in the jobs */
	control->is_stopping = true;
	control->scheduler = scheduler_free(control->scheduler);
	/* the loop turns once more: nothing of ours but the jobs may be on it */
	loop_timer_free(control->retry_timer);
	loop_timer_free(control->lazy_timer);
	loop_timer_free(control->notify_timer);
	loop_timer_free(control->growth_timer);
	loop_timer_free(control->channel_timer);
	loop_timer_free(control->join_timer);
	loop_timer_free(control->turn_timer);
	loop_wake_free(control->wake);
	loop_drain(control->loop);
	control->registry->comm_gone = NULL;
	list_for_each(struct user, user, &control->users, link)
		user_free(user);
	free(control);
	return NULL;
}

void control_set_options(struct control *control, const struct control_options *options)
{
	control->options = *options;
	scheduler_set_path(control->scheduler, options->local_path);
}

static void control_freep(struct control **control)
{
	control_free(*control);
}

int control_new(const struct control_options *options, struct loop *loop, struct registry *registry,
		int listen_fd, struct control **ret_control)
{
	CLEANUP(control_freep) struct control *control = calloc(1, sizeof(*control));
	int r;

	if (!control)
		return -ENOMEM;
	list_init(&control->connections);
	list_init(&control->users);
	list_init(&control->turns);
	list_init(&control->held);
	list_init(&control->channel_waits);
	control->options = *options;
	control->loop = loop;
	control->registry = registry;
	control->started_ns = clock_now_ns();
	registry->data = control;
	registry->comm_gone = control_comm_gone;
	r = loop_wake_new(loop, control_collect, control, &control->wake);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, channel_waits_expire, control, &control->channel_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, joins_expire, control, &control->join_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, retry_held, control, &control->retry_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, notifies_watch_again, control, &control->notify_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, growth_watch_again, control, &control->growth_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, control_look, control, &control->lazy_timer);
	if (r < 0)
		return r;
	r = loop_timer_new(loop, users_take_turns, control, &control->turn_timer);
	if (r < 0)
		return r;
	r = control_start_scheduler(control);
	if (r < 0)
		return r;
	control_adopt(control);
	remnants_watch(control);
	teardown_orphans(control);
	control_watch_lazy(control);
	notifies_watch(control);
	growth_watch(control);
	r = listener_new(control, listen_fd, &control->listener);
	if (r < 0)
		return r;
	*ret_control = take_ptr(&control);
	return 0;
}
