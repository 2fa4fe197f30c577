/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the store implements samples/samples.h: each operation calls its function in queries.h. The
 * memory of an answer is counted until the view is closed. An error text does not tell clients
 * where the server keeps its files.
 */
#include "store/read/queries.h"

#include <stdlib.h>

static const struct samples_ops ops, query_ops;

static struct store_view *mine(struct samples_view *v)
{
	return (struct store_view *)v;
}

static enum status view_open(
	struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e)
{
	struct store_view *v;
	enum status s = store_view_open((struct store *)db, tenant, &v, e);
	if (s != OK)
		return s;
	v->base.ops = &ops;
	*out = &v->base;
	return OK;
}

static enum status query_view_open(
	struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e)
{
	struct store_query *q = (struct store_query *)db;
	enum status s = view_open(&q->store->samples, tenant, out, e);
	if (s == OK)
		mine(*out)->memory.query = q;
	return s;
}

static void view_close(struct samples_view *v)
{
	store_view_close(mine(v));
}

static enum status hold_more(struct samples_view *view, uint64_t bytes, struct err *e)
{
	struct store_view *v = mine(view);
	uint64_t limit = v->store->config.memory_bytes / 4;
	if (bytes > limit || v->memory.kept > limit - bytes)
		return err_set(e, E_LIMIT,
			"the answer needs more than the %llu MiB of memory that queries have: a "
			"shorter time range or a narrower selector fits, or a larger "
			"--storage-memory",
			(unsigned long long)(limit >> 20));
	return query_memory_hold(&v->memory, bytes, e);
}

/* Writes the error text for a client, without the server's paths. */
static enum status tell(struct samples_view *v, enum status s, struct err *e)
{
	const char *dir = mine(v)->store->parts_dir;
	size_t len = strlen(dir);
	if (s == OK || !e)
		return s;
	for (char *at = e->text; (at = strstr(at, dir)) != NULL;)
		if (at[len] == '/')
			memmove(at, at + len + 1, strlen(at + len + 1) + 1);
		else
			at += len;
	return s;
}

static enum status types(struct samples_view *v, int64_t from_ns, int64_t to_ns, struct arena *a,
	struct samples_type **out, size_t *out_count, struct err *e)
{
	return tell(v, store_types(mine(v), from_ns, to_ns, a, out, out_count, e), e);
}

static enum status label_names(struct samples_view *v, const struct samples_query *q,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	return tell(v, store_label_names(mine(v), q, a, out, out_count, e), e);
}

static enum status label_values(struct samples_view *v, const struct samples_query *q,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	return tell(v, store_label_values(mine(v), q, name, a, out, out_count, e), e);
}

static enum status sum_stacks(struct samples_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e)
{
	enum status s = store_sum_stacks(mine(v), q, out, e);
	if (s == OK)
		query_memory_keep(&mine(v)->memory,
			profile_bytes(&out->tables) + out->nodes.cap * sizeof(*out->nodes.v));
	return tell(v, s, e);
}

static enum status sum_series(struct samples_view *v, const struct samples_query *q,
	const struct str *by, size_t by_count, int64_t step_ns, struct arena *a,
	struct samples_series **out, size_t *out_count, struct samples_type *out_type,
	int64_t *out_period, struct err *e)
{
	return tell(v,
		store_sum_series(mine(v), q, by, by_count, step_ns, a, out, out_count, out_type,
			out_period, e),
		e);
}

static enum status collect(struct samples_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct profile *out, struct err *e)
{
	enum status s = store_collect(mine(v), q, keep_labels, keep_count, out, e);
	if (s == OK)
		query_memory_keep(&mine(v)->memory, profile_bytes(out));
	return tell(v, s, e);
}

static enum status sum_cells(struct samples_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct samples_cells *out, struct err *e)
{
	enum status s = store_sum_cells(mine(v), q, keep_labels, keep_count, out, e);
	if (s == OK)
		query_memory_keep(
			&mine(v)->memory, profile_bytes(&out->tree.tables) +
						  out->tree.nodes.cap * sizeof(*out->tree.nodes.v) +
						  out->groups.cap * sizeof(*out->groups.v) +
						  out->v.cap * sizeof(*out->v.v));
	return tell(v, s, e);
}

static enum status where(struct samples_view *v, const struct samples_query *q,
	samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e)
{
	return tell(v, store_where(mine(v), q, choose, ctx, a, out, out_count, e), e);
}

/* Two tables of operations that differ in how a view is opened. */
#define OPS(open)                                                                                 \
	{                                                                                         \
		.hold = hold_more, .where = where, .view_open = (open), .view_close = view_close, \
		.types = types, .label_names = label_names, .label_values = label_values,         \
		.sum_stacks = sum_stacks, .sum_cells = sum_cells, .sum_series = sum_series,       \
		.collect = collect,                                                               \
	}
static const struct samples_ops ops = OPS(view_open);
static const struct samples_ops query_ops = OPS(query_view_open);

struct samples_db *store_samples(struct store *s)
{
	s->samples.ops = &ops;
	return &s->samples;
}

/* ---- one query ---- */

enum status store_query_init(struct store_query *q, struct store *s, int64_t until_ns,
	samples_cancel_fn *cancel, void *ctx, struct err *e)
{
	*q = (struct store_query){ .base = { &query_ops },
		.store = s,
		.holder = calloc(1, sizeof(*q->holder)),
		.cancel = cancel,
		.cancel_ctx = ctx,
		.until_ns = until_ns };
	return q->holder ? OK : err_set(e, E_NOMEM, "a query");
}

void store_query_deinit(struct store_query *q)
{
	if (q->holder)
		memory_leave(&q->store->queries_memory, q->holder);
	free(q->holder);
	q->holder = NULL;
}

bool store_query_again(struct store_query *q)
{
	return query_memory_again(q);
}
