/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from memory that is no longer there: what a truncated file gives stands for a hole that cannot be filled. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scheduler/guard.h"
#include "tests/support/test.h"

#define PAGE 4096u

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
