/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting the paths of cgroups. Pure, but for reading the file. */
#include "base/cgroup.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COMPONENT_MAX 256
#define FILE_MAX 16384

enum verdict {
	CUT,   /* behind this component */
	BELOW, /* a runtime's own service: what it runs is below, else here */
};

/* @parent: pattern that a component above must match, NULL: none. The first row that fits counts. */
static const struct {
	const char *parent, *component;
	enum verdict verdict;
} rules[] = {
	/* runtimes that keep their containers and jobs below their own unit */
	{ NULL, "*slurm*.scope", BELOW },
	{ NULL, "slurmd*.service", BELOW },
	{ NULL, "kubelet*.service", BELOW },
	{ NULL, "containerd*.service", BELOW },
	{ NULL, "docker*.service", BELOW },
	{ NULL, "crio.service", BELOW },
	{ NULL, "k3s*.service", BELOW },
	{ NULL, "pbs*.service", BELOW },
	{ NULL, "lsfd.service", BELOW },
	/* Kubernetes, cgroupfs and systemd drivers: all containers of a pod together */
	{ "*kubepods*", "pod?*", CUT },
	{ "*kubepods*", "*-pod?*.slice", CUT },
	{ NULL, "kubepods*-pod?*.slice:*", CUT }, /* drivers of kubelet and runtime differ */
	/* batch systems */
	{ "*slurm*", "job_[0-9]*", CUT },
	{ "jobid", "[0-9]*", CUT },
	{ "lsf", "job.[0-9]*", CUT },
	/* containers without a pod */
	{ "docker", "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*", CUT },
	{ "default", "[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]*", CUT },
	{ "lxc", "?*", CUT },
	{ NULL, "lxc.payload.?*", CUT },
	{ NULL, "libpod-*", CUT },
	/* systemd: docker-ID.scope, session-N.scope, user@UID.service, machines, services */
	{ NULL, "init.scope", BELOW },
	{ NULL, "?*.scope", CUT },
	{ NULL, "?*.service", CUT },
};

static bool rule_fits(const char *const *above, size_t depth, size_t rule)
{
	if (!rules[rule].parent)
		return true;
	for (size_t i = 0; i < depth; i++)
		if (fnmatch(rules[rule].parent, above[i], 0) == 0)
			return true;
	return false;
}

/* The first rule for @component, which has @depth components @above it; -1: none. */
static int rule_find(const char *const *above, size_t depth, const char *component)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (fnmatch(rules[i].component, component, 0) == 0 && rule_fits(above, depth, i))
			return (int)i;
	return -1;
}

static void cut_copy(const char *path, size_t length, char *ret_cut, size_t size)
{
	uint64_t hash = 14695981039346656037ull;

	if (length < size) {
		memcpy(ret_cut, path, length);
		ret_cut[length] = 0;
		return;
	}
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)path[i]) * 1099511628211ull;
	snprintf(ret_cut, size, "#%016" PRIx64 "...%.*s", hash, (int)(size - 21),
		 path + length - (size - 21));
}

#define DEPTH_MAX 64

void cgroup_cut(const char *path, char *ret_cut, size_t size)
{
	static const size_t none = (size_t)-1;
	char components[DEPTH_MAX][COMPONENT_MAX];
	const char *above[DEPTH_MAX];
	size_t depth = 0, cut = none, position = 0;

	while (path[position] && depth < DEPTH_MAX) {
		size_t length;
		int rule;

		position += strspn(path + position, "/");
		length = strcspn(path + position, "/");
		if (length == 0 || length >= COMPONENT_MAX)
			break;
		memcpy(components[depth], path + position, length);
		components[depth][length] = 0;
		above[depth] = components[depth];
		position += length;
		rule = rule_find(above, depth, components[depth]);
		depth++;
		if (rule < 0)
			continue;
		cut = position;
		if (rules[rule].verdict == CUT)
			break;
	}
	cut_copy(path, cut == none ? 0 : cut, ret_cut, size);
}

bool cgroup_hierarchy_path(const char *content, const char *controller, char *ret_path, size_t size)
{
	for (const char *line = content; *line;) {
		size_t length = strcspn(line, "\n"), list;
		const char *names = memchr(line, ':', length), *path;

		path = names ? memchr(names + 1, ':', length - (size_t)(names + 1 - line)) : NULL;
		list = path ? (size_t)(path - names - 1) : 0;
		if (path && list == strlen(controller) &&
		    memcmp(names + 1, controller, list) == 0) {
			size_t bytes = length - (size_t)(path + 1 - line);

			if (bytes >= size)
				bytes = size - 1;
			memcpy(ret_path, path + 1, bytes);
			ret_path[bytes] = 0;
			return true;
		}
		line += length + (line[length] == '\n');
	}
	return false;
}

void cgroup_cut_file(const char *content, char *ret_cut, size_t size)
{
	static const char *const hierarchies[] = { "",	     "memory", "pids",		  "devices",
						   "cpuset", "cpu",    "cpu,cpuacct", "freezer",
						   "name=systemd" };
	char path[4096];

	*ret_cut = 0;
	for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]) && !*ret_cut; i++)
		if (cgroup_hierarchy_path(content, hierarchies[i], path, sizeof(path)))
			cgroup_cut(path, ret_cut, size);
}

int cgroup_of_process(int32_t pid, char *ret_cut, size_t size)
{
	char path[64], content[FILE_MAX];
	size_t length;
	FILE *file;

	if (pid <= 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%" PRId32 "/cgroup", pid);
	file = fopen(path, "re");
	if (!file)
		return -ENOENT;
	length = fread(content, 1, sizeof(content) - 1, file);
	fclose(file);
	content[length] = 0;
	cgroup_cut_file(content, ret_cut, size);
	return length ? 0 : -ENOENT;
}
