/* SPDX-License-Identifier: Apache-2.0 */
/* Files for others: which is the executable, which the debug information, and their sections. */
#include "own.h"

#include "base/clock.h"

static uint64_t bytes_of(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);
	CHECK(end > 0);
	close(fd);
	return (uint64_t)end;
}

static void gives_files_away(void **state)
{
	(void)state;
	struct err e = { 0 };
	int fd = -1;
	struct str id = str_of(t.build_id);
	CHECK(symbolizer_file(t.s, id, DEBUGINFO_EXECUTABLE, false, &fd, &e) == E_NOTFOUND);
	CHECK(symbolizer_file(t.s, STR("../x"), DEBUGINFO_EXECUTABLE, false, &fd, &e) == E_INVALID);
	/* This program has both in one file; its place is known once it was named. */
	(void)add_location(
		add_mapping(t.exe, t.build_id, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK_OK(symbolizer_file(t.s, id, DEBUGINFO_EXECUTABLE, false, &fd, &e), &e);
	uint64_t whole = bytes_of(fd);
	CHECK_OK(symbolizer_file(t.s, id, DEBUGINFO_DEBUG, false, &fd, &e), &e);
	CHECK(bytes_of(fd) == whole);
	/* The function around an address in it. */
	uint64_t begin = 0, end = 0, at = outer_function(1) - base();
	CHECK_OK(symbolizer_function(t.s, id, at, &begin, &end, &e), &e);
	CHECK(begin < at && at < end && end - begin < 4096);
	CHECK(symbolizer_function(t.s, id, 1, &begin, &end, &e) == E_NOTFOUND);
	CHECK(symbolizer_function(t.s, STR("0011"), at, &begin, &end, &e) == E_NOTFOUND);
}

static void names_sources(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct str id = str_of(t.build_id);
	int64_t until = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;
	uint32_t at = add_location(
		add_mapping(t.exe, t.build_id, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	const struct profile_line *line = &t.p.lines.v[t.p.locations.v[at].line_first];
	struct str file = profile_str(&t.p, t.p.functions.v[line->function].filename);
	CHECK(str_ends(file, STR("/own.h")));
	CHECK_OK(symbolizer_names_source(t.s, id, file, until, &e), &e);
	CHECK(symbolizer_names_source(t.s, id, str_sub(file, 0, file.len - 1), until, &e) ==
		E_NOTFOUND);
	CHECK(symbolizer_names_source(t.s, STR("0011"), file, until, &e) == E_NOTFOUND);
}

/* A program that not every user may read, or in a folder that not every user may enter. */
static void keeps_private_files(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned folder, file;
		enum status status;
	} cases[] = {
		{ "all", 0755, 0755, OK },
		{ "file", 0755, 0700, E_NOTFOUND },
		{ "folder", 0700, 0755, E_NOTFOUND },
	};
	struct err e = { 0 };
	char path[256];
	int fd = -1;
	snprintf(path, sizeof(path), "%s/private/program", t.dir);
	shell("chmod 755 %s && mkdir %s/private && cp %s %s", t.dir, t.dir, t.exe, path);
	(void)add_location(
		add_mapping(path, t.build_id, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	FOR_EACH_CASE (c, cases) {
		struct str id = str_of(t.build_id);
		shell("chmod %o %s/private && chmod %o %s", c->folder, t.dir, c->file, path);
		CHECK_CASE(c,
			symbolizer_file(t.s, id, DEBUGINFO_EXECUTABLE, true, &fd, &e) == c->status);
		if (c->status == OK)
			close(fd);
		CHECK_CASE(c, symbolizer_program(t.s, id, str_of(path), &fd, &e) == c->status);
		CHECK_CASE(c,
			symbolizer_program(t.s, STR("0011"), str_of(path), &fd, &e) == E_NOTFOUND);
		if (c->status == OK)
			close(fd);
		CHECK_OK(symbolizer_file(t.s, id, DEBUGINFO_EXECUTABLE, false, &fd, &e), &e);
		close(fd);
	}
}

static void tells_debug_files_from_executables(void **state)
{
	(void)state;
	struct err e = { 0 };
	int fd = -1;
	char debug_dirs[128];
	CLEANUP(buf_deinit) struct buf out;
	struct str id = str_of(t.build_id);
	buf_init(&out, 64 << 20);
	shell("mkdir -p %s/debug/.build-id/%.2s && objcopy --only-keep-debug %s "
	      "%s/debug/.build-id/%.2s/%s.debug 2>/dev/null",
		t.dir, t.build_id, t.exe, t.dir, t.build_id, t.build_id + 2);
	snprintf(debug_dirs, sizeof(debug_dirs), "%s/debug", t.dir);
	t.config.debug_dirs = debug_dirs;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK(symbolizer_file(t.s, id, DEBUGINFO_EXECUTABLE, false, &fd, &e) == E_NOTFOUND);
	CHECK_OK(symbolizer_file(t.s, id, DEBUGINFO_DEBUG, false, &fd, &e), &e);
	CHECK_OK(symbolizer_section(fd, STR(".debug_info"), &out, &e), &e);
	CHECK(out.len > 0);
	CHECK(symbolizer_section(fd, STR(".text"), &out, &e) == E_NOTFOUND); /* no bytes of it */
	CHECK(symbolizer_section(fd, STR(".nothing"), &out, &e) == E_NOTFOUND);
	CLEANUP(buf_deinit) struct buf small;
	buf_init(&small, 4);
	CHECK(symbolizer_section(fd, STR(".debug_info"), &small, &e) == E_LIMIT);
	close(fd);
}

TEST_MAIN_WITH(debuginfo_child_main,
	cmocka_unit_test_setup_teardown(gives_files_away, set_up, tear_down),
	cmocka_unit_test_setup_teardown(names_sources, set_up, tear_down),
	cmocka_unit_test_setup_teardown(keeps_private_files, set_up, tear_down),
	cmocka_unit_test_setup_teardown(tells_debug_files_from_executables, set_up, tear_down))
