/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/php.h as ordinary C: the structures of PHP 8.2 lead to the right frames, and forged
 * ones end with a reason in the stack after a bounded number of reads. The first native frame of
 * execute_ex runs `leaf` and the method `B::middle`, the second one a program.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define FRAME(n) (PLACE(2) + 0x80 * (uint64_t)(n))
#define FUNCTION(n) (PLACE(4) + 0x100 * (uint64_t)(n))
#define CLASS PLACE(7)
#define NAME(n) (PLACE(8) + 0x40 * (uint64_t)(n))
#define INSTRUCTIONS PLACE(9)

static const struct runtime_record record = { .kind = RUNTIME_PHP,
	.version = 8 << 8 | 2,
	.layout.php = { .loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
		.globals_frame = 488,
		.function_count = 80,
		.function_code = 88,
		.function_file = 152,
		.function_line = 160 } };

static void put_text(uint64_t at, const char *text)
{
	put_word(at + PHP_TEXT_LENGTH, strlen(text));
	put_bytes(at + PHP_TEXT_DATA, text);
}

static void put_frame(unsigned n, unsigned info, uint64_t previous)
{
	put_word(FRAME(n) + PHP_FRAME_INSTR, INSTRUCTIONS + n * PHP_INSTR_BYTES);
	put_word(FRAME(n) + PHP_FRAME_FUNCTION, FUNCTION(n));
	put(FRAME(n) + PHP_FRAME_INFO, info, 4);
	put_word(FRAME(n) + PHP_FRAME_PREVIOUS, previous);
	put(INSTRUCTIONS + n * PHP_INSTR_BYTES + PHP_INSTR_LINE, 10 + n, 4);
}

static void put_function(unsigned n, uint64_t name, uint64_t class)
{
	put(FUNCTION(n), PHP_USER, 1);
	put_word(FUNCTION(n) + PHP_FUNCTION_NAME, name);
	put_word(FUNCTION(n) + PHP_FUNCTION_CLASS, class);
	put(FUNCTION(n) + 80, 3, 4);
	put_word(FUNCTION(n) + 88, INSTRUCTIONS);
	put_word(FUNCTION(n) + 152, NAME(3));
	put(FUNCTION(n) + 160, n + 1, 4);
}

static void begin(void)
{
	made_runtime_begin(&record);
	put_word(ROOT + 488, FRAME(0));
	put_frame(0, 0, FRAME(1));
	put_frame(1, PHP_CALL_TOP, FRAME(2));
	put_frame(2, PHP_CALL_TOP | PHP_CALL_CODE, 0);
	put_function(0, NAME(0), 0);
	put_function(1, NAME(1), CLASS);
	put_function(2, 0, 0);
	put_word(CLASS + PHP_CLASS_NAME, NAME(2));
	put_text(NAME(0), "leaf");
	put_text(NAME(1), "middle");
	put_text(NAME(2), "B");
	put_text(NAME(3), "/srv/app.php");
}

static void shows_the_functions_that_each_loop_runs(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = made_runtime_take();
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 4 && !gap_in(s));
	CHECK(is_told(s, 0, "leaf", "/srv/app.php", 10));
	CHECK(is_told(s, 1, "Bmiddle", "/srv/app.php", 11));
	CHECK(told(frame_code(user_frame(s, 1)))->owner_bytes == 1);
	CHECK(is_told(s, 2, "", "/srv/app.php", 12));
	CHECK(told(frame_code(user_frame(s, 2)))->form == RUNTIME_FORM_MAIN);
	CHECK(user_frame(s, 3) == frame_at(0x23f));
	made_runtime_end();
}

static bool is_whole(const struct event_sample *s)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == 4 && !gap_in(s) &&
	       is_told(s, 0, "leaf", "/srv/app.php", 10) &&
	       is_told(s, 1, "Bmiddle", "/srv/app.php", 11) &&
	       is_told(s, 2, "", "/srv/app.php", 12) && user_frame(s, 3) == frame_at(0x23f);
}

/* Each thread's own, behind what its variable below the thread pointer leads to. */
static void begin_with_threads(enum php_root root)
{
	struct runtime_record r = record;
	r.layout.php.root = (uint16_t)root;
	r.layout.php.thread_at = root == PHP_ROOT_FIXED ? -0x18 : 0x40;
	begin();
	uint32_t zero = 0;
	struct runtime_record *published = bpf_map_lookup_elem(&runtime_records, &zero);
	published->layout = r.layout;
	put_word(ROOT + 0x40, (uint64_t)-0x18);
	put_word(ROOT, 0x100);
	put_word(POINTER - 0x18, ROOT - 0x100);
}

static void shows_the_functions_of_this_thread(void **state)
{
	(void)state;
	static const uint64_t places[] = { POINTER - 0x18, ROOT };
	for (int root = PHP_ROOT_FIXED; root <= PHP_ROOT_OFFSET; root++) {
		begin_with_threads((enum php_root)root);
		CHECK(is_whole(made_runtime_take()));
		made_runtime_end();
		for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
			begin_with_threads((enum php_root)root);
			put_word(places[i], 0); /* it has none yet */
			const struct event_sample *s = made_runtime_take();
			CHECK(s->h.stack_end == STACK_END_ROOT && !counted()->runtime_frames);
			CHECK(counted()->runtime_threads == 1);
			made_runtime_end();
		}
	}
}

/* At JIT is memory that processes share, with code of opcache's: a file without a table. */
static void begin_with_code(void)
{
	begin();
	world.vmas[1].vma.vm_file = &world.files[1];
	(void)world_publish(1, FILE_ID + 1, 0, NULL, 0, false);
	settings.has_php = 1;
	world.mm.start_code = TEXT;
}

static void shows_functions_that_were_compiled(void **state)
{
	(void)state;
	begin_with_code();
	leaf_pc = JIT + 0x20;
	CHECK(is_whole(made_runtime_take()));
	world.mm.start_code = TEXT + TEXT_BYTES; /* of another program */
	const struct event_sample *s = made_runtime_take();
	CHECK(s->h.stack_end == STACK_END_NO_TABLE && s->user_count == 1);
	made_runtime_end();
	begin_with_code(); /* called from C, in a program that has PHP's library */
	world.mm.start_code = 0;
	leaf_pc = CALLEE;
	*world_word(SP0 + LOOP_BYTES - 8) = JIT + 0x20;
	CHECK(is_whole(made_runtime_take()));
	settings.has_php = 0;
	CHECK(!is_whole(made_runtime_take()));
	made_runtime_end();
}

/* clang-format off */
static const struct {
	const char *name;
	uint64_t at, word;
	enum stack_end end; unsigned gap; uint32_t functions;
} cases[] = {
	{ "nothing is executed", ROOT + 488, 0, STACK_END_ROOT, 0, 0 },
	{ "a frame that is not mapped", FRAME(0) + PHP_FRAME_PREVIOUS, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_FRAME, 1 },
	{ "a frame that is not mapped whole", FRAME(0) + PHP_FRAME_PREVIOUS, DATA + DATA_BYTES - 8,
		STACK_END_ROOT, RUNTIME_GAP_FRAME, 1 },
	{ "frames in a cycle", FRAME(0) + PHP_FRAME_PREVIOUS, FRAME(0), STACK_END_DEPTH, 0, 1024 },
	{ "a function that is not mapped", FRAME(1) + PHP_FRAME_FUNCTION, UNMAPPED, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "a function of no type", FUNCTION(0), 3, STACK_END_ROOT, RUNTIME_GAP_CODE, 2 },
	{ "no end of the run", FRAME(1) + PHP_FRAME_INFO, 0, STACK_END_ROOT, 0, 3 },
	{ "more runs than native frames", FRAME(2) + PHP_FRAME_PREVIOUS, FRAME(1), STACK_END_ROOT, RUNTIME_GAP_OWNER, 3 },
	{ "a name that is not mapped", FUNCTION(0) + PHP_FUNCTION_NAME, UNMAPPED, STACK_END_ROOT, 0, 3 },
	{ "2^64 - 1 bytes of a name", NAME(0) + PHP_TEXT_LENGTH, UINT64_MAX, STACK_END_ROOT, 0, 3 },
	{ "instructions elsewhere", FRAME(0), UNMAPPED, STACK_END_ROOT, 0, 3 },
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
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, FRAME(1), FUNCTION(1) };
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
	cmocka_unit_test(shows_the_functions_of_this_thread),
	cmocka_unit_test(shows_functions_that_were_compiled),
	cmocka_unit_test(says_why_frames_are_missing), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
