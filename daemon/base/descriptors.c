/* SPDX-License-Identifier: Apache-2.0 */
#include "base/descriptors.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/log.h"

static bool has_reserve;

void descriptors_init(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	has_reserve = limit.rlim_max > 4 * DESCRIPTORS_RESERVED;
	limit.rlim_cur = limit.rlim_max - (has_reserve ? DESCRIPTORS_RESERVED : 0);
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	log_warning("the limit of open files stays as it is: %s", strerror(errno));
	has_reserve = false;
}

static int descriptors_try(int listen_fd)
{
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

int descriptors_accept(int listen_fd, bool *ret_reserved)
{
	int fd = descriptors_try(listen_fd);
	struct rlimit limit, raised;

	*ret_reserved = false;
	if (fd != -EMFILE || !has_reserve || getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return fd;
	/* other threads may take some of the reserve in this moment; it is larger than what they open at a time */
	raised = (struct rlimit){ limit.rlim_max, limit.rlim_max };
	if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
		return fd;
	fd = descriptors_try(listen_fd);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	*ret_reserved = fd >= 0;
	return fd;
}
