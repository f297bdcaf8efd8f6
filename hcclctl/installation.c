/* SPDX-License-Identifier: Apache-2.0 */
/* Paths relative to our own executable. Stateless. */
#include "hcclctl/installation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* @base/@relative without "..", if it exists. */
static int resolve(const char *base, const char *relative, char *path)
{
	char joined[PATH_MAX];
	int n = snprintf(joined, sizeof(joined), "%s/%s", base, relative);

	if (n < 0 || (size_t)n >= sizeof(joined))
		return -ENAMETOOLONG;
	return realpath(joined, path) ? 0 : -errno;
}

int installation_bin(char *path)
{
	char link[PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", link, sizeof(link) - 1);

	if (n < 0)
		return -errno;
	memcpy(path, link, (size_t)n);
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return -ENOENT;
	*(slash == path ? slash + 1 : slash) = '\0';
	return 0;
}

static int find_in_path(const char *name, char *path)
{
	const char *list = getenv("PATH");

	for (list = list ? list : ""; *list;) {
		size_t size = strcspn(list, ":");
		char directory[PATH_MAX];

		if (size && size < sizeof(directory)) {
			memcpy(directory, list, size);
			directory[size] = '\0';
			if (!resolve(directory, name, path) && !access(path, X_OK))
				return 0;
		}
		list += size;
		list += *list == ':';
	}
	return -ENOENT;
}

int installation_daemon(char *path)
{
	static const char *const places[] = { "../sbin/hccld", "../daemon/hccld", "hccld" };
	char bin[PATH_MAX];

	if (!installation_bin(bin))
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			if (!resolve(bin, places[i], path) && !access(path, X_OK))
				return 0;
	if (!find_in_path("hccld", path))
		return 0;
	return resolve("/usr/sbin", "hccld", path);
}

int installation_ascend(char *path)
{
	static const char *const places[] = { "../lib/hccld/ascend", "../ascend" };
	char bin[PATH_MAX];
	struct stat status;
	int r;

	r = installation_bin(bin);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!resolve(bin, places[i], path) && !stat(path, &status) &&
		    S_ISDIR(status.st_mode))
			return 0;
	return -ENOENT;
}
