/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8 counts characters of the source, not lines. A table of places is a stream of pairs (bytes of
 * code, characters), each the difference to the pair before: signed numbers, the sign in the lowest
 * bit, in bytes of seven bits, the lowest first, the eighth bit says that more follow. The first
 * number is negative, minus one, where the place is no statement; from 14 on it has no sign, and
 * two flags in its lowest bits. A place has its character at bits 1 to 30, counted from one, and
 * above them which inlined function it is in.
 *
 * Positions of a function stand behind its names among the slots of its ScopeInfo: the first two
 * small numbers in a row of which the second is larger.
 *
 * In code of several functions a place in an inlined function leads to the place of its call, which
 * is a place too.
 *
 * Source: V8, src/codegen/source-position-table.cc, source-position.h, src/base/vlq.h,
 * src/objects/scope-info.tq.
 */
#include "runtimes/runtimes.h"

#include "base/reader.h"

#define FLAGS_FROM (14 << 8) /* up to 13.6 the numbers have signs, and no flags */
#define SMI_SHIFT 32
#define PLACE_SHIFT 1
#define PLACE_MASK 0x3fffffff
#define INLINING_SHIFT 31
#define INLINING_MASK 0xffff
/* Places have 47 bits; the sum of a whole table of such differences fits 64. */
#define MOVED_MOST (1LL << 48)
/* Of V8's InliningPosition: a place, and the number of a function. */
#define INLINING_BYTES 16
/* A function's number has as many bits as in frames. */
#define FRAME_NUMBER_MASK ((1ULL << 44) - 1)
/* Bytes of a number of 64 bits. */
#define NUMBER_BYTES_MAX 10

static uint64_t read_number(struct reader *r)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < NUMBER_BYTES_MAX; i++) {
		uint8_t byte = reader_u8(r);
		n |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80))
			break;
	}
	return n;
}

static int64_t read_signed(struct reader *r)
{
	uint64_t n = read_number(r);
	return (int64_t)(n >> 1 ^ (0 - (n & 1)));
}

/* Bytes of code to the next place. */
static int64_t read_step(struct reader *r, bool has_flags)
{
	if (has_flags)
		return (int64_t)(read_number(r) >> 2);
	int64_t step = read_signed(r);
	return step < 0 ? -(step + 1) : step;
}

/* The value of a small integer (Smi); -1: the word is none, or below zero. */
static int64_t small_number(uint64_t word)
{
	return word & UINT32_MAX || (int64_t)word < 0 ? -1 : (int64_t)(word >> SMI_SHIFT);
}

static bool take_positions(const __u64 words[2], struct v8_function *out)
{
	int64_t begin = small_number(words[0]), end = small_number(words[1]);
	if (begin < 0 || end <= begin)
		return false;
	out->begin = (uint32_t)begin;
	out->end = (uint32_t)end;
	return true;
}

bool v8_function_told(uint16_t version, struct str told, struct v8_function *out)
{
	struct v8_told t;
	if (told.len < sizeof(t))
		return false;
	memcpy(&t, told.p, sizeof(t));
	*out = (struct v8_function){ .version = version, .source = t.source };
	int64_t first = small_number(t.first_line);
	out->first_line = first > 0 && first < INT32_MAX ? (uint32_t)first : 0;
	out->table = str_sub(told, sizeof(t), told.len);
	out->is_cut = t.table_bytes > out->table.len;
	bool found = take_positions(t.positions, out);
	for (size_t i = 0; i + 1 < V8_SLOTS && !found; i++)
		found = take_positions(t.slots + i, out);
	return found && t.source != 0;
}

/* The place of an instruction in the source; -1: the table does not have it. */
static int64_t find_place(struct str table, uint16_t version, bool is_cut, uint32_t index)
{
	struct reader r = reader_over(table.p, table.len);
	int64_t at = -1, place = 0, best = -1;
	bool is_behind = false;
	while (!reader_done(&r) && !is_behind) {
		int64_t step = read_step(&r, version >= FLAGS_FROM);
		int64_t moved = read_signed(&r);
		if (r.failed || step > INT32_MAX || moved > MOVED_MOST || moved < -MOVED_MOST)
			break;
		at += step;
		place += moved;
		is_behind = at > (int64_t)index;
		if (!is_behind)
			best = place;
	}
	return !is_behind && is_cut ? -1 : best;
}

static uint32_t character_of(int64_t place)
{
	/* Counted from one: 0 becomes V8_CHARACTER_NONE. */
	return (uint32_t)(place >> PLACE_SHIFT & PLACE_MASK) - 1;
}

bool v8_source_position(const struct v8_function *f, uint32_t index, uint32_t *out)
{
	int64_t place = find_place(f->table, f->version, f->is_cut, index);
	if (place < 0 || character_of(place) == V8_CHARACTER_NONE)
		return false;
	*out = character_of(place);
	return true;
}

bool v8_newlines(struct buf *out, struct str text, unsigned character_bytes)
{
	if ((character_bytes != 1 && character_bytes != 2) || text.len > V8_PIECE_BYTES)
		return false;
	for (size_t at = 0; at + character_bytes <= text.len; at += character_bytes) {
		if (text.p[at] == '\n' && (character_bytes == 1 || text.p[at + 1] == 0))
			buf_u16(out, (uint16_t)(at / character_bytes));
	}
	return true;
}

uint32_t v8_newlines_before(struct str newlines, uint32_t character)
{
	size_t from = 0, to = newlines.len / 2; /* they ascend */
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		struct reader r = reader_over(newlines.p + 2 * middle, 2);
		if (reader_u16(&r) < character)
			from = middle + 1;
		else
			to = middle;
	}
	return (uint32_t)from;
}

bool v8_code_told(uint16_t version, struct str told, struct v8_code *out)
{
	struct v8_code_told t;
	size_t numbers = V8_INLINED_MAX * sizeof(uint64_t);
	if (told.len < sizeof(t) + numbers)
		return false;
	memcpy(&t, told.p, sizeof(t));
	if (t.functions > V8_INLINED_MAX || t.inlining_bytes > told.len - sizeof(t) - numbers)
		return false;
	size_t at = sizeof(t) + numbers;
	*out = (struct v8_code){ .version = version,
		.function = t.function,
		.functions = t.functions,
		.numbers = str_sub(told, sizeof(t), numbers),
		.inlining = str_sub(told, at, t.inlining_bytes),
		.table = str_sub(told, at + t.inlining_bytes, told.len) };
	out->is_cut = t.table_bytes > out->table.len;
	return true;
}

/* The inlined call that the place lies in; -1: none. */
static int64_t inlining_of(int64_t place)
{
	return (place >> INLINING_SHIFT & INLINING_MASK) - 1;
}

/* Where an inlined call was, and which function was inlined. False: not known. */
static bool inlined(const struct v8_code *c, int64_t inlining, int64_t *out_place, uint64_t *out)
{
	if ((uint64_t)inlining >= c->inlining.len / INLINING_BYTES)
		return false;
	uint32_t function;
	const char *at = c->inlining.p + inlining * INLINING_BYTES;
	memcpy(out_place, at, sizeof(*out_place));
	memcpy(&function, at + sizeof(*out_place), sizeof(function));
	*out = 0;
	if (function < c->functions)
		memcpy(out, c->numbers.p + function * sizeof(*out), sizeof(*out));
	*out &= FRAME_NUMBER_MASK;
	return *out_place >= 0;
}

size_t v8_code_frames(
	const struct v8_code *c, uint32_t index, struct v8_code_frame out[V8_CODE_FRAMES_MAX])
{
	size_t n = 0;
	int64_t place = find_place(c->table, c->version, c->is_cut, index);
	while (place >= 0 && n + 1 < V8_CODE_FRAMES_MAX) {
		int64_t around, inlining = inlining_of(place);
		uint64_t function;
		if (inlining < 0 || !inlined(c, inlining, &around, &function))
			break;
		out[n++] = (struct v8_code_frame){ function, character_of(place) };
		place = inlining_of(around) < inlining ? around : -1;
	}
	out[n++] = (struct v8_code_frame){ c->function,
		place < 0 ? V8_CHARACTER_NONE : character_of(place) };
	return n;
}
