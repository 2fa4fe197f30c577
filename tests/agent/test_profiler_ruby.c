/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/ruby.h as ordinary C: the structures of Ruby 3.3 lead to the right frames, and forged
 * ones end with a reason in the stack after a bounded number of reads. The first native frame of
 * vm_exec runs the method B.leaf; the second one B#each, which is in C, and the method `outer` that
 * has called it.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define CONTEXT PLACE(2)
#define STACK PLACE(3)
#define FRAME(n) (STACK + 0x200 + 56 * (uint64_t)(n))
#define ENVIRONMENT(n) (PLACE(5) + 0x10 + 0x40 * (uint64_t)(n))
#define SEQUENCE(n) (PLACE(6) + 0x100 * (uint64_t)(n))
#define BODY(n) (SEQUENCE(n) + 0x40)
#define LINES(n) (PLACE(7) + 0x100 * (uint64_t)(n))
#define TABLE PLACE(15)
#define NAME(n) (PLACE(8) + 0x40 * (uint64_t)(n))
#define CLASS PLACE(9)
#define SINGLETON (CLASS + 0x100)
#define METHOD(n) (PLACE(10) + 0x40 * (uint64_t)(n))
#define DEFINITION (PLACE(10) + 0x200)
#define NAMES PLACE(11)
#define NAMES_FIRST PLACE(12)
#define PAIRS PLACE(13)
#define MODULES PLACE(14)
#define CODE 0x10000ULL      /* of instructions; not read */
#define ID 48                /* the third name */
#define OTHERS 0x10000000ULL /* code of other files */

enum text { LEAF, OUTER, EACH, B, PATH };

static const struct runtime_record record = { .kind = RUNTIME_RUBY,
	.version = 3 << 8 | 3,
	.layout.ruby = { .loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
		.root = RUBY_ROOT_FIXED,
		.root_at = -8,
		.symbols_at = 16,
		.last_operator = 10,
		.frame_bytes = 56,
		.body_lines = 112,
		.line_bytes = 12,
		.text_data = 24,
		.class_kind = RUBY_CLASS_FIELD,
		.class_name = 152,
		.class_attached = 128,
		.singleton_flag = 1 << 12 } };

static void put_text(uint64_t at, const char *text)
{
	put_word(at, RUBY_OBJECT_TEXT);
	put_word(at + 16, strlen(text));
	put_bytes(at + 24, text);
}

static void put_method(unsigned n, uint64_t owner)
{
	put_word(METHOD(n), RUBY_OBJECT_INTERNAL | RUBY_INTERNAL_METHOD << RUBY_INTERNAL_SHIFT);
	put_word(METHOD(n) + 8 * RUBY_METHOD_DEFINITION, DEFINITION);
	put_word(METHOD(n) + 8 * RUBY_METHOD_ID, ID);
	put_word(METHOD(n) + 8 * RUBY_METHOD_OWNER, owner);
}

static void put_frame(unsigned n, uint64_t sequence, uint64_t instruction, uint64_t flags)
{
	put_word(FRAME(n) + 8 * RUBY_FRAME_PC, sequence ? CODE + 8 * instruction : 0);
	put_word(FRAME(n) + 8 * RUBY_FRAME_SEQUENCE, sequence);
	put_word(FRAME(n) + 8 * RUBY_FRAME_ENVIRONMENT, ENVIRONMENT(n));
	put_word(ENVIRONMENT(n) - 16, METHOD(n));
	put_word(ENVIRONMENT(n), flags | RUBY_FLAG_LOCAL);
}

/* Lines of function n are 100 n + 1, 2 and 3. */
static void put_sequence(unsigned n, uint64_t name)
{
	put_word(SEQUENCE(n) + RUBY_SEQUENCE_BODY, BODY(n));
	put(BODY(n) + RUBY_BODY_SIZE, 400, 4);
	put_word(BODY(n) + RUBY_BODY_CODE, CODE);
	put_word(BODY(n) + RUBY_BODY_PATH, NAME(PATH));
	put_word(BODY(n) + RUBY_BODY_LABEL, name);
	put(BODY(n) + RUBY_BODY_FIRST_LINE, 7 + n, 4);
	put_word(BODY(n) + 112, LINES(n));
	put(BODY(n) + 112 + RUBY_LINES_COUNT, 3, 4);
	put_word(BODY(n) + 112 + RUBY_LINES_TABLE, TABLE);
	for (unsigned i = 0; i < 3; i++)
		put(LINES(n) + 12 * i, 100 * n + 1 + i, 4);
}

static void put_names(void)
{
	put_text(NAME(LEAF), "leaf");
	put_text(NAME(OUTER), "outer");
	put_text(NAME(EACH), "each");
	put_text(NAME(B), "B");
	put_text(NAME(PATH), "/srv/app.rb");
	put_word(ROOT + 16, NAMES);
	put_word(NAMES, RUBY_OBJECT_ARRAY | RUBY_FLAG_ARRAY_INSIDE | 1 << RUBY_ARRAY_LENGTH_SHIFT);
	put_word(NAMES + RUBY_ARRAY_DATA, NAMES_FIRST);
	put_word(NAMES_FIRST, RUBY_OBJECT_ARRAY);
	put_word(NAMES_FIRST + 16, 8);
	put_word(NAMES_FIRST + 32, PAIRS);
	put_word(PAIRS + 8 * 6, NAME(EACH));
}

static void begin(void)
{
	made_runtime_begin(&record);
	put_word(POINTER - 8, CONTEXT);
	put_word(CONTEXT, STACK);
	put_word(CONTEXT + 8, (FRAME(4) - STACK) / 8);
	put_word(CONTEXT + 16, FRAME(0));
	put_frame(0, SEQUENCE(0), 10, RUBY_FLAG_FINISH);
	put_frame(1, 0, 0, RUBY_TYPE_C | RUBY_FLAG_C);
	put_frame(2, SEQUENCE(2), 54 + 70 + 1, RUBY_FLAG_FINISH);
	put_frame(3, SEQUENCE(2), 1, RUBY_TYPE_DUMMY | RUBY_FLAG_FINISH);
	put_sequence(0, NAME(LEAF));
	put_sequence(2, NAME(OUTER));
	/* The second line begins at instruction 5, the third one at 54 + 67. */
	put_word(TABLE, 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1ULL << 28 | 2ULL << 35 | 2ULL << 42 |
				2ULL << 49 | 2ULL << 56);
	put_word(TABLE + 8, 2);
	put_word(TABLE + RUBY_TABLE_BLOCKS, 2);
	put_word(TABLE + RUBY_TABLE_BLOCKS + 16 + 8, 8);
	put_method(0, SINGLETON);
	put_method(1, CLASS);
	put_word(METHOD(2), RUBY_OBJECT_TEXT); /* no method */
	put_word(CLASS, RUBY_OBJECT_CLASS);
	put_word(CLASS + 152, NAME(B));
	put_word(SINGLETON, RUBY_OBJECT_CLASS | 1 << 12);
	put_word(SINGLETON + 128, CLASS);
	put_names();
}

static bool is_whole(const struct event_sample *s)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 4 && !gap_in(s) &&
	       is_told(s, 0, "Bleaf", "/srv/app.rb", 2) &&
	       is_told(s, 1, "Beach", "", FRAME_POSITION_NONE) &&
	       is_told(s, 2, "outer", "/srv/app.rb", 203) && user_frame(s, 3) == frame_at(0x23f);
}

static void shows_the_functions_that_each_loop_runs(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = made_runtime_take();
	CHECK(is_whole(s));
	CHECK(told(frame_code(user_frame(s, 0)))->form == RUNTIME_FORM_CLASS);
	CHECK(told(frame_code(user_frame(s, 1)))->form == RUNTIME_FORM_NAMED);
	CHECK(told(frame_code(user_frame(s, 1)))->owner_bytes == 1);
	CHECK(told(frame_code(user_frame(s, 2)))->first_line == 9);
	made_runtime_end();
}

static void change_root(enum ruby_root kind, int32_t at)
{
	uint32_t zero = 0;
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	r->layout.ruby.root = kind;
	r->layout.ruby.root_at = at;
	r->layout.ruby.context_thread = kind == RUBY_ROOT_POINTER ? 48 : 0;
	r->layout.ruby.thread_id = 72;
	put_word(POINTER - 8, 0);
}

static void finds_the_context_of_each_kind_of_build(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum ruby_root kind;
		int32_t at;
		uint64_t root[2], where;
	} kinds[] = {
		{ "a library's", RUBY_ROOT_MODULE, 0, { 1, 24 }, MODULES + 0x100 + 24 },
		{ "local in its module", RUBY_ROOT_MODULE, 16, { 1, 8 }, MODULES + 0x100 + 24 },
		{ "by a word", RUBY_ROOT_OFFSET, 0, { (uint64_t)-16, 0 }, POINTER - 16 },
		{ "a variable", RUBY_ROOT_POINTER, 0, { CONTEXT, 0 }, ROOT },
	};
	FOR_EACH_CASE (c, kinds) {
		begin();
		change_root(c->kind, c->at);
		put_word(ROOT, c->root[0]);
		put_word(ROOT + 8, c->root[1]);
		put_word(POINTER + RUBY_THREAD_MODULES, MODULES);
		put_word(MODULES + 16, MODULES + 0x100);
		put_word(c->where, CONTEXT);
		put_word(CONTEXT + 48, PLACE(16));
		put_word(PLACE(16) + 72, POINTER);
		CHECK_CASE(c, is_whole(made_runtime_take()));
		shim_drop_events();
		if (c->kind == RUBY_ROOT_POINTER)
			put_word(PLACE(16) + 72, POINTER + 64); /* another thread's */
		else if (c->kind == RUBY_ROOT_MODULE)
			put_word(MODULES + 16, UINT64_MAX); /* not used in this one */
		else
			put_word(c->where, 0);
		const struct event_sample *s = made_runtime_take();
		CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT && s->user_count == 3 && !gap_in(s));
		CHECK_CASE(c, counted()->runtime_threads == 1);
		made_runtime_end();
	}
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	enum stack_end end; unsigned gap; uint32_t functions;
} cases[] = {
	{ "frames outside of the stack", CONTEXT + 16, STACK - 56, STACK_END_ROOT, 0, 0 },
	{ "a stack without end", CONTEXT + 8, UINT64_MAX / 8, STACK_END_ROOT, 0, 0 },
	{ "an environment that is not mapped", FRAME(0) + 8 * RUBY_FRAME_ENVIRONMENT, UNMAPPED,
		STACK_END_ROOT, RUNTIME_GAP_FRAME, 0 },
	{ "a sequence that is not mapped", FRAME(0) + 8 * RUBY_FRAME_SEQUENCE, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "a body that is not mapped", SEQUENCE(0) + RUBY_SEQUENCE_BODY, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "a function in C without a method", ENVIRONMENT(1) - 16, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "a function in C whose method is another object", METHOD(1), RUBY_OBJECT_CLASS, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "no frame ends its run", ENVIRONMENT(2), RUBY_FLAG_LOCAL, STACK_END_ROOT, 0, 3 },
	{ "more runs than native frames", ENVIRONMENT(1), RUBY_TYPE_C | RUBY_FLAG_C | RUBY_FLAG_FINISH,
		STACK_END_ROOT, RUNTIME_GAP_OWNER, 2 },
	{ "environments in a cycle", ENVIRONMENT(0) - 8, ENVIRONMENT(0), STACK_END_ROOT, 0, 3 },
	{ "a program counter before the code", FRAME(0), CODE - 8, STACK_END_ROOT, 0, 3 },
	{ "a table that is not mapped", BODY(0) + 112 + RUBY_LINES_TABLE, UNMAPPED, STACK_END_ROOT, 0, 3 },
	{ "more lines than there are", TABLE, UINT64_MAX, STACK_END_ROOT, 0, 3 },
	{ "a name of 2^64 - 1 bytes", NAME(LEAF) + 16, UINT64_MAX, STACK_END_ROOT, 0, 3 },
	{ "a name that is no text", NAME(LEAF), RUBY_OBJECT_ARRAY, STACK_END_ROOT, 0, 3 },
	{ "a class of itself", SINGLETON + 128, SINGLETON, STACK_END_ROOT, 0, 3 },
	{ "a list of names that holds itself", NAMES + RUBY_ARRAY_DATA, NAMES, STACK_END_ROOT, 0, 3 },
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

/* Code of YJIT is the leaf, with three registers on the stack: vm_exec has called it. */
static void leaves_code_of_yjit(void **state)
{
	(void)state;
	for (unsigned words = 0; words < 20; words++) {
		begin();
		settings.has_ruby = 1;
		uint64_t sp = SP0 - 8 * (words + 1);
		*world_word(SP0 - 8) = CALLEE + 0x10;
		shim.user_reads = 0;
		const struct event_sample *s = world_sample(JIT + 0x20, sp, 0);
		CHECK(s && shim.user_reads <= MADE_READS_MAX);
		if (words < RUBY_CODE_WORDS_MAX)
			CHECK(is_whole(s));
		else
			CHECK(s->h.stack_end == STACK_END_NO_TABLE && s->user_count == 1);
		made_runtime_end();
	}
	settings.has_ruby = 0;
}

/* Words of the stack lie in more mappings than are kept: the frame stays what it is. */
static void keeps_code_that_is_not_its_own(void **state)
{
	(void)state;
	world_begin();
	for (uint64_t i = 0; i < MAPPING_CACHE_SIZE; i++)
		world_map(OTHERS + 0x2000 * i, OTHERS + 0x2000 * i + 0x1000, MM_EXEC, 1, 0);
	world_map(JIT, JIT + 0x1000, MM_EXEC, -1, 0);
	world_map(WORLD_STACK_BASE, WORLD_STACK_TOP, MM_DATA, -1, 0);
	world_build_tree(12);
	for (uint64_t i = 0; i < MAPPING_CACHE_SIZE; i++)
		*world_word(SP0 + 8 * i) = OTHERS + 0x2000 * i + 0x10;
	config.walk_runtimes = 1;
	settings.has_ruby = 1;
	const struct event_sample *s = world_sample(JIT + 0x20, SP0, 0);
	CHECK(s && s->user_count == 1 && s->h.stack_end == STACK_END_NO_TABLE);
	CHECK(user_frame(s, 0) ==
		((uint64_t)FRAME_FILE_ADDRESS << FRAME_FILE_SHIFT | (JIT + 0x20)));
	settings.has_ruby = 0;
	check_conservation();
	world_end();
}

/* vm_exec_core, which vm_exec calls, is not shown. */
static void hides_the_core_of_the_loop(void **state)
{
	(void)state;
	uint32_t zero = 0;
	for (unsigned keep = 0; keep < 2; keep++) {
		begin();
		config.keep_interpreters = keep;
		struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
		r->layout.ruby.core[0] = TEXT_OFFSET + 0x100;
		r->layout.ruby.core[1] = TEXT_OFFSET + 0x122;
		r->layout.ruby.loop[0] = TEXT_OFFSET + 0x122; /* the leaf is in the core only */
		*world_word(SP0 + 2 * LOOP_BYTES - 8) = CALLEE + 0x10;
		*world_word(SP0 + 3 * LOOP_BYTES - 8) = CALLER;
		const struct event_sample *s = made_runtime_take();
		CHECK(keep ? s->user_count == 7 : is_whole(s));
		made_runtime_end();
	}
	config.keep_interpreters = 0;
}

/* To 3.1 classes have their names in a table of variables. */
static void finds_the_class_of_an_old_build(void **state)
{
	(void)state;
	const uint64_t extension = PLACE(17), table = PLACE(18), entries = PLACE(19);
	uint32_t zero = 0;
	begin();
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	r->layout.ruby.class_kind = RUBY_CLASS_TABLE;
	put_word(CLASS + RUBY_CLASS_EXTENSION, extension);
	put_word(SINGLETON + RUBY_CLASS_EXTENSION, extension);
	put_word(extension + RUBY_EXTENSION_VARIABLES, table);
	put_word(table + RUBY_TABLE_ENTRIES, entries);
	put_word(table + RUBY_TABLE_START, 1);
	put_word(entries + 24 + 8, ID | 2); /* @name = "each" */
	put_word(entries + 24 + 16, NAME(EACH));
	put_word(entries + 48 + 8, ID);
	put_word(entries + 48 + 16, CLASS);
	put_word(entries + 72 + 8, ID);
	put_word(entries + 72 + 16, NAME(B));
	CHECK(is_whole(made_runtime_take()));
	made_runtime_end();
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, FRAME(1), ENVIRONMENT(1), METHOD(1) };
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
	cmocka_unit_test(finds_the_context_of_each_kind_of_build),
	cmocka_unit_test(leaves_code_of_yjit), cmocka_unit_test(keeps_code_that_is_not_its_own),
	cmocka_unit_test(hides_the_core_of_the_loop), cmocka_unit_test(says_why_frames_are_missing),
	cmocka_unit_test(finds_the_class_of_an_old_build), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
