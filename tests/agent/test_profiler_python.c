/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent/bpf/python.h as ordinary C: the structures of CPython 3.11 and 3.13 lead to the right
 * frames, and forged ones end with a reason in the stack after a bounded number of reads.
 *
 * Natively the leaf and its caller are the interpreter's loop, each with a frame of 256 bytes; the
 * outermost one is main. The first loop runs `leaf` and `middle`, the second one `outer`.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

/* Reads of user memory that one sample may cost: 2 for each of 256 threads, 2 for each of 2,048
 * steps, 7 for each function told, of which 32 KiB hold 820; and those of native frames. */
#define READS_MAX (2 * 256 + 2 * 2048 + 7 * 820 + 100)

/* ---- structures ---- */

#define DATA 0x555600000000ULL /* _PyRuntime; behind it the rest, 1 KiB each */
#define DATA_BYTES 0x8000
#define PLACE(n) (DATA + 0x400 * (uint64_t)(n))
#define ROOT PLACE(0)
#define INTERP PLACE(1)
#define GIL PLACE(2)
#define THREAD PLACE(3)
#define OTHER PLACE(4) /* another thread, which holds the lock */
#define FRAME(n) (PLACE(5) + 0x80 * (uint64_t)(n))
#define CODE(n) PLACE(6 + (n))
#define NAME(n) PLACE(10 + (n))
#define PATH PLACE(14)
#define LINES PLACE(15)
#define UNMAPPED 0x1000ULL
#define POINTER 0x7fff12345680ULL /* of this thread */

#define LOOP_BYTES 256
#define OWNER(n) (SP0 + 64 + (uint64_t)LOOP_BYTES * (n)) /* in the native frame of loop n */

static const struct cpython_layout layout_3_11 = { .frames = CPYTHON_ENTRIES,
	.runtime_head = 40,
	.runtime_current = 576,
	.interp_threads = 16,
	.thread_next = 8,
	.thread_id = 152,
	.thread_frame = 56,
	.cframe_frame = 8,
	.cframe_previous = 16,
	.frame_code = 32,
	.frame_previous = 48,
	.frame_instr = 56,
	.frame_owner = 68,
	.owner_loop = 1,
	.code_first_line = 72,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_instr = 184,
	.text_ascii = 48,
	.text_compact = 72,
	.object_head = 16 };

static const struct cpython_layout layout_3_13 = { .frames = CPYTHON_OWNED,
	.loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
	.runtime_head = 632,
	.interp_next = 120,
	.interp_threads = 112,
	.interp_gil = 528,
	.gil_holder = 8,
	.thread_next = 8,
	.thread_id = 152,
	.thread_frame = 72,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_owner = 70,
	.owner_loop = 3,
	.code_first_line = 68,
	.code_file = 112,
	.code_name = 128,
	.code_lines = 136,
	.code_instr = 200,
	.text_ascii = 40,
	.text_compact = 56,
	.object_head = 16 };

/* Without a global lock: objects have a larger head. */
static const struct cpython_layout layout_3_13_free = { .frames = CPYTHON_OWNED,
	.loop = { TEXT_OFFSET + 0x100, TEXT_OFFSET + 0x200 },
	.runtime_head = 632,
	.interp_next = 120,
	.interp_threads = 112,
	.interp_gil = 528,
	.gil_holder = 8,
	.thread_next = 8,
	.thread_id = 152,
	.thread_frame = 72,
	.frame_code = 0,
	.frame_previous = 8,
	.frame_instr = 56,
	.frame_owner = 70,
	.owner_loop = 3,
	.code_first_line = 84,
	.code_file = 128,
	.code_name = 144,
	.code_lines = 152,
	.code_instr = 216,
	.text_ascii = 56,
	.text_compact = 72,
	.object_head = 32 };
static struct cpython_layout layout_3_14_free; /* the same, and each thread has its copies */
#define COPIES(n) (PLACE(16) + 0x40 * (uint64_t)(n))
#define COPY(n) PLACE(17 + (n))
#define BOTTOM PLACE(21) /* 3.15: the outermost frame, in the thread's state */

static const struct version {
	const char *name;
	uint16_t number;
	const struct cpython_layout *layout;
} versions[] = {
	{ "3.11", 3 << 8 | 11, &layout_3_11 },
	{ "3.13", 3 << 8 | 13, &layout_3_13 },
	{ "3.13t", 3 << 8 | 13, &layout_3_13_free },
	{ "3.14t", 3 << 8 | 14, &layout_3_14_free },
	{ "3.15", 3 << 8 | 15, &layout_3_13 },
};

static const char *const names[] = { "leaf", "Work.middle", "outer" };
static uint8_t *data; /* at DATA; exact size, for the sanitizer */
static const struct cpython_layout *layout;

static void put(uint64_t at, uint64_t value, size_t bytes)
{
	CHECK(at >= DATA && at + bytes <= DATA + DATA_BYTES);
	memcpy(data + (at - DATA), &value, bytes);
}

static void put_word(uint64_t at, uint64_t value)
{
	if (at >= WORLD_STACK_BASE && at < WORLD_STACK_TOP)
		*world_word(at) = value;
	else
		put(at, value, sizeof(value));
}

static uint64_t state_word(unsigned state)
{
	return (uint64_t)state << (layout->text_shift ? layout->text_shift : 2);
}

/* `state` as the object has it: bytes a character, compact, ASCII. */
static void put_text(uint64_t at, const char *text, unsigned state)
{
	put_word(at + layout->object_head, strlen(text));
	put(at + layout->object_head + 16u, state_word(state), 4);
	uint64_t to = at + (state & 16 ? layout->text_ascii : layout->text_compact);
	memcpy(data + (to - DATA), text, strlen(text));
}

static void put_code(unsigned n)
{
	put_text(NAME(n), names[n], 1 | 8 | 16);
	put_word(CODE(n) + layout->code_name, NAME(n));
	put_word(CODE(n) + layout->code_file, PATH);
	put_word(CODE(n) + layout->code_lines, LINES);
	put(CODE(n) + layout->code_first_line, 10 * (n + 1), 4);
}

/* Function n, at instruction 5 + n. */
static void put_frame(unsigned n, uint64_t previous, uint64_t owner)
{
	put_word(FRAME(n) + layout->frame_code, CODE(n));
	put_word(FRAME(n) + layout->frame_previous, previous);
	uint64_t begin = CODE(n) + layout->code_instr;
	if (layout->code_copies) {
		begin = COPY(n);
		put(FRAME(n) + layout->frame_copy, 1, 4);
		put_word(CODE(n) + layout->code_copies, COPIES(n));
		put_word(COPIES(n) + 16, COPY(n));
	}
	put_word(FRAME(n) + layout->frame_instr, begin + 2 * (5 + n));
	put(FRAME(n) + layout->frame_owner, owner, 1);
}

static void put_frames_3_11(void)
{
	put_frame(0, FRAME(1), 0);
	put_frame(1, FRAME(2), 1); /* is_entry */
	put_frame(2, 0, 1);
	put_word(THREAD + layout->thread_frame, OWNER(0));
	for (unsigned n = 0; n < 2; n++) {
		put_word(OWNER(n) + layout->cframe_frame, FRAME(n ? 2 : 0));
		put_word(OWNER(n) + layout->cframe_previous, n ? 0 : OWNER(1));
	}
}

static void put_frames_3_13(uint64_t bottom)
{
	put_frame(0, FRAME(1), 0);
	put_frame(1, OWNER(0), 0);
	put_frame(2, OWNER(1), 0);
	put_word(THREAD + layout->thread_frame, FRAME(0));
	for (unsigned n = 0; n < 2; n++) {
		put_word(OWNER(n) + layout->frame_previous, n ? bottom : FRAME(2));
		*world_word(OWNER(n) + (layout->frame_owner & ~7u)) =
			3ULL << (layout->frame_owner & 7) * 8;
	}
	if (bottom)
		put(bottom + layout->frame_owner, 4, 1);
}

static void put_threads(void)
{
	put_word(ROOT + layout->runtime_head, INTERP);
	put_word(INTERP + layout->interp_threads, OTHER);
	if (layout->runtime_current)
		put_word(ROOT + layout->runtime_current, OTHER);
	if (layout->interp_gil) {
		put_word(INTERP + layout->interp_gil, GIL);
		put_word(GIL + layout->gil_holder, OTHER);
	}
	put_word(OTHER + layout->thread_next, THREAD);
	put_word(OTHER + layout->thread_id, POINTER + 64);
	put_word(THREAD + layout->thread_id, POINTER);
}

static void begin(const struct version *v)
{
	const struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAME, LOOP_BYTES, 0, -8 };
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule }, { 0x200, rule_stop } };
	layout_3_14_free = layout_3_13_free;
	layout_3_14_free.text_shift = 8;
	layout_3_14_free.frame_owner = 78;
	layout_3_14_free.frame_copy = 72;
	layout_3_14_free.code_copies = 232;
	begin_with(NULL, 0);
	struct file_slot *slot = world_publish(
		0, FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, rows, ARRAY_COUNT(rows), false);
	uint32_t zero = 0;
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	*r = (struct runtime_record){ .kind = RUNTIME_CPYTHON,
		.version = v->number,
		.text_from = TEXT_OFFSET + 0x100,
		.text_bytes = 0x100,
		.delta = ROOT - TEXT + TEXT_OFFSET };
	r->layout.cpython = *v->layout;
	slot->value.runtime = 1;
	layout = v->layout;
	data = calloc(1, DATA_BYTES);
	CHECK(data);
	shim_add_user(DATA, data, DATA_BYTES);
	world.task.thread.fsbase = POINTER;
	*world_word(SP0 + LOOP_BYTES - 8) = CALLEE + 0x10; /* called by the second loop */
	*world_word(SP0 + 2 * LOOP_BYTES - 8) = CALLER;
	put_threads();
	for (unsigned n = 0; n < ARRAY_COUNT(names); n++)
		put_code(n);
	put_text(PATH, "/srv/app.py", 1 | 8 | 16);
	put_word(LINES + layout->object_head, 3);
	put(LINES + layout->object_head + 16u, 0x123456, 3);
	if (v->layout == &layout_3_11)
		put_frames_3_11();
	else
		put_frames_3_13(v->number == (3 << 8 | 15) ? BOTTOM : 0);
}

static void end(void)
{
	check_conservation();
	free(data);
	data = NULL;
	world_end();
}

static const struct event_sample *take(void)
{
	shim.user_reads = 0;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s && shim.user_reads <= READS_MAX);
	return s;
}

/* ---- what was seen ---- */

static const struct event_code *told(uint64_t number)
{
	for (uint32_t i = 0; i < shim.event_count; i++) {
		const struct event_code *e = (const void *)shim.events[i];
		if (e->type != EVENT_CODE || e->code != number)
			continue;
		CHECK(shim.event_bytes[i] == offsetof(struct event_code, data) + e->name_bytes +
						     e->file_bytes + e->lines_bytes);
		CHECK(e->name_bytes <= CODE_NAME_BYTES_MAX && e->file_bytes <= CODE_FILE_BYTES_MAX);
		CHECK(e->lines_bytes <= CODE_LINES_BYTES_MAX);
		return e;
	}
	return NULL;
}

static bool is_function(const struct event_sample *s, uint32_t i, unsigned n)
{
	uint64_t frame = user_frame(s, i);
	const struct event_code *e = told(frame_code(frame));
	return frame_is_runtime(frame) && (frame & FRAME_POSITION_NONE) == 5 + n && e &&
	       e->first_line == 10 * (n + 1) && e->name_bytes == strlen(names[n]) &&
	       memcmp(e->data, names[n], e->name_bytes) == 0;
}

/* The reason among the frames; 0: there is none. */
static unsigned gap_in(const struct event_sample *s)
{
	for (uint32_t i = 0; i < s->user_count; i++) {
		uint64_t frame = user_frame(s, i);
		if (frame_is_runtime(frame) && !(frame_code(frame) & FRAME_CODE_REAL))
			return frame & FRAME_POSITION_NONE;
	}
	return 0;
}

/* ---- tests ---- */

static void shows_the_functions_that_each_loop_runs(void **state)
{
	(void)state;
	FOR_EACH_CASE (v, versions) {
		begin(v);
		const struct event_sample *s = take();
		CHECK_CASE(v, s->h.stack_end == STACK_END_ROOT && s->user_count == 4);
		for (unsigned n = 0; n < 3; n++)
			CHECK_CASE(v, is_function(s, n, n));
		CHECK_CASE(v, user_frame(s, 3) == frame_at(0x23f));
		const struct event_code *e = told(frame_code(user_frame(s, 1)));
		CHECK_CASE(v, e->file_bytes == 11 && e->lines_bytes == 3 && e->pid == WORLD_PID);
		CHECK_CASE(v, memcmp(e->data + e->name_bytes, "/srv/app.py\x56\x34\x12", 14) == 0);
		CHECK_CASE(v, counted()->runtime_frames == 3 && counted()->codes == 3);
		end();
	}
}

static void keeps_the_loops_if_asked(void **state)
{
	(void)state;
	FOR_EACH_CASE (v, versions) {
		begin(v);
		config.keep_interpreters = 1;
		const struct event_sample *s = take();
		CHECK_CASE(v, s->h.stack_end == STACK_END_ROOT && s->user_count == 6);
		CHECK_CASE(v, user_frame(s, 0) == frame_at(0x120) && is_function(s, 1, 0));
		CHECK_CASE(v, is_function(s, 2, 1) && user_frame(s, 3) == frame_at(0x12f));
		CHECK_CASE(v, is_function(s, 4, 2) && user_frame(s, 5) == frame_at(0x23f));
		end();
	}
}

/* ---- forged ---- */

static void threads_in_a_cycle(void)
{
	put_word(OTHER + layout->thread_next, OTHER);
}

static void threads_end(void)
{
	put_word(OTHER + layout->thread_next, 0);
}

static void thread_unmapped(void)
{
	put_word(OTHER + layout->thread_next, UNMAPPED);
}

static void thread_at_the_end_of_memory(void)
{
	put_word(OTHER + layout->thread_next, DATA + DATA_BYTES - 8);
}

static void thread_far_away(void)
{
	put_word(OTHER + layout->thread_next, UINT64_MAX - 8);
}

static void innermost_unmapped(void)
{
	put_word(THREAD + layout->thread_frame, UNMAPPED);
}

static void frame_unmapped(void)
{
	put_word(FRAME(0) + layout->frame_previous, UNMAPPED);
}

static void frames_in_a_cycle(void)
{
	put_word(FRAME(1) + layout->frame_previous, FRAME(0));
	put(FRAME(1) + layout->frame_owner, 0, 1);
}

static void code_unmapped(void)
{
	put_word(FRAME(1) + layout->frame_code, UNMAPPED);
}

static void no_code(void)
{
	put_word(FRAME(1) + layout->frame_code, 0);
}

static void no_code_after_one_unmapped(void)
{
	put_word(FRAME(1) + layout->frame_code, UNMAPPED);
	put_word(FRAME(2) + layout->frame_code, 0);
}

static void owner_elsewhere(void)
{
	uint64_t at = PLACE(20);
	if (layout == &layout_3_11) {
		put_word(at + layout->cframe_frame, FRAME(0));
		put_word(THREAD + layout->thread_frame, at);
	} else {
		put_word(FRAME(1) + layout->frame_previous, at);
		put(at + layout->frame_owner, 3, 1);
	}
}

static void owners_in_a_cycle(void)
{
	if (layout == &layout_3_11)
		put_word(OWNER(1) + layout->cframe_previous, OWNER(1));
	else
		put_word(OWNER(1) + layout->frame_previous, FRAME(2));
}

/* clang-format off */
static const struct {
	const char *name;
	void (*forge)(void);
	/* in 3.11, 3.13 */
	struct { enum stack_end end; unsigned gap; uint32_t functions; } want[2];
} forged_cases[] = {
	{ "threads in a cycle", threads_in_a_cycle,
		{ { STACK_END_ROOT, RUNTIME_GAP_THREADS, 0 }, { STACK_END_ROOT, RUNTIME_GAP_THREADS, 0 } } },
	{ "a thread that Python does not know", threads_end,
		{ { STACK_END_ROOT, 0, 0 }, { STACK_END_ROOT, 0, 0 } } },
	{ "a thread that is not mapped", thread_unmapped,
		{ { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 }, { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 } } },
	{ "a thread that is not mapped whole", thread_at_the_end_of_memory,
		{ { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 }, { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 } } },
	{ "a thread beyond all memory", thread_far_away,
		{ { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 }, { STACK_END_ROOT, RUNTIME_GAP_THREAD, 0 } } },
	{ "an innermost frame that is not mapped", innermost_unmapped,
		{ { STACK_END_ROOT, RUNTIME_GAP_FRAME, 0 }, { STACK_END_ROOT, RUNTIME_GAP_FRAME, 0 } } },
	{ "a frame that is not mapped", frame_unmapped,
		{ { STACK_END_ROOT, RUNTIME_GAP_FRAME, 1 }, { STACK_END_ROOT, RUNTIME_GAP_FRAME, 1 } } },
	/* Of 2,049 steps 1,025 were looks for its end, and 3 others. */
	{ "frames in a cycle", frames_in_a_cycle,
		{ { STACK_END_DEPTH, 0, 1024 }, { STACK_END_DEPTH, 0, 1021 } } },
	{ "a function that is not mapped", code_unmapped,
		{ { STACK_END_ROOT, RUNTIME_GAP_CODE, 2 }, { STACK_END_ROOT, RUNTIME_GAP_CODE, 2 } } },
	{ "no function", no_code,
		{ { STACK_END_ROOT, RUNTIME_GAP_CODE, 2 }, { STACK_END_ROOT, RUNTIME_GAP_CODE, 2 } } },
	{ "no function after one that is not mapped", no_code_after_one_unmapped,
		{ { STACK_END_ROOT, RUNTIME_GAP_CODE, 1 }, { STACK_END_ROOT, RUNTIME_GAP_CODE, 1 } } },
	{ "the loop's data is not on its stack", owner_elsewhere,
		{ { STACK_END_ROOT, RUNTIME_GAP_OWNER, 0 }, { STACK_END_ROOT, RUNTIME_GAP_OWNER, 0 } } },
	/* The third run of the same frames has no native frame. */
	{ "runs in a cycle", owners_in_a_cycle,
		{ { STACK_END_ROOT, RUNTIME_GAP_OWNER, 3 }, { STACK_END_ROOT, RUNTIME_GAP_OWNER, 3 } } },
};
/* clang-format on */

static void says_why_frames_are_missing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
		FOR_EACH_CASE (c, forged_cases) {
			begin(&versions[i]);
			c->forge();
			const struct event_sample *s = take();
			const uint64_t functions = counted()->runtime_frames;
			CHECK_CASE(c, s->h.stack_end == c->want[i > 0].end); /* 3.11, 3.13 */
			CHECK_CASE(c, gap_in(s) == c->want[i > 0].gap);
			CHECK_CASE(c, functions == c->want[i > 0].functions);
			end();
		}
	}
}

/* ---- texts ---- */

/* clang-format off */
static const struct {
	const char *name;
	uint64_t length; unsigned state;
	uint16_t name_bytes;
} text_cases[] = {
	{ "no text", 0, 1 | 8 | 16, 0 },
	{ "2^63 - 1 characters", INT64_MAX, 1 | 8 | 16, CODE_NAME_BYTES_MAX },
	{ "2^63 characters of 4 bytes", 1ULL << 63, 4 | 8, CODE_NAME_BYTES_MAX },
	{ "2^64 - 1 characters of 2 bytes", UINT64_MAX, 2 | 8, CODE_NAME_BYTES_MAX },
	{ "64 characters of 4 bytes", 64, 4 | 8, CODE_NAME_BYTES_MAX },
	{ "3 characters of 2 bytes", 3, 2 | 8, 6 },
	{ "not compact", 4, 1, 0 },
	{ "characters of no bytes", 4, 8, 0 },
	{ "characters of 7 bytes", 4, 7 | 8, 28 },
	{ "all bits", 4, 0x3fffffff, 28 },
};
/* clang-format on */

static void copies_texts_within_their_limits(void **state)
{
	(void)state;
	FOR_EACH_CASE (v, versions) {
		FOR_EACH_CASE (c, text_cases) {
			begin(v);
			put_word(NAME(0) + layout->object_head, c->length);
			put(NAME(0) + layout->object_head + 16u, state_word(c->state), 4);
			put_word(LINES + layout->object_head, c->length);
			const struct event_sample *s = take();
			const struct event_code *e = told(frame_code(user_frame(s, 0)));
			CHECK_CASE(c, s->user_count == 4 && e && e->name_bytes == c->name_bytes);
			CHECK_CASE(c, is_function(s, 1, 1) && is_function(s, 2, 2));
			end();
		}
		/* Characters and lines behind which there is no memory: told without them. */
		begin(v);
		const uint64_t last = DATA + DATA_BYTES - 64 - (layout->object_head - 16u);
		put_word(last + layout->object_head, 1 << 20);
		put(last + layout->object_head + 16u, (1 | 8 | 16) << 2, 4);
		put_word(CODE(0) + layout->code_name, last);
		put_word(CODE(0) + layout->code_lines, last);
		const struct event_sample *s = take();
		const struct event_code *e = told(frame_code(user_frame(s, 0)));
		CHECK_CASE(v, e && !e->name_bytes && e->file_bytes == 11 && !e->lines_bytes);
		end();
	}
}

/* Another function gets the memory of the first one while that is read: what was read of it before
 * makes its number, so the next sample tells the new one. */
static void change_code(uint64_t address)
{
	if (address != NAME(0) + layout->object_head)
		return;
	put_word(NAME(0) + layout->object_head, INT64_MAX);
	put_word(CODE(0) + layout->code_name, NAME(1));
	put(CODE(0) + layout->code_first_line, 99, 4);
}

static void tells_a_function_that_changed_while_it_was_read(void **state)
{
	(void)state;
	FOR_EACH_CASE (v, versions) {
		begin(v);
		shim.before_read = change_code;
		const struct event_sample *s = take();
		uint64_t before = frame_code(user_frame(s, 0));
		const struct event_code *e = told(before);
		CHECK_CASE(v, e && e->first_line == 10 && e->name_bytes == CODE_NAME_BYTES_MAX);
		CHECK_CASE(v, is_function(s, 1, 1));
		shim.before_read = NULL;
		s = take();
		e = told(frame_code(user_frame(s, 0)));
		CHECK_CASE(v, frame_code(user_frame(s, 0)) != before && e && e->first_line == 99);
		CHECK_CASE(v, e->name_bytes == strlen(names[1]) &&
				      memcmp(e->data, names[1], e->name_bytes) == 0);
		end();
	}
}

/* Every word of the structures in turn points where a program may make it point. */
static void survives_any_word(void **state)
{
	(void)state;
	static const uint64_t words[] = { 0, 1, UNMAPPED, DATA - 8, DATA + DATA_BYTES - 8, ROOT,
		FRAME(0), FRAME(1), CODE(0), THREAD, OWNER(0), OWNER(1), SP0, TEXT, INT64_MAX,
		1ULL << 63, UINT64_MAX, UINT64_MAX - 7, 0xffffffff81000000 };
	FOR_EACH_CASE (v, versions) {
		for (uint64_t at = ROOT; at < PLACE(7); at += 8) {
			begin(v);
			uint64_t was;
			memcpy(&was, data + (at - DATA), sizeof(was));
			for (size_t i = 0; was && i < ARRAY_COUNT(words); i++) {
				put_word(at, words[i]);
				const struct event_sample *s = take();
				CHECK_CASE(v, s->user_count <= SAMPLE_USER_FRAMES_MAX);
				CHECK_CASE(v, s->h.stack_end == STACK_END_ROOT ||
						      s->h.stack_end == STACK_END_DEPTH);
				shim_drop_events();
			}
			end();
		}
	}
}

static void bears_memory_that_changes_while_it_is_read(void **state)
{
	(void)state;
	FOR_EACH_CASE (v, versions) {
		begin(v);
		changes_while_it_is_read(take);
		end();
	}
}

TEST_MAIN(cmocka_unit_test(shows_the_functions_that_each_loop_runs),
	cmocka_unit_test(keeps_the_loops_if_asked), cmocka_unit_test(says_why_frames_are_missing),
	cmocka_unit_test(copies_texts_within_their_limits),
	cmocka_unit_test(tells_a_function_that_changed_while_it_was_read),
	cmocka_unit_test(survives_any_word),
	cmocka_unit_test(bears_memory_that_changes_while_it_is_read))
