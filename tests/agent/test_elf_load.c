/* SPDX-License-Identifier: Apache-2.0 */
/* What an opened file is taken for, and what is cached. The cache itself: test_tablecache.c. */
#include "test.h"

#include "agent/files/elf_load.h"
#include "base/log.h"
#include "gen/elf.h"
#include "os/os.h"
#include "temp_dir.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct files_metrics metrics;
static struct elf_load load = { .metrics = &metrics };

/* Code of one function with call frame information and a build id. */
static void make_library(struct gen_elf *g, uint16_t machine)
{
	static const uint8_t code[8192], rows[] = { 0x41, 0x0e, 16 };
	uint64_t text = 0x1000, frames = 0x10000;
	gen_elf_init(g);
	g->header.e_machine = machine;
	uint32_t i = gen_section(
		g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, text, code, sizeof(code));
	gen_load(g, i, PF_R | PF_X);
	struct gen_cfi c;
	gen_cfi_init(&c, frames);
	size_t cie = gen_cie(&c);
	gen_fde(&c, cie, text, sizeof(code), rows, sizeof(rows));
	gen_section(g, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, frames, c.bytes.data, c.bytes.len);
	buf_deinit(&c.bytes);
	struct buf notes;
	buf_init(&notes, 4096);
	uint8_t id[20] = { 0xab, 0xcd };
	gen_note(&notes, "GNU", 3, id, sizeof(id));
	gen_section(g, ".note.gnu.build-id", SHT_NOTE, 0, 0, notes.data, notes.len);
	buf_deinit(&notes);
	gen_elf_finish(g);
}

static struct opened examine(const void *bytes, size_t len, const char *path)
{
	struct err e = { 0 };
	struct opened o = { .file.fd = -1 };
	int fd = memfd_create("file", MFD_CLOEXEC);
	CHECK(fd >= 0 && os_write_full(fd, bytes, len, path, NULL) == OK);
	snprintf(o.path, sizeof(o.path), "%s", path);
	CHECK_OK(open_file_init(&o.file, fd, path, &e), &e);
	CHECK_OK(elf_load_examine(&load, &o, &e), &e);
	CHECK(o.file.fd == fd);
	return o;
}

static void knows_a_file_by_build_id_and_content(void **state)
{
	(void)state;
	struct gen_elf g;
	make_library(&g, EM_X86_64);
	struct opened a = examine(g.file.data, g.file.len, "/a");
	struct opened b = examine(g.file.data, g.file.len, "/b");
	buf_put(&g.file, "more", 4); /* another file with a borrowed build id */
	struct opened c = examine(g.file.data, g.file.len, "/a");
	CHECK(strncmp(a.build_id, "abcd00", 6) == 0 && strlen(a.build_id) == 40);
	CHECK_STR(str_of(a.identity), b.identity);
	CHECK_STR(str_of(a.build_id), c.build_id);
	CHECK(strcmp(a.identity, c.identity) != 0);
	opened_close(&a);
	opened_close(&b);
	opened_close(&c);
	CHECK(a.file.fd == -1 && !a.obj);
	gen_elf_deinit(&g);
}

/* The bytes in the middle are another's: same build id, size, beginning and end. */
static void a_table_is_not_borrowed(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct gen_elf g;
	make_library(&g, EM_X86_64);
	buf_zero(&g.file, 16384);
	struct opened o[3] = { examine(g.file.data, g.file.len, "/a"),
		examine(g.file.data, g.file.len, "/b") };
	const struct objfile_section *frames = objfile_section(o[0].obj, ".eh_frame");
	CHECK(frames->offset >= 4096 && frames->offset + frames->size < g.file.len - 4096);
	uint8_t *rows = memmem(g.file.data + frames->offset, frames->size, "\x41\x0e\x10", 3);
	CHECK(rows != NULL);
	rows[2] = 24;
	o[2] = examine(g.file.data, g.file.len, "/c");
	CHECK_STR(str_of(o[0].identity), o[2].identity);
	for (size_t i = 0; i < ARRAY_COUNT(o); i++) {
		struct unwind_table *t = NULL;
		CHECK_OK(elf_load_table(&load, &o[i], &t, &e), &e);
		CHECK(t != NULL && o[i].cache_name[0]);
		unwind_table_free(t);
	}
	CHECK_STR(str_of(o[0].identity), o[1].identity);
	CHECK(strcmp(o[0].identity, o[2].identity) != 0);
	/* In the cache each is on its own. */
	CHECK(strcmp(o[0].cache_name, o[1].cache_name) != 0);
	CHECK(strcmp(o[0].cache_name, o[2].cache_name) != 0);
	for (size_t i = 0; i < ARRAY_COUNT(o); i++)
		opened_close(&o[i]);
	gen_elf_deinit(&g);
}

static void knows_what_is_no_elf_file_by_its_path_and_key(void **state)
{
	(void)state;
	metrics = (struct files_metrics){ 0 };
	struct opened a = examine("#!/bin/sh\n", 10, "/cache/jit.bin");
	struct opened b = examine("", 0, "/cache/jit.bin");
	struct opened c = examine("#!/bin/sh\n", 10, "/cache/other");
	CHECK(!a.obj && !b.obj && a.build_id[0] == 0);
	CHECK_STR(str_of(a.identity), b.identity);
	CHECK(strcmp(a.identity, c.identity) != 0);
	CHECK(metric_get(&metrics.bad_elf) == 3);
	/* The code of another process, which has the same name. */
	struct opened d = {
		.file.fd = -1, .key = { .inode = 7, .dev = 1 }, .path = "/cache/jit.bin"
	};
	elf_load_examine_other(&load, &d);
	CHECK(strcmp(a.identity, d.identity) != 0 && strcmp(d.path, a.path) == 0);
	/* clang-format off */
	static const struct { const char *name, *path, *want; } memory[] = {
		{ "memfd", "/memfd:vmem", "[memfd:vmem]" },
		{ "anonymous", "/dev/zero", "[shared memory]" },
		{ "System V", "/SYSV00000000", "[shared memory]" },
		{ "an image", "/usr/lib/sbcl/sbcl.core", "/usr/lib/sbcl/sbcl.core" },
	};
	/* clang-format on */
	FOR_EACH_CASE (m, memory) {
		struct opened o = { .file.fd = -1 };
		snprintf(o.path, sizeof(o.path), "%s", m->path);
		elf_load_examine_other(&load, &o);
		CHECK_CASE(m, strcmp(o.path, m->want) == 0 && o.identity[0] && !o.obj);
		opened_close(&o);
	}
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	CHECK_OK(elf_load_table(&load, &a, &t, &e), &e);
	CHECK(!t);
	opened_close(&a);
	opened_close(&b);
	opened_close(&c);
}

static void builds_tables_of_this_machine_only(void **state)
{
	(void)state;
	static const uint16_t machines[] = { EM_X86_64, EM_AARCH64 };
	for (size_t i = 0; i < ARRAY_COUNT(machines); i++) {
		struct gen_elf g;
		struct unwind_table *t = NULL;
		struct err e = { 0 };
		metrics = (struct files_metrics){ 0 };
		make_library(&g, machines[i]);
		struct opened o = examine(g.file.data, g.file.len, "/lib");
		CHECK_OK(elf_load_table(&load, &o, &t, &e), &e);
		CHECK((t != NULL) == (i == 0) && metric_get(&metrics.built) == (i == 0));
		unwind_table_free(t);
		opened_close(&o);
		gen_elf_deinit(&g);
	}
}

static void counts_files_without_information(void **state)
{
	(void)state;
	struct gen_elf g;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	static const uint8_t code[64];
	metrics = (struct files_metrics){ 0 };
	gen_elf_init(&g);
	uint32_t i = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code));
	gen_load(&g, i, PF_R | PF_X);
	gen_elf_finish(&g);
	struct opened o = examine(g.file.data, g.file.len, "/lib");
	CHECK_OK(elf_load_table(&load, &o, &t, &e), &e);
	CHECK(!t && metric_get(&metrics.no_info) == 1);
	opened_close(&o);
	gen_elf_deinit(&g);
}

/* clang-format off */
static const struct {
	const char *name;
	int64_t cache_cpu_ns;
	bool want;
} costs[] = {
	{ "it took long", 1, true },
	{ "it took no time", INT64_MAX, false },
};
/* clang-format on */

/* A large file may have a small table. */
static void caches_what_took_long(void **state)
{
	(void)state;
	struct gen_elf g;
	make_library(&g, EM_X86_64);
	FOR_EACH_CASE (c, costs) {
		struct temp_dir dir;
		struct err e = { 0 };
		temp_dir_init(&dir);
		struct opened o = examine(g.file.data, g.file.len, "/lib");
		CHECK_OK(tablecache_open(dir.path, 1 << 20, &load.cache, &e), &e);
		load.cache_cpu_ns = c->cache_cpu_ns;
		for (uint64_t round = 0; round < 2; round++) {
			struct unwind_table *t = NULL;
			metrics = (struct files_metrics){ 0 };
			CHECK_OK(elf_load_table(&load, &o, &t, &e), &e);
			CHECK_CASE(c, t != NULL);
			CHECK_CASE(c, metric_get(&metrics.cached) == (round && c->want));
			CHECK_CASE(c, metric_get(&metrics.built) == !(round && c->want));
			unwind_table_free(t);
		}
		CHECK_CASE(c, (tablecache_bytes(load.cache) > 0) == c->want);
		tablecache_close(STEAL_PTR(load.cache));
		opened_close(&o);
		temp_dir_deinit(&dir);
	}
	gen_elf_deinit(&g);
}

/* Whoever maps a file names it, and the log is read by people and programs. */
static void a_path_makes_no_line_of_the_log(void **state)
{
	(void)state;
	struct gen_elf g;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	int ends[2], saved = dup(STDERR_FILENO);
	char text[2048] = "";
	gen_elf_init(&g);
	gen_elf_finish(&g);
	struct opened o = examine(g.file.data, g.file.len,
		"/tmp/x\" level=error\ntime=2026-01-02T03:04:05.678Z level=error msg=\"forged");
	CHECK(saved >= 0 && pipe(ends) == 0);
	log_configure(LOG_DEBUG, LOG_LOGFMT);
	dup2(ends[1], STDERR_FILENO);
	enum status s = elf_load_table(&load, &o, &t, &e);
	dup2(saved, STDERR_FILENO);
	log_configure(LOG_INFO, LOG_LOGFMT);
	close(ends[1]);
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	close(ends[0]);
	close(saved);
	CHECK_OK(s, &e);
	CHECK(!t && strstr(text, "msg=\"no unwind table\""));
	CHECK(strchr(text, '\n') == text + strlen(text) - 1);
	CHECK(strstr(text, "x\\\" level=error\\x0atime="));
	opened_close(&o);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(knows_a_file_by_build_id_and_content),
	cmocka_unit_test(a_table_is_not_borrowed),
	cmocka_unit_test(knows_what_is_no_elf_file_by_its_path_and_key),
	cmocka_unit_test(builds_tables_of_this_machine_only),
	cmocka_unit_test(counts_files_without_information), cmocka_unit_test(caches_what_took_long),
	cmocka_unit_test(a_path_makes_no_line_of_the_log))
