/* SPDX-License-Identifier: Apache-2.0 */
/* The sd_notify protocol and LISTEN_FDS. */
#include "daemon/service.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "proto/cleanup.h"

#define FIRST_FD 3
#define FD_MARGIN 256u /* descriptors that are not stored: connections of tools, requests, files \
			*/

struct passed {
	const char *name; /* into service->names */
	int fd;		  /* -1: taken */
};

struct service {
	struct descriptor_store store;
	int fd; /* connected datagram socket, -1: no manager */
	char *names;
	struct passed *passed; /* by name */
	size_t passed_count;
	uint64_t watchdog_ms;
	uint32_t stored, stored_max;
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
	free(service->names);
	close_fdp(&service->fd);
	free(service);
	return NULL;
}

static void service_freep(struct service **service)
{
	service_free(*service);
}

static void service_send(struct service *service, const char *state, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (char *)state, .iov_len = strlen(state) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (service->fd < 0)
		return;
	if (fd >= 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	}
	while (sendmsg(service->fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		log_error("the service manager cannot be told '%s': %s", state, strerror(errno));
		return;
	}
}

static int store_add_fd(void *data, const char *name, int fd)
{
	struct service *service = data;
	char state[128];

	if (service->stored >= service->stored_max ||
	    service->names_size + strlen(name) + 1 > STORE_NAMES_SIZE_MAX)
		return -EDQUOT;
	/* FDPOLL=0: a socket that hung up stays: the next process wants to find out by itself */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	service_send(service, state, fd);
	service->stored++;
	service->names_size += strlen(name) + 1;
	return 0;
}

static void store_remove_fd(void *data, const char *name)
{
	struct service *service = data;
	size_t size = strlen(name) + 1;
	char state[128];

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	service_send(service, state, -1);
	/* names that may not be there are removed too, before any is added: never below 0 */
	if (!service->stored)
		return;
	service->stored--;
	service->names_size -= service->names_size > size ? size : service->names_size;
}

static int store_take_fd(void *data, const char *name)
{
	struct service *service = data;
	struct passed key = { .name = name };
	struct passed *found;

	if (!service->passed_count)
		return -ENOENT;
	found = bsearch(&key, service->passed, service->passed_count, sizeof(key), passed_compare);
	return found && found->fd >= 0 ? take_fd(&found->fd) : -ENOENT;
}

static int service_connect(struct service *service)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size;

	if (!path || !*path)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path)) {
		log_error("NOTIFY_SOCKET=%s is not an address of a Unix socket", path);
		return -EINVAL;
	}
	strcpy(address.sun_path, path);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = 0;
	else
		size++;
	service->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (service->fd < 0 || connect(service->fd, (struct sockaddr *)&address, size) < 0) {
		int error = errno;

		log_error("the service manager at %s cannot be reached: %s", path, strerror(error));
		return -error;
	}
	return 0;
}

/* Descriptors 3 and up, and their names. */
static int service_read_fds(struct service *service)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	const char *names = getenv("LISTEN_FDNAMES");
	char *next, *name;
	long n;

	if (!pid || !count || strtol(pid, NULL, 10) != getpid())
		return 0;
	n = strtol(count, NULL, 10);
	if (n <= 0 || n > 1 << 20)
		return 0;
	service->names = strdup(names ? names : "");
	service->passed = calloc((size_t)n, sizeof(*service->passed));
	if (!service->names || !service->passed)
		return -ENOMEM;
	next = service->names;
	for (long i = 0; i < n; i++) {
		name = strsep(&next, ":");
		service->passed[i] = (struct passed){ name ? name : "unknown", FIRST_FD + (int)i };
		if (fcntl(FIRST_FD + (int)i, F_SETFD, FD_CLOEXEC) < 0)
			service->passed[i].fd = -1;
	}
	service->passed_count = (size_t)n;
	service->stored = (uint32_t)n;
	service->names_size = strlen(names ? names : "") + 1;
	qsort(service->passed, service->passed_count, sizeof(*service->passed), passed_compare);
	return 0;
}

static void service_read_limits(struct service *service)
{
	const char *watchdog = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	struct rlimit limit;

	if (watchdog && (!pid || strtol(pid, NULL, 10) == getpid()))
		service->watchdog_ms = strtoull(watchdog, NULL, 10) / 1000;
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
	static const char *const variables[] = {
		"NOTIFY_SOCKET",  "LISTEN_PID",	   "LISTEN_FDS",
		"LISTEN_FDNAMES", "WATCHDOG_USEC", "WATCHDOG_PID"
	};
	int r;

	if (!service)
		return -ENOMEM;
	service->fd = -1;
	service->store =
		(struct descriptor_store){ service, store_add_fd, store_remove_fd, store_take_fd };
	r = service_connect(service);
	if (r < 0)
		return r;
	r = service_read_fds(service);
	if (r < 0)
		return r;
	service_read_limits(service);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	*ret_service = take_ptr(&service);
	return 0;
}

const struct descriptor_store *service_store(struct service *service)
{
	return &service->store;
}

int service_take_listener(struct service *service)
{
	for (size_t i = 0; i < service->passed_count; i++) {
		int value = 0;
		socklen_t size = sizeof(value);

		if (service->passed[i].fd >= 0 &&
		    getsockopt(service->passed[i].fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &size) ==
			    0 &&
		    value)
			return take_fd(&service->passed[i].fd);
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
	return service->fd >= 0;
}
