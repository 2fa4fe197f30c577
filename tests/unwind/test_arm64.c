/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "unwind/arm64.h"
#include "unwind/unwind.h"

#define FP 29
#define SP 31
#define OFF(n)                   \
	{                        \
		CFI_OFFSET, (n), \
		{                \
			0        \
		}                \
	}

/* clang-format off */
static const struct {
	const char *name; struct cfi_state state; bool is_signal; struct unwind_rule want;
} cases[] = {
	{ "leaf", { SP, 0, { 0 } }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 0, 0, 0 } },
	{ "lr said to be the same", { SP, 16, { 0 }, .ra = { CFI_SAME, 0, { 0 } } }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, 0 } },
	{ "frame record", { SP, 48, { 0 }, .fp = OFF(-48), .ra = OFF(-40) }, false, { UNWIND_CFA_SP, UNWIND_FP_SAVED, 48, -48, -40 } },
	{ "by x29", { FP, 48, { 0 }, .fp = OFF(-48), .ra = OFF(-40) }, false, { UNWIND_CFA_FP, UNWIND_FP_SAVED, 48, -48, -40 } },
	{ "outermost", { SP, 0, { 0 }, .ra = { CFI_UNDEFINED, 0, { 0 } } }, false, { UNWIND_CFA_STOP, 0, 0, 0, 0 } },
	{ "signal", { SP, 0, { 0 } }, true, { UNWIND_CFA_SIGNAL, 0, 0, 0, 0 } },
	{ "x29 undefined", { SP, 16, { 0 }, .fp = { CFI_UNDEFINED, 0, { 0 } }, .ra = OFF(-8) }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 16, 0, -8 } },
	{ "x29 far away", { SP, 16, { 0 }, .fp = OFF(-40000), .ra = OFF(-8) }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 16, 0, -8 } },
	{ "a frame of 40 KB", { SP, 40000, { 0 }, .ra = OFF(-8) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "by x9", { 9, 16, { 0 }, .ra = OFF(-8) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "lr in x9", { SP, 16, { 0 }, .ra = { CFI_REGISTER, 9, { 0 } } }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "lr at the CFA", { SP, 16, { 0 }, .ra = OFF(0) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "sp is not the CFA", { SP, 16, { 0 }, .sp = OFF(-16), .ra = OFF(-8) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
};
/* clang-format on */

static void says_rows_as_rules(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct unwind_rule got = arm64_rule(&c->state, c->is_signal, false);
		CHECK_CASE(c, memcmp(&got, &c->want, sizeof(got)) == 0);
	}
	struct cfi_state expression = { SP, 0, STR("\x8f") };
	CHECK(arm64_rule(&expression, false, false).cfa == UNWIND_CFA_UNSUPPORTED);
}

static uint32_t rows_of(
	const char *section, const uint32_t *code, size_t len, struct machine_row *out)
{
	return arm64_section_rows(str_of(section), (const uint8_t *)code, len, out);
}

static void knows_code_without_information(void **state)
{
	(void)state;
	static const uint32_t plt[] = { 0xd503245f, 0xa9bf7bf0, 0x90000090 };
	static const uint32_t init[] = { 0xd503233f, 0xa9bf7bfd, 0x910003fd, 0x94000000, 0xa8c17bfd,
		0xd50323bf, 0xd65f03c0 };
	static const uint32_t sigreturn[] = { 0xd503201f, 0xd2801168, 0xd4000001 };
	static const uint32_t crt1[] = { 0xd503245f, 0xd280001d };
	struct machine_row rows[MACHINE_ROWS_MAX];
	size_t len = 0;
	CHECK(rows_of(".plt", plt, sizeof(plt), rows) == 3);
	CHECK(rows[1].offset == 8 && rows[1].rule.cfa_off == 16 && rows[1].rule.ra_off == -8);
	CHECK(rows[2].offset == 32 && rows[2].rule.cfa_off == 0 && rows[2].rule.ra_off == 0);
	CHECK(rows_of(".plt", init, sizeof(init), rows) == 1);
	CHECK(rows_of(".init", init, sizeof(init), rows) == 3);
	CHECK(rows[1].offset == 8 && rows[1].rule.fp_off == -16 && rows[2].offset == 20);
	CHECK(rows_of(".init", init, 16, rows) == 0); /* the end is not there */
	CHECK(rows_of(".init", plt, sizeof(plt), rows) == 0);
	CHECK(rows_of(".text", init, sizeof(init), rows) == 0);
	const uint8_t *s = (const uint8_t *)sigreturn;
	CHECK(arm64_find_sigreturn(s, sizeof(sigreturn), &len) == 4 && len == 8);
	CHECK(arm64_find_sigreturn(s, sizeof(sigreturn) - 1, &len) == -1);
	CHECK(arm64_find_sigreturn(s + 2, sizeof(sigreturn) - 2, &len) == -1); /* no instruction */
	CHECK(arm64_is_entry((const uint8_t *)crt1, sizeof(crt1)));
	CHECK(!arm64_is_entry((const uint8_t *)init, sizeof(init)));
	CHECK(!arm64_is_entry((const uint8_t *)crt1, 4));
}

/* A CIE as gcc writes it: code_align 4, data_align -8, x30, CFA = sp; a function that signs its
 * return address and makes a frame record. */
static void a_file(void **state)
{
	(void)state;
	static const uint8_t cie[] = { 16, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 4, 0x78, 30, 1,
		0x1b, 0x0c, 31, 0 };
	/* advance 1; negate_ra_state; advance 1; def_cfa_offset 32, x29 at -32, x30 at -24 */
	static const uint8_t fde[] = { 28, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0x41,
		0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0, 0, 0, 0, 0, 0 };
	static uint8_t code[0x100];
	struct gen_elf g;
	struct objfile *obj = NULL;
	struct unwind_table *t = NULL;
	struct err e = { 0 };
	gen_elf_init(&g);
	g.header.e_machine = EM_AARCH64;
	uint32_t text = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code));
	gen_load(&g, text, PF_R | PF_X);
	uint32_t s =
		gen_section(&g, ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0x2000, cie, sizeof(cie));
	buf_put(&g.sections[s].bytes, fde, sizeof(fde));
	g.sections[s].header.sh_size = sizeof(cie) + sizeof(fde);
	gen_patch_u32(
		&g.sections[s].bytes, sizeof(cie) + 8, (uint32_t)(0x1000 - (0x2000 + 20 + 8)));
	gen_elf_finish(&g);
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	CHECK_OK(unwind_table_build(obj, &t, &e), &e);
	CHECK_OK(unwind_table_check(t, &e), &e);
	uint64_t at = objfile_section(obj, ".text")->offset;
	struct unwind_rule bare = { UNWIND_CFA_SP, UNWIND_FP_SAME, 0, 0, 0 };
	struct unwind_rule framed = { UNWIND_CFA_SP, UNWIND_FP_SAVED, 32, -32, -24 };
	struct unwind_rule got = unwind_table_find(t, at + 7);
	CHECK(memcmp(&got, &bare, sizeof(got)) == 0);
	got = unwind_table_find(t, at + 8);
	CHECK(memcmp(&got, &framed, sizeof(got)) == 0);
	CHECK(t->bad_fdes == 0);
	unwind_table_free(t);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(says_rows_as_rules), cmocka_unit_test(knows_code_without_information),
	cmocka_unit_test(a_file))
