/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources are shared out to the query's threads, largest first. A thread adds the values of a
 * source to a dense array by node number, block by block; or many blocks at once, if the part has
 * their total and all their rows are wanted. Then it folds the nodes with a sum into a tree that no
 * other thread uses. In the end the trees are put together. That costs as much as folding a source,
 * so there is at most one tree for every two sources. A thread without a source helps with the
 * blocks of another thread's source, into an array of its own.
 *
 * So at any time there are at most as many open sources as threads. If the memory does not suffice
 * for all threads, the query runs again on one thread.
 */
#include "store/read/durations.h"

#include "base/lock.h"
#include "os/os.h"
#include "store/read/gauge.h"
#include "store/read/queries.h"
#include "store/read/scan.h"
#include "store/read/tree.h"

#include <math.h>
#include <stdlib.h>

/* Sums of one source by node, and other results from its rows. */
struct sums {
	int64_t *values;
	double *averages; /* of a gauge */
	uint64_t samples;
	int64_t first_ns, last_ns;
};

/* One source being scanned. */
struct share {
	struct scan scan;
	size_t index;   /* the source's index */
	size_t pieces;  /* those before `next` are taken */
	uint32_t *list; /* of a part: the numbers of blocks, then those of totals */
	size_t list_cap;
	atomic_size_t next;
	const double *weights;            /* of a gauge: weights of the source's series */
	const struct tab_series *periods; /* NULL: values count as they are */
	bool open; /* more pieces may be taken; the lock guards it and the fields below */
	bool loading;
	unsigned helpers;
	struct sums sums;
};

struct summing {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct gauge gauge;
	struct found_type type;
	bool is_gauge;
	size_t *order; /* sources that are wanted */
	size_t order_count;
	unsigned width;
	struct share *shares; /* one each thread */
	struct tree *trees;
	unsigned tree_count;
	uint64_t trees_taken; /* bits; with the lock held */
	atomic_size_t next;   /* in order[] */
	atomic_bool stop;
	struct lock lock;
	pthread_cond_t changed;
	enum status status; /* the first failure; with the lock held */
	struct err err;
	uint64_t samples;
	int64_t first_ns, last_ns;
};

static void sums_free(struct summing *s, struct sums *x, uint32_t node_count)
{
	uint64_t each = sizeof(*x->values) + (x->averages ? sizeof(*x->averages) : 0);
	if (x->values)
		budget_give(&s->budget, node_count * each);
	free(x->values);
	free(x->averages);
	*x = (struct sums){ 0 };
}

static enum status sums_new(struct summing *s, uint32_t node_count, struct sums *out, struct err *e)
{
	struct sums x = { .first_ns = INT64_MAX, .last_ns = INT64_MIN };
	enum status st = budget_array(&s->budget, node_count, sizeof(*x.values), &x.values, e);
	if (st == OK && s->is_gauge) {
		st = budget_array(&s->budget, node_count, sizeof(*x.averages), &x.averages, e);
		if (st != OK)
			sums_free(s, &x, node_count);
	}
	if (st == OK)
		*out = x;
	return st;
}

static void sums_add(struct sums *to, const struct sums *from, uint32_t node_count)
{
	uint64_t *a = (uint64_t *)to->values;
	for (uint32_t i = 0; i < node_count; i++)
		a[i] += (uint64_t)from->values[i];
	for (uint32_t i = 0; from->averages && i < node_count; i++)
		to->averages[i] += from->averages[i];
	to->samples += from->samples;
	to->first_ns = MIN(to->first_ns, from->first_ns);
	to->last_ns = MAX(to->last_ns, from->last_ns);
}

static void summing_deinit(struct summing *s)
{
	view_picks_free(s->v, s->picks);
	gauge_deinit(&s->gauge);
	for (unsigned i = 0; i < s->tree_count; i++)
		tree_deinit(&s->trees[i]);
	free(s->order);
	free(s->shares);
	free(s->trees);
	view_release(s->v);
}

/* ---- failures ---- */

/* Returns OK, or the error that ends the query: the first one of all threads. */
static enum status note(struct summing *s, enum status st, const struct err *e)
{
	if (st == OK)
		return OK;
	lock_take(&s->lock);
	if (s->status == OK) {
		s->status = st;
		s->err = *e;
	}
	atomic_store(&s->stop, true);
	pthread_cond_broadcast(&s->changed);
	lock_release(&s->lock);
	return st;
}

/* ---- rows ---- */

struct adding {
	const struct share *share;
	struct sums *to;
	bool times; /* rows have times */
};

static enum status add_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	const struct adding *a = ctx;
	const struct share *h = a->share;
	uint64_t count = 0;
	int64_t *values = a->to->values, first = a->to->first_ns, last = a->to->last_ns;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		if (h->weights)
			a->to->averages[r->node[i]] +=
				(double)r->value[i] * h->weights[r->series[i]];
		else if (h->periods)
			values[r->node[i]] = wrap_add(values[r->node[i]],
				wrap_mul(r->value[i], period_factor(&h->periods[r->series[i]])));
		else
			values[r->node[i]] = wrap_add(values[r->node[i]], r->value[i]);
		count += r->count ? (uint64_t)r->count[i] : 1;
		if (a->times) {
			first = MIN(first, r->time_ns[i]);
			last = MAX(last, r->time_ns[i]);
		}
	}
	a->to->samples += count;
	a->to->first_ns = first;
	a->to->last_ns = last;
	return OK;
}

static void add_bounds(struct sums *to, const struct part_block *b)
{
	to->first_ns = MIN(to->first_ns, b->time_min);
	to->last_ns = MAX(to->last_ns, b->time_max);
}

/* Adds the rows that pass, column by column. If all rows of a block lie in the range, its bounds
 * serve as its times, so that this column need not be unpacked. */
static enum status add_some(const struct share *h, size_t block, struct scanner *scanner,
	struct sums *to, struct err *e)
{
	const struct source *src = h->scan.source;
	struct part_filter f = scan_filter(&h->scan, block);
	struct part_kept kept;
	size_t n;
	const struct part_block *b = &part_blocks(src->part, &n)[block];
	enum status st = part_sum_kept(
		src->part, &src->tabs, b, &f, &scanner->rows, to->values, &to->samples, &kept, e);
	if (st != OK || kept.rows == 0)
		return st;
	if (!f.times)
		add_bounds(to, b);
	to->first_ns = MIN(to->first_ns, kept.first_ns);
	to->last_ns = MAX(to->last_ns, kept.last_ns);
	return OK;
}

static enum status add_block(struct summing *s, const struct share *h, size_t block,
	struct scanner *scanner, struct sums *to, struct err *e)
{
	const struct source *src = h->scan.source;
	enum scan_wants wants = scan_wants(&h->scan, block);
	struct adding a = { h, to, true };
	size_t n;
	const struct part_block *b = &part_blocks(src->part, &n)[block];
	if (wants == SCAN_SOME && !h->weights && !h->periods)
		return add_some(h, block, scanner, to, e);
	a.times = b->time_min < s->q->from_ns || b->time_max >= s->q->to_ns;
	if (!a.times)
		add_bounds(to, b);
	if (wants == SCAN_ALL && !h->weights && !h->periods)
		return part_sum_block(
			src->part, &src->tabs, b, &scanner->rows, to->values, &to->samples, e);
	return scan_piece(&h->scan, block, scanner, add_rows, &a, e);
}

static enum status add_total(const struct share *h, size_t total, struct scanner *scanner,
	struct sums *to, struct err *e)
{
	const struct source *src = h->scan.source;
	size_t n;
	const struct part_total *t = &part_totals(src->part, &n)[total];
	const struct part_block *b = part_blocks(src->part, &n) + t->first;
	uint64_t ignored = 0;
	for (size_t i = 0; i < t->count; i++)
		add_bounds(to, &b[i]);
	to->samples += t->samples;
	return part_sum_block(
		src->part, &src->tabs, &t->sums, &scanner->rows, to->values, &ignored, e);
}

static enum status add_piece(struct summing *s, const struct share *h, size_t piece,
	struct scanner *scanner, struct sums *to, struct err *e)
{
	const struct source *src = h->scan.source;
	struct adding a = { h, to, true };
	if (!src->part)
		return scan_piece(&h->scan, piece, scanner, add_rows, &a, e);
	size_t blocks;
	(void)part_blocks(src->part, &blocks);
	size_t x = h->list[piece];
	enum status st = x < blocks ? add_block(s, h, x, scanner, to, e)
				    : add_total(h, x - blocks, scanner, to, e);
	if (st == E_CORRUPT)
		view_damaged(s->v, src->part);
	return st;
}

/* Lists the totals and the blocks to read; done once. */
static enum status list_pieces(struct summing *s, struct share *h, struct err *e)
{
	const struct source *src = h->scan.source;
	size_t blocks, totals, n = 0;
	if (!src->part)
		return OK;
	const struct part_total *t = part_totals(src->part, &totals);
	(void)part_blocks(src->part, &blocks);
	CLEANUP(free_cleanup) uint8_t *wants = NULL;
	h->list_cap = blocks + totals;
	enum status st = budget_array(&s->budget, h->list_cap, sizeof(*h->list), &h->list, e);
	if (st == OK)
		st = budget_array(&s->budget, blocks, 1, &wants, e);
	if (st != OK)
		return st;
	for (size_t i = 0; i < blocks; i++)
		wants[i] = (uint8_t)scan_wants(&h->scan, i);
	for (size_t i = 0; i < totals && !h->weights && !h->periods; i++) {
		size_t k = 0;
		while (k < t[i].count && wants[t[i].first + k] == SCAN_ALL)
			k++;
		if (k < t[i].count)
			continue;
		memset(wants + t[i].first, SCAN_NONE, t[i].count);
		h->list[n++] = (uint32_t)(blocks + i);
	}
	for (size_t i = 0; i < blocks; i++)
		if (wants[i] != SCAN_NONE)
			h->list[n++] = (uint32_t)i;
	h->pieces = n;
	budget_give(&s->budget, blocks);
	return OK;
}

static void list_free(struct summing *s, struct share *h)
{
	if (h->list)
		budget_give(&s->budget, h->list_cap * sizeof(*h->list));
	free(h->list);
	h->list = NULL;
}

/* One thread of the query. */
struct worker {
	unsigned number;
	struct scanner scanner;
};

/* Adds pieces until there are none left. Only the caller's own thread checks for cancelling. */
static enum status add_pieces(
	struct summing *s, struct share *h, struct worker *w, struct sums *to, struct err *e)
{
	enum status st = OK;
	while (st == OK && !atomic_load(&s->stop)) {
		size_t piece = atomic_fetch_add(&h->next, 1);
		if (piece >= h->pieces)
			break;
		if (w->number == 0)
			st = samples_stopped(s->q, e);
		if (st == OK)
			st = add_piece(s, h, piece, &w->scanner, to, e);
	}
	return st;
}

/* ---- one thread ---- */

static void set_open(struct summing *s, struct share *h, bool open)
{
	lock_take(&s->lock);
	h->loading = false;
	h->open = open;
	pthread_cond_broadcast(&s->changed);
	while (!open && h->helpers)
		lock_wait(&s->changed, &s->lock);
	lock_release(&s->lock);
}

/* Takes the first tree that no other thread uses, so that few trees are used. NULL: the query ends.
 */
static struct tree *take_tree(struct summing *s)
{
	static_assert(OS_POOL_THREADS_MAX < 63, "a bit for each thread, and one more");
	struct tree *found = NULL;
	lock_take(&s->lock);
	while (!found && !atomic_load(&s->stop)) {
		unsigned i = (unsigned)__builtin_ctzll(~s->trees_taken);
		if (i < s->tree_count) {
			s->trees_taken |= 1ull << i;
			found = &s->trees[i];
		} else {
			lock_wait(&s->changed, &s->lock);
		}
	}
	lock_release(&s->lock);
	return found;
}

static void give_tree(struct summing *s, const struct tree *t)
{
	lock_take(&s->lock);
	s->trees_taken &= ~(1ull << (t - s->trees));
	pthread_cond_broadcast(&s->changed);
	lock_release(&s->lock);
}

static enum status fold(struct summing *s, const struct share *h, struct err *e)
{
	struct source *src = &s->v->sources[h->index];
	struct tree *t = take_tree(s);
	if (!t)
		return OK;
	enum status st = tree_add(t, &src->tabs, h->sums.values, h->sums.averages, e);
	give_tree(s, t);
	return st;
}

static enum status sum_source(struct summing *s, struct share *h, struct worker *w, struct err *e)
{
	struct source *src = &s->v->sources[h->index];
	h->scan = (struct scan){ s->v, src, &s->picks[h->index], s->q,
		1u << ROW_NODE | 1u << ROW_VALUE | 1u << ROW_COUNT |
			(s->is_gauge || s->type.by_period ? 1u << ROW_SERIES : 0) };
	h->weights = s->is_gauge ? s->gauge.weights[h->index] : NULL;
	enum status st =
		source_load(s->v, src, PART_LOAD_STACKS | PART_LOAD_SYMBOLS, &s->budget, e);
	if (st == OK)
		st = scan_prepare(&h->scan, &s->budget, &h->pieces, e);
	if (st == OK)
		st = sums_new(s, src->tabs.node_count, &h->sums, e);
	h->periods = s->type.by_period ? src->tabs.series : NULL;
	if (st == OK)
		st = list_pieces(s, h, e);
	atomic_store(&h->next, 0);
	if (st == OK) {
		set_open(s, h, true);
		st = note(s, add_pieces(s, h, w, &h->sums, e), e);
	}
	set_open(s, h, false); /* and no thread uses it any more */
	if (st == OK)
		st = fold(s, h, e);
	if (st == E_CORRUPT && src->part)
		view_damaged(s->v, src->part);
	lock_take(&s->lock);
	s->samples += h->sums.samples;
	if (h->sums.values) {
		s->first_ns = MIN(s->first_ns, h->sums.first_ns);
		s->last_ns = MAX(s->last_ns, h->sums.last_ns);
	}
	lock_release(&s->lock);
	sums_free(s, &h->sums, src->tabs.node_count);
	list_free(s, h);
	source_done(s->v, src);
	return st;
}

/* A source with pieces left, that is not closed before sum_help() is done; NULL: there will be
 * none. */
static struct share *find_help(struct summing *s)
{
	struct share *found = NULL;
	bool more = true;
	lock_take(&s->lock);
	while (!found && more && !atomic_load(&s->stop)) {
		more = false;
		for (unsigned i = 0; i < s->width && !found; i++) {
			struct share *h = &s->shares[i];
			more |= h->loading;
			if (h->open && atomic_load(&h->next) + 1 < h->pieces)
				found = h;
		}
		if (found)
			found->helpers++;
		else if (more)
			lock_wait(&s->changed, &s->lock);
	}
	lock_release(&s->lock);
	return found;
}

static enum status sum_help(struct summing *s, struct share *h, struct worker *w, struct err *e)
{
	struct sums mine = { 0 };
	uint32_t nodes = h->scan.source->tabs.node_count;
	enum status st = sums_new(s, nodes, &mine, e);
	bool room = st == OK;
	if (room)
		st = note(s, add_pieces(s, h, w, &mine, e), e);
	lock_take(&s->lock);
	while (room && h->open) /* its owner adds to the same sums until it closes it */
		lock_wait(&s->changed, &s->lock);
	if (room)
		sums_add(&h->sums, &mine, nodes);
	h->helpers--;
	pthread_cond_broadcast(&s->changed);
	lock_release(&s->lock);
	sums_free(s, &mine, nodes);
	return st;
}

/* Gives a thread its next source. `loading` tells idle threads that they may soon help with it. */
static bool take_source(struct summing *s, struct share *h)
{
	lock_take(&s->lock);
	size_t i = atomic_fetch_add(&s->next, 1);
	bool more = i < s->order_count && !atomic_load(&s->stop);
	if (more) {
		h->index = s->order[i];
		h->loading = true;
	}
	lock_release(&s->lock);
	return more;
}

static void work(void *ctx, unsigned number)
{
	struct summing *s = ctx;
	struct share *h = &s->shares[number];
	struct worker w = { .number = number };
	struct err e = { 0 };
	enum status st = OK;
	scanner_init(&w.scanner);
	while (st == OK && take_source(s, h))
		st = note(s, sum_source(s, h, &w, &e), &e);
	while (st == OK && (h = find_help(s)))
		st = sum_help(s, h, &w, &e); /* no room to help is no failure */
	scanner_deinit(&w.scanner);
}

/* ---- the whole ---- */

static int by_rows(const void *a, const void *b, void *ctx)
{
	const struct source *sources = ctx;
	const struct source *x = &sources[*(const size_t *)a], *y = &sources[*(const size_t *)b];
	uint64_t rx = x->part ? part_meta(x->part)->rows : x->mem.row_count;
	uint64_t ry = y->part ? part_meta(y->part)->rows : y->mem.row_count;
	if (rx != ry)
		return rx > ry ? -1 : 1;
	return 0;
}

static enum status deal(struct summing *s, unsigned width, struct err *e)
{
	size_t n = s->v->source_count;
	s->order = calloc(MAX(n, (size_t)1), sizeof(*s->order));
	s->shares = calloc(width, sizeof(*s->shares));
	s->trees = calloc(width, sizeof(*s->trees));
	if (!s->order || !s->shares || !s->trees)
		return err_set(e, E_NOMEM, "a sum");
	for (size_t i = 0; i < n; i++)
		if (s->picks[i].wanted)
			s->order[s->order_count++] = i;
	if (s->order_count)
		qsort_r(s->order, s->order_count, sizeof(*s->order), by_rows, s->v->sources);
	s->width = width;
	enum status st = OK;
	unsigned trees = (unsigned)MAX(MIN((s->order_count + 1) / 2, (size_t)width), (size_t)1);
	for (; s->tree_count < trees && st == OK; s->tree_count++)
		st = tree_init(&s->trees[s->tree_count], s->is_gauge, &s->budget, e);
	return st;
}

/* Joins the trees, and makes the answer of the result. */
static enum status finish(struct summing *s, struct samples_tree *out, struct err *e)
{
	struct tree *all = &s->trees[0];
	enum status st = OK;
	for (unsigned i = 1; i < s->tree_count && st == OK; i++) {
		st = tree_add_tree(all, &s->trees[i], e);
		tree_deinit(&s->trees[i]);
		s->trees[i] = (struct tree){ 0 };
	}
	if (st == OK && all->nodes.len == 0 && !VEC_PUSH(&all->nodes, (struct samples_node){ 0 }))
		st = err_set(e, E_NOMEM, "a tree");
	if (st != OK)
		return st;
	struct samples_tree t = { .tables = all->tables, .sample_count = s->samples };
	st = found_type_put(&s->type, &t);
	all->tables = t.tables; /* the array may have moved */
	if (st != OK)
		return budget_fail(all->budget, st, e);
	for (size_t i = 0; i < all->nodes.len; i++) {
		struct samples_node *n = &all->nodes.v[i];
		if (all->averages)
			n->self = (int64_t)llround(all->averages[i]);
		t.total = wrap_add(t.total, n->self);
	}
	if (s->first_ns <= s->last_ns) {
		t.first_ns = s->first_ns;
		t.last_ns = s->last_ns;
	}
	memcpy(&t.nodes, &all->nodes, sizeof(t.nodes));
	all->tables = (struct profile){ 0 };
	memset(&all->nodes, 0, sizeof(all->nodes));
	*out = t;
	return OK;
}

static enum status sum_stacks(struct store_view *v, const struct samples_query *q, unsigned width,
	struct samples_tree *out, struct err *e)
{
	CLEANUP(summing_deinit)
	struct summing s = { .v = v,
		.q = q,
		.budget = query_budget(v, q),
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN };
	s.picks = view_picks_new(v);
	enum status st = s.picks ? OK : err_set(e, E_NOMEM, "a view");
	if (st == OK)
		st = view_pick(v, q, NULL, &s.budget, s.picks, e);
	if (st == OK)
		st = picks_type(v, s.picks, q->times_period, &s.type, e);
	s.is_gauge = st == OK && s.type.found && !s.type.delta;
	if (s.is_gauge)
		st = gauge_init(&s.gauge, v, s.picks, q, &s.budget, e);
	if (st == OK)
		st = deal(&s, width, e);
	if (st != OK)
		return st;
	lock_init(&s.lock, LOCK_ONE_QUERY);
	pthread_cond_init(&s.changed, NULL);
	os_pool_run(v->store->config.pool, width, work, &s);
	lock_destroy(&s.lock);
	pthread_cond_destroy(&s.changed);
	if (s.status != OK) {
		*e = s.err;
		return s.status;
	}
	int64_t covered_ns = 0;
	if (q->durations)
		st = durations_of_all(v, s.picks, q, s.samples, &s.budget, &covered_ns, e);
	if (st == OK)
		st = finish(&s, out, e);
	if (st == OK)
		out->covered_ns = covered_ns;
	return st;
}

enum status store_sum_stacks(struct store_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	unsigned width = query_memory_width(&v->memory);
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do {
		s = sum_stacks(v, q, width, out, e);
		if (s == E_LIMIT && width > 1) {
			width = 1;
			s = sum_stacks(v, q, width, out, e);
		}
	} while (view_heal(v, s, e));
	return s;
}
