/* SPDX-License-Identifier: Apache-2.0 */
/* Which files count for a build id. */
#include "own.h"

static void by_an_offered_descriptor(void **state)
{
	(void)state;
	uint32_t a = add_location(add_mapping("/not/here", t.build_id, 0, 0, 0),
		outer_function(1) - base(), FRAME_NATIVE);
	int fd = open(t.exe, O_RDONLY | O_CLOEXEC);
	CHECK_OK(symbolizer_offer(t.s, t.build_id, t.exe, fd, NULL), NULL);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void believes_no_build_id(void **state)
{
	(void)state;
	static const char other[] = "00112233445566778899aabbccddeeff00112233";
	uint32_t a = add_location(
		add_mapping(t.exe, other, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK_OK(
		symbolizer_offer(t.s, other, t.exe, open(t.exe, O_RDONLY | O_CLOEXEC), NULL), NULL);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(t.p.locations.v[a].line_count == 1);
	CHECK(str_starts(name_of(a, 0), STR("test_symbolize_find+0x")));
	CHECK(metric("firn_symbolizer_tables_built_total") == 0);
	CHECK(metric("firn_symbolizer_tables_failed_total") == 1);
	/* Nor anything that is not one. */
	static const char *const bad[] = { "", "ab", "../../etc/passwd", "ABCDEF", "12/34", "xyz" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(symbolizer_offer(t.s, bad[i], "", open(t.exe, O_RDONLY | O_CLOEXEC), NULL) ==
			E_INVALID);
}

static void by_a_debug_file(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	shell("objcopy --only-keep-debug %s %s/all.debug 2>/dev/null", t.exe, t.dir);
	shell("strip -o %s/stripped %s", t.dir, t.exe);
	/* By build id. */
	char debug_dirs[128], stripped[128];
	snprintf(debug_dirs, sizeof(debug_dirs), "/nowhere::%s/debug", t.dir);
	snprintf(stripped, sizeof(stripped), "%s/stripped", t.dir);
	shell("mkdir -p %s/debug/.build-id/%.2s && cp %s/all.debug "
	      "%s/debug/.build-id/%.2s/%s.debug",
		t.dir, t.build_id, t.dir, t.dir, t.build_id, t.build_id + 2);
	t.config.debug_dirs = debug_dirs;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	uint32_t a = add_location(add_mapping(stripped, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	/* By the debug link, below the debug directory. */
	shell("rm -r %s/debug %s/%.2s", t.dir, t.dir, t.build_id);
	shell("mkdir -p %s/debug%s && cp %s/all.debug %s/debug%s/", t.dir, t.dir, t.dir, t.dir,
		t.dir);
	shell("cd %s && objcopy --add-gnu-debuglink=all.debug stripped && rm all.debug", t.dir);
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping(stripped, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void by_a_dwz_file(void **state)
{
	(void)state;
	if (system("command -v dwz >/dev/null") != 0) /* NOLINT */
		SKIP("no dwz");
#ifdef __clang__
	SKIP("dwz does not read the DWARF 5 of clang (.debug_addr)");
#endif
	uint64_t vaddr = outer_function(1) - base();
	/* Two copies of the debug information share most of it in a third file. */
	shell("mkdir -p %s/debug/.build-id/%.2s %s/debug/.dwz", t.dir, t.build_id, t.dir);
	shell("cd %s && cp %s stripped && objcopy --only-keep-debug %s d1 && cp d1 d2", t.dir,
		t.exe, t.exe);
	shell("cd %s && dwz -m debug/.dwz/common.debug -M ../../.dwz/common.debug d1 d2", t.dir);
	shell("cd %s && strip stripped && mv d1 debug/.build-id/%.2s/%s.debug", t.dir, t.build_id,
		t.build_id + 2);
	char debug_dirs[128], stripped[128];
	snprintf(debug_dirs, sizeof(debug_dirs), "%s/debug", t.dir);
	snprintf(stripped, sizeof(stripped), "%s/stripped", t.dir);
	t.config.debug_dirs = debug_dirs;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	uint32_t a = add_location(add_mapping(stripped, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void names_the_vdso(void **state)
{
	(void)state;
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
	if (!image)
		SKIP("this kernel gives no vDSO");
	struct objfile *obj;
	CHECK_OK(objfile_open_bytes(image, 8192, "vdso", &obj, NULL), NULL);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text);
	uint32_t m = add_mapping("[vdso]", objfile_build_id(obj), 0, 0, 0);
	/* Not every byte has a name, but the functions take most of them. */
	for (uint64_t at = text->addr; at < text->addr + text->size; at += 64)
		add_location(m, at, FRAME_NATIVE);
	size_t named = 0;
	CHECK(resolve(WAIT_MS) == 0);
	for (uint32_t i = 1; i < t.p.locations.len; i++)
		named += !str_starts(name_of(i, 0), STR("[vdso]+0x"));
	CHECK(named > 0);
	objfile_close(obj);
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(by_an_offered_descriptor), CASE(believes_no_build_id),
	CASE(by_a_debug_file), CASE(by_a_dwz_file), CASE(names_the_vdso))
