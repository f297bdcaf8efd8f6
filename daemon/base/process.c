/* SPDX-License-Identifier: Apache-2.0 */
/* Other processes, by pidfd where the kernel can. */
#include "base/process.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/ioctl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory_group.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* linux/pidfd.h of Linux 6.15, first version of the struct */
struct exit_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};
_Static_assert(sizeof(struct exit_info) == 64, "PIDFD_INFO_SIZE_VER0");
#define EXIT_INFO_GET _IOWR(0xFF, 11, struct exit_info)
#define EXIT_INFO_EXIT (1u << 3)

int process_peer(int socket_fd, struct process_identity *ret_identity)
{
	struct ucred credentials;
	socklen_t size = sizeof(credentials);

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) < 0) {
		int error = errno;

		log_error("SO_PEERCRED failed: %s", strerror(error));
		return -error;
	}
	*ret_identity =
		(struct process_identity){ credentials.pid, credentials.uid, credentials.gid };
	return 0;
}

int process_peer_pidfd(int socket_fd, int32_t pid, int *ret_pidfd)
{
	int pidfd;
	socklen_t size = sizeof(pidfd);

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0) {
		*ret_pidfd = pidfd;
		return 0;
	}
	if (errno != ENOPROTOOPT)
		return errno == EMFILE || errno == ENFILE ? -EDQUOT : -ESRCH;
	/*
	 * before Linux 6.5. A pid given anew between connect() and here is met by the request's
	 * credentials only in theory
	 */
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return errno == EMFILE || errno == ENFILE ? -EDQUOT : -ESRCH;
	*ret_pidfd = pidfd;
	return 0;
}

/* /proc/PID/stat from the third field, the state, on; NULL: no such process. */
static const char *stat_read(int32_t pid, char *line, size_t size)
{
	char path[64];
	FILE *file;
	char *name_end;

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return NULL;
	if (!fgets(line, (int)size, file))
		line[0] = 0;
	fclose(file);
	/* the second field is a name in parentheses that may have some of its own */
	name_end = strrchr(line, ')');
	return name_end && name_end[1] == ' ' ? name_end + 2 : NULL;
}

bool process_is_stopped(int32_t pid)
{
	char line[1024];
	const char *state = stat_read(pid, line, sizeof(line));

	return state && (*state == 'T' || *state == 't');
}

bool process_is_running(int32_t pid)
{
	char line[1024];
	const char *state = stat_read(pid, line, sizeof(line));

	return state && *state == 'R';
}

/* Process group and session; false: no such process, or one of the kernel's. */
static bool group_read(int32_t pid, int32_t ret_group[2])
{
	char line[1024], state;
	const char *field = stat_read(pid, line, sizeof(line));

	return field && sscanf(field, "%c %*d %" SCNd32 " %" SCNd32, &state, &ret_group[0], &ret_group[1]) == 3 && ret_group[0] > 0 &&
	       ret_group[1] > 0;
}

bool process_is_related(int32_t pid, int32_t other)
{
	int32_t groups[2][2];

	return group_read(pid, groups[0]) && group_read(other, groups[1]) &&
	       (groups[0][0] == groups[1][0] || groups[0][1] == groups[1][1]);
}

/* Whether the kernel tells us how it ended: to others it shows 0. */
static bool status_is_shown(int32_t pid)
{
	char path[64], line[256];
	unsigned long uid = (unsigned long)-1;
	FILE *file;

	if (geteuid() == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Uid: %lu", &uid) == 1)
			break;
	if (file)
		fclose(file);
	return uid == geteuid();
}

/* Of a zombie: its pid is still its own. */
static int exit_status_from_proc(int32_t pid, int32_t *ret_status)
{
	char line[1024];
	const char *field = stat_read(pid, line, sizeof(line));
	int32_t status;

	if (!field || *field != 'Z')
		return -ENOENT;
	/* the status is the 52nd */
	for (int n = 3; field && n < 52; n++) {
		field = strchr(field, ' ');
		if (field)
			field++;
	}
	if (!field)
		return -ENOENT;
	status = (int32_t)strtol(field, NULL, 10);
	if (!status && !status_is_shown(pid))
		return -ENOENT;
	*ret_status = status;
	return 0;
}

bool process_has_ended(int pidfd)
{
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) > 0;
}

static bool exit_info_get(int pidfd, struct exit_info *ret_info)
{
	/*
	 * The kernel looks for the status, then for the process, and answers ESRCH if that was collected in between. By then the status is
	 * there. Kernels that do not keep it say so each time.
	 */
	for (int tries = 0; tries < 2; tries++) {
		*ret_info = (struct exit_info){ .mask = EXIT_INFO_EXIT };
		if (ioctl(pidfd, EXIT_INFO_GET, ret_info) == 0)
			return true;
		if (errno != ESRCH)
			break;
	}
	return false;
}

int process_exit_status(int pidfd, int32_t pid, int32_t *ret_status)
{
	struct exit_info info;
	bool is_supported = exit_info_get(pidfd, &info);

	if (is_supported && (info.mask & EXIT_INFO_EXIT)) {
		*ret_status = info.exit_code;
		return 0;
	}
	if (pid > 0 && exit_status_from_proc(pid, ret_status) == 0)
		return 0;
	return is_supported ? -EAGAIN : -ENOENT;
}

static uint64_t meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t bytes = UINT64_MAX;
	char line[256];

	if (!file)
		return UINT64_MAX;
	while (bytes == UINT64_MAX && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			bytes = strtoull(line + strlen(name), NULL, 10) * 1024;
	fclose(file);
	return bytes;
}

uint64_t memory_available(void)
{
	return meminfo("MemAvailable:");
}

uint64_t memory_total(void)
{
	uint64_t node = meminfo("MemTotal:"), limit;
	struct memory_group group;

	memory_group_self(&group);
	limit = memory_group_limit(&group);
	return limit < node ? limit : node;
}
