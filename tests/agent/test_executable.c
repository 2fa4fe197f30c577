/* SPDX-License-Identifier: Apache-2.0 */
/* The program under test is this one, and what objcopy makes of it. */
#include "agent/process/executable.h"

#include "procfs/procfs.h"
#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/firn-test-executable-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static PRINTF(1, 2) void run(const char *format, ...)
{
	char command[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	int rc = system(command);
	CHECK(WIFEXITED(rc) && WEXITSTATUS(rc) == 0);
}

static int teardown(void **state)
{
	(void)state;
	run("rm -r %s", dir);
	return 0;
}

static struct executable read_file(const char *name)
{
	char path[128];
	struct objfile *obj;
	struct executable x;
	struct err e;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK_OK(objfile_open(path, &obj, &e), &e);
	CHECK_OK(executable_read(obj, &x, &e), &e);
	objfile_close(obj);
	return x;
}

/* Until it is answered. */
static enum executables_answer find(
	struct executables *all, int pid, uint64_t start_ticks, struct executable *out)
{
	for (int i = 0; i < 60000; i++) {
		enum executables_answer a = executables_find(all, pid, start_ticks, out);
		if (a == EXECUTABLES_KNOWN || (a == EXECUTABLES_NONE && i > 0))
			return a;
		usleep(1000);
	}
	return EXECUTABLES_ASKED;
}

static void reads_this_program(void **state)
{
	(void)state;
	struct executables *all;
	struct executable x, again;
	struct err e;
	struct procfs_stat stat_;
	CHECK_OK(procfs_stat((int)getpid(), &stat_, &e), &e);
	CHECK_OK(executables_new(&all, &e), &e);
	CHECK(find(all, (int)getpid(), stat_.start_ticks, &x) == EXECUTABLES_KNOWN);
	CHECK(!x.is_static && !x.is_stripped);
	CHECK(strncmp(x.compiler, "GCC 1", 5) == 0 || strncmp(x.compiler, "Clang 1", 7) == 0);
	uint64_t generation = executables_generation(all);
	CHECK(executables_find(all, (int)getpid(), stat_.start_ticks, &again) == EXECUTABLES_KNOWN);
	CHECK(memcmp(&x, &again, sizeof(x)) == 0);
	CHECK(executables_generation(all) == generation); /* not read again */
	executables_forget(all, (int)getpid(), stat_.start_ticks);
	CHECK(find(all, (int)getpid(), stat_.start_ticks, &again) == EXECUTABLES_KNOWN);
	CHECK(executables_generation(all) == generation + 1);
	/* Another process had this pid, and none has that. */
	CHECK(find(all, (int)getpid(), stat_.start_ticks - 1, &x) == EXECUTABLES_NONE);
	CHECK(find(all, 1 << 30, 1, &x) == EXECUTABLES_NONE);
	for (int i = 0; i < 3 * EXECUTABLES_ASKED_MAX; i++) /* more than are remembered */
		(void)executables_find(all, (1 << 30) + i, 1, &x);
	/* Refused while the thread has so much to do, and answered then. */
	for (int i = 0;
		i < 1000 && find(all, (int)getpid(), stat_.start_ticks, &x) != EXECUTABLES_KNOWN;
		i++)
		usleep(1000);
	CHECK(find(all, (int)getpid(), stat_.start_ticks, &x) == EXECUTABLES_KNOWN);
	executables_free(all);
	/* The id, by other means. */
	char want[33] = "";
	struct stat st;
	char size[64];
	CHECK(stat("/proc/self/exe", &st) == 0);
	for (int i = 0; i < 8; i++)
		snprintf(size + 4 * i, 5, "\\%03o", (unsigned)(st.st_size >> (56 - 8 * i)) & 255);
	run("f=/proc/%d/exe; (head -c 4096 $f; tail -c 4096 $f; printf '%s') | sha256sum | "
	    "head -c 32 > %s/id",
		(int)getpid(), size, dir);
	char path[128];
	snprintf(path, sizeof(path), "%s/id", dir);
	FILE *f = fopen(path, "re");
	CHECK(f && fread(want, 1, 32, f) == 32);
	fclose(f);
	CHECK_STR(str_of(again.file_id), want);
}

static void tells_compilers_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *comment; /* printf's */
		const char *want;
	} cases[] = {
		{ "gcc", "GCC: (Debian 12.2.0-14+deb12u1) 12.2.0\\0", "GCC 12.2.0" },
		{ "the highest", "GCC: (GNU) 9.4.0\\0GCC: (Ubuntu 1) 10.2.1\\0", "GCC 10.2.1" },
		{ "clang and crt's gcc",
			"GCC: (Debian 12.2.0-14) 12.2.0\\0Debian clang version 14.0.6\\0",
			"Clang 14.0.6" },
		{ "rust", "GCC: (D) 12.2.0\\0rustc version 1.75.0 (82e1608df 2023-12-21)\\0",
			"Rust 1.75.0" },
		{ "ghc", "GCC: (D) 12.2.0\\0GHC 9.0.2\\0", "GHC 9.0.2" },
		{ "nobody", "Linker: LLD 14.0.6\\0", "unknown" },
		{ "no version", "GCC: (\\0clang version \\0", "unknown" },
		{ "much", "GCC: (x) 111111111111111111111111111111111111111111111111111111\\0",
			"GCC 1111111111111111111111111111111111111111" },
	};
	FOR_EACH_CASE (c, cases) {
		run("printf '%s' > %s/c && objcopy --remove-section .comment --add-section "
		    ".comment=%s/c /proc/%d/exe %s/x",
			c->comment, dir, dir, (int)getpid(), dir);
		struct executable x = read_file("x");
		CHECK_CASE(c, strcmp(x.compiler, c->want) == 0);
	}
}

static void tells_how_it_was_linked(void **state)
{
	(void)state;
	run("strip -o %s/stripped /proc/%d/exe", dir, (int)getpid());
	CHECK(read_file("stripped").is_stripped);
	/* Go's own build id, and its version. */
	run("printf '\\4\\0\\0\\0\\7\\0\\0\\0\\4\\0\\0\\0Go\\0\\0abc/def\\0' > %s/n && "
	    "printf '\\377 Go buildinf:\\10\\2' > %s/g && head -c 16 /dev/zero >> %s/g && "
	    "printf '\\10go1.21.5' >> %s/g && objcopy --remove-section .note.gnu.build-id "
	    "--add-section .note.go.buildid=%s/n --add-section .go.buildinfo=%s/g /proc/%d/exe "
	    "%s/go",
		dir, dir, dir, dir, dir, dir, (int)getpid(), dir);
	struct executable x = read_file("go");
	CHECK_STR(str_of(x.compiler), "Go 1.21.5");
	if (access("/sbin/ldconfig", R_OK) == 0) {
		run("cp /sbin/ldconfig %s/static", dir);
		CHECK(read_file("static").is_static);
	}
}

TEST_MAIN(cmocka_unit_test_setup_teardown(reads_this_program, setup, teardown),
	cmocka_unit_test_setup_teardown(tells_compilers_apart, setup, teardown),
	cmocka_unit_test_setup_teardown(tells_how_it_was_linked, setup, teardown))
