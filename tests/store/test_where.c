/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series had a location, by a part's index and by looking at rows: the same as the model's,
 * and no location is shown that none of them had, least of all another tenant's; and which sets a
 * series has: the values of pid that a selector on comm leaves, and of comm that one on pid does.
 */
#include "store/merge/merge.h"
#include "tests/store/model.h"

static bool has_location(int stack, const char *text)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	model_stack_text(stack, &b);
	struct str rest = buf_view(&b), one;
	while (str_split(&rest, ';', &one))
		if (str_eq(one, str_of(text)))
			return true;
	return false;
}

/* The location with some text, among those that the model's samples have. */
struct choosing {
	const char *text;
	bool stacks[MODEL_STACKS]; /* that a wanted sample has */
};

static bool any_has(const struct choosing *x, const char *text)
{
	for (int i = 0; i < MODEL_STACKS; i++)
		if (x->stacks[i] && has_location(i, text))
			return true;
	return false;
}

static enum status choose(void *ctx, struct profile *tables, uint8_t *chosen, struct err *e)
{
	(void)e;
	const struct choosing *x = ctx;
	for (uint32_t i = 1; i < tables->locations.len; i++) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 4096);
		fx_location_text(tables, i, &b);
		buf_u8(&b, 0);
		CHECK(any_has(x, (const char *)b.data));
		chosen[i] = strcmp((const char *)b.data, x->text) == 0;
	}
	return OK;
}

static int number_of(const struct samples_hit *h, const char *name)
{
	for (uint32_t i = 0; i < h->label_count; i++)
		if (str_eq(h->names[i], str_of(name)))
			return h->values[i].p[1] - '0';
	return 0;
}

static void check_location(
	struct store *s, const struct model *m, const struct model_query *c, const char *text)
{
	bool want[MODEL_COMMS][MODEL_NODES] = { 0 }, got[MODEL_COMMS][MODEL_NODES] = { 0 };
	struct choosing choosing = { .text = text };
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *x = &m->samples.v[i];
		if (!model_picks(c, x, INT64_MIN, INT64_MAX))
			continue;
		choosing.stacks[x->stack] = true;
		if (has_location(x->stack, text))
			want[x->comm][x->node] = true;
	}
	char selector[256];
	struct fx_query f;
	struct store_view *v;
	struct samples_hit *hits;
	size_t n;
	struct err e = { 0 };
	model_query_text(c, selector);
	struct samples_query *q = fx_query(&f, selector, INT64_MIN, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_where(v, q, choose, &choosing, &f.arena, &hits, &n, &e), &e);
	for (size_t i = 0; i < n; i++) {
		got[number_of(&hits[i], "comm")][number_of(&hits[i], "node")] = true;
		CHECK(hits[i].span_count > 0);
		for (size_t k = 0; k < hits[i].span_count; k++) {
			CHECK(hits[i].spans[k].first_ns <= hits[i].spans[k].last_ns);
			CHECK(k == 0 || hits[i].spans[k].first_ns > hits[i].spans[k - 1].last_ns);
		}
	}
	CHECK_CASE(c, memcmp(want, got, sizeof(want)) == 0);
	store_view_close(v);
	fx_query_end(&f);
}

static void check_pids(struct store *s, const struct model *m)
{
	bool want[MODEL_PIDS] = { 0 }, got[MODEL_PIDS] = { 0 };
	for (size_t i = 0; i < m->samples.len; i++)
		if (m->samples.v[i].comm == 3 && m->samples.v[i].node == 1)
			want[m->samples.v[i].pid] = true;
	struct fx_query f;
	struct store_view *v;
	struct str *texts;
	size_t n;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{comm=\"c3\",node=\"n1\"}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_label_values(v, q, STR("pid"), &f.arena, &texts, &n, &e), &e);
	for (size_t i = 0; i < n; i++)
		got[texts[i].p[0] - '0'] = true;
	want[0] = false;
	CHECK(memcmp(want, got, sizeof(want)) == 0);
	store_view_close(v);
	fx_query_end(&f);
}

/* Of series that have no sample of the pid, nothing is told. */
static void check_comms(struct store *s, const struct model *m)
{
	for (int pid = 1; pid < MODEL_PIDS; pid++) {
		bool want[MODEL_COMMS] = { 0 }, got[MODEL_COMMS] = { 0 };
		for (size_t i = 0; i < m->samples.len; i++)
			want[m->samples.v[i].comm] |=
				m->samples.v[i].pid == pid && m->samples.v[i].node == 1;
		struct fx_query f;
		struct store_view *v;
		struct str *texts;
		char selector[64];
		size_t n;
		struct err e = { 0 };
		snprintf(selector, sizeof(selector), "{node=\"n1\",pid=\"%d\"}", pid);
		struct samples_query *q = fx_query(&f, selector, INT64_MIN, INT64_MAX);
		CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
		CHECK_OK(store_label_values(v, q, STR("comm"), &f.arena, &texts, &n, &e), &e);
		for (size_t i = 0; i < n; i++)
			got[texts[i].p[1] - '0'] = true;
		want[0] = false;
		CHECK(memcmp(want, got, sizeof(want)) == 0);
		store_view_close(v);
		fx_query_end(&f);
	}
}

static void append_hidden(struct store *s)
{
	struct profile p;
	struct err e = { 0 };
	uint32_t stack;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 52631578);
	uint32_t frame = fx_frame(&p, "/bin/secret", 17);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	const char *const labels[] = { "comm", "c1", NULL };
	fx_sample(&p, T0, 1, head, stack, fx_labels(&p, labels), 0);
	CHECK_OK(store_append(s, STR("other"), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void check(struct store *s, const struct model *m)
{
	static const char *const texts[] = { "/bin/a+1", "/lib/b.so+11", "f3:0", "nothing" };
	FOR_EACH_CASE (c, model_queries)
		for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
			check_location(s, m, c, texts[i]);
	check_pids(s, m);
	check_comms(s, m);
}

static void equal_to_the_model(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 8 };
	struct store *s;
	struct err e = { 0 };
	bool merged;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	/* Few samples, so that not every series has everything. */
	append_hidden(s);
	model_append(&m, s, 25, T0, 10 * SEC);
	check(s, &m);
	CHECK_OK(store_flush(s, &e), &e);
	check(s, &m);
	model_append(&m, s, 20, T0 + 10 * SEC, 10 * SEC);
	check(s, &m);
	CHECK_OK(store_flush(s, &e), &e);
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	CHECK(s->parts.len == 1);
	struct tabs t;
	CHECK_OK(part_pin(s->parts.v[0], PART_LOAD_ALL | PART_LOAD_INDEX, UINT64_MAX, &t, &e), &e);
	CHECK(t.location_first && t.set_first);
	part_unpin(s->parts.v[0], PART_LOAD_ALL | PART_LOAD_INDEX);
	check(s, &m);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(equal_to_the_model))
