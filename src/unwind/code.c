/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules for gaps between functions with call frame information. A gap longer than padding has no
 * rule (NONE: a walk there may try the frame pointer), except for code that is recognized in the
 * file:
 *
 *   the entry point     no caller: STOP. crt1's has call frame information that says so; ld.so's
 *                       and musl's have none
 *   .plt and its kin    lld writes no call frame information for them, GNU ld does
 *   .init, .fini        crt's functions of pieces: they make a frame, and take it away
 *   other code          is read, on x86-64 (x86code.c)
 *   rt_sigreturn        musl's signal trampoline. The rule begins one byte early, since a return
 *                       address is looked up by the byte before it
 */
#include "unwind/code.h"

#include <elf.h>
#include <stdlib.h>

#define SEARCH_STEP_BYTES CODE_WINDOW_BYTES
/* A gap may begin one byte before the end of the last one (signal frames). */
#define GAP_OVERLAP 1
#define DF_1_PIE_FLAG 0x08000000
#define DYNAMIC_BYTES_MAX 65536

void code_deinit(struct code *c)
{
	VEC_FREE(&c->segments);
	VEC_FREE(&c->sections);
	free(c->window_bytes);
}

static int by_begin(const void *a, const void *b)
{
	const struct code_part *x = a;
	const struct code_part *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static enum status load_segments(struct code *c, struct err *e)
{
	uint32_t count;
	const struct objfile_segment *segments = objfile_segments(c->obj, &count);
	uint64_t size = objfile_size(c->obj);
	for (uint32_t i = 0; i < count; i++) {
		const struct objfile_segment *g = &segments[i];
		if (!(g->flags & PF_X) || g->offset >= size || c->segments.len == CODE_SEGMENTS_MAX)
			continue;
		uint64_t end = g->offset + MIN(MIN(g->file_size, g->mem_size), size - g->offset);
		struct code_part part = { g->offset, end, g->vaddr, { 0 } };
		if (part.begin < part.end && !VEC_PUSH(&c->segments, part))
			return err_set(e, E_NOMEM, "%s", objfile_name(c->obj));
	}
	if (c->segments.len == 0)
		return OK;
	qsort(c->segments.v, c->segments.len, sizeof(c->segments.v[0]), by_begin);
	size_t kept = 0;
	uint64_t last_end = 0;
	for (size_t i = 0; i < c->segments.len; i++) {
		struct code_part part = c->segments.v[i];
		if (part.end <= last_end)
			continue;
		if (part.begin < last_end) { /* the same bytes mapped twice: the first one wins */
			part.vaddr += last_end - part.begin;
			part.begin = last_end;
		}
		last_end = part.end;
		c->segments.v[kept++] = part;
	}
	c->segments.len = kept;
	return OK;
}

static enum status load_sections(struct code *c, struct err *e)
{
	uint32_t count;
	const struct objfile_section *sections = objfile_sections(c->obj, &count);
	uint64_t size = objfile_size(c->obj);
	for (uint32_t i = 0; i < count; i++) {
		const struct objfile_section *s = &sections[i];
		if (!(s->flags & SHF_EXECINSTR) || s->type == SHT_NOBITS || s->offset >= size ||
			s->size == 0 || c->sections.len == CODE_SECTIONS_MAX)
			continue;
		struct code_part part = { s->offset, s->offset + MIN(s->size, size - s->offset),
			s->addr, s->name };
		if (!VEC_PUSH(&c->sections, part))
			return err_set(e, E_NOMEM, "%s", objfile_name(c->obj));
	}
	if (c->sections.len)
		qsort(c->sections.v, c->sections.len, sizeof(c->sections.v[0]), by_begin);
	return OK;
}

/* DT_FLAGS_1 of a position-independent executable; shared objects lack it. */
static bool is_pie(const struct objfile *obj)
{
	struct objfile_segment dynamic;
	if (!objfile_program_header(obj, PT_DYNAMIC, &dynamic))
		return false;
	size_t len = MIN(dynamic.file_size, (uint64_t)DYNAMIC_BYTES_MAX);
	CLEANUP(free_cleanup) uint8_t *bytes = malloc(len ? len : 1);
	if (!bytes || objfile_read(obj, dynamic.offset, bytes, len, NULL) != OK)
		return false;
	struct reader r = reader_over(bytes, len);
	for (;;) {
		uint64_t tag = reader_u64(&r);
		uint64_t value = reader_u64(&r);
		if (r.failed || tag == DT_NULL)
			return false;
		if (tag == DT_FLAGS_1)
			return value & DF_1_PIE_FLAG;
	}
}

/* A shared library has an entry point too: where .text begins, by default. There the code itself
 * must look like an entry. */
static void find_entry(struct code *c)
{
	c->entry = UINT64_MAX;
	struct vaddr vaddr = objfile_entry(c->obj);
	const struct code_part *segment = code_find(c, vaddr.v);
	if (vaddr.v == 0 || !segment)
		return;
	uint64_t at = vaddr.v - segment->vaddr + segment->begin;
	struct objfile_segment interp;
	c->entry_is_program = objfile_type(c->obj) == ET_EXEC || is_pie(c->obj) ||
			      objfile_program_header(c->obj, PT_INTERP, &interp);
	uint8_t code[16];
	size_t len = MIN(sizeof(code), segment->end - at);
	if (c->entry_is_program || (objfile_read(c->obj, at, code, len, NULL) == OK &&
					   c->machine->is_entry(code, len)))
		c->entry = at;
}

enum status code_init(struct code *c, const struct objfile *obj, struct work *work, struct err *e)
{
	*c = (struct code){
		.obj = obj, .machine = machine_find(objfile_machine(obj)), .work = work
	};
	assert(c->machine);
	enum status s = load_segments(c, e);
	if (s == OK)
		s = load_sections(c, e);
	if (s == OK)
		find_entry(c);
	return s;
}

const struct code_part *code_find(const struct code *c, uint64_t vaddr)
{
	for (size_t i = 0; i < c->segments.len; i++) {
		const struct code_part *s = &c->segments.v[i];
		if (vaddr >= s->vaddr && vaddr - s->vaddr < s->end - s->begin)
			return s;
	}
	return NULL;
}

/* The bytes [at, at + len) of the file, at most CODE_WINDOW_BYTES; they are valid until the next
 * call. Gaps follow one another, so most of them lie in what was read for the gap before. NULL: the
 * bytes cannot be read, or the limit of work is reached. */
static const uint8_t *code_bytes(struct code *c, uint64_t at, size_t len)
{
	assert(len <= CODE_WINDOW_BYTES);
	uint64_t skipped = at - c->window;
	if (!work_add(c->work, WORK_ENTRY))
		return NULL;
	if (c->window_bytes && at >= c->window && skipped <= c->window_len &&
		len <= c->window_len - skipped)
		return c->window_bytes + skipped;
	if (!c->window_bytes)
		c->window_bytes = malloc(CODE_WINDOW_BYTES);
	c->window = at;
	c->window_len = 0;
	size_t most = MIN(objfile_size(c->obj) - at, (uint64_t)CODE_WINDOW_BYTES);
	if (!c->window_bytes || !work_add_read(c->work, most) || len > most ||
		objfile_read(c->obj, at, c->window_bytes, most, NULL) != OK)
		return NULL;
	c->window_len = most;
	return c->window_bytes;
}

static const struct unwind_rule none = { .cfa = UNWIND_CFA_NONE };
static const struct unwind_rule stop = { .cfa = UNWIND_CFA_STOP };
static const struct unwind_rule signal_frame = { .cfa = UNWIND_CFA_SIGNAL };
static const struct unwind_rule signal_frame_early = { .cfa = UNWIND_CFA_SIGNAL,
	.cfa_off = UNWIND_OFF_EARLY };

struct reading {
	struct pages *out;
	uint64_t at;    /* file offset of the code's first byte */
	uint64_t first; /* rows of the code before it are written already */
};

static void put_read_row(void *ctx, size_t offset, struct unwind_rule rule)
{
	const struct reading *r = ctx;
	pages_put(r->out, MAX(r->at + offset, r->first), rule);
}

/* Puts what reading the code of [from, to) says; no signal return is in it. If `from` is the byte
 * right behind a signal return, that byte keeps the signal return's rule: a thread inside that
 * system call is seen there. */
static void put_read_code(
	struct code *c, uint64_t from, uint64_t to, bool is_behind_signal, struct pages *out)
{
	struct reading r = { out, from, from + is_behind_signal };
	if (r.first >= to)
		return;
	pages_put(out, r.first, none);
	bool is_short = to - from <= CODE_WINDOW_BYTES;
	size_t most = MIN(to - from, (uint64_t)CODE_READ_BYTES);
	CLEANUP(free_cleanup) uint8_t *long_code = is_short ? NULL : malloc(most);
	while (c->machine->code_rows && r.at < to && c->read_bytes < CODE_READ_BYTES_MAX) {
		size_t len = MIN((uint64_t)CODE_READ_BYTES, to - r.at);
		const uint8_t *code = is_short ? code_bytes(c, r.at, len) : long_code;
		if (!code || !work_add(c->work, len) ||
			(!is_short && objfile_read(c->obj, r.at, long_code, len, NULL) != OK))
			return;
		c->read_bytes += len;
		r.at += c->machine->code_rows(code, len, r.at + len == to, put_read_row, &r);
	}
	if (r.at < to)
		pages_put(out, MAX(r.at, r.first), none);
}

/* Puts the signal returns in [at, at + len), and what reading the code before each of them says.
 * Begins at *put_to, and moves it behind the last signal return. False: the code cannot be read. */
static bool put_signals(
	struct code *c, uint64_t from, uint64_t at, size_t len, uint64_t *put_to, struct pages *out)
{
	size_t done = 0;
	for (;;) {
		size_t found_len = 0;
		const uint8_t *code = code_bytes(c, at, len);
		if (!code)
			return false;
		ptrdiff_t found = c->machine->find_sigreturn(code + done, len - done, &found_len);
		if (found < 0)
			return true;
		uint64_t begin = at + done + (uint64_t)found;
		uint64_t early = begin > *put_to ? begin - 1 : begin;
		put_read_code(c, *put_to, early, *put_to > from, out);
		if (early < begin)
			pages_put(out, early, signal_frame_early);
		pages_put(out, begin, signal_frame);
		*put_to = begin + found_len;
		done += (size_t)found + found_len;
	}
}

/* Puts the rules of code without call frame information: its signal returns, and what reading the
 * rest says. */
static void put_code(struct code *c, uint64_t from, uint64_t to, struct pages *out)
{
	size_t form_bytes = c->machine->sigreturn_bytes_max;
	uint64_t at = from;
	uint64_t put_to = from;
	while (at < to && c->searched_bytes < CODE_SEARCH_BYTES_MAX) {
		size_t len = MIN((uint64_t)SEARCH_STEP_BYTES, to - at);
		c->searched_bytes += len;
		if (!put_signals(c, from, at, len, &put_to, out) || at + len == to)
			break;
		/* A signal return that this step cuts in two is whole in the next step. */
		at = MAX(put_to, at + len - (form_bytes - 1));
	}
	put_read_code(c, put_to, to, put_to > from, out);
}

/* Puts the rules of code that linkers and start files make. False: the section is not a known
 * one. */
static bool put_known_section(
	struct code *c, struct str section, uint64_t from, uint64_t to, struct pages *out)
{
	struct machine_row rows[MACHINE_ROWS_MAX];
	size_t len = MIN(to - from, (uint64_t)CODE_CRT_BYTES_MAX);
	const uint8_t *code = section.len ? code_bytes(c, from, len) : NULL;
	if (!code)
		return false;
	uint32_t count = c->machine->section_rows(section, code, len, rows);
	for (uint32_t i = 0; i < count && from + rows[i].offset < to; i++)
		pages_put(out, from + rows[i].offset, rows[i].rule);
	return count > 0;
}

/* Where the code of the entry ends, somewhere before `to`. */
static uint64_t find_entry_end(struct code *c, uint64_t to)
{
	size_t len = MIN(to - c->entry, (uint64_t)CODE_ENTRY_BYTES_MAX);
	const uint8_t *code = c->machine->entry_bytes ? code_bytes(c, c->entry, len) : NULL;
	return c->entry + (code ? c->machine->entry_bytes(code, len) : len);
}

/* Puts the rules of a gap's part [from, to), which lies in one section or in no known one. */
static void put_gap_part(
	struct code *c, struct str section, uint64_t from, uint64_t to, struct pages *out)
{
	if (put_known_section(c, section, from, to, out))
		return;
	pages_put(out, from, none);
	if (c->entry < from || c->entry >= to) {
		put_code(c, from, to, out);
		return;
	}
	uint64_t entry_end = find_entry_end(c, to);
	put_code(c, from, c->entry, out);
	pages_put(out, c->entry, stop);
	pages_put(out, entry_end, none);
	put_code(c, entry_end, to, out);
}

void code_put_gap(struct code *c, uint64_t from, uint64_t to, struct pages *out)
{
	uint64_t at = from;
	while (c->section_hint < c->sections.len &&
		c->sections.v[c->section_hint].end + GAP_OVERLAP <= from)
		c->section_hint++;
	for (size_t i = c->section_hint; i < c->sections.len && at < to; i++) {
		const struct code_part *s = &c->sections.v[i];
		if (s->begin >= to || !work_add(c->work, 1))
			break;
		uint64_t begin = MAX(s->begin, at);
		uint64_t end = MIN(s->end, to);
		if (begin >= end)
			continue;
		if (begin > at)
			pages_put(out, at, none);
		put_gap_part(c, s->name, begin, end, out);
		at = end;
	}
	if (at == to)
		return;
	if (c->sections.len == 0)
		put_gap_part(c, (struct str){ 0 }, at, to, out);
	else
		pages_put(out, at, none);
}
