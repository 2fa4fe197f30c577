/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/v8.h as ordinary C: the structures of V8 11.3 lead to the right frames, and forged ones
 * end after a bounded number of reads. The leaf is `leaf` in optimized code, which `outer` has put
 * it into; the interpreter runs `caller`, whose name is a String of two.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define TAGGED(at) ((at) + V8_TAG)
#define SMALL(n) ((uint64_t)(n) << V8_SMI_SHIFT)
#define MAP(type) (PLACE(2) + 0x20 * (uint64_t)(type))
#define FUNCTION(n) (PLACE(3) + 0x80 * (uint64_t)(n))
#define SHARED(n) (PLACE(4) + 0x80 * (uint64_t)(n))
#define SCRIPT PLACE(5)
#define SOURCE PLACE(6)
#define SCOPE PLACE(7)
#define NAME(n) (PLACE(8) + 0x40 * (uint64_t)(n))
#define CODE PLACE(9)
#define DEOPT PLACE(10)
#define INLINING PLACE(11)
#define TABLE PLACE(12)
#define BYTECODES PLACE(13)
#define CELL PLACE(14)
#define VECTOR PLACE(15)
#define LEAF_FP (SP0 + 0x80)
#define CALLER_FP (SP0 + 0x100)
#define STACK_BYTES 0x120

enum type {
	STRING,
	CONS,
	SHAPE_FUNCTION,
	SHAPE_SHARED,
	SHAPE_SCRIPT,
	SHAPE_SCOPE,
	SHAPE_BYTECODES,
	SHAPE_CODE,
	SHAPE_OTHER,
	TYPES
};
enum text { LEAF, OUTER, CALL, ER, PATH };

static const uint16_t types[TYPES] = { V8_STRING_ONE_BYTE, V8_STRING_ONE_BYTE | V8_STRING_CONS,
	2066, 262, 167, 261, 191, 245, 150 };

static const struct runtime_record record = { .kind = RUNTIME_V8,
	.version = 11 << 8 | 3,
	.layout.v8 = { .builtins = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
		.entry = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x110 },
		.handlers = { TEXT_OFFSET + 0x110, TEXT_OFFSET + 0x200 },
		.frame_bytecodes = -32,
		.function_shared = 24,
		.shared_name = 16,
		.shared_script = 32,
		.shared_flags = 48,
		.script_name = 16,
		.script_source = 8,
		.script_id = 64,
		.scope_locals = 24,
		.scope_variables = 32,
		.bytecodes_data = 54,
		.bytecodes_lines = 32,
		.first_no_string = 128,
		.type_function = 2066,
		.type_shared = 262,
		.type_script = 167,
		.type_scope = 261,
		.type_bytecodes = 191,
		.type_code = 245,
		.function_code = 48,
		.function_feedback = 40,
		.code_deopt = 16,
		.code_table = 24,
		.code_start = 40,
		.code_bytes = 56,
		.deopt_literals = 32,
		.deopt_inlining = 72 } };

static void put_object(uint64_t at, enum type type)
{
	put_word(at, TAGGED(MAP(type)));
}

static void put_text(uint64_t at, const char *text)
{
	put_object(at, STRING);
	put(at + V8_STRING_LENGTH, strlen(text), 4);
	put_bytes(at + V8_STRING_TEXT, text);
}

static void put_function(unsigned n, uint64_t name)
{
	put_object(FUNCTION(n), SHAPE_FUNCTION);
	put_word(FUNCTION(n) + 24, TAGGED(SHARED(n)));
	put_word(FUNCTION(n) + 40, TAGGED(CELL));
	put_word(FUNCTION(n) + 48, TAGGED(CODE));
	put_object(SHARED(n), SHAPE_SHARED);
	put_word(SHARED(n) + 16, TAGGED(name));
	put_word(SHARED(n) + 32, TAGGED(SCRIPT));
	put(SHARED(n) + 52, n + 1, 4);
}

/* Code at JIT that was made of function 1, function 0 in it, and the feedback that has it, too. */
static void put_code(void)
{
	put_object(CODE, SHAPE_CODE);
	put_word(CODE + 16, TAGGED(DEOPT));
	put_word(CODE + 24, TAGGED(TABLE));
	put_word(CODE + 40, JIT);
	put(CODE + 56, 0x1000, 4);
	put_object(DEOPT, SHAPE_OTHER);
	put_word(DEOPT + V8_DEOPT_LENGTH, SMALL(V8_DEOPT_LENGTH_LEAST));
	put_word(DEOPT + V8_DEOPT_FUNCTIONS, SMALL(1));
	put_word(DEOPT + 32, TAGGED(INLINING + 0x80));
	put_word(DEOPT + 72, TAGGED(INLINING));
	put_word(INLINING + 0x80 + 16, TAGGED(SHARED(0)));
	put_object(INLINING, SHAPE_OTHER);
	put_word(INLINING + 8, SMALL(16));
	put_object(TABLE, SHAPE_OTHER);
	put_word(TABLE + 8, SMALL(24));
	put_object(CELL, SHAPE_OTHER);
	put_word(CELL + 8, TAGGED(VECTOR));
	put_object(VECTOR, SHAPE_OTHER);
	put_word(VECTOR + 8, 2);
	put_word(VECTOR + V8_FEEDBACK_SLOTS + 8, CODE + V8_WEAK_TAG);
}

static void put_frame(uint64_t fp, unsigned function, uint64_t caller_fp, uint64_t returns_to)
{
	*world_word(fp + V8_FRAME_CONTEXT) = TAGGED(PLACE(16));
	*world_word(fp + V8_FRAME_FUNCTION) = TAGGED(FUNCTION(function));
	*world_word(fp) = caller_fp;
	*world_word(fp + 8) = returns_to;
}

static void put_stack(void)
{
	for (uint64_t at = SP0; at < SP0 + STACK_BYTES; at += 8)
		*world_word(at) = 0;
	put_frame(LEAF_FP, 1, CALLER_FP, CALLEE);
	put_frame(CALLER_FP, 2, 0, CALLER);
	*world_word(CALLER_FP - 32) = TAGGED(BYTECODES);
	*world_word(CALLER_FP - 40) = SMALL(54 - V8_TAG + 7);
	leaf_pc = JIT + 0x20;
	leaf_fp = LEAF_FP;
}

static void begin(void)
{
	made_runtime_begin(&record);
	settings.has_code_runtimes = 1;
	shim_add_kernel(shim_value(&v8_scratches, 0), sizeof(struct v8_scratch));
	for (unsigned i = 0; i < TYPES; i++) {
		put_object(MAP(i), SHAPE_OTHER);
		put(MAP(i) + V8_MAP_TYPE, types[i], 2);
	}
	put_function(0, NAME(LEAF));
	put_function(1, SCOPE);
	put_function(2, NAME(PATH) + 0x40);
	put_object(SCOPE, SHAPE_SCOPE);
	put_word(SCOPE + 32, TAGGED(NAME(OUTER)));
	put_text(NAME(LEAF), "leaf");
	put_text(NAME(OUTER), "outer");
	put_text(NAME(CALL), "call");
	put_text(NAME(ER), "er");
	put_text(NAME(PATH), "/srv/app.js");
	put_object(NAME(PATH) + 0x40, CONS);
	put_word(NAME(PATH) + 0x40 + 16, TAGGED(NAME(CALL)));
	put_word(NAME(PATH) + 0x40 + 24, TAGGED(NAME(ER)));
	put_object(SCRIPT, SHAPE_SCRIPT);
	put_word(SCRIPT + 8, TAGGED(SOURCE));
	put_word(SCRIPT + 16, TAGGED(NAME(PATH)));
	put_word(SCRIPT + 64, SMALL(3));
	put_text(SOURCE, "one\ntwo\n");
	put_object(BYTECODES, SHAPE_BYTECODES);
	put_word(BYTECODES + 32, TAGGED(TABLE));
	put_code();
	put_stack();
}

/* Is this function told with that name, and its script's? */
static bool is_function(uint64_t number, const char *name)
{
	const char *file = "/srv/app.js";
	const struct event_code *e = told(number);
	return e && e->form == RUNTIME_FORM_NAMED && e->name_bytes == strlen(name) &&
	       memcmp(e->data, name, e->name_bytes) == 0 && e->file_bytes == strlen(file) &&
	       memcmp(e->data + e->name_bytes, file, e->file_bytes) == 0;
}

/* Is frame i in the code of `outer` that `leaf` was put into? */
static bool is_code(const struct event_sample *s, uint32_t i)
{
	uint64_t frame = user_frame(s, i), inlined;
	struct v8_code_told t;
	const struct event_code *e = told(frame_code(frame));
	if (!e || e->form != RUNTIME_FORM_CODE || e->lines_bytes < sizeof(t) + sizeof(inlined))
		return false;
	memcpy(&t, e->data, sizeof(t));
	memcpy(&inlined, e->data + sizeof(t), sizeof(inlined));
	return (frame & FRAME_POSITION_NONE) == 0x20 && t.functions == 1 &&
	       t.inlining_bytes == 16 && t.table_bytes == 24 && is_function(t.function, "outer") &&
	       is_function((inlined & FRAME_CODE_MASK) | FRAME_CODE_REAL, "leaf");
}

static bool is_whole(const struct event_sample *s)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 3 && !gap_in(s) &&
	       is_code(s, 0) && is_function(frame_code(user_frame(s, 1)), "caller") &&
	       (user_frame(s, 1) & FRAME_POSITION_NONE) == 7 && user_frame(s, 2) == frame_at(0x23f);
}

static void shows_the_functions_of_each_frame(void **state)
{
	(void)state;
	begin();
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
}

/* The code of a loop is found by the function's feedback; an object that the collector has moved,
 * where it is now. */
static void finds_what_is_elsewhere(void **state)
{
	(void)state;
	begin();
	put_word(FUNCTION(1) + 48, TAGGED(BYTECODES));
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
	begin();
	memcpy(data + (PLACE(17) - DATA), data + (FUNCTION(1) - DATA), V8_FUNCTION_BYTES);
	put_word(FUNCTION(1), PLACE(17));
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
}

/* A function begins, or ends: its frame is not there yet, or lies below the stack pointer. */
static void shows_functions_without_a_frame(void **state)
{
	(void)state;
	for (unsigned has_begun = 0; has_begun < 3; has_begun++) {
		struct x86_regs regs = { .ip = JIT + 0x20, .sp = SP0, .bp = CALLER_FP, .cs = 0x33 };
		begin();
		*world_word(SP0) = CALLEE;
		put_word(FUNCTION(2) + 48, TAGGED(BYTECODES)); /* it is interpreted */
		put_word(FUNCTION(2) + 40, 0);
		if (has_begun == 0)
			regs.di = TAGGED(FUNCTION(1));
		if (has_begun == 1)
			*world_word(SP0 + V8_GONE_FUNCTION) = TAGGED(FUNCTION(1));
		const struct event_sample *s = world_sample_at(&regs);
		CHECK(has_begun == 2 ? gap_in(s) == RUNTIME_GAP_INLINED : is_whole(s));
		*world_word(SP0 + V8_GONE_FUNCTION) = 0;
		made_runtime_end();
	}
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	unsigned gap; uint32_t functions;
} cases[] = {
	{ "a function that is not mapped", FUNCTION(1), UNMAPPED, RUNTIME_GAP_CODE, 1 },
	{ "a function that has moved to itself", FUNCTION(1), FUNCTION(1), RUNTIME_GAP_CODE, 1 },
	{ "a function of another type", FUNCTION(1), TAGGED(MAP(SHAPE_CODE)), RUNTIME_GAP_CODE, 1 },
	{ "no SharedFunctionInfo", FUNCTION(1) + 24, SMALL(1), RUNTIME_GAP_CODE, 1 },
	{ "code of other functions", CODE + 40, JIT + 0x1000, RUNTIME_GAP_INLINED, 2 },
	{ "2^31 - 1 functions in the code", DEOPT + V8_DEOPT_FUNCTIONS, SMALL(INT32_MAX), 0, 2 },
	{ "2^32 - 1 bytes of a table", TABLE + 8, UINT64_MAX, 0, 2 },
	{ "a String of itself", NAME(PATH) + 0x40 + 16, TAGGED(NAME(PATH) + 0x40), 0, 2 },
	{ "2^32 - 1 characters of a source", SOURCE + 8, UINT64_MAX, 0, 2 },
	{ "2^32 - 1 variables of a scope", SCOPE + 24, UINT64_MAX, 0, 2 },
	{ "2^32 - 1 slots of feedback", VECTOR + 8, UINT64_MAX, 0, 2 },
};
/* clang-format on */

static void says_why_frames_are_missing(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		begin();
		put_word(c->at, c->word);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT && gap_in(s) == c->gap);
		CHECK_CASE(c, counted()->runtime_frames == c->functions);
		made_runtime_end();
	}
}

static const uint64_t any_words[] = { MADE_RUNTIME_WORDS, TAGGED(FUNCTION(1)), TAGGED(SHARED(1)),
	TAGGED(SOURCE), TAGGED(NAME(PATH) + 0x40), TAGGED(CODE), TAGGED(MAP(CONS)), FUNCTION(1) };

static void survives_any_word(void **state)
{
	(void)state;
	made_runtime_any_word(begin, any_words, ARRAY_COUNT(any_words));
}

static void survives_any_word_of_the_stack(void **state)
{
	(void)state;
	begin();
	for (uint64_t at = SP0; at < SP0 + STACK_BYTES; at += 8) {
		for (size_t i = 0; i < ARRAY_COUNT(any_words); i++) {
			put_stack();
			*world_word(at) = any_words[i];
			const struct event_sample *s = made_runtime_take();
			CHECK(s->user_count >= 1 && s->user_count <= 6);
			shim_drop_events();
		}
	}
	made_runtime_end();
}

/* A function that calls itself in code that is not its own any more: reads of a frame of it. */
static uint64_t reads_of_given_up_code(unsigned frames)
{
	begin();
	put_word(CODE + 40, JIT + 0x1000);
	for (unsigned i = 0; i < frames; i++)
		put_frame(CALLER_FP + 0x80 * i, 1, CALLER_FP + 0x80 * (i + 1), JIT + 0x30);
	put_frame(CALLER_FP + 0x80 * frames, 2, 0, CALLER);
	const struct event_sample *s = made_runtime_take();
	CHECK(s->h.stack_end == STACK_END_ROOT && gap_in(s) == RUNTIME_GAP_INLINED);
	uint64_t reads = shim.user_reads;
	made_runtime_end();
	return reads;
}

static void searches_in_vain_once(void **state)
{
	(void)state;
	uint64_t of_four = reads_of_given_up_code(4) - reads_of_given_up_code(3);
	print_message("%llu reads\n", (unsigned long long)of_four);
	CHECK(of_four <= 4);
}

/* Each frame of 16 bytes is one of a builtin; with one of optimized code in front of them the last
 * step has two to record, and room for one. */
static void ends_where_the_stack_is_too_deep(void **state)
{
	(void)state;
	for (unsigned before = 0; before < 2; before++) {
		begin();
		leaf_fp = SP0;
		leaf_pc = before ? JIT + 0x20 : CALLEE;
		for (uint64_t at = SP0; at < SP0 + 0x3000; at += 16) {
			*world_word(at) = at + 16;
			*world_word(at + 8) = CALLEE + 1;
		}
		const struct event_sample *s = made_runtime_take();
		CHECK(s->h.stack_end == STACK_END_DEPTH);
		CHECK(s->user_count == SAMPLE_USER_FRAMES_MAX);
		made_runtime_end();
	}
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin();
	changes_while_it_is_read(made_runtime_take);
	made_runtime_end();
}

TEST_MAIN(cmocka_unit_test(shows_the_functions_of_each_frame),
	cmocka_unit_test(finds_what_is_elsewhere),
	cmocka_unit_test(shows_functions_without_a_frame), cmocka_unit_test(searches_in_vain_once),
	cmocka_unit_test(says_why_frames_are_missing), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(survives_any_word_of_the_stack),
	cmocka_unit_test(ends_where_the_stack_is_too_deep),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
