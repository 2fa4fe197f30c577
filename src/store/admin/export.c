/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part is written into a directory of its own (never parts/, where the next start would take it
 * for the store's), read back, and removed.
 */
#include "store/merge/merge.h"

#include "base/reader.h"

#include <stdlib.h>

#define TRAILER_BYTES 32
#define PART_BYTES_MIN 64
#define MEMTABLE_ROW_BYTES 8 /* about what a memtable's row takes in a part */
/* Every known encoding takes at least one byte for this many rows: if there are more rows than this
 * times the bytes that `out` may have, the export is refused before any sorting. */
#define ROWS_PER_BYTE_MAX 64

struct exporting {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct rewrite w;
	uint64_t rows;
};

static void exporting_deinit(struct exporting *x)
{
	rewrite_deinit(&x->w);
	view_picks_free(x->v, x->picks);
	view_release(x->v);
}

/* Estimates the size of the answer, so that a far too large one is refused before it is read: from
 * each part's bytes, the share of its wanted rows and the share of its time range, as if rows were
 * spread evenly. */
static enum status estimate_bytes(struct exporting *x, double *out, struct err *e)
{
	double bytes = 0;
	for (size_t i = 0; i < x->v->source_count; i++) {
		struct source *src = &x->v->sources[i];
		double all = 0, wanted = 0, span = (double)src->last_ns - (double)src->first_ns + 1;
		if (!x->picks[i].wanted)
			continue;
		enum status s = source_load(x->v, src, PART_LOAD_LABELS, &x->budget, e);
		if (s != OK)
			return s;
		for (uint32_t k = 0; k < x->picks[i].series_count; k++) {
			double rows = (double)tab_series_rows(&src->tabs.series[k]);
			all += rows;
			wanted += x->picks[i].series[k] ? rows : 0;
		}
		source_rest(x->v, src);
		if (wanted <= 0)
			continue;
		double size = src->part ? (double)part_file_bytes(src->part)
					: (double)src->mem.row_count * MEMTABLE_ROW_BYTES;
		double from = MAX((double)x->q->from_ns, (double)src->first_ns);
		double to = MIN((double)x->q->to_ns, (double)src->last_ns + 1);
		bytes += size * wanted / all * MAX(to - from, 0) / span;
	}
	*out = bytes;
	return OK;
}

static enum status choose_sources(struct exporting *x, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < x->v->source_count; i++)
		n += x->picks[i].wanted != 0;
	enum status s = rewrite_init(&x->w, x->v->store, n, e);
	x->w.cancel = x->q->cancel;
	x->w.cancel_ctx = x->q->cancel_ctx;
	n = 0;
	for (size_t i = 0; i < x->v->source_count && s == OK; i++) {
		struct source *src = &x->v->sources[i];
		if (!x->picks[i].wanted)
			continue;
		s = source_load(x->v, src, PART_LOAD_ALL, &x->budget, e);
		x->w.sources[n].from = src;
		x->w.sources[n++].rule = (struct merge_filter){
			.series = x->picks[i].series,
			.sets = x->picks[i].sets,
			.from_ns = x->q->from_ns,
			.last_ns = x->q->to_ns == INT64_MAX ? INT64_MAX : x->q->to_ns - 1,
			.take_matching = true,
		};
	}
	return s;
}

static void set_meta(struct exporting *x)
{
	struct part_meta *m = &x->w.meta;
	m->store_id = x->v->store->id;
	m->order = PART_ORDER_STACK;
	for (size_t i = 0; i < x->w.count; i++) {
		const struct part *p = x->w.sources[i].from->part;
		int64_t resolution = p ? part_meta(p)->resolution_ns : 0;
		m->resolution_ns = i == 0 || m->resolution_ns == resolution ? resolution : 0;
		x->rows += x->w.sources[i].rows;
	}
}

static void place_cleanup(struct place **p)
{
	place_close(*p);
}

static enum status read_whole(struct place *place, uint64_t id, struct buf *out, struct err *e)
{
	struct object *o;
	enum status st = place_open(place, id, &o, e);
	if (st != OK)
		return st;
	size_t before = out->len;
	void *to = o->bytes <= SIZE_MAX ? buf_reserve(out, (size_t)o->bytes) : NULL;
	st = to ? object_read(o, 0, to, (size_t)o->bytes, e)
		: err_set(e, buf_status(out), "%s", o->name);
	if (st == OK)
		out->len = before + (size_t)o->bytes;
	object_close(o);
	return st;
}

static enum status write_and_read(struct exporting *x, struct buf *out, struct err *e)
{
	struct store *s = x->v->store;
	char dir[STORE_PATH_MAX];
	CLEANUP(place_cleanup) struct place *place = NULL;
	uint64_t id = store_next_part(s);
	enum status st = store_path(dir, e, "%s/export", s->path);
	if (st == OK)
		st = store_io_make_dirs(dir, e);
	if (st == OK)
		st = place_open_directory(dir, &place, e);
	if (st == OK)
		st = rewrite_write(&x->w, place, id, e);
	if (st != OK)
		return st;
	st = read_whole(place, id, out, e);
	enum status removed = place_remove(place, id, st == OK ? e : NULL);
	return st == OK ? removed : st;
}

static enum status export_rows(
	struct store_view *v, const struct samples_query *q, struct buf *out, struct err *e)
{
	CLEANUP(exporting_deinit)
	struct exporting x = { .v = v, .q = q, .budget = query_budget(v, q) };
	x.picks = view_picks_new(v);
	enum status s = x.picks ? OK : err_set(e, E_NOMEM, "an export");
	if (s == OK)
		s = view_pick(v, q, NULL, &x.budget, x.picks, e);
	/* Half of the room, so that the export fits even if the estimate is far off. */
	double estimate = 0;
	if (s == OK)
		s = estimate_bytes(&x, &estimate, e);
	if (s == OK && estimate > (double)(out->max - out->len) / 2)
		s = err_set(e, E_LIMIT, "about %.0f MiB are more than one part of an export takes",
			estimate / (1 << 20));
	if (s == OK)
		s = choose_sources(&x, e);
	if (s == OK)
		s = rewrite_look(&x.w, e);
	if (s == OK)
		set_meta(&x);
	if (s == OK && x.rows / ROWS_PER_BYTE_MAX > out->max - out->len)
		s = err_set(e, E_LIMIT, "%llu rows are more than one part of an export takes",
			(unsigned long long)x.rows);
	if (s == OK && x.rows)
		s = write_and_read(&x, out, e);
	if (s == E_CORRUPT)
		v->damaged = x.w.damaged;
	return s;
}

enum status store_export(
	struct store_view *v, const struct samples_query *q, struct buf *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	size_t before = out->len;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do {
		out->len = before;
		s = export_rows(v, q, out, e);
	} while (view_heal(v, s, e));
	if (s != OK)
		out->len = before;
	return s;
}

enum status store_export_split(struct str bytes, struct str *rest, struct str *part, struct err *e)
{
	if (bytes.len < PART_BYTES_MIN)
		return err_set(e, E_CORRUPT, "%zu bytes at +0 are no part", bytes.len);
	struct reader r = reader_over(bytes.p + bytes.len - TRAILER_BYTES, TRAILER_BYTES);
	reader_skip(&r, 16);
	uint64_t length = reader_u64(&r);
	struct str end = reader_str(&r, 8);
	if (!str_eq(end, STR("FIRNPEND")) || length < PART_BYTES_MIN || length > bytes.len)
		return err_set(e, E_CORRUPT, "no end of a part at +%zu: cut short?",
			bytes.len - TRAILER_BYTES);
	*rest = str_sub(bytes, 0, bytes.len - length);
	*part = str_sub(bytes, bytes.len - length, length);
	return OK;
}
