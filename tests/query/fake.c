/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "base/map.h"
#include "os/os.h"
#include "query/plan/sums.h"
#include "query/query.h"

#include <ctype.h>
#include <pthread.h>
#include <stdio.h>

struct profile fake_profile;
uint32_t fake_pending;
int64_t fake_covered_ns;
int fake_views;
enum status fake_error;
struct query_engine fake_engine;

struct symbolizer {
	int unused;
};
static const struct samples_ops fake_ops;
static struct samples_db the_db = { &fake_ops };
static struct samples_view the_view = { &fake_ops };
static struct symbolizer the_symbolizer;
static struct os_pool {
	char any;
} the_pool;

#define PARTS_MAX 64

void fake_begin(void)
{
	CHECK(profile_init(&fake_profile, 64 << 20) == OK);
	fake_engine = (struct query_engine){ &the_db, &the_symbolizer, NULL };
	fake_pending = 0;
	fake_covered_ns = 0;
	fake_views = 0;
	fake_error = OK;
}

void fake_end(void)
{
	profile_deinit(&fake_profile);
	CHECK(fake_views == 0);
}

int fake_setup(void **state)
{
	(void)state;
	fake_begin();
	return 0;
}

int fake_teardown(void **state)
{
	(void)state;
	fake_end();
	return 0;
}

struct query_request fake_request(const char *selector)
{
	return (struct query_request){
		.selector = str_of(selector),
		.from_ns = 0,
		.to_ns = INT64_MAX,
	};
}

/* ---- samples from text ---- */

static uint32_t text(struct str s)
{
	uint32_t id = 0;
	CHECK(profile_add_string(&fake_profile, s, &id) == OK);
	return id;
}

static uint32_t add_mapping(struct str path)
{
	struct profile_mapping m = { .filename = text(path) };
	if (str_starts(path, STR("/built/")))
		m.build_id = text(str_base_name(path));
	uint32_t id = 0;
	CHECK(profile_add_mapping(&fake_profile, &m, &id) == OK);
	return id;
}

static struct profile_line make_line(struct str name)
{
	char file[128];
	snprintf(file, sizeof(file), "/src/%.*s.c", STR_ARG(name));
	struct profile_function f = { .name = text(name),
		.filename = text(str_of(file)),
		.start_line = (uint32_t)name.len * 10 };
	struct profile_line line = { .line = (uint32_t)name.len * 10 + 1 };
	CHECK(profile_add_function(&fake_profile, &f, &line.function) == OK);
	return line;
}

static uint32_t add_location(struct str spec)
{
	struct profile_location l = { .kind = FRAME_NATIVE };
	struct profile_line lines[PARTS_MAX];
	uint32_t count = 0, id = 0;
	size_t kind = str_index(spec, '%');
	if (kind < spec.len)
		l.kind = (uint8_t)frame_kind_parse(str_sub(spec, kind + 1, spec.len));
	spec = str_sub(spec, 0, kind);
	size_t at = str_index(spec, '@');
	if (at < spec.len)
		l.mapping = add_mapping(str_sub(spec, at + 1, spec.len));
	struct str names = str_sub(spec, 0, at), name;
	l.address = hash64(spec.p, spec.len) >> 16;
	if (str_starts(names, STR("0x"))) {
		CHECK(str_parse_u64(str_sub(names, 2, names.len), 16, &l.address));
	} else {
		struct profile_line outer_first[PARTS_MAX];
		while (str_split(&names, '>', &name)) {
			CHECK(count < PARTS_MAX);
			outer_first[count++] = make_line(name);
		}
		for (uint32_t i = 0; i < count; i++)
			lines[i] = outer_first[count - 1 - i];
	}
	CHECK(profile_add_location(&fake_profile, &l, lines, count, &id) == OK);
	return id;
}

static uint32_t add_stack(struct str spec)
{
	uint32_t root_first[PROFILE_STACK_MAX], leaf_first[PROFILE_STACK_MAX], count = 0, id = 0;
	struct str part;
	while (str_split(&spec, ';', &part)) {
		CHECK(count < PROFILE_STACK_MAX);
		root_first[count++] = add_location(part);
	}
	for (uint32_t i = 0; i < count; i++)
		leaf_first[i] = root_first[count - 1 - i];
	CHECK(profile_add_stack(&fake_profile, leaf_first, count, &id) == OK);
	return id;
}

static uint32_t add_labels(struct str spec)
{
	struct profile_label labels[PARTS_MAX];
	uint32_t count = 0, id = 0;
	struct str part;
	while (str_split(&spec, ',', &part)) {
		size_t eq = str_index(part, '=');
		CHECK(count < PARTS_MAX);
		labels[count++] = (struct profile_label){ text(str_sub(part, 0, eq)),
			text(str_sub(part, eq + 1, part.len)) };
	}
	CHECK(profile_add_labels(&fake_profile, labels, count, &id) == OK);
	return id;
}

static uint32_t add_head(struct str type, int64_t time_ns, int64_t period)
{
	struct str parts[6] = { 0 };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		(void)str_split(&type, ':', &parts[i]);
	struct profile_type t = { text(parts[0]), text(parts[1]), text(parts[2]), text(parts[3]),
		text(parts[4]), parts[5].len > 0 };
	struct profile_head h = { .period = period, .time_ns = time_ns, .duration_ns = NS_PER_SEC };
	uint32_t id = 0;
	CHECK(profile_add_type(&fake_profile, &t, &h.type) == OK);
	CHECK(profile_add_head(&fake_profile, &h, &id) == OK);
	return id;
}

void fake_sample(const char *type, int64_t time_ns, int64_t value, int64_t period,
	const char *labels, const char *stack)
{
	struct profile_sample s = {
		.value = value,
		.time_ns = time_ns,
		.head = add_head(str_of(type), time_ns, period),
		.stack = add_stack(str_of(stack)),
		.resource = add_labels(str_of(labels)),
	};
	CHECK(profile_add_sample(&fake_profile, &s) == OK);
}

/* ---- the store ---- */

static struct str string(uint32_t id)
{
	return profile_str(&fake_profile, id);
}

static const struct profile_type *type_of(const struct profile_sample *s)
{
	return &fake_profile.types.v[fake_profile.heads.v[s->head].type];
}

static struct str label_of(const struct profile_sample *s, struct str name)
{
	const struct profile_labels *set = &fake_profile.label_sets.v[s->resource];
	for (uint32_t i = 0; i < set->count; i++) {
		const struct profile_label *l = &fake_profile.labels.v[set->first + i];
		if (str_eq(string(l->name), name))
			return string(l->value);
	}
	return STR("");
}

static bool is_type(const struct profile_type *t, const struct selector *s)
{
	return str_eq(string(t->name), s->type[0]) && str_eq(string(t->sample_type), s->type[1]) &&
	       str_eq(string(t->sample_unit), s->type[2]) &&
	       str_eq(string(t->period_type), s->type[3]) &&
	       str_eq(string(t->period_unit), s->type[4]) && t->delta == s->delta;
}

static bool wanted(const struct samples_query *q, const struct profile_sample *s)
{
	if (s->time_ns < q->from_ns || s->time_ns >= q->to_ns)
		return false;
	if (q->selector->has_type && !is_type(type_of(s), q->selector))
		return false;
	for (uint32_t i = 0; i < q->selector->matcher_count; i++) {
		const struct selector_matcher *m = &q->selector->matchers[i];
		if (!selector_matches(m, label_of(s, m->name)))
			return false;
	}
	return true;
}

#define EACH_SAMPLE(s)                                                                 \
	for (const struct profile_sample *s = fake_profile.samples.v,                  \
					 *end_ = s ? s + fake_profile.samples.len : s; \
		s < end_; s++)

static enum status fake_view_open(
	struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e)
{
	CHECK(db == &the_db);
	if (str_eq(tenant, STR("nobody")))
		return err_set(e, E_DENIED, "no such tenant");
	fake_views++;
	*out = &the_view;
	return OK;
}

static void fake_view_close(struct samples_view *v)
{
	CHECK(v);
	fake_views--;
}

static enum status fake_types(struct samples_view *v, int64_t from_ns, int64_t to_ns,
	struct arena *a, struct samples_type **out, size_t *out_count, struct err *e)
{
	(void)v;
	if (fake_error != OK)
		return err_set(e, fake_error, "a fake error");
	struct samples_type *types = ARENA_ARRAY(a, struct samples_type, fake_profile.types.len);
	CHECK(types);
	*out_count = 0;
	for (uint32_t i = 1; i < fake_profile.types.len; i++) {
		const struct profile_type *t = &fake_profile.types.v[i];
		struct samples_type found = { string(t->name), string(t->sample_type),
			string(t->sample_unit), string(t->period_type), string(t->period_unit),
			t->delta, INT64_MAX, INT64_MIN };
		EACH_SAMPLE(s)
		{
			if (type_of(s) != t || s->time_ns < from_ns || s->time_ns >= to_ns)
				continue;
			found.first_ns = MIN(found.first_ns, s->time_ns);
			found.last_ns = MAX(found.last_ns, s->time_ns);
		}
		if (found.first_ns <= found.last_ns)
			types[(*out_count)++] = found;
	}
	*out = types;
	return OK;
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static void add_distinct(struct str *v, size_t *count, struct str s)
{
	for (size_t i = 0; i < *count; i++)
		if (str_eq(v[i], s))
			return;
	v[(*count)++] = s;
}

static enum status fake_label_names(struct samples_view *v, const struct samples_query *q,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	(void)v;
	(void)e;
	struct str *names = ARENA_ARRAY(a, struct str, fake_profile.labels.len + 1);
	size_t count = 0;
	CHECK(names);
	EACH_SAMPLE(s)
	{
		const struct profile_labels *set = &fake_profile.label_sets.v[s->resource];
		for (uint32_t i = 0; i < set->count && wanted(q, s); i++)
			add_distinct(
				names, &count, string(fake_profile.labels.v[set->first + i].name));
	}
	qsort(names, count, sizeof(*names), by_text);
	*out = names;
	*out_count = count;
	return OK;
}

static enum status fake_label_values(struct samples_view *v, const struct samples_query *q,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	(void)v;
	(void)e;
	struct str *values = ARENA_ARRAY(a, struct str, fake_profile.samples.len + 1);
	size_t count = 0;
	CHECK(values);
	EACH_SAMPLE(s)
	if (wanted(q, s) && label_of(s, name).len > 0)
		add_distinct(values, &count, label_of(s, name));
	qsort(values, count, sizeof(*values), by_text);
	*out = values;
	*out_count = count;
	return OK;
}

/* Everything but samples, in the same order, so with the same numbers. */
static void copy_tables(struct profile *p)
{
	uint32_t id = 0;
	CHECK(profile_init(p, 64 << 20) == OK);
	for (uint32_t i = 1; i < fake_profile.strings.len; i++)
		CHECK(profile_add_string(p, string(i), &id) == OK && id == i);
	for (uint32_t i = 1; i < fake_profile.functions.len; i++)
		CHECK(profile_add_function(p, &fake_profile.functions.v[i], &id) == OK && id == i);
	for (uint32_t i = 1; i < fake_profile.mappings.len; i++)
		CHECK(profile_add_mapping(p, &fake_profile.mappings.v[i], &id) == OK && id == i);
	for (uint32_t i = 1; i < fake_profile.locations.len; i++) {
		const struct profile_location *l = &fake_profile.locations.v[i];
		CHECK(profile_add_location(p, l, &fake_profile.lines.v[l->line_first],
			      l->line_count, &id) == OK &&
			id == i);
	}
}

static uint64_t node_hash(const struct samples_node *n)
{
	return hash_u64((uint64_t)n->parent << 32 | n->location);
}

static bool node_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct samples_tree *t = ctx;
	const struct samples_node *a = &t->nodes.v[value], *b = key;
	return a->parent == b->parent && a->location == b->location;
}

/* `children` has all nodes but the root. */
static uint32_t child_of(
	struct samples_tree *t, struct map *children, uint32_t parent, uint32_t location)
{
	const struct samples_node n = { parent, location, 0 };
	uint32_t id = map_find(children, node_hash(&n), node_equal, t, &n);
	if (id != MAP_NONE)
		return id;
	id = (uint32_t)t->nodes.len;
	CHECK(VEC_PUSH(&t->nodes, n) && map_insert(children, node_hash(&n), id));
	return id;
}

static void add_to_tree(
	struct samples_tree *t, struct map *children, const struct profile_sample *s)
{
	const struct profile_stack *stack = &fake_profile.stacks.v[s->stack];
	int64_t period = fake_profile.heads.v[s->head].period;
	uint32_t node = 0;
	for (uint32_t i = stack->count; i-- > 0;)
		node = child_of(
			t, children, node, fake_profile.stack_locations.v[stack->first + i]);
	t->nodes.v[node].self = query_add(t->nodes.v[node].self, s->value);
	t->total = query_add(t->total, s->value);
	t->period = t->sample_count == 0 || t->period == period ? period : 0;
	t->first_ns = t->sample_count == 0 ? s->time_ns : MIN(t->first_ns, s->time_ns);
	t->last_ns = t->sample_count == 0 ? s->time_ns : MAX(t->last_ns, s->time_ns);
	t->sample_count++;
}

static enum status fake_sum_stacks(struct samples_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e)
{
	(void)v;
	CHECK(q->selector->has_type);
	if (fake_error != OK)
		return err_set(e, fake_error, "a fake error");
	struct samples_tree t = { .covered_ns = q->durations ? fake_covered_ns : 0 };
	copy_tables(&t.tables);
	struct profile_type type = { .delta = q->selector->delta };
	uint32_t *parts[] = { &type.name, &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		CHECK(profile_add_string(&t.tables, q->selector->type[i], parts[i]) == OK);
	t.type = type;
	CHECK(VEC_PUSH(&t.nodes, (struct samples_node){ 0 }));
	struct map children = { 0 };
	EACH_SAMPLE(s)
	if (wanted(q, s))
		add_to_tree(&t, &children, s);
	map_deinit(&children);
	*out = t;
	return OK;
}

static struct samples_series *find_series(struct samples_series *v, size_t *count,
	const struct profile_sample *s, const struct str *by, size_t by_count, struct arena *a)
{
	for (size_t i = 0; i < *count; i++) {
		size_t k = 0;
		while (k < by_count && str_eq(v[i].values[k], label_of(s, by[k])))
			k++;
		if (k == by_count)
			return &v[i];
	}
	struct samples_series *made = &v[(*count)++];
	made->values = ARENA_ARRAY(a, struct str, by_count);
	made->points = ARENA_ARRAY(a, struct samples_point, fake_profile.samples.len);
	for (size_t k = 0; k < by_count; k++)
		made->values[k] = label_of(s, by[k]);
	return made;
}

/* Samples are given in order of time in the tests that come here. */
static enum status fake_sum_series(struct samples_view *v, const struct samples_query *q,
	const struct str *by, size_t by_count, int64_t step_ns, struct arena *a,
	struct samples_series **out, size_t *out_count, struct samples_type *out_type,
	int64_t *out_period, struct err *e)
{
	(void)v;
	if (fake_error != OK)
		return err_set(e, fake_error, "a fake error");
	struct samples_series *series =
		ARENA_ARRAY(a, struct samples_series, fake_profile.samples.len + 1);
	const struct selector *sel = q->selector;
	size_t count = 0, most = fake_profile.samples.len + 1;
	int64_t period = 0;
	/* Of each series and point: times, and the last of them. */
	int64_t *times = ARENA_ARRAY(a, int64_t, most * most);
	int64_t *at = ARENA_ARRAY(a, int64_t, most * most);
	EACH_SAMPLE(s)
	{
		if (!wanted(q, s))
			continue;
		struct samples_series *one = find_series(series, &count, s, by, by_count, a);
		int64_t begin = s->time_ns / step_ns * step_ns;
		struct samples_point *last =
			one->point_count ? &one->points[one->point_count - 1] : NULL;
		if (!last || last->time_ns != begin) {
			last = &one->points[one->point_count++];
			*last = (struct samples_point){ .time_ns = begin,
				.covered_ns = q->durations ? fake_covered_ns : 0 };
		}
		size_t place = (size_t)(one - series) * most + one->point_count;
		times[place] += last->count == 0 || at[place] != s->time_ns;
		at[place] = s->time_ns;
		last->value = query_add(last->value, s->value);
		last->count++;
		period = fake_profile.heads.v[s->head].period;
	}
	/* A gauge's points are averages over their times. */
	for (size_t i = 0; i < count && !sel->delta; i++)
		for (size_t k = 0; k < series[i].point_count; k++)
			series[i].points[k].value /= times[i * most + k + 1];
	if (out_period)
		*out_period = period;
	if (out_type)
		*out_type = (struct samples_type){ sel->type[0], sel->type[1], sel->type[2],
			sel->type[3], sel->type[4], sel->delta, 0, 0 };
	*out = series;
	*out_count = count;
	return OK;
}

static enum status fake_collect(struct samples_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct profile *out, struct err *e)
{
	(void)v;
	if (fake_error != OK)
		return err_set(e, fake_error, "a fake error");
	copy_tables(out);
	for (uint32_t i = 1; i < fake_profile.types.len; i++) {
		uint32_t id = 0;
		CHECK(profile_add_type(out, &fake_profile.types.v[i], &id) == OK && id == i);
	}
	EACH_SAMPLE(s)
	{
		struct profile_label labels[PARTS_MAX];
		int64_t past = q->step_ns ? s->time_ns % q->step_ns : 0;
		struct profile_sample sample = { .value = s->value, .time_ns = s->time_ns - past };
		const struct profile_stack *stack = &fake_profile.stacks.v[s->stack];
		uint32_t count = 0;
		if (!wanted(q, s))
			continue;
		for (size_t i = 0; i < keep_count; i++) {
			labels[count] = (struct profile_label){ 0 };
			CHECK(profile_add_string(out, keep_labels[i], &labels[count].name) == OK);
			CHECK(profile_add_string(out, label_of(s, keep_labels[i]),
				      &labels[count].value) == OK);
			count++;
		}
		CHECK(profile_add_labels(out, labels, count, &sample.resource) == OK);
		CHECK(profile_add_stack(out, &fake_profile.stack_locations.v[stack->first],
			      stack->count, &sample.stack) == OK);
		CHECK(profile_add_head(out, &fake_profile.heads.v[s->head], &sample.head) == OK);
		CHECK(profile_add_sample(out, &sample) == OK);
	}
	return OK;
}

static uint32_t group_of(struct samples_cells *c, const struct profile_sample *s,
	const struct str *keep_labels, size_t keep_count)
{
	struct profile_label labels[PROFILE_LABELS_MAX] = { 0 };
	struct samples_group g = { .period = fake_profile.heads.v[s->head].period };
	struct profile *p = &c->tree.tables;
	for (size_t i = 0; i < keep_count; i++) {
		CHECK(profile_add_string(p, keep_labels[i], &labels[i].name) == OK);
		CHECK(profile_add_string(p, label_of(s, keep_labels[i]), &labels[i].value) == OK);
	}
	CHECK(profile_add_labels(p, labels, (uint32_t)keep_count, &g.labels) == OK);
	for (uint32_t i = 0; i < c->groups.len; i++)
		if (c->groups.v[i].labels == g.labels && c->groups.v[i].period == g.period)
			return i;
	CHECK(VEC_PUSH(&c->groups, g));
	return (uint32_t)c->groups.len - 1;
}

/* Groups in the order of labels; those of cells are not numbered anew, so this comes first. */
static int by_labels(const void *a, const void *b)
{
	const struct samples_group *x = a, *y = b;
	return x->labels < y->labels ? -1 : x->labels > y->labels;
}

static int by_node(const void *a, const void *b)
{
	const struct samples_cell *x = a, *y = b;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->group < y->group ? -1 : x->group > y->group;
}

static void add_cell(struct samples_cells *c, uint32_t node, uint32_t group, int64_t value)
{
	for (size_t i = 0; i < c->v.len; i++) {
		struct samples_cell *x = &c->v.v[i];
		if (x->node == node && x->group == group) {
			x->value = query_add(x->value, value);
			return;
		}
	}
	CHECK(VEC_PUSH(&c->v, (struct samples_cell){ node, group, value }));
}

static enum status fake_sum_cells(struct samples_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct samples_cells *out, struct err *e)
{
	struct samples_cells c = { 0 };
	enum status status = fake_sum_stacks(v, q, &c.tree, e);
	if (status != OK)
		return status;
	EACH_SAMPLE(s)
	if (wanted(q, s))
		(void)group_of(&c, s, keep_labels, keep_count);
	if (c.groups.len)
		qsort(c.groups.v, c.groups.len, sizeof(*c.groups.v), by_labels);
	struct map children = { 0 };
	for (uint32_t i = 1; i < c.tree.nodes.len; i++)
		CHECK(map_insert(&children, node_hash(&c.tree.nodes.v[i]), i));
	EACH_SAMPLE(s)
	{
		const struct profile_stack *stack = &fake_profile.stacks.v[s->stack];
		uint32_t node = 0;
		if (!wanted(q, s))
			continue;
		for (uint32_t i = stack->count; i-- > 0;)
			node = child_of(&c.tree, &children, node,
				fake_profile.stack_locations.v[stack->first + i]);
		add_cell(&c, node, group_of(&c, s, keep_labels, keep_count), s->value);
	}
	map_deinit(&children);
	if (c.v.len)
		qsort(c.v.v, c.v.len, sizeof(*c.v.v), by_node);
	*out = c;
	return OK;
}

/* A hit for each sample: one series, one time. */
static enum status fake_where(struct samples_view *v, const struct samples_query *q,
	samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e)
{
	(void)v;
	struct profile tables;
	copy_tables(&tables);
	uint8_t *chosen = ARENA_ARRAY(a, uint8_t, tables.locations.len);
	struct samples_hit *hits = ARENA_ARRAY(a, struct samples_hit, fake_profile.samples.len + 1);
	CHECK(chosen && hits);
	enum status status = choose(ctx, &tables, chosen, e);
	profile_deinit(&tables);
	size_t count = 0;
	EACH_SAMPLE(s)
	{
		const struct profile_stack *stack = &fake_profile.stacks.v[s->stack];
		const struct profile_labels *set = &fake_profile.label_sets.v[s->resource];
		const struct profile_type *t = type_of(s);
		bool any = false;
		for (uint32_t i = 0; i < stack->count; i++)
			any |= chosen[fake_profile.stack_locations.v[stack->first + i]];
		if (!any || !wanted(q, s))
			continue;
		struct samples_hit *h = &hits[count++];
		h->type = (struct samples_type){ string(t->name), string(t->sample_type),
			string(t->sample_unit), string(t->period_type), string(t->period_unit),
			t->delta, s->time_ns, s->time_ns };
		h->names = ARENA_ARRAY(a, struct str, set->count + 1);
		h->values = ARENA_ARRAY(a, struct str, set->count + 1);
		h->spans = ARENA_NEW(a, struct samples_span);
		CHECK(h->names && h->values && h->spans);
		h->label_count = set->count;
		for (uint32_t i = 0; i < set->count; i++) {
			h->names[i] = string(fake_profile.labels.v[set->first + i].name);
			h->values[i] = string(fake_profile.labels.v[set->first + i].value);
		}
		h->spans[0] = (struct samples_span){ s->time_ns, s->time_ns };
		h->span_count = 1;
	}
	*out = hits;
	*out_count = count;
	return status;
}

static const struct samples_ops fake_ops = {
	.where = fake_where,
	.view_open = fake_view_open,
	.view_close = fake_view_close,
	.types = fake_types,
	.label_names = fake_label_names,
	.label_values = fake_label_values,
	.sum_stacks = fake_sum_stacks,
	.sum_series = fake_sum_series,
	.sum_cells = fake_sum_cells,
	.collect = fake_collect,
};

/* ---- threads ---- */

static enum fake_beside beside_how;

struct second {
	os_pool_fn *fn;
	void *ctx;
};

static void *run_second(void *ctx)
{
	struct second *s = ctx;
	s->fn(s->ctx, 1);
	return NULL;
}

void os_pool_run(struct os_pool *p, unsigned n, os_pool_fn *fn, void *ctx)
{
	struct second s = { fn, ctx };
	pthread_t thread;
	if (!p) {
		fn(ctx, 0);
		return;
	}
	CHECK(p == &the_pool && n == 2);
	if (beside_how == FAKE_AFTER)
		fn(ctx, 0);
	CHECK(pthread_create(&thread, NULL, run_second, &s) == 0);
	if (beside_how == FAKE_TOGETHER)
		fn(ctx, 0);
	CHECK(pthread_join(thread, NULL) == 0);
	if (beside_how == FAKE_BEFORE)
		fn(ctx, 0);
}

void fake_have_threads(enum fake_beside how)
{
	beside_how = how;
	fake_engine.pool = &the_pool;
}

/* ---- the symbolizer: an address' name is "sym_0x12" ---- */

enum status symbolizer_resolve(struct symbolizer *s, struct profile *p, uint32_t wait_ms,
	uint32_t *out_pending, struct err *e)
{
	(void)e;
	CHECK(s == &the_symbolizer && wait_ms > 0);
	for (uint32_t i = 1; i < p->locations.len; i++) {
		struct profile_location *l = &p->locations.v[i];
		char name[64];
		struct profile_function f = { 0 };
		struct profile_line line = { 0 };
		if (l->line_count > 0)
			continue;
		snprintf(name, sizeof(name), "sym_0x%llx", (unsigned long long)l->address);
		CHECK(profile_add_string(p, str_of(name), &f.name) == OK);
		CHECK(profile_add_function(p, &f, &line.function) == OK);
		l->line_first = (uint32_t)p->lines.len;
		l->line_count = 1;
		CHECK(VEC_PUSH(&p->lines, line));
	}
	*out_pending = fake_pending;
	return OK;
}

/* The first mapping's. */
size_t symbolizer_list_pending(
	struct symbolizer *s, const struct profile *p, struct str *out, size_t max)
{
	CHECK(s == &the_symbolizer && fake_pending && max == QUERY_PENDING_FILES_MAX);
	if (p->mappings.len < 2)
		return 0;
	out[0] = profile_str(p, p->mappings.v[1].filename);
	return 1;
}
