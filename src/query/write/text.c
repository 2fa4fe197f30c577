/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: cells are kept as texts until the widths of all are known, then written row by row with two
 * blanks between columns. Width is counted in characters, not bytes; the last column is not padded.
 *
 * A name is shortened where that loses least: `github.com/a/b/grpc.(*Server).Serve` is known by its
 * end, `std::vector<std::pair<…>>::push_back(…)` by what is not in brackets.
 */
#include "query/write/text.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

/* The column of binaries is padded to at most BINARY_PADDED_MAX characters; where lines have a
 * limit, it may be cut to BINARY_CUT_MIN. */
#define BINARY_PADDED_MAX 32
#define BINARY_CUT_MIN 16
#define NAME_CUT_MIN 20
/* In longer names brackets are not cut: each bracket that is never closed costs a search through
 * the rest of the name. */
#define BRACKETS_BYTES_MAX 4096
#define BRACKETS_KEPT_MAX 8 /* characters in brackets that are not worth cutting */

void query_text_begin(struct query_text *t, uint32_t columns, size_t max_bytes)
{
	assert(columns > 0 && columns <= QUERY_TEXT_COLUMNS_MAX);
	*t = (struct query_text){ .columns = columns };
	buf_init(&t->cells, max_bytes);
}

void query_text_deinit(struct query_text *t)
{
	buf_deinit(&t->cells);
}

void query_text_right(struct query_text *t, uint32_t column)
{
	t->right[column] = true;
}

void query_text_clean(struct buf *out, struct str s)
{
	size_t from = 0;
	for (size_t i = 0; i <= s.len; i++) {
		uint8_t c = i < s.len ? (uint8_t)s.p[i] : 0;
		/* C0, DEL, and C1 as UTF-8 (0xC2 0x80..0x9F). */
		bool c1 = c == 0xC2 && i + 1 < s.len && (uint8_t)s.p[i + 1] < 0xA0;
		if (c >= 0x20 && c != 0x7F && !c1)
			continue;
		buf_put(out, s.p + from, i - from);
		if (i < s.len)
			buf_u8(out, '?');
		i += c1;
		from = i + 1;
	}
}

static uint32_t width_of(const uint8_t *text, size_t from, size_t to)
{
	uint32_t width = 0;
	for (size_t i = from; i < to; i++)
		width += (text[i] & 0xC0) != 0x80;
	return width;
}

void query_text_cell(struct query_text *t, struct str s)
{
	size_t from = t->cells.len;
	query_text_clean(&t->cells, s);
	uint32_t width = width_of(t->cells.data, from, t->cells.len);
	t->width[t->at] = MAX(t->width[t->at], width);
	t->at = (t->at + 1) % t->columns;
	buf_u8(&t->cells, 0);
}

void query_text_binary(struct query_text *t, struct str binary, uint8_t kind)
{
	char text[32];
	if (binary.len || kind <= FRAME_KERNEL || kind == FRAME_MARKER ||
		kind >= FRAME_KIND_COUNT) {
		query_text_cell(t, binary);
		return;
	}
	snprintf(text, sizeof(text), "[%s]", frame_kind_name((enum frame_kind)kind));
	query_text_cell(t, str_of(text));
}

void query_text_value(struct query_text *t, int64_t value, struct str unit)
{
	char text[UNITS_TEXT_MAX];
	query_text_cell(t, str_of(units_format(value, unit, text)));
}

void query_text_share(struct query_text *t, int64_t part, int64_t whole)
{
	char text[32];
	double share = whole ? 100.0 * (double)part / (double)whole : 0;
	snprintf(text, sizeof(text), "%.1f%%", share);
	query_text_cell(t, str_of(text));
}

static void pad(struct buf *out, uint32_t count)
{
	while (count-- > 0)
		buf_u8(out, ' ');
}

/* ---- names that are too long ---- */

static uint32_t width_of_str(struct str s)
{
	return width_of((const uint8_t *)s.p, 0, s.len);
}

/* Bytes of the first `count` characters. */
static size_t bytes_of(struct str s, uint32_t count)
{
	size_t at = 0;
	for (uint32_t seen = 0; at < s.len; at++)
		if (((uint8_t)s.p[at] & 0xC0) != 0x80 && seen++ == count)
			break;
	return at;
}

/* Blanks and box-drawing characters (U+2500 to U+257F). */
static size_t lead_of(struct str s)
{
	for (size_t at = 0;;) {
		if (at < s.len && s.p[at] == ' ')
			at++;
		else if (at + 3 <= s.len && (uint8_t)s.p[at] == 0xE2 &&
			 ((uint8_t)s.p[at + 1] & 0xFE) == 0x94)
			at += 3;
		else
			return at;
	}
}

/* Where the last folder ends; slashes in brackets do not count. */
static size_t folders_of(struct str s)
{
	size_t end = 0;
	for (size_t i = 0; i < s.len && !strchr("(<[{ ", s.p[i]); i++)
		if (s.p[i] == '/')
			end = i;
	return end;
}

/* The bracket that closes the one at `from`; the length of `s` when none does. */
static size_t close_of(struct str s, size_t from)
{
	uint32_t depth = 0;
	for (size_t i = from; i < s.len; i++) {
		if (strchr("(<[{", s.p[i]))
			depth++;
		else if (strchr(")>]}", s.p[i]) && s.p[i - 1] != '-' && --depth == 0)
			return i;
	}
	return s.len;
}

static void without_brackets(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++) {
		buf_u8(out, (uint8_t)s.p[i]);
		if (!strchr("(<[{", s.p[i]))
			continue;
		size_t end = close_of(s, i);
		if (end == s.len || end - i - 1 <= BRACKETS_KEPT_MAX)
			continue;
		buf_cstr(out, "…");
		i = end - 1;
	}
}

void query_text_shorten(struct str name, uint32_t width, struct buf *out)
{
	size_t lead = lead_of(name);
	struct str s = str_sub(name, lead, name.len);
	uint32_t used = width_of_str(str_sub(name, 0, lead));
	uint32_t least = used ? NAME_CUT_MIN : 1,
		 room = width > used + least ? width - used : least;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, out->max);
	buf_put(out, name.p, lead);
	size_t folders = folders_of(s);
	bool too_long = width_of_str(s) > room;
	if (too_long && folders > 0) {
		buf_cstr(&text, "…");
		buf_str(&text, str_sub(s, folders, s.len));
		s = buf_view(&text);
		too_long = width_of_str(s) > room;
	}
	CLEANUP(buf_deinit) struct buf bare;
	buf_init(&bare, out->max);
	if (too_long && s.len <= BRACKETS_BYTES_MAX) {
		without_brackets(s, &bare);
		s = buf_view(&bare);
		too_long = width_of_str(s) > room;
	}
	if (!too_long) {
		buf_str(out, s);
		return;
	}
	uint32_t head = room / 3, all = width_of_str(s);
	buf_str(out, str_sub(s, 0, bytes_of(s, head)));
	buf_cstr(out, "…");
	buf_str(out, str_sub(s, bytes_of(s, all - (room - head - 1)), s.len));
}

void query_text_fit(struct query_text *t, uint32_t binary, uint32_t width)
{
	t->binary = binary;
	t->fit = width;
}

static void narrow(uint32_t *width, uint32_t least, uint32_t *over)
{
	uint32_t cut = *width > least ? MIN(*width - least, *over) : 0;
	*width -= cut;
	*over -= cut;
}

static void settle_widths(struct query_text *t)
{
	if (!t->fit) {
		if (t->binary)
			t->width[t->binary] = MIN(t->width[t->binary], (uint32_t)BINARY_PADDED_MAX);
		return;
	}
	uint32_t all = 2 * (t->columns - 1);
	for (uint32_t i = 0; i < t->columns; i++)
		all += t->width[i];
	uint32_t over = all > t->fit ? all - t->fit : 0;
	if (t->binary)
		narrow(&t->width[t->binary], BINARY_PADDED_MAX, &over);
	narrow(&t->width[t->columns - 1], 2 * NAME_CUT_MIN, &over);
	if (t->binary)
		narrow(&t->width[t->binary], BINARY_CUT_MIN, &over);
	narrow(&t->width[t->columns - 1], NAME_CUT_MIN, &over);
}

/* ---- */

void query_text_end(struct query_text *t, struct buf *out)
{
	if (t->cells.failed) {
		out->failed = true;
		out->no_memory = t->cells.no_memory;
		return;
	}
	settle_widths(t);
	uint32_t column = 0;
	for (size_t at = 0; at < t->cells.len;) {
		struct str cell = str_of((const char *)t->cells.data + at);
		bool last = column + 1 == t->columns;
		bool cut = t->fit && (last || column == t->binary);
		uint32_t width = width_of_str(cell), room = t->width[column];
		uint32_t blanks = width < room ? room - width : 0;
		if (t->right[column])
			pad(out, blanks);
		if (cut && width > room)
			query_text_shorten(cell, room, out);
		else
			buf_str(out, cell);
		if (!t->right[column] && !last)
			pad(out, blanks);
		buf_cstr(out, last ? "\n" : "  ");
		column = last ? 0 : column + 1;
		at += cell.len + 1;
	}
}

void query_text_time(int64_t ns, char out[32])
{
	time_t seconds = (time_t)(ns / NS_PER_SEC - (ns % NS_PER_SEC < 0));
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(out, 32, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
		snprintf(out, 32, "?");
}
