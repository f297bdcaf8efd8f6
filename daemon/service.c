/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness, and the descriptor store. */
#include "daemon/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/idmap.h"
#include "base/log.h"
#include "daemon/manager.h"
#include "proto/cleanup.h"

#define FIRST_FD 3
#define FD_MARGIN                                                                      \
	256u /* descriptors that are not stored: connections of tools, requests, files \
	      */

struct passed {
	const char *name; /* into service->names */
	int fd;		  /* -1: taken */
};

struct service {
	struct descriptor_store store;
	char **names; /* of what was passed; NULL-terminated */
	struct passed *passed; /* by name */
	size_t passed_count;
	uint64_t watchdog_ms;
	struct idmap stored; /* hashes of the names that are in the store */
	uint32_t stored_max;
	uint64_t names_size; /* of what is stored, as in LISTEN_FDNAMES */
};

static int passed_compare(const void *left, const void *right)
{
	const struct passed *a = left, *b = right;

	return strcmp(a->name, b->name);
}

struct service *service_free(struct service *service)
{
	if (!service)
		return NULL;
	for (size_t i = 0; i < service->passed_count; i++)
		close_fdp(&service->passed[i].fd);
	free(service->passed);
	for (char **name = service->names; name && *name; name++)
		free(*name);
	free(service->names);
	idmap_deinit(&service->stored);
	manager_close();
	free(service);
	return NULL;
}

static void service_freep(struct service **service)
{
	service_free(*service);
}

static int service_send(struct service *service, const char *state, int fd)
{
	int r = manager_send(state, fd);

	if (r < 0)
		log_error("the service manager cannot be told '%s': %s", state, strerror(-r));
	return r;
}

/* FNV-1a; never 0. Two names of one hash would be counted as one, and nothing else. */
static uint64_t name_hash(const char *name)
{
	uint64_t hash = 14695981039346656037ull;

	for (const char *p = name; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211ull;
	return hash ? hash : 1;
}

/* The name is in the store from now on. -EDQUOT: too many, -ENOMEM. */
static int stored_add(struct service *service, const char *name)
{
	int r;

	if (idmap_get(&service->stored, name_hash(name)))
		return 0;
	if (service->stored.count >= service->stored_max ||
	    service->names_size + strlen(name) + 1 > STORE_NAMES_SIZE_MAX)
		return -EDQUOT;
	r = idmap_set(&service->stored, name_hash(name), service);
	if (r == 0)
		service->names_size += strlen(name) + 1;
	return r;
}

static struct passed *passed_find(struct service *service, const char *name)
{
	struct passed key = { .name = name };

	if (!service->passed_count)
		return NULL;
	return bsearch(&key, service->passed, service->passed_count, sizeof(key), passed_compare);
}

static void stored_remove(struct service *service, const char *name)
{
	if (idmap_remove(&service->stored, name_hash(name)))
		service->names_size -= strlen(name) + 1;
}

static int store_add_fd(void *data, const char *name, int fd)
{
	struct service *service = data;
	char state[128];
	int r;

	r = stored_add(service, name);
	if (r < 0)
		return r;
	/* FDPOLL=0: a socket that hung up stays: the next process wants to find out by itself */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	r = service_send(service, state, fd);
	if (r != -EMFILE && r != -ENFILE && r != -ENOMEM && r != -ENOBUFS)
		return 0; /* without a manager that answers there is no next process either */
	stored_remove(service, name);
	return r == -EMFILE || r == -ENFILE ? -EDQUOT : -ENOMEM;
}

static void store_remove_fd(void *data, const char *name)
{
	struct service *service = data;
	struct passed *passed = passed_find(service, name);
	char state[128];

	/* what was passed by this name is gone: service_drop_rest() must not take a newer one away */
	if (passed)
		close_fdp(&passed->fd);
	/* a name that is not there: whoever removes need not know how far he came with adding */
	if (!idmap_get(&service->stored, name_hash(name)))
		return;
	stored_remove(service, name);
	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	service_send(service, state, -1);
}

static int store_take_fd(void *data, const char *name)
{
	struct passed *found = passed_find(data, name);

	return found && found->fd >= 0 ? take_fd(&found->fd) : -ENOENT;
}

/* Descriptors 3 and up, and their names. */
static int service_read_fds(struct service *service)
{
	int n = manager_listen(&service->names);

	if (n <= 0)
		return n;
	service->passed = calloc((size_t)n, sizeof(*service->passed));
	if (!service->passed)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		const char *name = service->names ? service->names[i] : "unknown";

		service->passed[i] = (struct passed){ name, FIRST_FD + i };
		if (fcntl(FIRST_FD + i, F_GETFD) < 0)
			service->passed[i].fd = -1;
		if (idmap_set(&service->stored, name_hash(name), service) < 0)
			return -ENOMEM;
		service->names_size += strlen(name) + 1;
	}
	service->passed_count = (size_t)n;
	qsort(service->passed, service->passed_count, sizeof(*service->passed), passed_compare);
	return 0;
}

static void service_read_limits(struct service *service)
{
	struct rlimit limit;

	service->watchdog_ms = manager_watchdog_ms();
	/*
	 * the store's other end has the same limit, roughly, and needs one descriptor for each of
	 * ours
	 */
	service->stored_max = UINT32_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < UINT32_MAX)
		service->stored_max = limit.rlim_cur > 2 * FD_MARGIN
					      ? (uint32_t)limit.rlim_cur - FD_MARGIN
					      : FD_MARGIN / 2;
}

int service_new(struct service **ret_service)
{
	CLEANUP(service_freep) struct service *service = calloc(1, sizeof(*service));
	int r;

	if (!service)
		return -ENOMEM;
	service->store =
		(struct descriptor_store){ service, store_add_fd, store_remove_fd, store_take_fd };
	r = manager_open();
	if (r < 0) {
		log_error("the service manager at NOTIFY_SOCKET=%s cannot be reached: %s", getenv("NOTIFY_SOCKET"),
			  strerror(-r));
		return r;
	}
	r = service_read_fds(service);
	if (r < 0)
		return r;
	service_read_limits(service);
	*ret_service = take_ptr(&service);
	return 0;
}

const struct descriptor_store *service_store(struct service *service)
{
	return &service->store;
}

static bool socket_has(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t size = sizeof(value);

	return fd >= 0 && getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

int service_take_listener(struct service *service)
{
	for (size_t i = 0; i < service->passed_count; i++) {
		struct passed *passed = &service->passed[i];

		if (!socket_has(passed->fd, SO_ACCEPTCONN, 1))
			continue;
		if (socket_has(passed->fd, SO_TYPE, SOCK_SEQPACKET))
			return take_fd(&passed->fd);
		log_error("the socket unit '%s' must have ListenSequentialPacket=: its socket is not used",
			  passed->name);
	}
	return -ENOENT;
}

void service_drop_rest(struct service *service)
{
	for (size_t i = 0; i < service->passed_count; i++) {
		if (service->passed[i].fd < 0)
			continue;
		log_debug("descriptor '%s' of the previous process is not needed",
			  service->passed[i].name);
		store_remove_fd(service, service->passed[i].name);
		close_fdp(&service->passed[i].fd);
	}
}

void service_notify(struct service *service, const char *state)
{
	service_send(service, state, -1);
}

uint64_t service_watchdog_ms(const struct service *service)
{
	return service->watchdog_ms;
}

bool service_has_manager(const struct service *service)
{
	return manager_is_there();
}
