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

/* ---- memory that changes while it is read ---- */

#define CHANGED_ROUNDS 4000

static struct {
	uint8_t *at; /* NULL: none */
	uint64_t was;
	struct shim_region *unmapped; /* NULL: none */
	uint64_t bytes;
} change;
static uint32_t changes_random;

static void change_undo(void)
{
	if (change.at)
		memcpy(change.at, &change.was, sizeof(change.was));
	if (change.unmapped)
		change.unmapped->bytes = change.bytes;
	memset(&change, 0, sizeof(change));
}

static struct shim_region *change_region(uint64_t address)
{
	for (uint32_t i = 0; i < shim.user_count; i++) {
		struct shim_region *r = &shim.user[i];
		if (address - r->start < r->bytes && r->bytes >= 16)
			return r;
	}
	return NULL;
}

static uint64_t change_value(const struct shim_region *r, uint64_t was)
{
	static const uint64_t forged[] = { 0, 1, 0x1000, INT64_MAX, UINT64_MAX, UINT64_MAX - 7,
		0xffffffff81000000 };
	uint64_t value;
	switch (random_below(&changes_random, 4)) {
	case 0:
		return forged[random_below(&changes_random, ARRAY_COUNT(forged))];
	case 1:
		return was + 8 * random_below(&changes_random, 64) - 256;
	case 2:
		return was ^ 1ULL << random_below(&changes_random, 64);
	default: /* as another word */
		memcpy(&value, r->memory + random_below(&changes_random, (uint32_t)(r->bytes - 8)),
			sizeof(value));
		return value;
	}
}

/* Another thread writes a word at or behind the one that is about to be read, or unmaps it; some
 * reads later it takes that back and goes on. */
static void change_before_read(uint64_t address)
{
	if ((change.at || change.unmapped) && random_below(&changes_random, 4) > 0)
		return;
	change_undo();
	struct shim_region *r = change_region(address);
	if (!r || random_below(&changes_random, 4) == 0)
		return;
	if (random_below(&changes_random, 32) == 0) {
		change.unmapped = r;
		change.bytes = r->bytes;
		r->bytes = 0;
		return;
	}
	uint64_t offset = address - r->start + 8 * random_below(&changes_random, 16);
	if (offset > r->bytes - 8)
		offset = r->bytes - 8;
	change.at = (uint8_t *)(uintptr_t)r->memory + offset;
	memcpy(&change.was, change.at, sizeof(change.was));
	uint64_t value = change_value(r, change.was);
	memcpy(change.at, &value, sizeof(value));
}

/* The process' memory changes before each read of a sample. The sample comes, within the reads that
 * `sample` allows, and the next one of unchanged memory has the frames that it always has. */
static void changes_while_it_is_read(const struct event_sample *(*sample)(void))
{
	uint64_t frames[SAMPLE_USER_FRAMES_MAX];
	settings.seen_enabled = 0;
	const struct event_sample *s = sample();
	const uint32_t count = s->user_count;
	uint32_t differ = 0;
	memcpy(frames, s->frames + s->kernel_count, count * sizeof(uint64_t));
	shim_drop_events();
	for (changes_random = 1; changes_random < CHANGED_ROUNDS; changes_random++) {
		const uint32_t round = changes_random;
		settings.codes_epoch++;
		shim.before_read = change_before_read;
		s = sample();
		shim.before_read = NULL;
		change_undo();
		CHECK(s->user_count <= SAMPLE_USER_FRAMES_MAX);
		differ += s->user_count != count || memcmp(s->frames + s->kernel_count, frames,
							    count * sizeof(uint64_t)) != 0;
		shim_drop_events();
		s = sample();
		CHECK(s->user_count == count);
		CHECK(memcmp(s->frames + s->kernel_count, frames, count * sizeof(uint64_t)) == 0);
		shim_drop_events();
		changes_random = round;
	}
	print_message("%u of %u stacks are others\n", differ, CHANGED_ROUNDS - 1);
	CHECK(differ > 0);
}
