/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A series is the hash of its type and labels. Each tenant has two sets of hashes: those of this
 * window and those of the one before; a series is new when it is in neither. Beyond the limit
 * samples of a new series are refused, and samples of known series are stored.
 *
 * A batch has far fewer series than samples, and fewer label sets than either, so each set is
 * hashed once and each combination is looked up once.
 */
#include "ingest/ingest.h"

#include "base/hash.h"
#include "base/map.h"

#include <stdlib.h>

struct series_set {
	struct map index; /* of hashes[] */
	VEC(uint64_t) hashes;
};

struct series_tenant {
	char name[SAMPLES_TENANT_MAX + 1];
	int64_t since_ns; /* of `now` */
	struct series_set now;
	struct series_set before;
};

static bool hash_equal(const void *ctx, uint32_t value, const void *key)
{
	return ((const struct series_set *)ctx)->hashes.v[value] == *(const uint64_t *)key;
}

static bool set_has(const struct series_set *s, uint64_t hash)
{
	return map_find(&s->index, hash, hash_equal, s, &hash) != MAP_NONE;
}

static bool set_add(struct series_set *s, uint64_t hash)
{
	return VEC_RESERVE(&s->hashes, s->hashes.len + 1) &&
	       map_insert(&s->index, hash, (uint32_t)s->hashes.len) && VEC_PUSH(&s->hashes, hash);
}

static void set_deinit(struct series_set *s)
{
	map_deinit(&s->index);
	VEC_FREE(&s->hashes);
}

enum status series_guard_init(struct series_guard *g)
{
	*g = (struct series_guard){ 0 };
	g->tenants = calloc(SERIES_TENANTS_MAX, sizeof(*g->tenants));
	if (!g->tenants)
		return E_NOMEM;
	lock_init(&g->lock, LOCK_SERIES_GUARD);
	return OK;
}

void series_guard_deinit(struct series_guard *g)
{
	if (!g->tenants)
		return;
	for (size_t i = 0; i < g->tenant_count; i++) {
		set_deinit(&g->tenants[i].now);
		set_deinit(&g->tenants[i].before);
	}
	free(g->tenants);
	g->tenants = NULL;
	lock_destroy(&g->lock);
}

static struct series_tenant *find_tenant(struct series_guard *g, struct str tenant)
{
	for (size_t i = 0; i < g->tenant_count; i++)
		if (str_eq(str_of(g->tenants[i].name), tenant))
			return &g->tenants[i];
	if (g->tenant_count == SERIES_TENANTS_MAX)
		return &g->tenants[SERIES_TENANTS_MAX - 1];
	struct series_tenant *t = &g->tenants[g->tenant_count++];
	memcpy(t->name, tenant.p ? tenant.p : "", MIN(tenant.len, (size_t)SAMPLES_TENANT_MAX));
	return t;
}

static void turn(struct series_tenant *t, int64_t now_ns)
{
	if (t->since_ns && now_ns < t->since_ns + SERIES_WINDOW_NS)
		return;
	bool stale = now_ns >= t->since_ns + 2 * SERIES_WINDOW_NS;
	set_deinit(&t->before);
	t->before = t->now;
	t->now = (struct series_set){ 0 };
	if (stale)
		set_deinit(&t->before);
	t->since_ns = now_ns;
}

/* ---- a batch ---- */

static uint64_t hash_labels(const struct profile *p, uint32_t id)
{
	const struct profile_labels *set = &p->label_sets.v[id];
	uint64_t h = 0x9E3779B97F4A7C15u;
	for (uint32_t i = 0; i < set->count; i++) {
		const struct profile_label *l = &p->labels.v[set->first + i];
		struct str name = profile_str(p, l->name), value = profile_str(p, l->value);
		if (profile_label_is_of_sample(name))
			continue;
		h = hash_u64(h ^ hash64(name.p, name.len));
		h = hash_u64(h ^ hash64(value.p, value.len));
	}
	return h ? h : 1;
}

static uint64_t hash_type(const struct profile *p, uint32_t id)
{
	const struct profile_type *t = &p->types.v[id];
	const uint32_t parts[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit };
	uint64_t h = t->delta;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		struct str s = profile_str(p, parts[i]);
		h = hash_u64(h ^ hash64(s.p, s.len));
	}
	return h ? h : 1;
}

/* Hashes of types and label sets, 0: not computed yet. */
struct batch {
	struct profile *p;
	uint64_t *types;
	uint64_t *sets;
	uint32_t series_max;
	struct series_set known; /* series of this batch that were looked up already */
	struct series_set refused;
};

static uint64_t series_of(struct batch *b, const struct profile_sample *s)
{
	uint32_t type = b->p->heads.v[s->head].type;
	if (!b->types[type])
		b->types[type] = hash_type(b->p, type);
	if (!b->sets[s->resource])
		b->sets[s->resource] = hash_labels(b->p, s->resource);
	if (!b->sets[s->own])
		b->sets[s->own] = hash_labels(b->p, s->own);
	return hash_u64(hash_u64(b->types[type] ^ b->sets[s->resource]) ^ (b->sets[s->own] << 1));
}

/* *out_ok: samples of this series are accepted. False: no memory. */
static bool admit(struct series_tenant *t, struct batch *b, uint64_t series, bool *out_ok)
{
	*out_ok = true;
	if (set_has(&b->known, series))
		return true;
	if (set_has(&b->refused, series)) {
		*out_ok = false;
		return true;
	}
	if (!set_has(&t->now, series)) {
		bool is_new = !set_has(&t->before, series);
		if (is_new && b->series_max &&
			MAX(t->now.hashes.len, t->before.hashes.len) >= b->series_max) {
			*out_ok = false;
			return set_add(&b->refused, series);
		}
		if (!set_add(&t->now, series))
			return false;
	}
	return set_add(&b->known, series);
}

static enum status limit_locked(struct series_tenant *t, struct batch *b, uint64_t *out_refused)
{
	size_t kept = 0;
	uint64_t last = 0;
	bool last_ok = false;
	struct profile_sample before = { 0 };
	for (size_t i = 0; i < b->p->samples.len; i++) {
		struct profile_sample *s = &b->p->samples.v[i];
		/* Samples without labels of their own have the series of the sample before. */
		bool alike = i && s->head == before.head && s->resource == before.resource &&
			     s->own == before.own;
		uint64_t series = alike ? last : series_of(b, s);
		before = *s;
		if ((i == 0 || series != last) && !admit(t, b, series, &last_ok))
			return E_NOMEM;
		last = series;
		if (!last_ok)
			(*out_refused)++;
		else if (kept++ != i)
			b->p->samples.v[kept - 1] = *s;
	}
	b->p->samples.len = kept;
	return OK;
}

enum status series_guard_limit(struct series_guard *g, struct str tenant, uint32_t series_max,
	struct profile *p, int64_t now_ns, uint64_t *out_refused)
{
	struct batch b = { .p = p, .series_max = series_max };
	*out_refused = 0;
	b.types = calloc(p->types.len, sizeof(*b.types));
	b.sets = calloc(p->label_sets.len, sizeof(*b.sets));
	enum status s = E_NOMEM;
	if (b.types && b.sets) {
		lock_take(&g->lock);
		struct series_tenant *t = find_tenant(g, tenant);
		turn(t, now_ns);
		s = limit_locked(t, &b, out_refused);
		lock_release(&g->lock);
	}
	free(b.types);
	free(b.sets);
	set_deinit(&b.known);
	set_deinit(&b.refused);
	return s;
}

uint64_t series_guard_count(struct series_guard *g)
{
	uint64_t n = 0;
	lock_take(&g->lock);
	for (size_t i = 0; i < g->tenant_count; i++)
		n += MAX(g->tenants[i].now.hashes.len, g->tenants[i].before.hashes.len);
	lock_release(&g->lock);
	return n;
}
