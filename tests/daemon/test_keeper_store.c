/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper's descriptors, and how they reach the next worker. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/keeper_store.h"
#include "tests/support/test.h"

static int numbered_fd(int number)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "n%d", number);
	fd = memfd_create(name, MFD_CLOEXEC);
	check(fd >= 0);
	check_eq_int(write(fd, &number, sizeof(number)), sizeof(number));
	return fd;
}

TEST(names_are_checked)
{
	struct keeper_store store = { 0 };
	char name[200];

	check_eq_int(keeper_store_add(&store, "", numbered_fd(1)), -EINVAL);
	check_eq_int(keeper_store_add(&store, "a:b", numbered_fd(1)), -EINVAL);
	check_eq_int(keeper_store_add(&store, "a b", numbered_fd(1)), -EINVAL);
	check_eq_int(keeper_store_add(&store, "\xff", numbered_fd(1)), -EINVAL);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	check_eq_int(keeper_store_add(&store, name, numbered_fd(1)), -EINVAL);
	check_eq_uint(store.count, 0);
}

TEST(names_of_all_have_a_limit)
{
	struct keeper_store store = { 0 };
	char name[64];
	int r = 0, i;

	for (i = 0; r == 0; i++) {
		snprintf(name, sizeof(name), "%058d", i);
		r = keeper_store_add(&store, name, open("/dev/null", O_RDONLY | O_CLOEXEC));
	}
	check_eq_int(r, -EDQUOT);
	check_gt_int(i, 2000);
	keeper_store_clear(&store);
	check_eq_uint(store.count, 0);
	check_eq_uint(store.names_size, 0);
}

/* In a child: each name must be the descriptor that was stored under it. */
static void check_passed(int count)
{
	char *names = strdup(getenv("LISTEN_FDNAMES")), *next = names;

	check_eq_int(strtol(getenv("LISTEN_FDS"), NULL, 10), count);
	check_eq_int(strtol(getenv("LISTEN_PID"), NULL, 10), getpid());
	for (int i = 0; i < count; i++) {
		const char *name = strsep(&next, ":");
		int number;

		check_eq_int(pread(3 + i, &number, sizeof(number), 0), sizeof(number));
		check_eq_int(strtol(name + 1, NULL, 10), number);
		check_eq_int(fcntl(3 + i, F_GETFD), 0);
	}
	free(names);
}

TEST(descriptors_are_passed_by_name_whatever_their_numbers)
{
	struct keeper_store store = { 0 };
	char name[16];
	int status;

	srandom((unsigned int)test_seed());
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		check_eq_int(keeper_store_add(&store, name, numbered_fd(i)), 0);
	}
	/* holes, and names that get another descriptor */
	for (int i = 0; i < 60; i++) {
		int number = (int)(random() % 100);

		snprintf(name, sizeof(name), "n%d", number);
		keeper_store_remove(&store, name);
		if (i % 2)
			check_eq_int(keeper_store_add(&store, name, numbered_fd(number)), 0);
	}
	keeper_store_remove(&store, "not there");
	if (fork() == 0) {
		int count = (int)store.count;

		check_eq_int(keeper_store_pass(&store), 0);
		check_passed(count);
		_exit(0);
	}
	check(wait(&status) > 0);
	check_eq_int(status, 0);
	keeper_store_clear(&store);
}
