/* SPDX-License-Identifier: Apache-2.0 */
/* Locations of this very program get their lines. */
#include "own.h"

static void by_the_mappings_path(void **state)
{
	(void)state;
	uint64_t run = outer_function(1);
	uint32_t elf = add_mapping(t.exe, t.build_id, 0, 0, 0);
	uint32_t a = add_location(elf, run - base(), FRAME_NATIVE);
	/* As pprof has it: where the segment is mapped, and which part of the file it is. */
	struct objfile *obj;
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	uint32_t count, b = 0;
	const struct objfile_segment *seg = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++)
		if (seg[i].flags & PF_X)
			b = add_location(
				add_mapping(t.exe, t.build_id, base() + seg[i].vaddr,
					base() + seg[i].vaddr + seg[i].mem_size, seg[i].offset),
				run, FRAME_UNKNOWN);
	objfile_close(obj);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	check_own(b);
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
	CHECK(metric("firn_symbolizer_open_tables") == 1);

	/* A second symbolizer finds the table on disk, without waiting. */
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping("/gone", t.build_id, 0, 0, 0), run - base(), FRAME_NATIVE);
	CHECK(resolve(0) == 0);
	check_own(a);
	CHECK(metric("firn_symbolizer_tables_built_total") == 0);
}

static void names_what_has_no_file(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { enum frame_kind kind; const char *file, *want; } cases[] = {
		{ FRAME_JIT, "", "[jit]+0x10" },
		{ FRAME_KERNEL, "", "[kernel]+0x10" },
		{ FRAME_NATIVE, "", "[unknown mapping]+0x10" },
		{ FRAME_UNKNOWN, "", "[unknown mapping]+0x10" },
		{ FRAME_CPYTHON, "", "[cpython]+0x10" },
		{ FRAME_NATIVE, "/a/b.so", "b.so+0x10" },
		{ FRAME_NATIVE, "/memfd:x (deleted)", "memfd:x (deleted)+0x10" },
		{ FRAME_NATIVE, "plain", "plain+0x10" },
	};
	/* clang-format on */
	uint32_t ids[ARRAY_COUNT(cases)];
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		ids[i] =
			add_location(cases[i].file[0] ? add_mapping(cases[i].file, "", 0, 0, 0) : 0,
				0x10, cases[i].kind);
	CHECK(resolve(0) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		CHECK_STR(name_of(ids[i], 0), cases[i].want);
	/* The null location stays what it is. */
	CHECK(t.p.locations.v[0].line_count == 0);
}

static void keeps_lines_that_came(void **state)
{
	(void)state;
	struct profile_function f = { .name = string("_ZN3FooIiE3barEv") };
	struct profile_line line = { .line = 7 };
	CHECK_OK(profile_add_function(&t.p, &f, &line.function), NULL);
	struct profile_location loc = { .address = 0x10, .kind = FRAME_NATIVE };
	uint32_t a;
	CHECK_OK(profile_add_location(&t.p, &loc, &line, 1, &a), NULL);
	CHECK(resolve(0) == 0);
	CHECK_STR(name_of(a, 0), "Foo<int>::bar");
	CHECK_STR(
		profile_str(&t.p, t.p.functions.v[line.function].system_name), "_ZN3FooIiE3barEv");
	CHECK(t.p.lines.v[t.p.locations.v[a].line_first].line == 7);
	CHECK(metric("firn_symbolizer_lookups_total") == 0);
}

static void names_a_stripped_function_by_its_begin(void **state)
{
	(void)state;
	char stripped[128];
	snprintf(stripped, sizeof(stripped), "%s/stripped", t.dir);
	shell("strip -o %s %s", stripped, t.exe);
	uint64_t vaddr = outer_function(1) - base();
	uint32_t m = add_mapping(stripped, t.build_id, 0, 0, 0);
	uint32_t a = add_location(m, vaddr, FRAME_NATIVE);
	uint32_t b = add_location(m, vaddr + 1, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	char want[64];
	snprintf(want, sizeof(want), "stripped+0x%llx",
		(unsigned long long)((uintptr_t)outer_function - base()));
	CHECK_STR(name_of(a, 0), want);
	CHECK_STR(name_of(b, 0), want);
	/* It is a function, which an address without one is not. */
	const struct profile_location *at = &t.p.locations.v[b];
	CHECK_STR(profile_str(
			  &t.p, t.p.functions.v[t.p.lines.v[at->line_first].function].system_name),
		want);
	CHECK(metric("firn_symbolizer_unknown_total") == 2);
}

/* Lines of a location, each with all that its function says. */
static void describe(uint32_t location, struct buf *out)
{
	const struct profile_location *loc = &t.p.locations.v[location];
	buf_clear(out);
	for (uint32_t i = 0; i < loc->line_count; i++) {
		const struct profile_line *line = &t.p.lines.v[loc->line_first + i];
		const struct profile_function *f = &t.p.functions.v[line->function];
		buf_printf(out, "%.*s|%.*s|%.*s|%u|%u\n", STR_ARG(profile_str(&t.p, f->name)),
			STR_ARG(profile_str(&t.p, f->system_name)),
			STR_ARG(profile_str(&t.p, f->filename)), f->start_line, line->line);
	}
}

/* Many locations of many functions, some of one name, get what each gets alone. */
static void names_many_as_each_alone(void **state)
{
	(void)state;
	enum { MANY = 600 };
	static struct buf together[MANY];
	static uint32_t ids[MANY];
	CLEANUP(buf_deinit) struct buf alone;
	struct objfile *obj;
	buf_init(&alone, 1 << 20);
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text);
	uint64_t first = text->addr, step = text->size / MANY;
	objfile_close(obj);
	uint32_t m = add_mapping(t.exe, t.build_id, 0, 0, 0);
	for (uint64_t i = 0; i < MANY; i++)
		ids[i] = add_location(m, first + i * step, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	for (uint32_t i = 0; i < MANY; i++) {
		buf_init(&together[i], 1 << 20);
		describe(ids[i], &together[i]);
		CHECK(together[i].len > 0);
	}
	CHECK(t.p.functions.len < t.p.lines.len);
	for (uint64_t i = 0; i < MANY; i++) {
		CHECK_OK(profile_clear(&t.p), NULL);
		m = add_mapping(t.exe, t.build_id, 0, 0, 0);
		uint32_t id = add_location(m, first + i * step, FRAME_NATIVE);
		CHECK(resolve(WAIT_MS) == 0);
		describe(id, &alone);
		CHECK(str_eq(buf_view(&alone), buf_view(&together[i])));
		buf_deinit(&together[i]);
	}
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(by_the_mappings_path), CASE(names_what_has_no_file),
	CASE(keeps_lines_that_came), CASE(names_a_stripped_function_by_its_begin),
	CASE(names_many_as_each_alone))
