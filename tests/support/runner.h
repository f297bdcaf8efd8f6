/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test.c and runner.c share. Not for test files.
 */
#pragma once
#include <stdarg.h>

/* How the process of a case ends; a case that merely calls exit() ends with something else. */
enum {
	CASE_PASSED = 40,
	CASE_FAILED = 41,
	CASE_SKIPPED = 42,
};

/* In the process of a case: the runner gets the reason. */
void runner_report_skip(const char *format, va_list args);

/* The directory of the running case, made at the first call, removed by the runner. */
const char *runner_directory(void);
