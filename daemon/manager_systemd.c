/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/log.h"

#define SERVICE "org.freedesktop.systemd1"
#define ANSWER_US 3000000u

int manager_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	/* sd_notify() reads the variable each time: it stays. The daemon starts no programs. */
	return path && *path && path[0] != '/' && path[0] != '@' ? -EINVAL : 0;
}

void manager_close(void)
{
}

bool manager_is_there(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	return path && *path;
}

int manager_send(const char *state, int fd)
{
	int r = sd_pid_notify_with_fds(0, 0, state, &fd, fd >= 0);

	return r < 0 ? r : 0;
}

int manager_listen(char ***ret_names)
{
	const char *count = getenv("LISTEN_FDS");

	*ret_names = NULL;
	/* an empty store is none to us, and -EINVAL to the library */
	return count && strtol(count, NULL, 10) > 0 ? sd_listen_fds_with_names(1, ret_names) : 0;
}

/* The unit we run in, and the job that systemd has for it: its type, "" for none. */
static int manager_ask(sd_bus *bus, char **ret_unit, char **ret_job)
{
	__attribute__((cleanup(sd_bus_message_unrefp))) sd_bus_message *reply = NULL, *job = NULL;
	const char *unit, *path;
	uint32_t id;
	int r;

	r = sd_bus_call_method(bus, SERVICE, "/org/freedesktop/systemd1", SERVICE ".Manager", "GetUnitByPID", NULL, &reply, "u",
			       (uint32_t)getpid());
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &unit);
	if (r >= 0)
		r = sd_bus_get_property(bus, SERVICE, unit, SERVICE ".Unit", "Job", NULL, &job, "(uo)");
	if (r >= 0)
		r = sd_bus_message_read(job, "(uo)", &id, &path);
	if (r < 0)
		return r;
	*ret_unit = strdup(unit);
	if (!*ret_unit)
		return -ENOMEM;
	if (id)
		return sd_bus_get_property_string(bus, SERVICE, path, SERVICE ".Job", "JobType", NULL, ret_job);
	*ret_job = strdup("");
	return *ret_job ? 0 : -ENOMEM;
}

/* Somebody else has sent the signal: the unit says what comes after a clean exit. */
static enum manager_intent manager_policy(sd_bus *bus, const char *unit)
{
	char *restart = NULL;
	bool restarts;

	if (sd_bus_get_property_string(bus, SERVICE, unit, SERVICE ".Service", "Restart", NULL, &restart) < 0)
		return MANAGER_UNKNOWN;
	restarts = strcmp(restart, "always") == 0 || strcmp(restart, "on-success") == 0;
	free(restart);
	return restarts ? MANAGER_RESTARTS : MANAGER_STOPS;
}

enum manager_intent manager_intent(void)
{
	const char *notify = getenv("NOTIFY_SOCKET");
	__attribute__((cleanup(sd_bus_flush_close_unrefp))) sd_bus *bus = NULL;
	enum manager_intent intent = MANAGER_UNKNOWN;
	char *unit = NULL, *job = NULL;
	int r;

	/* our own keeper passes on what it was told: it stops, too */
	if (!notify || !strstr(notify, MANAGER_SYSTEMD))
		return MANAGER_STOPS;
	r = strncmp(notify, "/run/systemd/", 13) == 0 ? sd_bus_open_system(&bus) : sd_bus_open_user(&bus);
	if (r >= 0) {
		(void)sd_bus_set_method_call_timeout(bus, ANSWER_US);
		r = manager_ask(bus, &unit, &job);
	}
	if (r >= 0 && *job)
		intent = strcmp(job, "restart") == 0 ? MANAGER_RESTARTS : MANAGER_STOPS;
	else if (r >= 0)
		intent = manager_policy(bus, unit);
	else
		log_warning("systemd cannot be asked whether it stops or restarts hccld: %s", strerror(-r));
	free(unit);
	free(job);
	return intent;
}

uint64_t manager_watchdog_ms(void)
{
	uint64_t us = 0;

	return sd_watchdog_enabled(1, &us) > 0 ? us / 1000 : 0;
}
