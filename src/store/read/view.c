/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/view.h"

#include "base/clock.h"
#include "store/read/pool.h"

#include <stdlib.h>

#define CACHE_AGE_NS (60 * NS_PER_SEC)
#define HOLD_STEP_BYTES ((uint64_t)1 << 20)
#define WARM_WAIT_NS (2 * NS_PER_SEC) /* in all */
#define WARM_STEP_NS (20 * NS_PER_MS)
#define HOLD_STEP_NS (50 * NS_PER_MS)
#define PRESSED_WAIT_NS NS_PER_SEC
/* Tables of parts that are kept: the share that memory.h leaves them. */
#define CACHE_SHARE 8

uint64_t budget_left(const struct budget *b)
{
	uint64_t used = __atomic_load_n(&b->used, __ATOMIC_RELAXED);
	return used < b->limit ? b->limit - used : 0;
}

void budget_give(struct budget *b, uint64_t bytes)
{
	uint64_t before = __atomic_fetch_sub(&b->used, bytes, __ATOMIC_RELAXED);
	assert(before >= bytes);
}

static enum status stopped_waiting(const struct store_query *q, uint64_t bytes, struct err *e)
{
	struct memory_share *m = &q->store->queries_memory;
	if (q->cancel && q->cancel(q->cancel_ctx))
		return err_set(e, E_CANCELED, "the caller went away");
	if (clock_monotonic_ns() < q->until_ns && !atomic_load(&q->store->stopping))
		return OK;
	return err_set(e, E_UNAVAILABLE,
		"other queries hold %llu of the %llu MiB of memory that queries have, and %llu "
		"more "
		"were not free in time: try again, or raise --storage-memory",
		(unsigned long long)(memory_used(m) >> 20), (unsigned long long)(m->limit >> 20),
		(unsigned long long)(bytes >> 20));
}

/* Near the limit of the process each query waits this once, for what is written or given back. */
static bool waits_for_room(struct store_query *q)
{
	int64_t now = clock_monotonic_ns();
	if (!q->pressed_ns)
		q->pressed_ns = now;
	return now < q->pressed_ns + PRESSED_WAIT_NS;
}

static void sleep_until(int64_t at_ns)
{
	struct timespec t = { at_ns / NS_PER_SEC, at_ns % NS_PER_SEC };
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Others are done soon, mostly. */
static enum status take_or_wait(struct store_query *q, uint64_t bytes, struct err *e)
{
	struct memory_share *m = &q->store->queries_memory;
	enum status s = OK;
	int64_t until = 0;
	for (;;) {
		bool pressed = store_relieve(q->store);
		enum memory_got got = MEMORY_WAIT;
		if (pressed && q->until_ns && waits_for_room(q))
			sleep_until(until);
		else
			got = memory_take(m, q->holder, bytes, pressed, until);
		if (got == MEMORY_GOT)
			return OK;
		if (got == MEMORY_YIELD) {
			q->again = true;
			s = err_set(e, E_UNAVAILABLE,
				"an older query needs the memory of this one: try again");
		} else {
			s = stopped_waiting(q, bytes, e);
		}
		if (s != OK)
			break;
		until = MIN(clock_monotonic_ns() + HOLD_STEP_NS, q->until_ns);
	}
	memory_leave(m, q->holder);
	return s;
}

static void give_back(struct store_view *v, uint64_t bytes)
{
	memory_give(&v->store->queries_memory, v->query->holder, bytes);
}

/* At least `bytes` of the share for queries. */
static enum status hold(struct store_view *v, uint64_t bytes, struct err *e)
{
	if (bytes <= __atomic_load_n(&v->held, __ATOMIC_RELAXED))
		return OK;
	enum status s = OK;
	pthread_mutex_lock(&v->hold_lock);
	uint64_t held = v->held, want = (bytes / HOLD_STEP_BYTES + 1) * HOLD_STEP_BYTES;
	if (want > held)
		s = take_or_wait(v->query, want - held, e);
	if (s == OK && want > held)
		__atomic_store_n(&v->held, want, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&v->hold_lock);
	return s;
}

enum status budget_fail(const struct budget *b, enum status s, struct err *e)
{
	if (s == E_LIMIT)
		return err_set(e, s,
			"the query needs more than the %llu MiB of memory that queries have: a "
			"shorter time range or a narrower selector fits, or a larger "
			"--storage-memory",
			(unsigned long long)(b->limit >> 20));
	return s == E_NOMEM ? err_set(e, s, "there is no memory for the answer") : s;
}

enum status budget_take(struct budget *b, uint64_t bytes, struct err *e)
{
	uint64_t used = __atomic_load_n(&b->used, __ATOMIC_RELAXED), sum;
	do
		if (__builtin_add_overflow(used, bytes, &sum) || sum > b->limit)
			return budget_fail(b, E_LIMIT, e);
	while (!__atomic_compare_exchange_n(
		&b->used, &used, sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	enum status s = b->view ? hold(b->view, sum, e) : OK;
	if (s != OK)
		budget_give(b, bytes);
	return s;
}

enum status budget_array(struct budget *b, size_t count, size_t size, void *out_ptr, struct err *e)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes))
		return budget_fail(b, E_LIMIT, e);
	enum status s = budget_take(b, bytes, e);
	if (s != OK)
		return s;
	void *p = calloc(MAX(count, (size_t)1), size);
	if (!p)
		return budget_fail(b, E_NOMEM, e);
	memcpy(out_ptr, &p, sizeof(p));
	return OK;
}

struct budget query_budget(struct store_view *v, const struct samples_query *q)
{
	uint64_t limit = q->memory_bytes ? q->memory_bytes : v->store->config.memory_bytes / 4;
	return (struct budget){ .view = v, .limit = limit };
}

enum status query_check(const struct samples_query *q, struct err *e)
{
	if (q->from_ns >= q->to_ns)
		return err_set(e, E_INVALID,
			"the time range is empty: it begins at %lld ns and "
			"ends at %lld ns",
			(long long)q->from_ns, (long long)q->to_ns);
	return samples_stopped(q, e); /* once at least, whichever thread then does the work */
}

unsigned view_width(struct store_view *v)
{
	struct memory_share *m = &v->store->queries_memory;
	return memory_used(m) > m->limit / 2 ? 1 : pool_width(v->store->pool);
}

static const struct samples_ops ops, query_ops;

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
	bool again = q->again;
	q->again = false;
	if (!again)
		return false;
	metric_add(&q->store->metrics.query_restarts, 1);
	while (stopped_waiting(q, 0, NULL) == OK) {
		int64_t until = MIN(clock_monotonic_ns() + HOLD_STEP_NS, q->until_ns);
		if (memory_await(&q->store->queries_memory, q->holder, until) == MEMORY_GOT)
			return true;
	}
	return false;
}

/* ---- life ---- */

static void add_memtable(struct store_view *v, struct memtable *m)
{
	struct memtable_snapshot snap;
	memtable_snapshot(m, &snap);
	if (snap.row_count == 0) {
		memtable_unref(snap.table);
		return;
	}
	v->sources[v->source_count++] = (struct source){
		.mem = snap,
		.tabs = snap.tabs,
		.pinned = PART_LOAD_ALL,
		.first_ns = snap.first_ns,
		.last_ns = snap.last_ns,
	};
}

enum status store_view_open(
	struct store *s, struct str tenant, struct store_view **out, struct err *e)
{
	if (tenant.len > STORE_TENANT_MAX)
		return err_set(e, E_INVALID, "a tenant's name of %zu bytes; %d are allowed",
			tenant.len, STORE_TENANT_MAX);
	struct store_view *v = calloc(1, sizeof(*v));
	if (!v)
		return err_set(e, E_NOMEM, "a view");
	v->base.ops = &ops;
	v->store = s;
	v->own_query.store = s;
	v->own_query.holder = &v->own_holder;
	v->query = &v->own_query;
	pthread_mutex_init(&v->hold_lock, NULL);
	memcpy(v->tenant_text, tenant.p ? tenant.p : "", tenant.len);
	v->tenant = str_make(v->tenant_text, tenant.len);
	pthread_mutex_lock(&s->lock);
	v->sources = calloc(s->parts.len + 2, sizeof(*v->sources));
	v->dictionary = s->dictionary ? dictionary_ref(s->dictionary) : NULL;
	if (v->sources) {
		for (size_t i = 0; i < s->parts.len; i++) {
			const struct part_meta *m = part_meta(s->parts.v[i]);
			v->sources[v->source_count++] = (struct source){
				.part = part_ref(s->parts.v[i]),
				.first_ns = m->first_ns,
				.last_ns = m->last_ns,
			};
		}
		if (s->frozen)
			add_memtable(v, s->frozen);
		add_memtable(v, s->active);
		s->views++;
	}
	pthread_mutex_unlock(&s->lock);
	if (!v->sources) {
		dictionary_unref(v->dictionary);
		free(v);
		return err_set(e, E_NOMEM, "a view");
	}
	*out = v;
	return OK;
}

static void unpin(struct source *s)
{
	label_ids_unref(s->ids);
	s->ids = NULL;
	s->dropped = false;
	if (s->part && s->pinned) {
		part_unpin(s->part, s->pinned);
		s->pinned = 0;
		s->tabs = (struct tabs){ 0 };
	}
}

void view_release(struct store_view *v)
{
	give_back(v, v->held);
	v->held = 0;
	for (size_t i = 0; i < v->source_count; i++)
		unpin(&v->sources[i]);
}

/* What parts keep loaded is a cache: an eighth of the budget, and only while it is used; labels,
 * which every page asks for, as long as there is room. */
void store_trim_caches(struct store *s)
{
	static const unsigned in_turn[] = { ~(unsigned)PART_KEEP, ~0u };
	int64_t now = clock_monotonic_ns();
	uint64_t loaded = 0;
	pthread_mutex_lock(&s->lock);
	uint64_t most = s->config.memory_bytes / CACHE_SHARE;
	for (size_t i = 0; i < s->parts.len; i++)
		loaded += part_trim(s->parts.v[i], in_turn[0], now - CACHE_AGE_NS);
	for (size_t k = 0; k < ARRAY_COUNT(in_turn); k++)
		for (size_t i = 0; i < s->parts.len && loaded > most; i++) {
			uint64_t before = part_trim(s->parts.v[i], 0, INT64_MIN);
			uint64_t after = part_trim(s->parts.v[i], in_turn[k], INT64_MAX);
			loaded -= MIN(loaded, before > after ? before - after : 0);
		}
	pthread_mutex_unlock(&s->lock);
}

static int newest_first(const void *a, const void *b)
{
	struct part *const *x = a, *const *y = b;
	int64_t tx = part_meta(*x)->last_ns, ty = part_meta(*y)->last_ns;
	return tx > ty ? -1 : tx < ty;
}

/* Bytes that the part keeps loaded. What cannot be loaded is for those to find who ask. */
static uint64_t warm_part(
	struct part *p, unsigned groups, struct dictionary *d, uint64_t limit_bytes)
{
	struct tabs t;
	struct label_ids *ids;
	if (part_pin(p, groups, limit_bytes, &t, NULL) != OK)
		return 0;
	if (d && part_label_ids(p, d, &ids) == OK)
		label_ids_unref(ids);
	uint64_t bytes = part_forget(p, 0);
	part_unpin(p, groups);
	return bytes;
}

/* Questions go first, for a while: they load what they need. True: go on. */
static bool may_warm(struct store *s, int64_t deadline_ns)
{
	pthread_mutex_lock(&s->lock);
	while (s->views && !s->stopping && clock_monotonic_ns() < deadline_ns) {
		int64_t until = clock_monotonic_ns() + WARM_STEP_NS;
		struct timespec t = { until / NS_PER_SEC, until % NS_PER_SEC };
		(void)pthread_cond_timedwait(&s->merge_wake, &s->lock, &t);
	}
	bool stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return !stopping;
}

void store_warm(struct store *s)
{
	/* First what values of labels are found in, then what selectors ask. */
	static const unsigned in_turn[] = { PART_LOAD_TEXTS | PART_LOAD_KINDS, PART_KEEP };
	int64_t deadline = clock_monotonic_ns() + WARM_WAIT_NS;
	pthread_mutex_lock(&s->lock);
	uint64_t most = s->config.memory_bytes / CACHE_SHARE;
	size_t n = s->parts.len, count = 0;
	CLEANUP(free_cleanup) struct part **v = calloc(MAX(n, (size_t)1), sizeof(struct part *));
	struct dictionary *d = s->dictionary ? dictionary_ref(s->dictionary) : NULL;
	for (size_t i = 0; v && i < n; i++)
		v[count++] = part_ref(s->parts.v[i]);
	pthread_mutex_unlock(&s->lock);
	if (count)
		qsort(v, count, sizeof(struct part *), newest_first);
	for (size_t k = 0; k < ARRAY_COUNT(in_turn); k++) {
		uint64_t loaded = 0; /* of the parts so far, all that is */
		for (size_t i = 0; i < count && loaded < most && may_warm(s, deadline); i++)
			loaded += warm_part(v[i], in_turn[k], k ? d : NULL, most - loaded);
	}
	for (size_t i = 0; i < count; i++)
		part_unref(v[i]);
	dictionary_unref(d);
}

void store_view_close(struct store_view *v)
{
	if (!v)
		return;
	view_release(v);
	give_back(v, v->kept);
	store_trim_caches(v->store);
	for (size_t i = 0; i < v->source_count; i++) {
		part_unref(v->sources[i].part);
		memtable_unref(v->sources[i].mem.table);
	}
	struct store *s = v->store;
	pthread_mutex_lock(&s->lock);
	s->views--;
	pthread_mutex_unlock(&s->lock);
	free(v->sources);
	dictionary_unref(v->dictionary);
	pthread_mutex_destroy(&v->hold_lock);
	free(v);
	(void)store_relieve(s);
}

/* Those who use the full one keep it. */
static void replace_dictionary(struct store *s, const struct dictionary *full)
{
	struct dictionary *fresh = NULL;
	pthread_mutex_lock(&s->lock);
	if (s->dictionary == full &&
		dictionary_new(s->config.memory_bytes / DICTIONARY_SHARE, &fresh) == OK) {
		struct dictionary *old = s->dictionary;
		s->dictionary = fresh;
		dictionary_unref(old);
	}
	pthread_mutex_unlock(&s->lock);
}

/* Whether so many bytes more stay loaded until the view's end. */
static bool keeps(struct store_view *v, uint64_t bytes)
{
	if (__atomic_add_fetch(&v->cached, bytes, __ATOMIC_RELAXED) <=
		v->store->config.memory_bytes / CACHE_SHARE)
		return true;
	__atomic_sub_fetch(&v->cached, bytes, __ATOMIC_RELAXED);
	return false;
}

static void drop(struct source *s, unsigned groups)
{
	part_forget(s->part, groups);
	s->pinned &= ~groups;
	if (!(groups & PART_LOAD_LABELS))
		return;
	label_ids_unref(s->ids);
	s->ids = NULL;
	s->dropped = true;
}

enum status source_load_labels(struct store_view *v, struct source *s, const struct budget *b,
	bool *out_keep, struct err *e)
{
	*out_keep = true;
	enum status st = source_load(v, s, PART_LOAD_LABELS, b, e);
	if (st != OK || !s->part)
		return st;
	if (!s->kept) {
		uint64_t bytes = part_group_bytes(s->part, PART_LOAD_LABELS);
		s->kept = keeps(v, bytes) ? MAX(bytes, (uint64_t)1) : 0;
	}
	*out_keep = s->kept != 0;
	if (s->ids || !v->dictionary || !s->kept)
		return OK;
	st = part_label_ids(s->part, v->dictionary, &s->ids);
	if (st == E_LIMIT) {
		replace_dictionary(v->store, v->dictionary);
		return OK;
	}
	return st == OK ? OK : err_set(e, st, "labels");
}

enum status source_load(struct store_view *v, struct source *s, unsigned groups,
	const struct budget *b, struct err *e)
{
	struct tabs tabs;
	groups |= s->dropped ? PART_LOAD_LABELS : 0;
	if ((s->pinned & groups) == groups)
		return OK;
	groups &= ~s->pinned;
	enum status st = part_pin(s->part, groups, budget_left(b), &tabs, e);
	if (st == E_CORRUPT)
		view_damaged(v, s->part);
	if (st != OK)
		return budget_fail(b, st, e);
	s->pinned |= groups;
	s->tabs = tabs;
	return OK;
}

void source_rest(struct store_view *v, struct source *s)
{
	(void)v;
	if (!s->part || s->kept)
		return;
	drop(s, s->pinned);
	s->tabs = (struct tabs){ 0 };
}

void source_done(struct store_view *v, struct source *s)
{
	unsigned stay = s->kept ? PART_KEEP : PART_KEEP & ~(unsigned)PART_LOAD_LABELS;
	if (!s->part || !(s->pinned & ~stay))
		return;
	uint64_t bytes = part_forget(s->part, 0);
	if (!keeps(v, bytes - MIN(bytes, s->kept)))
		drop(s, s->pinned & ~stay);
}

void view_damaged(struct store_view *v, struct part *p)
{
	__atomic_store_n(&v->damaged, p, __ATOMIC_RELAXED);
}

bool view_heal(struct store_view *v, enum status s, const struct err *e)
{
	struct part *p = v->damaged;
	v->damaged = NULL;
	if (s != E_CORRUPT || !p)
		return false;
	view_release(v);
	v->cached = 0;
	for (size_t i = 0; i < v->source_count; i++) {
		if (v->sources[i].part != p)
			continue;
		store_quarantine(v->store, p, err_text(e, s));
		part_unref(p);
		v->sources[i] = v->sources[--v->source_count];
		return true;
	}
	return false;
}

struct str source_label(const struct source *s, uint32_t series, uint32_t set, struct str name)
{
	int at = tabs_name_find(&s->tabs, name);
	if (at >= 0 && s->tabs.sets) {
		size_t width = 1 + s->tabs.name_count;
		uint32_t value = s->tabs.sets[set * width + 1 + (size_t)at];
		if (value)
			return s->tabs.sample_strings[value];
	}
	return tabs_series_label(&s->tabs, series, name);
}

/* ---- the same as samples/samples.h wants it ---- */

static struct store_view *mine(struct samples_view *v)
{
	return (struct store_view *)v;
}

static enum status view_open(
	struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e)
{
	struct store_view *v;
	enum status s = store_view_open((struct store *)db, tenant, &v, e);
	if (s == OK)
		*out = &v->base;
	return s;
}

static enum status query_view_open(
	struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e)
{
	struct store_query *q = (struct store_query *)db;
	enum status s = view_open(&q->store->samples, tenant, out, e);
	if (s == OK)
		mine(*out)->query = q;
	return s;
}

static void view_close(struct samples_view *v)
{
	store_view_close(mine(v));
}

/* An answer is there until the view is closed, and counts as long. */
static void keep(struct store_view *v, uint64_t bytes)
{
	memory_take_anyway(&v->store->queries_memory, v->query->holder, bytes);
	v->kept += bytes;
}

static enum status hold_more(struct samples_view *view, uint64_t bytes, struct err *e)
{
	struct store_view *v = mine(view);
	uint64_t limit = v->store->config.memory_bytes / 4;
	if (bytes > limit || v->kept > limit - bytes)
		return err_set(e, E_LIMIT,
			"the answer needs more than the %llu MiB of memory that queries have: a "
			"shorter time range or a narrower selector fits, or a larger "
			"--storage-memory",
			(unsigned long long)(limit >> 20));
	return hold(v, bytes, e);
}

/* What a client reads says nothing of where the server keeps its files. */
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
		keep(mine(v), profile_bytes(&out->tables) + out->nodes.cap * sizeof(*out->nodes.v));
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
		keep(mine(v), profile_bytes(out));
	return tell(v, s, e);
}

static enum status sum_cells(struct samples_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct samples_cells *out, struct err *e)
{
	enum status s = store_sum_cells(mine(v), q, keep_labels, keep_count, out, e);
	if (s == OK)
		keep(mine(v), profile_bytes(&out->tree.tables) +
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

static void beside(struct samples_view *v, samples_work_fn *fn, void *ctx)
{
	pool_run(mine(v)->store->pool, 2, fn, ctx);
}

/* What differs is how a view is opened. */
#define OPS(open)                                                                               \
	{                                                                                       \
		.beside = beside, .hold = hold_more, .where = where, .view_open = (open),       \
		.view_close = view_close, .types = types, .label_names = label_names,           \
		.label_values = label_values, .sum_stacks = sum_stacks, .sum_cells = sum_cells, \
		.sum_series = sum_series, .collect = collect,                                   \
	}
static const struct samples_ops ops = OPS(view_open);
static const struct samples_ops query_ops = OPS(query_view_open);
