/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The support library judges itself: what must be reported as a failure is reported.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(passing_case)
{
	check(1 + 1 == 2);
	check_eq_int(-1, -1);
	check_lt_int(-2, -1);
	check_ge_uint(SIZE_MAX, SIZE_MAX);
	check_eq_str("rank", "rank");
	check_eq_str(NULL, NULL);
	check_ne_str("rank", NULL);
	check_str_contains("rank 3, pid 4711", "pid");
	check_str_lacks("rank 3", "pid");
	check_eq_mem("abc", "abd", 2);
	check_null(NULL);
	check_ptr("");
	check_eq_uint(test_seed(), test_seed());
}

TEST(path_is_usable_and_removed)
{
	const char *path = test_path("file");
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	check_msg(fd >= 0, "%s: %s", path, strerror(errno));
	close(fd);
}

TEST_FAILS(failing_condition)
{
	check(1 + 1 == 3);
}

TEST_FAILS(failing_int)
{
	check_eq_int(-EAGAIN, 0);
}

TEST_FAILS(failing_uint)
{
	check_gt_uint(1u, 0x10u);
}

TEST_FAILS(failing_str)
{
	check_str_contains("rank 3", "rank 4");
}

TEST_FAILS(failing_null_str)
{
	check_eq_str(NULL, "rank");
}

TEST_FAILS(failing_mem)
{
	check_eq_mem("abc", "abd", 3);
}

TEST_FAILS(crashing)
{
	raise(SIGSEGV);
}

TEST_FAILS(aborting)
{
	abort();
}

TEST_FAILS(leaving_by_exit)
{
	exit(0);
}

TEST_FAILS(hanging)
{
	for (;;)
		pause();
}

TEST_FAILS(leaking_a_descriptor)
{
	check(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
}

TEST_FAILS(closing_a_foreign_descriptor)
{
	close(STDOUT_FILENO);
}

TEST_FAILS(leaving_a_child)
{
	if (fork() == 0)
		for (;;)
			pause();
}

TEST_FAILS(hanging_with_a_child_in_another_session)
{
	if (fork() == 0)
		setsid();
	for (;;)
		pause();
}

static int status_of(const char *arguments, char *output, size_t size)
{
	char program[1024], command[2048];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	size_t got;
	FILE *pipe;
	int status;

	check(length > 0);
	program[length] = '\0';
	snprintf(command, sizeof(command), "'%s' %s 2>&1", program, arguments);
	pipe = popen(command, "r");
	check_ptr(pipe);
	got = fread(output, 1, size - 1, pipe);
	output[got] = '\0';
	status = pclose(pipe);
	check(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The pipe ends only when nobody holds it open any more. */
TEST(hanging_case_takes_its_children_along)
{
	char output[4096];

	check_eq_int(status_of("hanging_with_a_child_in_another_session", output, sizeof(output)),
		     0);
	check_str_contains(output, "it had to fail: not done after");
}

TEST(list_names_cases)
{
	char output[4096];

	check_eq_int(status_of("--list", output, sizeof(output)), 0);
	check_str_contains(output, "passing_case\n");
}

TEST(one_case_by_name)
{
	char output[4096];

	check_eq_int(status_of("passing_case", output, sizeof(output)), 0);
	check_str_contains(output, "1 cases passed, 0 failed, 0 skipped");
}

TEST(unknown_case_is_no_success)
{
	char output[4096];

	check_eq_int(status_of("passing_case no_such_case", output, sizeof(output)), 2);
}

TEST(failure_names_place_and_values)
{
	char output[4096];

	check_eq_int(status_of("failing_int", output, sizeof(output)), 0);
	check_str_contains(output, "test_support.c:");
	check_str_contains(output, "-EAGAIN == 0 does not hold: -11 and 0");
}

/* Only when it is asked for: as a part of the whole program it would make it a skipped one. */
TEST(skip_gives_its_reason)
{
	char output[4096];

	if (getenv("TEST_SUPPORT_SKIP"))
		test_skip("needs %s", "a device");
	setenv("TEST_SUPPORT_SKIP", "1", 1);
	check_eq_int(status_of("skip_gives_its_reason", output, sizeof(output)), 77);
	check_str_contains(output, "skip skip_gives_its_reason: needs a device\n");
	check_str_contains(output, "\nneeds a device\n");
}
