/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a made Go program: plain ones, and those that switch stacks. */
#include "test.h"

#include "gen/elf.h"
#include "unwind/golang.h"

#define TEXT 0x401000
#define TABLE 0x600000
#define FUNCTION_BYTES 0x100
#define MAGIC_1_18 0xfffffff0
#define MAGIC_1_20 0xfffffff1

struct made {
	struct gen_elf g;
	struct buf names, functions, entries, pcs;
	uint8_t code[0x1000];
	uint32_t count;
	uint32_t magic;
	bool text_in_module; /* as Go 1.26: not in the header */
	bool is_pie;
	struct objfile *obj;
	struct unwind_table *t;
	struct err e;
};

static void begin(struct made *m, uint32_t magic)
{
	memset(m, 0, sizeof(*m));
	m->magic = magic;
	struct buf *all[] = { &m->names, &m->functions, &m->entries, &m->pcs };
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_init(all[i], 1 << 20);
	buf_u8(&m->pcs, 0);
	gen_elf_init(&m->g);
}

/* A pc table: pairs of value and the number of bytes for which it holds. */
static uint32_t pc_table(struct made *m, const int *pairs, size_t count)
{
	uint32_t at = (uint32_t)m->pcs.len;
	int value = -1;
	for (size_t i = 0; i < count; i += 2) {
		int delta = pairs[i] - value;
		buf_u8(&m->pcs, (uint8_t)((unsigned)delta << 1 ^ (unsigned)(delta >> 31)));
		for (unsigned n = (unsigned)pairs[i + 1];; n >>= 7) {
			buf_u8(&m->pcs, (uint8_t)(n > 127 ? n | 128 : n));
			if (n <= 127)
				break;
		}
		value = pairs[i];
	}
	buf_u8(&m->pcs, 0);
	return at;
}

/* The next function, of FUNCTION_BYTES; its code, to be filled. */
static uint8_t *function(struct made *m, const char *name, uint8_t flag, uint32_t pcsp)
{
	uint32_t offset = (uint32_t)m->functions.len;
	uint8_t *code = m->code + m->count * FUNCTION_BYTES;
	buf_u32(&m->entries, m->count++ * FUNCTION_BYTES);
	buf_u32(&m->entries, offset); /* the table's own length is added at the end */
	buf_u32(&m->functions, 0);
	buf_u32(&m->functions, (uint32_t)m->names.len);
	buf_zero(&m->functions, 8);
	buf_u32(&m->functions, pcsp);
	buf_zero(&m->functions, m->magic == MAGIC_1_20 ? 20 : 16);
	buf_u8(&m->functions, 0); /* id */
	buf_u8(&m->functions, flag);
	buf_zero(&m->functions, 2);
	buf_put(&m->names, name, strlen(name) + 1);
	return code;
}

static void put_table(struct made *m)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	uint64_t entries_len = 8 * m->count + 4;
	uint64_t names = 72, pcs = names + m->names.len, functions = pcs + m->pcs.len;
	buf_u32(&b, m->magic);
	buf_put(&b, "\0\0\1\10", 4);
	const uint64_t words[] = { m->count, 0, m->text_in_module ? 0 : TEXT, names, 0, 0, pcs,
		functions };
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		buf_u64(&b, words[i]);
	buf_put(&b, m->names.data, m->names.len);
	buf_put(&b, m->pcs.data, m->pcs.len);
	for (uint32_t i = 0; i < m->count; i++) {
		uint32_t entry[2];
		memcpy(entry, m->entries.data + 8 * i, 8);
		buf_u32(&b, entry[0]);
		buf_u32(&b, entry[1] + (uint32_t)entries_len);
	}
	buf_u32(&b, m->count * FUNCTION_BYTES);
	buf_put(&b, m->functions.data, m->functions.len);
	gen_section(&m->g, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, TABLE, b.data, b.len);
	uint64_t module[24] = { 1, TABLE, TABLE + names }; /* one word before it */
	module[1 + 22] = TEXT;
	if (m->text_in_module && !m->is_pie)
		gen_section(&m->g, ".go.module", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x700000,
			module, sizeof(module));
	const Elf64_Rela relocations[] = { { 0x700000, R_X86_64_RELATIVE, 5 },
		{ 0x700008, R_X86_64_RELATIVE, TABLE },
		{ 0x700010, R_X86_64_RELATIVE, (int64_t)(TABLE + names) },
		{ 0x700008 + 176, R_X86_64_RELATIVE, TEXT } };
	if (m->is_pie)
		gen_section(&m->g, ".rela", SHT_RELA, SHF_ALLOC, 0x800000, relocations,
			sizeof(relocations));
}

static enum status finish(struct made *m)
{
	uint32_t text = gen_section(&m->g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
		m->code, m->count * FUNCTION_BYTES);
	gen_load(&m->g, text, PF_R | PF_X);
	put_table(m);
	gen_elf_finish(&m->g);
	CHECK(objfile_open_bytes(m->g.file.data, m->g.file.len, "made", &m->obj, NULL) == OK);
	enum status s = unwind_table_build(m->obj, &m->t, &m->e);
	if (s == OK)
		CHECK_OK(unwind_table_check(m->t, &m->e), &m->e);
	return s;
}

static void end(struct made *m)
{
	unwind_table_free(m->t);
	objfile_close(m->obj);
	struct buf *all[] = { &m->names, &m->functions, &m->entries, &m->pcs };
	for (size_t i = 0; i < ARRAY_COUNT(all); i++)
		buf_deinit(all[i]);
	gen_elf_deinit(&m->g);
}

static struct unwind_rule rule_at(const struct made *m, uint64_t address)
{
	struct fileoff at;
	CHECK(objfile_fileoff_of(m->obj, (struct vaddr){ address }, &at));
	return unwind_table_find(m->t, at.v);
}

static bool is(struct unwind_rule r, unsigned cfa, int cfa_off, unsigned fp, int fp_off)
{
	return r.cfa == cfa && r.cfa_off == cfa_off && r.fp == fp && r.fp_off == fp_off;
}

static void plain_functions(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct made m;
		begin(&m, way == 1 ? MAGIC_1_18 : MAGIC_1_20);
		m.text_in_module = way >= 2;
		m.is_pie = way == 3;
		function(&m, "main.leaf", 0, pc_table(&m, (const int[]){ 0, 256 }, 2));
		function(&m, "main.f", 0,
			pc_table(&m, (const int[]){ 0, 1, 8, 7, 40, 200, 0, 48 }, 8));
		CHECK_OK(finish(&m), &m.e);
		CHECK(is(rule_at(&m, TEXT + 0xff), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
		CHECK(is(rule_at(&m, TEXT + 0x100), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
		CHECK(is(rule_at(&m, TEXT + 0x101), UNWIND_CFA_SP, 16, UNWIND_FP_SAVED, -16));
		CHECK(is(rule_at(&m, TEXT + 0x108), UNWIND_CFA_SP, 48, UNWIND_FP_SAVED, -16));
		CHECK(is(rule_at(&m, TEXT + 0x1cf), UNWIND_CFA_SP, 48, UNWIND_FP_SAVED, -16));
		CHECK(is(rule_at(&m, TEXT + 0x1d0), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
		CHECK(m.t->fde_count == 2 && m.t->bad_fdes == 0);
		end(&m);
	}
}

static void functions_that_switch_stacks(void **state)
{
	(void)state;
	static const uint8_t with_frame[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x3b, 0x83, 0xb8, 0, 0,
		0, 0x48, 0x8b, 0x62, 0x38, 0xff, 0xd7 };
	static const uint8_t without[] = { 0x90, 0x48, 0x8b, 0x66, 0x38, 0xff, 0xd0 };
	static const uint8_t morestack[] = { 0x48, 0x89, 0x6f, 0x60, 0x48, 0x8b, 0x63, 0x38, 0xe8 };
	struct made m;
	begin(&m, MAGIC_1_20);
	uint32_t framed = pc_table(&m, (const int[]){ 0, 1, 8, 99, 0, 156 }, 6);
	uint32_t bare = pc_table(&m, (const int[]){ 0, 256 }, 2);
	/* morestack is first: what systemstack tells is found wherever it is. */
	memcpy(function(&m, "runtime.morestack.abi0", 4, bare), morestack, sizeof(morestack));
	memcpy(function(&m, "runtime.systemstack.abi0", 4, framed), with_frame, sizeof(with_frame));
	memcpy(function(&m, "runtime.asmcgocall", 4, bare), without, sizeof(without));
	function(&m, "runtime.goexit", 5, bare);
	function(&m, "runtime.mcall", 4, bare);
	function(&m, "runtime.sigreturn__sigaction", 4, bare);
	function(&m, "main.systemstack", 4, bare);
	function(&m, "runtime.sigtramp.abi0", 5, framed);
	CHECK_OK(finish(&m), &m.e);
	CHECK(is(rule_at(&m, TEXT), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 8), UNWIND_CFA_GO_MORESTACK, 0xb8, 0, 0x60));
	CHECK(is(rule_at(&m, TEXT + 0x100), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x101), UNWIND_CFA_SP, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x104), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x163), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x164), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x204), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x205), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(rule_at(&m, TEXT + 0x300).cfa == UNWIND_CFA_STOP);
	CHECK(rule_at(&m, TEXT + 0x4fe).cfa == UNWIND_CFA_STOP);
	CHECK(rule_at(&m, TEXT + 0x4ff).cfa == UNWIND_CFA_SIGNAL); /* one byte early */
	CHECK(rule_at(&m, TEXT + 0x4ff).cfa_off == UNWIND_OFF_EARLY);
	CHECK(rule_at(&m, TEXT + 0x500).cfa == UNWIND_CFA_SIGNAL);
	CHECK(rule_at(&m, TEXT + 0x500).cfa_off == 0);
	/* It has a caller: where a signal is handled goes on to what was interrupted. */
	CHECK(is(rule_at(&m, TEXT + 0x701), UNWIND_CFA_SP, 16, UNWIND_FP_SAVED, -16));
	CHECK(rule_at(&m, TEXT + 0x5ff).cfa == UNWIND_CFA_SIGNAL);
	CHECK(is(rule_at(&m, TEXT + 0x600), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	end(&m);
}

/* Of each version of Go: they keep rbp in different places, and sp is on another stack in between.
 */
static void functions_that_call_the_vdso(void **state)
{
	(void)state;
	static const uint8_t pushed[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10 };
	static const uint8_t moved[] = { 0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x48,
		0x8d, 0x6c, 0x24, 0x10, 0x90 };
	/* Up to Go 1.20, by way of rbx. */
	static const uint8_t old_switch[] = { 0x90, 0x48, 0x8b, 0x5a, 0x38, 0x48, 0x89, 0xdc,
		0xff };
	static const uint8_t gogo[] = { 0x49, 0x89, 0xd6, 0x48, 0x8b, 0x23, 0x48, 0x8b };
	struct made m;
	begin(&m, MAGIC_1_20);
	uint32_t after =
		pc_table(&m, (const int[]){ 0, 1, 8, 7, 24, 50, 56, 100, 8, 20, 0, 78 }, 12);
	uint32_t before = pc_table(&m, (const int[]){ 0, 4, 24, 200, 0, 52 }, 6);
	uint32_t bare = pc_table(&m, (const int[]){ 0, 256 }, 2);
	memcpy(function(&m, "time.now", 4, after), pushed, sizeof(pushed));
	memcpy(function(&m, "runtime.nanotime1.abi0", 4, before), moved, sizeof(moved));
	memcpy(function(&m, "gogo", 4, bare), gogo, sizeof(gogo));
	function(&m, "runtime.vgetrandom1", 4, bare); /* without the code that is known */
	memcpy(function(&m, "main.now", 4, after), pushed, sizeof(pushed));
	memcpy(function(&m, "runtime.systemstack.abi0", 4, bare), old_switch, sizeof(old_switch));
	CHECK_OK(finish(&m), &m.e);
	CHECK(is(rule_at(&m, TEXT), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 1), UNWIND_CFA_SP, 16, UNWIND_FP_SAVED, -16));
	for (uint64_t at = 4; at < 178; at++)
		CHECK(is(rule_at(&m, TEXT + at), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 178), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x10d), UNWIND_CFA_SP, 32, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x10e), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x1cb), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x1cc), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x205), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(rule_at(&m, TEXT + 0x206).cfa == UNWIND_CFA_STOP);
	CHECK(is(rule_at(&m, TEXT + 0x380), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x400 + 100), UNWIND_CFA_SP, 64, UNWIND_FP_SAVED, -16));
	CHECK(is(rule_at(&m, TEXT + 0x507), UNWIND_CFA_SP, 8, UNWIND_FP_SAME, 0));
	CHECK(is(rule_at(&m, TEXT + 0x508), UNWIND_CFA_SWITCH, 16, UNWIND_FP_SAVED, -16));
	end(&m);
}

static void what_is_broken_costs_itself(void **state)
{
	(void)state;
	struct made m;
	begin(&m, MAGIC_1_20);
	uint32_t good = pc_table(&m, (const int[]){ 0, 256 }, 2);
	function(&m, "main.a", 0, 1u << 30);                                /* behind the end */
	function(&m, "main.b", 0, pc_table(&m, (const int[]){ 0, 16 }, 2)); /* ends early */
	function(&m, "main.c", 0, pc_table(&m, (const int[]){ -9, 256 }, 2));
	function(&m, "runtime.morestack", 4, good); /* without the code that is known */
	function(&m, "main.d", 0, good);
	CHECK_OK(finish(&m), &m.e);
	CHECK(rule_at(&m, TEXT + 0x80).cfa == UNWIND_CFA_UNSUPPORTED);
	CHECK(rule_at(&m, TEXT + 0x10f).cfa == UNWIND_CFA_SP);
	CHECK(rule_at(&m, TEXT + 0x110).cfa == UNWIND_CFA_UNSUPPORTED);
	CHECK(rule_at(&m, TEXT + 0x200).cfa == UNWIND_CFA_UNSUPPORTED);
	CHECK(rule_at(&m, TEXT + 0x300).cfa == UNWIND_CFA_STOP);
	CHECK(rule_at(&m, TEXT + 0x400).cfa == UNWIND_CFA_SP);
	CHECK(m.t->bad_fdes == 1);
	end(&m);
}

static void files_that_are_none(void **state)
{
	(void)state;
	static const struct {
		size_t at;
		uint64_t value;
	} lies[] = { { 0, 0x1234 }, { 4, 0x0801000100000000 }, { 8, UINT64_MAX }, { 32, 1 << 30 },
		{ 56, 1 << 30 }, { 64, UINT64_MAX }, { 24, 0 } };
	for (size_t i = 0; i < ARRAY_COUNT(lies); i++) {
		struct made m;
		begin(&m, MAGIC_1_20);
		function(&m, "main.f", 0, pc_table(&m, (const int[]){ 0, 256 }, 2));
		CHECK_OK(finish(&m), &m.e);
		uint64_t at = objfile_section(m.obj, ".gopclntab")->offset + lies[i].at;
		memcpy(m.g.file.data + at, &lies[i].value, lies[i].at == 0 ? 4 : 8);
		struct golang *g = NULL;
		struct work work;
		work_init(&work, NULL, NULL);
		CHECK(golang_open(m.obj, &work, &g, &m.e) == E_NOTFOUND && !g);
		end(&m);
	}
}

TEST_MAIN(cmocka_unit_test(plain_functions), cmocka_unit_test(functions_that_switch_stacks),
	cmocka_unit_test(functions_that_call_the_vdso),
	cmocka_unit_test(what_is_broken_costs_itself), cmocka_unit_test(files_that_are_none))
