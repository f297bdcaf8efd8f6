/* SPDX-License-Identifier: Apache-2.0 */
/* Files as the kernel has them, of both versions and in a container. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory_group.h"
#include "tests/support/test.h"

#define MIB (UINT64_C(1) << 20)

static char mount[64];

static void make_mount(void)
{
	strcpy(mount, "/tmp/test-memory-group-XXXXXX");
	check(mkdtemp(mount) != NULL);
}

static void remove_mount(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", mount);
	check_eq_int(system(command), 0);
}

static void make_folder(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", mount, folder);
	check_eq_int(mkdir(path, 0755), 0);
}

static void make_file(const char *name, const char *content)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s", mount, name);
	file = fopen(path, "we");
	check(file != NULL);
	check(fputs(content, file) >= 0);
	check_eq_int(fclose(file), 0);
}

TEST(version_2_the_least_of_all_levels)
{
	struct memory_group group;

	make_mount();
	make_folder("/system.slice");
	make_folder("/system.slice/hccld.service");
	make_file("/system.slice/memory.max", "1073741824\n");
	make_file("/system.slice/memory.current", "1048576000\n");
	make_file("/system.slice/memory.stat", "anon 5\nfile 7\ninactive_file 104857600\nactive_file 10485760\n");
	make_file("/system.slice/hccld.service/memory.max", "max\n");
	make_file("/system.slice/hccld.service/memory.high", "536870912\n");
	make_file("/system.slice/hccld.service/memory.current", "104857600\n");
	memory_group_find("0::/system.slice/hccld.service\n", mount, &group);
	check_eq_uint(memory_group_limit(&group), 512 * MIB);
	check_eq_uint(memory_group_available(&group), (1024 - 1000 + 110) * MIB);
	/* more is used than a limit that was lowered allows */
	make_file("/system.slice/hccld.service/memory.high", "1048576\n");
	check_eq_uint(memory_group_available(&group), 0);
	remove_mount();
}

TEST(version_2_no_limit)
{
	struct memory_group group;

	make_mount();
	make_folder("/a");
	make_file("/a/memory.max", "max\n");
	make_file("/a/memory.current", "5\n");
	memory_group_find("0::/a\n", mount, &group);
	check_eq_uint(memory_group_limit(&group), UINT64_MAX);
	check_eq_uint(memory_group_available(&group), UINT64_MAX);
	memory_group_find("", mount, &group);
	check_eq_uint(memory_group_limit(&group), UINT64_MAX);
	check_eq_uint(memory_group_available(&group), UINT64_MAX);
	remove_mount();
}

TEST(version_1_and_a_container)
{
	struct memory_group group;

	make_mount();
	make_folder("/memory");
	make_folder("/memory/one");
	make_file("/memory/memory.limit_in_bytes", "9223372036854771712\n");
	make_file("/memory/memory.usage_in_bytes", "1\n");
	make_file("/memory/one/memory.limit_in_bytes", "104857600\n");
	make_file("/memory/one/memory.usage_in_bytes", "52428800\n");
	make_file("/memory/one/memory.stat", "inactive_file 1\ntotal_inactive_file 10485760\ntotal_active_file 0\n");
	memory_group_find("5:cpu,cpuacct:/\n4:memory:/one\n0::/x\n", mount, &group);
	check_eq_uint(memory_group_limit(&group), 100 * MIB);
	check_eq_uint(memory_group_available(&group), 60 * MIB);
	/* its own group is the root of what it sees, by another name outside */
	make_file("/memory/memory.limit_in_bytes", "10485760\n");
	memory_group_find("4:memory:/docker/0123\n", mount, &group);
	check_eq_uint(memory_group_limit(&group), 10 * MIB);
	memory_group_find("4:memory:/../outside\n", mount, &group);
	check_eq_uint(memory_group_limit(&group), 10 * MIB);
	remove_mount();
}
