/* SPDX-License-Identifier: Apache-2.0 */
/* made: a process of one file, machine code, a stack and a vDSO, for tests. Includes test.h. */
#pragma once

#undef NODISCARD
#include "test.h"

#define TEXT 0x555500000000ULL /* where file 0 is mapped, from file offset 0x10000 on */
#define TEXT_OFFSET 0x10000
#define TEXT_BYTES 0x10000
#define JIT 0x666600000000ULL
#define VDSO 0x7ffe00000000ULL
#define UNKNOWN 0x7fff00000000ULL /* a file that is not published */
#define FILE_ID 7
/* At 0x100 a function with the rule of the case; its caller at 0x200 is the outermost. */
#define CALLEE (TEXT + 0x120)
#define CALLER (TEXT + 0x240)
#define SP0 (WORLD_STACK_TOP - 0x4000)

static const struct unwind_rule rule_sp_16 = { UNWIND_CFA_SP, UNWIND_FP_SAME, 16, 0, -8 };
static const struct unwind_rule rule_stop = { .cfa = UNWIND_CFA_STOP };

/* Frame of file 0 at offset `at` of its page. */
static uint64_t frame_at(uint64_t at)
{
	return (uint64_t)FILE_ID << FRAME_FILE_SHIFT | (TEXT_OFFSET + at);
}

/* File 0 at TEXT with these rows, and a data mapping for the stack. */
static void begin_with(const struct world_row *rows, uint32_t count)
{
	world_begin();
	world_map(TEXT, TEXT + TEXT_BYTES, MM_EXEC, 0, TEXT_OFFSET);
	world_map(JIT, JIT + 0x1000, MM_EXEC, -1, 0);
	world_map(WORLD_STACK_BASE, WORLD_STACK_TOP, MM_DATA, -1, 0);
	world_map(VDSO, VDSO + 0x2000, MM_EXEC, -1, 0);
	world.mm.context.vdso = (void *)VDSO;
	world_build_tree(12);
	if (count > 0)
		(void)world_publish(0, FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, rows, count,
			count > UNWIND_SPARSE_ROWS_MAX);
}

static uint64_t user_frame(const struct event_sample *s, uint32_t i)
{
	assert_true(i < s->user_count);
	return s->frames[s->kernel_count + i];
}

static const struct bpf_counters *counted(void)
{
	return shim_value(&counters, 0);
}

/* samples = delivered + seen + every loss. */
static void check_conservation(void)
{
	const struct bpf_counters *c = counted();
	CHECK(c->samples == c->delivered + c->seen + c->lost_ring + c->lost_busy +
				    c->lost_excluded + c->lost_off_cpu);
}

static uint32_t random_below(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(*state >> 8) * limit >> 24);
}
