/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory_group.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"

#define FILE_MAX 16384
#define VALUE_MAX 64

static size_t file_read(const char *folder, const char *name, char *buffer, size_t size)
{
	char path[4200];
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "re");
	if (file) {
		length = fread(buffer, 1, size - 1, file);
		fclose(file);
	}
	buffer[length] = 0;
	return length;
}

/* UINT64_MAX: "max", or no such file. */
static uint64_t value_read(const char *folder, const char *name)
{
	char text[VALUE_MAX];

	if (!file_read(folder, name, text, sizeof(text)) || text[0] < '0' || text[0] > '9')
		return UINT64_MAX;
	return strtoull(text, NULL, 10);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Beyond memory.high the kernel holds the process up, which is no better. */
static uint64_t folder_limit(const char *folder)
{
	uint64_t limit = least(value_read(folder, "memory.max"), value_read(folder, "memory.high"));

	return least(limit, value_read(folder, "memory.limit_in_bytes"));
}

/* Pages of files: all that can be dropped. */
static uint64_t folder_droppable(const char *folder)
{
	static const char *const names[] = { "inactive_file", "active_file", "total_inactive_file", "total_active_file" };
	char text[FILE_MAX], *line = text, *next;
	uint64_t values[4] = { 0 };

	file_read(folder, "memory.stat", text, sizeof(text));
	for (; line; line = next) {
		size_t name = strcspn(line, " ");

		next = strchr(line, '\n');
		next = next ? next + 1 : NULL;
		for (size_t i = 0; i < 4; i++)
			if (strlen(names[i]) == name && strncmp(line, names[i], name) == 0)
				values[i] = strtoull(line + name, NULL, 10);
	}
	/* version 1 has both: of the group alone, and with those below it */
	return values[2] + values[3] ? values[2] + values[3] : values[0] + values[1];
}

static uint64_t folder_available(const char *folder)
{
	uint64_t limit = folder_limit(folder), used, droppable;

	/* version 1 says "none" by a number of this size */
	if (limit >= INT64_MAX / 2)
		return UINT64_MAX;
	used = value_read(folder, "memory.current");
	if (used == UINT64_MAX)
		used = value_read(folder, "memory.usage_in_bytes");
	if (used == UINT64_MAX)
		return UINT64_MAX;
	droppable = folder_droppable(folder);
	used -= least(used, droppable);
	return limit - least(limit, used);
}

static uint64_t least_on_the_way_up(const struct memory_group *group, uint64_t (*of_folder)(const char *folder))
{
	uint64_t result = UINT64_MAX;
	char folder[sizeof(group->path)];
	char *slash;

	if (!group->path[0])
		return UINT64_MAX;
	strcpy(folder, group->path);
	for (;;) {
		result = least(result, of_folder(folder));
		slash = strrchr(folder + group->root_length, '/');
		if (!slash)
			return result;
		*slash = 0;
	}
}

uint64_t memory_group_limit(const struct memory_group *group)
{
	uint64_t limit = least_on_the_way_up(group, folder_limit);

	return limit >= INT64_MAX / 2 ? UINT64_MAX : limit;
}

uint64_t memory_group_available(const struct memory_group *group)
{
	return least_on_the_way_up(group, folder_available);
}

void memory_group_find(const char *content, const char *mount, struct memory_group *ret_group)
{
	static const char *const folders[] = { "/memory", "" };
	static const char *const controllers[] = { "memory", "" };
	char path[2048];
	int n;

	*ret_group = (struct memory_group){ .path = "" };
	for (size_t i = 0; i < 2; i++) {
		if (!cgroup_hierarchy_path(content, controllers[i], path, sizeof(path)))
			continue;
		n = snprintf(ret_group->path, sizeof(ret_group->path), "%.1024s%s", mount, folders[i]);
		ret_group->root_length = (size_t)n;
		if (strcmp(path, "/") != 0 && !strstr(path, "/.."))
			snprintf(ret_group->path + n, sizeof(ret_group->path) - (size_t)n, "%s", path);
		/* in a container its group may be mounted as the root */
		if (access(ret_group->path, F_OK) < 0)
			ret_group->path[n] = 0;
		return;
	}
}

void memory_group_self(struct memory_group *ret_group)
{
	char content[FILE_MAX];

	file_read("/proc/self", "cgroup", content, sizeof(content));
	memory_group_find(content, "/sys/fs/cgroup", ret_group);
}
