/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test: cmocka with what it lacks: the case's name in a failure, a check for leaked descriptors,
 * and "skipped" with a reason.
 *
 *	FOR_EACH_CASE (c, cases)
 *		CHECK_CASE(c, parse(c->in) == c->want);
 *	…
 *	TEST_MAIN(cmocka_unit_test(parses), cmocka_unit_test(refuses))
 */
#pragma once

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
/* clang-format on */

#include "base/err.h"
#include "base/sanitized.h"
#include "base/str.h"
#include "test_main.h"

#include <dirent.h>

/* The thread sanitizer makes each step ten times as long: what is tried one by one for its own sake
 * is tried less often there. */
#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN 1
#endif
#endif
#ifndef TEST_TSAN
#define TEST_TSAN 0
#endif

/* A record of a `cases` array has a `const char *name`. */
#define FOR_EACH_CASE(c, cases) \
	for (__typeof__(&(cases)[0]) c = (cases); c < (cases) + ARRAY_COUNT(cases); c++)

#define CHECK_CASE(c, x)                                         \
	do {                                                     \
		if (!(x)) {                                      \
			print_error("[%s] %s\n", (c)->name, #x); \
			_fail(__FILE__, __LINE__);               \
		}                                                \
	} while (0)

#define CHECK(x)                                   \
	do {                                       \
		if (!(x)) {                        \
			print_error("%s\n", #x);   \
			_fail(__FILE__, __LINE__); \
		}                                  \
	} while (0)

/* A status that must be OK; shows the sentence if it is not. */
#define CHECK_OK(call, e)                                                         \
	do {                                                                      \
		enum status check_s_ = (call);                                    \
		if (check_s_ != OK) {                                             \
			print_error("%s: %s: %s\n", #call, status_name(check_s_), \
				err_text((e), check_s_));                         \
			_fail(__FILE__, __LINE__);                                \
		}                                                                 \
	} while (0)

#define CHECK_STR(got, want)                                                                      \
	do {                                                                                      \
		struct str check_g_ = (got), check_w_ = str_of(want);                             \
		if (!str_eq(check_g_, check_w_)) {                                                \
			print_error("%s: got \"%.*s\", want \"%.*s\"\n", #got, STR_ARG(check_g_), \
				STR_ARG(check_w_));                                               \
			_fail(__FILE__, __LINE__);                                                \
		}                                                                                 \
	} while (0)

/* The rest of this test cannot run here, and why. */
#define SKIP(...)                                       \
	do {                                            \
		print_message("skipped: " __VA_ARGS__); \
		print_message("\n");                    \
		skip();                                 \
	} while (0)

static inline int test_open_fds(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

/* TEST_MAIN for a program whose library starts this very program again (debuginfo_child_main):
 * `hook(argc, argv)` is the exit status, or -1 to go on. */
#define TEST_MAIN_WITH(hook, ...) TEST_MAIN_BODY_(TEST_PROGRAM_WITH(hook), __VA_ARGS__)

#define TEST_MAIN(...) TEST_MAIN_BODY_(TEST_PROGRAM(), __VA_ARGS__)

#define TEST_MAIN_BODY_(head, ...)                                                           \
	head                                                                                 \
	{                                                                                    \
		const struct CMUnitTest tests[] = { __VA_ARGS__ };                           \
		int before = test_open_fds();                                                \
		int failed = cmocka_run_group_tests(tests, NULL, NULL);                      \
		int after = test_open_fds();                                                 \
		if (after != before)                                                         \
			fprintf(stderr, "descriptors leaked: %d before, %d after\n", before, \
				after);                                                      \
		return failed || after != before;                                            \
	}
