/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view is one instant: whatever is appended, flushed and merged at the same time, it counts each
 * sample once. Built with -fsanitize=thread, this is the test of the locks.
 */
#include "store/merge/merge.h"
#include "store/part/part_table.h"
#include "store/read/view.h"
#include "tests/store/counted.h"
#include "tests/store/model.h"

enum { WRITERS = 2, BATCHES = 150 };

struct shared {
	struct store *s;
	atomic_int done;
	atomic_int written;
	atomic_int first;
};

static void *write_batches(void *ctx)
{
	struct shared *w = ctx;
	uint32_t first = (uint32_t)atomic_fetch_add(&w->first, 1) * BATCHES;
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct err e = { 0 };
		CHECK_OK(counted_append(w->s, first + i, &e), &e);
		atomic_fetch_add(&w->written, 1);
	}
	atomic_fetch_add(&w->done, 1);
	return NULL;
}

static void *flush_often(void *ctx)
{
	struct shared *w = ctx;
	struct err e = { 0 };
	while (atomic_load(&w->done) < WRITERS) {
		CHECK_OK(store_flush(w->s, &e), &e);
		usleep(3000);
	}
	return NULL;
}

static void *merge_often(void *ctx)
{
	struct shared *w = ctx;
	struct err e = { 0 };
	bool merged;
	while (atomic_load(&w->done) < WRITERS) {
		CHECK_OK(store_merge_step(w->s, T0 + 90000 * SEC, &merged, &e), &e);
		usleep(1000);
	}
	return NULL;
}

static int64_t view_total(struct store_view *v)
{
	struct fx_query f;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, COUNTED_TYPE, 0, INT64_MAX);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	int64_t sum = t.total;
	CHECK((uint64_t)sum == t.sample_count);
	samples_tree_deinit(&t);
	fx_query_end(&f);
	return sum;
}

static void each_sample_once(void **state)
{
	(void)state;
	char dir[64];
	struct shared w = { 0 };
	struct err e = { 0 };
	pthread_t threads[WRITERS + 2];
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &w.s, &e), &e);
	for (int i = 0; i < WRITERS; i++)
		CHECK_OK(os_thread_start(&threads[i], "write", write_batches, &w, &e), &e);
	CHECK_OK(os_thread_start(&threads[WRITERS], "flush", flush_often, &w, &e), &e);
	CHECK_OK(os_thread_start(&threads[WRITERS + 1], "merge", merge_often, &w, &e), &e);
	int64_t last = 0;
	while (atomic_load(&w.done) < WRITERS) {
		struct store_view *v;
		int64_t before = (int64_t)atomic_load(&w.written) * COUNTED_SAMPLES;
		CHECK_OK(store_view_open(w.s, STR(""), &v, &e), &e);
		int64_t sum = view_total(v);
		CHECK(sum % COUNTED_SAMPLES == 0); /* batches are whole */
		CHECK(sum >= before && sum >= last);
		CHECK(sum <= WRITERS * BATCHES * COUNTED_SAMPLES);
		CHECK(view_total(v) == sum); /* and it stays so */
		last = sum;
		store_view_close(v);
	}
	for (int i = 0; i < WRITERS + 2; i++)
		pthread_join(threads[i], NULL);
	struct store_view *v;
	CHECK_OK(store_view_open(w.s, STR(""), &v, &e), &e);
	CHECK(view_total(v) == WRITERS * BATCHES * COUNTED_SAMPLES);
	store_view_close(v);
	store_close(w.s);
	fixture_clean(dir);
}

static void *trim(void *ctx)
{
	struct shared *w = ctx;
	store_trim_caches(w->s);
	atomic_store(&w->done, 1);
	return NULL;
}

/* A query that reads the tables of a part from a slow disk holds up no batch. */
static void loading_a_part_stops_nobody(void **state)
{
	(void)state;
	char dir[64];
	pthread_t thread;
	struct shared w = { 0 };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &w.s, &e), &e);
	CHECK_OK(counted_append(w.s, 1, &e), &e);
	CHECK_OK(store_flush(w.s, &e), &e);
	lock_take(&w.s->merge_lock); /* the part stays */
	struct part *p = w.s->parts.v[0];
	lock_take(&p->lock); /* as if it were being read */
	CHECK(pthread_create(&thread, NULL, trim, &w) == 0);
	for (int i = 0; i < 60000 && !atomic_load(&w.done); i++) /* for ever, if it is stopped */
		usleep(1000);
	bool done = atomic_load(&w.done);
	lock_release(&p->lock);
	CHECK(pthread_join(thread, NULL) == 0);
	lock_release(&w.s->merge_lock);
	CHECK(done);
	store_close(w.s);
	fixture_clean(dir);
}

/* ---- memory ---- */

static struct store *open_with_parts(const char *dir, uint64_t resident_bytes)
{
	struct store *s;
	struct model m = { .random = 11 };
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	c.resident_bytes = resident_bytes;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_wait_started(s); /* no labels are loaded ahead */
	fixture_stop_merging(s); /* and the parts stay apart */
	for (int i = 0; i < 4; i++) {
		model_append(&m, s, 400, T0, 60 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
	}
	VEC_FREE(&m.samples);
	return s;
}

static uint64_t loaded_bytes(struct store *s)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->parts.len; i++)
		bytes += part_trim(s->parts.v[i], 0, INT64_MIN);
	return bytes;
}

/* Its merging thread looks at it, too. */
static void set_memory(struct store *s, uint64_t bytes)
{
	lock_take(&s->lock);
	s->config.memory_bytes = bytes;
	lock_release(&s->lock);
}

/* Whoever needs the labels of a part, as a merge does all the time that it writes, keeps no other
 * tables of it in memory. */
static void tables_go_when_nobody_needs_them(void **state)
{
	(void)state;
	char dir[64];
	struct store_view *v;
	struct samples_tree t;
	struct fx_query f;
	struct tabs tabs;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	for (size_t i = 0; i < s->parts.len; i++)
		CHECK_OK(part_pin(s->parts.v[i], PART_LOAD_LABELS, UINT64_MAX, &tabs, &e), &e);
	uint64_t labels = loaded_bytes(s);
	set_memory(s, 4096); /* nothing more is kept */
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	q->memory_bytes = 64 << 20;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK(t.total > 0 && labels > 0 && loaded_bytes(s) == labels);
	samples_tree_deinit(&t);
	store_view_close(v);
	for (size_t i = 0; i < s->parts.len; i++)
		part_unpin(s->parts.v[i], PART_LOAD_LABELS);
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

static void put_texts(struct buf *out, const struct str *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%.*s,", STR_ARG(v[i]));
	buf_cstr(out, "\n");
}

static enum status choose_all(void *ctx, struct profile *tables, uint8_t *chosen, struct err *e)
{
	(void)ctx;
	(void)e;
	memset(chosen, 1, tables->locations.len);
	return OK;
}

/* What every kind of question gets, as text. */
static void ask_all(struct store_view *v, struct samples_query *q, struct arena *a, struct buf *out)
{
	static const struct str by[] = { { "comm", 4 }, { "pid", 3 } };
	struct samples_tree t;
	struct samples_cells cells;
	struct samples_series *series;
	struct samples_type type, *types;
	struct samples_hit *hits;
	struct profile p;
	struct str *texts;
	int64_t period;
	size_t n;
	struct err e = { 0 };
	uint64_t memory = v->store->config.memory_bytes;
	set_memory(v->store, 64 << 10); /* the only limit that types have */
	CHECK_OK(store_types(v, q->from_ns, q->to_ns, a, &types, &n, &e), &e);
	set_memory(v->store, memory);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%.*s %lld;", STR_ARG(types[i].name), (long long)types[i].last_ns);
	CHECK_OK(store_label_names(v, q, a, &texts, &n, &e), &e);
	put_texts(out, texts, n);
	for (size_t i = 0; i < ARRAY_COUNT(by); i++) {
		CHECK_OK(store_label_values(v, q, by[i], a, &texts, &n, &e), &e);
		put_texts(out, texts, n);
	}
	enum status s = store_sum_stacks(v, q, &t, &e);
	if (s != OK) { /* of several types */
		buf_printf(out, "%s\n", err_text(&e, s));
		return;
	}
	buf_printf(out, "%lld of %llu, %zu, %lld %.*s\n", (long long)t.total,
		(unsigned long long)t.sample_count, t.nodes.len, (long long)t.period,
		STR_ARG(profile_str(&t.tables, t.type.name)));
	samples_tree_deinit(&t);
	CHECK_OK(store_sum_series(v, q, by, 2, SEC, a, &series, &n, &type, &period, &e), &e);
	buf_printf(out, "%lld to %lld:", (long long)type.first_ns, (long long)type.last_ns);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%.*s %lld;", STR_ARG(series[i].values[0]),
			(long long)series[i].points[0].value);
	CHECK_OK(store_collect(v, q, by, 2, &p, &e), &e);
	for (size_t i = 0; i < p.samples.len; i++)
		buf_printf(out, "%lld ", (long long)p.samples.v[i].value);
	profile_deinit(&p);
	CHECK_OK(store_sum_cells(v, q, by, 2, &cells, &e), &e);
	buf_printf(out, "%zu cells, %zu groups\n", cells.v.len, cells.groups.len);
	samples_cells_deinit(&cells);
	CHECK_OK(store_where(v, q, choose_all, NULL, a, &hits, &n, &e), &e);
	for (size_t i = 0; i < n; i++)
		put_texts(out, hits[i].values, hits[i].label_count);
}

/* With so little memory rows cannot be sorted; until then an export reads labels too. */
static void ask_export(struct store_view *v, const struct samples_query *q)
{
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	buf_init(&b, 64 << 20);
	enum status s = store_export(v, q, &b, &e);
	CHECK(s == OK || (s == E_LIMIT && strstr(e.text, "for sorting")));
}

static void ask_each(struct store *s, int64_t from, int64_t to, struct buf *out)
{
	FOR_EACH_CASE (c, model_queries) {
		for (int typed = 0; typed < 2; typed++) {
			char text[256];
			struct store_view *v;
			struct fx_query f;
			struct err e = { 0 };
			model_query_text(c, text);
			struct samples_query *q =
				fx_query(&f, typed ? text : c->matchers, from, to);
			q->memory_bytes = 64 << 20;
			CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
			ask_all(v, q, &f.arena, out);
			if (typed && !c->matchers[0])
				ask_export(v, q);
			store_view_close(v);
			fx_query_end(&f);
		}
	}
}

/* Where there is no room for the labels of all parts, each part's are looked at and go. */
static void answers_are_the_same_where_no_labels_stay(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf roomy, tight;
	char dir[64];
	buf_init(&roomy, 16 << 20);
	buf_init(&tight, 16 << 20);
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	ask_each(s, 0, INT64_MAX, &roomy);
	ask_each(s, T0 + 10 * SEC, T0 + 40 * SEC, &roomy);
	set_memory(s, 4096);
	store_trim_caches(s);
	ask_each(s, 0, INT64_MAX, &tight);
	CHECK(loaded_bytes(s) == 0);
	ask_each(s, T0 + 10 * SEC, T0 + 40 * SEC, &tight);
	CHECK(roomy.len > 1000 && str_eq(buf_view(&roomy), buf_view(&tight)));
	CHECK(loaded_bytes(s) == 0);
	store_close(s);
	fixture_clean(dir);
}

/* An answer counts as long as its view is open, and so does what a report takes beside it. */
static void answers_count_while_they_live(void **state)
{
	(void)state;
	char dir[64];
	struct samples_view *v, *other;
	struct samples_tree t;
	struct fx_query f;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	struct samples_db *db = store_samples(s);
	uint64_t limit = s->config.memory_bytes / 4;
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	CHECK_OK(db->ops->view_open(db, STR(""), &v, &e), &e);
	CHECK_OK(db->ops->view_open(db, STR(""), &other, &e), &e);
	CHECK_OK(v->ops->sum_stacks(v, q, &t, &e), &e);
	CHECK(memory_used(&s->queries_memory) > 0);
	CHECK(v->ops->hold(v, limit, &e) == E_LIMIT && strstr(e.text, "memory") != NULL);
	CHECK_OK(v->ops->hold(v, limit / 4 * 3, &e), &e);
	CHECK(memory_used(&s->queries_memory) > limit / 4 * 3);
	CHECK(other->ops->hold(other, limit / 2, &e) == E_UNAVAILABLE);
	v->ops->view_close(v);
	CHECK_OK(other->ops->hold(other, limit / 2, &e), &e);
	other->ops->view_close(other);
	CHECK(memory_used(&s->queries_memory) == 0);
	samples_tree_deinit(&t);
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

/* A comparison has two views: neither is another's query to the other. */
static void views_of_a_query_count_together(void **state)
{
	(void)state;
	char dir[64];
	struct samples_view *v[3];
	struct store_query q;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	struct samples_db *db = store_samples(s);
	uint64_t limit = s->config.memory_bytes / 4;
	CHECK_OK(store_query_init(&q, s, 0, NULL, NULL, &e), &e);
	for (int i = 0; i < 3; i++) {
		struct samples_db *of = i < 2 ? &q.base : db;
		CHECK_OK(of->ops->view_open(of, STR(""), &v[i], &e), &e);
	}
	CHECK_OK(db->ops->hold(v[0], limit / 4 * 3, &e), &e);
	CHECK_OK(db->ops->hold(v[1], limit / 2, &e), &e);
	CHECK_OK(db->ops->hold(v[0], limit / 5 * 4, &e), &e);
	CHECK(db->ops->hold(v[2], limit / 2, &e) == E_UNAVAILABLE);
	CHECK(strstr(e.text, "--storage-memory"));
	db->ops->view_close(v[1]);
	CHECK_OK(db->ops->hold(v[0], limit / 7 * 6, &e), &e);
	db->ops->view_close(v[0]);
	CHECK_OK(db->ops->hold(v[2], limit / 2, &e), &e);
	db->ops->view_close(v[2]);
	CHECK(!store_query_again(&q));
	store_query_deinit(&q);
	CHECK(memory_used(&s->queries_memory) == 0);
	store_close(s);
	fixture_clean(dir);
}

struct asker {
	struct store *s;
	struct store_query q;
	struct samples_view *v;
	uint64_t bytes;
	enum status status;
	struct err e;
	atomic_bool done;
};

static void *hold_more_of_it(void *ctx)
{
	struct asker *a = ctx;
	a->status = a->v->ops->hold(a->v, a->bytes, &a->e);
	atomic_store(&a->done, true);
	return NULL;
}

static void asker_open(struct asker *a, struct store *s, samples_cancel_fn *cancel, void *ctx)
{
	struct err e = { 0 };
	*a = (struct asker){ .s = s };
	CHECK_OK(
		store_query_init(&a->q, s, clock_monotonic_ns() + 60 * NS_PER_SEC, cancel, ctx, &e),
		&e);
	CHECK_OK(a->q.base.ops->view_open(&a->q.base, STR(""), &a->v, &e), &e);
}

static void asker_wait(struct asker *a, pthread_t thread, enum status status)
{
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(a->status == status);
}

/* Two queries that together need more than there is: the younger begins anew once the older one is
 * done, and neither is refused. */
static void queries_wait_for_each_other(void **state)
{
	(void)state;
	char dir[64];
	struct asker old, young;
	pthread_t threads[2];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	uint64_t limit = s->config.memory_bytes / 4;
	asker_open(&old, s, NULL, NULL);
	asker_open(&young, s, NULL, NULL);
	CHECK_OK(old.v->ops->hold(old.v, limit / 2, &e), &e);
	CHECK_OK(young.v->ops->hold(young.v, limit / 3, &e), &e);
	old.bytes = young.bytes = limit / 4 * 3;
	CHECK(pthread_create(&threads[0], NULL, hold_more_of_it, &old) == 0);
	CHECK(pthread_create(&threads[1], NULL, hold_more_of_it, &young) == 0);
	asker_wait(&young, threads[1], E_UNAVAILABLE);
	young.v->ops->view_close(young.v);
	asker_wait(&old, threads[0], OK);
	old.v->ops->view_close(old.v);
	CHECK(store_query_again(&young.q));
	CHECK(metric_get(&s->metrics.query_restarts) == 1);
	CHECK_OK(young.q.base.ops->view_open(&young.q.base, STR(""), &young.v, &e), &e);
	CHECK_OK(young.v->ops->hold(young.v, limit / 4 * 3, &e), &e);
	young.v->ops->view_close(young.v);
	store_query_deinit(&old.q);
	store_query_deinit(&young.q);
	CHECK(memory_used(&s->queries_memory) == 0);
	store_close(s);
	fixture_clean(dir);
}

static bool has_gone(void *ctx)
{
	return atomic_load((atomic_bool *)ctx);
}

static bool stands_in_queue(struct memory_share *m, const struct memory_holder *h)
{
	lock_take(&m->lock);
	bool waits = h->wants > 0;
	lock_release(&m->lock);
	return waits;
}

static void who_goes_leaves_the_queue(void **state)
{
	(void)state;
	char dir[64];
	struct asker first, second, third;
	atomic_bool gone = false;
	pthread_t threads[2];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	uint64_t limit = s->config.memory_bytes / 4;
	asker_open(&first, s, NULL, NULL);
	asker_open(&second, s, has_gone, &gone);
	asker_open(&third, s, NULL, NULL);
	CHECK_OK(first.v->ops->hold(first.v, limit / 2, &e), &e);
	second.bytes = limit / 4 * 3;
	third.bytes = limit / 4;
	CHECK(pthread_create(&threads[0], NULL, hold_more_of_it, &second) == 0);
	while (!stands_in_queue(&s->queries_memory, second.q.holder))
		usleep(1000);
	CHECK(pthread_create(&threads[1], NULL, hold_more_of_it, &third) == 0);
	CHECK(!atomic_load(&second.done));
	atomic_store(&gone, true);
	asker_wait(&second, threads[0], E_CANCELED);
	asker_wait(&third, threads[1], OK); /* it stood behind */
	struct asker *all[] = { &first, &second, &third };
	for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
		all[i]->v->ops->view_close(all[i]->v);
		store_query_deinit(&all[i]->q);
	}
	CHECK(memory_used(&s->queries_memory) == 0);
	store_close(s);
	fixture_clean(dir);
}

/* All that a view answers but types. */
static enum status ask(struct samples_view *v, int which, struct samples_query *q, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	static const struct str by[] = { { "comm", 4 }, { "pid", 3 } };
	struct samples_tree tree = { 0 };
	struct profile p = { 0 };
	struct samples_series *series;
	struct samples_hit *hits;
	struct samples_type type;
	struct str *texts;
	int64_t period;
	size_t n;
	arena_init(&a, 64 << 20);
	switch (which) {
	case 0: {
		enum status s = v->ops->sum_stacks(v, q, &tree, e);
		samples_tree_deinit(&tree);
		return s;
	}
	case 1: {
		enum status s = v->ops->collect(v, q, by, 2, &p, e);
		profile_deinit(&p);
		return s;
	}
	case 2:
		return v->ops->sum_series(
			v, q, by, 2, 10 * SEC, &a, &series, &n, &type, &period, e);
	case 3:
		return v->ops->where(v, q, choose_all, NULL, &a, &hits, &n, e);
	case 4:
		return v->ops->label_names(v, q, &a, &texts, &n, e);
	default:
		return v->ops->label_values(v, q, STR("pid"), &a, &texts, &n, e);
	}
}
enum { QUESTIONS = 6 };

/* Whatever it is that takes the memory, who asks reads what he can do, and no path. */
static void limits_say_what_to_do(void **state)
{
	(void)state;
	char dir[64];
	struct samples_view *v;
	struct fx_query f;
	struct err e = { 0 };
	int refused[QUESTIONS] = { 0 }, answered = 0;
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	struct samples_db *db = store_samples(s);
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	for (int k = 0; k < QUESTIONS; k++)
		for (uint64_t bytes = 500; bytes < 1 << 20; bytes += bytes / 4) {
			CHECK_OK(db->ops->view_open(db, STR(""), &v, &e), &e);
			q->memory_bytes = bytes;
			enum status st = ask(v, k, q, &e);
			if (st != OK &&
				!strstr(e.text, "a shorter time range or a narrower selector"))
				print_error("question %d, %llu bytes: %s\n", k,
					(unsigned long long)bytes, e.text);
			CHECK(st == OK || (st == E_LIMIT && !strstr(e.text, dir)));
			CHECK(st == OK ||
				strstr(e.text, "a shorter time range or a narrower selector"));
			refused[k] += st != OK;
			answered += st == OK;
			v->ops->view_close(v);
			for (size_t i = 0; i < s->parts.len; i++)
				part_trim(s->parts.v[i], ~0u, INT64_MAX);
		}
	for (int k = 0; k < QUESTIONS; k++)
		CHECK(refused[k] > 1);
	CHECK(answered > QUESTIONS);
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

/* Puts a descriptor that cannot be read in the place of a part's. */
static void break_descriptor(const char *path)
{
	char link[64], target[256];
	int put = 0;
	for (int fd = 3; fd < 1024; fd++) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ssize_t n = readlink(link, target, sizeof(target) - 1);
		if (n < 0 || !str_eq(str_make(target, (size_t)n), str_of(path)))
			continue;
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		CHECK(null >= 0 && dup2(null, fd) == fd && close(null) == 0);
		put++;
	}
	CHECK(put == 1);
}

static void failures_name_no_path(void **state)
{
	(void)state;
	char dir[64];
	struct samples_view *v;
	struct fx_query f;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 0);
	struct samples_db *db = store_samples(s);
	struct samples_query *q = fx_query(&f, model_types[0].text, 0, INT64_MAX);
	for (size_t i = 0; i < s->parts.len; i++)
		break_descriptor(part_path(s->parts.v[i]));
	CHECK_OK(db->ops->view_open(db, STR(""), &v, &e), &e);
	for (int k = 0; k < QUESTIONS; k++) {
		CHECK(ask(v, k, q, &e) == E_IO);
		CHECK(!strstr(e.text, dir) && strstr(e.text, "read 0000000000"));
	}
	v->ops->view_close(v);
	fx_query_end(&f);
	store_close(s);
	fixture_clean(dir);
}

/* A process near its limit, here of one byte, takes one at a time. */
static void near_the_limit_one_at_a_time(void **state)
{
	(void)state;
	char dir[64];
	struct samples_view *v, *other;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_with_parts(dir, 1);
	struct samples_db *db = store_samples(s);
	usleep(10000);
	struct store_entry *first = NULL, *second = NULL;
	CHECK_OK(store_admit(s, 1000, &first, &e), &e);
	CHECK(store_admit(s, 1000, &second, &e) == E_UNAVAILABLE);
	/* While it waits for its sender it keeps what it says, and takes the rest again later. */
	store_admit_keep(s, first, 400);
	CHECK(memory_used(&s->ingest_memory) == 400);
	store_admit_keep(s, first, 500);
	CHECK(memory_used(&s->ingest_memory) == 400);
	CHECK_OK(store_admit(s, 50, &first, &e), &e);
	CHECK(memory_used(&s->ingest_memory) == 1050);
	store_admit_end(s, first);
	CHECK(memory_used(&s->ingest_memory) == 0);
	CHECK_OK(store_admit(s, 1000, &second, &e), &e);
	store_admit_end(s, second);
	CHECK_OK(db->ops->view_open(db, STR(""), &v, &e), &e);
	CHECK_OK(db->ops->view_open(db, STR(""), &other, &e), &e);
	CHECK_OK(v->ops->hold(v, 1000, &e), &e);
	CHECK(other->ops->hold(other, 1000, &e) == E_UNAVAILABLE);
	v->ops->view_close(v);
	CHECK_OK(other->ops->hold(other, 1000, &e), &e);
	other->ops->view_close(other);
	CHECK(metric_get(&s->metrics.pressed) == 1);
	CHECK(store_upkeep_bytes(s) == REWRITE_BYTES(s) / 4);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(each_sample_once), cmocka_unit_test(loading_a_part_stops_nobody),
	cmocka_unit_test(tables_go_when_nobody_needs_them),
	cmocka_unit_test(answers_are_the_same_where_no_labels_stay),
	cmocka_unit_test(answers_count_while_they_live),
	cmocka_unit_test(views_of_a_query_count_together),
	cmocka_unit_test(queries_wait_for_each_other), cmocka_unit_test(who_goes_leaves_the_queue),
	cmocka_unit_test(limits_say_what_to_do), cmocka_unit_test(failures_name_no_path),
	cmocka_unit_test(near_the_limit_one_at_a_time))
