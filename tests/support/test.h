/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Test cases in C. A file defines cases and nothing else; main() is in the library:
 *
 *	#include "tests/support/test.h"
 *	#include "engine/pair.h"
 *
 *	TEST(pair_refuses_offer_past_segment)
 *	{
 *		check_eq_int(pair_offer(...), -EPROTO);
 *	}
 *
 * Each case runs in a process of its own, in its own process group, and passes when it returns. It fails when
 *   - an expectation does not hold: all macros print file:line and what they compared, check_* end the case there,
 *   - it ends in any other way: exit(), a signal, a sanitizer's report,
 *   - it takes longer than 30 s, or what TEST_TIMEOUT(name, seconds) says, times TEST_TIMEOUT_SCALE of the environment,
 *   - it leaves more or fewer open descriptors than it found, or a child process.
 * After the case all its descendants are killed, whatever the outcome, also those that left its process group: no test
 * leaves processes behind.
 *
 * TEST_FAILS(name) is for a case that must fail, in tests of this library.
 * test_skip("reason") ends a case that cannot run here; only a missing privilege or device is a reason (tests/SKIPS).
 *
 * Command line: no argument runs all cases, --list names them, NAME... runs these. Exit status: 0 all passed;
 * 77 nothing failed and a case was skipped, its reason is the last line; 1 something failed; 2 no case was run.
 */
#pragma once
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct test_case {
	const char *name;
	void (*run)(void);
	unsigned timeout_s; /* 0: the default */
	bool must_fail;
	struct test_case *next;
};

void test_register(struct test_case *test_case);

#define TEST_CASE_(case_name, seconds, fails)                                  \
	static void test_##case_name(void);                                    \
	__attribute__((constructor)) static void register_##case_name(void)    \
	{                                                                      \
		static struct test_case test_case = { .name = #case_name,      \
						      .run = test_##case_name, \
						      .timeout_s = (seconds),  \
						      .must_fail = (fails) };  \
		test_register(&test_case);                                     \
	}                                                                      \
	static void test_##case_name(void)

#define TEST(case_name) TEST_CASE_(case_name, 0, false)
#define TEST_TIMEOUT(case_name, seconds) TEST_CASE_(case_name, seconds, false)
#define TEST_FAILS(case_name) TEST_CASE_(case_name, 1, true)

/* End the calling process: the case, or a child whose status the case looks at. */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void test_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* How many times longer than usual things may take here: TEST_TIMEOUT_SCALE, at least 1. */
unsigned test_timeout_scale(void);

/* Number of open descriptors of this process. */
int test_fd_count(void);

/* A path below a directory that is made for this case and removed after it. The text lasts for seven further calls. */
const char *test_path(const char *name);

/* A replayable number: TEST_SEED of the environment or a new one, printed when the case fails. */
uint64_t test_seed(void);

void test_check_int(const char *file, int line, const char *a_text, const char *op,
		    const char *b_text, intmax_t a, intmax_t b);
void test_check_uint(const char *file, int line, const char *a_text, const char *op,
		     const char *b_text, uintmax_t a, uintmax_t b);
void test_check_str(const char *file, int line, const char *text, const char *a, const char *op,
		    const char *b);
void test_check_mem(const char *file, int line, const char *text, const void *a, const void *b,
		    size_t size);

#define check(condition)                                                               \
	do {                                                                           \
		if (!(condition))                                                      \
			test_fail(__FILE__, __LINE__, "%s does not hold", #condition); \
	} while (0)

/* The same with a text of one's own: check_msg(r == 0, "connect to %s: %s", path, strerror(-r)); */
#define check_msg(condition, ...)                                   \
	do {                                                        \
		if (!(condition))                                   \
			test_fail(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* Signed integers, errno results, enumerators. */
#define check_eq_int(a, b) test_check_int(__FILE__, __LINE__, #a, "==", #b, (a), (b))
#define check_ne_int(a, b) test_check_int(__FILE__, __LINE__, #a, "!=", #b, (a), (b))
#define check_lt_int(a, b) test_check_int(__FILE__, __LINE__, #a, "<", #b, (a), (b))
#define check_le_int(a, b) test_check_int(__FILE__, __LINE__, #a, "<=", #b, (a), (b))
#define check_gt_int(a, b) test_check_int(__FILE__, __LINE__, #a, ">", #b, (a), (b))
#define check_ge_int(a, b) test_check_int(__FILE__, __LINE__, #a, ">=", #b, (a), (b))

/* Sizes, offsets, sequence numbers: printed in decimal and hexadecimal. */
#define check_eq_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, "==", #b, (a), (b))
#define check_ne_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, "!=", #b, (a), (b))
#define check_lt_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, "<", #b, (a), (b))
#define check_le_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, "<=", #b, (a), (b))
#define check_gt_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, ">", #b, (a), (b))
#define check_ge_uint(a, b) test_check_uint(__FILE__, __LINE__, #a, ">=", #b, (a), (b))

#define check_ptr(pointer) \
	test_check_uint(__FILE__, __LINE__, #pointer, "!=", "NULL", (uintptr_t)(pointer), 0)
#define check_null(pointer) \
	test_check_uint(__FILE__, __LINE__, #pointer, "==", "NULL", (uintptr_t)(pointer), 0)
#define check_eq_ptr(a, b) \
	test_check_uint(__FILE__, __LINE__, #a, "==", #b, (uintptr_t)(a), (uintptr_t)(b))

/* Texts; NULL equals NULL only and contains nothing. */
#define check_eq_str(a, b) test_check_str(__FILE__, __LINE__, #a, (a), "==", (b))
#define check_ne_str(a, b) test_check_str(__FILE__, __LINE__, #a, (a), "!=", (b))
#define check_str_contains(a, part) test_check_str(__FILE__, __LINE__, #a, (a), "contains", (part))
#define check_str_lacks(a, part) test_check_str(__FILE__, __LINE__, #a, (a), "lacks", (part))

#define check_eq_mem(a, b, size) test_check_mem(__FILE__, __LINE__, #a " == " #b, (a), (b), (size))
