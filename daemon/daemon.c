/* SPDX-License-Identifier: Apache-2.0 */
/* The composition root; the only reader of the configuration. */
#include "daemon/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text.h"
#include "cluster/cluster.h"
#include "daemon/config.h"
#include "control/control.h"
#include "control/monitor.h"
#include "daemon/endpoint.h"
#include "daemon/report.h"
#include "proto/cleanup.h"
#include "proto/clock.h"
#include "registry/registry.h"
#include "registry/restore.h"
#include "scheduler/scheduler.h"
#include "scheduler/selftest.h"
#include "daemon/service.h"
#include "daemon/stop.h"

#define SETTLED_MS 10000 /* a registry that has not ended the daemon by then does not */
#define STATUS_MS 2000

struct daemon {
	struct config *config;
	int argc;
	char **argv;
	struct service *service;
	struct registry *registry;
	struct loop *loop;
	struct cluster *cluster;
	struct control *control;
	struct stop *stop;
	struct loop_signal *signals[3];
	struct loop_timer *settled, *status, *watchdog;
	int listen_fd;
	bool owns_path;	 /* the socket's name is ours to remove */
	bool has_made_path; /* and nobody can have connected to it before us */
	uint64_t passes; /* of the engine, at the last sign to the watchdog */
	char told[512]; /* the last status text */
};

static void daemon_deinit(struct daemon *daemon)
{
	loop_timer_free(daemon->settled);
	loop_timer_free(daemon->status);
	loop_timer_free(daemon->watchdog);
	daemon->stop = stop_free(daemon->stop);
	daemon->control = control_free(daemon->control);
	daemon->cluster = cluster_free(daemon->cluster);
	registry_free(daemon->registry);
	/* when no other thread is left that could get one more */
	for (size_t i = 0; i < sizeof(daemon->signals) / sizeof(daemon->signals[0]); i++)
		loop_signal_free(daemon->signals[i]);
	loop_free(daemon->loop);
	close_fdp(&daemon->listen_fd);
	service_free(daemon->service);
}

/* With a limit of pending bytes the engine has to see every offer before a receiver does. */
static enum beacon_path path_of(const struct config *config)
{
	return config->pending_per_tenant == UINT64_MAX ? (enum beacon_path)config->local_path : PATH_ENGINE;
}

static struct control_options control_options_of(struct config *config, struct cluster *cluster)
{
	return (struct control_options){
		.hooks = config_hooks(config),
		.version = HCCLD_VERSION,
		.soc_name = config->soc_name,
		.socket_path = config->socket,
		.copy_threads = config->copy_threads,
		.allow_duplicate_items = config->allow_duplicate_items,
		.cluster = cluster,
		.local_path = path_of(config),
		.tenant_has_cgroup = config->tenant == TENANT_UID_CGROUP,
		.connections_per_user = config->connections_per_user,
		.requests_per_user = config->requests_per_user,
	};
}

/* "unlimited" is all ones, whatever the size. */
static uint64_t limit_of(uint32_t number)
{
	return number == UINT32_MAX ? UINT64_MAX : number;
}

static struct quota_limits limits_of(const struct config *config)
{
	struct quota_limits limits = {
		.values = { [QUOTA_MEMORY] = config->memory_per_tenant,
			    [QUOTA_SESSIONS] = limit_of(config->sessions_per_tenant),
			    [QUOTA_STREAMS] = limit_of(config->streams_per_tenant),
			    [QUOTA_NOTIFIES] = limit_of(config->notifies_per_tenant),
			    [QUOTA_COMMS] = limit_of(config->communicators_per_tenant),
			    [QUOTA_DESCRIPTORS] = limit_of(config->descriptors_per_tenant),
			    [QUOTA_REGISTRATIONS] = limit_of(config->registrations_per_tenant),
			    [QUOTA_CHANNELS] = limit_of(config->channels_per_tenant),
			    [QUOTA_PENDING] = config->pending_per_tenant },
	};

	snprintf(limits.weights, sizeof(limits.weights), "%s", config->tenant_weights);
	return limits;
}

static void daemon_reload(struct daemon *daemon)
{
	struct control_options options;
	struct quota_limits limits;
	char state[64];

	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 clock_now_ns() / 1000);
	service_notify(daemon->service, state);
	if (config_reload(daemon->argc, daemon->argv, daemon->config) > 0) {
		options = control_options_of(daemon->config, daemon->cluster);
		log_set_level((enum log_level)daemon->config->log_level);
		control_set_options(daemon->control, &options);
		stop_set_grace(daemon->stop, daemon->config->stop_grace_ms);
		monitor_admin(daemon->control, "reload", geteuid(), "");
		limits = limits_of(daemon->config);
		quotas_set_limits(daemon->registry, &limits);
	}
	service_notify(daemon->service, "READY=1");
}

static void daemon_signal(void *data, int number)
{
	struct daemon *daemon = data;

	/* before it serves there is nothing to change, and when it has ended nothing to stop */
	if (!daemon->stop)
		return;
	if (number == SIGHUP)
		daemon_reload(daemon);
	else
		stop_request(daemon->stop, number);
}

static void daemon_settled(void *data)
{
	struct daemon *daemon = data;

	records_settled(daemon->registry->records);
	registry_sweep(daemon->registry);
}

static void daemon_status(void *data)
{
	struct daemon *daemon = data;
	char state[sizeof("STATUS=") + sizeof(daemon->told)];

	strcpy(state, "STATUS=");
	report_line(daemon->registry, state + strlen(state), sizeof(daemon->told));
	if (strcmp(state + strlen("STATUS="), daemon->told) == 0)
		return;
	strcpy(daemon->told, state + strlen("STATUS="));
	service_notify(daemon->service, state);
}

/* Both threads are alive: this one runs, and the engine has passed on since the last time. */
static void daemon_watchdog(void *data)
{
	struct daemon *daemon = data;
	uint64_t passes = scheduler_passes(daemon->control->scheduler);

	if (passes == daemon->passes)
		return;
	daemon->passes = passes;
	service_notify(daemon->service, "WATCHDOG=1");
}

/* The socket: of the previous process, of socket activation, or a new one. */
static int daemon_listen(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct descriptor_store *store = service_store(daemon->service);
	int r;

	daemon->listen_fd = store->take(store->data, STORE_LISTEN);
	daemon->owns_path = true;
	if (daemon->listen_fd >= 0 && endpoint_is_at(daemon->listen_fd, config->socket)) {
		endpoint_adopt(daemon->listen_fd);
		return 0;
	}
	if (daemon->listen_fd >= 0) {
		log_warning(
			"the socket file %s is gone or another one: clients that were about to connect have to try again",
			config->socket);
		store->remove(store->data, STORE_LISTEN);
		close_fdp(&daemon->listen_fd);
	} else {
		daemon->listen_fd = service_take_listener(daemon->service);
		daemon->owns_path = daemon->listen_fd < 0;
		if (daemon->listen_fd >= 0) {
			endpoint_adopt(daemon->listen_fd);
			return 0;
		}
	}
	r = endpoint_listen(config->socket, true, &daemon->listen_fd);
	if (r < 0)
		return r;
	daemon->has_made_path = true;
	return store->add(store->data, STORE_LISTEN, daemon->listen_fd);
}

static int daemon_open_registry(struct daemon *daemon)
{
	static const struct log_fields taken_over = { .event = EVENT_TAKEN_OVER };
	const struct config *config = daemon->config;
	const struct registry_options options = { .device_count = config->devices,
						  .device_memory = config->device_memory,
						  .host_memory = config->host_memory,
						  .notifies = config->notifies_per_device,
						  .cores_per_device = config->vector_cores_per_device,
						  .limits = limits_of(config) };
	bool is_inherited;
	int r;

	r = registry_new(&options, service_store(daemon->service), &daemon->registry,
			 &is_inherited);
	if (r < 0)
		return r;
	if (is_inherited) {
		registry_restore(daemon->registry);
		log_event(LOG_LEVEL_NOTICE, &taken_over,
			  "taken over from the previous process: %" PRIu32 " session%s, %" PRIu32
			  " communicator%s",
			  daemon->registry->session_count, daemon->registry->session_count == 1 ? "" : "s",
			  daemon->registry->comm_count, daemon->registry->comm_count == 1 ? "" : "s");
	}
	return 0;
}

static int daemon_watch(struct daemon *daemon)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };
	uint64_t watchdog_ms = service_watchdog_ms(daemon->service);
	int r;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		r = loop_signal_new(daemon->loop, numbers[i], daemon_signal, daemon,
				    &daemon->signals[i]);
		if (r < 0)
			return r;
	}
	r = loop_timer_new(daemon->loop, daemon_settled, daemon, &daemon->settled);
	if (r < 0)
		return r;
	loop_timer_start(daemon->settled, SETTLED_MS, 0);
	if (service_has_manager(daemon->service)) {
		r = loop_timer_new(daemon->loop, daemon_status, daemon, &daemon->status);
		if (r < 0)
			return r;
		loop_timer_start(daemon->status, STATUS_MS, STATUS_MS);
	}
	if (watchdog_ms) {
		r = loop_timer_new(daemon->loop, daemon_watchdog, daemon, &daemon->watchdog);
		if (r < 0)
			return r;
		loop_timer_start(daemon->watchdog, watchdog_ms / 3 + 1, watchdog_ms / 3 + 1);
	}
	return 0;
}

/* To other nodes. */
static int daemon_link(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	struct cluster_options options = {
		.version = HCCLD_VERSION,
		.soc_name = config->soc_name,
		.devices = daemon->registry->device_count,
		.listen = config->listen,
		.peers = config->peers,
		.port = config->port,
		.keepalive_ms = config->keepalive_ms,
		.peer_timeout_ms = config->peer_timeout_ms,
	};
	int r = registry_node(daemon->registry, &options.node);

	if (r < 0)
		return r;
	snprintf(options.name, sizeof(options.name), "%s", config->node_name);
	if (strcmp(options.name, "auto") == 0 && gethostname(options.name, sizeof(options.name)) < 0)
		snprintf(options.name, sizeof(options.name), "node");
	options.name[sizeof(options.name) - 1] = '\0';
	return cluster_new(daemon->loop, &options, config->key_file, &daemon->cluster);
}

static int daemon_serve(struct daemon *daemon)
{
	static const struct log_fields serving = { .event = EVENT_SERVING };
	struct config *config = daemon->config;
	struct control_options options;
	struct text text;
	char memory[64];
	int r;

	r = daemon_link(daemon);
	if (r < 0)
		return r;
	options = control_options_of(config, daemon->cluster);
	r = control_new(&options, daemon->loop, daemon->registry, daemon->listen_fd,
			&daemon->control);
	if (r < 0)
		return r;
	cluster_start(daemon->cluster, atomic_load(&daemon->registry->beacon->incarnation));
	r = stop_new(&(struct stop_options){ daemon->loop, daemon->control, daemon->service,
					     config->stop_grace_ms },
		     &daemon->stop);
	if (r < 0)
		return r;
	service_drop_rest(daemon->service);
	service_notify(daemon->service, "READY=1");
	if (service_has_manager(daemon->service))
		daemon_status(daemon);
	if (config->ready_fd >= 0) {
		if (write(config->ready_fd, "1\n", 2) < 0)
			log_warning("nobody reads descriptor %d: %s", config->ready_fd,
				    strerror(errno));
		close(config->ready_fd);
	}
	text_init(&text, memory, sizeof(memory));
	text_add_bytes(&text, config->device_memory);
	log_event(LOG_LEVEL_INFO, &serving,
		  "hccld %s serves %s: %" PRIu32 " devices of %s, incarnation %" PRIu32,
		  HCCLD_VERSION, config->socket, daemon->registry->device_count, memory,
		  atomic_load(&daemon->registry->beacon->incarnation));
	loop_run(daemon->loop);
	return 0;
}

/*
 * A stop waits until the loop can obey it. If it just killed us the socket's name would stay, and three of them in a row, by a
 * manager that restarts us, would look as if the registry did it.
 */
static void daemon_hold_stops(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* From the socket to the end. */
static int daemon_work(struct daemon *daemon)
{
	int r = daemon_open_registry(daemon);

	if (r == 0)
		r = selftest_run(daemon->config->devices, daemon->config->copy_threads);
	if (r == 0)
		r = loop_new(&daemon->loop);
	if (r == 0)
		r = daemon_watch(daemon);
	if (r < 0)
		return r;
	daemon_hold_stops(false);
	r = daemon_serve(daemon);
	/* one more must not kill it while it takes itself down */
	daemon_hold_stops(true);
	return r;
}

static void daemon_remove_path(struct daemon *daemon)
{
	const struct descriptor_store *store = service_store(daemon->service);

	unlink(daemon->config->socket);
	store->remove(store->data, STORE_LISTEN);
}

int daemon_run(struct config *config, int argc, char **argv)
{
	CLEANUP(daemon_deinit) struct daemon daemon = {
		.config = config, .argc = argc, .argv = argv, .listen_fd = -1
	};
	pid_t parent = getppid();
	int r;

	descriptors_init();
	signal(SIGPIPE, SIG_IGN);
	daemon_hold_stops(true);
	r = service_new(&daemon.service);
	if (r < 0)
		return r;
	r = daemon_listen(&daemon);
	if (r < 0)
		return r;
	r = daemon_work(&daemon);
	/* a stop on request is no fault of the registry's */
	if (r == 0)
		records_settled(daemon.registry->records);
	/*
	 * A manager may be about to start the next process on the same socket; when it ends the
	 * service for good it removes the name, unless it has ended itself. It does not for one that never served.
	 */
	if (r < 0 && daemon.has_made_path)
		daemon_remove_path(&daemon);
	else if (daemon.owns_path && (!service_has_manager(daemon.service) || getppid() != parent))
		unlink(config->socket);
	return r;
}
