/* SPDX-License-Identifier: Apache-2.0 */
/* agent/bpf/mapping.h as ordinary C: what is kept of a process from one sample to the next. */
#define PROFILER_RODATA
/* clang-format off */
#include "agent/bpf/profiler.bpf.c"
#include "shim/shim.h"
#include "shim/world.h"
#include "shim/made.h"
/* clang-format on */

static const struct world_row stop[] = { { 0, { .cfa = UNWIND_CFA_STOP } } };

#define OTHER_FILE_ID 9

/* Searches in the tree that a sample at CALLEE takes, which must find FILE_ID. */
static uint64_t searches(void)
{
	uint64_t before = counted()->vma_walks;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT && s->user_count == 1);
	CHECK(user_frame(s, 0) == frame_at(CALLEE - TEXT));
	shim_drop_events();
	return counted()->vma_walks - before;
}

static void begin(void)
{
	begin_with(stop, 1);
	settings.seen_enabled = 0;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
}

static void keeps_what_nobody_changed(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++)
		CHECK(searches() == 0);
	shim.has_mm_sequence = false; /* older kernels */
	CHECK(searches() == 1);
	CHECK(searches() == 1);
	shim.has_typed_task = false;
	CHECK(searches() == 1);
	shim.has_mm_sequence = true;
	CHECK(searches() == 0);
	world_end();
}

static void searches_again_where_the_mm_changed(void **state)
{
	(void)state;
	begin();
	world.mm.mm_lock_seq.sequence += 2;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	world.mm.mm_lock_seq.sequence++; /* somebody is at it */
	CHECK(searches() == 1);
	CHECK(searches() == 1);
	world.mm.mm_lock_seq.sequence++;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	world_end();
}

/* Each with the same mm and number: its memory was given again. */
static void searches_again_for_another_process(void **state)
{
	(void)state;
	begin();
	world.task.self_exec_id++;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	world.leader.start_boottime++;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	shim.pid_tgid += 1ULL << 32;
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	shim.pid_tgid++; /* another thread of it */
	CHECK(searches() == 0);
	world_end();
}

static void sees_what_lies_there_now(void **state)
{
	(void)state;
	begin();
	/* Another file at the same place, and nothing at all. */
	(void)world_publish(1, OTHER_FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, stop, 1, false);
	world.vmas[0].vma.vm_file = &world.files[1];
	world.mm.mm_lock_seq.sequence += 2;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_ROOT);
	CHECK(user_frame(s, 0) >> FRAME_FILE_SHIFT == OTHER_FILE_ID);
	world.vmas[0].vma.vm_flags = MM_DATA;
	world.mm.mm_lock_seq.sequence += 2;
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_NO_VMA);
	world_end();
}

/* The slot is retired, used for another file, and the file is known by another one. */
static void believes_no_slot_that_is_not_live(void **state)
{
	(void)state;
	begin();
	world_slot(1)->is_live = 0;
	CHECK(searches() == 1); /* the program that looks it up anew need not ask: see tables.c */
	CHECK(searches() == 1);
	world_slot(1)->is_live = 1;
	CHECK(searches() == 0);
	world_slot(1)->key.generation++;
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_NO_FILE);
	world_slot(1)->key.generation--;
	CHECK(searches() == 1);

	(void)world_publish(1, OTHER_FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, stop, 1, false);
	struct file_slot second = *world_slot(1);
	*world_slot(3) = second; /* published again elsewhere, */
	shim.files[0].slot = 3;
	*world_slot(1) = *world_slot(2); /* and this slot is another file's now */
	CHECK(searches() == 1);
	CHECK(searches() == 0);
	/* The same slot, published with another id. */
	world_slot(3)->value.file_id = OTHER_FILE_ID;
	const struct event_sample *s = world_sample(CALLEE, SP0, 0);
	CHECK(user_frame(s, 0) >> FRAME_FILE_SHIFT == OTHER_FILE_ID);
	world_end();
}

/* A file that is met before it is known is found as soon as it is; the vDSO too. */
static void learns_of_new_files(void **state)
{
	(void)state;
	begin_with(NULL, 0);
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_NO_FILE);
	CHECK(world_sample(CALLEE, SP0, 0)->notice.key.inode == 1000);
	(void)world_publish(0, FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, stop, 1, false);
	CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_ROOT);

	const struct event_sample *s = world_sample(VDSO + 0x500, SP0, 0);
	CHECK(s->h.stack_end == STACK_END_NO_TABLE);
	CHECK(user_frame(s, 0) == ((uint64_t)FRAME_FILE_VDSO << FRAME_FILE_SHIFT | 0x500));
	(void)world_publish(-1, FRAME_FILE_VDSO, 0, stop, 1, false);
	CHECK(world_sample(VDSO + 0x500, SP0, 0)->h.stack_end == STACK_END_ROOT);
	settings.vdso_slot = 0;
	CHECK(world_sample(VDSO + 0x500, SP0, 0)->h.stack_end == STACK_END_NO_TABLE);
	world_end();
}

/* A compiler that writes its code there changes the time with each page. */
static void knows_memory_that_was_written_to(void **state)
{
	(void)state;
	for (int in_memory = 0; in_memory < 2; in_memory++) {
		begin_with(stop, 1);
		world.super.s_flags = in_memory ? KERNEL_SB_KERNMOUNT : 0;
		settings.seen_enabled = 0;
		CHECK(searches() == 1);
		world.inodes[0].i_mtime_nsec++;
		world.inodes[0].i_size++;
		CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end ==
			(in_memory ? STACK_END_ROOT : STACK_END_NO_FILE));
		CHECK(counted()->vma_walks == (in_memory ? 1 : 2));
		world.inodes[0].i_generation++; /* the number is another file's */
		CHECK(world_sample(CALLEE, SP0, 0)->h.stack_end == STACK_END_NO_FILE);
		world_end();
	}
}

/* More mappings than are kept, over and over: each frame is of the file it is of. */
static void keeps_the_last_ones(void **state)
{
	(void)state;
	static const uint32_t counts[] = { 1, MAPPING_CACHE_SIZE, MAPPING_CACHE_SIZE + 3 };
	for (size_t k = 0; k < ARRAY_COUNT(counts); k++) {
		uint32_t seed = 3;
		world_begin();
		for (uint32_t i = 0; i < counts[k]; i++)
			world_map(TEXT + i * 0x10000, TEXT + i * 0x10000 + 0x8000, MM_EXEC,
				(int)(i % 4), 0x10000 * (uint64_t)i);
		world_build_tree(8);
		settings.seen_enabled = 0;
		for (int i = 0; i < 4; i++)
			(void)world_publish(i, FILE_ID + (uint32_t)i, 0, stop, 0, false);
		for (int n = 0; n < 500; n++) {
			uint32_t i = random_below(&seed, counts[k]);
			const struct event_sample *s =
				world_sample(TEXT + i * 0x10000 + 0x7ff8, SP0, 0);
			CHECK(user_frame(s, 0) == ((uint64_t)(FILE_ID + i % 4) << FRAME_FILE_SHIFT |
							  (0x10000 * (uint64_t)i + 0x7ff8)));
			CHECK(world_sample(TEXT + i * 0x10000 + 0x8000, SP0, 0)->h.stack_end ==
				STACK_END_NO_VMA);
			shim_drop_events();
		}
		if (counts[k] <= MAPPING_CACHE_SIZE)
			CHECK(counted()->vma_walks == counts[k] + 500);
		world_end();
	}
}

TEST_MAIN(cmocka_unit_test(keeps_what_nobody_changed),
	cmocka_unit_test(searches_again_where_the_mm_changed),
	cmocka_unit_test(searches_again_for_another_process),
	cmocka_unit_test(sees_what_lies_there_now),
	cmocka_unit_test(believes_no_slot_that_is_not_live), cmocka_unit_test(learns_of_new_files),
	cmocka_unit_test(knows_memory_that_was_written_to), cmocka_unit_test(keeps_the_last_ones))
