/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, written from code: what becomes of gaps, entries, overlaps and odd files. */
#include "test.h"

#include "gen/elf.h"
#include "unwind/unwind.h"

#include <sys/auxv.h>

#define TEXT 0x1000 /* address and file offset */
#define TEXT_BYTES 0x20000
#define FRAMES 0x40000

struct made {
	struct gen_elf g;
	struct gen_cfi c;
	size_t cie;
	uint8_t *code;
	const char *frames; /* name of the section */
	struct objfile *obj;
	struct unwind_table *t;
	struct err e;
};

static void begin(struct made *m)
{
	*m = (struct made){ .code = calloc(1, TEXT_BYTES), .frames = ".eh_frame" };
	CHECK(m->code != NULL);
	gen_elf_init(&m->g);
	/* First of the sections, so that its file offset is its address. */
	gen_load(&m->g,
		gen_section(&m->g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, m->code,
			TEXT_BYTES),
		PF_R | PF_X);
	gen_cfi_init(&m->c, FRAMES);
	m->cie = gen_cie(&m->c);
}

static void function(struct made *m, uint64_t at, uint64_t length, uint8_t cfa_offset)
{
	uint8_t rows[] = { 0x0e, cfa_offset };
	gen_fde(&m->c, m->cie, at, length, rows, sizeof(rows));
}

static enum status finish(struct made *m)
{
	memcpy(m->g.sections[1].bytes.data, m->code, TEXT_BYTES);
	uint32_t frames = gen_section(
		&m->g, m->frames, SHT_PROGBITS, SHF_ALLOC, FRAMES, m->c.bytes.data, m->c.bytes.len);
	gen_load(&m->g, frames, PF_R);
	gen_elf_finish(&m->g);
	CHECK_OK(objfile_open_bytes(m->g.file.data, m->g.file.len, "made", &m->obj, &m->e), &m->e);
	enum status s = unwind_table_build(m->obj, &m->t, &m->e);
	CHECK(s != OK || unwind_table_check(m->t, NULL) == OK);
	return s;
}

static void end(struct made *m)
{
	unwind_table_free(m->t);
	objfile_close(m->obj);
	gen_elf_deinit(&m->g);
	buf_deinit(&m->c.bytes);
	free(m->code);
}

static enum unwind_cfa cfa_at(const struct made *m, uint64_t offset)
{
	return unwind_table_find(m->t, offset).cfa;
}

static int cfa_off_at(const struct made *m, uint64_t offset)
{
	return unwind_table_find(m->t, offset).cfa_off;
}

static void functions_and_gaps(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	function(&m, TEXT + 0x100, 0x20, 16);
	function(&m, TEXT + 0x12f, 0x20, 24); /* 15 bytes behind: padding */
	function(&m, TEXT + 0x15f, 0x20, 32); /* 16 bytes behind: a gap */
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_at(&m, TEXT) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + 0xff) == UNWIND_CFA_NONE);
	CHECK(cfa_off_at(&m, TEXT + 0x100) == 16 && cfa_off_at(&m, TEXT + 0x12e) == 16);
	CHECK(cfa_off_at(&m, TEXT + 0x12f) == 24 && cfa_off_at(&m, TEXT + 0x14e) == 24);
	CHECK(cfa_at(&m, TEXT + 0x14f) == UNWIND_CFA_NONE);
	CHECK(cfa_off_at(&m, TEXT + 0x15f) == 32);
	CHECK(cfa_at(&m, TEXT + 0x17f) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + TEXT_BYTES) == UNWIND_CFA_NONE);
	CHECK(m.t->fde_count == 3 && m.t->bad_fdes == 0 && m.t->unsupported_rows == 0);
	end(&m);
}

static void functions_in_any_order(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	for (uint32_t i = 0; i < 500; i++) {
		uint32_t n = (i * 271) % 500;
		function(&m, TEXT + n * 0x40, 0x40, (uint8_t)(8 + 8 * (n % 8)));
	}
	CHECK_OK(finish(&m), &m.e);
	for (uint32_t n = 0; n < 500; n++) {
		CHECK(cfa_off_at(&m, TEXT + n * 0x40) == (int)(8 + 8 * (n % 8)));
		CHECK(cfa_off_at(&m, TEXT + n * 0x40 + 0x3f) == (int)(8 + 8 * (n % 8)));
	}
	end(&m);
}

static void overlaps(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	function(&m, TEXT + 0x100, 0x100, 16); /* cut by the next one */
	function(&m, TEXT + 0x180, 0x20, 24);
	function(&m, TEXT + 0x300, 0x10, 32); /* the longer one counts */
	function(&m, TEXT + 0x300, 0x40, 40);
	function(&m, TEXT + 0x300, 0x20, 48);
	function(&m, TEXT + 0x400, 0, 56);               /* nothing */
	function(&m, 0, 0x10, 56);                       /* dropped by the linker */
	function(&m, TEXT + TEXT_BYTES - 8, 0x1000, 64); /* passes the segment's end */
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_off_at(&m, TEXT + 0x17f) == 16 && cfa_off_at(&m, TEXT + 0x180) == 24);
	CHECK(cfa_at(&m, TEXT + 0x1a0) == UNWIND_CFA_NONE);
	CHECK(cfa_off_at(&m, TEXT + 0x300) == 40 && cfa_off_at(&m, TEXT + 0x33f) == 40);
	CHECK(cfa_at(&m, TEXT + 0x400) == UNWIND_CFA_NONE);
	CHECK(cfa_off_at(&m, TEXT + TEXT_BYTES - 1) == 64);
	CHECK(cfa_at(&m, TEXT + TEXT_BYTES) == UNWIND_CFA_NONE);
	end(&m);
}

static void a_broken_function_costs_itself_only(void **state)
{
	(void)state;
	static const uint8_t broken[] = { 0x0e, 16, 0x44, 0x3f };
	struct made m;
	begin(&m);
	gen_fde(&m.c, m.cie, TEXT + 0x100, 0x20, broken, sizeof(broken));
	function(&m, TEXT + 0x120, 0x20, 24);
	gen_fde(&m.c, 1, TEXT + 0x140, 0x20, NULL, 0); /* its CIE is none */
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_off_at(&m, TEXT + 0x103) == 16);
	CHECK(cfa_at(&m, TEXT + 0x104) == UNWIND_CFA_UNSUPPORTED);
	CHECK(cfa_off_at(&m, TEXT + 0x120) == 24);
	CHECK(cfa_at(&m, TEXT + 0x140) == UNWIND_CFA_NONE);
	CHECK(m.t->fde_count == 3 && m.t->bad_fdes == 2 && m.t->unsupported_rows == 1);
	end(&m);
}

static const uint8_t entry_code[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7 };

static void the_entry_of_a_program_is_the_root(void **state)
{
	(void)state;
	for (int covered = 0; covered < 2; covered++) {
		struct made m;
		begin(&m);
		m.g.header.e_type = ET_EXEC;
		m.g.header.e_entry = TEXT + 0x200;
		function(&m, TEXT + 0x100, 0x20, 16);
		if (covered)
			function(&m, TEXT + 0x200, 0x30, 16);
		function(&m, TEXT + 0x400, 0x20, 24);
		CHECK_OK(finish(&m), &m.e);
		CHECK(cfa_at(&m, TEXT + 0x1ff) == UNWIND_CFA_NONE);
		CHECK(cfa_at(&m, TEXT + 0x200) == UNWIND_CFA_STOP);
		CHECK(cfa_at(&m, TEXT + 0x22f) == UNWIND_CFA_STOP);
		CHECK(cfa_at(&m, TEXT + 0x230) == (covered ? UNWIND_CFA_NONE : UNWIND_CFA_STOP));
		CHECK(cfa_at(&m, TEXT + 0x300) == UNWIND_CFA_NONE);
		CHECK(cfa_off_at(&m, TEXT + 0x400) == 24);
		end(&m);
	}
}

static void the_entry_of_a_library_must_look_like_one(void **state)
{
	(void)state;
	for (int looks = 0; looks < 2; looks++) {
		struct made m;
		begin(&m);
		m.g.header.e_entry = TEXT; /* as ld writes it for shared libraries */
		if (looks)
			memcpy(m.code, entry_code, sizeof(entry_code));
		function(&m, TEXT + 0x40, 0x20, 16);
		CHECK_OK(finish(&m), &m.e);
		CHECK(cfa_at(&m, TEXT) == (looks ? UNWIND_CFA_STOP : UNWIND_CFA_NONE));
		CHECK(cfa_at(&m, TEXT + 0x3f) == (looks ? UNWIND_CFA_STOP : UNWIND_CFA_NONE));
		CHECK(cfa_off_at(&m, TEXT + 0x40) == 16);
		end(&m);
	}
}

static void pie_and_interpreter_make_a_program(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct made m;
		uint64_t dynamic[] = { DT_NEEDED, 1, DT_FLAGS_1, how == 0 ? 0x08000001 : 1, DT_NULL,
			0 };
		begin(&m);
		m.g.header.e_entry = TEXT + 0x100;
		function(&m, TEXT + 0x100, 0x20, 16);
		uint32_t i = gen_section(&m.g, ".dynamic", SHT_DYNAMIC, SHF_ALLOC, 0x50000, dynamic,
			sizeof(dynamic));
		gen_segment(&m.g, i, PT_DYNAMIC, PF_R);
		if (how == 1) {
			i = gen_section(
				&m.g, ".interp", SHT_PROGBITS, SHF_ALLOC, 0x51000, "/ld", 4);
			gen_segment(&m.g, i, PT_INTERP, PF_R);
		}
		CHECK_OK(finish(&m), &m.e);
		CHECK(cfa_at(&m, TEXT + 0x100) == (how < 2 ? UNWIND_CFA_STOP : UNWIND_CFA_SP));
		end(&m);
	}
}

static void signal_returns_are_a_byte_longer(void **state)
{
	(void)state;
	static const uint8_t sigreturn[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t signal_data[] = { 0x1b };
	static const uint8_t standard[] = { 0x0c, 7, 8, 0x90, 1 };
	struct made m;
	begin(&m);
	memcpy(m.code + 0x200, sigreturn, sizeof(sigreturn));   /* musl: nothing covers it */
	memcpy(m.code + 0x209, sigreturn, sizeof(sigreturn));   /* and one right behind it */
	memcpy(m.code + 0x11fff, sigreturn, sizeof(sigreturn)); /* over the edge of a read */
	function(&m, TEXT + 0x100, 0x20, 16);
	function(&m, TEXT + 0x300, 0x20, 24);
	size_t cie = gen_cie_with(&m.c, "zRS", signal_data, 1, standard, sizeof(standard));
	gen_fde(&m.c, cie, TEXT + 0x330, 0x10, NULL, 0); /* 16 bytes behind the one before */
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_at(&m, TEXT + 0x1fe) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + 0x1ff) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x208) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x211) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x212) == UNWIND_CFA_SIGNAL); /* who is in the call is seen here */
	CHECK(cfa_at(&m, TEXT + 0x213) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + 0x11ffe) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x12007) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x12009) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + 0x32f) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x33f) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x340) == UNWIND_CFA_NONE);
	/* The first byte tells that the name is that of the next one. */
	CHECK(cfa_off_at(&m, TEXT + 0x1ff) == UNWIND_OFF_EARLY &&
		cfa_off_at(&m, TEXT + 0x200) == 0);
	CHECK(cfa_off_at(&m, TEXT + 0x32f) == UNWIND_OFF_EARLY &&
		cfa_off_at(&m, TEXT + 0x330) == 0);
	end(&m);
}

/* glibc: the information of its signal return begins with the byte before it. */
static void a_signal_function_with_the_byte_before_it(void **state)
{
	(void)state;
	static const uint8_t code[] = { 0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t signal_data[] = { 0x1b };
	static const uint8_t standard[] = { 0x0c, 7, 8, 0x90, 1 };
	struct made m;
	begin(&m);
	memcpy(m.code + 0x20f, code, sizeof(code));
	function(&m, TEXT + 0x100, 0x20, 16);
	size_t cie = gen_cie_with(&m.c, "zRS", signal_data, 1, standard, sizeof(standard));
	gen_fde(&m.c, cie, TEXT + 0x20f, sizeof(code), NULL, 0);
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_at(&m, TEXT + 0x20e) == UNWIND_CFA_NONE);
	CHECK(cfa_at(&m, TEXT + 0x20f) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_off_at(&m, TEXT + 0x20f) == UNWIND_OFF_EARLY);
	CHECK(cfa_at(&m, TEXT + 0x210) == UNWIND_CFA_SIGNAL && cfa_off_at(&m, TEXT + 0x210) == 0);
	end(&m);
}

/* glibc's __start_context: what makecontext() has a stack return to. */
static void a_context_begins_at_the_root(void **state)
{
	(void)state;
	static const uint8_t code[26] = { 0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85,
		0xff, 0x74, 0x08, 0xe8, 0, 1, 0, 0, 0x48, 0x89, 0xc7, 0xe8, 0, 1, 0, 0, 0xf4 };
	for (int way = 0; way < 3; way++) {
		struct made m;
		begin(&m);
		memcpy(m.code + 0x210, code, sizeof(code));
		m.code[0x210] = way == 1 ? 0x4c : 0x48;              /* other code */
		function(&m, TEXT + 0x200, way == 2 ? 0x10 : 9, 16); /* nothing between the two */
		gen_fde(&m.c, m.cie, TEXT + 0x210, sizeof(code), NULL, 0);
		CHECK_OK(finish(&m), &m.e);
		enum unwind_cfa want = way == 0 ? UNWIND_CFA_STOP : UNWIND_CFA_SP;
		CHECK(cfa_at(&m, TEXT + 0x20f) == want && cfa_at(&m, TEXT + 0x210) == want);
		CHECK(cfa_at(&m, TEXT + 0x229) == want &&
			cfa_at(&m, TEXT + 0x20e) == UNWIND_CFA_SP);
		CHECK(way || cfa_off_at(&m, TEXT + 0x20f) == UNWIND_OFF_EARLY);
		CHECK(way || cfa_off_at(&m, TEXT + 0x210) == 0);
		end(&m);
	}
}

/* Zig's clone, whose call frame information is only that it has some. */
static void a_thread_begins_at_the_root(void **state)
{
	(void)state;
	static const uint8_t code[] = { 0xb8, 0x38, 0, 0, 0, 0x49, 0x89, 0xf9, 0x48, 0x83, 0xee, 8,
		0x48, 0x89, 0x0e, 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x75, 0x0d, 0x31, 0xed, 0x5f, 0x41,
		0xff, 0xd1, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	const uint64_t call = TEXT + 0x210 + 27; /* its last byte: what a return is looked up by */
	for (int way = 0; way < 2; way++) {
		struct made m;
		begin(&m);
		memcpy(m.code + 0x210, code, sizeof(code));
		m.code[0x211] = way == 1 ? 0x39 : 0x38; /* another system call */
		function(&m, TEXT + 0x200, 0x10, 16);
		gen_fde(&m.c, m.cie, TEXT + 0x210, sizeof(code), NULL, 0);
		function(&m, TEXT + 0x210 + sizeof(code), 0x10, 16);
		CHECK_OK(finish(&m), &m.e);
		CHECK(cfa_at(&m, call) == (way ? UNWIND_CFA_SP : UNWIND_CFA_STOP));
		CHECK(cfa_at(&m, TEXT + 0x210) == UNWIND_CFA_SP); /* the caller's side */
		CHECK(cfa_off_at(&m, TEXT + 0x210) == 8);
		CHECK(cfa_at(&m, TEXT + 0x210 + sizeof(code)) == UNWIND_CFA_SP);
		end(&m);
	}
}

static void a_signal_return_beside_a_signal_function(void **state)
{
	(void)state;
	static const uint8_t sigreturn[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t signal_data[] = { 0x1b };
	static const uint8_t standard[] = { 0x0c, 7, 8, 0x90, 1 };
	struct made m;
	begin(&m);
	memcpy(m.code + 0x200, sigreturn, sizeof(sigreturn));
	size_t cie = gen_cie_with(&m.c, "zRS", signal_data, 1, standard, sizeof(standard));
	gen_fde(&m.c, cie, TEXT + 0x207, 0x10, NULL, 0); /* begins where the other ends */
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_at(&m, TEXT + 0x206) == UNWIND_CFA_SIGNAL);
	CHECK(cfa_at(&m, TEXT + 0x216) == UNWIND_CFA_SIGNAL);
	end(&m);
}

static void plt_without_information(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	uint8_t plt[64] = { 0 };
	uint32_t i = gen_section(
		&m.g, ".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x80000, plt, sizeof(plt));
	gen_load(&m.g, i, PF_R | PF_X);
	i = gen_section(&m.g, ".plt.got", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x90000, plt,
		sizeof(plt));
	gen_load(&m.g, i, PF_R | PF_X);
	function(&m, TEXT + 0x100, 0x20, 16);
	CHECK_OK(finish(&m), &m.e);
	uint64_t at = objfile_section(m.obj, ".plt")->offset;
	struct unwind_rule rule = unwind_table_find(m.t, at + 20);
	CHECK(rule.cfa == UNWIND_CFA_PLT && rule.cfa_off == 11);
	CHECK(cfa_at(&m, at + 64) == UNWIND_CFA_NONE);
	rule = unwind_table_find(m.t, objfile_section(m.obj, ".plt.got")->offset);
	CHECK(rule.cfa == UNWIND_CFA_SP && rule.cfa_off == 8 && rule.ra_off == -8);
	CHECK(cfa_off_at(&m, TEXT + 0x100) == 16);
	end(&m);
}

static void debug_frame_serves_where_eh_frame_is_missing(void **state)
{
	(void)state;
	struct made m;
	begin(&m);
	buf_deinit(&m.c.bytes);
	gen_cfi_init(&m.c, 0);
	m.c.is_debug_frame = true;
	m.frames = ".debug_frame";
	m.cie = gen_cie(&m.c);
	function(&m, TEXT + 0x100, 0x20, 16);
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_off_at(&m, TEXT + 0x100) == 16);
	end(&m);
}

static void without_section_headers_by_the_segment(void **state)
{
	(void)state;
	for (int damage = 0; damage < 4; damage++) {
		struct made m;
		begin(&m);
		m.g.no_section_headers = true;
		function(&m, TEXT + 0x100, 0x20, 16);
		buf_u32(&m.c.bytes, 0);
		buf_u32(&m.c.bytes, 0x12345678); /* behind the end mark: not ours */
		struct buf hdr;
		buf_init(&hdr, 100);
		buf_put(&hdr, damage == 1 ? "\x02\x1b\x03\x3b" : "\x01\x1b\x03\x3b", 4);
		buf_u32(&hdr, damage == 2 ? 0 : (uint32_t)(FRAMES - (0x70000 + 4)));
		buf_zero(&hdr, damage == 3 ? 0 : 24);
		uint32_t i = gen_section(
			&m.g, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0x70000, hdr.data, hdr.len);
		gen_segment(&m.g, i, PT_GNU_EH_FRAME, PF_R);
		buf_deinit(&hdr);
		CHECK(finish(&m) == (damage ? E_NOTFOUND : OK));
		if (!damage) {
			CHECK(cfa_off_at(&m, TEXT + 0x100) == 16 && m.t->bad_fdes == 0);
		}
		end(&m);
	}
}

/* Free Pascal, tcc: nobody wrote anything down. */
static void reads_the_code_of_a_file_without_information(void **state)
{
	(void)state;
	static const uint8_t function_code[] = { 0x53, 0x90, 0x5b, 0xc3 };
	static const uint8_t start[] = { 0x48, 0x31, 0xed, 0xe8, 0, 1, 0, 0, 0xc3 };
	struct made m;
	begin(&m);
	m.frames = ".data";
	m.g.header.e_type = ET_EXEC;
	m.g.header.e_entry = TEXT + 0x100;
	memcpy(m.code + 0x100, start, sizeof(start));
	memcpy(m.code + 0x110, function_code, sizeof(function_code));
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_at(&m, TEXT + 0x100) == UNWIND_CFA_STOP);
	CHECK(cfa_at(&m, TEXT + 0x108) == UNWIND_CFA_STOP);
	CHECK(cfa_off_at(&m, TEXT + 0x110) == 8 && cfa_off_at(&m, TEXT + 0x111) == 16);
	CHECK(unwind_table_find(m.t, TEXT + 0x111).fp & UNWIND_FP_NO_END);
	end(&m);
}

/* LuaJIT's interpreter: one entry for all of it, with one CFA. Its zeros are no end of a stack. */
static void an_entry_that_nobody_calls_ends_no_stack(void **state)
{
	(void)state;
	static const uint8_t frame[] = { 0x0e, 80, 0x86, 2 }; /* CFA sp + 80, rbp at CFA - 16 */
	static const uint8_t pushed[] = { 0x41, 0x0e, 16 };   /* sp + 8; from byte 1 on sp + 16 */
	struct made m;
	begin(&m);
	gen_fde(&m.c, m.cie, TEXT + 0x100, 0x40, frame, sizeof(frame));
	gen_fde(&m.c, m.cie, TEXT + 0x140, 0x40, pushed, sizeof(pushed));
	CHECK_OK(finish(&m), &m.e);
	CHECK(cfa_off_at(&m, TEXT + 0x120) == 80 && cfa_off_at(&m, TEXT + 0x150) == 16);
	CHECK(unwind_table_find(m.t, TEXT + 0x120).fp & UNWIND_FP_NO_END);
	CHECK(!(unwind_table_find(m.t, TEXT + 0x140).fp & UNWIND_FP_NO_END));
	CHECK(!(unwind_table_find(m.t, TEXT + 0x150).fp & UNWIND_FP_NO_END));
	end(&m);
}

/* A file that fails, or is written to, once the section was read `good` times. */
struct unsteady {
	struct str file;
	uint64_t section, section_bytes;
	size_t reads, good;
	enum status status;
};

static enum status read_unsteady(void *ctx, uint64_t offset, void *out, size_t len, struct err *e)
{
	struct unsteady *u = ctx;
	memcpy(out, u->file.p + offset, len);
	bool is_section = offset - u->section < u->section_bytes;
	if (!is_section || u->reads++ < u->good)
		return OK;
	if (u->status == OK) /* zeros are no entries */
		memset(out, 0, len);
	return u->status == OK ? OK : err_set(e, u->status, "the disk is broken");
}

/* Pieces of it are read again, those of functions that are in no order several times. */
static void a_large_section_is_read_in_pieces(void **state)
{
	(void)state;
	struct made m;
	const uint32_t count = TEXT_BYTES / 8, section_reads = 1;
	begin(&m);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = i % 16 ? i : (i * 4099) % count;
		if (i % 16 || n % 16 == 0)
			function(&m, TEXT + n * 8, 8, (uint8_t)(8 + 8 * (n % 8)));
	}
	CHECK_OK(finish(&m), &m.e);
	CHECK(m.c.bytes.len > (size_t)300 << 10 && m.t->bad_fdes == 0);
	struct unsteady u = { .file = buf_view(&m.g.file) };
	u.section = objfile_section(m.obj, ".eh_frame")->offset;
	u.section_bytes = m.c.bytes.len;
	struct unwind_table *first = STEAL_PTR(m.t);
	for (size_t good = SIZE_MAX;; good = good == SIZE_MAX ? section_reads : good + 1) {
		enum status s = OK;
		for (int broken = 0; broken < 2; broken++) {
			u.reads = 0;
			u.good = good;
			u.status = broken ? E_IO : OK;
			objfile_close(m.obj);
			struct objfile_source source = { read_unsteady, &u, u.file.len };
			CHECK_OK(objfile_open_source(&source, "made", &m.obj, &m.e), &m.e);
			s = unwind_table_build(m.obj, &m.t, &m.e);
			CHECK(u.reads <= good || s == (broken ? E_IO : E_INVALID));
			if (s != OK)
				continue;
			struct hash128 a = unwind_table_hash(m.t), b = unwind_table_hash(first);
			CHECK(a.hi == b.hi && a.lo == b.lo);
			unwind_table_free(STEAL_PTR(m.t));
		}
		CHECK(good == SIZE_MAX || good < 100);
		if (good != SIZE_MAX && s == OK)
			break;
	}
	CHECK(u.reads > 10);
	unwind_table_free(first);
	end(&m);
}

static void files_that_have_no_table(void **state)
{
	(void)state;
	struct made m;
	begin(&m); /* no information */
	m.frames = ".data";
	CHECK(finish(&m) == E_NOTFOUND && m.e.text[0]);
	end(&m);
	begin(&m); /* a section without an entry */
	CHECK(finish(&m) == E_NOTFOUND);
	end(&m);
	begin(&m); /* entries, and none of use */
	function(&m, 0x900000, 0x20, 16);
	CHECK(finish(&m) == E_INVALID);
	end(&m);
	begin(&m); /* cut in the middle */
	function(&m, TEXT + 0x100, 0x20, 16);
	m.c.bytes.len -= 4;
	CHECK(finish(&m) == E_INVALID);
	end(&m);
	begin(&m);
	m.g.header.e_machine = EM_RISCV;
	function(&m, TEXT + 0x100, 0x20, 16);
	CHECK(finish(&m) == E_UNSUPPORTED);
	end(&m);
}

static void the_vdso(void **state)
{
	(void)state;
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		SKIP("this kernel gives no vDSO");
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
	size_t len = h->e_shoff + (size_t)h->e_shnum * h->e_shentsize;
	struct objfile *obj = NULL;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(image, len, "[vdso]", &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &t, &e), &e);
	CHECK_OK(unwind_table_check(t, &e), &e);
	CHECK(t->row_count > 5 && t->bad_fdes == 0);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text != NULL);
	uint64_t covered = 0;
	for (uint64_t o = text->offset; o < text->offset + text->size; o++)
		covered += unwind_table_find(t, o).cfa != UNWIND_CFA_NONE;
	CHECK(covered * 10 > text->size * 8);
	unwind_table_free(t);
	objfile_close(obj);
}

TEST_MAIN(cmocka_unit_test(functions_and_gaps), cmocka_unit_test(functions_in_any_order),
	cmocka_unit_test(overlaps), cmocka_unit_test(a_broken_function_costs_itself_only),
	cmocka_unit_test(the_entry_of_a_program_is_the_root),
	cmocka_unit_test(reads_the_code_of_a_file_without_information),
	cmocka_unit_test(an_entry_that_nobody_calls_ends_no_stack),
	cmocka_unit_test(the_entry_of_a_library_must_look_like_one),
	cmocka_unit_test(pie_and_interpreter_make_a_program),
	cmocka_unit_test(signal_returns_are_a_byte_longer),
	cmocka_unit_test(a_signal_function_with_the_byte_before_it),
	cmocka_unit_test(a_context_begins_at_the_root),
	cmocka_unit_test(a_thread_begins_at_the_root),
	cmocka_unit_test(a_signal_return_beside_a_signal_function),
	cmocka_unit_test(plt_without_information),
	cmocka_unit_test(a_large_section_is_read_in_pieces),
	cmocka_unit_test(debug_frame_serves_where_eh_frame_is_missing),
	cmocka_unit_test(without_section_headers_by_the_segment),
	cmocka_unit_test(files_that_have_no_table), cmocka_unit_test(the_vdso))
