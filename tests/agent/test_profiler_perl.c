/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/perl.h as ordinary C: the structures of Perl 5.36 lead to the right frames, and forged
 * ones end with a reason in the stack after a bounded number of reads. The first native frame of
 * Perl_runops_standard runs `leaf` and `B::middle`, the second one `outer` and the program.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define INTERPRETER PLACE(1)
#define STACK PLACE(2)
#define OUTER_STACK(n) (PLACE(6) + 0x100 * (uint64_t)(n))
#define CONTEXT_BYTES 104
#define CONTEXT_CV 72
#define CONTEXT(n) (PLACE(3) + CONTEXT_BYTES * (uint64_t)(n)) /* 2: the innermost */
#define CV(n) (PLACE(4) + 0x100 * (uint64_t)(n))
#define BODY(n) (CV(n) + 0x40)
#define COP(n) (PLACE(5) + 0x80 * (uint64_t)(n)) /* where function n is */
#define NAME(n) (PLACE(8) + 0x40 * (uint64_t)(n))
#define STASH PLACE(9)
#define PATH PLACE(10)

static const struct runtime_record record = { .kind = RUNTIME_PERL,
	.version = 5 << 8 | 36,
	.layout.perl = { .loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
		.interp_stack = 224,
		.interp_cop = 208,
		.has_body_aux = 1,
		.stack_type = 44,
		.context_bytes = CONTEXT_BYTES,
		.context_cv = CONTEXT_CV } };

static void put_hek(uint64_t at, const char *text)
{
	put(at + PERL_HEK_LENGTH, strlen(text), 4);
	put_bytes(at + PERL_HEK_KEY, text);
}

/* Context n, of a function that was called at the place of function n - 1. */
static void put_context(unsigned n, uint64_t returns_to)
{
	put(CONTEXT(n), PERL_TYPE_SUB, 1);
	put_word(CONTEXT(n) + PERL_CONTEXT_COP, COP(n));
	put_word(CONTEXT(n) + PERL_CONTEXT_RETURN, returns_to);
	put_word(CONTEXT(n) + CONTEXT_CV, CV(n));
	put_word(CV(n), BODY(n));
	put_word(BODY(n) + PERL_CV_STASH, STASH);
	put_word(BODY(n) + PERL_CV_START, CV(n) + 8);
	put_word(BODY(n) + PERL_CV_GV, NAME(n));
	put(BODY(n) + PERL_CV_FLAGS, PERL_CV_NAMED, 4);
}

static void begin(void)
{
	made_runtime_begin(&record);
	put_word(ROOT, INTERPRETER);
	put_word(INTERPRETER + 224, STACK);
	put_word(INTERPRETER + 208, COP(3));
	put_word(STACK + PERL_SI_CONTEXTS, CONTEXT(0));
	put(STACK + PERL_SI_INDEX, 2, 4);
	put_context(0, 1);
	put_context(1, 0);
	put_context(2, 1);
	for (unsigned n = 0; n < 4; n++) {
		put(COP(n) + PERL_COP_LINE, 10 + n, 4);
		put_word(COP(n) + PERL_COP_FILE, PATH);
	}
	put_hek(NAME(0), "outer");
	put_hek(NAME(1), "middle");
	put_hek(NAME(2), "leaf");
	put_hek(NAME(3), "B");
	put_bytes(PATH, "/srv/app.pl");
	put_word(STASH, STASH + 0x40);
	put_word(STASH + 0x40 + PERL_HV_AUX, NAME(3));
}

static void shows_the_functions_that_each_loop_runs(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = made_runtime_take();
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 5 && !gap_in(s));
	CHECK(is_told(s, 0, "Bleaf", "/srv/app.pl", 13));
	CHECK(is_told(s, 1, "Bmiddle", "/srv/app.pl", 12));
	CHECK(is_told(s, 2, "Bouter", "/srv/app.pl", 11));
	CHECK(is_told(s, 3, "", "/srv/app.pl", 10));
	CHECK(told(frame_code(user_frame(s, 3)))->form == RUNTIME_FORM_MAIN);
	CHECK(user_frame(s, 4) == frame_at(0x23f));
	made_runtime_end();
}

/* A BEGIN block: C code has called it, so that it catches an error, on a stack of its own. */
static void misses_nothing_while_a_program_is_compiled(void **state)
{
	(void)state;
	begin();
	put_word(STACK + PERL_SI_PREVIOUS, OUTER_STACK(0));
	put_word(OUTER_STACK(0) + PERL_SI_PREVIOUS, OUTER_STACK(1));
	put(OUTER_STACK(0) + PERL_SI_INDEX, UINT32_MAX, 4);
	put(OUTER_STACK(1) + PERL_SI_INDEX, UINT32_MAX, 4);
	put(CONTEXT(0), PERL_TYPE_EVAL | PERL_EVAL_BLOCK, 1);
	put_word(CONTEXT(0) + PERL_CONTEXT_RETURN, 0);
	*world_word(SP0 + LOOP_BYTES - 8) = CALLER; /* no second loop */
	const struct event_sample *s = made_runtime_take();
	CHECK(s->h.stack_end == STACK_END_ROOT && !gap_in(s));
	CHECK(counted()->runtime_frames == 2);
	made_runtime_end();
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	enum stack_end end; unsigned gap; uint32_t functions;
} cases[] = {
	{ "no interpreter", ROOT, 0, STACK_END_ROOT, 0, 0 },
	{ "a stack that is not mapped", INTERPRETER + 224, UNMAPPED, STACK_END_ROOT, 0, 0 },
	{ "contexts that are not mapped", STACK + PERL_SI_CONTEXTS, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_FRAME, 0 },
	{ "stacks in a cycle", STACK + PERL_SI_PREVIOUS, STACK, STACK_END_ROOT, RUNTIME_GAP_OWNER, 3 },
	{ "more contexts than there are", STACK + PERL_SI_INDEX, 0x7ffffffe, STACK_END_ROOT, RUNTIME_GAP_FRAME, 0 },
	{ "a function that is not mapped", CONTEXT(1) + CONTEXT_CV, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_CODE, 3 },
	{ "a name of 2^31 - 1 bytes", NAME(2), 0x7fffffff00000000, STACK_END_ROOT, 0, 4 },
	{ "a name of -1 bytes", NAME(2), 0xffffffff00000000, STACK_END_ROOT, 0, 4 },
	{ "no place", INTERPRETER + 208, 0, STACK_END_ROOT, 0, 4 },
};
/* clang-format on */

static void says_why_frames_are_missing(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		begin();
		put_word(c->at, c->word);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, s->h.stack_end == c->end && gap_in(s) == c->gap);
		CHECK_CASE(c, counted()->runtime_frames == c->functions);
		made_runtime_end();
	}
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, STACK, CONTEXT(1), CV(1) };
	made_runtime_any_word(begin, words, ARRAY_COUNT(words));
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin();
	changes_while_it_is_read(made_runtime_take);
	made_runtime_end();
}

TEST_MAIN(cmocka_unit_test(shows_the_functions_that_each_loop_runs),
	cmocka_unit_test(misses_nothing_while_a_program_is_compiled),
	cmocka_unit_test(says_why_frames_are_missing), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
