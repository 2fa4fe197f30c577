/* SPDX-License-Identifier: Apache-2.0 */
/* Steps over a made stack, for both machines. */
#include "test.h"

#include "unwind/unwind.h"

#include <elf.h>

#define BASE 0x7ffd00001000
#define WORDS 256
#define PC 0x555500001234
#define CALLER 0x555500002345

static uint64_t words[WORDS];

static bool read_made(void *ctx, uint64_t address, uint64_t *out)
{
	(void)ctx;
	if (address < BASE || address % 8 || address >= BASE + sizeof(words))
		return false;
	*out = words[(address - BASE) / 8];
	return true;
}

struct machine {
	uint16_t elf;
	unsigned sp, fp;
};
static const struct machine x86 = { EM_X86_64, 7, 6 };
static const struct machine arm = { EM_AARCH64, 31, 29 };

static struct unwind_frame frame(const struct machine *m, uint64_t sp, uint64_t fp, bool exact)
{
	struct unwind_frame f = { .pc = PC, .is_exact = exact };
	for (unsigned i = 0; exact && i < UNWIND_REGISTERS; i++) {
		f.registers[i] = 0x1000 + i;
		f.known |= 1u << i;
	}
	f.registers[m->sp] = sp;
	f.registers[m->fp] = fp;
	f.known |= 1u << m->sp | 1u << m->fp;
	return f;
}

/* clang-format off */
static const struct {
	const char *name;
	const struct machine *m;
	struct unwind_rule rule;
	bool exact;
	uint64_t fp;                          /* sp is BASE + 64: word 8 */
	struct { int word; uint64_t value; } put[3];
	enum unwind_step want;
	int want_sp_word;
	uint64_t want_fp;                     /* 0: not known */
} cases[] = {
	{ "sp + 16", &x86, { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 }, true, 0x77, { { 9, CALLER } }, UNWIND_STEP_ON, 10, 0x77 },
	{ "return address elsewhere", &x86, { UNWIND_CFA_SP, UNWIND_FP_SAME, 24, 0, -24 }, true, 0x77, { { 8, CALLER } }, UNWIND_STEP_ON, 11, 0x77 },
	{ "sp + 4 words", &x86, { UNWIND_CFA_SP_WORDS, UNWIND_FP_SAVED, 4, -16, 0 }, false, 1, { { 11, CALLER }, { 10, 0x2222 } }, UNWIND_STEP_ON, 12, 0x2222 },
	{ "fp + 16", &x86, { UNWIND_CFA_FP, UNWIND_FP_SAVED, 16, -16, -8 }, false, BASE + 80, { { 11, CALLER }, { 10, 0x2222 } }, UNWIND_STEP_ON, 12, 0x2222 },
	{ "fp lost", &x86, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 8, 0, -8 }, false, 1, { { 8, CALLER } }, UNWIND_STEP_ON, 9, 0 },
	{ "*(fp - 8)", &x86, { UNWIND_CFA_DEREF_FP, UNWIND_FP_AT_FP, -8, 0, 0 }, false, BASE + 80, { { 9, BASE + 160 }, { 10, 0x2222 }, { 19, CALLER } }, UNWIND_STEP_ON, 20, 0x2222 },
	{ "*(sp + 8) + 8", &x86, { UNWIND_CFA_DEREF_SP, UNWIND_FP_SAME, 8, 0, 8 }, false, 1, { { 9, BASE + 152 }, { 19, CALLER } }, UNWIND_STEP_ON, 20, 1 },
	{ "in a PLT", &x86, { UNWIND_CFA_PLT, UNWIND_FP_SAME, 4, 0, 0 }, true, 1, { { 9, CALLER } }, UNWIND_STEP_ON, 10, 1 },
	{ "early in a PLT", &x86, { UNWIND_CFA_PLT, UNWIND_FP_SAME, 5, 0, 0 }, true, 1, { { 8, CALLER } }, UNWIND_STEP_ON, 9, 1 },
	{ "by rbx saved", &x86, { UNWIND_CFA_SP, UNWIND_FP_SAME | UNWIND_BX_SAVED, 24, 0, -24 }, false, 1, { { 8, 0xbbbb }, { 10, CALLER } }, UNWIND_STEP_ON, 11, 1 },
	{ "by rbx that nobody knows", &x86, { UNWIND_CFA_REGISTER, UNWIND_FP_SAME, 8, 0, 3 }, false, 1, { { 0 } }, UNWIND_STEP_UNSUPPORTED, 0, 0 },
	{ "return address in a register", &x86, { UNWIND_CFA_RA_REGISTER, UNWIND_FP_SAME, 0, 0, 5 }, true, 1, { { 0 } }, UNWIND_STEP_ON, 8, 1 },
	{ "return address in a register that is lost", &x86, { UNWIND_CFA_RA_REGISTER, UNWIND_FP_SAME, 8, 0, 5 }, false, 1, { { 0 } }, UNWIND_STEP_UNSUPPORTED, 0, 0 },
	{ "no rule, by the frame pointer", &x86, { 0 }, false, BASE + 80, { { 10, 0x2222 }, { 11, CALLER } }, UNWIND_STEP_ON, 12, 0x2222 },
	{ "no rule, no frame pointer", &x86, { 0 }, false, 0, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "no rule, the frame pointer leads to zeros", &x86, { 0 }, false, BASE + 80, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "no rule, frame pointer below", &x86, { 0 }, false, BASE, { { 0 } }, UNWIND_STEP_NO_RULE, 0, 0 },
	{ "return address zero", &x86, { UNWIND_CFA_SP, 0, 16, 0, -8 }, false, 1, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "return address and fp zero", &x86, { UNWIND_CFA_SP, 0, 16, 0, -8 }, false, 0, { { 0 } }, UNWIND_STEP_ROOT_ZERO, 0, 0 },
	{ "the same, not aligned", &x86, { UNWIND_CFA_SP, 0, 24, 0, -8 }, false, 0, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "the same in the leaf", &x86, { UNWIND_CFA_SP, 0, 16, 0, -8 }, true, 0, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "the same, fp lost", &x86, { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 16, 0, -8 }, false, 0, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "the same, read from the code", &x86, { UNWIND_CFA_SP, UNWIND_FP_NO_END, 16, 0, -8 }, false, 0, { { 0 } }, UNWIND_STEP_ZERO, 0, 0 },
	{ "outermost", &x86, { .cfa = UNWIND_CFA_STOP }, false, 1, { { 0 } }, UNWIND_STEP_ROOT, 0, 0 },
	{ "not supported", &x86, { .cfa = UNWIND_CFA_UNSUPPORTED }, false, 1, { { 0 } }, UNWIND_STEP_UNSUPPORTED, 0, 0 },
	{ "of the future", &x86, { .cfa = 99 }, false, 1, { { 0 } }, UNWIND_STEP_UNSUPPORTED, 0, 0 },
	{ "stack ends", &x86, { UNWIND_CFA_SP, 0, 32000, 0, -8 }, false, 1, { { 0 } }, UNWIND_STEP_READ_ERROR, 0, 0 },
	{ "does not advance", &x86, { UNWIND_CFA_SP, 0, 0, 0, -8 }, true, 1, { { 0 } }, UNWIND_STEP_LOOP, 0, 0 },

	/* lr is 0x1000 + 30 in an interrupted frame. */
	{ "arm64: a leaf without a frame", &arm, { UNWIND_CFA_SP, UNWIND_FP_SAME, 0, 0, 0 }, true, 0x77, { { 0 } }, UNWIND_STEP_ON, 8, 0x77 },
	{ "arm64: lr in a caller", &arm, { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, 0 }, false, 0x77, { { 0 } }, UNWIND_STEP_UNSUPPORTED, 0, 0 },
	{ "arm64: a frame", &arm, { UNWIND_CFA_SP, UNWIND_FP_SAVED, 32, -32, -24 }, false, 0x77, { { 8, 0x2222 }, { 9, CALLER } }, UNWIND_STEP_ON, 12, 0x2222 },
	{ "arm64: by x29, signed", &arm, { UNWIND_CFA_FP, UNWIND_FP_SAVED, 32, -32, -24 }, false, BASE + 80, { { 10, 0x2222 }, { 11, CALLER | 0x3fab000000000000 } }, UNWIND_STEP_ON, 14, 0x2222 },
	{ "arm64: no rule", &arm, { 0 }, false, BASE + 80, { { 10, 0x2222 }, { 11, CALLER | 0x3fab000000000000 } }, UNWIND_STEP_ON, 12, 0x2222 },
};
/* clang-format on */

static void steps_by_each_rule(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		memset(words, 0, sizeof(words));
		for (size_t i = 0; i < ARRAY_COUNT(c->put); i++)
			words[c->put[i].word] = c->put[i].value;
		struct unwind_frame f = frame(c->m, BASE + 64, c->fp, c->exact);
		struct unwind_frame before = f;
		enum unwind_step got = unwind_step(c->m->elf, &c->rule, &f, read_made, NULL);
		CHECK_CASE(c, got == c->want);
		if (got != UNWIND_STEP_ON) {
			CHECK_CASE(c, got == UNWIND_STEP_ROOT_ZERO || got == UNWIND_STEP_ZERO ||
					      memcmp(&f, &before, sizeof(f)) == 0);
			continue;
		}
		uint64_t in_register = 0x1000 + (c->m == &arm ? 30 : 5);
		CHECK_CASE(c, f.pc == CALLER || f.pc == in_register);
		CHECK_CASE(c, !f.is_exact && (f.known >> c->m->sp & 1));
		CHECK_CASE(c, f.registers[c->m->sp] == BASE + 8 * (uint64_t)c->want_sp_word);
		CHECK_CASE(c, (f.known >> c->m->fp & 1) == (c->want_fp != 0));
		CHECK_CASE(c, !c->want_fp || f.registers[c->m->fp] == c->want_fp);
	}
}

/* Kernels of arm64 with 39 bits of address sign in those above, also in the next frame. */
static void takes_signatures_off_by_the_width(void **state)
{
	(void)state;
	static const struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAVED, 32, -32, -24 };
	const uint64_t pc = 0x7fff001234, signature = 0x3fab8000000000;
	memset(words, 0, sizeof(words));
	words[8] = words[12] = BASE + 80;
	words[9] = words[13] = pc | signature;
	struct unwind_frame f = frame(&arm, BASE + 64, 0x77, false);
	f.address_bits = 39;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(unwind_step(arm.elf, &rule, &f, read_made, NULL), UNWIND_STEP_ON);
		CHECK(f.pc == pc && f.address_bits == 39);
	}
}

/* rbx is known from the interrupted frame up to the one that has its CFA by it. */
static void rbx_is_carried_up(void **state)
{
	(void)state;
	memset(words, 0, sizeof(words));
	struct unwind_frame f = frame(&x86, BASE + 64, 1, true);
	words[8] = BASE + 400; /* rbx, saved by the leaf */
	words[10] = CALLER;
	struct unwind_rule saved = { UNWIND_CFA_SP, UNWIND_BX_SAVED, 24, 0, -24 };
	CHECK(unwind_step(EM_X86_64, &saved, &f, read_made, NULL) == UNWIND_STEP_ON);
	words[11] = CALLER + 1;
	struct unwind_rule same = { UNWIND_CFA_SP, UNWIND_BX_SAME, 8, 0, -8 };
	CHECK(unwind_step(EM_X86_64, &same, &f, read_made, NULL) == UNWIND_STEP_ON);
	words[51] = CALLER + 2;
	struct unwind_rule by = { UNWIND_CFA_REGISTER, UNWIND_FP_SAME, 16, 0, 3 };
	CHECK(unwind_step(EM_X86_64, &by, &f, read_made, NULL) == UNWIND_STEP_ON);
	CHECK(f.pc == CALLER + 2 && f.registers[7] == BASE + 416 && !(f.known >> 3 & 1));
}

/* libgcc's context says sp, rbp by its address, and where to go on, which is looked up itself. */
static void exceptions_go_on_by_their_context(void **state)
{
	(void)state;
	static const struct unwind_rule rule = { .cfa = UNWIND_CFA_CONTEXT, .cfa_off = -0x40 };
	static const struct {
		uint64_t fp, fp_at, cfa;
		enum unwind_step want;
	} ways[] = { { BASE + 0x140, BASE + 0x80, BASE + 400, UNWIND_STEP_ON },
		{ BASE + 0x140, BASE + 0x80, BASE + 64, UNWIND_STEP_LOOP },
		{ BASE + 0x140, 8, BASE + 400, UNWIND_STEP_READ_ERROR },
		{ 8, BASE + 0x80, BASE + 400, UNWIND_STEP_READ_ERROR },
		{ 0, BASE + 0x80, BASE + 400, UNWIND_STEP_UNSUPPORTED } };
	for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
		memset(words, 0, sizeof(words));
		words[(0x100 + UNWIND_CONTEXT_FP) / 8] = ways[i].fp_at;
		words[(0x100 + UNWIND_CONTEXT_CFA) / 8] = ways[i].cfa;
		words[(0x100 + UNWIND_CONTEXT_RA) / 8] = CALLER;
		words[0x80 / 8] = 0x2222;
		struct unwind_frame f = frame(&x86, BASE + 64, ways[i].fp, false);
		if (ways[i].fp == 0)
			f.known &= ~(1u << 6);
		CHECK(unwind_step(EM_X86_64, &rule, &f, read_made, NULL) == ways[i].want);
		if (ways[i].want == UNWIND_STEP_ON)
			CHECK(f.pc == CALLER + 1 && !f.is_exact && f.registers[6] == 0x2222 &&
				f.registers[7] == BASE + 400);
	}
}

static void signal_frames_give_all_registers(void **state)
{
	(void)state;
	static const struct {
		const struct machine *m;
		int first, sp, fp, pc, probe;
		unsigned probe_register;
	} layouts[] = {
		/* ucontext 40 bytes: r8 … r15, di, si, bp, bx, dx, ax, cx, sp, ip */
		{ &x86, 5, 15, 10, 16, 11, 3 },
		/* siginfo 128, ucontext 176, fault_address: x0 … x30, sp, pc */
		{ &arm, 39, 31, 29, 32, 19, 19 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(layouts); i++) {
		const struct machine *m = layouts[i].m;
		memset(words, 0, sizeof(words));
		uint64_t *regs = words + 8 + layouts[i].first;
		regs[layouts[i].sp] = BASE + 800;
		regs[layouts[i].fp] = BASE + 900;
		regs[layouts[i].pc] = CALLER;
		regs[layouts[i].probe] = 0xabcd;
		struct unwind_frame f = frame(m, BASE + 64, 1, false);
		struct unwind_rule rule = { .cfa = UNWIND_CFA_SIGNAL };
		CHECK(unwind_step(m->elf, &rule, &f, read_made, NULL) == UNWIND_STEP_ON);
		CHECK(f.pc == CALLER && f.is_exact && f.registers[m->sp] == BASE + 800);
		CHECK(f.registers[m->fp] == BASE + 900);
		CHECK(f.registers[layouts[i].probe_register] == 0xabcd);
		f = frame(m, BASE + sizeof(words) - 64, 1, false);
		CHECK(unwind_step(m->elf, &rule, &f, read_made, NULL) == UNWIND_STEP_READ_ERROR);
	}
}

TEST_MAIN(cmocka_unit_test(steps_by_each_rule), cmocka_unit_test(takes_signatures_off_by_the_width),
	cmocka_unit_test(rbx_is_carried_up), cmocka_unit_test(exceptions_go_on_by_their_context),
	cmocka_unit_test(signal_frames_give_all_registers))
