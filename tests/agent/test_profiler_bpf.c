/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF program as ordinary C, under sanitizers: over stacks, trees and tables made by hand, and
 * over hostile ones. What the real kernel makes of it is in test_sampler.c.
 */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

static __u32 generation_of(const struct inode *inode)
{
	return inode_generation(vma_search_at(VMA_SEARCH_PROCESS), (uintptr_t)inode, false);
}

/* ---- tables ---- */

static struct unwind_rule linear_find(const struct world_row *rows, uint32_t count, uint32_t at)
{
	uint32_t best = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (rows[i].at <= at)
			best = i;
	}
	return rows[best].rule;
}

static uint32_t random_rows(uint32_t *seed, struct world_row *rows, uint32_t count)
{
	uint32_t at = 0;
	uint32_t n = 0;
	while (n < count && at < UNWIND_BLOB_BYTES_MAX) {
		rows[n++] = (struct world_row){ at,
			{ UNWIND_CFA_SP, UNWIND_FP_SAVED, (int16_t)(8 * random_below(seed, 40)),
				-16, -8 } };
		at += 1 + random_below(seed, 2 * UNWIND_BLOB_BYTES_MAX / count);
	}
	return n;
}

static void finds_the_row_in_force(void **state)
{
	(void)state;
	static struct world_row rows[WORLD_ROWS_MAX];
	uint32_t seed = 1;
	static const uint32_t counts[] = { 1, 2, 3, 64, 127, 128, 300, 700 };
	for (size_t k = 0; k < 2 * ARRAY_COUNT(counts); k++) {
		uint32_t count = random_rows(&seed, rows, counts[k / 2]);
		bool dense = k % 2 || count > UNWIND_SPARSE_ROWS_MAX;
		world_begin();
		(void)world_publish(0, FILE_ID, 3, rows, count, dense);
		struct mapping m = { .page_base = 0, .page_count = 1, .first_page = 3 };
		for (uint32_t at = 0; at < UNWIND_BLOB_BYTES_MAX; at += 1 + at % 7) {
			struct unwind_rule got;
			struct unwind_rule want = linear_find(rows, count, at);
			got = rule_of(table_find(&m, (3ull << UNWIND_PAGE_SHIFT) + at));
			if (memcmp(&got, &want, sizeof(got)) != 0)
				fail_msg("%u rows, dense %d, at %u", count, dense, at);
		}
		struct unwind_rule none;
		none = rule_of(table_find(&m, 2ull << UNWIND_PAGE_SHIFT));
		CHECK(none.cfa == UNWIND_CFA_NONE);
		none = rule_of(table_find(&m, 4ull << UNWIND_PAGE_SHIFT));
		CHECK(none.cfa == UNWIND_CFA_NONE);
		world_end();
	}
}

/* All 256 rows that a bucket of 256 bytes can have. */
static void finds_every_row_of_a_full_bucket(void **state)
{
	(void)state;
	static struct world_row rows[258];
	rows[0] = (struct world_row){ 0, rule_stop };
	for (uint32_t i = 0; i < 256; i++)
		rows[1 + i] = (struct world_row){ 0x500 + i,
			{ UNWIND_CFA_SP, 0, (int16_t)(i % 200), 0, -8 } };
	rows[257] = (struct world_row){ 0x600, rule_stop };
	world_begin();
	(void)world_publish(0, FILE_ID, 0, rows, ARRAY_COUNT(rows), true);
	struct mapping m = { .page_count = 1 };
	for (uint32_t at = 0x480; at < 0x680; at++) {
		struct unwind_rule got;
		struct unwind_rule want = linear_find(rows, ARRAY_COUNT(rows), at);
		got = rule_of(table_find(&m, at));
		assert_memory_equal(&got, &want, sizeof(got));
	}
	world_end();
}

/* ---- the tree of mappings ---- */

static void check_lookups(uint32_t *seed)
{
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	s->mm = (uintptr_t)&world.mm;
	for (uint32_t i = 0; i < world.vma_count; i++) {
		const struct vm_area_struct *v = &world.vmas[i].vma;
		uint64_t inside =
			v->vm_start + random_below(seed, (uint32_t)(v->vm_end - v->vm_start));
		uint64_t probes[] = { v->vm_start, v->vm_end - 1, inside };
		for (size_t k = 0; k < ARRAY_COUNT(probes); k++) {
			assert_true(vma_find(VMA_SEARCH_SAMPLE, probes[k]));
			assert_int_equal(s->start, v->vm_start);
			assert_int_equal(s->end, v->vm_end);
		}
		bool gap = i + 1 == world.vma_count || world.vmas[i + 1].vma.vm_start != v->vm_end;
		if (gap)
			assert_false(vma_find(VMA_SEARCH_SAMPLE, v->vm_end));
	}
	assert_false(vma_find(VMA_SEARCH_SAMPLE, 0));
	assert_false(vma_find(VMA_SEARCH_SAMPLE, UINT64_MAX));
}

static void finds_mappings(bool maple)
{
	static const uint32_t counts[] = { 1, 2, 7, 8, 30, 200, 1400 };
	static const uint32_t fills[] = { 16, 15, 9, 4 };
	uint32_t seed = 5;
	for (size_t k = 0; k < ARRAY_COUNT(counts) * ARRAY_COUNT(fills); k++) {
		world_begin();
		shim.has_maple_tree = maple;
		uint64_t at = 0x400000;
		for (uint32_t i = 0; i < counts[k / ARRAY_COUNT(fills)]; i++) {
			uint64_t pages_here = 1 + random_below(&seed, 50);
			at += 4096 * (uint64_t)random_below(&seed, 3);
			world_map(at, at + 4096 * pages_here, MM_EXEC, -1, 0);
			at += 4096 * pages_here;
		}
		world_build_tree(fills[k % ARRAY_COUNT(fills)]);
		check_lookups(&seed);
		world_end();
	}
}

static void finds_mappings_in_a_maple_tree(void **state)
{
	(void)state;
	finds_mappings(true);
}

static void finds_mappings_in_a_red_black_tree(void **state)
{
	(void)state;
	finds_mappings(false);
}

static void refuses_a_mapping_of_another_mm(void **state)
{
	(void)state;
	struct mm_struct other;
	begin_with(NULL, 0);
	world.vmas[0].vma.vm_mm = &other;
	struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
	s->mm = (uintptr_t)&world.mm;
	assert_false(vma_find(VMA_SEARCH_SAMPLE, TEXT));
	world_end();
}

/* ---- walking by rules ---- */

/* clang-format off */
static const struct {
	const char *name;
	struct unwind_rule rule;
	uint64_t ip, fp;            /* fp: rbp when interrupted */
	int ra_word, fp_word;       /* words from SP0 where the caller's pc and rbp lie; -1: nowhere */
	int deref_word;             /* where the address of the CFA lies, and what for */
	uint64_t deref_value;
	uint64_t want_fp;
} rule_cases[] = {
	{ "sp + 16, rbp untouched", { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 },
		CALLEE, 0x1111, 1, -1, -1, 0, 0x1111 },
	{ "sp + 32, rbp beside the return address", { UNWIND_CFA_SP, UNWIND_FP_SAVED, 32, -16, -8 },
		CALLEE, 0x1111, 3, 2, -1, 0, 0x2222 },
	{ "sp + 40, rbp elsewhere", { UNWIND_CFA_SP, UNWIND_FP_SAVED, 40, -32, -8 },
		CALLEE, 0x1111, 4, 1, -1, 0, 0x2222 },
	{ "sp + 4 words, rbp beside the return address",
		{ UNWIND_CFA_SP_WORDS, UNWIND_FP_SAVED, 4, -16, 0 },
		CALLEE, 0x1111, 3, 2, -1, 0, 0x2222 },
	{ "rbp + 16", { UNWIND_CFA_FP, UNWIND_FP_SAVED, 16, -16, -8 },
		CALLEE, SP0 + 48, 7, 6, -1, 0, 0x2222 },
	{ "rbp lost", { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 16, 0, -8 },
		CALLEE, 0x1111, 1, -1, -1, 0, FP_UNKNOWN },
	{ "*(rbp - 8)", { UNWIND_CFA_DEREF_FP, UNWIND_FP_SAVED, -8, -16, 0 },
		CALLEE, SP0 + 16, 9, 8, 1, SP0 + 80, 0x2222 },
	{ "*(rbp - 8), rbp where it points to", { UNWIND_CFA_DEREF_FP, UNWIND_FP_AT_FP, -8, 0, 0 },
		CALLEE, SP0 + 16, 9, 2, 1, SP0 + 80, 0x2222 },
	{ "*(sp + 24) + 8", { UNWIND_CFA_DEREF_SP, UNWIND_FP_SAME, 24, 0, 8 },
		CALLEE, 0x1111, 9, -1, 3, SP0 + 72, 0x1111 },
	{ "in a PLT entry, before its push", { UNWIND_CFA_PLT, UNWIND_FP_SAME, 11, 0, -8 },
		TEXT + 0x125, 0x1111, 0, -1, -1, 0, 0x1111 },
	{ "in a PLT entry, behind its push", { UNWIND_CFA_PLT, UNWIND_FP_SAME, 11, 0, -8 },
		TEXT + 0x12b, 0x1111, 1, -1, -1, 0, 0x1111 },
	{ "by frame pointer", { .cfa = UNWIND_CFA_FRAME_POINTER },
		CALLEE, SP0 + 48, 7, 6, -1, 0, 0x2222 },
};
/* clang-format on */

static void steps_by_each_rule(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, rule_cases) {
		const struct world_row rows[] = { { 0, { 0 } }, { 0x100, c->rule },
			{ 0x200, rule_stop } };
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(SP0 + 8 * (uint64_t)c->ra_word) = CALLER;
		if (c->fp_word >= 0)
			*world_word(SP0 + 8 * (uint64_t)c->fp_word) = 0x2222;
		if (c->deref_word >= 0)
			*world_word(SP0 + 8 * (uint64_t)c->deref_word) = c->deref_value;
		const struct event_sample *s = world_sample(c->ip, SP0, c->fp);
		CHECK_CASE(c, s && s->h.stack_end == STACK_END_ROOT);
		CHECK_CASE(c, s->user_count == 2);
		CHECK_CASE(c, user_frame(s, 0) == frame_at(c->ip - TEXT));
		CHECK_CASE(c, user_frame(s, 1) == frame_at(0x23f));
		CHECK_CASE(c, walk_here()->fp == c->want_fp);
		CHECK_CASE(c, walk_here()->sp == SP0 + 8 * (uint64_t)c->ra_word + 8);
		check_conservation();
		world_end();
	}
}

/* The leaf saves rbx, its caller leaves it alone, the third finds its frame by it; and none of this
 * holds where rbx was lost on the way. */
static void carries_rbx_up(void **state)
{
	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		const struct world_row rows[] = { { 0, { 0 } },
			{ 0x100, { UNWIND_CFA_SP, UNWIND_BX_SAVED, 24, 0, -24 } },
			{ 0x200, { UNWIND_CFA_SP, lost ? 0 : UNWIND_BX_SAME, 16, 0, -8 } },
			{ 0x300, { UNWIND_CFA_REGISTER, 0, 24, 0, 3 } }, { 0x400, rule_stop } };
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(SP0) = SP0 + 0x200; /* rbx */
		*world_word(SP0 + 16) = CALLER;
		*world_word(SP0 + 32) = TEXT + 0x340;
		*world_word(SP0 + 0x210) = TEXT + 0x440;
		const struct event_sample *s = world_sample(CALLEE, SP0, 0x1111);
		CHECK(s->h.stack_end == (lost ? STACK_END_UNSUPPORTED : STACK_END_ROOT));
		CHECK(s->user_count == (lost ? 3 : 4) && walk_here()->fp == 0x1111);
		world_end();
	}
}

/* In the interrupted frame every register is known: glibc's vfork has its return address in rdi. */
static void finds_what_is_in_registers(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } },
		{ 0x100, { UNWIND_CFA_RA_REGISTER, 0, 0, 0, 5 } },
		{ 0x200, { UNWIND_CFA_REGISTER, 0, 16, 0, 10 } }, { 0x300, rule_stop } };
	begin_with(rows, ARRAY_COUNT(rows));
	struct x86_regs regs = { .ip = CALLEE, .sp = SP0, .cs = 0x33, .di = TEXT + 0x340 };
	const struct event_sample *s = world_sample_in_kernel(&regs);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 2);
	CHECK(walk_here()->sp == SP0);
	regs = (struct x86_regs){ .ip = CALLER, .sp = SP0, .cs = 0x33, .r10 = SP0 + 32 };
	*world_word(SP0 + 40) = TEXT + 0x340;
	s = world_sample_in_kernel(&regs);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 2);
	regs.di = CALLER; /* its caller is no leaf: r10 is not known there */
	regs.ip = CALLEE;
	s = world_sample_in_kernel(&regs);
	CHECK(s->h.stack_end == STACK_END_UNSUPPORTED && s->user_count == 2);
	world_end();
	/* Behind a helper without a frame it is. */
	const struct world_row helper[] = { { 0, { 0 } }, { 0x100, { UNWIND_CFA_SP, 0, 8, 0, -8 } },
		{ 0x200, { UNWIND_CFA_REGISTER, 0, 16, 0, 10 } }, { 0x300, rule_stop } };
	begin_with(helper, ARRAY_COUNT(helper));
	*world_word(SP0) = CALLER;
	*world_word(SP0 + 40) = TEXT + 0x340;
	s = world_sample_in_kernel(&regs);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 3);
	world_end();
}

/* A return address is the first byte of the next function: the call lies in the one before. */
static void looks_the_call_up_not_what_follows(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 }, { 0x200, rule_stop },
		{ 0x240, { .cfa = UNWIND_CFA_UNSUPPORTED } } };
	begin_with(rows, ARRAY_COUNT(rows));
	*world_word(SP0 + 8) = TEXT + 0x240;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 2);
	world_end();
}

/* What was read ahead of one sample's stack is not of the next one's. */
static void reads_the_stack_anew_for_each_sample(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 },
		{ 0x200, rule_stop } };
	begin_with(rows, ARRAY_COUNT(rows));
	*world_word(SP0 + 8) = CALLER;
	CHECK(user_frame(world_sample(CALLEE, SP0, 0), 1) == frame_at(0x23f));
	*world_word(SP0 + 8) = CALLER + 0x20;
	CHECK(user_frame(world_sample(CALLEE, SP0, 0), 1) == frame_at(0x25f));
	world_end();
}

static void follows_a_stack_that_nobody_aligned(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 },
		{ 0x200, rule_stop } };
	begin_with(rows, ARRAY_COUNT(rows));
	uint64_t caller = CALLER;
	memcpy((uint8_t *)world_word(SP0 + 248) + 7, &caller, sizeof(caller)); /* over two blocks */
	const struct event_sample *s = world_sample(CALLEE, SP0 + 247, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT && user_frame(s, 1) == frame_at(0x23f));
	world_end();
}

static void passes_a_signal_frame(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 },
		{ 0x1ff, { .cfa = UNWIND_CFA_SIGNAL, .cfa_off = UNWIND_OFF_EARLY } },
		{ 0x200, { .cfa = UNWIND_CFA_SIGNAL } },
		{ 0x240, { .cfa = UNWIND_CFA_UNSUPPORTED } },
		{ 0x300, { UNWIND_CFA_FP, UNWIND_FP_SAME, 16, 0, -8 } }, { 0x400, rule_stop } };
	begin_with(rows, ARRAY_COUNT(rows));
	/* The handler, on an alternate stack above, returns to the restorer at 0x200. */
	uint64_t alternate = WORLD_STACK_TOP - 0x1000;
	*world_word(alternate + 8) = TEXT + 0x200;
	uint64_t context = alternate + 16;
	*world_word(context + 40 + 8 * 10) = SP0 + 64;     /* rbp */
	*world_word(context + 40 + 8 * 15) = SP0;          /* rsp */
	*world_word(context + 40 + 8 * 16) = TEXT + 0x300; /* rip: the first byte, exactly */
	*world_word(SP0 + 64 + 8) = TEXT + 0x440;
	const struct event_sample *s = world_sample(CALLEE, alternate, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT);
	CHECK(s->user_count == 4);
	CHECK(user_frame(s, 1) == frame_at(0x200)); /* by its name */
	CHECK(user_frame(s, 2) == frame_at(0x300));
	CHECK(user_frame(s, 3) == frame_at(0x43f));
	world_end();
}

/* clang-format off */
static const struct {
	const char *name;
	struct unwind_rule rule; /* of the leaf, at 0x120 */
	uint64_t ip, sp, fp;
	uint64_t words[4];       /* at SP0 */
	enum stack_end want;
	uint32_t want_frames;
} end_cases[] = {
	{ "outermost", { .cfa = UNWIND_CFA_STOP }, CALLEE, SP0, 0, { 0 }, STACK_END_ROOT, 1 },
	{ "not supported", { .cfa = UNWIND_CFA_UNSUPPORTED }, CALLEE, SP0, 0, { 0 },
		STACK_END_UNSUPPORTED, 1 },
	{ "a rule of the future", { .cfa = 200 }, CALLEE, SP0, 0, { 0 }, STACK_END_UNSUPPORTED, 1 },
	{ "return address zero in the leaf", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE, SP0, 0, { 0 },
		STACK_END_ZERO, 1 },
	{ "return address zero and rbp zero: the entry of a fiber", { UNWIND_CFA_SP, 0, 16, 0, -8 },
		CALLEE, SP0, 0, { 0, TEXT + 0x150, 0, 0 }, STACK_END_ROOT_ZERO, 2 },
	{ "the same, both saved", { UNWIND_CFA_SP, UNWIND_FP_SAVED, 16, -16, -8 },
		CALLEE, SP0, 0x77, { 0x77, TEXT + 0x150, 0, 0 }, STACK_END_ROOT_ZERO, 2 },
	{ "the same by a rule for few", { UNWIND_CFA_DEREF_SP, 0, 0, 0, 8 }, CALLEE, SP0, 0,
		{ SP0 + 8, TEXT + 0x150, SP0 + 24, 0 }, STACK_END_ROOT_ZERO, 2 },
	{ "the same, and not aligned: LuaJIT's helpers", { UNWIND_CFA_SP, 0, 24, 0, -8 }, CALLEE,
		SP0 + 8, 0, { 0, 0, 0, TEXT + 0x150 }, STACK_END_ZERO, 2 },
	{ "return address zero, and rbp is something", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE, SP0,
		0x77, { 0, TEXT + 0x150, 0, 0 }, STACK_END_ZERO, 2 },
	{ "return address zero, and rbp is lost", { UNWIND_CFA_SP, UNWIND_FP_UNDEFINED, 16, 0, -8 },
		CALLEE, SP0, 0, { 0, TEXT + 0x150, 0, 0 }, STACK_END_ZERO, 2 },
	{ "both zero by a rule that was read", { UNWIND_CFA_SP, UNWIND_FP_NO_END, 16, 0, -8 }, CALLEE,
		SP0, 0, { 0, TEXT + 0x150, 0, 0 }, STACK_END_ZERO, 2 },
	{ "a rule that was read leads on", { UNWIND_CFA_SP, UNWIND_FP_NO_END | UNWIND_FP_SAVED, 16, -16, -8 },
		CALLEE, SP0, 0, { 0, CALLER }, STACK_END_ROOT, 2 },
	{ "stack cannot be read", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE, 0x1000, 0, { 0 },
		STACK_END_READ_ERROR, 1 },
	{ "rbp cannot be read", { UNWIND_CFA_SP, UNWIND_FP_SAVED, 16, -16, -8 }, CALLEE,
		WORLD_STACK_TOP - 8, 0, { 0 }, STACK_END_READ_ERROR, 1 },
	{ "nothing to dereference", { UNWIND_CFA_DEREF_FP, 0, 0, 0, 0 }, CALLEE, SP0, 64, { 0 },
		STACK_END_READ_ERROR, 1 },
	{ "stack does not advance", { UNWIND_CFA_SP, 0, 0, 0, -8 }, CALLEE, SP0, 0, { 0 },
		STACK_END_LOOP, 1 },
	{ "stack goes back", { UNWIND_CFA_FP, 0, 16, 0, -8 }, CALLEE, SP0, SP0 - 256, { 0 },
		STACK_END_LOOP, 1 },
	{ "return address in no mapping", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE, SP0, 0,
		{ 0, 0x123456 }, STACK_END_NO_VMA, 1 },
	{ "return address in data", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE, SP0, 0,
		{ 0, SP0 }, STACK_END_NO_VMA, 1 },
	{ "leaf in no mapping", { 0 }, 0x123456, SP0, 0, { 0 }, STACK_END_NO_VMA, 1 },
	{ "signal frame cannot be read", { .cfa = UNWIND_CFA_SIGNAL }, CALLEE,
		WORLD_STACK_TOP - 64, 0, { 0 }, STACK_END_READ_ERROR, 1 },
	{ "entry code at the stack's base", { 0 }, CALLEE, WORLD_STACK_TOP - 256, 0x1234, { 0 },
		STACK_END_ROOT_NO_INFO, 1 },
	{ "entry code that aligned the stack", { 0 }, CALLEE, WORLD_STACK_TOP - 256 - 16, 0, { 0 },
		STACK_END_ROOT_NO_INFO, 1 },
	{ "no rule, rbp below the stack", { 0 }, CALLEE, SP0, SP0 - 8, { 0 }, STACK_END_NO_TABLE, 1 },
	{ "no rule, rbp not aligned", { 0 }, CALLEE, SP0, SP0 + 4, { 0 }, STACK_END_NO_TABLE, 1 },
	{ "no rule, rbp zero in the leaf", { 0 }, CALLEE, SP0, 0, { 0 }, STACK_END_NO_TABLE, 1 },
	{ "no rule, rbp leads to data", { 0 }, CALLEE, SP0, SP0, { 0, SP0 }, STACK_END_NO_TABLE, 1 },
	{ "no rule, rbp leads to zero", { 0 }, CALLEE, SP0, SP0, { 0, 0 }, STACK_END_ZERO, 1 },
	{ "no rule, rbp leads on", { 0 }, CALLEE, SP0, SP0, { 0, CALLER }, STACK_END_ROOT, 2 },
	{ "JIT, rbp leads on", { 0 }, JIT + 5, SP0, SP0 + 8, { 0, 0, CALLER }, STACK_END_ROOT, 2 },
	{ "JIT twice, then the zero frame pointer", { 0 }, JIT + 5, SP0, SP0, { 0, JIT + 9 },
		STACK_END_ZERO, 2 },
	{ "JIT that keeps no frame pointer, and rbp is zero", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE,
		SP0, 0, { 0, JIT + 9 }, STACK_END_ZERO, 2 },
	{ "a packed program: its entry", { UNWIND_CFA_SP, 0, 16, 0, -8 }, CALLEE,
		WORLD_STACK_TOP - 256 - 16, 0, { 0 }, STACK_END_ROOT_NO_INFO, 2 },
};
/* clang-format on */

static void says_why_a_stack_ends(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, end_cases) {
		const struct world_row rows[] = { { 0, { 0 } }, { 0x100, c->rule },
			{ 0x200, rule_stop } };
		begin_with(rows, ARRAY_COUNT(rows));
		memcpy(world_word(SP0), c->words, sizeof(c->words));
		*world_word(WORLD_STACK_TOP - 256 - 8) = JIT + 9;
		const struct event_sample *s = world_sample(c->ip, c->sp, c->fp);
		if (s->h.stack_end != c->want || s->user_count != c->want_frames)
			fail_msg("[%s] ends %u with %u frames", c->name, s->h.stack_end,
				s->user_count);
		CHECK(counted()->stack_end[c->want] == 1);
		check_conservation();
		world_end();
	}
}

static void cuts_at_the_depth_limit(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { UNWIND_CFA_SP, 0, 8, 0, -8 } } };
	begin_with(rows, 1);
	uint64_t sp = WORLD_STACK_BASE;
	for (uint32_t i = 0; i < 2000; i++)
		*world_word(sp + 8 * (uint64_t)i) = TEXT + 0x10 + i;
	const struct event_sample *s = world_sample(CALLEE, sp, 0);
	CHECK(s->h.stack_end == STACK_END_DEPTH);
	CHECK(s->user_count == SAMPLE_USER_FRAMES_MAX);
	for (uint32_t i = 1; i < s->user_count; i++)
		CHECK(user_frame(s, i) == frame_at(0x10 + i - 2));
	/* One frame less than the limit is whole. */
	*world_word(sp + 8 * (uint64_t)(SAMPLE_USER_FRAMES_MAX - 1)) = 0;
	s = world_sample(CALLEE, sp, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT_ZERO);
	CHECK(s->user_count == SAMPLE_USER_FRAMES_MAX);
	world_end();
}

static void keeps_the_leaf_of_an_unknown_file(void **state)
{
	(void)state;
	begin_with(NULL, 0);
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_NO_FILE && s->user_count == 1);
	CHECK(user_frame(s, 0) == CALLEE);
	CHECK(s->notice.key.inode == 1000 && s->notice.key.dev == ((8 << 20) | 1));
	CHECK(s->notice.key.generation == generation_of(&world.inodes[0]));
	CHECK(s->notice.vma_start == TEXT && s->notice.vma_end == TEXT + TEXT_BYTES);
	CHECK(s->notice.offset == TEXT_OFFSET);
	world_end();
}

static void notices_an_inode_number_given_again(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_ROOT);
	struct inode *inode = &world.inodes[0];
	const struct inode first = *inode;
	const __u32 generation = generation_of(inode);
	CHECK(generation && world_slot(1)->key.generation == generation); /* of the first inode */
	/* Also one that was written over. */
	for (int i = 0; i < 4; i++) {
		*inode = first;
		inode->i_generation += i == 0;
		inode->i_size += i == 1;
		inode->i_mtime_sec += i == 2;
		inode->i_mtime_nsec += i == 3;
		const struct event_sample *s = world_sample(CALLEE, SP0, 0);
		CHECK(s->h.stack_end == STACK_END_NO_FILE);
		CHECK(s->notice.key.inode == 1000 && s->notice.key.generation != generation);
		CHECK(s->notice.key.generation == generation_of(inode));
	}
	*inode = first;
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_ROOT);
	/* An element of the hash table that points to the slot of another file is refused. */
	world_slot(1)->key.inode = 1001;
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_NO_FILE);
	world_end();
}

/* By frame pointers it would be a wrong one. */
static void ends_where_a_table_had_no_room(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	world_slot(1)->value.page_base = FILE_NO_ROOM;
	world_slot(1)->value.page_count = 0;
	const struct event_sample *s = world_sample(CALLEE, SP0, SP0 + 8);
	CHECK(s->h.stack_end == STACK_END_NO_ROOM && s->user_count == 1);
	CHECK(s->notice.key.inode == 0 && world_slot(1)->hits == 1);
	CHECK(counted()->stack_end[STACK_END_NO_ROOM] == 1);
	world_end();
}

static void walks_the_vdso(void **state)
{
	(void)state;
	const struct world_row text[] = { { 0, rule_stop } };
	const struct world_row vdso[] = { { 0, { 0 } }, { 0x800, rule_sp_16 } };
	begin_with(text, 1);
	(void)world_publish(-1, FRAME_FILE_VDSO, 0, vdso, ARRAY_COUNT(vdso), false);
	*world_word(SP0 + 8) = CALLER;
	const struct event_sample *s = world_sample(VDSO + 0x810, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 2);
	CHECK(user_frame(s, 0) == ((uint64_t)FRAME_FILE_VDSO << FRAME_FILE_SHIFT | 0x810));
	/* Without its table, its frame is named all the same. */
	settings.vdso_slot = 0;
	s = world_sample(VDSO + 0x810, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_NO_TABLE);
	CHECK(user_frame(s, 0) >> FRAME_FILE_SHIFT == FRAME_FILE_VDSO);
	world_end();
}

static void passes_the_vsyscall_page(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	*world_word(SP0) = CALLER;
	const struct event_sample *s = world_sample(X86_VSYSCALL_START + 0x400, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 2);
	CHECK(user_frame(s, 0) == ((X86_VSYSCALL_START + 0x400) & FRAME_OFFSET_MASK));
	world_end();
}

/* ---- registers ---- */

static void finds_user_registers_under_a_system_call(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	for (int helper = 0; helper < 2; helper++) {
		begin_with(rows, 1);
		shim.has_task_pt_regs = helper;
		shim.kernel_stack_count = 3;
		for (uint64_t i = 0; i < 3; i++)
			shim.kernel_stack[i] = 0xffffffff81000000 + i;
		/* Below bpf_task_pt_regs(): at the top of a kernel stack of 16 KiB. */
		static uint8_t stack[16384] __attribute__((aligned(16)));
		struct x86_regs saved = { .ip = CALLEE, .sp = SP0, .cs = 0xff0033, .orig_ax = 1 };
		memcpy(stack + sizeof(stack) - sizeof(saved), &saved, sizeof(saved));
		shim_add_kernel(stack, sizeof(stack));
		world.task.stack = stack;
		settings.thread_size = sizeof(stack);
		const struct event_sample *s = world_sample_in_kernel(&saved);
		CHECK(s->h.stack_end == STACK_END_ROOT);
		CHECK(s->kernel_count == 3 && s->user_count == 1);
		CHECK(s->frames[0] == 0xffffffff81000000 && user_frame(s, 0) == frame_at(0x120));
		CHECK(counted()->kernel_frames == 3 && counted()->user_frames == 1);
		world_end();
	}
}

/* clang-format off */
static const struct {
	const char *name;
	struct x86_regs saved;
	bool has_mm, is_kernel_thread, has_regs;
	enum stack_end want;
	uint32_t want_frames;
} kernel_cases[] = {
	{ "in a system call", { .ip = CALLEE, .sp = SP0, .cs = 0x33 }, true, false, true,
		STACK_END_ROOT, 1 },
	{ "a kernel thread", { 0 }, false, true, true, STACK_END_NONE, 0 },
	{ "a kernel thread that uses an mm", { 0 }, true, true, true, STACK_END_NONE, 0 },
	{ "a process that gave its mm back", { .ip = CALLEE, .sp = SP0, .cs = 0x33 }, false, false,
		true, STACK_END_NONE, 0 },
	{ "a worker of io_uring", { 0 }, true, false, true, STACK_END_NONE, 0 },
	{ "registers cannot be read", { 0 }, true, false, false, STACK_END_NO_REGS, 0 },
	{ "registers of the kernel", { .ip = 0xffffffff81000000, .cs = 0x10 }, true, false, true,
		STACK_END_NO_REGS, 0 },
	{ "exec has switched the mm", { .ip = 0x123456, .sp = 0x1000, .cs = 0x33, .orig_ax = 59 },
		true, false, true, STACK_END_EXEC, 0 },
	{ "execveat has switched the mm", { .ip = 0x123456, .cs = 0x33, .sp = 8, .orig_ax = 322 },
		true, false, true, STACK_END_EXEC, 0 },
	{ "exec has switched the mm, and pc is in the new program",
		{ .ip = CALLEE, .sp = 0x1000, .cs = 0x33, .orig_ax = 59 }, true, false, true,
		STACK_END_EXEC, 0 },
	{ "exec has not switched the mm yet", { .ip = CALLEE, .sp = SP0, .cs = 0x33, .orig_ax = 59 },
		true, false, true, STACK_END_ROOT, 1 },
	{ "no mapping, in another call", { .ip = 0x123456, .sp = 0x1000, .cs = 0x33, .orig_ax = 2 },
		true, false, true, STACK_END_NO_VMA, 1 },
	{ "a 32-bit process", { .ip = CALLEE, .sp = SP0, .cs = 0x23 }, true, false, true,
		STACK_END_UNSUPPORTED, 1 },
};
/* clang-format on */

static void tells_kinds_of_tasks_apart(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	FOR_EACH_CASE (c, kernel_cases) {
		begin_with(rows, 1);
		if (!c->has_mm)
			world.task.mm = NULL;
		if (c->is_kernel_thread)
			world.task.flags = KERNEL_PF_KTHREAD;
		if (!c->has_regs)
			shim.task_regs = (struct x86_regs *)0x10;
		const struct event_sample *s = world_sample_in_kernel(&c->saved);
		if (s->h.stack_end != c->want || s->user_count != c->want_frames)
			fail_msg("[%s] ends %u with %u frames", c->name, s->h.stack_end,
				s->user_count);
		world_end();
	}
}

/* A thread that has just been made has nothing on its stack but what was there before. */
static void ends_where_a_thread_begins(void **state)
{
	(void)state;
	enum { ARGS = 64 }; /* words from SP0: struct clone_args */
	static const struct {
		const char *name;
		struct x86_regs regs;
		uint64_t stack_bytes;
		uint32_t want_frames;
	} cases[] = {
		{ "clone, a new stack", { .orig_ax = 56, .si = SP0 }, 0, 1 },
		{ "clone, the same stack", { .orig_ax = 56 }, 0, 2 },
		{ "clone, in the thread that calls it", { .orig_ax = 56, .si = SP0, .ax = -38ULL },
			0, 2 },
		{ "clone3, a new stack", { .orig_ax = 435, .di = SP0 + 8 * ARGS }, 0x800, 1 },
		{ "clone3, the same stack", { .orig_ax = 435, .di = SP0 + 8 * ARGS }, 0, 2 },
		{ "clone3, arguments that are gone", { .orig_ax = 435, .di = 8 }, 0x800, 2 },
		{ "another call", { .orig_ax = 0, .si = SP0 }, 0x800, 2 },
	};
	FOR_EACH_CASE (c, cases) {
		const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 },
			{ 0x200, rule_stop } };
		struct x86_regs regs = c->regs;
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(SP0 + 8) = CALLER;
		*world_word(SP0 + 8 * ARGS + 40) = c->stack_bytes ? SP0 - c->stack_bytes : 0;
		*world_word(SP0 + 8 * ARGS + 48) = c->stack_bytes;
		regs.ip = CALLEE;
		regs.sp = SP0;
		regs.cs = 0x33;
		const struct event_sample *s = world_sample_in_kernel(&regs);
		CHECK_CASE(c, s->h.stack_end == STACK_END_ROOT);
		CHECK_CASE(c, s->user_count == c->want_frames);
		world_end();
	}
}

/* The timer came due in clone(), and is seen at its first instruction. */
static void ends_behind_clone_if_nothing_is_there(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 },
			{ 0x200, rule_stop } };
		bool is_there = i & 1, is_behind_call = i & 2;
		struct x86_regs regs = { .ip = CALLEE, .sp = SP0, .cs = 0x33, .si = SP0 };
		regs.cx = is_behind_call ? regs.ip : 7;
		begin_with(rows, ARRAY_COUNT(rows));
		*world_word(SP0 + 8) = is_there ? CALLER : 0x77;
		const struct event_sample *s = world_sample_at(&regs);
		bool is_whole = is_there || is_behind_call;
		CHECK(s->h.stack_end == (is_whole ? STACK_END_ROOT : STACK_END_NO_VMA));
		CHECK(s->user_count == (is_there ? 2 : 1));
		world_end();
	}
}

/* ---- events ---- */

static void says_who_was_interrupted(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	shim.pid_tgid = (uint64_t)WORLD_PID << 32 | 4400;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s->h.type == EVENT_SAMPLE && s->h.cpu == 3);
	CHECK(s->h.pid == WORLD_PID && s->h.tid == 4400);
	CHECK(s->h.process_start_ns == 123456789 && s->h.time_ns == 1000);
	CHECK(s->h.cgroup_id == 77 && s->ppid == 99);
	CHECK_STR(str_of(s->h.comm), "shim");
	CHECK(s->notice.key.inode == 0);
	CHECK(shim.event_bytes[0] == sizeof(*s) + sizeof(uint64_t));
	CHECK(shim.event_flags[0] == BPF_RB_NO_WAKEUP);
	shim.ring_waiting = 1001;
	(void)world_sample(CALLEE, SP0, 0);
	CHECK(shim.event_flags[1] == BPF_RB_FORCE_WAKEUP);
	world_end();
}

static void sends_a_stack_once_an_epoch(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	const struct event_sample *first = world_sample(CALLEE, SP0, 0);
	CHECK(first->h.type == EVENT_SAMPLE && (first->h.flags & EVENT_FLAG_KEEP));
	const struct event_sample *again = world_sample(CALLEE, SP0, 0);
	CHECK(again->h.type == EVENT_SAMPLE_SEEN && shim.event_bytes[1] == sizeof(*again));
	CHECK(again->stack_hash == first->stack_hash && again->user_count == 1);
	const struct event_sample *other = world_sample(CALLEE + 1, SP0, 0);
	CHECK(other->h.type == EVENT_SAMPLE && other->stack_hash != first->stack_hash);
	settings.epoch++;
	CHECK(world_sample(CALLEE, SP0, 0)->h.type == EVENT_SAMPLE);
	settings.seen_enabled = 0;
	const struct event_sample *full = world_sample(CALLEE, SP0, 0);
	CHECK(full->h.type == EVENT_SAMPLE && !(full->h.flags & EVENT_FLAG_KEEP));
	CHECK(counted()->delivered == 4 && counted()->seen == 1);
	CHECK(world_slot(1)->hits == 5); /* once for each sample */
	check_conservation();
	world_end();
}

/* What the ring did not take was not sent: the next one must have its frames. */
static void counts_every_loss(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	begin_with(rows, 1);
	shim.ring_is_full = true;
	CHECK(!world_sample(CALLEE, SP0, 0));
	CHECK(counted()->lost_ring == 1);
	shim.ring_is_full = false;
	CHECK(world_sample(CALLEE, SP0, 0)->h.type == EVENT_SAMPLE);
	shim.ring_is_full = true;
	CHECK(!world_sample(CALLEE, SP0, 0));
	CHECK(counted()->lost_ring == 2);
	shim.ring_is_full = false;

	walk_here()->busy = 1;
	CHECK(!world_sample(CALLEE, SP0, 0));
	CHECK(counted()->lost_busy == 1);
	walk_here()->busy = 0;

	config.only_pid = WORLD_PID + 1;
	CHECK(!world_sample(CALLEE, SP0, 0));
	CHECK(counted()->lost_excluded == 1);
	config.only_pid = WORLD_PID;
	CHECK(world_sample(CALLEE, SP0, 0));
	config.only_pid = 99; /* its parent */
	CHECK(world_sample(CALLEE, SP0, 0));

	shim.pid_tgid = 0;
	CHECK(!world_sample(CALLEE, SP0, 0));
	CHECK(counted()->idle == 1);
	CHECK(counted()->samples == 7);
	check_conservation();
	world_end();
}

static void tells_of_programs_and_processes(void **state)
{
	(void)state;
	begin_with(NULL, 0);
	world.mm.start_code = TEXT + 8;
	(void)process_exec(NULL);
	CHECK(shim.event_count == 1 && shim.event_bytes[0] == sizeof(struct event_process));
	const struct event_process *e = (const void *)shim.events[0];
	CHECK(e->h.type == EVENT_EXEC && e->h.pid == WORLD_PID && e->ppid == 99);
	CHECK(e->notice.key.inode == 1000 && e->notice.vma_start == TEXT);
	CHECK(e->notice.key.generation == generation_of(&world.inodes[0]));
	CHECK(e->notice.offset == TEXT_OFFSET);
	CHECK(shim.event_flags[0] == BPF_RB_FORCE_WAKEUP);

	world.signal.live.counter = 1; /* another thread lives on */
	(void)process_exit(NULL);
	CHECK(shim.event_count == 1);
	world.signal.live.counter = 0;
	(void)process_exit(NULL);
	CHECK(shim.event_count == 2);
	e = (const void *)shim.events[1];
	CHECK(e->h.type == EVENT_EXIT && e->h.process_start_ns == 123456789);

	shim.ring_is_full = true;
	(void)process_exec(NULL);
	CHECK(counted()->notices_lost == 1);
	config.only_pid = 1;
	(void)process_exec(NULL);
	(void)process_exit(NULL);
	CHECK(counted()->notices_lost == 1);
	world_end();
}

/* Of a program that is known nobody needs to hear at once; of another one with its inode, yes. */
static void wakes_the_reader_for_new_programs(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, rule_stop } };
	for (int i = 0; i < 3; i++) {
		begin_with(rows, 1);
		world.mm.start_code = TEXT + 8;
		__u32 met = generation_of(&world.inodes[0]);
		world_slot(1)->key.generation = i == 0 ? 0 : i == 1 ? met : met + 1;
		(void)process_exec(NULL);
		CHECK((shim.event_flags[0] == BPF_RB_FORCE_WAKEUP) == (i == 2));
		world_end();
	}
}

static void tests_its_beliefs(void **state)
{
	(void)state;
	begin_with(NULL, 0);
	check.address = TEXT + 5;
	world.regs = (struct x86_regs){ .orig_ax = X86_NR_BPF, .cs = 0x33, .sp = 0x4242 };
	(void)check_kernel(NULL);
	CHECK(check.vma_start == TEXT && check.vma_end == TEXT + TEXT_BYTES);
	CHECK(check.thread_size == THREAD_SIZE_KNOWN && check.user_sp == 0x4242);

	static uint8_t stack[32768] __attribute__((aligned(16)));
	memcpy(stack + sizeof(stack) - sizeof(world.regs), &world.regs, sizeof(world.regs));
	shim_add_kernel(stack, sizeof(stack));
	world.task.stack = stack;
	shim.has_task_pt_regs = false;
	(void)check_kernel(NULL);
	CHECK(check.thread_size == sizeof(stack) && check.user_sp == 0x4242);

	memset(stack, 0, sizeof(stack));
	check.address = 0x10;
	(void)check_kernel(NULL);
	CHECK(check.thread_size == 0 && check.vma_start == 0 && check.vma_end == 0);
	world_end();
}

/* ---- hostile input ---- */

static uint64_t random_u64(uint32_t *seed)
{
	uint64_t high = random_below(seed, 1u << 24);
	uint64_t middle = random_below(seed, 1u << 24);
	return high << 40 | middle << 16 | random_below(seed, 1u << 16);
}

/* A number that leads somewhere more often than chance would. */
static uint64_t random_address(uint32_t *seed)
{
	switch (random_below(seed, 8)) {
	case 0:
		return random_u64(seed);
	case 1:
		return random_below(seed, 4096);
	case 2:
		return JIT + random_below(seed, 0x1000);
	case 3:
		return VDSO + random_below(seed, 0x2000);
	case 4:
		return (uintptr_t)world.nodes[0] + random_below(seed, 256);
	case 5:
		return WORLD_STACK_BASE + 8 * random_below(seed, WORLD_STACK_WORDS);
	default:
		return TEXT + random_below(seed, TEXT_BYTES);
	}
}

static void check_event(uint32_t i)
{
	const struct event_sample *s = (const void *)shim.events[i];
	size_t frames = (size_t)s->kernel_count + s->user_count;
	CHECK(s->kernel_count <= SAMPLE_KERNEL_FRAMES_MAX);
	CHECK(s->user_count <= SAMPLE_USER_FRAMES_MAX);
	CHECK(s->h.stack_end < STACK_END_COUNT);
	CHECK(shim.event_bytes[i] ==
		sizeof(*s) + (s->h.type == EVENT_SAMPLE ? frames * sizeof(uint64_t) : 0));
}

static void survives_hostile_stacks_and_tables(void **state)
{
	(void)state;
	for (uint32_t round = 1; round <= 60; round++) {
		uint32_t seed = round;
		const struct world_row rows[] = { { 0, rule_sp_16 }, { 0x8000, rule_stop } };
		begin_with(rows, ARRAY_COUNT(rows));
		(void)world_publish(-1, FRAME_FILE_VDSO, 0, rows, ARRAY_COUNT(rows), false);
		for (uint32_t i = 0; i < WORLD_STACK_WORDS; i++)
			world.stack[i] = random_address(&seed);
		for (uint32_t i = 0; i < SLAB_CHUNK_BYTES; i++)
			shim.inner.memory[i] = (uint8_t)random_below(&seed, round % 2 ? 16 : 256);
		for (uint32_t i = 0; i < 64; i++) {
			uint64_t raw = random_u64(&seed);
			if (round % 3)
				raw &= 0x0003003fffff0001ULL;
			memcpy(shim_value(&pages, i), &raw, sizeof(raw));
		}
		world_slot(1)->value.page_count = 1 + random_below(&seed, 70000);
		world_slot(1)->value.page_base = random_below(&seed, 80);
		shim.kernel_stack_count = random_below(&seed, SAMPLE_KERNEL_FRAMES_MAX + 1);
		for (uint32_t i = 0; i < SHIM_EVENTS_MAX; i++) {
			struct x86_regs saved = { .ip = random_address(&seed),
				.sp = random_address(&seed),
				.bp = random_address(&seed),
				.cs = random_below(&seed, 64),
				.orig_ax = random_below(&seed, 400) };
			if (i % 2)
				(void)world_sample(saved.ip, saved.sp, saved.bp);
			else
				(void)world_sample_in_kernel(&saved);
			check_event(shim.event_count - 1);
		}
		CHECK(shim.event_count == SHIM_EVENTS_MAX);
		check_conservation();
		world_end();
	}
}

/* Nodes and VMAs that were freed and hold anything: no lookup may say what is not so. */
static void survives_hostile_trees(void **state)
{
	(void)state;
	for (uint32_t round = 1; round <= 300; round++) {
		uint32_t seed = round;
		begin_with(NULL, 0);
		shim.has_maple_tree = round % 4 != 0;
		world_build_tree(2);
		for (uint32_t n = 0; n < world.node_count; n++) {
			for (uint32_t w = 0; w < MAPLE_NODE_WORDS; w++) {
				if (random_below(&seed, 3) == 0)
					world.nodes[n][w] = random_address(&seed);
				if (random_below(&seed, 20) == 0)
					world.nodes[n][w] = (uintptr_t)world.nodes[random_below(
								    &seed, world.node_count)] |
							    random_below(&seed, 128);
			}
		}
		for (uint32_t v = 0; v < world.vma_count && !shim.has_maple_tree; v++) {
			/* A circle. */
			world.vmas[v].rb.rb_left = &world.vmas[0].rb;
			if (random_below(&seed, 2))
				world.vmas[v].rb.rb_right = (void *)random_address(&seed);
		}
		struct vma_search *s = vma_search_at(VMA_SEARCH_SAMPLE);
		s->mm = (uintptr_t)&world.mm;
		for (uint32_t i = 0; i < 200; i++) {
			uint64_t address = random_address(&seed);
			if (vma_find(VMA_SEARCH_SAMPLE, address))
				CHECK(s->start <= address && address < s->end);
		}
		if (round % 5 == 0)
			world.mm.mm_mt.ma_root = (void *)random_address(&seed);
		(void)world_sample(random_address(&seed), SP0, SP0);
		walk_here()->mm = (uintptr_t)&world.mm;
		walk_here()->sp = random_address(&seed);
		if (shim.has_maple_tree)
			(void)stack_fill(0);
		const struct event_stack *e = &stack_copy_here()->event;
		CHECK(e->mapping_count <= STACK_MAPPINGS_MAX && e->stack_bytes <= STACK_BYTES_MAX);
		check_conservation();
		world_end();
	}
}

TEST_MAIN(cmocka_unit_test(finds_the_row_in_force),
	cmocka_unit_test(finds_every_row_of_a_full_bucket),
	cmocka_unit_test(finds_mappings_in_a_maple_tree),
	cmocka_unit_test(finds_mappings_in_a_red_black_tree),
	cmocka_unit_test(refuses_a_mapping_of_another_mm), cmocka_unit_test(steps_by_each_rule),
	cmocka_unit_test(carries_rbx_up), cmocka_unit_test(finds_what_is_in_registers),
	cmocka_unit_test(looks_the_call_up_not_what_follows),
	cmocka_unit_test(reads_the_stack_anew_for_each_sample),
	cmocka_unit_test(follows_a_stack_that_nobody_aligned),
	cmocka_unit_test(passes_a_signal_frame), cmocka_unit_test(says_why_a_stack_ends),
	cmocka_unit_test(cuts_at_the_depth_limit),
	cmocka_unit_test(keeps_the_leaf_of_an_unknown_file),
	cmocka_unit_test(notices_an_inode_number_given_again),
	cmocka_unit_test(ends_where_a_table_had_no_room), cmocka_unit_test(walks_the_vdso),
	cmocka_unit_test(passes_the_vsyscall_page),
	cmocka_unit_test(finds_user_registers_under_a_system_call),
	cmocka_unit_test(tells_kinds_of_tasks_apart), cmocka_unit_test(ends_where_a_thread_begins),
	cmocka_unit_test(ends_behind_clone_if_nothing_is_there),
	cmocka_unit_test(says_who_was_interrupted), cmocka_unit_test(sends_a_stack_once_an_epoch),
	cmocka_unit_test(counts_every_loss), cmocka_unit_test(tells_of_programs_and_processes),
	cmocka_unit_test(wakes_the_reader_for_new_programs), cmocka_unit_test(tests_its_beliefs),
	cmocka_unit_test(survives_hostile_stacks_and_tables),
	cmocka_unit_test(survives_hostile_trees))
