/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resolve has three steps: get the tables of all mappings that have nameless locations (waiting
 * for builds as long as the caller allows), fill the lines of those locations, give the rest a name
 * made of file and offset (name.c). An idle thread, if there is one, helps with the first two.
 */
#include "symbolize/name.h"
#include "symbolize/tables.h"

#include "base/clock.h"
#include "os/os.h"

#include <stdlib.h>

/* From this many locations on, a second thread is used. */
#define BESIDE_LOCATIONS_MIN 4096
#define BESIDE_MAPPINGS_MIN 8

struct symbolizer {
	struct symbolize_metrics metrics;
	struct symbolize_tables *tables;
	struct os_pool *pool;
};

void symbolizer_config_default(struct symbolizer_config *c)
{
	*c = (struct symbolizer_config){
		.dir = "",
		.debug_dirs = "/usr/lib/debug",
		.local_files = true,
		.memory_bytes = (uint64_t)256 << 20,
		.disk_bytes = (uint64_t)8 << 30,
		.workers = 1,
		.wants_min = 1,
		.look_ns = 10 * NS_PER_SEC,
		.whole_bytes = (uint64_t)256 << 20,
		.trim_idle_ns = 120 * NS_PER_SEC,
		.sweep_ns = 3600 * NS_PER_SEC,
		.close_ns = 120 * NS_PER_SEC,
	};
	debuginfo_limits_default(&c->limits);
}

static void symbolizer_cleanup(struct symbolizer **s)
{
	symbolizer_free(*s);
}

enum status symbolizer_new(
	const struct symbolizer_config *c, struct symbolizer **out, struct err *e)
{
	CLEANUP(symbolizer_cleanup) struct symbolizer *sym = calloc(1, sizeof(*sym));
	if (!sym)
		return err_set(e, E_NOMEM, "symbolizer");
	enum status s = symbolize_tables_new(c, &sym->metrics, &sym->tables, e);
	sym->pool = c->pool;
	if (s == OK)
		*out = STEAL_PTR(sym);
	return s;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	symbolize_tables_free(s->tables);
	free(s);
}

struct symbolize_tables *symbolizer_tables(struct symbolizer *s)
{
	return s->tables;
}

enum status symbolizer_offer(
	struct symbolizer *s, const char *build_id, const char *path, int fd, struct err *e)
{
	return symbolize_tables_offer(s->tables, build_id, path, fd, e);
}

enum status symbolizer_look_again(
	struct symbolizer *s, const char *build_id, bool replace, struct err *e)
{
	return symbolize_tables_look_again(s->tables, build_id, replace, e);
}

void symbolizer_set_samples(struct symbolizer *s, const struct symbolizer_samples *samples)
{
	symbolize_tables_set_samples(s->tables, samples);
}

void symbolizer_want(struct symbolizer *s, struct str build_id, struct str path)
{
	symbolize_tables_want(s->tables, build_id, path);
}

size_t symbolizer_list_pending(
	struct symbolizer *s, const struct profile *p, struct str *out, size_t max)
{
	size_t count = 0;
	for (size_t i = 1; i < p->mappings.len && count < max; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		if (symbolize_tables_is_pending(s->tables, profile_str(p, m->build_id)))
			out[count++] = symbolize_base_name(profile_str(p, m->filename));
	}
	return count;
}

void symbolizer_write_metrics(struct symbolizer *s, struct buf *out)
{
	static const struct metric_def defs[] = { SYMBOLIZE_METRICS(METRIC_DEF) };
	metrics_write(out, defs, (const metric_value *)&s->metrics, ARRAY_COUNT(defs));
}

/* ---- one resolve ---- */

struct resolve {
	struct symbolizer *s;
	struct profile *p;
	struct symbolize_mapping *mappings;
	/* The second one keeps its own names until both are joined. */
	struct symbolize_namer first, second;
	uint32_t middle; /* the location that the second part begins with */
	atomic_bool second_taken;
	atomic_size_t next; /* next mapping whose table is needed */
	atomic_bool any_pending;
};

static void resolve_deinit(struct resolve *r)
{
	for (size_t i = 0; r->mappings && i < r->p->mappings.len; i++)
		symbolize_ref_release(r->s->tables, r->mappings[i].ref);
	free(r->mappings);
	symbolize_namer_deinit(&r->first);
	symbolize_namer_deinit(&r->second);
}

/* ---- the tables ---- */

static bool needs_lines(const struct profile *p, size_t i)
{
	return i != 0 && p->locations.v[i].line_count == 0;
}

/* Requests the whole tables in place of trimmed ones that lack an address. */
static void look_for_lacks(struct resolve *r)
{
	struct profile *p = r->p;
	bool any = false;
	for (size_t i = 1; i < p->mappings.len; i++) {
		struct symbolize_mapping *m = &r->mappings[i];
		struct debuginfo_table_info info = { 0 };
		if (m->ref)
			debuginfo_table_describe(symbolize_ref_table(m->ref), &info);
		m->is_trimmed = info.trimmed;
		any |= info.trimmed;
	}
	for (size_t i = 1; any && i < p->locations.len; i++) {
		const struct profile_location *l = &p->locations.v[i];
		struct symbolize_mapping *m = &r->mappings[l->mapping];
		if (m->is_trimmed && !m->lacks && needs_lines(p, i))
			m->lacks = symbolize_lacks(&p->mappings.v[l->mapping],
				symbolize_ref_table(m->ref), l->address);
	}
}

static void get_next_tables(void *ctx, unsigned worker)
{
	struct resolve *r = ctx;
	size_t i;
	(void)worker;
	while ((i = atomic_fetch_add(&r->next, 1)) < r->p->mappings.len) {
		struct symbolize_mapping *state = &r->mappings[i];
		const struct profile_mapping *m = &r->p->mappings.v[i];
		if (!state->wanted || (state->ref && !state->lacks))
			continue;
		symbolize_ref_release(r->s->tables, state->ref);
		symbolize_tables_get(r->s->tables, profile_str(r->p, m->build_id),
			profile_str(r->p, m->filename), state->lacks, &state->ref, &state->pending);
		if (state->pending)
			atomic_store(&r->any_pending, true);
	}
}

/* Gets the tables. True: some are being built. */
static bool get_tables(struct resolve *r)
{
	atomic_store(&r->next, 1);
	atomic_store(&r->any_pending, false);
	if (r->p->mappings.len > BESIDE_MAPPINGS_MIN)
		os_pool_run(r->s->pool, 2, get_next_tables, r);
	else
		get_next_tables(r, 0);
	return atomic_load(&r->any_pending);
}

static void wait_for_tables(struct resolve *r, uint32_t wait_ms)
{
	uint64_t seen = 0;
	int64_t deadline = clock_monotonic_ns() + (int64_t)wait_ms * NS_PER_MS;
	(void)get_tables(r);
	look_for_lacks(r);
	bool pending = get_tables(r);
	while (pending && wait_ms && symbolize_tables_wait(r->s->tables, &seen, deadline))
		pending = get_tables(r);
}

/* ---- the names ---- */

/* Functions that came with names: those a compiler mangled are made readable. */
static enum status demangle_functions(struct resolve *r)
{
	struct profile *p = r->p;
	for (size_t i = 1; i < p->functions.len; i++) {
		struct profile_function f = p->functions.v[i];
		struct str name = profile_str(p, f.name);
		if (name.len < 4 || name.p[0] != '_' || !strchr("ZRD", name.p[1]))
			continue;
		uint32_t id;
		enum status s =
			profile_add_string(p, symbolize_demangle(name, &r->first.scratch), &id);
		if (s != OK)
			return s;
		if (id == f.name)
			continue;
		if (f.system_name == 0)
			p->functions.v[i].system_name = f.name;
		p->functions.v[i].name = id;
	}
	return OK;
}

static enum status name_part(struct symbolize_namer *n, uint32_t from, uint32_t end)
{
	enum status s = OK;
	for (uint32_t i = from; s == OK && i < end; i++)
		if (needs_lines(n->p, i))
			s = symbolize_name(n, &n->p->locations.v[i]);
	return s;
}

/* The caller's thread names the first part, and the second one as well if no thread has begun it.
 */
static void name_next(void *ctx, unsigned worker)
{
	struct resolve *r = ctx;
	uint32_t end = (uint32_t)r->p->locations.len;
	if (worker == 0) {
		r->first.status = name_part(&r->first, 0, r->middle);
		if (r->first.status == OK && !atomic_exchange(&r->second_taken, true))
			r->first.status = name_part(&r->first, r->middle, end);
	} else if (!atomic_exchange(&r->second_taken, true)) {
		r->second.status = symbolize_namer_apart(&r->second);
		if (r->second.status == OK)
			r->second.status = name_part(&r->second, r->middle, end);
	}
}

static enum status name_all(struct resolve *r)
{
	r->middle = (uint32_t)(r->p->locations.len / 2);
	if (r->p->locations.len < BESIDE_LOCATIONS_MIN) {
		name_next(r, 0);
		return r->first.status;
	}
	os_pool_run(r->s->pool, 2, name_next, r);
	if (r->first.status != OK)
		return r->first.status;
	if (r->second.status == OK && r->second.apart)
		return symbolize_namer_join(&r->second);
	return r->second.status;
}

static enum status resolve(struct resolve *r, uint32_t wait_ms)
{
	struct profile *p = r->p;
	bool any = false;
	for (size_t i = 0; i < p->locations.len; i++) {
		if (!needs_lines(p, i))
			continue;
		any = true;
		/* Names of an interpreter's and the kernel's frames come only from the sender. */
		uint8_t kind = p->locations.v[i].kind;
		if (kind == FRAME_NATIVE || kind == FRAME_UNKNOWN || kind == FRAME_GO ||
			kind == FRAME_RUST)
			r->mappings[p->locations.v[i].mapping].wanted = true;
	}
	enum status s = demangle_functions(r);
	if (s != OK || !any)
		return s;
	wait_for_tables(r, wait_ms);
	for (size_t i = 0; i < p->mappings.len; i++)
		r->mappings[i].file =
			symbolize_base_name(profile_str(p, p->mappings.v[i].filename));
	return name_all(r);
}

enum status symbolizer_resolve(struct symbolizer *s, struct profile *p, uint32_t wait_ms,
	uint32_t *out_pending, struct err *e)
{
	CLEANUP(resolve_deinit) struct resolve r = { .s = s, .p = p };
	r.mappings = calloc(p->mappings.len, sizeof(*r.mappings));
	if (!r.mappings)
		return err_set(e, E_NOMEM, "names of locations");
	symbolize_namer_init(&r.first, p, r.mappings);
	symbolize_namer_init(&r.second, p, r.mappings);
	enum status status = resolve(&r, wait_ms);
	metric_add(&s->metrics.lookups, r.first.lookups + r.second.lookups);
	metric_add(&s->metrics.unknown, r.first.unknown + r.second.unknown);
	if (status != OK)
		return err_set(e, status, "names of locations: %s", status_text(status));
	*out_pending = r.first.pending + r.second.pending;
	return OK;
}
