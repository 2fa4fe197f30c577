/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/status/problems.h"
#include "test.h"

static void counts_and_sorts(void **state)
{
	(void)state;
	static struct problem got[PROBLEMS_MAX];
	struct problems *p = problems_new();
	CHECK(p && problems_list(p, PROBLEM_FILE, got) == 0);
	problems_add(p, PROBLEM_FILE, "a", "gone");
	problems_add(p, PROBLEM_FILE, "b", "gone");
	problems_add(p, PROBLEM_FILE, "b", "gone");
	problems_add(p, PROBLEM_FILE, "b", "denied");
	problems_add(p, PROBLEM_STACK, "b", "gone");
	problems_add(NULL, PROBLEM_STACK, "b", "gone");
	CHECK(problems_list(p, PROBLEM_FILE, got) == 3);
	CHECK(strcmp(got[0].what, "b") == 0 && strcmp(got[0].why, "gone") == 0);
	CHECK(got[0].count == 2 && got[1].count == 1);
	CHECK(problems_list(p, PROBLEM_STACK, got) == 1 &&
		problems_list(p, PROBLEM_TABLE, got) == 0);
	problems_free(p);
}

static void keeps_the_latest(void **state)
{
	(void)state;
	static struct problem got[PROBLEMS_MAX];
	struct problems *p = problems_new();
	CHECK(p);
	char what[1000];
	for (int i = 0; i < 3 * PROBLEMS_MAX; i++) {
		snprintf(what, sizeof(what), "file %d", i);
		problems_add(p, PROBLEM_FILE, what, "gone");
	}
	CHECK(problems_list(p, PROBLEM_FILE, got) == PROBLEMS_MAX);
	for (int i = 0; i < PROBLEMS_MAX; i++)
		CHECK(atoi(got[i].what + 5) >= 2 * PROBLEMS_MAX);
	/* Texts that do not fit are one if their beginnings are. */
	memset(what, 'x', sizeof(what) - 1);
	what[sizeof(what) - 1] = 0;
	problems_add(p, PROBLEM_TABLE, what, what);
	problems_add(p, PROBLEM_TABLE, what, what);
	CHECK(problems_list(p, PROBLEM_TABLE, got) == 1 && got[0].count == 2);
	problems_free(p);
}

static void hides_folders(void **state)
{
	(void)state;
	static struct problem got[PROBLEMS_MAX];
	static const struct {
		const char *name, *what, *why, *want_what, *want_why;
	} cases[] = {
		{ "a path", "/home/a b/secret/x", "/home/a b/secret/x: no ELF header", "x",
			"a x: no ELF header" },
		{ "a link", "a file of process 7 (inode 8)",
			"/proc/7/map_files/1-2: timed out: its file system does not answer",
			"a file of process 7 (inode 8)",
			"/proc/7/map_files/1-2: timed out: its file system does not answer" },
		{ "in a root", "a file of process 7 (inode 8)",
			"open /proc/7/root/home/x/y.so: Permission denied",
			"a file of process 7 (inode 8)", "open y.so: Permission denied" },
		{ "a build id", "/opt/x (build id 0123)", "", "x (build id 0123)", "" },
		{ "nothing", "", "", "", "" },
	};
	FOR_EACH_CASE (c, cases) {
		struct problems *p = problems_new();
		CHECK(p);
		problems_add(p, PROBLEM_FILE, c->what, c->why);
		CHECK_CASE(c, problems_list(p, PROBLEM_FILE, got) == 1);
		CHECK_STR(str_of(got[0].what), c->want_what);
		CHECK_STR(str_of(got[0].why), c->want_why);
		problems_free(p);
	}
}

TEST_MAIN(cmocka_unit_test(hides_folders), cmocka_unit_test(counts_and_sorts),
	cmocka_unit_test(keeps_the_latest))
