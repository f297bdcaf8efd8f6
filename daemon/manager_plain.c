/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "proto/cleanup.h"

#define FIRST_FD 3
#define FDS_MAX (1 << 20)

static int manager_fd = -1; /* connected datagram socket */
static bool is_systemd;

int manager_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size;

	if (!path || !*path)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
		return -EINVAL;
	strcpy(address.sun_path, path);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = 0;
	else
		size++;
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager_fd < 0 || connect(manager_fd, (struct sockaddr *)&address, size) < 0)
		return -errno;
	is_systemd = strstr(path, MANAGER_SYSTEMD);
	unsetenv("NOTIFY_SOCKET");
	return 0;
}

void manager_close(void)
{
	close_fdp(&manager_fd);
}

bool manager_is_there(void)
{
	return manager_fd >= 0;
}

int manager_send(const char *state, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (char *)state, .iov_len = strlen(state) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (manager_fd < 0)
		return 0;
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
	while (sendmsg(manager_fd, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int names_split(const char *text, long count, char ***ret_names)
{
	char **names = calloc((size_t)count + 1, sizeof(*names));
	char *copy = strdup(text), *next = copy;
	long i = 0;

	for (; names && copy && i < count; i++) {
		const char *name = next ? strsep(&next, ":") : NULL;

		names[i] = strdup(name ? name : "unknown");
		if (!names[i])
			break;
	}
	free(copy);
	if (names && copy && i == count) {
		*ret_names = names;
		return 0;
	}
	while (names && i-- > 0)
		free(names[i]);
	free(names);
	return -ENOMEM;
}

int manager_listen(char ***ret_names)
{
	static const char *const variables[] = { "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES" };
	const char *pid = getenv("LISTEN_PID"), *text = getenv("LISTEN_FDS"), *names = getenv("LISTEN_FDNAMES");
	long count = pid && text && strtol(pid, NULL, 10) == getpid() ? strtol(text, NULL, 10) : 0;
	int r = 0;

	*ret_names = NULL;
	if (count < 0 || count > FDS_MAX)
		count = 0;
	if (count)
		r = names_split(names ? names : "", count, ret_names);
	for (int fd = FIRST_FD; r == 0 && fd < FIRST_FD + count; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		unsetenv(variables[i]);
	return r < 0 ? r : (int)count;
}

/* Without libsystemd there is nobody to ask by name. The keeper passes on what it was told: it stops, too. */
enum manager_intent manager_intent(void)
{
	return is_systemd ? MANAGER_UNKNOWN : MANAGER_STOPS;
}

uint64_t manager_watchdog_ms(void)
{
	const char *us = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t ms = us && (!pid || strtol(pid, NULL, 10) == getpid()) ? strtoull(us, NULL, 10) / 1000 : 0;

	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	return ms;
}
