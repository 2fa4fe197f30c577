/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strings are sorted by bytes; every other table then by numbers, since the tables that it refers
 * to have been renumbered before it. Element 0 of each table is its null element, the smallest
 * there is.
 */
#include "store/memory/canon.h"

#include <stdlib.h>

static enum status renumbering_init(struct renumbering *r, uint32_t count)
{
	r->to = calloc(MAX(count, 1u), sizeof(*r->to));
	r->order = calloc(MAX(count, 1u), sizeof(*r->order));
	r->count = count;
	for (uint32_t i = 0; r->order && i < count; i++)
		r->order[i] = i;
	return r->to && r->order ? OK : E_NOMEM;
}

static void renumbering_deinit(struct renumbering *r)
{
	free(r->to);
	free(r->order);
	*r = (struct renumbering){ 0 };
}

static void number(struct renumbering *r)
{
	for (uint32_t i = 0; i < r->count; i++)
		r->to[r->order[i]] = i;
}

void canon_deinit(struct canon *c)
{
	renumbering_deinit(&c->label_strings);
	renumbering_deinit(&c->sample_strings);
	renumbering_deinit(&c->symbol_strings);
	renumbering_deinit(&c->series);
	renumbering_deinit(&c->sets);
	renumbering_deinit(&c->functions);
	renumbering_deinit(&c->mappings);
	renumbering_deinit(&c->locations);
	renumbering_deinit(&c->nodes);
}

#define COMPARE(a, b)   \
	if ((a) != (b)) \
	return (a) < (b) ? -1 : 1

/* ---- strings ---- */

static int by_text(const void *a, const void *b, void *ctx)
{
	const struct str *strings = ctx;
	return str_cmp(strings[*(const uint32_t *)a], strings[*(const uint32_t *)b]);
}

/* `to` marks the used strings; the null string is always used. */
static void sort_strings(struct renumbering *r, const struct str *strings, uint32_t count)
{
	uint32_t n = 0;
	r->to[0] = 1;
	for (uint32_t i = 0; i < count; i++)
		if (r->to[i])
			r->order[n++] = i;
	r->count = n;
	union {
		const struct str *in;
		void *out;
	} ctx = { .in = strings };
	qsort_r(r->order, n, sizeof(*r->order), by_text, ctx.out);
	number(r);
}

static enum status number_strings(struct canon *c, const struct tabs *t)
{
	enum status s = renumbering_init(&c->label_strings, t->label_string_count);
	if (s == OK)
		s = renumbering_init(&c->sample_strings, t->sample_string_count);
	if (s == OK)
		s = renumbering_init(&c->symbol_strings, t->symbol_string_count);
	if (s != OK)
		return s;
	uint32_t *label = c->label_strings.to, *symbol = c->symbol_strings.to;
	for (uint32_t i = 0; i < t->series_count; i++) {
		label[t->series[i].tenant] = 1;
		for (int k = 0; k < TABLES_TYPE_PARTS; k++)
			label[t->series[i].type[k]] = 1;
	}
	for (uint32_t i = 0; i < t->label_count; i++)
		label[t->labels[i].name] = label[t->labels[i].value] = 1;
	for (size_t i = 0; i < (size_t)t->set_count * (1 + t->name_count); i++)
		c->sample_strings.to[t->sets[i]] = 1;
	for (uint32_t i = 0; i < t->function_count; i++) {
		const struct profile_function *f = &t->functions[i];
		symbol[f->name] = symbol[f->system_name] = symbol[f->filename] = 1;
	}
	for (uint32_t i = 0; i < t->mapping_count; i++)
		symbol[t->mappings[i].filename] = symbol[t->mappings[i].build_id] = 1;
	sort_strings(&c->label_strings, t->label_strings, t->label_string_count);
	sort_strings(&c->sample_strings, t->sample_strings, t->sample_string_count);
	sort_strings(&c->symbol_strings, t->symbol_strings, t->symbol_string_count);
	return OK;
}

/* ---- tables ---- */

struct sorting {
	const struct canon *c;
	const struct tabs *t;
	uint32_t thread_name, pid; /* positions of these names' values in a set; 0: there is none */
};

static int by_series(const void *x, const void *y, void *ctx)
{
	const struct sorting *so = ctx;
	const struct tab_series *a = &so->t->series[*(const uint32_t *)x];
	const struct tab_series *b = &so->t->series[*(const uint32_t *)y];
	const uint32_t *to = so->c->label_strings.to;
	COMPARE(to[a->tenant], to[b->tenant]);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		COMPARE(to[a->type[k]], to[b->type[k]]);
	COMPARE(a->delta, b->delta);
	COMPARE((uint64_t)a->period, (uint64_t)b->period);
	for (uint32_t i = 0; i < a->label_count && i < b->label_count; i++) {
		const struct profile_label *l = &so->t->labels[a->label_first + i];
		const struct profile_label *m = &so->t->labels[b->label_first + i];
		COMPARE(to[l->name], to[m->name]);
		COMPARE(to[l->value], to[m->value]);
	}
	COMPARE(a->label_count, b->label_count);
	return 0;
}

static int by_set(const void *x, const void *y, void *ctx)
{
	const struct sorting *so = ctx;
	uint32_t width = 1 + so->t->name_count;
	const uint32_t *a = so->t->sets + (size_t) * (const uint32_t *)x * width;
	const uint32_t *b = so->t->sets + (size_t) * (const uint32_t *)y * width;
	const uint32_t *to = so->c->sample_strings.to;
	COMPARE(to[a[0]], to[b[0]]);
	/* Sets of one program lie together, since the rows of its series are near to each other.
	 */
	if (so->thread_name)
		COMPARE(to[a[so->thread_name]], to[b[so->thread_name]]);
	if (so->pid) { /* as numbers: in the order that processes began */
		const struct str *texts = so->t->sample_strings;
		COMPARE(texts[a[so->pid]].len, texts[b[so->pid]].len);
		COMPARE(to[a[so->pid]], to[b[so->pid]]);
	}
	for (uint32_t i = 1; i < width; i++)
		COMPARE(to[a[i]], to[b[i]]);
	return 0;
}

static int by_function(const void *x, const void *y, void *ctx)
{
	const struct sorting *so = ctx;
	const struct profile_function *a = &so->t->functions[*(const uint32_t *)x];
	const struct profile_function *b = &so->t->functions[*(const uint32_t *)y];
	const uint32_t *to = so->c->symbol_strings.to;
	COMPARE(to[a->name], to[b->name]);
	COMPARE(to[a->system_name], to[b->system_name]);
	COMPARE(to[a->filename], to[b->filename]);
	COMPARE(a->start_line, b->start_line);
	return 0;
}

static int by_mapping(const void *x, const void *y, void *ctx)
{
	const struct sorting *so = ctx;
	const struct profile_mapping *a = &so->t->mappings[*(const uint32_t *)x];
	const struct profile_mapping *b = &so->t->mappings[*(const uint32_t *)y];
	const uint32_t *to = so->c->symbol_strings.to;
	COMPARE(to[a->filename], to[b->filename]);
	COMPARE(to[a->build_id], to[b->build_id]);
	COMPARE(a->start, b->start);
	COMPARE(a->limit, b->limit);
	COMPARE(a->offset, b->offset);
	return 0;
}

static int by_location(const void *x, const void *y, void *ctx)
{
	const struct sorting *so = ctx;
	const struct profile_location *a = &so->t->locations[*(const uint32_t *)x];
	const struct profile_location *b = &so->t->locations[*(const uint32_t *)y];
	COMPARE(so->c->mappings.to[a->mapping], so->c->mappings.to[b->mapping]);
	COMPARE(a->address, b->address);
	COMPARE(a->kind, b->kind);
	for (uint32_t i = 0; i < a->line_count && i < b->line_count; i++) {
		const struct profile_line *l = &so->t->lines[a->line_first + i];
		const struct profile_line *m = &so->t->lines[b->line_first + i];
		COMPARE(so->c->functions.to[l->function], so->c->functions.to[m->function]);
		COMPARE(l->line, m->line);
		COMPARE(l->column, m->column);
	}
	COMPARE(a->line_count, b->line_count);
	return 0;
}

static enum status number_table(struct renumbering *r, uint32_t count,
	int (*compare)(const void *, const void *, void *), struct sorting *so)
{
	enum status s = renumbering_init(r, count);
	if (s != OK)
		return s;
	qsort_r(r->order, count, sizeof(*r->order), compare, so);
	number(r);
	return OK;
}

/* ---- the trie ---- */

struct siblings {
	const uint32_t *locations; /* new numbers */
	const uint32_t *location_of;
};

static int by_new_location(const void *x, const void *y, void *ctx)
{
	const struct siblings *s = ctx;
	uint32_t a = s->locations[s->location_of[*(const uint32_t *)x]];
	uint32_t b = s->locations[s->location_of[*(const uint32_t *)y]];
	COMPARE(a, b);
	return 0;
}

/* Children of each node lie together in `children`, from next[node]. A node gets its number on the
 * way down. No stack is needed, since a node knows its parent. */
static void walk(struct canon *c, const struct tabs *t, const uint32_t *children, uint32_t *next)
{
	uint32_t n = t->node_count, node = 0, count = 1;
	for (;;) {
		if (next[node] < n - 1 && t->parent[children[next[node]]] == node) {
			node = children[next[node]++];
			c->nodes.order[count++] = node;
		} else if (node == 0) {
			break;
		} else {
			node = t->parent[node];
		}
	}
	assert(count == n);
	number(&c->nodes);
}

/* Sorts by parent by counting, for eight bytes a node; then the few children of each parent. */
static enum status number_nodes(struct canon *c, const struct tabs *t)
{
	uint32_t n = t->node_count;
	enum status s = renumbering_init(&c->nodes, n);
	if (s != OK)
		return s;
	CLEANUP(free_cleanup) uint32_t *children = malloc(n * sizeof(*children));
	CLEANUP(free_cleanup) uint32_t *next = calloc((size_t)n + 1, sizeof(*next));
	if (!children || !next)
		return E_NOMEM;
	for (uint32_t i = 1; i < n; i++)
		next[t->parent[i] + 1]++;
	for (uint32_t i = 0; i < n; i++)
		next[i + 1] += next[i];
	for (uint32_t i = 1; i < n; i++)
		children[next[t->parent[i]]++] = i;
	memmove(next + 1, next, n * sizeof(*next)); /* each entry is at its end now */
	next[0] = 0;
	struct siblings ctx = { c->locations.to, t->node_location };
	for (uint32_t i = 0; i < n; i++)
		if (next[i + 1] - next[i] > 1)
			qsort_r(children + next[i], next[i + 1] - next[i], sizeof(*children),
				by_new_location, &ctx);
	walk(c, t, children, next);
	return OK;
}

enum status canon_keep_nodes(struct canon *c, uint32_t count)
{
	renumbering_deinit(&c->nodes);
	enum status s = renumbering_init(&c->nodes, count);
	if (s == OK)
		number(&c->nodes);
	return s;
}

enum status canon_init(struct canon *c, const struct tabs *t)
{
	*c = (struct canon){ 0 };
	struct sorting so = { c, t, (uint32_t)(tabs_name_find(t, STR("thread_name")) + 1),
		(uint32_t)(tabs_name_find(t, STR("pid")) + 1) };
	enum status s = number_strings(c, t);
	if (s == OK)
		s = number_table(&c->series, t->series_count, by_series, &so);
	if (s == OK)
		s = number_table(&c->sets, t->set_count, by_set, &so);
	if (s == OK)
		s = number_table(&c->functions, t->function_count, by_function, &so);
	if (s == OK)
		s = number_table(&c->mappings, t->mapping_count, by_mapping, &so);
	if (s == OK)
		s = number_table(&c->locations, t->location_count, by_location, &so);
	if (s == OK)
		s = number_nodes(c, t);
	if (s != OK)
		canon_deinit(c);
	return s;
}
