/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like CPython's, made here. */
#include "runtimes/runtimes.h"
#include "test.h"

#include "gen/elf.h"

#define TEXT 0x401000
#define LOOP (TEXT + 0x100)
#define DATA 0x500000
#define CONSTANTS 0x450000

/* What a file is made of. */
struct made {
	const char *constants; /* .rodata */
	size_t constants_len;
	uint32_t version;        /* Py_Version; 0: the file has none */
	const uint64_t *offsets; /* 57 numbers at _PyRuntime */
	bool no_runtime, no_loop, no_symbol, old;
};

static uint32_t add_name(struct buf *names, const char *name)
{
	uint32_t at = (uint32_t)names->len;
	buf_put(names, name, strlen(name) + 1);
	return at;
}

static void add_symbol(
	struct buf *symbols, struct buf *names, const char *name, uint64_t value, uint64_t size)
{
	Elf64_Sym s = {
		.st_name = add_name(names, name), .st_shndx = 1, .st_value = value, .st_size = size
	};
	buf_put(symbols, &s, sizeof(s));
}

static void make(struct gen_elf *g, const struct made *m)
{
	static uint8_t code[4096];
	struct {
		uint8_t constants[256];
		uint32_t version;
	} rodata = { .version = m->version };
	struct {
		char cookie[8];
		uint64_t numbers[57];
	} runtime = { .cookie = "xdebugp" };
	if (m->constants)
		memcpy(rodata.constants, m->constants, m->constants_len);
	runtime.cookie[7] = 'y';
	if (m->offsets)
		memcpy(runtime.numbers, m->offsets, sizeof(runtime.numbers));
	struct buf symbols, names;
	buf_init(&symbols, 4096);
	buf_init(&names, 4096);
	add_symbol(&symbols, &names, "", 0, 0);
	if (m->old)
		add_symbol(&symbols, &names, "_PyThreadState_Current", DATA, 8);
	if (!m->no_runtime && !m->no_symbol)
		add_symbol(&symbols, &names, "_PyRuntime", DATA, 700);
	if (!m->no_loop)
		add_symbol(&symbols, &names, "_PyEval_EvalFrameDefault", LOOP, 0x200);
	if (m->version)
		add_symbol(&symbols, &names, "Py_Version", CONSTANTS + 256, 8);
	gen_elf_init(g);
	uint32_t text = gen_section(
		g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
	uint32_t constants = gen_section(
		g, ".rodata", SHT_PROGBITS, SHF_ALLOC, CONSTANTS, &rodata, sizeof(rodata));
	uint32_t data = gen_section(g, m->no_runtime ? ".data" : ".PyRuntime", SHT_PROGBITS,
		SHF_ALLOC | SHF_WRITE, DATA, &runtime, sizeof(runtime));
	uint32_t dynsym =
		gen_section(g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, symbols.data, symbols.len);
	g->sections[dynsym].header.sh_link =
		gen_section(g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names.data, names.len);
	gen_load(g, text, PF_R | PF_X);
	gen_load(g, constants, PF_R);
	gen_load(g, data, PF_R | PF_W);
	gen_elf_finish(g);
	buf_deinit(&symbols);
	buf_deinit(&names);
}

static enum status find(const struct made *m, struct runtime_record *out, struct err *e)
{
	struct gen_elf g;
	make(&g, m);
	struct objfile *obj = NULL;
	enum status s = objfile_open_bytes(g.file.data, g.file.len, "made", &obj, e);
	if (s == OK)
		s = runtimes_find(obj, out, e);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return s;
}

#define CONST(text) .constants = (text), .constants_len = sizeof(text)

static void knows_old_versions_by_their_constants(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find(&(struct made){ CONST("/usr/lib/python3.9\0python3\0python3.x") }, &r, &e),
		&e);
	CHECK(r.kind == RUNTIME_CPYTHON && r.version == 0x309);
	CHECK(str_eq(str_of(runtime_name(r.kind)), STR("cpython")));
	CHECK(r.layout.cpython.frames == CPYTHON_OBJECTS && r.layout.cpython.frame_instr == 104);
	/* The text lies at a page of the file; the loop and the variable are told from there. */
	CHECK(r.text_bytes == 4096);
	CHECK(r.layout.cpython.loop[0] == r.text_from + (LOOP - TEXT));
	CHECK(r.layout.cpython.loop[1] == r.layout.cpython.loop[0] + 0x200);
	uint64_t loaded = 0x7f0000000000; /* where byte 0 of the file would be */
	CHECK(loaded + r.delta == loaded + r.text_from + (DATA - TEXT));
}

static void takes_later_offsets_from_the_file(void **state)
{
	(void)state;
	uint64_t n[57] = { [1] = 0,
		[4] = 808,
		[7] = 7272,
		[8] = 7344,
		[14] = 16,
		[15] = 7800,
		[18] = 7808,
		[23] = 8,
		[25] = 72,
		[26] = 152,
		[31] = 8,
		[33] = 56,
		[35] = 74,
		[39] = 112,
		[41] = 128,
		[42] = 136,
		[43] = 68,
		[47] = 208 };
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	const struct made m = { .version = 0x030e01f0, .offsets = n };
	CHECK_OK(find(&m, &r, &e), &e);
	const struct cpython_layout *l = &r.layout.cpython;
	CHECK(r.version == 0x30e && l->frames == CPYTHON_OWNED && l->gil_holder == 8);
	CHECK(l->runtime_head == 808 && l->thread_frame == 72 && l->frame_owner == 74);
	CHECK(l->code_name == 128 && l->code_instr == 208 && l->owner_loop == 3);
	/* 3.15 has more numbers of a thread, 8 of them in front of its frames'. */
	uint64_t later[57] = { [4] = 936,
		[25] = 72,
		[29] = 176,
		[39] = 8,
		[41] = 56,
		[43] = 74,
		[49] = 128,
		[50] = 136,
		[55] = 208 };
	const struct made m15 = { .version = 0x030f02f0, .offsets = later };
	CHECK_OK(find(&m15, &r, &e), &e);
	CHECK(r.version == 0x30f && l->runtime_head == 936 && l->thread_id == 176);
	CHECK(l->frame_owner == 74 && l->code_lines == 136 && l->code_instr == 208);
}

static void knows_objects_without_a_global_lock(void **state)
{
	(void)state;
	uint64_t n[57] = { [1] = 1, [34] = 128, [36] = 144, [37] = 152, [38] = 84, [42] = 216 };
	uint64_t of_314[57] = { [1] = 1, [37] = 72, [47] = 224, [48] = 232 };
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	const struct made m = { .version = 0x030d05f0, .offsets = n };
	CHECK_OK(find(&m, &r, &e), &e);
	const struct cpython_layout *l = &r.layout.cpython;
	CHECK(l->object_head == CPYTHON_HEAD_FREE_BYTES && l->code_lines == 152);
	CHECK(l->text_ascii == 56 && l->text_compact == 72);
	CHECK(!l->code_copies && !l->text_shift);
	const struct made later = { .version = 0x030e00f0, .offsets = of_314 };
	CHECK_OK(find(&later, &r, &e), &e);
	CHECK(l->frame_copy == 72 && l->code_copies == 232 && l->text_shift == 8);
	n[1] = 0; /* with one, no code object is read so far */
	CHECK(find(&m, &r, &e) == E_UNSUPPORTED);
}

static void refuses(const struct made *m, enum status want, const char *text)
{
	struct runtime_record r = { .version = 77 };
	struct err e = { 0 };
	enum status s = find(m, &r, &e);
	if (s != want)
		print_error("%s: %s\n", text, e.text);
	CHECK(s == want);
	CHECK(r.version == 77);
	if (!strstr(e.text, text))
		print_error("%s\n", e.text);
	CHECK(strstr(e.text, text));
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	uint64_t n[57] = { [23] = CPYTHON_THREAD_BYTES - 7 };
	uint64_t huge[57] = { [4] = UINT64_MAX };
	uint64_t free_threaded[57] = { [1] = 1, [37] = CPYTHON_FRAME_BYTES };
	refuses(&(struct made){ .no_runtime = true }, E_NOTFOUND, "no runtime");
	refuses(&(struct made){ .no_runtime = true, .old = true }, E_UNSUPPORTED, "before 3.7");
	refuses(&(struct made){ CONST("nothing") }, E_UNSUPPORTED, "does not say its version");
	refuses(&(struct made){ CONST("python3.8 python3.9") }, E_UNSUPPORTED, "not say");
	refuses(&(struct made){ CONST("python3.6") }, E_UNSUPPORTED, "3.6 is not known");
	refuses(&(struct made){ .version = 0x031000f0 }, E_UNSUPPORTED, "3.16 is not known");
	refuses(&(struct made){ .version = 0x020700f0 }, E_UNSUPPORTED, "2.7");
	refuses(&(struct made){ .version = 0x030b00b1 }, E_UNSUPPORTED, "before its release");
	refuses(&(struct made){ CONST("python3.9"), .no_loop = true }, E_UNSUPPORTED, "loop");
	refuses(&(struct made){ .version = 0x030d00f0, .offsets = n }, E_UNSUPPORTED, "offset");
	refuses(&(struct made){ .version = 0x030d00f0, .offsets = huge }, E_UNSUPPORTED, "offset");
	refuses(&(struct made){ .version = 0x030e00f0, .offsets = free_threaded }, E_UNSUPPORTED,
		"offset");
}

static void finds_the_root_by_its_section(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	const struct made m = { CONST("lib/python3.10"), .no_symbol = true };
	CHECK_OK(find(&m, &r, &e), &e);
	CHECK(r.version == 0x30a && r.delta == r.text_from + (DATA - TEXT));
}

TEST_MAIN(cmocka_unit_test(knows_old_versions_by_their_constants),
	cmocka_unit_test(takes_later_offsets_from_the_file),
	cmocka_unit_test(knows_objects_without_a_global_lock),
	cmocka_unit_test(refuses_what_it_does_not_know),
	cmocka_unit_test(finds_the_root_by_its_section))
