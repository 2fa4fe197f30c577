/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three formats of the table of lines:
 *   to 3.9   pairs (u8 bytes of code, s8 lines): the line changes after so many bytes;
 *   3.10     pairs (u8 bytes of code, s8 lines): the line changes first, then so many bytes have
 * it; -128: they have no line; 3.11 on  entries of a first byte 0x80 | form << 3 | (units - 1), and
 * what the form adds: so many units of code have a position, of which only the line is read. If a
 * table was cut, the part that is left is used.
 */
#include "runtimes/runtimes.h"

#include "base/reader.h"

#define NO_LINE_3_10 (-128)

/* Forms of an entry from 3.11 on; below SHORT_END: columns of the same line. */
enum form {
	FORM_SHORT_END = 10,
	FORM_ONE_LINE_0 = 10,
	FORM_ONE_LINE_2 = 12,
	FORM_NO_COLUMNS = 13,
	FORM_LONG = 14,
	FORM_NONE = 15,
};

/* The last line goes on to the code's end, unless the table is cut. */
static bool line_to_3_9(int64_t line, struct reader *r, uint64_t wanted, bool is_cut, int64_t *out)
{
	uint64_t at = 0;
	while (reader_left(r) >= 2) {
		at += reader_u8(r);
		if (at > wanted) {
			*out = line;
			return true;
		}
		line += reader_i8(r);
	}
	*out = line;
	return !is_cut;
}

static bool line_of_3_10(int64_t line, struct reader *r, uint64_t wanted, int64_t *out)
{
	uint64_t end = 0;
	while (reader_left(r) >= 2) {
		end += reader_u8(r);
		int8_t change = reader_i8(r);
		if (change != NO_LINE_3_10)
			line += change;
		if (wanted >= end)
			continue;
		*out = line;
		return change != NO_LINE_3_10;
	}
	return false;
}

/* Six bits a byte, the lowest first; bit 6: more follows. */
static uint64_t read_varint(struct reader *r)
{
	uint64_t value = 0;
	for (unsigned shift = 0; shift < 36; shift += 6) {
		uint8_t byte = reader_u8(r);
		value |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			return value;
	}
	r->failed = true;
	return 0;
}

static int64_t read_svarint(struct reader *r)
{
	uint64_t value = read_varint(r);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* What the form adds to the line; leaves the reader at the next entry. */
static int64_t read_form(struct reader *r, unsigned form)
{
	int64_t change = 0;
	if (form < FORM_SHORT_END) {
		reader_skip(r, 1);
	} else if (form <= FORM_ONE_LINE_2) {
		change = form - FORM_ONE_LINE_0;
		reader_skip(r, 2);
	} else if (form == FORM_NO_COLUMNS) {
		change = read_svarint(r);
	} else if (form == FORM_LONG) {
		change = read_svarint(r);
		for (int i = 0; i < 3; i++)
			(void)read_varint(r);
	}
	return change;
}

static bool line_from_3_11(int64_t line, struct reader *r, uint64_t wanted, int64_t *out)
{
	uint64_t end = 0;
	while (!reader_done(r)) {
		uint8_t first = reader_u8(r);
		unsigned form = first >> 3 & 15;
		end += (first & 7u) + 1;
		line += read_form(r, form);
		if (r->failed || !(first & 0x80))
			return false;
		if (wanted >= end)
			continue;
		*out = line;
		return form != FORM_NONE;
	}
	return false;
}

bool cpython_line(
	uint16_t version, uint32_t first_line, struct str table, uint32_t index, uint32_t *out_line)
{
	struct reader r = reader_over(table.p, table.len);
	int64_t line = 0;
	bool found;
	if (version >= (3 << 8 | 11))
		found = line_from_3_11(first_line, &r, index, &line);
	else if (version == (3 << 8 | 10))
		found = line_of_3_10(first_line, &r, (uint64_t)index * 2, &line);
	else
		found = line_to_3_9(first_line, &r, (uint64_t)index * 2,
			table.len >= CPYTHON_LINES_BYTES_MAX, &line);
	if (!found || line <= 0 || line > UINT32_MAX)
		return false;
	*out_line = (uint32_t)line;
	return true;
}
