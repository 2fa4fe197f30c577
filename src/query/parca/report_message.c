/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca's older reports, as protobuf: Top, Callgraph and Flamegraph (proto/parca/query/v1alpha1,
 * metastore/v1alpha1). Ids are numbers, since they only connect the parts of one message.
 *
 * The Flamegraph nests as deep as the stacks: the lengths of all nodes are computed from the last
 * to the first, then everything is written in order, so that nothing is moved and nothing recurses.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"
#include "query/write/write.h"

#include "pb/pb.h"

#include <inttypes.h>
#include <stdio.h>

/* Functions below this share of the total are left out of the call graph, if that does not split
 * it. */
#define CALLGRAPH_SHARE 0.005

struct message {
	const struct query_tree *t;
	const struct query_report_request *r;
	struct arena *a;
	struct buf *out;
};

static const struct profile *tables_of(const struct message *m)
{
	return &m->t->stacks.tables;
}

/* ---- metastore's messages ---- */

static void put_id(struct buf *out, uint32_t field, const char *kind, uint64_t number)
{
	char id[32];
	int n = snprintf(id, sizeof(id), "%s%" PRIu64, kind, number);
	pb_put_str(out, field, str_make(id, (size_t)n));
}

/* Location { id, address, mapping_id } */
static void put_location(const struct message *m, uint32_t field, uint32_t location)
{
	const struct profile_location *l = &tables_of(m)->locations.v[location];
	size_t begun = pb_begin(m->out, field);
	put_id(m->out, 1, "l", location);
	pb_put_u64(m->out, 2, l->address);
	if (l->mapping)
		put_id(m->out, 4, "m", l->mapping);
	pb_end(m->out, begun);
}

/* Mapping { id, start, limit, offset, file, build_id, has_functions } */
static void put_mapping(const struct message *m, uint32_t field, uint32_t mapping)
{
	const struct profile *p = tables_of(m);
	const struct profile_mapping *at = &p->mappings.v[mapping];
	if (mapping == 0)
		return;
	size_t begun = pb_begin(m->out, field);
	put_id(m->out, 1, "m", mapping);
	pb_put_u64(m->out, 2, at->start);
	pb_put_u64(m->out, 3, at->limit);
	pb_put_u64(m->out, 4, at->offset);
	pb_put_str(m->out, 5, profile_str(p, at->filename));
	pb_put_str(m->out, 6, profile_str(p, at->build_id));
	pb_put_bool(m->out, 7, true);
	pb_end(m->out, begun);
}

/* Function { id, start_line, name, system_name, filename } */
static void put_function(const struct message *m, uint32_t field, const struct query_line *line)
{
	struct query_line_texts t = query_line_texts(tables_of(m), line);
	if (!t.has_function)
		return;
	size_t begun = pb_begin(m->out, field);
	put_id(m->out, 1, "f", tables_of(m)->lines.v[line->line].function);
	pb_put_u64(m->out, 2, t.start_line);
	pb_put_str(m->out, 3, t.function);
	pb_put_str(m->out, 4, t.system_name);
	pb_put_str(m->out, 5, t.file);
	pb_end(m->out, begun);
}

/* Line { function_id, line } */
static void put_line(const struct message *m, uint32_t field, const struct query_line *line)
{
	if (line->line == QUERY_LINE_NONE)
		return;
	const struct profile_line *at = &tables_of(m)->lines.v[line->line];
	size_t begun = pb_begin(m->out, field);
	put_id(m->out, 1, "f", at->function);
	pb_put_u64(m->out, 2, at->line);
	pb_end(m->out, begun);
}

/* TopNodeMeta, CallgraphNodeMeta: the same fields { location, mapping, function, line } */
static void put_meta(const struct message *m, uint32_t field, const struct query_key_row *row)
{
	const struct query_line *line = &m->t->lines.v[row->line];
	uint32_t mapping = tables_of(m)->locations.v[line->location].mapping;
	size_t begun = pb_begin(m->out, field);
	put_location(m, 1, line->location);
	if (row->many_mappings && line->line != QUERY_LINE_NONE)
		pb_put_str_always(m->out, 2, STR(""));
	else
		put_mapping(m, 2, mapping);
	put_function(m, 3, line);
	if (!row->many)
		put_line(m, 4, line);
	pb_end(m->out, begun);
}

/* ---- what the reports by function have in common ---- */

typedef enum status rows_fn(
	const struct message *m, const struct query_key_rows *rows, struct err *e);

static enum status by_function(const struct query_engine *q, const struct query_report_request *r,
	bool edges, rows_fn *fn, struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	struct query_report_request plain = *r;
	struct query_key_rows rows = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	plain.by = 0;
	plain.chart = false;
	enum status s = query_tree_make(&t, q, &plain, &a, e);
	if (s != OK)
		return s;
	struct message m = { .t = &t, .r = r, .a = &a, .out = out };
	s = query_rows_make(&rows, &t, r->invert, edges, &a, e);
	if (s == OK)
		s = fn(&m, &rows, e);
	if (s == OK)
		s = query_written(out, e);
	if (s == OK)
		query_tree_info(&t, info);
	query_rows_deinit(&rows);
	return s;
}

/* ---- Top { list, reported, total, unit } ---- */

static enum status write_top(
	const struct message *m, const struct query_key_rows *rows, struct err *e)
{
	(void)e;
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct query_key_row *row = &rows->v[rows->order[i]];
		size_t begun = pb_begin(m->out, 1);
		put_meta(m, 1, row);
		pb_put_i64(m->out, 2, row->total);
		pb_put_i64(m->out, 3, row->self);
		pb_put_i64(m->out, 4, m->r->diff ? row->total_diff : 0);
		pb_end(m->out, begun);
	}
	pb_put_u64(m->out, 2, rows->count);
	pb_put_i64(m->out, 3, (int32_t)m->t->sum);
	pb_put_str(m->out, 4, m->t->stacks.unit);
	return OK;
}

enum status query_top_message(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	return by_function(q, r, false, write_top, out, info, e);
}

/* ---- Callgraph { nodes, edges, cumulative } ---- */

struct graph {
	const struct message *m;
	const struct query_key_rows *rows;
	uint32_t *in_count, *out_count; /* edges, by key */
	uint32_t *in_edge;              /* the last one that comes in, by key */
	uint8_t *removed;               /* by key */
	uint32_t next_edge;
};

static void put_edge(struct graph *g, uint32_t caller, uint32_t callee, int64_t total, bool joined)
{
	struct buf *out = g->m->out;
	size_t begun = pb_begin(out, 2);
	put_id(out, 1, "e", g->next_edge++);
	put_id(out, 2, "n", caller);
	put_id(out, 3, "n", callee);
	pb_put_i64(out, 4, total);
	pb_put_bool(out, 5, joined);
	pb_end(out, begun);
}

/* Leaves out small functions with one caller and at least one callee, unless the one caller is the
 * function itself. */
static void choose_removed(struct graph *g)
{
	double least = (double)g->m->t->sum * CALLGRAPH_SHARE;
	for (uint32_t i = 0; i < g->rows->count; i++) {
		uint32_t key = g->rows->order[i];
		bool alone = g->in_count[key] == 1 && g->out_count[key] > 0 &&
			     g->rows->edges.v[g->in_edge[key]].caller != key;
		g->removed[key] = alone && (double)g->rows->v[key].total < least;
	}
}

/* The nearest caller that is not removed; adds the totals of the edges on the way. A ring of
 * removed functions has no such caller: the search ends where it began. */
static uint32_t caller_that_stays(const struct graph *g, uint32_t key, int64_t *total)
{
	const struct query_key_edge *edges = g->rows->edges.v;
	uint32_t at = key;
	do {
		const struct query_key_edge *in = &edges[g->in_edge[at]];
		*total = query_add(*total, in->total);
		at = in->caller;
	} while (g->removed[at] && at != key);
	return at;
}

static void put_edges(struct graph *g)
{
	const struct query_key_edge *edges = g->rows->edges.v;
	for (size_t i = 0; i < g->rows->edges.len; i++) {
		const struct query_key_edge *edge = &edges[i];
		int64_t total = 0;
		if (g->removed[edge->callee])
			continue;
		if (!g->removed[edge->caller]) {
			put_edge(g, edge->caller, edge->callee, edge->total, false);
			continue;
		}
		uint32_t caller = caller_that_stays(g, edge->caller, &total);
		if (!g->removed[caller])
			put_edge(g, caller, edge->callee, total, true);
	}
}

static enum status write_graph(
	const struct message *m, const struct query_key_rows *rows, struct err *e)
{
	size_t keys = m->t->lines.key_count;
	struct graph g = { .m = m, .rows = rows };
	g.in_count = ARENA_ARRAY(m->a, uint32_t, keys);
	g.out_count = ARENA_ARRAY(m->a, uint32_t, keys);
	g.in_edge = ARENA_ARRAY(m->a, uint32_t, keys);
	g.removed = ARENA_ARRAY(m->a, uint8_t, keys);
	if (!g.in_count || !g.out_count || !g.in_edge || !g.removed)
		return err_set(e, arena_status(m->a), "call graph of %u functions", rows->count);
	for (size_t i = 0; i < rows->edges.len; i++) {
		g.in_count[rows->edges.v[i].callee]++;
		g.out_count[rows->edges.v[i].caller]++;
		g.in_edge[rows->edges.v[i].callee] = (uint32_t)i;
	}
	choose_removed(&g);
	for (uint32_t i = 0; i < rows->count; i++) {
		uint32_t key = rows->order[i];
		if (g.removed[key])
			continue;
		size_t begun = pb_begin(m->out, 1);
		put_id(m->out, 1, "n", key);
		put_meta(m, 2, &rows->v[key]);
		pb_put_i64(m->out, 3, rows->v[key].total);
		pb_put_i64(m->out, 4, rows->v[key].self);
		pb_end(m->out, begun);
	}
	put_edges(&g);
	pb_put_i64(m->out, 3, m->t->sum);
	return OK;
}

enum status query_callgraph_message(const struct query_engine *q,
	const struct query_report_request *r, struct buf *out, struct query_report *info,
	struct err *e)
{
	return by_function(q, r, true, write_graph, out, info, e);
}

/* ---- Flamegraph ---- */

struct nest {
	struct message m;
	struct query_fold fold;
	uint64_t *size;     /* by node: bytes of its FlamegraphNode without tag and length */
	uint32_t *location; /* by location: its number in the message, from 1; 0: not used */
	struct strtab strings;
	uint32_t height;
};

static uint32_t varint_size(uint64_t v)
{
	uint32_t n = 1;
	for (; v >= 0x80; v >>= 7)
		n++;
	return n;
}

/* Bytes of an integer field whose number is below 16; none if the value is 0. */
static uint32_t number_size(uint64_t v)
{
	return v ? 1 + varint_size(v) : 0;
}

static const struct query_line *line_of(const struct nest *n, const struct query_fold_node *node)
{
	return node->line == QUERY_LINE_NONE ? NULL : &n->m.t->lines.v[node->line];
}

static uint32_t line_number(const struct nest *n, const struct query_line *line)
{
	const struct profile_location *l = &tables_of(&n->m)->locations.v[line->location];
	return line->line == QUERY_LINE_NONE ? 0 : line->line - l->line_first;
}

/* FlamegraphNodeMeta { location_index = 5, line_index = 6 } */
static uint64_t meta_size(const struct nest *n, const struct query_fold_node *node)
{
	const struct query_line *line = line_of(n, node);
	return line ? number_size(n->location[line->location]) + number_size(line_number(n, line))
		    : 0;
}

/* Numbers the locations that occur. */
static bool number_locations(struct nest *n)
{
	const struct query_fold_node *v = n->fold.nodes.v;
	uint32_t count = 0, *depth = ARENA_ARRAY(n->m.a, uint32_t, n->fold.nodes.len);
	for (uint32_t i = 1; depth && i < n->fold.nodes.len; i++) {
		const struct query_line *line = line_of(n, &v[i]);
		depth[i] = depth[v[i].parent] + 1;
		n->height = MAX(n->height, depth[i]);
		if (line && n->location[line->location] == 0)
			n->location[line->location] = ++count;
	}
	return depth;
}

static void measure(struct nest *n)
{
	for (size_t i = n->fold.nodes.len; i-- > 1;) {
		const struct query_fold_node *node = &n->fold.nodes.v[i];
		uint64_t meta = meta_size(n, node);
		n->size[i] += 1 + varint_size(meta) + meta;
		n->size[i] += number_size((uint64_t)node->total);
		n->size[i] += number_size((uint64_t)query_fold_diff(&n->fold, i));
		n->size[node->parent] += 1 + varint_size(n->size[i]) + n->size[i];
	}
}

static void put_tag(struct buf *out, uint32_t field, enum pb_wire wire)
{
	buf_varint(out, field << 3 | wire);
}

/* Writes a node up to its children. They are its last field and come next in the order of the fold,
 * so they follow by themselves. `field`: 3 in the root, 4 in a node. */
static void put_node(struct nest *n, size_t i)
{
	const struct query_fold_node *node = &n->fold.nodes.v[i];
	const struct query_line *line = line_of(n, node);
	struct buf *out = n->m.out;
	put_tag(out, node->parent == 0 ? 3 : 4, PB_BYTES);
	buf_varint(out, n->size[i]);
	put_tag(out, 1, PB_BYTES);
	buf_varint(out, meta_size(n, node));
	if (line) {
		pb_put_u64(out, 5, n->location[line->location]);
		pb_put_u64(out, 6, line_number(n, line));
	}
	pb_put_i64(out, 2, node->total);
	pb_put_i64(out, 3, query_fold_diff(&n->fold, i));
}

/* FlamegraphRootNode { cumulative, diff, children } */
static void put_root(struct nest *n)
{
	const struct query_fold_node *root = &n->fold.nodes.v[0];
	struct buf *out = n->m.out;
	int64_t diff = query_fold_diff(&n->fold, 0);
	uint64_t size =
		n->size[0] + number_size((uint64_t)root->total) + number_size((uint64_t)diff);
	put_tag(out, 1, PB_BYTES);
	buf_varint(out, size);
	pb_put_i64(out, 1, root->total);
	pb_put_i64(out, 2, diff);
	for (size_t i = 1; i < n->fold.nodes.len; i++)
		put_node(n, i);
}

static uint64_t text_number(struct nest *n, struct str s)
{
	uint32_t id = 0;
	if (strtab_intern(&n->strings, s, &id) != OK)
		n->m.out->failed = true;
	return id;
}

static bool number_tables(struct nest *n, uint32_t **out_order, uint32_t **out_functions,
	uint32_t **out_mappings, uint32_t *out_count)
{
	const struct profile *p = tables_of(&n->m);
	uint32_t *order = ARENA_ARRAY(n->m.a, uint32_t, p->locations.len);
	*out_functions = ARENA_ARRAY(n->m.a, uint32_t, p->functions.len);
	*out_mappings = ARENA_ARRAY(n->m.a, uint32_t, p->mappings.len);
	if (!order || !*out_functions || !*out_mappings)
		return false;
	*out_count = 0;
	for (uint32_t i = 0; i < p->locations.len; i++)
		if (n->location[i]) {
			order[n->location[i] - 1] = i;
			(*out_count)++;
		}
	*out_order = order;
	return true;
}

/* Location { address = 2, lines = 6 { line = 2, function_index = 3 }, mapping_index = 7 } */
static void put_flame_location(struct nest *n, uint32_t location, uint32_t *functions,
	uint32_t *function_count, uint32_t *mappings, uint32_t *mapping_count)
{
	const struct profile *p = tables_of(&n->m);
	const struct profile_location *l = &p->locations.v[location];
	struct buf *out = n->m.out;
	bool unnamed = l->line_count == 0 || l->unnamed;
	size_t begun = pb_begin(out, 6);
	pb_put_u64(out, 2, l->address);
	for (uint32_t i = 0; i < l->line_count && !unnamed; i++) {
		const struct profile_line *line = &p->lines.v[l->line_first + i];
		if (functions[line->function] == 0)
			functions[line->function] = ++*function_count;
		size_t at = pb_begin(out, 6);
		pb_put_u64(out, 2, line->line);
		pb_put_u64(out, 3, functions[line->function]);
		pb_end(out, at);
	}
	if (l->mapping && mappings[l->mapping] == 0)
		mappings[l->mapping] = ++*mapping_count;
	pb_put_u64(out, 7, mappings[l->mapping]);
	pb_end(out, begun);
}

/* Function { start_line = 2, name_string_index = 6, system_name 7, filename 8 } */
static void put_flame_function(struct nest *n, uint32_t id)
{
	const struct profile *p = tables_of(&n->m);
	const struct profile_function *f = &p->functions.v[id];
	size_t begun = pb_begin(n->m.out, 8);
	pb_put_u64(n->m.out, 2, f->start_line);
	pb_put_u64(n->m.out, 6, text_number(n, profile_str(p, f->name ? f->name : f->system_name)));
	pb_put_u64(n->m.out, 7, text_number(n, profile_str(p, f->system_name)));
	pb_put_u64(n->m.out, 8, text_number(n, profile_str(p, f->filename)));
	pb_end(n->m.out, begun);
}

/* Mapping { start = 2, limit, offset, file_string_index = 11, build_id_string_index = 12 } */
static void put_flame_mapping(struct nest *n, uint32_t id)
{
	const struct profile *p = tables_of(&n->m);
	const struct profile_mapping *m = &p->mappings.v[id];
	size_t begun = pb_begin(n->m.out, 7);
	pb_put_u64(n->m.out, 2, m->start);
	pb_put_u64(n->m.out, 3, m->limit);
	pb_put_u64(n->m.out, 4, m->offset);
	pb_put_u64(n->m.out, 11, text_number(n, profile_str(p, m->filename)));
	pb_put_u64(n->m.out, 12, text_number(n, profile_str(p, m->build_id)));
	pb_end(n->m.out, begun);
}

/* Writes the numbered elements in the order of their numbers. */
static bool put_numbered(struct nest *n, const uint32_t *numbers, size_t size, uint32_t count,
	void (*put)(struct nest *, uint32_t))
{
	uint32_t *order = ARENA_ARRAY(n->m.a, uint32_t, MAX(count, 1u));
	if (!order)
		return false;
	for (uint32_t i = 0; i < size; i++)
		if (numbers[i])
			order[numbers[i] - 1] = i;
	for (uint32_t i = 0; i < count; i++)
		put(n, order[i]);
	return true;
}

static bool put_tables(struct nest *n)
{
	const struct profile *p = tables_of(&n->m);
	uint32_t *order, *functions, *mappings, count, function_count = 0, mapping_count = 0;
	if (!number_tables(n, &order, &functions, &mappings, &count))
		return false;
	for (uint32_t i = 0; i < count; i++)
		put_flame_location(
			n, order[i], functions, &function_count, mappings, &mapping_count);
	if (!put_numbered(n, mappings, p->mappings.len, mapping_count, put_flame_mapping) ||
		!put_numbered(n, functions, p->functions.len, function_count, put_flame_function))
		return false;
	for (uint32_t i = 0; i < n->strings.len; i++)
		pb_put_str_always(n->m.out, 5, strtab_get(&n->strings, i));
	return true;
}

static enum status write_nest(struct nest *n, struct err *e)
{
	const struct query_tree *t = n->m.t;
	enum status s = query_fold_make(
		&n->fold, t, n->m.r, QUERY_TRIM_LEAST, 0, QUERY_REPORT_BYTES_MAX, e);
	if (s != OK)
		return s;
	n->size = ARENA_ARRAY(n->m.a, uint64_t, n->fold.nodes.len);
	n->location = ARENA_ARRAY(n->m.a, uint32_t, t->stacks.tables.locations.len);
	if (!n->size || !n->location || !number_locations(n) ||
		strtab_init(&n->strings, QUERY_REPORT_BYTES_MAX) != OK)
		return err_set(
			e, arena_status(n->m.a), "flame graph of %zu calls", n->fold.nodes.len);
	measure(n);
	put_root(n);
	pb_put_i64(n->m.out, 2, t->sum);
	pb_put_str(n->m.out, 3, t->stacks.unit);
	pb_put_u64(n->m.out, 4, n->height + 1);
	bool good = put_tables(n);
	pb_put_i64(n->m.out, 9, t->sum);
	pb_put_i64(n->m.out, 10, n->fold.trimmed);
	strtab_deinit(&n->strings);
	return good ? query_written(n->m.out, e)
		    : err_set(e, arena_status(n->m.a), "flame graph of %zu calls",
			      n->fold.nodes.len);
}

enum status query_flame_message(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_tree_make(&t, q, r, &a, e);
	if (s != OK)
		return s;
	struct nest n = { .m = { .t = &t, .r = r, .a = &a, .out = out } };
	s = write_nest(&n, e);
	if (s == OK) {
		query_tree_info(&t, info);
		info->height = (int32_t)n.height + 1;
		info->trimmed = n.fold.trimmed;
	}
	query_fold_deinit(&n.fold);
	return s;
}
