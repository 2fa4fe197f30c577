/* SPDX-License-Identifier: Apache-2.0 */
/* agent/bpf/walk.h as ordinary C: files without a table, and the rules of single runtimes, by what
 * these keep in memory. */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

/* A word of the stack, from SP0 on. */
#define AT(word) (SP0 + 8 * (uint64_t)(word))

/* ---- Go: morestack ---- */

enum { M_CURG = 0xb8, G_FP = 0x60 };

/* g0, the goroutine and their m lie in the stack's memory, far up. */
#define G0 AT(512)
#define CURG AT(640)
#define M AT(768)

/* clang-format off */
static const struct {
	const char *name;
	uint64_t r14, m, g0, curg;
	enum stack_end want; uint32_t frames;
} morestack_cases[] = {
	{ "in newstack", G0, M, G0, CURG, STACK_END_ROOT, 2 },
	{ "before it", CURG, M, G0, CURG, STACK_END_ROOT, 2 },
	{ "the goroutine was put aside", G0, M, G0, 0, STACK_END_ROOT, 1 },
	{ "r14 is another goroutine", G0 + 64, M, G0, CURG, STACK_END_UNSUPPORTED, 1 },
	{ "r14 is no g", 0x1234, M, G0, CURG, STACK_END_UNSUPPORTED, 1 },
	{ "no m", G0, 8, G0, CURG, STACK_END_UNSUPPORTED, 1 },
	{ "the goroutine cannot be read", G0, M, G0, 64, STACK_END_UNSUPPORTED, 1 },
};
/* clang-format on */

static void goes_on_in_the_goroutine(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } },
		{ 0x100, { UNWIND_CFA_GO_MORESTACK, 0, M_CURG, G_FP, 0 } }, { 0x200, rule_stop } };
	FOR_EACH_CASE (c, morestack_cases) {
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(c->r14 == CURG ? CURG + UNWIND_GO_G_M : G0 + UNWIND_GO_G_M) = c->m;
		*world_word(M) = c->g0;
		*world_word(M + M_CURG) = c->curg;
		*world_word(CURG + UNWIND_GO_G_SP) = AT(90);
		*world_word(CURG + UNWIND_GO_G_PC) = CALLER;
		*world_word(CURG + G_FP) = 0x2222;
		const struct x86_regs regs = { .ip = CALLEE, .sp = SP0, .cs = 0x33, .r14 = c->r14 };
		const struct event_sample *s = world_sample_at(&regs);
		CHECK_CASE(c, s && s->h.stack_end == c->want && s->user_count == c->frames);
		if (c->frames == 2) {
			CHECK_CASE(c, user_frame(s, 1) == frame_at(0x23f));
			CHECK_CASE(c, walk_here()->sp == AT(90) && walk_here()->fp == 0x2222);
		}
		check_conservation();
		world_end();
	}
}

/* ---- libgcc: on its way to who catches ---- */

#define CONTEXT AT(8)

/* clang-format off */
static const struct {
	const char *name;
	uint64_t fp_at, cfa, fp; /* fp: of the frame with the context, which lies 0x40 below */
	enum stack_end want; uint32_t frames;
} context_cases[] = {
	{ "at the landing pad", AT(40), AT(90), CONTEXT + 0x40, STACK_END_ROOT, 2 },
	{ "the context does not lead up", AT(40), SP0, CONTEXT + 0x40, STACK_END_LOOP, 1 },
	{ "no rbp", 8, AT(90), CONTEXT + 0x40, STACK_END_READ_ERROR, 1 },
	{ "no context", AT(40), AT(90), 0x40, STACK_END_READ_ERROR, 1 },
};
/* clang-format on */

static void goes_on_where_an_exception_is_caught(void **state)
{
	(void)state;
	/* The landing pad is the first instruction of its row. */
	const struct world_row rows[] = { { 0, { 0 } },
		{ 0x100, { UNWIND_CFA_CONTEXT, 0, -0x40, 0, 0 } },
		{ 0x200, { .cfa = UNWIND_CFA_UNSUPPORTED } }, { 0x240, rule_stop } };
	FOR_EACH_CASE (c, context_cases) {
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(CONTEXT + UNWIND_CONTEXT_FP) = c->fp_at;
		*world_word(CONTEXT + UNWIND_CONTEXT_CFA) = c->cfa;
		*world_word(CONTEXT + UNWIND_CONTEXT_RA) = CALLER;
		*world_word(AT(40)) = 0x2222;
		const struct event_sample *s = world_sample(CALLEE, SP0, c->fp);
		CHECK_CASE(c, s && s->h.stack_end == c->want && s->user_count == c->frames);
		if (c->frames == 2) {
			CHECK_CASE(c, user_frame(s, 1) == frame_at(0x240));
			CHECK_CASE(c, walk_here()->sp == AT(90) && walk_here()->fp == 0x2222);
		}
		check_conservation();
		world_end();
	}
}

static void walks_files_without_a_table_by_frame_pointer(void **state)
{
	(void)state;
	begin_with(NULL, 0);
	(void)world_publish(0, FILE_ID, 0, NULL, 0, false);
	*world_word(SP0 + 8) = CALLER;
	*world_word(SP0) = 0;
	const struct event_sample *s = world_sample(CALLEE, SP0, SP0);
	CHECK(s->h.stack_end == STACK_END_ZERO && s->user_count == 2);
	CHECK(user_frame(s, 0) == frame_at(0x120) && user_frame(s, 1) == frame_at(0x23f));
	/* At the stack's base, as execve left it, the zero says what the ABI says. */
	uint64_t base = WORLD_STACK_TOP - 256;
	*world_word(base - 8) = CALLER;
	*world_word(base - 16) = 0;
	s = world_sample(CALLEE, base - 16, base - 16);
	CHECK(s->h.stack_end == STACK_END_ROOT_NO_INFO && s->user_count == 2);
	world_end();
}

TEST_MAIN(cmocka_unit_test(walks_files_without_a_table_by_frame_pointer),
	cmocka_unit_test(goes_on_in_the_goroutine),
	cmocka_unit_test(goes_on_where_an_exception_is_caught))
