/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lists of querier.v1: types, names of labels, their values, and the sets that they have
 * together. A selector without a condition on types is queried once, others once for each matching
 * type.
 */
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/querier.h"
#include "server/request/request.h"

#include "base/clock.h"

#include <stdlib.h>

/* The most label sets in one answer. */
#define SETS_MAX 10000
#define SET_BYTES_MAX ((size_t)1 << 20)

/* ---- lists of texts ---- */

struct texts {
	struct str *v;
	size_t count, cap;
};

static enum status add_text(struct server_call *c, struct texts *t, struct str text)
{
	if (t->count == t->cap) {
		size_t cap = MAX(2 * t->cap, (size_t)64);
		struct str *more = ARENA_ARRAY(&c->a, struct str, cap);
		if (!more)
			return server_call_no_memory(c);
		if (t->count)
			memcpy(more, t->v, t->count * sizeof(*more));
		t->v = more;
		t->cap = cap;
	}
	t->v[t->count++] = text;
	return OK;
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Each once. */
static void sort_texts(struct texts *t)
{
	size_t kept = 0;
	if (t->count > 1)
		qsort(t->v, t->count, sizeof(*t->v), by_text);
	for (size_t i = 0; i < t->count; i++)
		if (i == 0 || !str_eq(t->v[i], t->v[kept - 1]))
			t->v[kept++] = t->v[i];
	t->count = kept;
}

/* As field 1. */
static void put_texts(struct texts *t, struct buf *out)
{
	sort_texts(t);
	for (size_t i = 0; i < t->count; i++)
		pb_put_str_always(out, 1, t->v[i]);
}

/* ---- types, labels, values ---- */

static bool is_twin(const struct querier_types *types, size_t i)
{
	return i > 0 && str_eq(types->v[i].name, types->v[i - 1].name) &&
	       str_eq(types->v[i].sample_type, types->v[i - 1].sample_type) &&
	       str_eq(types->v[i].sample_unit, types->v[i - 1].sample_unit) &&
	       str_eq(types->v[i].period_type, types->v[i - 1].period_type) &&
	       str_eq(types->v[i].period_unit, types->v[i - 1].period_unit);
}

static enum status profile_types(struct server_call *c)
{
	struct pyroscope_query q;
	struct querier_types types = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_PROFILE_TYPES, &q, c->e);
	if (s == OK)
		s = querier_types_list(c, q.start_ms, q.end_ms, &types);
	for (size_t i = 0; s == OK && i < types.count; i++) {
		const struct samples_type *t = &types.v[i];
		if (is_twin(&types, i))
			continue;
		size_t begun = pb_begin(c->out, 1);
		pb_put_str(c->out, 1, querier_type_part(t, STR("__profile_type__"), c));
		pb_put_str(c->out, 2, t->name);
		pb_put_str(c->out, 4, t->sample_type);
		pb_put_str(c->out, 5, t->sample_unit);
		pb_put_str(c->out, 6, t->period_type);
		pb_put_str(c->out, 7, t->period_unit);
		pb_end(c->out, begun);
	}
	return s;
}

typedef enum status index_fn(
	struct server_call *c, const struct query_request *q, struct str name, struct texts *out);

static enum status add_labels(
	struct server_call *c, const struct query_request *q, struct str name, struct texts *out)
{
	struct str *found = NULL;
	size_t count = 0;
	(void)name;
	enum status s = query_list_labels(c->engine, q, &c->a, &found, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++)
		s = add_text(c, out, found[i]);
	return s;
}

static enum status add_values(
	struct server_call *c, const struct query_request *q, struct str name, struct texts *out)
{
	struct str *found = NULL;
	size_t count = 0;
	enum status s = query_list_values(c->engine, q, name, &c->a, &found, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++)
		s = add_text(c, out, found[i]);
	return s;
}

/* Calls fn once for a filter without conditions on types, else for each matching type. */
static enum status each_type(struct server_call *c, const struct pyroscope_query *in,
	const struct querier_types *types, const struct querier_filter *f, index_fn *fn,
	struct str name, struct texts *out)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < (f->type_count ? types->count : 1); i++) {
		const struct samples_type *t = f->type_count ? &types->v[i] : NULL;
		struct query_request q = querier_request(c, STR(""));
		if (t && !querier_type_fits(c, f, t))
			continue;
		querier_set_range(&q, in->start_ms, in->end_ms);
		s = querier_filter_text(c, f, t, NULL, 0, &q.selector);
		if (s == OK)
			s = fn(c, &q, name, out);
	}
	return s;
}

/* Whether series of the type have the requested labels. */
static enum status type_has(struct server_call *c, const struct pyroscope_query *in,
	const struct querier_filter *f, const struct samples_type *t, bool *out)
{
	struct query_request q = querier_request(c, STR(""));
	struct texts labels = { 0 };
	*out = f->label_count == 0;
	if (*out)
		return OK;
	querier_set_range(&q, in->start_ms, in->end_ms);
	enum status s = querier_filter_text(c, f, t, NULL, 0, &q.selector);
	if (s == OK)
		s = add_labels(c, &q, STR(""), &labels);
	*out = labels.count > 0;
	return s;
}

/* Queries each selector of the request by itself; without any, all samples. fn NULL: `name` is a
 * part of types. */
static enum status each_selector(struct server_call *c, const struct pyroscope_query *in,
	index_fn *fn, struct str name, struct texts *out)
{
	struct querier_types types = { 0 };
	enum status s = querier_types_list(c, in->start_ms, in->end_ms, &types);
	for (uint32_t i = 0; s == OK && i < MAX(in->matchers.count, 1u); i++) {
		CLEANUP(querier_filter_deinit) struct querier_filter f = { 0 };
		s = querier_filter_read(c, in->matchers.count ? in->matchers.v[i] : STR(""), &f);
		for (size_t k = 0; s == OK && !fn && k < types.count; k++) {
			bool has = querier_type_fits(c, &f, &types.v[k]);
			if (has)
				s = type_has(c, in, &f, &types.v[k], &has);
			struct str part = querier_type_part(&types.v[k], name, c);
			if (s == OK && has && part.len)
				s = add_text(c, out, part);
		}
		if (s == OK && fn)
			s = each_type(c, in, &types, &f, fn, name, out);
	}
	return s;
}

static enum status label_names(struct server_call *c)
{
	struct pyroscope_query q;
	struct texts names = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_LABEL_NAMES, &q, c->e);
	if (s == OK)
		s = each_selector(c, &q, add_labels, STR(""), &names);
	for (size_t i = 0; s == OK && i < names.count; i++)
		if (str_eq(names.v[i], STR("service_name"))) { /* also by its other name */
			s = add_text(c, &names, STR("__service_name__"));
			break;
		}
	for (size_t i = 0; s == OK && names.count && i < QUERIER_TYPE_LABELS; i++)
		s = add_text(c, &names, str_of(querier_type_labels[i]));
	if (s == OK)
		put_texts(&names, c->out);
	return s;
}

static enum status label_values(struct server_call *c)
{
	struct pyroscope_query q;
	struct texts values = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_LABEL_VALUES, &q, c->e);
	if (s == OK && q.label.len == 0)
		s = err_set(c->e, E_INVALID, "name: cannot be blank");
	if (s != OK)
		return s;
	struct str name = querier_plain_name(c, q.label);
	s = each_selector(c, &q, querier_is_type_label(name) ? NULL : add_values, name, &values);
	if (s == OK)
		put_texts(&values, c->out);
	return s;
}

/* ---- Series: the sets of values that some labels have together ---- */

/* Label sets of all types, each once. */
struct sets_found {
	struct buf set; /* the current set: types.v1.Labels */
	struct texts sets;
	struct map index; /* of sets */
};

struct sets {
	struct server_call *c;
	const struct pyroscope_query *in;
	const struct querier_filter *f;
	const struct samples_type *type;
	struct selector_matcher chosen[PYROSCOPE_LIST_MAX];
	uint32_t chosen_count;
	struct sets_found *found;
};

static bool set_equal(const void *ctx, uint32_t value, const void *key)
{
	return str_eq(((const struct texts *)ctx)->v[value], *(const struct str *)key);
}

/* Adds the set in found->set to the answer, unless it is there already. */
static enum status keep_set(struct server_call *c, struct sets_found *found)
{
	struct str set = buf_view(&found->set);
	uint64_t hash = hash64(set.p, set.len);
	enum status s = buf_status(&found->set);
	if (s != OK)
		return err_set(c->e, s, "a set of labels");
	if (!set.len || map_find(&found->index, hash, set_equal, &found->sets, &set) != MAP_NONE)
		return OK;
	if (found->sets.count == SETS_MAX)
		return err_set(c->e, E_LIMIT, "more than %d sets of labels", SETS_MAX);
	char *copy = arena_copy(&c->a, set.p, set.len);
	if (!copy || !map_insert(&found->index, hash, (uint32_t)found->sets.count))
		return server_call_no_memory(c);
	pb_put_str(c->out, 2, set);
	return add_text(c, &found->sets, str_make(copy, set.len));
}

/* A label without a value is absent. */
static void put_label(struct buf *set, struct str name, struct str value)
{
	if (value.len)
		querier_put_pair(set, name, value);
}

static enum status put_set(struct sets *x)
{
	struct server_call *c = x->c;
	struct buf *set = &x->found->set;
	uint32_t k = 0;
	buf_clear(set);
	for (uint32_t i = 0; i < x->in->names.count; i++) {
		struct str name = x->in->names.v[i];
		if (querier_is_type_label(name)) {
			put_label(set, name, querier_type_part(x->type, name, c));
		} else if (k < x->chosen_count) {
			put_label(set, name, x->chosen[k].value);
			k++;
		}
	}
	return keep_set(c, x->found);
}

/* Tries each value that the next label has together with those chosen already, and its absence, if
 * any series remain then. */
static enum status choose(struct sets *x, uint32_t at)
{
	struct server_call *c = x->c;
	struct texts values = { 0 };
	struct query_request q = querier_request(c, STR(""));
	while (at < x->in->names.count && querier_is_type_label(x->in->names.v[at]))
		at++;
	if (at == x->in->names.count) {
		/* Without a chosen label the view was not asked yet whether there is any series. */
		bool has = true;
		enum status none = OK;
		if (x->chosen_count == 0)
			none = type_has(c, x->in, x->f, x->type, &has);
		return none == OK && has ? put_set(x) : none;
	}
	if (server_client_gone((void *)(uintptr_t)c->r))
		return err_set(c->e, E_CANCELED, "the caller went away");
	if (clock_monotonic_ns() > c->deadline_ns)
		return err_set(c->e, E_TIMEOUT, "too many sets of labels: narrow the selector");
	struct selector_matcher *m = &x->chosen[x->chosen_count];
	*m = (struct selector_matcher){ .name = querier_plain_name(c, x->in->names.v[at]) };
	querier_set_range(&q, x->in->start_ms, x->in->end_ms);
	enum status s =
		querier_filter_text(c, x->f, x->type, x->chosen, x->chosen_count, &q.selector);
	if (s == OK)
		s = add_values(c, &q, m->name, &values);
	x->chosen_count++;
	for (size_t i = 0; s == OK && i < values.count; i++) {
		m->value = values.v[i];
		s = choose(x, at + 1);
	}
	struct texts left = { 0 };
	m->value = STR("");
	if (s == OK)
		s = querier_filter_text(c, x->f, x->type, x->chosen, x->chosen_count, &q.selector);
	if (s == OK)
		s = add_labels(c, &q, STR(""), &left);
	if (s == OK && left.count)
		s = choose(x, at + 1);
	x->chosen_count--;
	return s;
}

/* Without requested labels: each series with all its labels. */
static enum status put_all_sets(struct sets *x)
{
	struct server_call *c = x->c;
	struct query_request q = querier_request(c, STR(""));
	struct query_range range = { 0 };
	struct str *names = NULL;
	size_t count = 0;
	querier_set_range(&q, x->in->start_ms, x->in->end_ms);
	q.from_ns = MAX(q.from_ns, x->type->first_ns);
	q.to_ns = MIN(q.to_ns, x->type->last_ns + 1);
	if (q.from_ns >= q.to_ns)
		return OK;
	q.step_ns = q.to_ns - q.from_ns;
	enum status s = querier_filter_text(c, x->f, x->type, NULL, 0, &q.selector);
	if (s == OK)
		s = querier_series_labels(c, &q, &names, &count);
	if (s == OK && count)
		s = query_range(c->engine, &q, names, count, &c->a, &range, c->e);
	for (size_t i = 0; s == OK && i < range.count; i++) {
		struct buf *set = &x->found->set;
		buf_clear(set);
		for (size_t k = 0; k < QUERIER_TYPE_LABELS; k++) {
			struct str name = str_of(querier_type_labels[k]);
			put_label(set, name, querier_type_part(x->type, name, c));
		}
		for (size_t k = 0; k < count; k++) {
			struct str value = range.series[i].values[k];
			if (str_eq(names[k], STR("service_name")))
				put_label(set, STR("__service_name__"), value);
			put_label(set, names[k], value);
		}
		s = keep_set(c, x->found);
	}
	return s;
}

static enum status series(struct server_call *c)
{
	struct pyroscope_query q;
	struct querier_types types = { 0 };
	struct sets_found found = { 0 };
	buf_init(&found.set, SET_BYTES_MAX);
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_SERIES, &q, c->e);
	if (s == OK)
		s = querier_types_list(c, q.start_ms, q.end_ms, &types);
	for (uint32_t i = 0; s == OK && i < MAX(q.matchers.count, 1u); i++) {
		CLEANUP(querier_filter_deinit) struct querier_filter f = { 0 };
		s = querier_filter_read(c, q.matchers.count ? q.matchers.v[i] : STR(""), &f);
		for (size_t k = 0; s == OK && k < types.count; k++) {
			struct sets x = { c, &q, &f, &types.v[k], .found = &found };
			if (querier_type_fits(c, &f, &types.v[k]) && !is_twin(&types, k))
				s = q.names.count ? choose(&x, 0) : put_all_sets(&x);
		}
	}
	buf_deinit(&found.set);
	map_deinit(&found.index);
	return s;
}

static enum status profile_stats(struct server_call *c)
{
	struct querier_types types = { 0 };
	int64_t first = INT64_MAX, last = 0;
	enum status s = querier_types_list(c, 0, 0, &types);
	if (s != OK || types.count == 0)
		return s;
	for (size_t i = 0; i < types.count; i++) {
		first = MIN(first, types.v[i].first_ns);
		last = MAX(last, types.v[i].last_ns);
	}
	pb_put_bool(c->out, 1, true);
	pb_put_i64(c->out, 2, first / NS_PER_MS);
	pb_put_i64(c->out, 3, last / NS_PER_MS);
	return OK;
}

/* ---- GET /pyroscope/label-values ---- */

/* Writes a list in JSON, with `before` and `behind` around each text. */
static enum status write_values(
	struct server_call *c, struct str label, const char *before, const char *behind)
{
	struct pyroscope_query all = { .start_ms = 0 };
	struct texts values = { 0 };
	struct str name = querier_plain_name(c, label);
	enum status s = each_selector(
		c, &all, querier_is_type_label(name) ? NULL : add_values, name, &values);
	if (s != OK)
		return s;
	sort_texts(&values);
	buf_u8(c->out, '[');
	for (size_t i = 0; i < values.count; i++) {
		buf_cstr(c->out, i ? "," : "");
		buf_cstr(c->out, before);
		buf_json_str(c->out, values.v[i]);
		buf_cstr(c->out, behind);
	}
	buf_u8(c->out, ']');
	return OK;
}

static enum status plain_label_values(struct server_call *c)
{
	struct str label = STR("");
	if (!net_query_param(c->r, "label", 0, &c->a, &label) || label.len == 0)
		return err_set(c->e, E_INVALID, "label: cannot be blank");
	return write_values(c, label, "", "");
}

/* GET /api/apps, of Pyroscope before 1.0. */
static enum status apps(struct server_call *c)
{
	return write_values(c, STR("service_name"), "{\"name\":", "}");
}

/* ---- handlers ---- */

SERVER_CALL_HANDLER(server_querier_profile_types, profile_types)
SERVER_CALL_HANDLER(server_querier_label_names, label_names)
SERVER_CALL_HANDLER(server_querier_label_values, label_values)
SERVER_CALL_HANDLER(server_querier_series, series)
SERVER_CALL_HANDLER(server_querier_profile_stats, profile_stats)

void server_pyroscope_label_values(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	server_call_answer(ctx, r, out, plain_label_values);
}

void server_pyroscope_apps(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	server_call_answer(ctx, r, out, apps);
}
