/* SPDX-License-Identifier: Apache-2.0 */
/* User namespaces of other processes. */
#include "base/namespace.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef NS_GET_NSTYPE
#define NS_GET_NSTYPE _IO(0xb7, 0x3)
#endif

#define MAP_SIZE 4096

static bool read_file(const char *path, char *content, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length;

	if (!file)
		return false;
	length = fread(content, 1, size - 1, file);
	content[length] = 0;
	fclose(file);
	return length > 0;
}

/* As it looks from here: that of our own namespace is "0 0 count" for all it has. */
static bool maps_as_we_do(int32_t pid)
{
	char path[64], theirs[MAP_SIZE], ours[MAP_SIZE];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/uid_map", pid);
	return read_file("/proc/self/uid_map", ours, sizeof(ours)) &&
	       read_file(path, theirs, sizeof(theirs)) && strcmp(ours, theirs) == 0;
}

static uint64_t inode_at(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

uint64_t namespace_of_process(int32_t pid)
{
	char path[64];
	uint64_t inode;

	if (pid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/ns/user", pid);
	inode = inode_at(path);
	if (!inode && maps_as_we_do(pid))
		inode = inode_at("/proc/self/ns/user");
	return inode;
}

int namespace_of_fd(int fd, uint64_t *ret_inode)
{
	static const char prefix[] = "user:[";
	char path[64], target[64];
	struct stat st;
	ssize_t n;

	/* names of files begin with a slash: this asks the kernel alone */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	if (n < 0 && errno == ENOENT && access("/proc/self", F_OK) < 0) {
		*ret_inode = 0;
		return 0;
	}
	if (n < (ssize_t)sizeof(prefix) || memcmp(target, prefix, sizeof(prefix) - 1) != 0)
		return -EINVAL;
	if (ioctl(fd, NS_GET_NSTYPE) != CLONE_NEWUSER || fstat(fd, &st) < 0)
		return -EINVAL;
	*ret_inode = (uint64_t)st.st_ino;
	return 0;
}

bool namespace_uid_is_nobody(uint32_t uid)
{
	char content[MAP_SIZE];
	unsigned long inside, outside, count;

	if (!read_file("/proc/sys/kernel/overflowuid", content, sizeof(content)))
		strcpy(content, "65534");
	if (uid != strtoul(content, NULL, 10))
		return false;
	/* where every user has a number it is that of a real one */
	return !read_file("/proc/self/uid_map", content, sizeof(content)) ||
	       sscanf(content, "%lu %lu %lu", &inside, &outside, &count) != 3 || inside != 0 ||
	       count != UINT32_MAX;
}
