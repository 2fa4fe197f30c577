/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made_runtime: a process whose leaf and its caller are an interpreter's loop, each with a frame of
 * 256 bytes, and the outermost one main; beside it memory for the interpreter's structures, of
 * exact size. The case's own begin() fills it in. After made.h; include once.
 */
#pragma once

#define DATA 0x555600000000ULL
#define DATA_BYTES 0x8000
#define PLACE(n) (DATA + 0x400 * (uint64_t)(n))
#define ROOT PLACE(0)
#define UNMAPPED 0x1000ULL
#define POINTER (PLACE(1) + 0x200) /* of this thread */
#define LOOP_BYTES 256
/* What a sample may read: three for each of 2,048 steps and frames that are found, as many for each
 * of the functions told, and for native frames. */
#define MADE_READS_MAX (20 * 2048 + 100)

static uint8_t *data;                      /* at DATA */
static uint64_t leaf_pc = CALLEE, leaf_fp; /* of the next sample */

static void put(uint64_t at, uint64_t value, size_t bytes)
{
	CHECK(at >= DATA && at + bytes <= DATA + DATA_BYTES);
	memcpy(data + (at - DATA), &value, bytes);
}

static void put_word(uint64_t at, uint64_t value)
{
	put(at, value, sizeof(value));
}

static void put_bytes(uint64_t at, const char *text)
{
	CHECK(at >= DATA && at + strlen(text) <= DATA + DATA_BYTES);
	memcpy(data + (at - DATA), text, strlen(text));
}

static void made_runtime_begin(const struct runtime_record *of)
{
	const struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAME, LOOP_BYTES, 0, -8 };
	const struct world_row rows[] = { { 0, { 0 } }, { 0x100, rule }, { 0x200, rule_stop } };
	begin_with(NULL, 0);
	struct file_slot *slot = world_publish(
		0, FILE_ID, TEXT_OFFSET >> UNWIND_PAGE_SHIFT, rows, ARRAY_COUNT(rows), false);
	uint32_t zero = 0;
	struct runtime_record *r = bpf_map_lookup_elem(&runtime_records, &zero);
	*r = *of;
	r->text_from = TEXT_OFFSET + 0x100;
	r->text_bytes = 0x100;
	r->delta = ROOT - TEXT + TEXT_OFFSET;
	slot->value.runtime = 1;
	data = calloc(1, DATA_BYTES);
	CHECK(data);
	shim_add_user(DATA, data, DATA_BYTES);
	world.task.thread.fsbase = POINTER;
	*world_word(SP0 + LOOP_BYTES - 8) = CALLEE + 0x10; /* called by the second loop */
	*world_word(SP0 + 2 * LOOP_BYTES - 8) = CALLER;
}

static void made_runtime_end(void)
{
	check_conservation();
	free(data);
	data = NULL;
	world_end();
}

static const struct event_sample *made_runtime_take(void)
{
	shim.user_reads = 0;
	const struct event_sample *s = world_sample(leaf_pc, SP0, leaf_fp);
	CHECK(s && shim.user_reads <= MADE_READS_MAX);
	return s;
}

static const struct event_code *told(uint64_t number)
{
	for (uint32_t i = 0; i < shim.event_count; i++) {
		const struct event_code *e = (const void *)shim.events[i];
		if (e->type != EVENT_CODE || e->code != number)
			continue;
		CHECK(shim.event_bytes[i] == offsetof(struct event_code, data) + e->name_bytes +
						     e->file_bytes + e->lines_bytes);
		CHECK(e->name_bytes <= CODE_OWNER_BYTES_MAX + CODE_NAME_BYTES_MAX);
		CHECK(e->owner_bytes <= e->name_bytes && e->file_bytes <= CODE_FILE_BYTES_MAX);
		return e;
	}
	return NULL;
}

/* Is frame i the function of this name (its owner's before it), in this file, at this line? */
static bool is_told(
	const struct event_sample *s, uint32_t i, const char *name, const char *file, uint64_t line)
{
	uint64_t frame = user_frame(s, i);
	const struct event_code *e = told(frame_code(frame));
	return frame_is_runtime(frame) && (frame & FRAME_POSITION_NONE) == line && e &&
	       e->name_bytes == strlen(name) && memcmp(e->data, name, e->name_bytes) == 0 &&
	       e->file_bytes == strlen(file) &&
	       memcmp(e->data + e->name_bytes, file, e->file_bytes) == 0;
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

/* Every word of the structures in turn points where a program may make it point: each sample ends,
 * within its reads. */
static void made_runtime_any_word(void (*fill)(void), const uint64_t *words, size_t count)
{
	for (uint64_t at = DATA; at < DATA + DATA_BYTES; at += 8) {
		uint64_t was;
		fill();
		memcpy(&was, data + (at - DATA), sizeof(was));
		for (size_t i = 0; was && i < count; i++) {
			put_word(at, words[i]);
			const struct event_sample *s = made_runtime_take();
			CHECK(s->user_count <= SAMPLE_USER_FRAMES_MAX);
			CHECK(s->h.stack_end == STACK_END_ROOT ||
				s->h.stack_end == STACK_END_DEPTH);
			shim_drop_events();
		}
		made_runtime_end();
	}
}
#define MADE_RUNTIME_WORDS                                                                   \
	0, 1, UNMAPPED, DATA - 8, DATA + DATA_BYTES - 8, ROOT, PLACE(2), PLACE(4), PLACE(8), \
		PLACE(9), SP0, TEXT, INT64_MAX, 1ULL << 63, UINT64_MAX, UINT64_MAX - 7,      \
		0xffffffff81000000
