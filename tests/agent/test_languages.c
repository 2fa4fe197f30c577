/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of Rust, Go and musl on the real kernel: programs of tests/workloads that do what is hard
 * of each language. Nearly all reach the root, and functions lie where they must.
 */
#include "agent/sample/probe.h"
#include "live.h"
#include "test.h"
#include "whole.h"

#include <elf.h>
#include <math.h>

#define FREQUENCY_HZ 997
#define SAMPLES_WANTED 1500
#define SAMPLES_NEEDED 150 /* fewer say nothing */
#define RUN_NS (20 * 1000000000LL)
#define WHOLE_SHARE 0.995
#define SIGMAS 5
#define NAMES_MAX 8
#define SYMTAB_BYTES_MAX ((uint64_t)32 << 20)

struct program {
	const char *file;
	const char *compiler;          /* what is missing where it is not there */
	const char *leaves[NAMES_MAX]; /* parts of the symbol; each is the innermost frame at least
					  once */
	const char *above[NAMES_MAX];  /* each has called another function */
	const char *outermost; /* of the frames in the program's own file, of a whole stack */
};

/* ---- symbols ---- */

struct range {
	uint64_t begin; /* file offsets */
	uint64_t end;
};

struct symbols {
	struct objfile *obj;
	struct buf table, strings;
};

static void symbols_open(struct symbols *s, const char *path)
{
	struct err e = { 0 };
	buf_init(&s->table, SYMTAB_BYTES_MAX);
	buf_init(&s->strings, SYMTAB_BYTES_MAX);
	CHECK_OK(objfile_open(path, &s->obj, &e), &e);
	const struct objfile_section *table = objfile_section(s->obj, ".symtab");
	const struct objfile_section *strings = objfile_section(s->obj, ".strtab");
	CHECK(table && strings);
	CHECK_OK(objfile_read_section(s->obj, table, &s->table, &e), &e);
	CHECK_OK(objfile_read_section(s->obj, strings, &s->strings, &e), &e);
}

static void symbols_close(struct symbols *s)
{
	buf_deinit(&s->table);
	buf_deinit(&s->strings);
	objfile_close(s->obj);
}

/* Has the symbol one of these parts, with '|' between them? Each compiler has its own names. */
static bool has_part(const char *name, const char *parts)
{
	for (const char *p = parts;; p++) {
		const char *end = strchrnul(p, '|');
		if (memmem(name, strlen(name), p, (size_t)(end - p)))
			return true;
		if (!*end)
			return false;
		p = end;
	}
}

/* Is the frame in a function whose symbol has this part? */
static bool is_in(const struct symbols *s, uint64_t offset, const char *part)
{
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= s->table.len; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		struct fileoff begin;
		memcpy(&symbol, s->table.data + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_name >= s->strings.len ||
			!objfile_fileoff_of(s->obj, (struct vaddr){ symbol.st_value }, &begin) ||
			offset - begin.v >= symbol.st_size)
			continue;
		const char *name = (const char *)s->strings.data + symbol.st_name;
		if (has_part(name, part))
			return true;
	}
	return false;
}

/* ---- the runs ---- */

static bool is_text(const struct whole *w, uint64_t frame)
{
	return frame >> FRAME_FILE_SHIFT == w->text_id;
}

/* The outermost frame in the program's own file; false: none. */
static bool outermost_text(const struct whole *w, const struct live_sample *s, uint64_t *out)
{
	const uint64_t *f = live_user_frames(&w->live, s);
	for (uint32_t i = s->user_count; i > 0; i--) {
		*out = f[i - 1];
		if (is_text(w, *out))
			return true;
	}
	return false;
}

enum place { LEAF, ABOVE, OUTERMOST };

static bool is_there(
	const struct whole *w, const struct symbols *symbols, const char *part, enum place place)
{
	for (size_t i = w->from; i < w->live.samples.len; i++) {
		const struct live_sample *s = &w->live.samples.v[i];
		const uint64_t *f = live_user_frames(&w->live, s);
		uint64_t root;
		if (!stack_end_is_whole(s->h.stack_end) || s->user_count == 0)
			continue;
		if (place == OUTERMOST && outermost_text(w, s, &root) &&
			is_in(symbols, root & FRAME_OFFSET_MASK, part))
			return true;
		for (uint32_t k = place == ABOVE; k < s->user_count && place != OUTERMOST; k++) {
			if (is_text(w, f[k]) && is_in(symbols, f[k] & FRAME_OFFSET_MASK, part))
				return true;
			if (place == LEAF)
				break;
		}
	}
	print_message("no sample has %s in place %d\n", part, place);
	return false;
}

static void check_names(const struct whole *w, const struct program *p, const char *path)
{
	struct symbols symbols;
	symbols_open(&symbols, path);
	for (int i = 0; i < NAMES_MAX && p->leaves[i]; i++)
		CHECK(is_there(w, &symbols, p->leaves[i], LEAF));
	for (int i = 0; i < NAMES_MAX && p->above[i]; i++)
		CHECK(is_there(w, &symbols, p->above[i], ABOVE));
	CHECK(!p->outermost || is_there(w, &symbols, p->outermost, OUTERMOST));
	symbols_close(&symbols);
}

static void check_program(const struct program *p)
{
	char path[512];
	struct err e = { 0 };
	(void)snprintf(path, sizeof(path), "%s/%s", WORKLOADS_DIR, p->file);
	if (probe_sampling(&e) != OK) {
		print_message("%s\n", e.text);
		SKIP("cannot sample here");
	}
	if (access(path, X_OK) != 0) {
		print_message("no %s\n", p->compiler);
		SKIP("a compiler is missing");
	}
	struct whole w;
	whole_run(&w, (const char *const[]){ path, "60", NULL }, FREQUENCY_HZ, SAMPLES_WANTED,
		RUN_NS);
	double n = (double)w.samples;
	double may_fail = n * (1 - WHOLE_SHARE);
	print_message("[%s] %zu of %zu samples whole\n", p->file, w.whole, w.samples);
	CHECK(w.samples >= SAMPLES_NEEDED);
	CHECK((double)(w.samples - w.whole) <= may_fail + SIGMAS * sqrt(may_fail));
	if (p->leaves[0])
		check_names(&w, p, path);
	live_end(&w.live);
}

static void rust(void **state)
{
	(void)state;
	static const struct program p = { "language_rust", "rustc", { "4dive", "6digest" },
		{ "8panic_at", "17panics_are_caught", "4step|GenFuture$LT$T$GT$$u20$as",
			"15library_is_busy" },
		"thread_start" };
	check_program(&p);
}

static void go(void **state)
{
	(void)state;
	static const struct program p = { "language_go", "go", { "main.tight", "main.grow" },
		{ "main.plant", "main.panicAt", "runtime.morestack", "runtime.systemstack" },
		"runtime.goexit" };
	check_program(&p);
}

static void go_without_symbols(void **state)
{
	(void)state;
	static const struct program p = { .file = "language_go_stripped", .compiler = "go" };
	check_program(&p);
}

static void musl(void **state)
{
	(void)state;
	static const struct program p = { "language_musl", "musl-gcc",
		{ "compare_words", "handler_leaf" },
		{ "print_doubles", "sort_words", "move_memory", "on_signal" }, "work" };
	check_program(&p);
}

static void musl_static(void **state)
{
	(void)state;
	static const struct program p = { "language_musl_static", "musl-gcc",
		{ "compare_words", "handler_leaf", "mem" },
		{ "fmt_fp", "qsort", "on_signal", "print_doubles" }, NULL };
	check_program(&p);
}

TEST_MAIN(cmocka_unit_test(rust), cmocka_unit_test(go), cmocka_unit_test(go_without_symbols),
	cmocka_unit_test(musl), cmocka_unit_test(musl_static))
