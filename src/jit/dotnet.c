/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata consist of streams: texts ("#Strings"), and consecutive tables ("#~"), whose columns
 * have widths that follow from the lengths of tables and streams. A type has the number of its
 * first method, so the type of a method is the last one that begins at or before it; a nested type
 * has a row in NestedClass.
 *
 * Few rows of many megabytes are needed: they are read one by one.
 *
 * Source: ECMA-335 6th edition, II.22 and II.24.
 */
#include "jit/jit.h"

#include "base/reader.h"

#define TABLES 64
#define STREAMS_MAX 8
#define HEAD_BYTES_MAX 512
#define NESTED_MAX 8
#define TEXT_BYTES_MAX 512

enum table {
	MODULE = 0x00,
	TYPE_DEF = 0x02,
	METHOD_DEF = 0x06,
	NESTED_CLASS = 0x29,
	TABLE_LAST = NESTED_CLASS,
};

/* Columns of the tables, a letter for each. Fixed widths: b, h, w have 1, 2, 4 bytes. Indexes: s,
 * g, z are into texts, GUIDs, blobs; an uppercase letter is into one of several tables (coded[]);
 * "#xx" is into the table of this number. */
static const char *const columns[TABLE_LAST + 1] = { "hsggg", "Rss", "wssT#04#06", "#04", "hsz",
	"#06", "whhsz#08", "#08", "hhs", "#02T", "Psz", "hCz", "AYz", "Fz", "hDz", "hw#02", "w#04",
	"z", "#02#14", "#14", "hsT", "#02#17", "#17", "hsz", "h#06S", "#02MM", "s", "z", "hOs#1a",
	"w#04", "ww", "w", "whhhhwzss", "w", "www", "hhhhwzssz", "w#23", "www#23", "wsz", "wwssI",
	"wwsI", "#02#02" };

static const struct {
	char name;
	uint8_t bits, count;
	uint8_t tables[22];
} coded[] = {
	{ 'T', 2, 3, { 0x02, 0x01, 0x1b } },
	{ 'C', 2, 3, { 0x04, 0x08, 0x17 } },
	{ 'A', 5, 22,
		{ 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a,
			0x1b, 0x20, 0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b } },
	{ 'F', 1, 2, { 0x04, 0x08 } },
	{ 'D', 2, 3, { 0x02, 0x06, 0x20 } },
	{ 'P', 3, 5, { 0x02, 0x01, 0x1a, 0x06, 0x1b } },
	{ 'S', 1, 2, { 0x14, 0x17 } },
	{ 'M', 1, 2, { 0x06, 0x0a } },
	{ 'O', 1, 2, { 0x04, 0x06 } },
	{ 'I', 2, 3, { 0x26, 0x23, 0x27 } },
	{ 'Y', 3, 2, { 0x06, 0x0a } },
	{ 'R', 2, 4, { 0x00, 0x1a, 0x23, 0x01 } },
};

struct metadata {
	jit_read_fn *read;
	void *ctx;
	uint64_t texts, texts_bytes; /* offset in the metadata, and bytes */
	uint32_t rows[TABLES];
	uint64_t at[TABLE_LAST + 1];
	uint32_t width[TABLE_LAST + 1]; /* of a row */
	uint8_t text, guid, blob;       /* bytes of an index */
};

/* ---- where the tables are ---- */

static unsigned coded_width(const struct metadata *m, char name)
{
	for (size_t i = 0; i < ARRAY_COUNT(coded); i++) {
		uint32_t most = 0;
		if (coded[i].name != name)
			continue;
		for (unsigned k = 0; k < coded[i].count; k++)
			most = MAX(most, m->rows[coded[i].tables[k]]);
		return most < 1u << (16 - coded[i].bits) ? 2 : 4;
	}
	return 0;
}

static unsigned hex(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

/* Bytes of the first `count` columns. */
static uint32_t width_of(const struct metadata *m, unsigned table, unsigned count)
{
	uint32_t sum = 0;
	for (const char *c = columns[table]; *c && count; c++, count--) {
		if (*c == '#') {
			unsigned other = hex(c[1]) << 4 | hex(c[2]);
			sum += m->rows[other] < 1u << 16 ? 2 : 4;
			c += 2;
		} else if (*c == 'b' || *c == 'h' || *c == 'w') {
			sum += *c == 'b' ? 1 : *c == 'h' ? 2 : 4;
		} else if (*c == 's' || *c == 'g' || *c == 'z') {
			sum += *c == 's' ? m->text : *c == 'g' ? m->guid : m->blob;
		} else {
			sum += coded_width(m, *c);
		}
	}
	return sum;
}

static bool open_tables(struct metadata *m, uint64_t at)
{
	uint8_t head[24 + TABLES * 4] = { 0 };
	if (!m->read(m->ctx, at, head, sizeof(head)))
		return false;
	struct reader r = reader_over(head, sizeof(head));
	reader_seek(&r, 6);
	uint8_t sizes = reader_u8(&r);
	(void)reader_u8(&r);
	uint64_t there = reader_u64(&r);
	(void)reader_u64(&r);
	for (unsigned i = 0; i < TABLES; i++)
		if (there >> i & 1)
			m->rows[i] = reader_u32(&r);
	m->text = sizes & 1 ? 4 : 2;
	m->guid = sizes & 2 ? 4 : 2;
	m->blob = sizes & 4 ? 4 : 2;
	at += reader_offset(&r);
	for (unsigned i = 0; i <= TABLE_LAST; i++) {
		m->at[i] = at;
		m->width[i] = width_of(m, i, UINT32_MAX);
		at += (uint64_t)m->rows[i] * m->width[i];
	}
	return !r.failed;
}

static struct str read_stream_name(struct reader *r)
{
	const uint8_t *from = r->at;
	size_t len = 0;
	while (!r->failed && reader_u8(r))
		len++;
	(void)reader_bytes(r, 3 - len % 4);
	return r->failed ? STR("") : str_make(from, len);
}

static bool open_metadata(struct metadata *m)
{
	uint8_t head[HEAD_BYTES_MAX] = { 0 };
	uint64_t tables = 0;
	if (!m->read(m->ctx, 0, head, sizeof(head)))
		return false;
	struct reader r = reader_over(head, sizeof(head));
	reader_seek(&r, 12);
	(void)reader_bytes(&r, MIN(reader_u32(&r), (uint32_t)HEAD_BYTES_MAX));
	(void)reader_u16(&r);
	unsigned streams = MIN(reader_u16(&r), (uint16_t)STREAMS_MAX);
	for (unsigned i = 0; i < streams && !r.failed; i++) {
		uint64_t from = reader_u32(&r), len = reader_u32(&r);
		struct str name = read_stream_name(&r);
		if (str_eq(name, STR("#~")))
			tables = from;
		if (str_eq(name, STR("#Strings"))) {
			m->texts = from;
			m->texts_bytes = len;
		}
	}
	return tables && m->texts && open_tables(m, tables);
}

/* ---- rows ---- */

/* Reads column `column` (an index of 2 or 4 bytes) of row `row`, counted from 1. */
static bool cell(
	const struct metadata *m, unsigned table, uint32_t row, unsigned column, uint32_t *out)
{
	uint8_t bytes[4] = { 0 };
	uint32_t from = width_of(m, table, column), to = width_of(m, table, column + 1);
	if (row == 0 || row > m->rows[table] || to - from > sizeof(bytes) ||
		!m->read(m->ctx, m->at[table] + (uint64_t)(row - 1) * m->width[table] + from, bytes,
			to - from))
		return false;
	*out = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
	return true;
}

/* The last row whose column is not above `value`; 0: none. */
static uint32_t last_row(const struct metadata *m, unsigned table, unsigned column, uint32_t value)
{
	uint32_t low = 0, high = m->rows[table] + 1, found;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (!cell(m, table, middle, column, &found))
			return 0;
		if (found <= value)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void add_text(const struct metadata *m, uint32_t at, struct buf *out)
{
	char text[TEXT_BYTES_MAX];
	size_t len =
		MIN(m->texts_bytes - MIN((uint64_t)at, m->texts_bytes), (uint64_t)sizeof(text));
	if (!len || !m->read(m->ctx, m->texts + at, text, len))
		return;
	buf_put(out, text, str_index(str_make(text, len), 0));
}

static void add_cell(
	const struct metadata *m, unsigned table, uint32_t row, unsigned column, struct buf *out)
{
	uint32_t text;
	if (cell(m, table, row, column, &text))
		add_text(m, text, out);
}

/* Writes a type with those that contain it: "Space.Outer+Inner". */
static void add_type(const struct metadata *m, uint32_t type, struct buf *out)
{
	uint32_t chain[NESTED_MAX] = { type };
	unsigned n = 1;
	for (; n < NESTED_MAX; n++) {
		uint32_t inner, row = last_row(m, NESTED_CLASS, 0, chain[n - 1]);
		if (!row || !cell(m, NESTED_CLASS, row, 0, &inner) || inner != chain[n - 1] ||
			!cell(m, NESTED_CLASS, row, 1, &chain[n]))
			break;
	}
	size_t before = out->len;
	add_cell(m, TYPE_DEF, chain[n - 1], 2, out);
	if (out->len > before)
		buf_put(out, ".", 1);
	while (n-- > 0) {
		add_cell(m, TYPE_DEF, chain[n], 1, out);
		if (n)
			buf_put(out, "+", 1);
	}
}

bool jit_dotnet_name(jit_read_fn *read, void *ctx, uint32_t method, struct buf *out)
{
	struct metadata m = { .read = read, .ctx = ctx };
	uint32_t text;
	if (!open_metadata(&m) || !cell(&m, METHOD_DEF, method, 3, &text))
		return false;
	uint32_t type = last_row(&m, TYPE_DEF, 5, method);
	buf_put(out, "[", 1);
	add_cell(&m, MODULE, 1, 1, out);
	buf_put(out, "] ", 2);
	add_type(&m, type, out);
	buf_put(out, "::", 2);
	add_text(&m, text, out);
	return !out->failed;
}
