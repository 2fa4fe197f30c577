/* SPDX-License-Identifier: Apache-2.0 */
/* agent/bpf/stack.h as ordinary C: copies of stacks and lists of mappings. */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

static void allow_copy(void)
{
	config.copy_stacks = 1;
	walk_here()->stacks_paid_ns = 0;
}

static const struct event_stack *sent_stack(void)
{
	assert_true(shim.event_count >= 2);
	const struct event_stack *e =
		(const struct event_stack *)(const void *)shim.events[shim.event_count - 2];
	assert_int_equal(e->h.type, EVENT_STACK);
	assert_int_equal(shim.event_bytes[shim.event_count - 2],
		offsetof(struct event_stack, stack) + e->stack_bytes);
	return e;
}

/* The executable ones of the world's mappings, in order, and nothing else. */
static void check_mappings(const struct event_stack *e, bool all_leaves)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < world.vma_count && n < STACK_MAPPINGS_MAX; i++) {
		const struct vm_area_struct *v = &world.vmas[i].vma;
		if (!(v->vm_flags & KERNEL_VM_EXEC))
			continue;
		const struct stack_mapping *m = &e->mappings[n++];
		if (n > e->mapping_count && !all_leaves)
			return;
		assert_true(n <= e->mapping_count);
		assert_int_equal(m->start, v->vm_start);
		assert_int_equal(m->end, v->vm_end);
		assert_int_equal(m->offset, v->vm_pgoff << KERNEL_PAGE_SHIFT);
		assert_int_equal(m->key.inode, v->vm_file ? v->vm_file->f_inode->i_ino : 0);
	}
	assert_int_equal(n, e->mapping_count);
}

static void copies_the_list_of_mappings(void **state)
{
	(void)state;
	static const uint32_t counts[] = { 1, 2, 7, 30, 200, 700 };
	static const uint32_t fills[] = { 16, 15, 9, 4 };
	uint32_t seed = 5;
	for (size_t k = 0; k < ARRAY_COUNT(counts) * ARRAY_COUNT(fills); k++) {
		uint32_t count = counts[k / ARRAY_COUNT(fills)];
		uint32_t fill = fills[k % ARRAY_COUNT(fills)];
		world_begin();
		allow_copy();
		uint64_t at = 0x400000;
		for (uint32_t i = 0; i < count; i++) {
			bool is_exec = i == 0 || random_below(&seed, 5) == 0;
			at += 4096 * (uint64_t)random_below(&seed, 3);
			world_map(at, at + 8192, is_exec ? MM_EXEC : MM_DATA,
				i % 3 ? (int)(i % WORLD_FILES_MAX) : -1, 4096 * (uint64_t)i);
			at += 8192;
		}
		world.vmas[0].vma.vm_file = &world.files[1];
		world_build_tree(fill);
		const struct event_sample *s =
			world_sample(world.vmas[0].vma.vm_start + 0x100, SP0, 0);
		CHECK(s && s->h.stack_end == STACK_END_NO_FILE);
		CHECK(s->h.flags & EVENT_FLAG_STACK);
		check_mappings(sent_stack(), count <= STACK_LEAVES_MAX * fill / 2);
		world_end();
	}
}

#define HOLE (SP0 - 0x1000)
#define COPY_AT ((SP0 + 16) & ~(STACK_CHUNK_BYTES - 1ULL))

/* A page of the stack was never written. */
static void take_page(uint64_t at)
{
	for (uint32_t i = 0; i < shim.user_count; i++) {
		struct shim_region *r = &shim.user[i];
		if (at < r->start || at - r->start >= r->bytes)
			continue;
		uint64_t before = at - r->start, gone = before + 4096;
		assert_true(r->bytes >= gone && shim.user_count < SHIM_REGIONS_MAX);
		shim.user[shim.user_count++] =
			(struct shim_region){ r->start + gone, r->bytes - gone, r->memory + gone };
		r->bytes = before;
		return;
	}
	fail();
}

/* clang-format off */
static const struct {
	const char *name; bool enabled, ring_is_full; uint64_t sp; bool sent; uint32_t bytes, missing;
} copy_cases[] = {
	{ "in the middle", true, false, SP0, true, 0x4000, ~0xffU },
	{ "not asked for", false, false, SP0, false, 0, 0 },
	{ "the ring is full enough", true, true, SP0, false, 0, 0 },
	{ "at the end of the stack", true, false, WORLD_STACK_TOP - 24, true, STACK_CHUNK_BYTES, ~1U },
	{ "below a page that is not there", true, false, HOLE - 32, true, 0x5800, ~0x7f9U },
};
/* clang-format on */

#define UPPER (WORLD_STACK_TOP + 0x80000)
#define UPPER_BYTES 0x20000
#define FAR 0x7fffffff0000

/* clang-format off */
static const struct {
	const char *name; uint64_t stack_start, pointer, upper_at; uint32_t chunks, missing;
} upper_cases[] = {
	{ "the first thread's", UPPER + UPPER_BYTES - 0x1001, FAR, UPPER + UPPER_BYTES - 0x1000 - STACK_PART_BYTES, 32, 0 },
	{ "another thread's", FAR, UPPER + UPPER_BYTES - 0x1800, UPPER + UPPER_BYTES - 0x1800 - STACK_PART_BYTES, 32, 0 },
	{ "below sp", SP0 - STACK_CHUNK_BYTES, UPPER + UPPER_BYTES, UPPER + UPPER_BYTES - STACK_PART_BYTES, 32, 0 },
	{ "only its end is there", FAR, UPPER + 0x1000, UPPER + 0x1000 - STACK_PART_BYTES, 32, 0x3fffffff },
	{ "close above the lower part", FAR, COPY_AT + STACK_PART_BYTES + 0x2001, COPY_AT + STACK_PART_BYTES, 0, ~0U },
	{ "neither", FAR, FAR, -(uint64_t)STACK_PART_BYTES, 0, ~0U },
};
/* clang-format on */

static void copies_the_upper_end(void **state)
{
	(void)state;
	static uint8_t memory[UPPER_BYTES];
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 } };
	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)(i * 31 >> 5);
	FOR_EACH_CASE (c, upper_cases) {
		begin_with(rows, ARRAY_COUNT(rows));
		world_map(UNKNOWN, UNKNOWN + 0x1000, MM_EXEC, 3, 0);
		world_build_tree(12);
		allow_copy();
		shim_add_user(UPPER, memory, sizeof(memory));
		world.mm.start_stack = c->stack_start;
		world.task.thread.fsbase = c->pointer;
		*world_word(SP0 + 8) = UNKNOWN + 0x123;
		const struct event_sample *s = world_sample(CALLEE, SP0, 0x1111);
		CHECK_CASE(c, s && s->h.flags & EVENT_FLAG_STACK);
		const struct event_stack *e = sent_stack();
		CHECK_CASE(c, e->parts[0].at == COPY_AT && e->parts[1].at == c->upper_at);
		CHECK_CASE(c, e->parts[0].missing == ~0xffU);
		CHECK_CASE(c, e->parts[1].missing == c->missing);
		uint32_t bytes = c->chunks ? STACK_PART_BYTES + c->chunks * STACK_CHUNK_BYTES
					   : 8 * STACK_CHUNK_BYTES;
		CHECK_CASE(c, e->stack_bytes == bytes);
		for (uint32_t i = 0; i < c->chunks; i++)
			CHECK_CASE(c,
				c->missing >> i & 1 ||
					memcmp(e->stack + STACK_PART_BYTES + i * STACK_CHUNK_BYTES,
						memory + (c->upper_at + i * STACK_CHUNK_BYTES -
								 UPPER),
						STACK_CHUNK_BYTES) == 0);
		world_end();
	}
}

static void copies_the_stack_where_a_file_is_not_known(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 } };
	FOR_EACH_CASE (c, copy_cases) {
		begin_with(rows, ARRAY_COUNT(rows));
		world_map(UNKNOWN, UNKNOWN + 0x1000, MM_EXEC, 3, 0);
		world_build_tree(12);
		allow_copy();
		config.copy_stacks = c->enabled;
		shim.ring_waiting = c->ring_is_full ? config.wake_bytes + 1 : 0;
		*world_word(c->sp + 8) = UNKNOWN + 0x123;
		take_page(HOLE);
		const struct event_sample *s = world_sample(CALLEE, c->sp, 0x1111);
		CHECK_CASE(c, s->h.stack_end == STACK_END_NO_FILE && s->user_count == 2);
		CHECK_CASE(c, !(s->h.flags & EVENT_FLAG_STACK) == !c->sent);
		CHECK_CASE(c, counted()->stacks == c->sent);
		CHECK_CASE(c, counted()->stacks_lost == c->ring_is_full);
		check_conservation();
		if (c->sent) {
			const struct event_stack *e = sent_stack();
			CHECK_CASE(c, e->pc == UNKNOWN + 0x123 && e->sp == c->sp + 16);
			CHECK_CASE(c, e->fp == 0x1111 && !e->pc_is_exact && e->vdso == VDSO);
			CHECK_CASE(c, e->stack_bytes == c->bytes && e->h.pid == WORLD_PID);
			CHECK_CASE(c, e->parts[0].missing == c->missing);
			CHECK_CASE(c, e->parts[0].at == (e->sp & ~(STACK_CHUNK_BYTES - 1ULL)));
			for (uint32_t i = 0; i < c->bytes; i += STACK_CHUNK_BYTES)
				CHECK_CASE(c,
					c->missing >> i / STACK_CHUNK_BYTES & 1 ||
						memcmp(e->stack + i, world_word(e->parts[0].at + i),
							STACK_CHUNK_BYTES) == 0);
		}
		world_end();
	}
}

/* A sample after so long: has it a copy? Then it does not go by its hash. */
static bool is_copied_after(uint64_t ns)
{
	shim.clock_ns += ns;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0x1111);
	CHECK(s && s->h.stack_end == STACK_END_NO_FILE);
	bool is_copied = s->h.flags & EVENT_FLAG_STACK;
	CHECK(!is_copied || s->h.type == EVENT_SAMPLE);
	for (uint32_t i = 0; i < shim.event_count; i++)
		free(shim.events[i]);
	shim.event_count = 0;
	return is_copied;
}

/* One each interval in the mean; of those that come sooner a few. */
static void copies_a_few_at_once(void **state)
{
	(void)state;
	static const uint64_t intervals[] = { STACK_INTERVAL_NS, 1003009 };
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 } };
	const uint64_t ms = 1000000;
	FOR_EACH_CASE (interval, intervals) {
		const uint32_t burst = STACK_BURST_NS / *interval;
		begin_with(rows, ARRAY_COUNT(rows));
		world_map(UNKNOWN, UNKNOWN + 0x1000, MM_EXEC, 3, 0);
		world_build_tree(12);
		allow_copy();
		config.stack_interval_ns = *interval;
		*world_word(SP0 + 8) = UNKNOWN + 0x123;
		for (uint32_t i = 0; i < 3 * burst; i++)
			CHECK(is_copied_after(0) == (i < burst));
		CHECK(counted()->stacks == burst && counted()->stacks_refused == 2 * burst);
		/* A timer that is late now and then, and in time again: each of them, for ever. */
		shim.clock_ns += STACK_BURST_NS;
		for (uint32_t i = 0; i < 300; i++) {
			CHECK(is_copied_after(*interval + 30 * ms));
			for (uint32_t k = 0; k < 30 * ms / *interval; k++)
				CHECK(is_copied_after(0));
			CHECK(is_copied_after(*interval));
		}
		/* Twice as often as may be: every second one. */
		uint32_t copied = 0;
		for (uint32_t i = 0; i < 1000; i++)
			copied += is_copied_after(*interval / 2);
		CHECK(copied >= 500 && copied <= 501 + burst);
		check_conservation();
		world_end();
	}
}

/* Of CPUs that share the room for a copy one has it; whoever comes meanwhile goes without. */
static void shares_its_room(void **state)
{
	(void)state;
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule_sp_16 } };
	begin_with(rows, ARRAY_COUNT(rows));
	world_map(UNKNOWN, UNKNOWN + 0x1000, MM_EXEC, 3, 0);
	world_build_tree(12);
	allow_copy();
	*world_word(SP0 + 8) = UNKNOWN + 0x123;
	CHECK(is_copied_after(STACK_INTERVAL_NS));
	CHECK(stack_copy_enter(stack_copy_here())); /* another CPU */
	CHECK(!is_copied_after(STACK_INTERVAL_NS) && !is_copied_after(STACK_INTERVAL_NS));
	CHECK(counted()->stacks == 1 && counted()->stacks_refused == 2);
	stack_copy_leave(stack_copy_here());
	CHECK(is_copied_after(STACK_INTERVAL_NS));
	CHECK(stack_copy_here()->users == 0);
	check_conservation();
	world_end();
}

TEST_MAIN(cmocka_unit_test(copies_the_list_of_mappings), cmocka_unit_test(copies_a_few_at_once),
	cmocka_unit_test(shares_its_room), cmocka_unit_test(copies_the_upper_end),
	cmocka_unit_test(copies_the_stack_where_a_file_is_not_known))
