/* SPDX-License-Identifier: Apache-2.0 */
/*
 * querier.v1.QuerierService, which Grafana, its Drilldown and profilecli ask, and GET
 * /pyroscope/render. Their selectors are Prometheus': regular expressions are anchored, and the
 * parts of a profile type are labels too (__profile_type__, __name__, __type__, __unit__,
 * __period_type__, __period_unit__). Their types do not say whether they are deltas: of a type that
 * is there both ways, the delta is meant. Counts stay counts: the unit is that of the type.
 */
#include "base/clock.h"
#include "codec/codec.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"
#include "selector/selector.h"
#include "server/internal.h"

#include <math.h>
#include <stdlib.h>

#define ARENA_BYTES_MAX ((size_t)256 << 20)
#define SELECTOR_TEXT_MAX ((size_t)SELECTOR_BYTES_MAX + 4096)
/* Sets of labels in one answer. */
#define SETS_MAX 10000
#define RENDER_NODES_DEFAULT 8192
/* The version of querier.v1's messages, as Pyroscope counts it. */
#define QUERIER_API 1
/* __name__ while firn's own parser reads it. */
#define NAME_LABEL "__type_name__"

static bool client_gone(void *ctx)
{
	const struct net_request *r = (const struct net_request *)ctx;
	return r->gone(r);
}

/* ---- the frame around each call ---- */

struct call {
	const struct query_engine *engine;
	const struct net_request *r;
	struct str tenant;
	int64_t deadline_ns; /* monotonic: of all that one call asks the store */
	struct arena a;
	struct buf *out;
	struct err *e;
};
typedef enum status call_fn(struct call *c);

static void answer(void *ctx, const struct net_request *r, struct net_response *out, call_fn *fn)
{
	struct server *s = (struct server *)ctx;
	struct err e = { 0 };
	struct server_query query;
	if (!server_is_ready(s, out))
		return;
	struct call c = { .engine = &query.engine, .r = r, .out = &out->body, .e = &e };
	arena_init(&c.a, ARENA_BYTES_MAX);
	enum status status = server_query_begin(s, r, &query, &e);
	if (status == OK)
		status = server_tenant(s, r, &c.tenant, &e);
	if (status == OK)
		do {
			arena_deinit(&c.a);
			arena_init(&c.a, ARENA_BYTES_MAX);
			buf_clear(&out->body);
			c.deadline_ns = clock_monotonic_ns() + QUERY_TIME_MAX_NS;
			status = fn(&c);
		} while (server_query_again(&query, status));
	if (status == OK && buf_status(&out->body) != OK)
		status = err_set(&e, buf_status(&out->body), "the answer is larger than %zu MiB",
			out->body.max >> 20);
	server_query_end(&query, status);
	arena_deinit(&c.a);
	if (status != OK)
		net_fail(out, status, &e);
}

static enum status no_memory(struct call *c)
{
	return err_set(c->e, arena_status(&c->a), "the query");
}

static struct query_request request_of(struct call *c, struct str selector)
{
	return (struct query_request){ .tenant = c->tenant,
		.selector = selector,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.counts = true,
		.deadline_ns = c->deadline_ns,
		.cancel = client_gone,
		.cancel_ctx = (void *)(uintptr_t)c->r };
}

/* Milliseconds as they are asked for; both ends belong to the range. None at all: all of time. */
static void set_range(struct query_request *q, int64_t start_ms, int64_t end_ms)
{
	int64_t most = INT64_MAX / NS_PER_MS - 1;
	if (start_ms == 0 && end_ms == 0)
		return;
	q->from_ns = MIN(MAX(start_ms, 0), most) * NS_PER_MS;
	q->to_ns = (MIN(MAX(end_ms, 0), most) + 1) * NS_PER_MS;
}

/* ---- selectors ---- */

/* Matchers of labels as a selector's text, and those of types. */
struct filter {
	struct selector parsed; /* anchored, of both */
	struct selector_matcher types[SELECTOR_MATCHERS_MAX];
	uint32_t type_count;
	struct selector_matcher labels[SELECTOR_MATCHERS_MAX];
	uint32_t label_count;
};

static void filter_deinit(struct filter *f)
{
	selector_deinit(&f->parsed);
}

static struct str type_part(const struct samples_type *t, struct str name, struct call *c)
{
	const struct {
		const char *name;
		struct str part;
	} parts[] = { { "__name__", t->name }, { NAME_LABEL, t->name },
		{ "__type__", t->sample_type }, { "__unit__", t->sample_unit },
		{ "__period_type__", t->period_type }, { "__period_unit__", t->period_unit } };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_eq(name, str_of(parts[i].name)))
			return parts[i].part;
	char *id = arena_printf(&c->a, "%.*s:%.*s:%.*s:%.*s:%.*s", STR_ARG(t->name),
		STR_ARG(t->sample_type), STR_ARG(t->sample_unit), STR_ARG(t->period_type),
		STR_ARG(t->period_unit));
	return id ? str_of(id) : STR("");
}

static const char *const type_labels[] = { "__name__", "__period_type__", "__period_unit__",
	"__profile_type__", "__type__", "__unit__" };

static bool is_type_label(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(type_labels); i++)
		if (str_eq(name, str_of(type_labels[i])))
			return true;
	return str_eq(name, STR(NAME_LABEL));
}

static enum status copy_text(struct call *c, struct buf *text, struct str *out)
{
	enum status s = buf_status(text);
	char *copy = s == OK ? arena_copy(&c->a, text->data, text->len) : NULL;
	if (!copy)
		return err_set(
			c->e, s == OK ? arena_status(&c->a) : E_INVALID, "a selector is too long");
	*out = str_make(copy, text->len);
	return OK;
}

/* A label's name as firn has it. */
static struct str plain_name(struct call *c, struct str name)
{
	if (str_eq(name, STR("__service_name__")))
		return STR("service_name");
	char *copy = arena_copy(&c->a, name.p, name.len);
	for (size_t i = 0; copy && i < name.len; i++)
		if (copy[i] == '.' || copy[i] == '-' || copy[i] == '/')
			copy[i] = '_';
	return copy ? str_make(copy, name.len) : STR("");
}

/* The same selector with regular expressions that match whole values. */
static enum status anchor(struct call *c, struct selector *s, struct str *out)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, SELECTOR_TEXT_MAX);
	for (uint32_t i = 0; i < s->matcher_count; i++) {
		struct selector_matcher *m = &s->matchers[i];
		m->name = plain_name(c, m->name);
		if (m->op != SELECTOR_RE && m->op != SELECTOR_NRE)
			continue;
		char *value = arena_printf(&c->a, "^(?:%.*s)$", STR_ARG(m->value));
		if (!value)
			return no_memory(c);
		m->value = str_of(value);
	}
	selector_write(&text, s);
	return copy_text(c, &text, out);
}

/* In firn's selectors __name__ is the whole type; here it is the first part of it. */
static enum status rename_names(struct call *c, struct str text, struct str *out)
{
	const struct str name = STR("__name__");
	CLEANUP(buf_deinit) struct buf b;
	char quote = 0;
	buf_init(&b, SELECTOR_TEXT_MAX);
	for (size_t i = 0; i < text.len; i++) {
		char ch = text.p[i];
		bool escaped = quote && quote != '`' && ch == '\\' && i + 1 < text.len;
		if (!quote && str_starts(str_sub(text, i, text.len), name)) {
			buf_cstr(&b, NAME_LABEL);
			i += name.len - 1;
			continue;
		}
		buf_u8(&b, (uint8_t)ch);
		if (escaped)
			buf_u8(&b, (uint8_t)text.p[++i]);
		else if (quote ? ch == quote : ch == '"' || ch == '\'' || ch == '`')
			quote = quote ? 0 : ch;
	}
	return copy_text(c, &b, out);
}

static enum status read_filter(struct call *c, struct str text, struct filter *out)
{
	struct selector first = { 0 };
	*out = (struct filter){ 0 };
	text = str_trim(text);
	enum status s = rename_names(c, text.len ? text : STR("{}"), &text);
	if (s == OK)
		s = selector_parse(text, &c->a, &first, c->e);
	if (s == OK)
		s = anchor(c, &first, &text);
	selector_deinit(&first);
	if (s == OK)
		s = selector_parse(text, &c->a, &out->parsed, c->e);
	if (s != OK)
		return s;
	for (uint32_t i = 0; i < out->parsed.matcher_count; i++) {
		const struct selector_matcher *m = &out->parsed.matchers[i];
		if (is_type_label(m->name))
			out->types[out->type_count++] = *m;
		else
			out->labels[out->label_count++] = *m;
	}
	return OK;
}

static bool type_fits(struct call *c, const struct filter *f, const struct samples_type *t)
{
	for (uint32_t i = 0; i < f->type_count; i++)
		if (!selector_matches(&f->types[i], type_part(t, f->types[i].name, c)))
			return false;
	return true;
}

/* The labels of a filter, of a type (NULL: of any), and more matchers. */
static enum status filter_text(struct call *c, const struct filter *f, const struct samples_type *t,
	const struct selector_matcher *more, uint32_t more_count, struct str *out)
{
	struct selector_matcher all[2 * SELECTOR_MATCHERS_MAX];
	struct selector s = { .has_type = t != NULL, .matchers = all };
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, SELECTOR_TEXT_MAX);
	for (uint32_t i = 0; i < f->label_count; i++)
		all[s.matcher_count++] = f->labels[i];
	for (uint32_t i = 0; i < more_count; i++)
		all[s.matcher_count++] = more[i];
	if (t) {
		s.delta = t->delta;
		const struct str parts[] = { t->name, t->sample_type, t->sample_unit,
			t->period_type, t->period_unit };
		memcpy(s.type, parts, sizeof(parts));
	}
	selector_write(&text, &s);
	return copy_text(c, &text, out);
}

struct types {
	struct samples_type *v;
	size_t count;
};

static enum status all_types(struct call *c, int64_t start_ms, int64_t end_ms, struct types *out)
{
	struct query_request q = request_of(c, STR("{}"));
	set_range(&q, start_ms, end_ms);
	return query_list_types(c->engine, &q, &c->a, &out->v, &out->count, c->e);
}

/* "process_cpu:cpu:nanoseconds:cpu:nanoseconds"; NULL: there is none. */
static const struct samples_type *find_type(
	struct call *c, const struct types *types, struct str id)
{
	const struct samples_type *found = NULL;
	for (size_t i = 0; i < types->count; i++)
		if (str_eq(type_part(&types->v[i], STR("__profile_type__"), c), id) &&
			(!found || types->v[i].delta))
			found = &types->v[i];
	return found;
}

/* ---- lists of texts ---- */

struct texts {
	struct str *v;
	size_t count, cap;
};

static enum status add_text(struct call *c, struct texts *t, struct str text)
{
	if (t->count == t->cap) {
		size_t cap = MAX(2 * t->cap, (size_t)64);
		struct str *more = ARENA_ARRAY(&c->a, struct str, cap);
		if (!more)
			return no_memory(c);
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

static bool is_twin(const struct types *types, size_t i)
{
	return i > 0 && str_eq(types->v[i].name, types->v[i - 1].name) &&
	       str_eq(types->v[i].sample_type, types->v[i - 1].sample_type) &&
	       str_eq(types->v[i].sample_unit, types->v[i - 1].sample_unit) &&
	       str_eq(types->v[i].period_type, types->v[i - 1].period_type) &&
	       str_eq(types->v[i].period_unit, types->v[i - 1].period_unit);
}

static enum status profile_types(struct call *c)
{
	struct pyroscope_query q;
	struct types types = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_PROFILE_TYPES, &q, c->e);
	if (s == OK)
		s = all_types(c, q.start_ms, q.end_ms, &types);
	for (size_t i = 0; s == OK && i < types.count; i++) {
		const struct samples_type *t = &types.v[i];
		if (is_twin(&types, i))
			continue;
		size_t begun = pb_begin(c->out, 1);
		pb_put_str(c->out, 1, type_part(t, STR("__profile_type__"), c));
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
	struct call *c, const struct query_request *q, struct str name, struct texts *out);

static enum status add_labels(
	struct call *c, const struct query_request *q, struct str name, struct texts *out)
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
	struct call *c, const struct query_request *q, struct str name, struct texts *out)
{
	struct str *found = NULL;
	size_t count = 0;
	enum status s = query_list_values(c->engine, q, name, &c->a, &found, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++)
		s = add_text(c, out, found[i]);
	return s;
}

/* For a filter that says nothing of types once, else for each type that fits. */
static enum status each_type(struct call *c, const struct pyroscope_query *in,
	const struct types *types, const struct filter *f, index_fn *fn, struct str name,
	struct texts *out)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < (f->type_count ? types->count : 1); i++) {
		const struct samples_type *t = f->type_count ? &types->v[i] : NULL;
		struct query_request q = request_of(c, STR(""));
		if (t && !type_fits(c, f, t))
			continue;
		set_range(&q, in->start_ms, in->end_ms);
		s = filter_text(c, f, t, NULL, 0, &q.selector);
		if (s == OK)
			s = fn(c, &q, name, out);
	}
	return s;
}

/* Each selector of the request by itself; without any, all. */
static enum status each_selector(struct call *c, const struct pyroscope_query *in, index_fn *fn,
	struct str name, struct texts *out)
{
	struct types types = { 0 };
	enum status s = all_types(c, in->start_ms, in->end_ms, &types);
	for (uint32_t i = 0; s == OK && i < MAX(in->matchers.count, 1u); i++) {
		CLEANUP(filter_deinit) struct filter f = { 0 };
		s = read_filter(c, in->matchers.count ? in->matchers.v[i] : STR(""), &f);
		for (size_t k = 0; s == OK && !fn && k < types.count; k++)
			if (type_fits(c, &f, &types.v[k]))
				s = add_text(c, out, type_part(&types.v[k], name, c));
		if (s == OK && fn)
			s = each_type(c, in, &types, &f, fn, name, out);
	}
	return s;
}

static enum status label_names(struct call *c)
{
	struct pyroscope_query q;
	struct texts names = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_LABEL_NAMES, &q, c->e);
	if (s == OK)
		s = each_selector(c, &q, add_labels, STR(""), &names);
	for (size_t i = 0; s == OK && names.count && i < ARRAY_COUNT(type_labels); i++)
		s = add_text(c, &names, str_of(type_labels[i]));
	if (s == OK)
		put_texts(&names, c->out);
	return s;
}

static enum status label_values(struct call *c)
{
	struct pyroscope_query q;
	struct texts values = { 0 };
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_LABEL_VALUES, &q, c->e);
	if (s == OK && q.label.len == 0)
		s = err_set(c->e, E_INVALID, "name: cannot be blank");
	if (s != OK)
		return s;
	struct str name = plain_name(c, q.label);
	s = each_selector(c, &q, is_type_label(name) ? NULL : add_values, name, &values);
	if (s == OK)
		put_texts(&values, c->out);
	return s;
}

/* ---- Series: the sets of values that some labels have together ---- */

struct sets {
	struct call *c;
	const struct pyroscope_query *in;
	const struct filter *f;
	const struct samples_type *type;
	struct selector_matcher chosen[PYROSCOPE_LIST_MAX];
	uint32_t chosen_count;
	size_t *count;
};

static void put_pair(struct buf *out, struct str name, struct str value)
{
	size_t pair = pb_begin(out, 1);
	pb_put_str(out, 1, name);
	pb_put_str(out, 2, value);
	pb_end(out, pair);
}

static enum status put_set(struct sets *x)
{
	struct call *c = x->c;
	if (++*x->count > SETS_MAX)
		return err_set(c->e, E_LIMIT, "more than %d sets of labels", SETS_MAX);
	size_t set = pb_begin(c->out, 2);
	uint32_t k = 0;
	for (uint32_t i = 0; i < x->in->names.count; i++) {
		struct str name = x->in->names.v[i];
		if (is_type_label(name)) {
			put_pair(c->out, name, type_part(x->type, name, c));
		} else if (k < x->chosen_count) {
			if (x->chosen[k].value.len)
				put_pair(c->out, name, x->chosen[k].value);
			k++;
		}
	}
	pb_end(c->out, set);
	return OK;
}

/* The values that the next label has beside those chosen already, and its being absent where
 * something is left then. */
static enum status choose(struct sets *x, uint32_t at)
{
	struct call *c = x->c;
	struct texts values = { 0 };
	struct query_request q = request_of(c, STR(""));
	while (at < x->in->names.count && is_type_label(x->in->names.v[at]))
		at++;
	if (at == x->in->names.count)
		return put_set(x);
	if (client_gone((void *)(uintptr_t)c->r))
		return err_set(c->e, E_CANCELED, "the caller went away");
	if (clock_monotonic_ns() > c->deadline_ns)
		return err_set(c->e, E_TIMEOUT, "too many sets of labels: narrow the selector");
	struct selector_matcher *m = &x->chosen[x->chosen_count];
	*m = (struct selector_matcher){ .name = plain_name(c, x->in->names.v[at]) };
	set_range(&q, x->in->start_ms, x->in->end_ms);
	enum status s = filter_text(c, x->f, x->type, x->chosen, x->chosen_count, &q.selector);
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
		s = filter_text(c, x->f, x->type, x->chosen, x->chosen_count, &q.selector);
	if (s == OK)
		s = add_labels(c, &q, STR(""), &left);
	if (s == OK && left.count)
		s = choose(x, at + 1);
	x->chosen_count--;
	return s;
}

static enum status series(struct call *c)
{
	struct pyroscope_query q;
	struct types types = { 0 };
	size_t count = 0;
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_SERIES, &q, c->e);
	if (s == OK && q.names.count == 0)
		s = err_set(c->e, E_UNSUPPORTED, "label_names: which labels has to be said");
	if (s == OK)
		s = all_types(c, q.start_ms, q.end_ms, &types);
	for (uint32_t i = 0; s == OK && i < MAX(q.matchers.count, 1u); i++) {
		CLEANUP(filter_deinit) struct filter f = { 0 };
		s = read_filter(c, q.matchers.count ? q.matchers.v[i] : STR(""), &f);
		for (size_t k = 0; s == OK && k < types.count; k++) {
			struct sets x = { c, &q, &f, &types.v[k], .count = &count };
			if (type_fits(c, &f, &types.v[k]) && !is_twin(&types, k))
				s = choose(&x, 0);
		}
	}
	return s;
}

/* ---- one selection ---- */

/* span_id=~"^(?:a|b)$" and the like. */
static enum status one_of(struct call *c, const char *label, const struct pyroscope_list *list,
	struct selector_matcher *out, uint32_t *count)
{
	CLEANUP(buf_deinit) struct buf text = { 0 };
	if (list->count == 0)
		return OK;
	buf_init(&text, SELECTOR_TEXT_MAX);
	buf_cstr(&text, "^(?:");
	for (uint32_t i = 0; i < list->count; i++) {
		for (size_t k = 0; k < list->v[i].len; k++)
			if (!strchr("0123456789abcdefABCDEF-", list->v[i].p[k]))
				return err_set(c->e, E_INVALID, "%s: not hexadecimal", label);
		buf_cstr(&text, i ? "|" : "");
		buf_str(&text, list->v[i]);
	}
	buf_cstr(&text, ")$");
	out[*count] = (struct selector_matcher){ .name = str_of(label), .op = SELECTOR_RE };
	return copy_text(c, &text, &out[(*count)++].value);
}

/* The selector for query; *out_found false: there is no such type, so the answer is empty. */
static enum status selection(struct call *c, const struct pyroscope_query *in,
	struct query_request *out, bool *out_found)
{
	CLEANUP(filter_deinit) struct filter f = { 0 };
	struct types types = { 0 };
	struct selector_matcher more[2];
	uint32_t count = 0;
	*out = request_of(c, STR(""));
	set_range(out, in->start_ms, in->end_ms);
	if (in->profiles.count)
		return err_set(c->e, E_UNSUPPORTED, "profile_id_selector: ids are not kept");
	if (in->by_calls)
		return err_set(c->e, E_UNSUPPORTED, "stack_trace_selector is not known");
	if (in->average)
		return err_set(c->e, E_UNSUPPORTED, "aggregation: only sums");
	enum status s = all_types(c, 0, 0, &types);
	if (s == OK)
		s = read_filter(c, in->selector, &f);
	if (s == OK)
		s = one_of(c, "span_id", &in->spans, more, &count);
	if (s == OK)
		s = one_of(c, "trace_id", &in->traces, more, &count);
	if (s != OK)
		return s;
	const struct samples_type *t = find_type(c, &types, in->type);
	*out_found = t && type_fits(c, &f, t);
	return *out_found ? filter_text(c, &f, t, more, count, &out->selector) : OK;
}

static int64_t nodes_of(const struct pyroscope_query *q)
{
	if (q->nodes_max <= 0)
		return q->nodes_max < 0 ? PYROSCOPE_NODES_MAX : PYROSCOPE_NODES_DEFAULT;
	return MIN(q->nodes_max, (int64_t)PYROSCOPE_NODES_MAX);
}

static enum status side_of(
	struct call *c, const struct pyroscope_query *in, struct pyroscope_side *out)
{
	static const uint32_t no_node[1];
	static const int64_t no_value[1];
	struct query_request q;
	struct query_flame flame = { 0 };
	bool found = false;
	*out = (struct pyroscope_side){ 1, no_node, no_node, NULL, no_value };
	enum status s = selection(c, in, &q, &found);
	if (s == OK && found)
		s = query_flame(c->engine, &q, &c->a, &flame, c->e);
	if (s == OK && flame.count)
		*out = (struct pyroscope_side){ flame.count, flame.parent, flame.name,
			flame.strings, flame.self };
	return s;
}

static enum status flame_of(
	struct call *c, const struct pyroscope_query *in, struct pyroscope_flame *out)
{
	struct pyroscope_side side;
	enum status s = side_of(c, in, &side);
	return s == OK ? pyroscope_flame_make(&side, NULL, nodes_of(in), &c->a, out, c->e) : s;
}

/* profile.proto, not packed; empty where there is nothing. */
static enum status pprof_of(struct call *c, const struct pyroscope_query *in, struct buf *out)
{
	CLEANUP(buf_deinit) struct buf packed;
	struct query_request q;
	struct query_report info = { 0 };
	bool found = false;
	buf_init(&packed, NET_ANSWER_MAX);
	enum status s = selection(c, in, &q, &found);
	if (s != OK || !found)
		return s;
	struct query_report_request r = { .tenant = c->tenant,
		.side = { .selector = q.selector,
			.from_ns = q.from_ns,
			.to_ns = q.to_ns,
			.single = true },
		.cancel = q.cancel,
		.cancel_ctx = q.cancel_ctx };
	s = query_report_pprof(c->engine, &r, &packed, &info, c->e);
	return s == OK && info.found ? codec_gunzip(packed.data, packed.len, out, c->e) : s;
}

static enum status merge(struct call *c, enum pyroscope_request kind)
{
	struct pyroscope_query q;
	struct pyroscope_flame flame;
	enum status s = pyroscope_query_decode(c->r->body, kind, &q, c->e);
	if (s != OK)
		return s;
	if (q.format == PYROSCOPE_PPROF) {
		size_t pprof = pb_begin(c->out, 5), profile = pb_begin(c->out, 1);
		s = pprof_of(c, &q, c->out);
		pb_end(c->out, profile);
		pb_end(c->out, pprof);
		return s;
	}
	if (q.format > PYROSCOPE_FLAMEGRAPH)
		return err_set(c->e, E_UNSUPPORTED, "format %llu: only flame graphs and pprof",
			(unsigned long long)q.format);
	s = flame_of(c, &q, &flame);
	if (s == OK)
		pyroscope_flame_encode(&flame, 1, c->out);
	return s;
}

static enum status merge_stacktraces(struct call *c)
{
	return merge(c, PYROSCOPE_STACKTRACES);
}

static enum status merge_span_profile(struct call *c)
{
	return merge(c, PYROSCOPE_SPAN_PROFILE);
}

static enum status merge_profile(struct call *c)
{
	struct pyroscope_query q;
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_PROFILE, &q, c->e);
	return s == OK ? pprof_of(c, &q, c->out) : s;
}

static enum status diff_of(struct call *c, const struct pyroscope_query *left,
	const struct pyroscope_query *right, struct pyroscope_flame *out)
{
	struct pyroscope_side sides[2];
	enum status s = side_of(c, left, &sides[0]);
	if (s == OK)
		s = side_of(c, right, &sides[1]);
	return s == OK ? pyroscope_flame_make(
				 &sides[0], &sides[1], nodes_of(left), &c->a, out, c->e)
		       : s;
}

static enum status diff(struct call *c)
{
	struct pyroscope_query left, right;
	struct pyroscope_flame flame;
	enum status s = pyroscope_diff_decode(c->r->body, &left, &right, c->e);
	if (s == OK)
		s = diff_of(c, &left, &right, &flame);
	if (s == OK)
		pyroscope_flame_encode(&flame, 1, c->out);
	return s;
}

/* ---- SelectSeries ---- */

static int64_t sum_of(const struct query_range_series *s)
{
	int64_t sum = 0;
	for (size_t i = 0; i < s->point_count; i++)
		sum = (int64_t)((uint64_t)sum + (uint64_t)s->points[i].value);
	return sum;
}

static int by_sum(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* Series whose sum is below are left out: of `limit`, those with the largest. */
static enum status smallest_sum(
	struct call *c, const struct query_range *r, int64_t limit, int64_t *out)
{
	*out = INT64_MIN;
	if (limit <= 0 || (uint64_t)limit >= r->count)
		return OK;
	int64_t *sums = ARENA_ARRAY(&c->a, int64_t, r->count);
	if (!sums)
		return no_memory(c);
	for (size_t i = 0; i < r->count; i++)
		sums[i] = sum_of(&r->series[i]);
	qsort(sums, r->count, sizeof(*sums), by_sum);
	*out = sums[limit - 1];
	return OK;
}

static void put_series(struct call *c, const struct pyroscope_query *in,
	const struct query_range_series *s, int64_t step_ns)
{
	size_t begun = pb_begin(c->out, 1);
	for (uint32_t i = 0; i < in->names.count; i++)
		if (s->values[i].len)
			put_pair(c->out, in->names.v[i], s->values[i]);
	for (size_t i = 0; i < s->point_count; i++) {
		size_t point = pb_begin(c->out, 2);
		pb_put_double(c->out, 1, (double)s->points[i].value);
		pb_put_i64(c->out, 2, (s->points[i].time_ns + step_ns) / NS_PER_MS);
		pb_end(c->out, point);
	}
	pb_end(c->out, begun);
}

/* The point of a time t is the sum of what lies in [t - step, t). Times are multiples of the step,
 * so that they stay where they are when a client asks again a little later. */
static enum status select_series(struct call *c)
{
	struct pyroscope_query in;
	struct query_request q;
	struct query_range range = { 0 };
	struct str by[PYROSCOPE_LIST_MAX + 1];
	bool found = false;
	int64_t least = 0;
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_SELECT_SERIES, &in, c->e);
	if (s == OK && !(in.step_s >= 0.001 && in.step_s <= 1e9))
		s = err_set(c->e, E_INVALID, "step: it has to be a millisecond at least");
	if (s == OK)
		s = selection(c, &in, &q, &found);
	if (s != OK || !found)
		return s;
	q.step_ns = llround(in.step_s * 1000) * NS_PER_MS;
	q.from_ns = MAX(q.from_ns, 0) / q.step_ns * q.step_ns;
	for (uint32_t i = 0; i < in.names.count; i++)
		by[i] = plain_name(c, in.names.v[i]);
	/* A label that nothing has: all in one, gauges too. */
	by[in.names.count] = STR("__none__");
	s = query_range(c->engine, &q, by, MAX(in.names.count, 1u), &c->a, &range, c->e);
	if (s == OK)
		s = smallest_sum(c, &range, in.series_max, &least);
	for (size_t i = 0; s == OK && i < range.count; i++)
		if (sum_of(&range.series[i]) >= least)
			put_series(c, &in, &range.series[i], q.step_ns);
	return s;
}

static enum status profile_stats(struct call *c)
{
	struct types types = { 0 };
	int64_t first = INT64_MAX, last = 0;
	enum status s = all_types(c, 0, 0, &types);
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

/* ---- GET /pyroscope/render, /pyroscope/render-diff ---- */

/* "TYPE{labels}" of the parameters with that prefix. */
static enum status render_query(
	struct call *c, const char *const keys[3], struct pyroscope_query *q)
{
	struct str text = STR(""), from = STR(""), until = STR(""), nodes = STR("");
	int64_t now = clock_realtime_ns();
	uint64_t n;
	*q = (struct pyroscope_query){ .nodes_max = RENDER_NODES_DEFAULT };
	net_query_param(c->r, keys[0], 0, &c->a, &text);
	net_query_param(c->r, keys[1], 0, &c->a, &from);
	net_query_param(c->r, keys[2], 0, &c->a, &until);
	if (!net_query_param(c->r, "max-nodes", 0, &c->a, &nodes))
		net_query_param(c->r, "maxNodes", 0, &c->a, &nodes);
	if (str_parse_u64(nodes, 10, &n) && n > 0)
		q->nodes_max = (int64_t)MIN(n, (uint64_t)PYROSCOPE_NODES_MAX);
	size_t brace = str_index(text, '{');
	q->type = str_trim(str_sub(text, 0, brace));
	q->selector = str_sub(text, brace, text.len);
	if (q->type.len == 0)
		return err_set(
			c->e, E_INVALID, "%s: it has to be TYPE{label=\"value\",…}", keys[0]);
	q->start_ms = (from.len ? pyroscope_time(from, now) : now - 3600 * NS_PER_SEC) / NS_PER_MS;
	q->end_ms = pyroscope_time(until, now) / NS_PER_MS;
	return OK;
}

/* The n-th part of a type's id. */
static struct str part_of(struct str id, int n)
{
	struct str part = STR("");
	for (int i = 0; i <= n; i++)
		if (!str_split(&id, ':', &part))
			return STR("");
	return part;
}

static enum status write_flame(
	struct call *c, const struct pyroscope_query *q, const struct pyroscope_flame *flame)
{
	pyroscope_flamebearer_write(flame, part_of(q->type, 1), part_of(q->type, 2), c->out);
	return OK;
}

static enum status render(struct call *c)
{
	static const char *const keys[] = { "query", "from", "until" };
	struct pyroscope_query q;
	struct pyroscope_flame flame;
	struct str format = STR("");
	net_query_param(c->r, "format", 0, &c->a, &format);
	if (format.len && !str_eq(format, STR("json")))
		return err_set(c->e, E_UNSUPPORTED, "format \"%.*s\": only json",
			STR_ARG(str_sub(format, 0, 32)));
	enum status s = render_query(c, keys, &q);
	if (s == OK)
		s = flame_of(c, &q, &flame);
	return s == OK ? write_flame(c, &q, &flame) : s;
}

static enum status render_diff(struct call *c)
{
	static const char *const left_keys[] = { "leftQuery", "leftFrom", "leftUntil" };
	static const char *const right_keys[] = { "rightQuery", "rightFrom", "rightUntil" };
	struct pyroscope_query left, right;
	struct pyroscope_flame flame;
	enum status s = render_query(c, left_keys, &left);
	if (s == OK)
		s = render_query(c, right_keys, &right);
	if (s == OK)
		s = diff_of(c, &left, &right, &flame);
	return s == OK ? write_flame(c, &left, &flame) : s;
}

/* ---- GET /pyroscope/label-values ---- */

/* ?label=…: a list of texts in JSON. */
static enum status plain_label_values(struct call *c)
{
	struct pyroscope_query all = { .start_ms = 0 };
	struct texts values = { 0 };
	struct str label = STR("");
	if (!net_query_param(c->r, "label", 0, &c->a, &label) || label.len == 0)
		return err_set(c->e, E_INVALID, "label: cannot be blank");
	struct str name = plain_name(c, label);
	enum status s =
		each_selector(c, &all, is_type_label(name) ? NULL : add_values, name, &values);
	if (s != OK)
		return s;
	sort_texts(&values);
	buf_u8(c->out, '[');
	for (size_t i = 0; i < values.count; i++) {
		buf_cstr(c->out, i ? "," : "");
		buf_json_str(c->out, values.v[i]);
	}
	buf_u8(c->out, ']');
	return OK;
}

/* ---- handlers ---- */

#define HANDLER(name)                                                             \
	void server_querier_##name(                                               \
		void *ctx, const struct net_request *r, struct net_response *out) \
	{                                                                         \
		answer(ctx, r, out, name);                                        \
	}

HANDLER(profile_types)
HANDLER(label_names)
HANDLER(label_values)
HANDLER(series)
HANDLER(select_series)
HANDLER(merge_stacktraces)
HANDLER(merge_span_profile)
HANDLER(merge_profile)
HANDLER(diff)
HANDLER(profile_stats)

void server_pyroscope_nothing(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	(void)out;
}

/* VersionResponse { QuerierAPI = 1 } */
void server_pyroscope_version(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	pb_put_u64(&out->body, 1, QUERIER_API);
}

void server_pyroscope_label_values(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	answer(ctx, r, out, plain_label_values);
}

void server_pyroscope_render(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	answer(ctx, r, out, render);
}

void server_pyroscope_render_diff(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	answer(ctx, r, out, render_diff);
}
