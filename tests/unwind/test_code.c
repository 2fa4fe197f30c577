/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "unwind/code.h"

/* A segment over bytes [offset, offset + size) of the file. */
static void segment(
	struct gen_elf *g, uint64_t offset, uint64_t vaddr, uint64_t size, uint32_t flags)
{
	gen_segment(g, UINT32_MAX, PT_LOAD, flags);
	Elf64_Phdr *h = &g->segments[g->segment_count - 1].header;
	h->p_offset = offset;
	h->p_vaddr = vaddr;
	h->p_filesz = size;
	h->p_memsz = size;
}

static struct objfile *open_it(struct gen_elf *g)
{
	static uint8_t bytes[0x5000];
	struct objfile *obj = NULL;
	gen_section(g, ".bytes", SHT_PROGBITS, 0, 0, bytes, sizeof(bytes));
	gen_elf_finish(g);
	CHECK(objfile_open_bytes(g->file.data, g->file.len, "made", &obj, NULL) == OK);
	return obj;
}

static void segments_in_order_and_apart(void **state)
{
	(void)state;
	struct gen_elf g;
	gen_elf_init(&g);
	segment(&g, 0x3000, 0x403000, 0x1000, PF_R | PF_X);
	segment(&g, 0x1000, 0x401000, 0x1000, PF_R | PF_X);
	segment(&g, 0x1800, 0x801800, 0x1000, PF_R | PF_X);   /* half of it is the one before */
	segment(&g, 0x1900, 0x901900, 0x100, PF_R | PF_X);    /* all of it is */
	segment(&g, 0x2800, 0x402800, 0x100, PF_R | PF_W);    /* no code */
	segment(&g, 0x4800, 0x404800, 0x100000, PF_R | PF_X); /* passes the end of the file */
	segment(&g, 0x900000, 0x500000, 0x1000, PF_R | PF_X); /* is behind it */
	segment(&g, 0x2900, 0x402900, 0, PF_R | PF_X);        /* empty */
	struct objfile *obj = open_it(&g);
	struct code c;
	struct err e = { 0 };
	struct work work;
	work_init(&work, NULL, NULL);
	CHECK_OK(code_init(&c, obj, &work, &e), &e);
	CHECK(c.segments.len == 4);
	CHECK(c.segments.v[0].begin == 0x1000 && c.segments.v[0].end == 0x2000);
	CHECK(c.segments.v[1].begin == 0x2000 && c.segments.v[1].end == 0x2800);
	CHECK(c.segments.v[1].vaddr == 0x802000);
	CHECK(c.segments.v[2].begin == 0x3000);
	CHECK(c.segments.v[3].begin == 0x4800 && c.segments.v[3].end == objfile_size(obj));
	CHECK(code_find(&c, 0x401fff) == &c.segments.v[0] && !code_find(&c, 0x402000));
	CHECK(code_find(&c, 0x802000) == &c.segments.v[1] && !code_find(&c, 0x801800));
	CHECK(!code_find(&c, 0) && !code_find(&c, UINT64_MAX));
	CHECK(c.entry == UINT64_MAX);
	code_deinit(&c);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void a_gap_without_sections(void **state)
{
	(void)state;
	struct gen_elf g;
	gen_elf_init(&g);
	g.header.e_type = ET_EXEC;
	g.header.e_entry = 0x401200;
	segment(&g, 0x1000, 0x401000, 0x1000, PF_R | PF_X);
	struct objfile *obj = open_it(&g);
	struct code c;
	struct err e = { 0 };
	struct unwind_table t = { 0 };
	struct work work;
	work_init(&work, NULL, NULL);
	CHECK_OK(code_init(&c, obj, &work, &e), &e);
	CHECK(c.entry == 0x1200 && c.entry_is_program);
	struct pages *p = pages_new(PAGES_BYTES_MAX);
	code_put_gap(&c, 0x1000, 0x2000, p);
	CHECK(pages_finish(p, &t) == OK);
	CHECK(unwind_table_find(&t, 0x11ff).cfa == UNWIND_CFA_NONE);
	CHECK(unwind_table_find(&t, 0x1200).cfa == UNWIND_CFA_STOP);
	CHECK(unwind_table_find(&t, 0x12ff).cfa == UNWIND_CFA_STOP);
	CHECK(unwind_table_find(&t, 0x1200 + CODE_ENTRY_BYTES_MAX).cfa == UNWIND_CFA_NONE);
	pages_free(p);
	free(t.pages);
	free(t.memory);
	code_deinit(&c);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(segments_in_order_and_apart), cmocka_unit_test(a_gap_without_sections))
