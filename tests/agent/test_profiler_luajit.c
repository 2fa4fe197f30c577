/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/luajit.h as ordinary C: the structures of LuaJIT lead to the right frames, and forged
 * ones end with a reason in the stack after a bounded number of reads. The innermost C frame runs
 * `inner` and `outer`, which a function in C has called; the one above it runs what has called
 * that.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define STATE PLACE(2)
#define GLOBAL PLACE(12)
#define SLOT(n) (PLACE(3) + 0x30 * (uint64_t)(n)) /* the function; how it was called */
#define FUNCTION(n) (PLACE(5) + 0x40 * (uint64_t)(n))
#define PROTO(n) (PLACE(6) + 0x100 * (uint64_t)(n))
#define CODE(n) (PROTO(n) + LUAJIT_PROTO_BYTES)
#define LINES(n) (PLACE(8) + 0x40 * (uint64_t)(n))
#define CHUNK PLACE(9)
#define CFRAME(n) (SP0 + LUAJIT_CFRAME_BYTES * (uint64_t)(n))
#define VALUE(function) (LUAJIT_VALUE_FUNCTION << 47 | (function))

static const struct runtime_record record = { .kind = RUNTIME_LUAJIT,
	.version = 2 << 8 | 1,
	.layout.luajit = { .vm = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 } } };

/* Function n begins at line 10 n; its instruction i is in line 10 n + 2 i. */
static void put_function(unsigned n, unsigned kind)
{
	put(FUNCTION(n) + LUAJIT_FUNCTION_KIND, kind, 1);
	put_word(FUNCTION(n) + LUAJIT_FUNCTION_CODE, CODE(n));
	put(PROTO(n) + LUAJIT_PROTO_COUNT, 20, 4);
	put_word(PROTO(n) + LUAJIT_PROTO_CHUNK, CHUNK);
	put(PROTO(n) + LUAJIT_PROTO_FIRST, 10 * n, 4);
	put(PROTO(n) + LUAJIT_PROTO_LINES_COUNT, 40, 4);
	put_word(PROTO(n) + LUAJIT_PROTO_LINES, LINES(n));
	for (unsigned i = 0; i < 20; i++)
		put(LINES(n) + i, 2 * (i + 1), 1);
	for (unsigned i = 0; i < 20; i++)
		put(CODE(n) + 4 * i, 4 << 8, 4); /* its first operand: slots in between */
}

/* Function n, called as `call` says. */
static void put_frame(unsigned n, uint64_t call)
{
	put_word(SLOT(n), VALUE(FUNCTION(n)));
	put_word(SLOT(n) + 8, call);
}

static void put_cframe(unsigned n, uint64_t pc, uint64_t before, uint64_t returns_to)
{
	*world_word(CFRAME(n) + LUAJIT_CFRAME_STATE) = STATE;
	*world_word(CFRAME(n) + LUAJIT_CFRAME_PC) = pc;
	*world_word(CFRAME(n) + LUAJIT_CFRAME_BEFORE) = before;
	*world_word(CFRAME(n) + LUAJIT_CFRAME_SAVED + 16) = returns_to;
}

static void begin(void)
{
	made_runtime_begin(&record);
	put(STATE + LUAJIT_STATE_TYPE, LUAJIT_TYPE_STATE, 1);
	put_word(STATE + LUAJIT_STATE_GLOBAL, GLOBAL);
	put_word(STATE + LUAJIT_STATE_BASE, SLOT(4) + 16);
	put_word(STATE + LUAJIT_STATE_END, SLOT(6));
	put_word(STATE + LUAJIT_STATE_STACK, SLOT(0) - 0x10);
	put_word(STATE + LUAJIT_STATE_CFRAME, CFRAME(0) | 1);
	put_word(GLOBAL + LUAJIT_GLOBAL_CURRENT + 24, STATE);
	for (unsigned n = 0; n < 5; n++)
		put_function(n, n == 1);
	put_frame(0, 0x10 | LUAJIT_CALL_C);
	put_frame(1, CODE(0) + 4 * 3);
	put_frame(2, 0x30 | LUAJIT_CALL_C);
	put_frame(3, CODE(2) + 4 * 5);
	put_frame(4, CODE(3) + 4 * 7);
	put_bytes(CHUNK + LUAJIT_TEXT_DATA, "@/srv/app.lua");
	put_cframe(0, CODE(4) + 4 * 9, CFRAME(1), CALLEE + 0x10);
	put_cframe(1, CODE(0) + 4 * 3, 0, CALLER);
}

static bool is_whole(const struct event_sample *s, uint64_t line)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 5 && !gap_in(s) &&
	       is_told(s, 0, "", "/srv/app.lua", line) && is_told(s, 1, "", "/srv/app.lua", 42) &&
	       is_told(s, 2, "", "/srv/app.lua", 28) && is_told(s, 3, "", "/srv/app.lua", 4) &&
	       user_frame(s, 4) == frame_at(0x23f);
}

static void shows_the_functions_that_each_frame_runs(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = made_runtime_take();
	CHECK(is_whole(s, 56));
	CHECK(told(frame_code(user_frame(s, 0)))->first_line == 40);
	CHECK(told(frame_code(user_frame(s, 3)))->form == RUNTIME_FORM_MAIN);
	made_runtime_end();
	begin();
	/* The registers say it better than the state. */
	put_word(STATE + LUAJIT_STATE_BASE, SLOT(2) + 16);
	const struct x86_regs regs = {
		.ip = CALLEE, .sp = SP0, .cs = 0x33, .dx = SLOT(4) + 16, .bx = CODE(4) + 4 * 4
	};
	CHECK(is_whole(world_sample_at(&regs), 46));
	made_runtime_end();
}

/* C code that is called so that it may fail, as the parser: it has a C frame, and no frame. */
static void passes_c_frames_without_a_frame(void **state)
{
	(void)state;
	const uint64_t stack = SLOT(0) - 0x10;
	begin();
	*world_word(CFRAME(0) + LUAJIT_CFRAME_RESULTS) = (uint32_t)(stack - SLOT(4) - 16);
	put_cframe(0, STATE, CFRAME(1), CALLEE + 0x10);
	put_cframe(1, CODE(4) + 4 * 9, CFRAME(2), CALLEE + 0x10);
	put_cframe(2, CODE(0) + 4 * 3, 0, CALLER);
	CHECK(is_whole(made_runtime_take(), 56));
	made_runtime_end();
	begin();
	/* one that has called a function, whose frame is above */
	*world_word(CFRAME(0) + LUAJIT_CFRAME_RESULTS) = (uint32_t)(stack - SLOT(2) - 8);
	CHECK(is_whole(made_runtime_take(), 56));
	made_runtime_end();
}

/* The leaf is a trace, with a frame of `words` below the C frame. */
static void leaves_traces(void **state)
{
	(void)state;
	for (uint64_t words = 0; words < 250; words += 10) {
		begin();
		settings.luajit = 1;
		put_word(STATE + LUAJIT_STATE_BASE, SLOT(2) + 16);
		put_word(GLOBAL + LUAJIT_GLOBAL_CURRENT + 32, SLOT(4) + 16); /* jit_base */
		shim.user_reads = 0;
		const struct event_sample *s = world_sample(JIT + 0x20, SP0 - 8 * words, 0);
		CHECK(s && shim.user_reads <= MADE_READS_MAX);
		if (words < LUAJIT_SEARCH_WORDS * LUAJIT_SEARCH_STEPS)
			CHECK(is_whole(s, FRAME_POSITION_NONE));
		else
			CHECK(s->h.stack_end == STACK_END_NO_TABLE && s->user_count == 1);
		made_runtime_end();
	}
	settings.luajit = 0;
}

/* How the innermost function was called, and where it is then. */
static void follows_each_kind_of_call(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t call, slot, word;
	} calls[] = {
		{ "by a metamethod", 0x30 | LUAJIT_CALL_CONTINUED, SLOT(4) - 8, CODE(3) + 4 * 7 },
		{ "with variable arguments", 0x10 | LUAJIT_CALL_VARARG, SLOT(4) - 8,
			CODE(3) + 4 * 7 },
	};
	FOR_EACH_CASE (c, calls) {
		begin();
		put_word(SLOT(4) + 8, c->call);
		put_word(c->slot, c->word);
		if ((c->call & LUAJIT_CALL_MASK) == LUAJIT_CALL_VARARG)
			for (unsigned i = 0; i < 20; i++)
				put(CODE(3) + 4 * i, 2 << 8, 4);
		CHECK_CASE(c, is_whole(made_runtime_take(), 56));
		made_runtime_end();
	}
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	unsigned gap; uint32_t functions;
} cases[] = {
	{ "no state", STATE + 8, 0, RUNTIME_GAP_STATE, 0 },
	{ "another C frame", STATE + LUAJIT_STATE_CFRAME, SP0 + 64, RUNTIME_GAP_STATE, 0 },
	{ "a base outside of the stack", STATE + LUAJIT_STATE_BASE, SLOT(7), RUNTIME_GAP_FRAME, 0 },
	{ "a function that is not mapped", SLOT(3), VALUE(UNMAPPED), RUNTIME_GAP_CODE, 1 },
	{ "a prototype that is not mapped", FUNCTION(3) + LUAJIT_FUNCTION_CODE, UNMAPPED, RUNTIME_GAP_CODE, 1 },
	{ "a call from nowhere", SLOT(4) + 8, 0, RUNTIME_GAP_CODE, 1 },
	{ "a frame of itself", SLOT(3) + 8, LUAJIT_CALL_CONTINUED, RUNTIME_GAP_FRAME, 2 },
	{ "no chunk", PROTO(3) + LUAJIT_PROTO_CHUNK, 0, 0, 4 },
	{ "lines that are not mapped", PROTO(3) + LUAJIT_PROTO_LINES, UNMAPPED, 0, 4 },
};
/* clang-format on */

static void says_why_frames_are_missing(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		begin();
		put_word(c->at, c->word);
		const struct event_sample *s = made_runtime_take();
		if (gap_in(s) != c->gap || counted()->runtime_frames != c->functions)
			print_error("%s: gap %u, %u functions, end %u\n", c->name, gap_in(s),
				(unsigned)counted()->runtime_frames, s->h.stack_end);
		CHECK_CASE(c, gap_in(s) == c->gap);
		CHECK_CASE(c, counted()->runtime_frames == c->functions);
		made_runtime_end();
	}
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, SLOT(1), SLOT(3) + 8, STATE,
		PROTO(1) };
	made_runtime_any_word(begin, words, ARRAY_COUNT(words));
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin();
	changes_while_it_is_read(made_runtime_take);
	made_runtime_end();
}

TEST_MAIN(cmocka_unit_test(shows_the_functions_that_each_frame_runs),
	cmocka_unit_test(passes_c_frames_without_a_frame), cmocka_unit_test(leaves_traces),
	cmocka_unit_test(follows_each_kind_of_call), cmocka_unit_test(says_why_frames_are_missing),
	cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
