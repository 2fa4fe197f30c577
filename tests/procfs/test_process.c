/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <sys/prctl.h>
#include <unistd.h>

#define REST "1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 9 10"

/* clang-format off */
static const struct { const char *name; const char *text; bool ok; const char *comm; } stats[] = {
	{ "plain", "7 (bash) S 5 7 " REST, true, "bash" },
	{ "parentheses and blanks", "7 (a) b (c)) S 5 7 " REST, true, "a) b (c)" },
	{ "newline in the name", "7 (a\nb) S 5 7 " REST, true, "a\nb" },
	{ "empty name", "7 () S 5 7 " REST, true, "" },
	{ "no parentheses", "7 bash S 5 7 " REST, false, "" },
	{ "ends after the name", "7 (bash)", false, "" },
	{ "too few fields", "7 (bash) S 5 7 1 0", false, "" },
	{ "start is no number", "7 (bash) S 5 7 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x 9", false, "" },
	{ "empty", "", false, "" },
};
/* clang-format on */

static void parses_stat(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, stats) {
		struct procfs_stat s = { .ppid = -7 };
		enum status got = procfs_stat_parse(str_of(c->text), &s, NULL);
		CHECK_CASE(c, got == (c->ok ? OK : E_INVALID));
		CHECK_CASE(c, s.ppid == (c->ok ? 5 : -7));
		CHECK_CASE(c, !c->ok || (s.start_ticks == 777 && s.state == 'S'));
		CHECK_CASE(c, strcmp(s.comm, c->comm) == 0);
	}
}

static void reads_itself(void **state)
{
	(void)state;
	struct err e;
	int pid = (int)getpid();
	prctl(PR_SET_NAME, "a (name)");
	struct procfs_stat s;
	CHECK_OK(procfs_stat(pid, &s, &e), &e);
	CHECK(s.ppid == (int)getppid() && s.start_ticks > 0);
	CHECK_STR(str_of(s.comm), "a (name)");
	char comm[64];
	CHECK_OK(procfs_comm(pid, pid, comm, &e), &e);
	CHECK_STR(str_of(comm), "a (name)");
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4096);
	struct str exe;
	CHECK_OK(procfs_exe(pid, &a, &exe, &e), &e);
	CHECK_STR(exe, "test_procfs_process");
	CHECK(procfs_stat(1 << 30, &s, &e) == E_NOTFOUND);
	CHECK(procfs_comm(pid, 1 << 30, comm, &e) == E_NOTFOUND);
	CHECK(procfs_exe(1 << 30, &a, &exe, &e) == E_NOTFOUND);
}

static bool find_self(void *ctx, int pid)
{
	*(bool *)ctx |= pid == (int)getpid();
	return true;
}

static void lists_processes(void **state)
{
	(void)state;
	bool found = false;
	struct err e;
	CHECK_OK(procfs_pids(find_self, &found, &e), &e);
	CHECK(found);
}

static void reads_the_beginning(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct str text, part;
	struct err e;
	arena_init(&a, 1 << 20);
	CHECK_OK(procfs_arguments((int)getpid(), 4096, &a, &text, &e), &e);
	CHECK(str_ends(str_sub(text, 0, text.len - 1), STR("test_procfs_process")));
	CHECK(text.p[text.len - 1] == 0);
	CHECK_OK(procfs_arguments((int)getpid(), 3, &a, &part, &e), &e);
	CHECK(part.len == 3 && str_starts(text, part));
	CHECK_OK(procfs_environment((int)getpid(), 4096, &a, &text, &e), &e);
	CHECK(procfs_arguments(1 << 30, 4096, &a, &text, &e) == E_NOTFOUND);
}

TEST_MAIN(cmocka_unit_test(reads_the_beginning), cmocka_unit_test(parses_stat),
	cmocka_unit_test(reads_itself), cmocka_unit_test(lists_processes))
