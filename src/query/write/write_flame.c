/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: JSON is in flame_json.c. For folded stacks the path is one text that grows and shrinks with
 * the walk. The table for a terminal is the tree down to nodes of half a per cent: lines are drawn
 * where it branches, and an only child stands right below its parent:
 *
 *     main
 *      ├ parse
 *      │  read
 *      └ write
 */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include <stdio.h>

#include "base/units.h"

#define TEXT_SHARE_MIN 0.005
#define TEXT_ROWS_MAX 200
#define TEXT_INDENT_MAX 60 /* characters; deeper nodes are not indented further */
#define PATH_BYTES_MAX ((size_t)4 << 20)

/* ---- folded ---- */

/* Semicolons separate frames, and line ends separate stacks: neither may be in a name. Control
 * characters are replaced too, as they would act on a terminal. */
static void folded_name(struct buf *path, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = (uint8_t)name.p[i];
		buf_u8(path, c == ';' ? ':' : c < 0x20 || c == 0x7F ? ' ' : c);
	}
}

static enum status write_folded(
	const struct query_flame *f, struct arena *a, struct buf *b, struct err *e)
{
	CLEANUP(buf_deinit) struct buf path;
	buf_init(&path, PATH_BYTES_MAX);
	uint32_t *ends = ARENA_ARRAY(a, uint32_t, f->count); /* of the node's path */
	if (!ends)
		return err_set(e, arena_status(a), "folded stacks of %u nodes", f->count);
	if (f->unit.len) { /* folded stacks have no unit; `firn open` reads it from here (stacktext)
			    */
		buf_cstr(b, "# unit: ");
		folded_name(b, f->unit);
		buf_u8(b, '\n');
	}
	for (uint32_t i = 0; i < f->count && !b->failed; i++) {
		if (i > 0) {
			path.len = ends[f->parent[i]];
			if (path.len > 0)
				buf_u8(&path, ';');
			folded_name(&path, f->strings[f->name[i]]);
		}
		if (path.failed)
			return err_set(e, E_LIMIT, "a stack's names are longer than %zu MiB",
				PATH_BYTES_MAX >> 20);
		ends[i] = (uint32_t)path.len;
		if (f->self[i] == 0)
			continue;
		buf_str(b, i > 0 ? buf_view(&path) : STR("[no stack]"));
		buf_u8(b, ' ');
		query_json_i64(b, f->self[i]);
		buf_u8(b, '\n');
	}
	if (f->trimmed != 0) {
		buf_cstr(b, "[trimmed] ");
		query_json_i64(b, f->trimmed);
		buf_u8(b, '\n');
	}
	return OK;
}

/* ---- text ---- */

static bool is_shown(const struct query_flame *f, uint32_t i)
{
	double share = (double)query_abs(f->total[i]) / (double)query_abs(f->total[0]);
	return f->total[0] != 0 && share >= TEXT_SHARE_MIN;
}

/* The indentation in front of the names of a node and of its only child. */
struct indent {
	struct str own, below;
	uint32_t width; /* of `below` */
};

struct text_tree {
	const struct query_flame *f;
	uint32_t *children; /* that are shown */
	uint32_t *last;     /* of them */
	struct indent *indents;
	uint32_t shown;
};

static struct str joined(struct arena *a, struct str x, const char *y)
{
	const char *text = arena_printf(a, "%.*s%s", STR_ARG(x), y);
	return text ? str_of(text) : x;
}

static void set_indent(struct text_tree *t, uint32_t i, struct arena *a)
{
	uint32_t parent = t->f->parent[i];
	const struct indent *above = &t->indents[parent];
	struct indent *own = &t->indents[i];
	bool last = t->last[parent] == i;
	*own = (struct indent){ above->below, above->below, above->width };
	if (parent == 0) {
		*own = (struct indent){ STR(""), STR(" "), 1 };
	} else if (t->children[parent] > 1) {
		own->own = joined(a, above->below, last ? "└ " : "├ ");
		if (above->width < TEXT_INDENT_MAX) {
			own->below = joined(a, above->below, last ? "   " : "│  ");
			own->width += 3;
		}
	}
}

static enum status find_indents(struct text_tree *t, struct arena *a, struct err *e)
{
	const struct query_flame *f = t->f;
	t->children = ARENA_ARRAY(a, uint32_t, f->count);
	t->last = ARENA_ARRAY(a, uint32_t, f->count);
	t->indents = ARENA_ARRAY(a, struct indent, f->count);
	if (!t->children || !t->last || !t->indents)
		return err_set(e, arena_status(a), "flame graph of %u nodes", f->count);
	for (uint32_t i = 1; i < f->count; i++)
		if (is_shown(f, i)) {
			t->children[f->parent[i]]++;
			t->last[f->parent[i]] = i;
			t->shown++;
		}
	for (uint32_t i = 1; i < f->count; i++)
		if (is_shown(f, i))
			set_indent(t, i, a);
	return OK;
}

static void text_row(
	struct query_text *t, const struct text_tree *tree, uint32_t i, struct buf *name)
{
	const struct query_flame *f = tree->f;
	buf_clear(name);
	buf_str(name, tree->indents[i].own);
	buf_str(name, f->strings[f->name[i]]);
	query_text_share(t, f->total[i], f->total[0]);
	query_text_value(t, f->total[i], f->unit);
	query_text_value(t, f->self[i], f->unit);
	query_text_binary(t, f->strings[f->binary[i]], f->kind[i]);
	query_text_cell(t, buf_view(name));
}

static void text_rows(const struct text_tree *tree, uint32_t width, struct buf *b)
{
	const struct query_flame *f = tree->f;
	CLEANUP(query_text_deinit) struct query_text t;
	CLEANUP(buf_deinit) struct buf name;
	uint32_t rows = 0;
	buf_init(&name, b->max);
	query_text_begin(&t, 5, b->max);
	for (uint32_t i = 0; i < 3; i++)
		query_text_right(&t, i);
	query_text_fit(&t, 3, width);
	static const char *const heads[] = { "SHARE", "TOTAL", "SELF", "PLACE", "FUNCTION" };
	for (size_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	for (uint32_t i = 1; i < f->count && rows < TEXT_ROWS_MAX; i++)
		if (is_shown(f, i)) {
			text_row(&t, tree, i, &name);
			rows++;
		}
	buf_cstr(b, "\n");
	query_text_end(&t, b);
	if (rows < tree->shown)
		buf_printf(b,
			"\n%u more have half a per cent of all, or more: --format html, or a "
			"narrower selector, shows them\n",
			tree->shown - rows);
}

static enum status write_text(
	const struct query_flame *f, uint32_t width, struct arena *a, struct buf *b, struct err *e)
{
	struct text_tree tree = { .f = f };
	enum status s = find_indents(&tree, a, e);
	if (s != OK)
		return s;
	char total[UNITS_TEXT_MAX];
	buf_cstr(b, units_format(f->total[0], f->unit, total));
	if (f->taken >= 0)
		buf_printf(b, " in %lld sample%s", (long long)f->taken, f->taken == 1 ? "" : "s");
	if (f->pending)
		buf_printf(b, "; symbols of %u addresses are still being read", f->pending);
	buf_cstr(b, "\n");
	if (tree.shown > 0)
		text_rows(&tree, width, b);
	return OK;
}

static enum status write_as(const struct query_flame *f, const struct query_request *r,
	enum query_format format, struct arena *a, struct buf *out, struct err *e)
{
	switch (format) {
	case QUERY_JSON:
		query_flame_json(f, r->depth, out);
		return OK;
	case QUERY_TEXT:
		return write_text(f, r->width, a, out, e);
	case QUERY_FOLDED:
		return write_folded(f, a, out, e);
	case QUERY_HTML:
		return query_export_html(f, out, e);
	case QUERY_SPEEDSCOPE:
		return query_export_speedscope(f, STR("firn"), a, out, e);
	case QUERY_FIREFOX:
		return query_export_firefox(f, STR("firn"), a, out, e);
	}
	UNREACHABLE();
}

enum status query_write_flame(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	struct query_flame f;
	if (r->chart && format != QUERY_JSON)
		return err_set(e, E_INVALID, "format: a flame chart is answered as json only");
	enum status s = query_flame(q, r, &a, &f, e);
	if (s == OK && r->required && (f.sample_count == 0 || (r->match.len && f.total[0] == 0)))
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	s = write_as(&f, r, format, &a, out, e);
	return s == OK ? query_written(out, e) : s;
}
