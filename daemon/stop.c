/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "control/control.h"
#include "daemon/manager.h"
#include "daemon/service.h"
#include "proto/limits.h"
#include "registry/comm.h"
#include "registry/reason.h"
#include "registry/registry.h"
#include "registry/session.h"
#include "registry/waiting.h"

#define LOOK_MS 10u
#define NAMED_MAX 20u	     /* operations named in the log */
#define LANES_PER_STREAM 256u /* looked at: those that are done count, too */
#define MANAGER_MARGIN_MS 10000u /* beyond the grace period, until the manager may kill us */

struct stop {
	struct stop_options options;
	struct loop_timer *timer;
	uint64_t give_up_ns;
	uint32_t named;
	bool is_stopping;
};

int stop_new(const struct stop_options *options, struct stop **ret_stop)
{
	struct stop *stop = calloc(1, sizeof(*stop));

	if (!stop)
		return -ENOMEM;
	stop->options = *options;
	*ret_stop = stop;
	return 0;
}

struct stop *stop_free(struct stop *stop)
{
	if (!stop)
		return NULL;
	loop_timer_free(stop->timer);
	free(stop);
	return NULL;
}

void stop_set_grace(struct stop *stop, uint32_t grace_ms)
{
	stop->options.grace_ms = grace_ms;
}

static bool stop_name(void *data, const struct waiting *waiting)
{
	struct log_fields fields = { .event = EVENT_STOPPING };
	struct stop *stop = data;
	char buffer[HCCLD_TEXT_MAX];
	struct text text;

	if (stop->named++ == NAMED_MAX) {
		log_warning("and more");
		return false;
	}
	text_init(&text, buffer, sizeof(buffer));
	waiting_describe(waiting, true, &text);
	fields.session = waiting->session->view.id;
	fields.pid = waiting->session->view.pid;
	if (waiting->comm) {
		fields.comm = waiting->comm->name;
		fields.has_rank = true;
		fields.rank = waiting->rank;
	}
	log_event(LOG_LEVEL_WARNING, &fields, "ended by the stop: %s%s%s",
		  fields.comm ? fields.comm : "", fields.comm ? ": " : "", buffer);
	return true;
}

/* What is left ends with us: sockets hang up, and whoever waits finds the beacon's word. */
static void stop_finish(struct stop *stop)
{
	struct registry *registry = stop->options.control->registry;
	const struct waiting_filter filter = { .all_users = true, .lanes_per_stream = LANES_PER_STREAM };

	if (registry_has_work(registry)) {
		log_warning("stopped with operations in flight:");
		waiting_walk(registry, &filter, stop_name, stop);
	}
	registry_set_stopping(registry, BEACON_STOPPED);
	loop_stop(stop->options.loop);
}

static void stop_look(void *data)
{
	struct stop *stop = data;

	if (!registry_has_work(stop->options.control->registry) ||
	    clock_now_ns() >= stop->give_up_ns)
		stop_finish(stop);
}

static void stop_tell_manager(struct stop *stop)
{
	char state[160];

	snprintf(state, sizeof(state),
		 "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64 "\nSTATUS=stopping: operations in flight have %" PRIu32
		 " ms to finish",
		 (uint64_t)(stop->options.grace_ms + MANAGER_MARGIN_MS) * 1000, stop->options.grace_ms);
	service_notify(stop->options.service, state);
}

static void stop_begin(struct stop *stop)
{
	struct registry *registry = stop->options.control->registry;

	stop->give_up_ns = clock_now_ns() + stop->options.grace_ms * 1000000ull;
	stop->options.control->is_leaving = true;
	stop->options.control->leave_ns = stop->give_up_ns;
	registry_set_stopping(registry, BEACON_STOPPING);
	if (!registry_has_work(registry)) {
		stop_finish(stop);
		return;
	}
	log_notice("operations in flight have %" PRIu32 " ms to finish; a second signal ends them at once",
		   stop->options.grace_ms);
	stop_tell_manager(stop);
	if (loop_timer_new(stop->options.loop, stop_look, stop, &stop->timer) < 0)
		stop_finish(stop);
	else
		loop_timer_start(stop->timer, LOOK_MS, LOOK_MS);
}

void stop_request(struct stop *stop, int number)
{
	static const struct log_fields stopping = { .event = EVENT_STOPPING };
	const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";

	if (stop->is_stopping) {
		log_notice("%s again: stopping at once", name);
		stop_finish(stop);
		return;
	}
	stop->is_stopping = true;
	switch (manager_intent()) {
	case MANAGER_RESTARTS:
		log_event(LOG_LEVEL_INFO, &stopping, "%s: the service manager starts the next process; sessions wait for it", name);
		loop_stop(stop->options.loop);
		return;
	case MANAGER_UNKNOWN:
		log_event(LOG_LEVEL_INFO, &stopping, "%s: stopping; whether the service manager starts hccld again is not known", name);
		loop_stop(stop->options.loop);
		return;
	case MANAGER_STOPS:
		log_event(LOG_LEVEL_INFO, &stopping, "%s: stopping", name);
		stop_begin(stop);
		return;
	}
}
