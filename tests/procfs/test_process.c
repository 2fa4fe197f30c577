/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

/* clang-format off */
static const struct { const char *name; const char *text; int want; } statuses[] = {
	{ "on the host", "Name:\ta\nPid:\t7\nNSpid:\t7\nNSpgid:\t8\n", 7 },
	{ "in two namespaces", "NSpid:\t900\t30\t1\n", 1 },
	{ "a name like it", "Name:\tNSpid:\t9\nNSpid:\t7\n", 7 },
	{ "none", "Name:\ta\n", 0 },
	{ "no number", "NSpid:\tx\n", 0 },
	{ "nothing", "NSpid:\n", 0 },
	{ "zero", "NSpid:\t0\n", 0 },
	{ "too large", "NSpid:\t4294967296\n", 0 },
};
/* clang-format on */

static void knows_the_pid_within(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, statuses) {
		int pid = 0;
		enum status s = procfs_inner_pid_parse(str_of(c->text), &pid, NULL);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		CHECK_CASE(c, pid == c->want);
	}
	struct err e;
	int pid;
	CHECK_OK(procfs_inner_pid((int)getpid(), &pid, &e), &e);
	CHECK(pid == (int)getpid());
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
	CHECK_STR(exe, program_invocation_short_name);
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
	struct str end = str_sub(text, text.len - strlen("process") - 1, SIZE_MAX);
	CHECK(str_eq(end, str_make("process", sizeof("process"))));
	CHECK(text.p[text.len - 1] == 0);
	CHECK_OK(procfs_arguments((int)getpid(), 3, &a, &part, &e), &e);
	CHECK(part.len == 3 && str_starts(text, part));
	CHECK(procfs_arguments(1 << 30, 4096, &a, &text, &e) == E_NOTFOUND);
}

static bool is_wanted(const void *ctx, struct str name)
{
	(void)ctx;
	return str_eq(name, STR("FIRST")) || str_eq(name, STR("LAST")) || str_eq(name, STR("LONG"));
}

/* Runs a program with this environment. Its process id; it ends with `hold`'s other end. */
static pid_t run_with(char *const environment[], int hold[2])
{
	CHECK(pipe(hold) == 0);
	pid_t pid = fork();
	if (pid == 0) {
		dup2(hold[0], 0);
		close(hold[0]);
		close(hold[1]);
		char cat[] = "cat", *const arguments[] = { cat, NULL };
		execve("/bin/cat", arguments, environment);
		_exit(1);
	}
	CHECK(pid > 0);
	close(hold[0]);
	char name[64] = "";
	struct err e;
	while (strcmp(name, "cat") != 0)
		CHECK_OK(procfs_comm((int)pid, (int)pid, name, &e), &e);
	return pid;
}

static char *long_variable(const char *name, size_t len)
{
	char *text = malloc(len + 1);
	CHECK(text);
	memset(text, 'x', len);
	text[len] = 0;
	memcpy(text, name, strlen(name));
	return text;
}

/* Whatever stands before, wherever the pieces are cut. */
static void finds_variables_behind_many_bytes(void **state)
{
	(void)state;
	static const size_t lengths[] = { 10, 16370, 16380, 16384, 16385, 100000, 130000 };
	for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
		CLEANUP(arena_deinit) struct arena a;
		struct str text;
		struct err e;
		int hold[2];
		arena_init(&a, 1 << 20);
		char *filler = long_variable("FILLER=", lengths[i]);
		char *wanted = long_variable("LONG=", lengths[i]);
		char first[] = "FIRST=1", no[] = "XLAST=no", plain[] = "LAST", last[] = "LAST=off";
		char *const environment[] = { first, filler, no, filler, filler, filler, wanted,
			plain, last, NULL };
		pid_t pid = run_with(environment, hold);
		do { /* it has its name before its environment */
			CHECK_OK(procfs_environment((int)pid, is_wanted, NULL, &a, &text, &e), &e);
		} while (text.len == 0);
		CHECK(text.len == 8 + lengths[i] + 1 + 9);
		CHECK(memcmp(text.p, "FIRST=1", 8) == 0);
		CHECK(memcmp(text.p + 8, wanted, lengths[i] + 1) == 0);
		CHECK(memcmp(text.p + text.len - 9, "LAST=off", 9) == 0);
		close(hold[1]);
		CHECK(waitpid(pid, NULL, 0) == pid);
		free(filler);
		free(wanted);
	}
}

static void reads_the_user(void **state)
{
	(void)state;
	struct err e;
	uint32_t user = 7;
	CHECK(procfs_user_parse(STR("Name:\tUid:\nUid:\t1000\t0\t0\t0\n"), &user, NULL) == OK);
	assert_int_equal(user, 1000);
	CHECK(procfs_user_parse(STR("Uid:\t4294967296\t0\n"), &user, NULL) == E_INVALID);
	CHECK(procfs_user_parse(STR("Uid:\tx\t0\n"), &user, NULL) == E_INVALID);
	CHECK(procfs_user_parse(STR("Name:\tx\n"), &user, NULL) == E_INVALID);
	assert_int_equal(user, 1000);
	CHECK_OK(procfs_user((int)getpid(), &user, &e), &e);
	assert_int_equal(user, getuid());
}

TEST_MAIN(cmocka_unit_test(reads_the_user), cmocka_unit_test(reads_the_beginning),
	cmocka_unit_test(finds_variables_behind_many_bytes), cmocka_unit_test(parses_stat),
	cmocka_unit_test(knows_the_pid_within), cmocka_unit_test(reads_itself),
	cmocka_unit_test(lists_processes))
