/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: cells are kept as texts until the widths of all are known, then written row by row with two
 * blanks between columns. Width is counted in characters, not bytes; the last column is not padded.
 */
#include "query/internal.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"

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

void query_text_end(struct query_text *t, struct buf *out)
{
	if (t->cells.failed) {
		out->failed = true;
		out->no_memory = t->cells.no_memory;
		return;
	}
	uint32_t column = 0;
	for (size_t at = 0; at < t->cells.len;) {
		size_t len = strlen((const char *)t->cells.data + at);
		uint32_t blanks = t->width[column] - width_of(t->cells.data, at, at + len);
		bool last = column + 1 == t->columns;
		if (t->right[column])
			pad(out, blanks);
		buf_put(out, t->cells.data + at, len);
		if (!t->right[column] && !last)
			pad(out, blanks);
		buf_cstr(out, last ? "\n" : "  ");
		column = last ? 0 : column + 1;
		at += len + 1;
	}
}

void query_text_time(int64_t ns, char out[32])
{
	time_t seconds = (time_t)(ns / NS_PER_SEC - (ns % NS_PER_SEC < 0));
	struct tm tm;
	if (!gmtime_r(&seconds, &tm) || strftime(out, 32, "%Y-%m-%d %H:%M:%SZ", &tm) == 0)
		snprintf(out, 32, "?");
}
