/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One function for each kind of file, which describes it in lines of text; look.c finds the files.
 */
#include "store/admin/look.h"

#include <stdlib.h>

#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define SERIES_SHOWN_MAX 100u

static void part_cleanup(struct part **p)
{
	part_unref(*p);
}

static void inspect_columns(const struct part *p, struct buf *out)
{
	static const char *const encodings[] = { "const", "planes", "delta", "runs", "dict",
		"scale", "bytes", "ticks" };
	size_t n;
	const struct part_block *b = part_blocks(p, &n);
	for (unsigned id = ROW_SERIES; id < ROW_COLUMNS; id++) {
		uint64_t bytes = 0, uses[COLUMN_ENCODINGS] = { 0 };
		for (size_t i = 0; i < n; i++) {
			bytes += column_stored_len(&b[i].columns[id]);
			if (b[i].columns[id].encoding < COLUMN_ENCODINGS)
				uses[b[i].columns[id].encoding]++;
		}
		buf_printf(out, "  column %-7s %12llu bytes, blocks:", part_column_name(id),
			(unsigned long long)bytes);
		for (unsigned k = 0; k < COLUMN_ENCODINGS; k++)
			if (uses[k])
				buf_printf(
					out, " %s %llu", encodings[k], (unsigned long long)uses[k]);
		buf_u8(out, '\n');
	}
}

/* Writes a sender's text for a user's terminal: without quotes and control characters. */
static void show_text(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		uint8_t c = (uint8_t)s.p[i];
		bool c1 = c == 0xC2 && i + 1 < s.len && ((uint8_t)s.p[i + 1] & 0xE0) == 0x80;
		if (c < 0x20 || c == 0x7F || c == '"' || c == '\\' || c1)
			buf_printf(out, "\\x%02x", c);
		else
			buf_u8(out, c);
	}
}

static void show_series(const struct tabs *t, struct buf *out)
{
	for (uint32_t i = 0; i < MIN(t->series_count, SERIES_SHOWN_MAX); i++) {
		const struct tab_series *s = &t->series[i];
		buf_cstr(out, "  series ");
		for (int k = 0; k < TABLES_TYPE_PARTS; k++) {
			buf_cstr(out, k ? ":" : "");
			show_text(out, t->label_strings[s->type[k]]);
		}
		buf_cstr(out, s->delta ? ":delta{" : "{");
		for (uint32_t k = 0; k < s->label_count; k++) {
			const struct profile_label *x = &t->labels[s->label_first + k];
			buf_cstr(out, k ? "," : "");
			show_text(out, t->label_strings[x->name]);
			buf_cstr(out, "=\"");
			show_text(out, t->label_strings[x->value]);
			buf_cstr(out, "\"");
		}
		buf_cstr(out, "} tenant \"");
		show_text(out, t->label_strings[s->tenant]);
		buf_printf(out, "\" rows %llu\n", (unsigned long long)s->rows);
	}
	if (t->series_count > SERIES_SHOWN_MAX)
		buf_printf(out, "  and %u more series\n", t->series_count - SERIES_SHOWN_MAX);
}

static enum status show_part(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(part_cleanup) struct part *p = NULL;
	enum status s = part_open(path, &p, e);
	struct tabs t;
	if (s == OK)
		s = part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, e);
	if (s != OK)
		return s;
	const struct part_meta *m = part_meta(p);
	size_t n;
	const struct part_section_entry *x = part_sections(p, &n);
	buf_printf(out, "part %s\n", path);
	buf_printf(out, "  level %u, order %s, resolution %lld ns\n", m->level,
		m->order == PART_ORDER_STACK ? "series stack time" : "series time stack",
		(long long)m->resolution_ns);
	buf_printf(out, "  %llu rows of %llu samples, %lld to %lld ns\n",
		(unsigned long long)m->rows, (unsigned long long)m->samples, (long long)m->first_ns,
		(long long)m->last_ns);
	buf_printf(out, "  %u series, %u sets, %u functions, %u locations, %u trie nodes\n",
		t.series_count, t.set_count, t.function_count, t.location_count, t.node_count);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "  section %-15s %12llu bytes at +%llu\n",
			part_section_name(x[i].kind), (unsigned long long)x[i].length,
			(unsigned long long)x[i].offset);
	inspect_columns(p, out);
	show_series(&t, out);
	part_unpin(p, PART_LOAD_ALL);
	return OK;
}

static void inspect_part(struct looking *l, const char *path)
{
	struct err e = { 0 };
	enum status s = show_part(path, l->out, &e);
	if (s != OK)
		buf_printf(l->out, "part %s\n  %s\n", path, err_text(&e, s));
	look_done(l, s, &e);
}

/* ---- logs ---- */

static void show_records(struct log_cursor *c, struct buf *out)
{
	struct log_record rec;
	for (enum log_event ev = LOG_EVENT_RECORD; ev != LOG_EVENT_END;) {
		ev = log_cursor_next(c, &rec);
		if (ev == LOG_EVENT_RECORD)
			buf_printf(out,
				"  record %llu at +%zu: kind %u, arrived %lld ns, %zu bytes of "
				"%u\n",
				(unsigned long long)rec.sequence, c->offset, rec.kind,
				(long long)rec.arrived_ns, rec.payload.len, rec.raw_len);
		else if (ev != LOG_EVENT_END)
			buf_printf(out, "  %s at +%zu, %zu bytes\n",
				ev == LOG_EVENT_TORN ? "a torn write" : "damage", c->offset,
				c->length);
	}
}

static void inspect_log(struct looking *l, const char *path)
{
	CLEANUP(buf_deinit) struct buf b;
	struct log_cursor c;
	struct err e = { 0 };
	buf_init(&b, LOG_SEGMENT_BYTES_MAX * 2);
	enum status s = os_read_file(path, &b, &e);
	if (s == OK)
		s = log_cursor_open(buf_view(&b), path, &c, &e);
	if (s == OK) {
		buf_printf(l->out, "log %s\n  segment %016llx, %llu bytes\n", path,
			(unsigned long long)c.id, (unsigned long long)c.size);
		show_records(&c, l->out);
	} else {
		buf_printf(l->out, "log %s\n  %s\n", path, err_text(&e, s));
	}
	look_done(l, s, &e);
}

/* ---- the manifest ---- */

static void inspect_manifest(struct looking *l, const char *path)
{
	CLEANUP(manifest_deinit) struct manifest m = { 0 };
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	buf_init(&b, MANIFEST_BYTES_MAX);
	enum status s = os_read_file(path, &b, &e);
	if (s == OK)
		s = manifest_parse(buf_view(&b), &m, &e);
	if (s == OK)
		buf_printf(l->out,
			"manifest %s\n  store %016llx%016llx, next part %016llx, next segment "
			"%016llx, next record %llu\n",
			path, (unsigned long long)m.store_id.hi, (unsigned long long)m.store_id.lo,
			(unsigned long long)m.next_part, (unsigned long long)m.next_segment,
			(unsigned long long)m.next_sequence);
	else
		buf_printf(l->out, "manifest %s\n  %s\n", path, err_text(&e, s));
	for (size_t i = 0; s == OK && i < m.parts.len; i++)
		buf_printf(l->out,
			"  part %016llx: level %u, %llu rows, %llu bytes, %lld to %lld ns\n",
			(unsigned long long)m.parts.v[i].id, m.parts.v[i].level,
			(unsigned long long)m.parts.v[i].rows,
			(unsigned long long)m.parts.v[i].bytes, (long long)m.parts.v[i].first_ns,
			(long long)m.parts.v[i].last_ns);
	look_done(l, s, &e);
}

/* Damage is shown where it is, and is no failure of looking. */
enum status store_inspect(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(looking_deinit)
	struct looking l = {
		.part = inspect_part, .log = inspect_log, .manifest = inspect_manifest, .out = out
	};
	look_at(&l, path);
	enum status s = look_status(&l, e);
	return s == E_CORRUPT && l.sound ? OK : s;
}
