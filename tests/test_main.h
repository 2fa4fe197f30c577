/* SPDX-License-Identifier: Apache-2.0 */
/* test_main: one program for the tests of many files. Each file adds itself before main(). */
#pragma once

struct test_file {
	const char *path;
	int (*run)(void);
	/* For a library that starts this very program again: the exit status, or -1 to go on; or
	 * NULL. */
	int (*hook)(int argc, char **argv);
	struct test_file *next;
};
void test_add(struct test_file *file);

/* What a file has in the place of main(). */
#define TEST_PROGRAM() TEST_PROGRAM_WITH((void *)0)
#define TEST_PROGRAM_WITH(its_hook)                                          \
	static int test_run_(void);                                          \
	__attribute__((constructor)) static void test_add_this_(void)        \
	{                                                                    \
		static struct test_file this_file = {                        \
			.path = __FILE__, .run = test_run_, .hook = its_hook \
		};                                                           \
		test_add(&this_file);                                        \
	}                                                                    \
	static int test_run_(void)
