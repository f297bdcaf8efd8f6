/* SPDX-License-Identifier: Apache-2.0 */
/* The socket that clients connect to. */
#include "daemon/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/cleanup.h"

#define BACKLOG 4096
#define GROUP "hccld"
#define LOCK_TRIES 200
#define LOCK_RETRY_US 5000

static int endpoint_failed(const char *what, const char *path)
{
	int error = errno;

	log_error("%s %s failed: %s", what, path, strerror(error));
	return -error;
}

/* The directory @path is in. One level: what is above belongs to others. */
static int directory_make(const char *path)
{
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	mode_t mode = geteuid() == 0 ? 0755 : 0700;
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash || slash == directory)
		return 0;
	*slash = 0;
	if (mkdir(directory, mode) == 0) {
		/* whatever the umask says */
		if (chmod(directory, mode) < 0)
			return endpoint_failed("chmod of", directory);
		return 0;
	}
	return errno == EEXIST ? 0 : endpoint_failed("making the directory", directory);
}

static bool somebody_listens(const struct sockaddr_un *address)
{
	CLEANUP(close_fdp) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	/* EAGAIN: its backlog is full, so it is there */
	return connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
	       errno == EAGAIN || errno == EACCES;
}

/*
 * Who may connect: everybody, or on a system with a group of that name its members; below a private
 * directory only the user can.
 */
static int endpoint_set_mode(const char *path)
{
	const struct group *group = geteuid() == 0 ? getgrnam(GROUP) : NULL;
	mode_t mode = geteuid() != 0 ? 0600 : group ? 0660 : 0666;

	if (group && chown(path, (uid_t)-1, group->gr_gid) < 0)
		return endpoint_failed("chown of", path);
	if (chmod(path, mode) < 0)
		return endpoint_failed("chmod of", path);
	return 0;
}

static int endpoint_bind(int fd, const struct sockaddr_un *address)
{
	struct stat st;

	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return endpoint_failed("binding", address->sun_path);
	if (lstat(address->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode)) {
		log_error("%s exists and is not a socket", address->sun_path);
		return -EEXIST;
	}
	if (somebody_listens(address)) {
		log_error("another hccld serves %s; stop it, or start this one with --socket",
			  address->sun_path);
		return -EADDRINUSE;
	}
	log_info("%s was left behind by a daemon that is gone; it is replaced", address->sun_path);
	if (unlink(address->sun_path) < 0 && errno != ENOENT)
		return endpoint_failed("removing", address->sun_path);
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return endpoint_failed("binding", address->sun_path);
	return 0;
}

/*
 * Nobody else looks whether the name is in use, or makes it, while the descriptor is open: of two
 * daemons that start at a time one would take away what the other has just bound. Best effort: a
 * directory that cannot be opened or locked is not.
 */
static int endpoint_lock(const char *path)
{
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)];
	CLEANUP(close_fdp) int fd = -1;
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (slash)
		slash[slash == directory] = 0;
	fd = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int tries = 0; fd >= 0 && tries < LOCK_TRIES; tries++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return take_fd(&fd);
		usleep(LOCK_RETRY_US);
	}
	return -1;
}

int endpoint_listen(const char *path, bool make_directory, int *ret_fd)
{
	CLEANUP(close_fdp) int fd = -1, lock = -1;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int r;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (make_directory) {
		r = directory_make(path);
		if (r < 0)
			return r;
	}
	lock = endpoint_lock(path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return endpoint_failed("a socket for", path);
	r = endpoint_bind(fd, &address);
	if (r < 0)
		return r;
	r = endpoint_set_mode(path);
	if (r < 0)
		return r;
	if (listen(fd, BACKLOG) < 0)
		return endpoint_failed("listening on", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

void endpoint_adopt(int fd)
{
	if (listen(fd, BACKLOG) < 0)
		log_warning("the socket stays its maker's: %s", strerror(errno));
}

bool endpoint_is_at(int fd, const char *path)
{
	struct sockaddr_un address = { 0 };
	socklen_t size = sizeof(address);
	struct stat st;

	return getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
	       strncmp(address.sun_path, path, sizeof(address.sun_path)) == 0 &&
	       lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}
