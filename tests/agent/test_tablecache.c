/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "agent/files/tablecache.h"
#include "gen/elf.h"
#include "os/os.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/firn-test-tablecache-XXXXXX";

/* A table of `functions` functions. */
static struct unwind_table *make(uint32_t functions)
{
	static const uint8_t rows[] = { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 };
	static uint8_t code[1 << 16];
	struct gen_elf g;
	struct gen_cfi c;
	gen_elf_init(&g);
	gen_cfi_init(&c, 0x40000);
	gen_load(&g,
		gen_section(&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
			sizeof(code)),
		PF_R | PF_X);
	size_t cie = gen_cie(&c);
	for (uint32_t i = 0; i < functions; i++)
		gen_fde(&c, cie, 0x1000 + i * 16, 16, rows, sizeof(rows));
	gen_section(&g, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x40000, c.bytes.data, c.bytes.len);
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &t, &e), &e);
	objfile_close(obj);
	buf_deinit(&c.bytes);
	gen_elf_deinit(&g);
	return t;
}

static void path_of(const char *name, char out[256])
{
	snprintf(out, 256, "%s/%s", folder, name);
}

static struct tablecache *open_it(uint64_t bytes_max)
{
	struct tablecache *c = NULL;
	struct err e = { 0 };
	CHECK_OK(tablecache_open(folder, bytes_max, &c, &e), &e);
	return c;
}

static void loads_what_it_stored(void **state)
{
	(void)state;
	struct tablecache *c = open_it(1 << 20);
	struct unwind_table *t = make(100), *back = NULL;
	struct err e = { 0 };
	CHECK(tablecache_load(c, "abc-x1", &back, &e) == E_NOTFOUND);
	CHECK_OK(tablecache_store(c, "abc-x1", t, &e), &e);
	tablecache_close(c);
	c = open_it(1 << 20); /* another run */
	CHECK(tablecache_bytes(c) > 0);
	CHECK_OK(tablecache_load(c, "abc-x1", &back, &e), &e);
	CHECK(back->row_count == t->row_count && back->fde_count == 100);
	unwind_table_free(back);
	unwind_table_free(t);
	tablecache_close(c);
	tablecache_close(NULL);
}

static void a_damaged_file_is_removed(void **state)
{
	(void)state;
	struct tablecache *c = open_it(1 << 20);
	struct unwind_table *t = make(50), *back = NULL;
	struct err e = { 0 };
	char path[256];
	path_of("dead.unwind", path);
	CHECK_OK(tablecache_store(c, "dead", t, &e), &e);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && pwrite(fd, "X", 1, 40) == 1);
	close(fd);
	CHECK(tablecache_load(c, "dead", &back, &e) == E_NOTFOUND && e.text[0] && !back);
	CHECK(access(path, F_OK) != 0);
	unwind_table_free(t);
	tablecache_close(c);
}

static void names_stay_in_the_folder(void **state)
{
	(void)state;
	static const char *const names[] = { "", ".", "..", "../x", "a/b", "/etc/x", "a b", "a\n" };
	struct tablecache *c = open_it(1 << 20);
	struct unwind_table *t = make(1), *back = NULL;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		CHECK(tablecache_store(c, names[i], t, NULL) == E_INVALID);
		CHECK(tablecache_load(c, names[i], &back, NULL) == E_INVALID);
	}
	unwind_table_free(t);
	tablecache_close(c);
}

static void the_longest_unused_go_first(void **state)
{
	(void)state;
	struct unwind_table *t = make(1000), *back = NULL;
	struct buf bytes;
	buf_init(&bytes, 1 << 20);
	CHECK(unwind_table_encode(t, &bytes) == OK);
	tablecache_close(open_it(1)); /* empties it */
	uint64_t limit = bytes.len * 8;
	struct tablecache *c = open_it(limit);
	for (int i = 0; i < 8; i++) {
		char name[16], path[256];
		snprintf(name, sizeof(name), "t%d", i);
		CHECK(tablecache_store(c, name, t, NULL) == OK);
		snprintf(path, sizeof(path), "%s/%s.unwind", folder, name);
		struct timespec times[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };
		CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
	}
	CHECK(tablecache_load(c, "t0", &back, NULL) == OK); /* used: the youngest now */
	unwind_table_free(back);
	back = NULL;
	CHECK(tablecache_store(c, "t8", t, NULL) == OK);
	CHECK(tablecache_bytes(c) <= limit);
	CHECK(tablecache_load(c, "t1", &back, NULL) == E_NOTFOUND);
	CHECK(tablecache_load(c, "t0", &back, NULL) == OK);
	unwind_table_free(back);
	CHECK(tablecache_load(c, "t8", &back, NULL) == OK);
	unwind_table_free(back);
	tablecache_close(c);
	/* a smaller limit holds from the opening on; one table that passes it is not stored */
	c = open_it(bytes.len - 1);
	CHECK(tablecache_bytes(c) <= bytes.len - 1);
	CHECK(tablecache_store(c, "large", t, NULL) == E_LIMIT);
	tablecache_close(c);
	buf_deinit(&bytes);
	unwind_table_free(t);
}

static void others_files_stay_and_leftovers_go(void **state)
{
	(void)state;
	char other[256], leftover[256];
	path_of("README", other);
	path_of("x.unwind.123.tmp", leftover);
	close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	close(open(leftover, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	tablecache_close(open_it(1));
	CHECK(access(other, F_OK) == 0 && access(leftover, F_OK) != 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	char command[256];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	return system(command);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_what_it_stored),
		cmocka_unit_test(a_damaged_file_is_removed),
		cmocka_unit_test(names_stay_in_the_folder),
		cmocka_unit_test(the_longest_unused_go_first),
		cmocka_unit_test(others_files_stay_and_leftovers_go),
	};
	int before = test_open_fds();
	int failed = cmocka_run_group_tests(tests, make_folder, remove_folder);
	return failed || test_open_fds() != before;
}
