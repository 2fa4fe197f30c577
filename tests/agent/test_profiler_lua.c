/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/lua.h as ordinary C: the structures of Lua 5.3 lead to the right frames, and forged
 * ones end with a reason in the stack after a bounded number of reads. The first native frame of
 * the loop runs `leaf`, which a function in C has called; the second one `outer` and what calls it.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define THREAD(n) (PLACE(2) + 0x100 * (uint64_t)(n)) /* their outermost frame is in them */
#define VALUES PLACE(3)
#define GLOBAL PLACE(12)
#define FRAME(n) (PLACE(4) + 0x50 * (uint64_t)(n))
#define FUNCTION(n) (PLACE(5) + 0x40 * (uint64_t)(n))
#define PROTO(n) (PLACE(6) + 0x100 * (uint64_t)(n))
#define LINES(n) (PLACE(8) + 0x100 * (uint64_t)(n))
#define MARKS PLACE(10)
#define TEXTS(n) (PLACE(11) + 0x40 * (uint64_t)(n))
#define CODE(n) (0x10000ULL + 0x1000 * (n)) /* of instructions; not read */
#define CODE_COUNT 300
#define LUA_FUNCTION 0x46
#define C_FUNCTION 0x66
#define LAST 8
#define STATE_AT (SP0 + 0x40)

static const struct runtime_record record = { .kind = RUNTIME_LUA,
	.version = 5 << 8 | 3,
	.layout.lua = { .loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
		.thread_frame = 32,
		.thread_base = 96,
		.thread_stack = 56,
		.thread_status = 12,
		.thread_protected = 88,
		.thread_global = 24,
		.global_main = 200,
		.frame_bytes = 72,
		.frame_previous = 16,
		.frame_function = 0,
		.frame_pc = 40,
		.frame_status = 66,
		.status_last = { LAST, LAST },
		.function_proto = 24,
		.proto_source = 104,
		.proto_first_line = 40,
		.proto_code = 56,
		.proto_code_count = 24,
		.proto_lines = 72,
		.proto_lines_count = 28 } };

static void put_thread(unsigned n, uint64_t frame)
{
	put(THREAD(n) + LUA_TYPE_AT, LUA_TYPE_THREAD, 1);
	put_word(THREAD(n) + LUA_THREAD_TOP, VALUES + 0x100);
	put_word(THREAD(n) + 24, GLOBAL);
	put_word(GLOBAL + 200, THREAD(0));
	put_word(THREAD(n) + 32, frame);
	put_word(THREAD(n) + 48, VALUES + 0x200);
	put_word(THREAD(n) + 56, VALUES);
	put_word(THREAD(n) + 96, VALUES);
}

static void put_frame(unsigned n, uint64_t previous, unsigned type, unsigned status)
{
	put_word(VALUES + 0x10 * n + 0x10, FUNCTION(n));
	put(VALUES + 0x10 * n + 0x18, type, 4);
	put_word(FRAME(n), VALUES + 0x10 * n + 0x10);
	put_word(FRAME(n) + 16, previous);
	put_word(FRAME(n) + 40, CODE(n) + 4 * (10 + n));
	put(FRAME(n) + 66, status, 1);
}

/* Function n begins at line 10 n; its instruction i is in line 100 n + i. */
static void put_function(unsigned n)
{
	put_word(FUNCTION(n) + 24, PROTO(n));
	put_word(PROTO(n) + 104, TEXTS(0));
	put(PROTO(n) + 40, 10 * n, 4);
	put_word(PROTO(n) + 56, CODE(n));
	put(PROTO(n) + 24, CODE_COUNT, 4);
	put_word(PROTO(n) + 72, LINES(n));
	put(PROTO(n) + 28, 32, 4);
	for (unsigned i = 0; i < 32; i++)
		put(LINES(n) + 4 * i, 100 * n + i, 4);
}

static void begin(void)
{
	made_runtime_begin(&record);
	put_thread(0, FRAME(3));
	put_frame(3, FRAME(2), LUA_FUNCTION, LAST);
	put_frame(2, FRAME(1), C_FUNCTION, 0);
	put_frame(1, FRAME(0), LUA_FUNCTION, 0);
	put_frame(0, THREAD(0) + 96, LUA_FUNCTION, LAST);
	put_function(0);
	put_function(1);
	put_function(3);
	put_bytes(TEXTS(0) + LUA_TEXT_DATA, "@/srv/app.lua");
	*world_word(STATE_AT) = THREAD(0);
}

static bool is_whole(const struct event_sample *s)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 4 && !gap_in(s) &&
	       is_told(s, 0, "", "/srv/app.lua", 312) && is_told(s, 1, "", "/srv/app.lua", 110) &&
	       is_told(s, 2, "", "/srv/app.lua", 9) && user_frame(s, 3) == frame_at(0x23f);
}

static void shows_the_functions_that_each_loop_runs(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = made_runtime_take();
	CHECK(is_whole(s));
	CHECK(told(frame_code(user_frame(s, 0)))->first_line == 30);
	CHECK(told(frame_code(user_frame(s, 0)))->form == RUNTIME_FORM_NAMED);
	CHECK(told(frame_code(user_frame(s, 2)))->form == RUNTIME_FORM_MAIN);
	made_runtime_end();
}

/* To 5.1 frames are an array, no frame says that it is the last of its run, and the place of the
 * innermost one is in the state. */
static void shows_those_of_5_1(void **state)
{
	(void)state;
	uint32_t zero = 0;
	begin();
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	struct lua_layout *l = &r->layout.lua;
	l->frame_bytes = 0x50; /* as far apart as they lie here */
	l->thread_pc = 64;
	l->thread_base = 80;
	put_word(THREAD(0) + 64, CODE(3) + 4 * 5);
	put_word(THREAD(0) + 80, FRAME(0));
	put(FUNCTION(2) + LUA_FUNCTION_IS_C, 1, 1);
	put(VALUES + 0x38, LUA_FUNCTION, 4);
	const struct event_sample *s = made_runtime_take();
	CHECK(s->user_count == 3 && !gap_in(s) && is_told(s, 0, "", "/srv/app.lua", 304) &&
		is_told(s, 1, "", "/srv/app.lua", 110));
	made_runtime_end();
}

/* From 5.5 on a long text lies elsewhere, and the main thread in what all threads share. */
static void shows_those_of_5_5(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int8_t length;
		uint16_t main; /* behind the state of all threads */
		bool is_whole;
	} cases[] = {
		{ "a short text", 13, 0x80, true },
		{ "a long text", -1, 0x80, true },
		{ "another main thread", 13, 8, false },
	};
	FOR_EACH_CASE (c, cases) {
		uint32_t zero = 0;
		begin();
		struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
		r->layout.lua.text_length = 11;
		r->layout.lua.holds_main = 1;
		r->layout.lua.global_main = c->main;
		put_word(THREAD(0) + 24, THREAD(0) - 0x80);
		put(TEXTS(0) + 11, (uint8_t)c->length, 1);
		if (c->length < 0) {
			put_bytes(TEXTS(1), "@/srv/app.lua");
			put_word(TEXTS(0) + LUA_TEXT_DATA, TEXTS(1));
		}
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, is_told(s, 0, "", "/srv/app.lua", 312));
		CHECK_CASE(c, is_whole(s) == c->is_whole);
		made_runtime_end();
	}
}

static void finds_the_state_that_has_resumed_a_coroutine(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t protected; /* of the coroutine, by a call that nothing protects */
		unsigned status;
		uint32_t functions;
	} cases[] = {
		{ "a coroutine", SP0 + LOOP_BYTES + 8, 0, 3 },
		{ "one that yields", SP0 + LOOP_BYTES + 8, LUA_YIELDS, 3 },
		{ "one that was resumed in a call", SP0 + LOOP_BYTES + 8, 0, 4 },
		{ "one that is about to catch an error", 0, 0, 4 },
	};
	FOR_EACH_CASE (c, cases) {
		begin();
		put_thread(1, FRAME(3));
		put_word(THREAD(1) + 88, c->protected);
		put(THREAD(1) + 12, c->status, 1);
		if (c->protected)
			*world_word(c->protected) = 0;
		put_word(FRAME(3) + 16, c->functions == 4 ? FRAME(4) : THREAD(1) + 96);
		put_frame(4, THREAD(1) + 96, LUA_FUNCTION, LAST);
		put_word(VALUES + 0x50, FUNCTION(1));
		put_thread(0, FRAME(2));
		*world_word(STATE_AT) = THREAD(1);
		*world_word(SP0 + 0x10) = THREAD(0); /* left there by a call that has ended */
		*world_word(SP0 + LOOP_BYTES - 0x20) = THREAD(0);
		if (!c->protected) /* it has no native frame of the loop */
			*world_word(SP0 + LOOP_BYTES - 8) = CALLER;
		*world_word(SP0 + LOOP_BYTES + 0x40) = THREAD(1);
		*world_word(SP0 + LOOP_BYTES + 0x50) = THREAD(0);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT && !gap_in(s));
		CHECK_CASE(c, s->user_count == c->functions + 1);
		CHECK_CASE(c, is_told(s, 0, "", "/srv/app.lua", 312));
		CHECK_CASE(c, is_told(s, c->functions - 1, "", "/srv/app.lua", 9));
		made_runtime_end();
	}
}

/* A stack of values is copied: frames point into the new one before the state does, or say how far
 * they are from its beginning. */
static void shows_those_of_a_stack_that_is_moved(void **state)
{
	(void)state;
	begin();
	put_word(THREAD(0) + 48, PLACE(13) + 0x200);
	put_word(THREAD(0) + 56, PLACE(13));
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
	begin();
	put_word(THREAD(0) + LUA_THREAD_TOP, 0x100);
	for (unsigned n = 0; n < 4; n++)
		put_word(FRAME(n), 0x10 * n + 0x10);
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
}

/* A difference of lines for each instruction, and now and then a mark. */
static void finds_lines_by_differences(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t at, mark, mark_index;
		uint64_t line;
	} cases[] = {
		{ "before all marks", 5, 128, 0, 30 + 6 },
		{ "at a mark", 128, 128, 0, 1000 },
		{ "behind one", 131, 128, 0, 1003 },
		{ "the second of them", 260, 250, 1, 1010 },
		{ "too far from one", 290, 128, 0, FRAME_POSITION_NONE },
		{ "one that is not there", 131, 128, 40, FRAME_POSITION_NONE },
	};
	FOR_EACH_CASE (c, cases) {
		uint32_t zero = 0;
		begin();
		struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
		r->layout.lua.proto_marks = 88;
		put(PROTO(3) + 28, CODE_COUNT, 4);
		put_word(PROTO(3) + 88, MARKS);
		for (unsigned i = 0; i < CODE_COUNT; i++)
			put(LINES(3) - 0x300 + i, i == c->mark ? 0x80 : 1, 1);
		put_word(PROTO(3) + 72, LINES(3) - 0x300);
		put(MARKS + 8 * c->mark_index, c->mark, 4);
		put(MARKS + 8 * c->mark_index + 4, 1000, 4);
		put_word(FRAME(3) + 40, CODE(3) + 4 * (c->at + 1));
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, is_told(s, 0, "", "/srv/app.lua", c->line));
		made_runtime_end();
	}
}

static void names_texts_by_what_they_are(void **state)
{
	(void)state;
	static const struct {
		const char *name, *source, *file;
		unsigned form;
	} cases[] = {
		{ "a name", "=stdin", "stdin", RUNTIME_FORM_MAIN },
		{ "a text", "return 1", "", RUNTIME_FORM_EVAL },
	};
	FOR_EACH_CASE (c, cases) {
		begin();
		memset(data + (TEXTS(0) - DATA), 0, 0x40);
		put_bytes(TEXTS(0) + LUA_TEXT_DATA, c->source);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, is_told(s, 2, "", c->file, 9));
		CHECK_CASE(c, told(frame_code(user_frame(s, 2)))->form == c->form);
		made_runtime_end();
	}
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	unsigned gap; uint32_t functions;
} cases[] = {
	{ "no state", THREAD(0) + LUA_TYPE_AT, 5, RUNTIME_GAP_STATE, 0 },
	{ "a state that has yielded", THREAD(0) + LUA_TYPE_AT, LUA_TYPE_THREAD | 1ULL << 32, RUNTIME_GAP_STATE, 0 },
	{ "a state that has not begun", THREAD(0) + 32, THREAD(0) + 96, RUNTIME_GAP_STATE, 0 },
	{ "a state whose stack ends before its frame", THREAD(0) + LUA_THREAD_TOP, VALUES, RUNTIME_GAP_STATE, 0 },
	{ "a state of another stack of the machine", THREAD(0) + 88, SP0, RUNTIME_GAP_STATE, 0 },
	{ "a frame that is not mapped", FRAME(3) + 16, UNMAPPED, RUNTIME_GAP_FRAME, 1 },
	{ "frames in a cycle", FRAME(0) + 16, FRAME(3), RUNTIME_GAP_OWNER, 3 },
	{ "a prototype that is not mapped", FUNCTION(1) + 24, UNMAPPED, RUNTIME_GAP_CODE, 1 },
	{ "no source", PROTO(1) + 104, 0, 0, 3 },
	{ "a source that is not mapped", PROTO(1) + 104, UNMAPPED, 0, 3 },
	{ "lines that are not mapped", PROTO(1) + 72, UNMAPPED, 0, 3 },
	{ "an instruction before the code", FRAME(1) + 40, 8, 0, 3 },
	{ "no frame ends its run", FRAME(3) + 64, 0, 0, 3 },
};
/* clang-format on */

static void says_why_frames_are_missing(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		begin();
		put_word(c->at, c->word);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT);
		CHECK_CASE(c, gap_in(s) == c->gap);
		CHECK_CASE(c, counted()->runtime_frames == c->functions);
		made_runtime_end();
	}
}

/* Words that seem to be states all over the stack. */
static void searches_no_further_than_it_may(void **state)
{
	(void)state;
	begin();
	put_word(FRAME(3), UNMAPPED);
	for (uint64_t at = SP0; at < SP0 + 2 * LOOP_BYTES; at += 8)
		*world_word(at) = THREAD(0);
	*world_word(SP0 + LOOP_BYTES - 8) = CALLEE + 0x10;
	*world_word(SP0 + 2 * LOOP_BYTES - 8) = CALLER;
	const struct event_sample *s = made_runtime_take();
	CHECK(gap_in(s) == RUNTIME_GAP_STATE && s->user_count == 3);
	made_runtime_end();
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, FRAME(1), THREAD(0), PROTO(1) };
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
	cmocka_unit_test(shows_those_of_5_1), cmocka_unit_test(shows_those_of_5_5),
	cmocka_unit_test(finds_the_state_that_has_resumed_a_coroutine),
	cmocka_unit_test(shows_those_of_a_stack_that_is_moved),
	cmocka_unit_test(finds_lines_by_differences),
	cmocka_unit_test(names_texts_by_what_they_are),
	cmocka_unit_test(says_why_frames_are_missing),
	cmocka_unit_test(searches_no_further_than_it_may), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
