/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/hotspot.h as ordinary C: the structures of a JVM of 17 lead to the right frames, and
 * forged ones end after a bounded number of reads, without a read that goes too far.
 *
 * The stack, from the leaf: a compiled method into which two others were put, one that the
 * interpreter runs, the stub that C++ calls Java by, and a function of the library.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

/* Of user memory, that one sample may cost: for each of 1,024 frames a blob with 48 steps to it, 18
 * steps to a place, and what a method is read from; 12 for each method told. */
#define READS_MAX (1024 * (48 + 18 + 16) + 12 * 820 + 200)
#define ROUNDS 20000

#define DATA 0x555600000000ULL
#define DATA_BYTES 0x8000
#define PLACE(n) (DATA + 0x400 * (uint64_t)(n))
#define ROOT PLACE(0)
#define HEAPS PLACE(1)
#define HEAP PLACE(2)
#define SEGMENTS PLACE(3)
#define QUEUE PLACE(4)
#define METHOD(n) (PLACE(5) + 0x40 * (uint64_t)(n))
#define CONST(n) PLACE(6 + (n)) /* 4 */
#define POOL PLACE(10)
#define CLASS PLACE(11)
#define SYMBOL(n) (PLACE(12) + 0x40 * (uint64_t)(n)) /* 6 */
#define NMETHOD_NAME PLACE(13)
#define SCOPES PLACE(15)

/* The code heap lies in JIT's page: an nmethod at 0x100, the interpreter at 0x800. */
#define SEGMENT_SHIFT 7
#define BLOB (JIT + 0x100 + 16)
#define CODE (BLOB + 0x180)
#define INTERPRETER (JIT + 0x800)
#define CALL_STUB (JIT + 0xc10)
#define PLACES (JIT + 0xd00)
#define METADATA (JIT + 0xe00)
#define FRAME_WORDS 6
#define FP (SP0 + 0x200) /* of the interpreted method */
#define STUB_FP (SP0 + 0x300)

static const struct hotspot_layout layout = { .interpreter = 8,
	.call_stub_return = 16,
	.flags = HOTSPOT_CODE_POINTER | HOTSPOT_DEOPT_POINTER | HOTSPOT_SCOPES_POINTER,
	.array_length = 0,
	.array_data = 16,
	.heap_low = 24,
	.heap_high = 16,
	.heap_segments = 136,
	.heap_shift = 256,
	.block_bytes = 16,
	.queue_buffer = 8,
	.queue_bytes = 20,
	.blob_name = 96,
	.blob_bytes = 12,
	.blob_code = 32,
	.blob_data = 24,
	.blob_frame_words = 28,
	.blob_complete = 20,
	.nmethod_method = 112,
	.nmethod_deopt = 128,
	.nmethod_original_pc = 300,
	.nmethod_compile_id = 304,
	.nmethod_scopes = 120,
	.nmethod_pcs = 268,
	.nmethod_pcs_end = 272,
	.nmethod_metadata = 260,
	.method_const = 8,
	.const_pool = 8,
	.const_words = 24,
	.const_code_bytes = 32,
	.const_name = 34,
	.const_size = 48,
	.const_flags = 28,
	.pool_class = 24,
	.pool_file = 54,
	.pool_size = 72,
	.class_name = 24,
	.symbol_length = 4,
	.symbol_text = 6 };

static uint8_t *data;   /* at DATA */
static uint8_t *memory; /* at JIT; exact sizes, for the sanitizer */
static struct file_slot *library;

static void put(uint64_t at, uint64_t value, size_t bytes)
{
	if (at >= JIT && at + bytes <= JIT + 0x1000) {
		memcpy(memory + (at - JIT), &value, bytes);
		return;
	}
	CHECK(at >= DATA && at + bytes <= DATA + DATA_BYTES);
	memcpy(data + (at - DATA), &value, bytes);
}

static void put_symbol(unsigned n, const char *text)
{
	put(SYMBOL(n) + layout.symbol_length, strlen(text), 2);
	memcpy(data + (SYMBOL(n) + layout.symbol_text - DATA), text, strlen(text));
	put(POOL + layout.pool_size + 8 * (n + 1), SYMBOL(n), 8);
}

/* Method n is "p/C.m<n>", of 20 bytes of code, with a table of lines of 3 bytes. */
static void put_method(unsigned n)
{
	static const char *const names[] = { "m0", "m1", "m2", "m3" };
	put(METHOD(n) + layout.method_const, CONST(n), 8);
	put(CONST(n) + layout.const_pool, POOL, 8);
	put(CONST(n) + layout.const_words, 9, 4);
	put(CONST(n) + layout.const_code_bytes, 20, 2);
	put(CONST(n) + layout.const_name, n + 1, 2);
	put(CONST(n) + layout.const_flags, 1, 2);
	put(CONST(n) + layout.const_size + 20, 0x0021, 3);
	put_symbol(n, names[n]);
}

static void put_heap(void)
{
	put(ROOT, HEAPS, 8);
	put(ROOT + 8, QUEUE, 8);
	put(ROOT + 16, CALL_STUB, 8);
	put(HEAPS, 1, 4);
	put(HEAPS + 16, HEAPS + 64, 8);
	put(HEAPS + 64, HEAP, 8);
	put(HEAP + layout.heap_low, JIT, 8);
	put(HEAP + layout.heap_high, JIT + 0x1000, 8);
	put(HEAP + layout.heap_segments, SEGMENTS, 8);
	put(HEAP + layout.heap_shift, SEGMENT_SHIFT, 4);
	memset(data + (SEGMENTS - DATA), 0xff, 32);
	for (unsigned i = 2; i < 14; i++) /* of the nmethod */
		put(SEGMENTS + i, i - 2, 1);
	put(QUEUE + layout.queue_buffer, INTERPRETER, 8);
	put(QUEUE + layout.queue_bytes, 0x400, 4);
}

/* Two places: at 16 m0 alone, at 32 m2 in m1 in m0. */
static void put_nmethod(void)
{
	put(BLOB + layout.blob_name, NMETHOD_NAME, 8);
	memcpy(data + (NMETHOD_NAME - DATA), "nmethod", 8);
	put(BLOB + layout.blob_bytes, 0x600, 4);
	put(BLOB + layout.blob_code, CODE, 8);
	put(BLOB + layout.blob_frame_words, FRAME_WORDS, 4);
	put(BLOB + layout.blob_complete, 12, 4);
	put(BLOB + layout.nmethod_method, METHOD(0), 8);
	put(BLOB + layout.nmethod_deopt, CODE + 0x200, 8);
	put(BLOB + layout.nmethod_original_pc, 8, 4);
	put(BLOB + layout.nmethod_scopes, SCOPES, 8);
	put(BLOB + layout.nmethod_pcs, PLACES - BLOB, 4);
	put(BLOB + layout.nmethod_pcs_end, PLACES - BLOB + 4 * HOTSPOT_PLACE_BYTES, 4);
	put(BLOB + layout.nmethod_metadata, METADATA - BLOB, 4);
	static const int32_t places[][2] = { { -1, 0 }, { 16, 4 }, { 32, 12 }, { INT32_MAX, 0 } };
	for (unsigned i = 0; i < ARRAY_COUNT(places); i++)
		memcpy(memory + (PLACES - JIT) + i * HOTSPOT_PLACE_BYTES, places[i], 8);
	for (unsigned n = 0; n < 4; n++)
		put(METADATA + 8 * n, METHOD(n), 8);
	/* Around, method, bytecode and 1. */
	memcpy(data + (SCOPES - DATA) + 4, "\x00\x01\x06", 3);
	memcpy(data + (SCOPES - DATA) + 8, "\x04\x02\x07", 3);
	memcpy(data + (SCOPES - DATA) + 12, "\x08\x03\x08", 3);
}

static void put_stack(void)
{
	uint64_t cfa = SP0 + FRAME_WORDS * 8;
	*world_word(cfa - 16) = FP;
	*world_word(cfa - 8) = INTERPRETER + 0x40;
	*world_word(FP - 64) = CONST(3) + layout.const_size + 9;
	*world_word(FP - 24) = METHOD(3);
	*world_word(FP - 8) = FP + 32;
	*world_word(FP) = STUB_FP;
	*world_word(FP + 8) = CALL_STUB;
	*world_word(STUB_FP) = 0;
	*world_word(STUB_FP + 8) = CALLER;
}

static void begin(void)
{
	const struct world_row rows[] = { { 0, { 0 } }, { 0x200, rule_stop } };
	begin_with(NULL, 0);
	library = world_publish(
		0, FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, rows, ARRAY_COUNT(rows), false);
	uint32_t zero = 0;
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	*r = (struct runtime_record){ .kind = RUNTIME_HOTSPOT,
		.version = 17 << 8,
		.text_from = TEXT_OFFSET + 0x100,
		.text_bytes = 0x100,
		.delta = ROOT - TEXT + TEXT_OFFSET };
	r->layout.hotspot = layout;
	library->value.runtime = 1;
	settings.has_code_runtimes = 1;
	data = calloc(1, DATA_BYTES);
	memory = calloc(1, 0x1000);
	CHECK(data && memory);
	shim_add_user(DATA, data, DATA_BYTES);
	shim_add_user(JIT, memory, 0x1000);
	put_heap();
	put_nmethod();
	for (unsigned n = 0; n < 4; n++)
		put_method(n);
	put_symbol(4, "p/C");
	put_symbol(5, "C.java");
	put(CLASS + layout.class_name, SYMBOL(4), 8);
	put(POOL + layout.pool_class, CLASS, 8);
	put(POOL + layout.pool_file, 6, 2);
	put_stack();
}

static void end(void)
{
	check_conservation();
	free(data);
	free(memory);
	world_end();
}

static const struct event_sample *take(uint64_t pc, uint64_t sp, uint64_t fp)
{
	shim.user_reads = 0;
	const struct event_sample *s = world_sample(pc, sp, fp);
	CHECK(s && shim.user_reads <= READS_MAX);
	return s;
}

static bool is_method(const struct event_sample *s, uint32_t i, unsigned n, unsigned position)
{
	char name[] = "p/C.m0";
	uint64_t frame = user_frame(s, i);
	name[5] = (char)('0' + n);
	for (uint32_t k = 0; k < shim.event_count; k++) {
		const struct event_code *e = (const void *)shim.events[k];
		if (e->type == EVENT_CODE && e->code == frame_code(frame))
			return (frame & FRAME_POSITION_NONE) == position &&
			       e->kind == RUNTIME_HOTSPOT && e->name_bytes == 6 &&
			       memcmp(e->data, name, 6) == 0 && e->file_bytes == 6 &&
			       memcmp(e->data + 6, "C.java", 6) == 0 && e->lines_bytes == 4;
	}
	return false;
}

/* From the interpreted method on. */
static bool is_rest(const struct event_sample *s, uint32_t i)
{
	return s->user_count == i + 2 && s->h.stack_end == STACK_END_ROOT &&
	       is_method(s, i, 3, 9) && user_frame(s, i + 1) == frame_at(0x23f);
}

/* ---- tests ---- */

static void shows_methods_that_were_put_into_others(void **state)
{
	(void)state;
	begin();
	const struct event_sample *s = take(CODE + 30, SP0, 0);
	CHECK(is_method(s, 0, 2, 7) && is_method(s, 1, 1, 6) && is_method(s, 2, 0, 5));
	CHECK(is_rest(s, 3));
	shim_drop_events();
	s = take(CODE + 14, SP0, 0);
	CHECK(s->user_count == 3); /* told already */
	CHECK(counted()->runtime_frames == 6 && counted()->codes == 4);
	end();
}

static void knows_where_frames_begin_and_end(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		unsigned offset; /* of the code */
		const char *bytes;
		unsigned len;
		unsigned pushed; /* words of the frame that are there */
		bool fp_is_kept; /* rbp is the caller's */
	} cases[] = {
		{ "bang", 0, "\x89\x84\x24", 3, 1, true },            /* mov %eax, x(%rsp) */
		{ "push", 7, "\x55", 1, 1, true },                    /* push %rbp */
		{ "pop", 60, "\x5d", 1, 2, false },                   /* pop %rbp */
		{ "ret", 61, "\xc3", 1, 1, true },                    /* ret */
		{ "poll of 17", 61, "\x49\x3b\x67\x58", 4, 1, true }, /* cmp 88(%r15), %rsp */
		{ "poll of 8", 61, "\x85\x05\0\0\0\0\xc3", 7, 1,
			true },                                       /* test %eax, x(%rip); ret */
		{ "poll of 11", 61, "\x41\x85\x02\xc3", 4, 1, true }, /* test %eax, (%r10); ret */
	};
	FOR_EACH_CASE (c, cases) {
		begin();
		memcpy(memory + (CODE - JIT) + c->offset, c->bytes, c->len);
		uint64_t sp = SP0 + FRAME_WORDS * 8 - 8 * c->pushed;
		const struct event_sample *s = take(CODE + c->offset, sp, c->fp_is_kept ? FP : 0);
		CHECK_CASE(c, s->user_count >= 3 && is_rest(s, s->user_count - 2));
		end();
	}
	begin(); /* behind push %rbp */
	memory[CODE - JIT + 7] = 0x55;
	const struct event_sample *s = take(CODE + 8, SP0 + FRAME_WORDS * 8 - 16, 0);
	CHECK(is_rest(s, s->user_count - 2));
	end();
}

static void finds_the_address_of_a_method_that_is_given_up(void **state)
{
	(void)state;
	begin();
	uint64_t fp = SP0 - 64;
	*world_word(fp - 64) = CONST(3) + layout.const_size + 9;
	*world_word(fp - 24) = METHOD(3);
	*world_word(fp - 8) = SP0;
	*world_word(fp) = 0;
	*world_word(fp + 8) = CODE + 0x200;
	*world_word(SP0 + 8) = CODE + 32;
	const struct event_sample *s = take(INTERPRETER + 0x50, fp - 72, fp);
	CHECK(is_method(s, 0, 3, 9) && is_method(s, 1, 2, 7) && is_method(s, 3, 0, 5));
	CHECK(is_rest(s, 4));
	end();
}

/* An interpreted method that compiled code has called, whose frames are the same each time. */
static const struct event_sample *take_below(void)
{
	uint64_t fp = SP0 - 64;
	*world_word(fp - 64) = CONST(3) + layout.const_size + 9;
	*world_word(fp - 24) = METHOD(3);
	*world_word(fp - 8) = SP0;
	*world_word(fp) = 0;
	*world_word(fp + 8) = CODE + 32;
	return take(INTERPRETER + 0x50, fp - 72, fp);
}

static bool is_chain(const struct event_sample *s)
{
	return is_method(s, 0, 3, 9) && is_method(s, 1, 2, 7) && is_method(s, 2, 1, 6) &&
	       is_method(s, 3, 0, 5) && is_rest(s, 4);
}

static void keeps_what_a_return_address_leads_to(void **state)
{
	(void)state;
	begin();
	settings.seen_enabled = 0;
	put(BLOB + layout.nmethod_compile_id, 5, 4);
	CHECK(is_chain(take_below()));
	uint64_t reads = shim.user_reads;
	CHECK(is_chain(take_below()));
	CHECK(shim.user_reads + 12 <= reads); /* 12 for three scopes */
	/* The same places in another method's code. */
	put(METADATA + 8, METHOD(0), 8);
	CHECK(is_chain(take_below()));
	put(BLOB + layout.nmethod_compile_id, 6, 4);
	CHECK(is_method(take_below(), 1, 2, 7) && is_method(take_below(), 2, 0, 6));
	put(METADATA + 8, METHOD(1), 8);
	settings.codes_epoch++; /* all are told again */
	uint64_t codes = counted()->codes;
	CHECK(is_chain(take_below()) && counted()->codes == codes + 4);
	end();
}

static void keeps_nothing_that_was_not_told(void **state)
{
	(void)state;
	begin();
	settings.seen_enabled = 0;
	uint64_t name = POOL + layout.pool_size + 8 * 2; /* of m1 */
	put(name, 16, 8);
	CHECK(!is_method(take_below(), 2, 1, 6));
	put(name, SYMBOL(1), 8);
	CHECK(is_chain(take_below()));
	end();
}

static void finds_code_on_large_pages(void **state)
{
	(void)state;
	begin();
	CHECK(world.vmas[1].vma.vm_start == JIT);
	world.vmas[1].vma.vm_file = &world.files[1];
	CHECK(is_rest(take(CODE + 30, SP0, 0), 3));
	end();
}

static void leaves_other_processes_alone(void **state)
{
	(void)state;
	begin();
	put(ROOT + 8, 0, 8); /* the interpreter is not there yet */
	const struct event_sample *s = take(CODE + 30, SP0, 0);
	CHECK(s->user_count == 1 && user_frame(s, 0) == CODE + 30);
	uint64_t reads = shim.user_reads;
	put(ROOT + 8, QUEUE, 8);
	s = take(CODE + 30, SP0, 0); /* not asked again so soon */
	CHECK(s->user_count == 1 && shim.user_reads <= reads);
	shim.clock_ns += 1000000000;
	s = take(CODE + 30, SP0, 0);
	CHECK(is_rest(s, 3));
	shim.clock_ns += 1000000000;
	settings.has_code_runtimes = 0;
	s = take(CODE + 30, SP0, 0);
	CHECK(s->user_count == 1);
	end();
}

/* The place of its record is given to another build: that one's offsets are not taken for its own.
 */
static void asks_again_when_the_record_is_another_one(void **state)
{
	(void)state;
	begin();
	settings.seen_enabled = 0;
	CHECK(is_rest(take(CODE + 30, SP0, 0), 3));
	uint32_t first = 0, second = 1;
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &first);
	struct runtime_record *moved = bpf_map_lookup_elem(&runtime_records, &second);
	*moved = *r;
	r->kind = RUNTIME_CPYTHON;
	r->layout.hotspot.method_const = 0;
	const struct event_sample *s = take(CODE + 30, SP0, 0);
	CHECK(s->user_count == 1 && user_frame(s, 0) == CODE + 30);
	r->kind = RUNTIME_HOTSPOT; /* of another version */
	shim.clock_ns += 1000000000;
	s = take(CODE + 30, SP0, 0);
	CHECK(s->user_count > 0 && !is_rest(s, 3));
	library->value.runtime = 2;
	r->layout.hotspot.method_const = 16;
	CHECK(is_rest(take(CODE + 30, SP0, 0), 3));
	end();
}

/* A page that the process has not touched cannot be read. */
static void tells_a_method_once_its_name_can_be_read(void **state)
{
	(void)state;
	begin();
	settings.seen_enabled = 0;
	uint64_t name = POOL + layout.pool_size + 8 * 4; /* of m3 */
	put(name, 16, 8);
	const struct event_sample *s = take(CODE + 30, SP0, 0);
	CHECK(s->user_count == 5 && is_method(s, 2, 0, 5) && !is_method(s, 3, 3, 9));
	CHECK(counted()->codes == 3 && counted()->codes_put_off == 1);
	put(name, SYMBOL(3), 8);
	CHECK(is_rest(take(CODE + 30, SP0, 0), 3) && counted()->codes == 4);
	end();
}

/* Words anywhere in the structures and on the stack become others: the sample comes, and costs no
 * more than it may. */
static void bears_forged_structures(void **state)
{
	(void)state;
	uint32_t random = 1;
	begin();
	uint8_t *kept = malloc(DATA_BYTES + 0x1000);
	CHECK(kept);
	memcpy(kept, data, DATA_BYTES);
	memcpy(kept + DATA_BYTES, memory, 0x1000);
	for (int i = 0; i < ROUNDS; i++) {
		static const uint64_t values[] = { 0, 1, 0xffffffff, UINT64_MAX - 8,
			DATA + DATA_BYTES - 8, BLOB, METHOD(1), CONST(2), SP0, FP, CODE + 30,
			INTERPRETER + 8 };
		memcpy(data, kept, DATA_BYTES);
		memcpy(memory, kept + DATA_BYTES, 0x1000);
		put_stack();
		for (uint32_t k = 0; k <= random_below(&random, 4); k++) {
			uint64_t value = values[random_below(&random, ARRAY_COUNT(values))];
			size_t bytes = 1u << random_below(&random, 4);
			uint32_t at = random_below(&random, DATA_BYTES / 4);
			if (random_below(&random, 2))
				put(DATA + at, value, bytes);
			else if (random_below(&random, 2))
				put(BLOB + at % 0x150, value, bytes);
			else
				*world_word(SP0 + at % 0x400 / 8 * 8) = value;
		}
		shim.clock_ns += 1000000000;
		world.task.self_exec_id++; /* nothing is kept of it */
		(void)take(i % 2 ? CODE + 30 : INTERPRETER + 0x40, SP0, i % 2 ? 0 : FP);
		shim_drop_events();
	}
	free(kept);
	end();
}

/* Nothing is kept of the process before. */
static const struct event_sample *take_anew(void)
{
	shim.clock_ns += 1000000000;
	world.task.self_exec_id++;
	return take(CODE + 30, SP0, 0);
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	begin();
	changes_while_it_is_read(take_anew);
	end();
}

TEST_MAIN(cmocka_unit_test(shows_methods_that_were_put_into_others),
	cmocka_unit_test(knows_where_frames_begin_and_end),
	cmocka_unit_test(finds_the_address_of_a_method_that_is_given_up),
	cmocka_unit_test(keeps_what_a_return_address_leads_to),
	cmocka_unit_test(keeps_nothing_that_was_not_told),
	cmocka_unit_test(finds_code_on_large_pages), cmocka_unit_test(leaves_other_processes_alone),
	cmocka_unit_test(asks_again_when_the_record_is_another_one),
	cmocka_unit_test(tells_a_method_once_its_name_can_be_read),
	cmocka_unit_test(bears_forged_structures),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
