/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "gen/elf.h"
#include "unwind/cfi.h"

#define RBP 6
#define RSP 7
#define START 0x1000
#define LENGTH 0x1000

static const struct cfi_registers regs = { .sp = RSP, .fp = RBP, .bx = CFI_NO_REGISTER };

struct run {
	struct gen_cfi c;
	struct cfi_section s;
	struct cfi_cie cie;
	struct cfi_fde fde;
	struct cfi_rows rows;
};

static void begin_with(struct run *r, const uint8_t *bytes, size_t len)
{
	gen_cfi_init(&r->c, 0x100000);
	size_t cie = gen_cie(&r->c);
	size_t offset = gen_fde(&r->c, cie, START, LENGTH, bytes, len);
	r->s = (struct cfi_section){ buf_view(&r->c.bytes), 0x100000, true, false, 0, 0 };
	struct cfi_entry entry;
	bool broken = false;
	CHECK(cfi_read_cie(&r->s, &regs, cie, &r->cie) == OK);
	CHECK(cfi_next_entry(&r->s, &offset, &entry, &broken));
	CHECK(cfi_read_fde(&r->s, &entry, &r->cie, &r->fde) == OK);
	CHECK(r->fde.start == START && r->fde.length == LENGTH);
	cfi_rows_begin(&r->rows, &r->s, &regs, &r->cie, &r->fde);
}

#define BEGIN(r, ...) \
	begin_with((r), (const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))

static void end(struct run *r)
{
	buf_deinit(&r->c.bytes);
}

/* The next row is [START + from, START + to). */
static bool next_is(struct run *r, uint64_t from, uint64_t to)
{
	return cfi_rows_next(&r->rows) && r->rows.at == START + from && r->rows.next == START + to;
}

static bool is_last(struct run *r)
{
	return !cfi_rows_next(&r->rows) && !r->rows.failed;
}

static void a_prologue(void **state)
{
	(void)state;
	struct run r;
	/* push %rbp; mov %rsp, %rbp; …; leave */
	BEGIN(&r, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, RBP, 0x02, 100, 0x0c, RSP, 8, 0xc6);
	CHECK(next_is(&r, 0, 1));
	CHECK(r.rows.state.cfa_register == RSP && r.rows.state.cfa_offset == 8);
	CHECK(r.rows.state.ra.kind == CFI_OFFSET && r.rows.state.ra.offset == -8);
	CHECK(r.rows.state.fp.kind == CFI_UNSPECIFIED);
	CHECK(next_is(&r, 1, 4));
	CHECK(r.rows.state.cfa_offset == 16 && r.rows.state.fp.offset == -16);
	CHECK(next_is(&r, 4, 104));
	CHECK(r.rows.state.cfa_register == RBP && r.rows.state.cfa_offset == 16);
	CHECK(next_is(&r, 104, LENGTH));
	CHECK(r.rows.state.cfa_register == RSP && r.rows.state.fp.kind == CFI_UNSPECIFIED);
	CHECK(is_last(&r));
	end(&r);
}

static void advances_of_all_widths(void **state)
{
	(void)state;
	struct run r;
	BEGIN(&r, 0x42, 0x0e, 1, 0x02, 200, 0x0e, 2, 0x03, 0x00, 0x01, 0x0e, 3, 0x04, 0x00, 0x02, 0,
		0, 0x0e, 4);
	CHECK(next_is(&r, 0, 2) && next_is(&r, 2, 202) && next_is(&r, 202, 458) &&
		next_is(&r, 458, 970) && next_is(&r, 970, LENGTH) && is_last(&r));
	end(&r);
	/* advance by nothing makes no row; behind the end makes no row either */
	BEGIN(&r, 0x40, 0x0e, 1, 0x40, 0x0e, 2, 0x04, 0, 0, 1, 0, 0x0e, 3, 0x41);
	CHECK(next_is(&r, 0, LENGTH) && r.rows.state.cfa_offset == 2 && is_last(&r));
	end(&r);
}

static void set_loc_is_encoded(void **state)
{
	(void)state;
	struct run r;
	BEGIN(&r, 0x0e, 16, 0x01, 0, 0, 0, 0, 0x0e, 24);
	/* pcrel, sdata4: from its own place to START + 0x20 */
	size_t at = (size_t)(r.fde.instructions.p - r.s.bytes.p) + 3;
	gen_patch_u32(&r.c.bytes, at, (uint32_t)(START + 0x20 - (0x100000 + at)));
	CHECK(next_is(&r, 0, 0x20) && r.rows.state.cfa_offset == 16);
	CHECK(next_is(&r, 0x20, LENGTH) && r.rows.state.cfa_offset == 24 && is_last(&r));
	/* backwards it is wrong */
	gen_patch_u32(&r.c.bytes, at, (uint32_t)(START - 1 - (0x100000 + at)));
	cfi_rows_begin(&r.rows, &r.s, &regs, &r.cie, &r.fde);
	CHECK(!cfi_rows_next(&r.rows) && r.rows.failed);
	end(&r);
}

static void remembers_and_restores(void **state)
{
	(void)state;
	struct run r;
	BEGIN(&r, 0x0e, 16, 0x86, 2, 0x41, 0x0a, 0x0e, 32, 0x07, RBP, 0x41, 0x0b, 0x41);
	CHECK(next_is(&r, 0, 1) && r.rows.state.cfa_offset == 16);
	CHECK(next_is(&r, 1, 2) && r.rows.state.cfa_offset == 32);
	CHECK(r.rows.state.fp.kind == CFI_UNDEFINED);
	CHECK(next_is(&r, 2, 3) && r.rows.state.cfa_offset == 16);
	CHECK(r.rows.state.fp.kind == CFI_OFFSET && r.rows.state.fp.offset == -16);
	end(&r);
	BEGIN(&r, 0x0b);
	CHECK(!cfi_rows_next(&r.rows) && r.rows.failed); /* nothing remembered */
	end(&r);
	uint8_t many[CFI_REMEMBER_MAX + 1];
	memset(many, 0x0a, sizeof(many));
	begin_with(&r, many, CFI_REMEMBER_MAX);
	CHECK(next_is(&r, 0, LENGTH));
	end(&r);
	begin_with(&r, many, CFI_REMEMBER_MAX + 1);
	CHECK(!cfi_rows_next(&r.rows) && r.rows.failed);
	end(&r);
}

static void restores_to_the_cie(void **state)
{
	(void)state;
	struct run r;
	BEGIN(&r, 0x86, 2, 0x07, 16, 0x41, 0xc6, 0x06, 16, 0x41);
	CHECK(next_is(&r, 0, 1));
	CHECK(r.rows.state.fp.kind == CFI_OFFSET && r.rows.state.ra.kind == CFI_UNDEFINED);
	CHECK(next_is(&r, 1, 2));
	CHECK(r.rows.state.fp.kind == CFI_UNSPECIFIED);
	CHECK(r.rows.state.ra.kind == CFI_OFFSET && r.rows.state.ra.offset == -8);
	end(&r);
}

/* clang-format off */
static const struct {
	const char *name; uint8_t bytes[16]; size_t len; uint64_t reg; enum cfi_kind kind; int64_t offset;
} rules[] = {
	{ "offset",                   { 0x86, 3 },                      2, RBP, CFI_OFFSET, -24 },
	{ "offset_extended",          { 0x05, 16, 3 },                  3, 16,  CFI_OFFSET, -24 },
	{ "offset_extended_sf",       { 0x11, RBP, 0x7e },              3, RBP, CFI_OFFSET, 16 },
	{ "negative_offset_extended", { 0x2f, RBP, 2 },                 3, RBP, CFI_OFFSET, 16 },
	{ "undefined",                { 0x07, RBP },                    2, RBP, CFI_UNDEFINED, 0 },
	{ "same_value",               { 0x08, RBP },                    2, RBP, CFI_SAME, 0 },
	{ "register",                 { 0x09, RBP, 3 },                 3, RBP, CFI_REGISTER, 3 },
	{ "val_offset",               { 0x14, RSP, 1 },                 3, RSP, CFI_VAL_OFFSET, -8 },
	{ "val_offset_sf",            { 0x15, RSP, 0x7f },              3, RSP, CFI_VAL_OFFSET, 8 },
	{ "expression",               { 0x10, RBP, 2, 0x76, 0 },        5, RBP, CFI_EXPRESSION, 0 },
	{ "val_expression",           { 0x16, RBP, 2, 0x76, 0 },        5, RBP, CFI_VAL_EXPRESSION, 0 },
	{ "of registers not followed", { 0x83, 2, 0x05, 12, 3, 0x07, 13, 0x10, 14, 1, 0x96, 0x09, 15, 1, 0xc3 }, 15, RBP, CFI_UNSPECIFIED, 0 },
	{ "args_size and nop",        { 0x2e, 0x80, 0x01, 0x00, 0x2d }, 5, RBP, CFI_UNSPECIFIED, 0 },
	{ "signed, also with the pc", { 0x2c, 0x86, 3, 0x2d, 0x2c },    5, RBP, CFI_OFFSET, -24 },
};
/* clang-format on */

static void rules_of_registers(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, rules) {
		struct run r;
		begin_with(&r, c->bytes, c->len);
		CHECK_CASE(c, next_is(&r, 0, LENGTH));
		const struct cfi_state *s = &r.rows.state;
		const struct cfi_rule *rule = c->reg == RBP   ? &s->fp
					      : c->reg == RSP ? &s->sp
							      : &s->ra;
		CHECK_CASE(c, rule->kind == c->kind && rule->offset == c->offset);
		bool has_text = c->kind == CFI_EXPRESSION || c->kind == CFI_VAL_EXPRESSION;
		CHECK_CASE(c, !has_text || str_eq(rule->expression, STR("\x76\0")));
		CHECK_CASE(c, is_last(&r));
		end(&r);
	}
}

static void forms_of_the_cfa(void **state)
{
	(void)state;
	struct run r;
	BEGIN(&r, 0x12, RBP, 0x7e, 0x41, 0x13, 0x7d, 0x41, 0x0f, 2, 0x77, 8, 0x41, 0x0d, RSP, 0x41);
	CHECK(next_is(&r, 0, 1));
	CHECK(r.rows.state.cfa_register == RBP && r.rows.state.cfa_offset == 16);
	CHECK(next_is(&r, 1, 2) && r.rows.state.cfa_offset == 24);
	CHECK(next_is(&r, 2, 3) && str_eq(r.rows.state.cfa_expression, STR("\x77\x08")));
	CHECK(next_is(&r, 3, 4) && !r.rows.state.cfa_expression.p);
	CHECK(r.rows.state.cfa_register == RSP && r.rows.state.cfa_offset == 24);
	end(&r);
}

/* clang-format off */
static const struct {
	const char *name; uint8_t bytes[8]; size_t len;
} broken[] = {
	{ "opcode that is none",       { 0x3f }, 1 },
	{ "def_cfa, cut",              { 0, 0, 0x0c, 0x87 }, 4 },
	{ "expression passes the end", { 0x0f, 0x7f, 0x77 }, 3 },
	{ "empty CFA expression",      { 0x0f, 0 }, 2 },
	{ "advance, cut",              { 0, 0, 0, 0x03 }, 4 },
};
/* clang-format on */

static void broken_instructions_fail(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, broken) {
		struct run r;
		begin_with(&r, c->bytes, c->len);
		/* without the padding, so that the end is where it says */
		r.fde.instructions.len = c->len;
		cfi_rows_begin(&r.rows, &r.s, &regs, &r.cie, &r.fde);
		CHECK_CASE(c, !cfi_rows_next(&r.rows) && r.rows.failed && r.rows.next == START);
		CHECK_CASE(c, !cfi_rows_next(&r.rows));
		end(&r);
	}
}

TEST_MAIN(cmocka_unit_test(a_prologue), cmocka_unit_test(advances_of_all_widths),
	cmocka_unit_test(set_loc_is_encoded), cmocka_unit_test(remembers_and_restores),
	cmocka_unit_test(restores_to_the_cie), cmocka_unit_test(rules_of_registers),
	cmocka_unit_test(forms_of_the_cfa), cmocka_unit_test(broken_instructions_fail))
