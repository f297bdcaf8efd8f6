/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from memory that is no longer there: what a truncated file gives stands for a hole that cannot be filled. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hole.h"
#include "scheduler/guard.h"
#include "tests/support/test.h"

#define PAGE 4096u
#define HOLES 50u /* pages */
#define ALIGNMENT 65536u

static char *pages(int *fd)
{
	char *base;

	*fd = memfd_create("guard", MFD_CLOEXEC);
	check(*fd >= 0 && ftruncate(*fd, 4 * PAGE) == 0);
	base = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	check(base != MAP_FAILED);
	memset(base, 7, 4 * PAGE);
	return base;
}

/* memcpy touches a page in whatever order it likes */
static const char *page_of(const void *address)
{
	return (const char *)((uintptr_t)address & ~(uintptr_t)(PAGE - 1));
}

TEST(a_lost_page_is_told_and_the_rest_is_copied)
{
	static char to[4 * PAGE];
	int fd;
	char *from = pages(&fd);

	check_eq_int(guard_install(), 0);
	check_null(guard_copy(to, from, sizeof(to), 0, false));
	check_eq_int(to[4 * PAGE - 1], 7);
	memset(to, 1, sizeof(to));
	check(ftruncate(fd, 2 * PAGE) == 0);
	check_eq_ptr(page_of(guard_copy(to, from, 3 * PAGE, 0, false)), from + 2 * PAGE);
	check_eq_int(to[2 * PAGE - 1], 7);
	check_null(guard_copy(to, from, 2 * PAGE, 0, false));
	close(fd);
}

TEST(a_lost_destination_is_told)
{
	int fd;
	char *to = pages(&fd);
	static char from[4 * PAGE];

	check_eq_int(guard_install(), 0);
	check(ftruncate(fd, 0) == 0);
	check_eq_ptr(page_of(guard_copy(to, from, PAGE, 0, false)), to);
	check_eq_ptr(page_of(guard_copy(to + PAGE, NULL, PAGE, 3, false)), to + PAGE);
	check(guard_copy(to + 2 * PAGE, from, 2 * PAGE, 0, true) != NULL);
	close(fd);
}

TEST(other_faults_stay_deadly)
{
	int fd, status;
	char *base = pages(&fd);
	pid_t pid;

	check_eq_int(guard_install(), 0);
	check(ftruncate(fd, 0) == 0);
	pid = fork();
	if (pid == 0) {
		*(volatile char *)base = 1;
		_exit(0);
	}
	check_eq_int(waitpid(pid, &status, 0), pid);
	/* a sanitizer may turn the signal into an exit of its own */
	check((WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) || (WIFEXITED(status) && WEXITSTATUS(status) != 0));
	close(fd);
}

/* Memory whose pages come when they are touched: two mappings, the second of a client. NULL: no such thing here. */
static char *holes(char **ret_other, int *ret_fault_fd)
{
	int fd = memfd_create("holes", MFD_CLOEXEC), r;
	char *base;

	check(fd >= 0 && ftruncate(fd, HOLES * PAGE) == 0);
	/* pages are made in batches, which begin at multiples of this */
	base = mmap(NULL, HOLES * PAGE + ALIGNMENT, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(base != MAP_FAILED);
	base += -(uintptr_t)base & (ALIGNMENT - 1);
	base = mmap(base, HOLES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	*ret_other = mmap(NULL, HOLES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	check(base != MAP_FAILED && *ret_other != MAP_FAILED);
	close(fd);
	/* it gets the lowest number that is free */
	*ret_fault_fd = fd;
	check_eq_int(guard_install(), 0);
	r = hole_watch(base, HOLES * PAGE);
	if (r < 0)
		test_skip("no userfaultfd: %s", strerror(-r));
	return base;
}

/* From one end to the other, whatever is there already, into the last page, which ends a batch early. */
TEST(holes_are_filled_as_long_as_there_is_room)
{
	static char from[HOLES * PAGE];
	int fault_fd;
	char *other, *base = holes(&other, &fault_fd);

	hole_set_room(HOLES * PAGE, hole_taken());
	memset(from, 5, sizeof(from));
	other[7 * PAGE] = 3;
	other[40 * PAGE] = 3;
	check_null(guard_copy(base, from, sizeof(from), 0, false));
	check_eq_mem(other, from, sizeof(from));
	check_null(guard_copy(from, base, sizeof(from), 0, true));
	close(fault_fd);
}

/* What is read is a page, too. */
TEST(holes_without_room_are_lost)
{
	static char from[HOLES * PAGE];
	int fault_fd;
	char *other, *base = holes(&other, &fault_fd);
	uint64_t taken;
	const char *lost;

	hole_set_room(2 * PAGE, hole_taken());
	check_null(guard_copy(base + 3 * PAGE, from, PAGE, 0, false));
	check_null(guard_copy(from, base + 9 * PAGE, PAGE, 0, false));
	lost = guard_copy(base + 20 * PAGE, from, 10, 0, false);
	check_eq_ptr(page_of(lost), base + 20 * PAGE);
	check_eq_int(other[20 * PAGE], 0);
	/* what is there needs none */
	other[30 * PAGE] = 1;
	check_null(guard_copy(base + 30 * PAGE, from, PAGE, 0, false));
	check_null(guard_copy(base + 3 * PAGE, from, PAGE, 0, false));
	taken = hole_taken();
	hole_set_room(PAGE, taken);
	check_null(guard_copy(base + 31 * PAGE, from, PAGE, 0, false));
	check(guard_copy(base + 32 * PAGE, from, PAGE, 0, false) != NULL);
	/* measured before the last ones were taken: they are not in it */
	hole_set_room(PAGE, taken);
	check(guard_copy(base + 33 * PAGE, from, PAGE, 0, false) != NULL);
	hole_set_room(UINT64_MAX, hole_taken());
	hole_take_room(INT64_MAX);
	check(guard_copy(base + 35 * PAGE, from, PAGE, 0, false) != NULL);
	/* a word that somebody reads outside of a copy */
	check_eq_int(*(volatile char *)(base + 34 * PAGE), 0);
	close(fault_fd);
}
