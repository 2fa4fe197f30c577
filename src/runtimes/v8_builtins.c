/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds V8's own code, its builtins, in a file without symbols for it.
 *
 * The code is one piece. Near it lies a table, by the builtin's number: where its instructions
 * begin in the piece, how many bytes they have, and more, which differs from version to version, so
 * the size of an entry is found by repetition. Three hashes come before the table. The piece itself
 * is found by the breakpoints that fill the gaps between builtins, which the table gives. Numbers
 * come from the names of builtins, which V8 has for its own messages: entries of three words, the
 * first of which is the name's address.
 *
 * Source: V8, src/snapshot/embedded/embedded-data.{h,cc}, src/builtins/builtins.cc.
 */
#include "runtimes/internal.h"

#include "base/reader.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define CONSTANTS_BYTES_MAX ((size_t)64 << 20)
#define RELOCATIONS_BYTES_MAX ((size_t)16 << 20)
#define WINDOW_BYTES ((size_t)1 << 20)
#define CODE_BYTES_MAX (64 << 20)

#define COUNT_LEAST 512 /* of builtins */
#define COUNT_MAX 8192
#define HASHES_BYTES 24
#define CODE_ALIGNMENT 32
#define GAP_BYTES_MAX 128
#define ENTRY_WORDS_LEAST 3
#define ENTRY_WORDS_MAX 12
#define GAPS_CHECKED 64
#define BREAKPOINT 0xcc
#define NAME_ENTRY_BYTES 24

/* In the order of their numbers. */
enum name { NAME_ENTRY, NAME_FIRST_HANDLER, NAME_LAST_14, NAME_LAST, NAME_COUNT };
static const char *const names[NAME_COUNT] = {
	[NAME_ENTRY] = "InterpreterEntryTrampoline",
	[NAME_FIRST_HANDLER] = "WideHandler",
	[NAME_LAST_14] = "IncBlockCounterExtraWideHandler", /* to 14.1 it is the last but one */
	[NAME_LAST] = "AbortExtraWideHandler",
};

struct search {
	const struct objfile *obj;
	struct buf constants; /* the bytes of .rodata, which lies at `base` */
	uint64_t base;
	size_t table; /* in the constants */
	size_t entry_bytes;
	uint32_t count;
	uint64_t code;              /* address of the piece */
	uint64_t named[NAME_COUNT]; /* addresses of entries; 0: not found yet */
};

static uint32_t word_at(const struct buf *b, size_t at)
{
	uint32_t word;
	memcpy(&word, b->data + at, sizeof(word));
	return word;
}

static uint32_t builtin_from(const struct search *s, uint32_t number)
{
	return word_at(&s->constants, s->table + number * s->entry_bytes);
}

static uint32_t builtin_bytes(const struct search *s, uint32_t number)
{
	return word_at(&s->constants, s->table + number * s->entry_bytes + 4);
}

/* ---- the table ---- */

/* Does a builtin of `bytes` at `from` end just before `next`? */
static bool is_next(uint32_t from, uint32_t bytes, uint32_t next)
{
	uint64_t end = (uint64_t)from + bytes;
	return bytes != 0 && next % CODE_ALIGNMENT == 0 && next >= end &&
	       next - end <= GAP_BYTES_MAX;
}

/* How many entries of this size follow one another. */
static uint32_t count_of(const struct buf *b, size_t at, size_t entry_bytes)
{
	uint32_t count = 1;
	while (count < COUNT_MAX && at + entry_bytes + 8 <= b->len &&
		is_next(word_at(b, at), word_at(b, at + 4), word_at(b, at + entry_bytes))) {
		at += entry_bytes;
		count++;
	}
	return count;
}

static bool find_table(struct search *s)
{
	const struct buf *b = &s->constants;
	for (size_t at = HASHES_BYTES; at + 4 * ENTRY_WORDS_MAX + 8 <= b->len; at += 4) {
		if (word_at(b, at) != 0 || word_at(b, at + 4) == 0)
			continue;
		for (size_t words = ENTRY_WORDS_LEAST; words <= ENTRY_WORDS_MAX; words++) {
			uint32_t next = word_at(b, at + 4 * words);
			if (!is_next(0, word_at(b, at + 4), next))
				continue;
			s->count = count_of(b, at, 4 * words);
			s->table = at;
			s->entry_bytes = 4 * words;
			if (s->count >= COUNT_LEAST)
				return builtin_from(s, s->count - 1) < CODE_BYTES_MAX;
		}
	}
	return false;
}

/* ---- the code ---- */

/* Does the piece begin at code[0]? `code` has `size` bytes. */
static bool is_code(const struct search *s, const uint8_t *code, size_t size)
{
	for (uint32_t i = 0; i < GAPS_CHECKED; i++) {
		uint32_t to = builtin_from(s, i + 1);
		if (to > size)
			return i > 0;
		for (uint32_t at = builtin_from(s, i) + builtin_bytes(s, i); at < to; at++) {
			if (code[at] != BREAKPOINT)
				return false;
		}
	}
	return true;
}

static bool find_code(struct search *s)
{
	const struct objfile_section *text = objfile_section(s->obj, ".text");
	size_t ahead = builtin_from(s, GAPS_CHECKED);
	uint64_t all = (uint64_t)builtin_from(s, s->count - 1) + builtin_bytes(s, s->count - 1);
	if (!text || text->size < all || ahead > WINDOW_BYTES)
		return false;
	uint64_t most = text->size - all;
	uint8_t *window = malloc(WINDOW_BYTES + ahead);
	uint64_t at = (0 - text->addr) % CODE_ALIGNMENT;
	while (window && at <= most && !s->code) {
		uint64_t left = text->size - at;
		size_t size = left < WINDOW_BYTES + ahead ? left : WINDOW_BYTES + ahead;
		if (objfile_read(s->obj, text->offset + at, window, size, NULL) != OK)
			break;
		for (size_t i = 0; i < WINDOW_BYTES && i < size && !s->code; i += CODE_ALIGNMENT) {
			if (at + i <= most && is_code(s, window + i, size - i))
				s->code = text->addr + at + i;
		}
		at += WINDOW_BYTES;
	}
	free(window);
	return s->code != 0;
}

/* ---- the numbers ---- */

/* Notes a pointer at address `at` to the constant at `to`. */
static void take_pointer(struct search *s, uint64_t at, uint64_t to)
{
	uint64_t from = to - s->base;
	for (int i = 0; i < NAME_COUNT; i++) {
		size_t len = strlen(names[i]) + 1;
		if (!s->named[i] && from < s->constants.len && len <= s->constants.len - from &&
			memcmp(s->constants.data + from, names[i], len) == 0)
			s->named[i] = at;
	}
}

static void search_relocations(struct search *s)
{
	const struct objfile_section *rela = objfile_section(s->obj, ".rela.dyn");
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, RELOCATIONS_BYTES_MAX);
	if (!rela || objfile_read_section(s->obj, rela, &bytes, NULL) != OK)
		return;
	struct reader r = reader_over(bytes.data, bytes.len);
	while (reader_left(&r) >= sizeof(Elf64_Rela)) {
		Elf64_Rela entry;
		memcpy(&entry, reader_bytes(&r, sizeof(entry)), sizeof(entry));
		if (ELF64_R_TYPE(entry.r_info) == R_X86_64_RELATIVE)
			take_pointer(s, entry.r_offset, (uint64_t)entry.r_addend);
	}
}

/* Searches a section's words for pointers: in a program that is linked to fixed addresses, or whose
 * linker has packed its relocations. */
static void search_words(struct search *s, const char *section_name)
{
	const struct objfile_section *section = objfile_section(s->obj, section_name);
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, CONSTANTS_BYTES_MAX);
	if (!section || objfile_read_section(s->obj, section, &bytes, NULL) != OK)
		return;
	for (size_t at = 0; at + 8 <= bytes.len; at += 8) {
		uint64_t word;
		memcpy(&word, bytes.data + at, sizeof(word));
		take_pointer(s, section->addr + at, word);
	}
}

static bool find_names(struct search *s)
{
	static const char *const sections[] = { ".data.rel.ro", ".data" };
	search_relocations(s);
	for (size_t i = 0; i < ARRAY_COUNT(sections) && !s->named[NAME_LAST]; i++)
		search_words(s, sections[i]);
	for (size_t at = 0; at + 8 <= s->constants.len && !s->named[NAME_LAST]; at += 8) {
		uint64_t word;
		memcpy(&word, s->constants.data + at, sizeof(word));
		take_pointer(s, s->base + at, word);
	}
	if (!s->named[NAME_LAST])
		s->named[NAME_LAST] = s->named[NAME_LAST_14];
	return s->named[NAME_LAST] != 0;
}

/* Where the builtin of this name lies: address and size. The last one has the last number. */
static bool place_named(const struct search *s, enum name name, struct runtime_symbol *out)
{
	uint64_t below = s->named[NAME_LAST] - s->named[name];
	uint64_t steps = below / NAME_ENTRY_BYTES;
	if (!s->named[name] || below % NAME_ENTRY_BYTES || steps >= s->count)
		return false;
	uint32_t number = s->count - 1 - (uint32_t)steps;
	out->address = s->code + builtin_from(s, number);
	out->size = builtin_bytes(s, number);
	return true;
}

bool v8_builtins_find(const struct objfile *obj, struct v8_builtins *out)
{
	const struct objfile_section *constants = objfile_section(obj, ".rodata");
	struct search s = { .obj = obj };
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, CONSTANTS_BYTES_MAX);
	if (!constants || objfile_read_section(obj, constants, &bytes, NULL) != OK)
		return false;
	s.constants = bytes;
	s.base = constants->addr;
	struct v8_builtins b = { 0 };
	if (!find_table(&s) || !find_code(&s) || !find_names(&s) ||
		!place_named(&s, NAME_ENTRY, &b.entry) ||
		!place_named(&s, NAME_FIRST_HANDLER, &b.first_handler) ||
		!place_named(&s, NAME_LAST, &b.last_handler))
		return false;
	b.all = (struct runtime_symbol){ .address = s.code };
	*out = b;
	return true;
}
