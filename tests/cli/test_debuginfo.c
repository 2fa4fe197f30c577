/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no server: build ids, extraction, archives of sources, of programs compiled here. */
#include "capture.h"
#include "codec/codec.h"
#include "debuginfo/debuginfo.h"

#include <stdlib.h>

static char dir[] = "/tmp/firn-test-cli-debuginfo-XXXXXX";

static int begin(void **state)
{
	(void)state;
	return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int end(void **state)
{
	char command[128];
	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return chdir("/") == 0 ? system(command) : -1; /* NOLINT */
}

static bool shell(const char *command)
{
	return system(command) == 0; /* NOLINT */
}

static void compile(void)
{
	CHECK(shell("mkdir -p src && echo 'int helper(int x) { return x + 2; }' > src/helper.h && "
		    "printf '#include \"helper.h\"\\nint main(int n, char **v) { (void)v; return "
		    "helper(n); }\\n' > src/main.c && cp src/main.c gone.c && "
		    "${CC:-cc} -g -Isrc -Wl,--build-id -o app src/main.c && "
		    "${CC:-cc} -g -Isrc -Wl,--build-id=none -o nameless src/main.c && "
		    "${CC:-cc} -g -Isrc -Wl,--build-id -o lost gone.c && rm gone.c && "
		    "objcopy --strip-debug app bare"));
}

static void prints_build_ids(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_debuginfo, "debuginfo buildid app");
	assert_int_equal(c.code, CLI_OK);
	CHECK(strlen(c.out) == 41 && strspn(c.out, "0123456789abcdef") == 40);
	char want[64];
	FILE *f = popen("readelf -n app | sed -n 's/.*Build ID: //p'", "re"); /* NOLINT */
	CHECK(f && fgets(want, sizeof(want), f));
	pclose(f);
	assert_string_equal(c.out, want);
	capture_run(&c, cli_debuginfo, "debuginfo buildid nameless");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "nameless: it has no build id");
	capture_run(&c, cli_debuginfo, "debuginfo buildid src/main.c");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "no ELF magic at +0");
	capture_run(&c, cli_debuginfo, "debuginfo buildid nowhere");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "nowhere");
}

static void extracts(void **state)
{
	(void)state;
	struct capture c;
	CHECK(shell("mkdir keep && touch keep/mine"));
	capture_run(&c, cli_debuginfo, "debuginfo extract --output-dir keep app src/main.c bare");
	assert_int_equal(c.code, CLI_FAILED); /* of one of the three */
	CHECK_HAS(c.err, "src/main.c: no ELF magic");
	CHECK(shell("test -e keep/mine && test $(ls keep | wc -l) = 2 && "
		    "readelf -n keep/*.debuginfo | grep -q 'Build ID'"));
	capture_run(&c, cli_debuginfo, "debuginfo extract app");
	assert_int_equal(c.code, CLI_OK);
	CHECK(shell("readelf -SW out/*.debuginfo | grep -q debug_info"));
	capture_run(&c, cli_debuginfo, "debuginfo extract --output-dir /dev/null/x app");
	assert_int_equal(c.code, CLI_FAILED);
}

static bool packed(const char *archive, const char *path, const char *part)
{
	struct buf text;
	int fd = open(archive, O_RDONLY | O_CLOEXEC);
	buf_init(&text, 1 << 20);
	CHECK(fd >= 0);
	bool has = debuginfo_archive_find(fd, str_of(path), NULL, NULL, &text, NULL) == OK;
	buf_u8(&text, 0);
	has = has && strstr((const char *)text.data, part);
	buf_deinit(&text);
	close(fd);
	return has;
}

/* Under the names that frames have: relative to the folder that the compiler ran in. */
static void gathers_sources(void **state)
{
	(void)state;
	struct capture c;
	char path[256];
	capture_run(&c, cli_debuginfo, "debuginfo source app");
	assert_int_equal(c.code, CLI_OK);
	snprintf(path, sizeof(path), "%s/src/main.c", dir);
	CHECK(packed("source.tar.zstd", path, "helper(n)"));
	snprintf(path, sizeof(path), "%s/src/helper.h", dir);
	CHECK(packed("source.tar.zstd", path, "x + 2"));
	capture_run(&c, cli_debuginfo, "debuginfo source lost some.tar.zstd");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.err, "left out: ");
	CHECK_HAS(c.err, "gone.c");
	CHECK(packed("some.tar.zstd", path, "x + 2"));
	CHECK(shell("mkfifo gone.c")); /* a pipe under the name of a source is not waited for */
	capture_run(&c, cli_debuginfo, "debuginfo source lost some.tar.zstd");
	CHECK_HAS(c.err, "left out: ");
	CHECK(shell("rm gone.c"));
	capture_run(&c, cli_debuginfo, "debuginfo source bare none.tar.zstd");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "bare: it has no debug information (DWARF)");
	CHECK(access("none.tar.zstd", F_OK) != 0);
	capture_run(&c, cli_debuginfo, "debuginfo source src/main.c");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "src/main.c: ");
	capture_run(&c, cli_debuginfo, "debuginfo source app /dev/null/x");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/dev/null/x");
	/* The table between is a file in TMPDIR too. */
	const char *was = getenv("TMPDIR");
	char *old = was ? strdup(was) : NULL;
	setenv("TMPDIR", "/nonexistent", 1);
	capture_run(&c, cli_debuginfo, "debuginfo source app none.tar.zstd");
	if (old)
		setenv("TMPDIR", old, 1);
	else
		unsetenv("TMPDIR");
	free(old);
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/nonexistent/firn-debuginfo-");
}

static void helps(void **state)
{
	(void)state;
	static const char *const lines[] = { "debuginfo -h", "debuginfo upload -h",
		"debuginfo extract -h", "debuginfo buildid -h", "debuginfo source -h" };
	struct capture c;
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		capture_run(&c, cli_debuginfo, lines[i]);
		assert_int_equal(c.code, CLI_OK);
		check_width(c.out);
	}
	capture_run(&c, cli_debuginfo, "debuginfo strip x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "not 'strip'");
	capture_run(&c, cli_debuginfo, "debuginfo");
	assert_int_equal(c.code, CLI_USAGE);
}

static void compiled(void **state)
{
	(void)state;
	compile();
}

TEST_PROGRAM_WITH(debuginfo_child_main)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(compiled),
		cmocka_unit_test(prints_build_ids), cmocka_unit_test(extracts),
		cmocka_unit_test(gathers_sources), cmocka_unit_test(helps) };
	return cmocka_run_group_tests(tests, begin, end);
}
