/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/beam.h as ordinary C: the words of an Erlang process' stack lead to the right frames,
 * and forged ones end after a bounded number of reads. The leaf is code that was made, or a
 * function in C that such code has called.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
#include "shim/made_runtime.h"
/* clang-format on */

#define PROCESS PLACE(2)
#define HEAP PLACE(4)
#define HEAP_WORDS 0x100
#define HEAP_END (HEAP + 8 * HEAP_WORDS)
#define STACK (HEAP_END - 8 * 30)
#define STOP_AT 0x58
#define LEAF (JIT + 0x20)
#define CALLS_C (JIT + 0x40)
#define TERM 0x1f

static uint8_t code[0x100];

static const struct runtime_record record = { .kind = RUNTIME_BEAM, .version = 25 << 8 };

static void begin(void)
{
	made_runtime_begin(&record);
	settings.has_code_runtimes = 1;
	memset(code, 0x90, sizeof(code));
	memcpy(code + (CALLS_C - JIT) + 3, "\x49\x8b\x65\x58", 4); /* mov 0x58(%r13), %rsp */
	shim_add_user(JIT, code, sizeof(code));
	put_word(PROCESS + STOP_AT, STACK);
	put_word(PROCESS + 8 * 24, HEAP);
	put_word(PROCESS + 8 * 25, HEAP_END);
	put_word(PROCESS + 8 * 27, HEAP_WORDS);
	for (unsigned i = 0; i < 30; i++)
		put_word(STACK + 8 * i, TERM);
	put_word(STACK + 8 * 1, JIT + 0x44);
	put_word(STACK + 8 * 2, STACK + 8 * 20); /* a frame pointer */
	put_word(STACK + 8 * 3, JIT + 0x64);
	put_word(STACK + 8 * 25, JIT + 0x84);
}

static const struct event_sample *take(void)
{
	const struct x86_regs regs = { .ip = LEAF, .sp = STACK, .cs = 0x33, .r13 = PROCESS };
	shim.user_reads = 0;
	const struct event_sample *s = world_sample_at(&regs);
	CHECK(s && shim.user_reads <= MADE_READS_MAX);
	return s;
}

/* A function in C, called by what is at CALLS_C, has saved the process. */
static const struct event_sample *take_in_c(void)
{
	*world_word(SP0 + LOOP_BYTES - 8) = CALLS_C;
	*world_word(SP0 + LOOP_BYTES - 32) = PROCESS;
	return made_runtime_take();
}

static bool is_at(const struct event_sample *s, uint32_t i, uint64_t address)
{
	return i < s->user_count &&
	       user_frame(s, i) == ((uint64_t)FRAME_FILE_ADDRESS << FRAME_FILE_SHIFT | address);
}

/* From frame `i` on. */
static bool has_callers(const struct event_sample *s, uint32_t i)
{
	return s->h.stack_end == STACK_END_ROOT && s->user_count == i + 3 &&
	       is_at(s, i, JIT + 0x43) && is_at(s, i + 1, JIT + 0x63) &&
	       is_at(s, i + 2, JIT + 0x83);
}

static void follows_return_addresses(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = take();
	CHECK(is_at(s, 0, LEAF) && has_callers(s, 1));
	made_runtime_end();
}

static void goes_on_where_c_was_called(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = take_in_c();
	CHECK(is_at(s, 1, CALLS_C - 1) && has_callers(s, 2));
	made_runtime_end();
}

/* By the frame pointer, which leads nowhere here. */
static void leaves_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t at, word;
	} cases[] = {
		{ "another size", PROCESS + 8 * 27, HEAP_WORDS - 1 },
		{ "no heap", PROCESS + 8 * 24, 0 },
		{ "a stack elsewhere", PROCESS + STOP_AT, DATA },
	};
	FOR_EACH_CASE (c, cases) {
		begin();
		put_word(c->at, c->word);
		const struct event_sample *s = take_in_c();
		CHECK_CASE(c, s->h.stack_end != STACK_END_ROOT && s->user_count == 2);
		made_runtime_end();
	}
	begin();
	code[CALLS_C - JIT + 6] = 0; /* nothing gives the stack back */
	put_word(PROCESS, TERM);
	CHECK(take_in_c()->user_count == 2);
	made_runtime_end();
	begin(); /* two processes */
	memcpy(data + (PLACE(3) - DATA), data + (PROCESS - DATA), 256);
	*world_word(SP0 + LOOP_BYTES - 40) = PLACE(3);
	CHECK(take_in_c()->user_count == 2);
	made_runtime_end();
}

static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { MADE_RUNTIME_WORDS, STACK, HEAP, HEAP_END, PROCESS,
		JIT + 0x10, CALLEE };
	for (uint64_t at = PROCESS; at < HEAP_END; at += 8) {
		begin();
		uint64_t was;
		memcpy(&was, data + (at - DATA), sizeof(was));
		for (size_t i = 0; was && i < ARRAY_COUNT(words); i++) {
			put_word(at, words[i]);
			CHECK(take()->user_count <= SAMPLE_USER_FRAMES_MAX);
			CHECK(take_in_c()->user_count <= SAMPLE_USER_FRAMES_MAX);
			shim_drop_events();
		}
		made_runtime_end();
	}
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin();
	changes_while_it_is_read(take);
	changes_while_it_is_read(take_in_c);
	made_runtime_end();
}

TEST_MAIN(cmocka_unit_test(follows_return_addresses), cmocka_unit_test(goes_on_where_c_was_called),
	cmocka_unit_test(leaves_what_it_does_not_know), cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
