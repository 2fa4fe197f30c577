/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "unwind/x86.h"

#define RBP 6
#define RSP 7

#define EXPR(...)                                                                                  \
	{                                                                                          \
		(const char *)(const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }) \
	}
#define OFF(n)                   \
	{                        \
		CFI_OFFSET, (n), \
		{                \
			0        \
		}                \
	}
#define RA8 OFF(-8)

/* clang-format off */
static const struct {
	const char *name; struct cfi_state state; bool is_signal; struct unwind_rule want;
} cases[] = {
	{ "function entry", { RSP, 8, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 } },
	{ "no word of the return address", { RSP, 8, { 0 } }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 } },
	{ "by rbp", { RBP, 16, { 0 }, .fp = OFF(-16), .ra = RA8 }, false, { UNWIND_CFA_FP, UNWIND_FP_SAVED, 16, -16, -8 } },
	{ "rbp said to be the same", { RSP, 8, { 0 }, .fp = { CFI_SAME, 0, { 0 } }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 } },
	{ "outermost", { RSP, 8, { 0 }, .ra = { CFI_UNDEFINED, 0, { 0 } } }, false, { UNWIND_CFA_STOP, 0, 0, 0, 0 } },
	{ "signal frame", { RSP, 8, { 0 }, .ra = { CFI_EXPRESSION, 0, EXPR(0x77, 0xa8, 1) } }, true, { UNWIND_CFA_SIGNAL, 0, 0, 0, 0 } },
	{ "return address elsewhere", { RSP, 24, { 0 }, .ra = OFF(-24) }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 24, 0, -24 } },
	/* glibc's vfork */
	{ "return address in a register", { RSP, 0, { 0 }, .ra = { CFI_REGISTER, 5, { 0 } } }, false, { UNWIND_CFA_RA_REGISTER, UNWIND_FP_SAME, 0, 0, 5 } },
	{ "return address in a wide register", { RSP, 0, { 0 }, .ra = { CFI_REGISTER, 17, { 0 } } }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "return address in a register, by rbp", { RBP, 16, { 0 }, .ra = { CFI_REGISTER, 5, { 0 } } }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "return address the same", { RSP, 8, { 0 }, .ra = { CFI_SAME, 0, { 0 } } }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	/* _dl_runtime_resolve */
	{ "by rbx", { 3, 8, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_REGISTER, UNWIND_FP_SAME, 8, 0, 3 } },
	{ "by r15", { 15, 8, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_REGISTER, UNWIND_FP_SAME, 8, 0, 15 } },
	{ "by no register of ours", { 17, 8, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "by rbx, far away", { 3, 40000, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "by rbx, return address elsewhere", { 3, 8, { 0 }, .ra = OFF(-16) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "a frame of 40 KB", { RSP, 40000, { 0 }, .fp = OFF(-16), .ra = RA8 }, false, { UNWIND_CFA_SP_WORDS, UNWIND_FP_SAVED, 5000, -16, 0 } },
	{ "a frame of 500,112", { RSP, 500112, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_SP_WORDS, UNWIND_FP_SAME, 62514 - 65536, 0, 0 } },
	{ "a frame of 8 MiB", { RSP, 8388616, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_SP_WORDS, UNWIND_FP_SAME, 1, 0, 16 } },
	{ "a frame beyond all", { RSP, 1ll << 35, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "a large frame, return address elsewhere", { RSP, 40000, { 0 }, .ra = OFF(-16) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "a large frame of no whole words", { RSP, 40001, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "a large frame by rbp", { RBP, 40000, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "a frame of 32767", { RSP, 32767, { 0 }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 32767, 0, -8 } },
	{ "rbp saved too far away", { RSP, 8, { 0 }, .fp = OFF(-40000), .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 8, 0, -8 } },
	{ "rbp in a register", { RSP, 8, { 0 }, .fp = { CFI_REGISTER, 0, { 0 } }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 8, 0, -8 } },
	{ "rbp undefined", { RSP, 8, { 0 }, .fp = { CFI_UNDEFINED, 0, { 0 } }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 8, 0, -8 } },
	{ "rsp is the CFA, said", { RSP, 8, { 0 }, .sp = { CFI_VAL_OFFSET, 0, { 0 } }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 } },
	{ "rsp is not the CFA", { RSP, 8, { 0 }, .sp = { CFI_VAL_OFFSET, 8, { 0 } }, .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "rsp saved", { RSP, 8, { 0 }, .sp = OFF(-16), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	/* gcc, realigned stack: CFA is at rbp-8, rbp at rbp+0 */
	{ "realigned", { RSP, 8, EXPR(0x76, 0x78, 0x06), .fp = { CFI_EXPRESSION, 0, EXPR(0x76, 0) }, .ra = RA8 }, false, { UNWIND_CFA_DEREF_FP, UNWIND_FP_AT_FP, -8, 0, 0 } },
	/* OpenSSL */
	{ "deref rsp", { RSP, 8, EXPR(0x77, 40, 0x06, 0x23, 8), .fp = OFF(-16), .ra = RA8 }, false, { UNWIND_CFA_DEREF_SP, UNWIND_FP_SAVED, 40, -16, 8 } },
	{ "deref, lit plus", { RSP, 8, EXPR(0x77, 0x90, 1, 0x06, 0x38, 0x22), .ra = RA8 }, false, { UNWIND_CFA_DEREF_SP, UNWIND_FP_SAME, 144, 0, 8 } },
	{ "deref, const1u plus", { RSP, 8, EXPR(0x77, 16, 0x06, 0x08, 200, 0x22), .ra = RA8 }, false, { UNWIND_CFA_DEREF_SP, UNWIND_FP_SAME, 16, 0, 200 } },
	{ "deref twice", { RSP, 8, EXPR(0x77, 16, 0x06, 0x06), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "deref, other return address", { RSP, 8, EXPR(0x77, 16, 0x06), .ra = OFF(-16) }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "breg alone", { RSP, 8, EXPR(0x77, 24), .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAME, 24, 0, -8 } },
	{ "breg plus", { RSP, 8, EXPR(0x76, 8, 0x23, 8), .ra = RA8 }, false, { UNWIND_CFA_FP, UNWIND_FP_SAME, 16, 0, -8 } },
	{ "breg of r10", { RSP, 8, EXPR(0x7a, 8), .ra = RA8 }, false, { UNWIND_CFA_REGISTER, UNWIND_FP_SAME, 8, 0, 10 } },
	{ "deref of r10", { RSP, 8, EXPR(0x7a, 8, 0x06), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "breg, cut", { RSP, 8, EXPR(0x77), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "breg and something", { RSP, 8, EXPR(0x77, 8, 0x96), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "PLT", { RSP, 8, EXPR(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22), .ra = RA8 }, false, { UNWIND_CFA_PLT, UNWIND_FP_SAME, 11, 0, -8 } },
	{ "PLT of IBT", { RSP, 8, EXPR(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22), .ra = RA8 }, false, { UNWIND_CFA_PLT, UNWIND_FP_SAME, 9, 0, -8 } },
	{ "PLT, another shift", { RSP, 8, EXPR(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x34, 0x24, 0x22), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "PLT, N of 16", { RSP, 8, EXPR(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x40, 0x2a, 0x33, 0x24, 0x22), .ra = RA8 }, false, { UNWIND_CFA_UNSUPPORTED, 0, 0, 0, 0 } },
	{ "rbp by expression from rsp", { RSP, 32, { 0 }, .fp = { CFI_EXPRESSION, 0, EXPR(0x77, 16) }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_SAVED, 32, -16, -8 } },
	{ "rbp by expression from rbp", { RBP, 16, { 0 }, .fp = { CFI_EXPRESSION, 0, EXPR(0x76, 0) }, .ra = RA8 }, false, { UNWIND_CFA_FP, UNWIND_FP_SAVED, 16, -16, -8 } },
	{ "rbp by a longer expression", { RSP, 32, { 0 }, .fp = { CFI_EXPRESSION, 0, EXPR(0x77, 16, 0x06) }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 32, 0, -8 } },
	{ "rbp is an expression", { RSP, 32, { 0 }, .fp = { CFI_VAL_EXPRESSION, 0, EXPR(0x77, 16) }, .ra = RA8 }, false, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 32, 0, -8 } },
};
/* clang-format on */

static void says_rows_as_rules(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct unwind_rule got = x86_rule(&c->state, c->is_signal, false);
		if (memcmp(&got, &c->want, sizeof(got)) != 0)
			print_error("got %u fp %u %d %d %d\n", got.cfa, got.fp, got.cfa_off,
				got.fp_off, got.ra_off);
		CHECK_CASE(c, memcmp(&got, &c->want, sizeof(got)) == 0);
	}
}

/* clang-format off */
static const struct {
	const char *name; struct cfi_state state; struct unwind_rule want;
} bx_cases[] = {
	{ "untouched", { RSP, 8, { 0 }, .ra = RA8 }, { UNWIND_CFA_SP, UNWIND_FP_SAME | UNWIND_BX_SAME, 8, 0, -8 } },
	{ "saved", { RSP, 24, { 0 }, .fp = OFF(-16), .bx = OFF(-24), .ra = RA8 }, { UNWIND_CFA_SP, UNWIND_FP_SAVED | UNWIND_BX_SAVED, 24, -16, -24 } },
	{ "saved, by rbp", { RBP, 16, { 0 }, .fp = OFF(-16), .bx = OFF(-24), .ra = RA8 }, { UNWIND_CFA_FP, UNWIND_FP_SAVED | UNWIND_BX_SAVED, 16, -16, -24 } },
	{ "saved too far away", { RSP, 24, { 0 }, .bx = OFF(-40000), .ra = RA8 }, { UNWIND_CFA_SP, 0, 24, 0, -8 } },
	{ "saved, no room", { RSP, 24, { 0 }, .bx = OFF(-24), .ra = OFF(-16) }, { UNWIND_CFA_SP, 0, 24, 0, -16 } },
	{ "saved, the CFA by it", { 3, 24, { 0 }, .bx = OFF(-24), .ra = RA8 }, { UNWIND_CFA_REGISTER, 0, 24, 0, 3 } },
	{ "lost", { RSP, 24, { 0 }, .bx = { CFI_UNDEFINED, 0, { 0 } }, .ra = RA8 }, { UNWIND_CFA_SP, 0, 24, 0, -8 } },
};
/* clang-format on */

static void says_where_rbx_is(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, bx_cases) {
		struct unwind_rule got = x86_rule(&c->state, false, true);
		CHECK_CASE(c, memcmp(&got, &c->want, sizeof(got)) == 0);
		CHECK_CASE(c, x86_needs_bx(&c->state) == (c->want.cfa == UNWIND_CFA_REGISTER));
	}
}

static void finds_signal_returns(void **state)
{
	(void)state;
	static const uint8_t glibc[] = { 0x90, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	static const uint8_t musl[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t both[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05, 0x48, 0xc7, 0xc0, 0x0f, 0,
		0, 0, 0x0f, 0x05 };
	static const uint8_t exit_call[] = { 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 };
	size_t len = 0;
	CHECK(x86_find_sigreturn(glibc, sizeof(glibc), &len) == 1 && len == 9);
	CHECK(x86_find_sigreturn(glibc, 9, &len) == -1);
	CHECK(x86_find_sigreturn(musl, sizeof(musl), &len) == 0 && len == 7);
	CHECK(x86_find_sigreturn(both, sizeof(both), &len) == 0 && len == 7);
	CHECK(x86_find_sigreturn(exit_call, sizeof(exit_call), &len) == -1);
	CHECK(x86_find_sigreturn(musl, 0, &len) == -1);
}

static void knows_an_entry(void **state)
{
	(void)state;
	static const uint8_t crt1[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x31, 0xed, 0x49 };
	static const uint8_t ld_so[] = { 0x48, 0x89, 0xe7, 0xe8, 1, 2, 3, 4 };
	static const uint8_t function[] = { 0x55, 0x48, 0x89, 0xe5 };
	CHECK(x86_is_entry(crt1, sizeof(crt1)));
	CHECK(!x86_is_entry(crt1, 5));
	CHECK(x86_is_entry(ld_so, sizeof(ld_so)));
	CHECK(!x86_is_entry(ld_so, 3));
	CHECK(!x86_is_entry(function, sizeof(function)));
}

static void an_entry_ends_where_it_leaves(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; uint8_t code[24]; size_t len, want; } entries[] = {
		{ "crt1", { 0x31, 0xed, 0x50, 0xff, 0x15, 1, 2, 3, 4, 0xf4, 0x55, 0x5d, 0xc3 }, 13, 10 },
		{ "musl", { 0x48, 0x31, 0xed, 0xe8, 1, 2, 3, 4, 0x66, 0x90, 0x8b, 0x37, 0xc3 }, 13, 8 },
		{ "Free Pascal", { 0x48, 0x31, 0xed, 0xe8, 1, 2, 3, 4, 0xc3, 0, 0, 0, 0x55, 0x5d, 0xc3 }, 15, 9 },
		{ "ld.so", { 0x48, 0x89, 0xe7, 0xe8, 1, 2, 3, 4, 0x49, 0x89, 0xc4, 0x41, 0xff, 0xe4, 0x55 }, 15, 14 },
		{ "over a branch", { 0x31, 0xed, 0x74, 0x02, 0x58, 0xc3, 0x58, 0xf4, 0x55 }, 9, 8 },
		{ "a jump to the rest", { 0x31, 0xed, 0xe9, 0, 1, 0, 0, 0x55 }, 8, 7 },
		{ "no end", { 0x31, 0xed, 0x90, 0x58 }, 4, 4 },
		{ "cut in the middle", { 0x31, 0xed, 0xe9, 0, 1 }, 5, 5 },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, entries)
		CHECK_CASE(c, x86_entry_bytes(c->code, c->len) == c->want);
}

/* The end of _Unwind_RaiseException, as gcc 12 makes it, and with short displacements. */
static void finds_where_exceptions_leave(void **state)
{
	(void)state;
	static const uint8_t saves[] = { 0x83, 0x07, 0x50, 0x81, 0x08, 0x80, 0x09, 0x03 };
	static const uint8_t other[] = { 0x83, 0x07, 0x81, 0x08, 0x50, 0x80, 0x09 };
	uint8_t code[] = { 0x90, 0x48, 0x89, 0xde, 0x4c, 0x89, 0xff, 0xe8, 1, 2, 3, 4, /* call */
		0x48, 0x8b, 0xb5, 0xe8, 0xfd, 0xff, 0xff, /* mov -0x218(%rbp), %rsi */
		0x48, 0x8b, 0xbd, 0xe0, 0xfd, 0xff, 0xff, /* mov -0x220(%rbp), %rdi */
		0xe8, 0x48, 0x8b, 0x7d, 0x90, 0x48, 0x8b, 0x75, 0x98 };
	size_t from;
	struct unwind_rule rule;
	CHECK(x86_is_eh_return(str_make(saves, sizeof(saves))));
	CHECK(!x86_is_eh_return(str_make(saves, 6)));
	CHECK(!x86_is_eh_return(str_make(other, sizeof(other))));
	CHECK(x86_find_context(code, sizeof(code), &from, &rule));
	CHECK(from == 7 && rule.cfa == UNWIND_CFA_CONTEXT && rule.cfa_off == -0x2b0);
	for (size_t len = 0; len < 26; len++)
		CHECK(!x86_find_context(code, len, &from, &rule));
	code[22] = 0xd8; /* no context: another distance */
	CHECK(!x86_find_context(code, sizeof(code), &from, &rule));
	code[22] = 0xe0;
	code[21] = 0xb5; /* rsi twice */
	CHECK(!x86_find_context(code, sizeof(code), &from, &rule));
	static const uint8_t brief[] = { 0xe8, 0, 0, 0, 0, 0x48, 0x8b, 0x7d, 0x90, 0x48, 0x8b, 0x75,
		0x98, 0xc3, 0xc3, 0xc3, 0xc3 };
	CHECK(x86_find_context(brief, sizeof(brief), &from, &rule));
	CHECK(from == 0 && rule.cfa_off == -0x100);
}

static void finds_the_frame_of_crt_functions(void **state)
{
	(void)state;
	static const uint8_t glibc[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x48, 0x85,
		0xc0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	static const uint8_t musl[] = { 0x50, 0xe8, 0, 0, 0, 0, 0x58, 0xc3 };
	static const uint8_t other[] = { 0x55, 0x48, 0x89, 0xe5, 0x58, 0xc3 };
	size_t from, to;
	int bytes;
	CHECK(x86_find_frame(glibc, sizeof(glibc), &from, &to, &bytes));
	CHECK(from == 8 && to == 15 && bytes == 8);
	CHECK(x86_find_frame(musl, sizeof(musl), &from, &to, &bytes));
	CHECK(from == 1 && to == 7 && bytes == 8);
	CHECK(!x86_find_frame(other, sizeof(other), &from, &to, &bytes));
	CHECK(!x86_find_frame(glibc, sizeof(glibc) - 1, &from, &to, &bytes));
	for (size_t len = 0; len < 8; len++)
		CHECK(!x86_find_frame(glibc, len, &from, &to, &bytes));
}

static void knows_the_linkers_sections(void **state)
{
	(void)state;
	static const uint8_t init[] = { 0x50, 0xe8, 0, 0, 0, 0, 0x58, 0xc3 };
	struct machine_row rows[MACHINE_ROWS_MAX];
	CHECK(x86_section_rows(STR(".plt"), NULL, 0, rows) == 1);
	CHECK(rows[0].offset == 0 && rows[0].rule.cfa == UNWIND_CFA_PLT);
	CHECK(x86_section_rows(STR(".plt.sec"), NULL, 0, rows) == 1);
	CHECK(rows[0].rule.cfa == UNWIND_CFA_SP && rows[0].rule.cfa_off == 8);
	CHECK(x86_section_rows(STR(".text"), NULL, 0, rows) == 0);
	CHECK(x86_section_rows(STR(".init"), init, sizeof(init), rows) == 3);
	CHECK(rows[1].offset == 1 && rows[1].rule.cfa_off == 16 && rows[2].offset == 7);
	CHECK(x86_section_rows(STR(".fini"), init, 3, rows) == 0);
	CHECK(machine_find(62) == &x86_machine && !machine_find(3));
}

TEST_MAIN(cmocka_unit_test(says_rows_as_rules), cmocka_unit_test(says_where_rbx_is),
	cmocka_unit_test(finds_signal_returns), cmocka_unit_test(knows_an_entry),
	cmocka_unit_test(an_entry_ends_where_it_leaves),
	cmocka_unit_test(finds_where_exceptions_leave),
	cmocka_unit_test(finds_the_frame_of_crt_functions),
	cmocka_unit_test(knows_the_linkers_sections))
