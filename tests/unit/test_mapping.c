/* SPDX-License-Identifier: Apache-2.0 */
#include "client/mapping.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/test.h"

#define SIZE 8192u
#define GUARDED 8192u /* so many have guards */
#define SLACK 200 /* mappings of the C library, or of a sanitizer */

/* May this address be touched? */
static bool is_there(const volatile char *address)
{
	int fds[2];
	bool is;

	check_eq_int(pipe(fds), 0);
	is = write(fds[1], (const char *)address, 1) == 1;
	close(fds[0]);
	close(fds[1]);
	return is;
}

/* Lines of /proc/self/maps. */
static uint32_t mapping_count(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint32_t count = 0;
	int c;

	check_ptr(file);
	while ((c = getc(file)) != EOF)
		count += c == '\n';
	fclose(file);
	return count;
}

static int memory_new(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	check_ge_int(fd, 0);
	check_eq_int(ftruncate(fd, 2 * SIZE), 0);
	check_eq_int(pwrite(fd, "x", 1, SIZE), 1);
	return fd;
}

static void check_guarded(char *base, uint64_t size)
{
	const uint64_t end = (size + 4095) / 4096 * 4096;

	check(is_there(base) && is_there(base + size - 1));
	for (uint64_t at = 0; at < HCCLD_GUARD; at += 4096)
		check(!is_there(base - 1 - at) && !is_there(base + end + at));
}

TEST(nothing_is_before_and_behind_memory)
{
	int fd = memory_new();
	char *parts[20], *zeros;

	for (int i = 0; i < 20; i++) {
		parts[i] = hccld_mapping_new(fd, SIZE, SIZE - 100, PROT_READ | PROT_WRITE);
		check_ptr(parts[i]);
		check_eq_int(parts[i][0], 'x');
	}
	zeros = hccld_mapping_new(-1, 0, SIZE, PROT_READ | PROT_WRITE);
	check_guarded(zeros, SIZE);
	check_eq_int(zeros[5], 0);
	for (int i = 0; i < 20; i++)
		check_guarded(parts[i], SIZE - 100);
	/* the guards of one do not go with its neighbours */
	for (int i = 0; i < 20; i += 2)
		hccld_mapping_free(parts[i], SIZE - 100);
	for (int i = 1; i < 20; i += 2)
		check_guarded(parts[i], SIZE - 100);
	/* other memory in its place does not change that */
	check_eq_ptr(mremap(zeros, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, parts[1]), parts[1]);
	check_guarded(parts[1], SIZE);
	close(fd);
}

TEST(without_room_for_guards_there_is_memory)
{
	const uint32_t before = mapping_count();
	static char *parts[GUARDED + 500];
	int fd = memory_new();

	for (uint32_t i = 0; i < GUARDED + 500; i++) {
		parts[i] = hccld_mapping_new(fd, 0, SIZE, PROT_READ);
		check_ptr(parts[i]);
	}
	check_guarded(parts[0], SIZE);
	check_guarded(parts[GUARDED - 1], SIZE);
	check_le_int(mapping_count(), before + 2 * GUARDED + 500 + SLACK);
	/* what is freed makes room; in another order than it was made */
	for (uint32_t i = 0; i < GUARDED; i += 2)
		hccld_mapping_free(parts[i], SIZE);
	for (uint32_t i = 0; i < GUARDED; i += 2) {
		parts[i] = hccld_mapping_new(fd, 0, SIZE, PROT_READ);
		check_ptr(parts[i]);
	}
	check_guarded(parts[0], SIZE);
	check_guarded(parts[1], SIZE);
	for (uint32_t i = 0; i < GUARDED + 500; i++)
		hccld_mapping_free(parts[i], SIZE);
	/* all of it is gone again, guards as well */
	check_le_int(mapping_count(), before + SLACK);
	close(fd);
}
