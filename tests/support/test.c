/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Expectations, and what a case may ask for. Runs in the process of a case; the runner is runner.c.
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/runner.h"

static uint64_t seed;
static bool has_seed;

void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	if (has_seed)
		fprintf(stderr, "repeat with TEST_SEED=%" PRIu64 "\n", seed);
	_exit(CASE_FAILED);
}

void test_skip(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	va_start(args, format);
	runner_report_skip(format, args);
	va_end(args);
	_exit(CASE_SKIPPED);
}

unsigned test_timeout_scale(void)
{
	const char *text = getenv("TEST_TIMEOUT_SCALE");
	unsigned long scale = text ? strtoul(text, NULL, 10) : 1;

	return scale < 1 ? 1 : scale > 1000 ? 1000 : (unsigned)scale;
}

int test_fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	if (!dir)
		return -errno;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 3; /* ".", ".." and the directory itself */
}

const char *test_path(const char *name)
{
	static char paths[8][1024];
	static unsigned next;
	char *path = paths[next++ % 8];
	int length = snprintf(path, sizeof(paths[0]), "%s/%s", runner_directory(), name);

	check_lt_int(length, (int)sizeof(paths[0]));
	return path;
}

uint64_t test_seed(void)
{
	const char *text = getenv("TEST_SEED");
	struct timespec now;

	if (!has_seed) {
		clock_gettime(CLOCK_REALTIME, &now);
		seed = text ? strtoull(text, NULL, 0)
			    : (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec;
		has_seed = true;
	}
	return seed;
}

static bool is_true(int order, const char *op)
{
	switch (op[0]) {
	case '=':
		return order == 0;
	case '!':
		return order != 0;
	case '<':
		return order < 0 || (op[1] && order == 0);
	default:
		return order > 0 || (op[1] && order == 0);
	}
}

void test_check_int(const char *file, int line, const char *a_text, const char *op,
		    const char *b_text, intmax_t a, intmax_t b)
{
	if (!is_true((a > b) - (a < b), op))
		test_fail(file, line, "%s %s %s does not hold: %" PRIdMAX " and %" PRIdMAX, a_text,
			  op, b_text, a, b);
}

void test_check_uint(const char *file, int line, const char *a_text, const char *op,
		     const char *b_text, uintmax_t a, uintmax_t b)
{
	if (!is_true((a > b) - (a < b), op))
		test_fail(file, line,
			  "%s %s %s does not hold: %" PRIuMAX " (%#" PRIxMAX ") and %" PRIuMAX
			  " (%#" PRIxMAX ")",
			  a_text, op, b_text, a, a, b, b);
}

void test_check_str(const char *file, int line, const char *text, const char *a, const char *op,
		    const char *b)
{
	bool holds;

	if (!strcmp(op, "contains"))
		holds = a && b && strstr(a, b);
	else if (!strcmp(op, "lacks"))
		holds = !a || !b || !strstr(a, b);
	else
		holds = is_true(a && b ? strcmp(a, b) : a != b, op);
	if (!holds)
		test_fail(file, line, "%s %s \"%s\" does not hold; it is\n\t\"%s\"", text, op,
			  b ? b : "(null)", a ? a : "(null)");
}

void test_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
		    size_t size)
{
	const unsigned char *x = a, *y = b;

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			test_fail(file, line, "%s does not hold: byte %zu of %zu is %#x and %#x",
				  text, i, size, x[i], y[i]);
}
