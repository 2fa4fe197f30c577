/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding a profile translates its indices into the memtable's, each at most once, through arrays as
 * long as the profile's tables (UNSET: not yet). Only what samples use is taken over. A stack is
 * found by a hash of its frames' contents, which needs the profile alone: a stack that the memtable
 * has already costs no look into its symbols.
 *
 * There are three steps, so that senders rarely wait for each other. Without the lock, prepare()
 * does all that needs the profile alone: the hashes, and which samples share series and set. With
 * the lock for reading, find_known() finds stacks and texts of labels that exist already: nearly
 * all, if the batch is like the one before. With the lock for writing, the rest is added, and the
 * rows are appended.
 *
 * Rows become visible by row counts that a snapshot copies under the lock; a failure cuts them off
 * again (interned elements stay, which costs only room).
 *
 * For a profile whose samples have no times of their own, its duration is kept for each series,
 * with the number of its samples, so that a query can tell whether all samples that it found have
 * one.
 */
#include "store/memory/memtable.h"

#include "base/clock.h"

#include <stdlib.h>
#include <sys/random.h>

#define UNSET UINT32_MAX
#define STACK_SECRETS (2 * (PROFILE_STACK_MAX + 1)) /* two for each frame, and for one more */
#define SYMBOL_SECRETS 16
#define SECRETS (STACK_SECRETS + SYMBOL_SECRETS)

/* Series and set of a combination of head, label sets and link. */
struct combination {
	uint32_t head, resource, own, link;
	uint32_t series, set;
	uint32_t profile; /* profiles[] */
};

/* A stack that samples have. */
struct used_stack {
	struct hash128 key;
	uint32_t id;
};

struct adding {
	struct memtable *m;
	struct tables *t;
	const struct profile *p;
	uint32_t tenant;
	struct translate symbols;
	uint32_t *symbol_memory;
	uint8_t *name_slots; /* by string: 2 + sample_name_slot(); 0: not made yet */
	uint32_t *stacks;
	struct hash128 *string_keys;   /* by content; 0: not made yet */
	struct hash128 *mapping_keys;  /* the same */
	struct hash128 *function_keys; /* all made, as the next */
	struct hash128 *location_keys;
	struct used_stack *used; /* in the order of the samples, see keep_unknown() */
	size_t used_count;
	VEC(struct combination) combinations; /* series and set follow under the lock */
	struct map combination_index;
	uint32_t *last_of;        /* combination, by own label set */
	uint32_t *combination_of; /* by sample */
	VEC(struct tab_profile) profiles;
	uint32_t *profile_of; /* the profile found last, by head */
};

/* Made from a few random bytes; without those, keys are as good, but predictable. */
static enum status make_secrets(struct memtable *m)
{
	(void)!getrandom(&m->salt, sizeof(m->salt), 0);
	m->secrets = calloc(SECRETS, sizeof(*m->secrets));
	for (uint64_t i = 0; m->secrets && i < SECRETS; i++) {
		const uint64_t words[] = { m->salt.lo, m->salt.hi, i };
		m->secrets[i] = hash64(words, sizeof(words));
	}
	return m->secrets ? OK : E_NOMEM;
}

enum status memtable_new(size_t limit_bytes, struct memtable **out)
{
	struct memtable *m = calloc(1, sizeof(*m));
	if (!m)
		return E_NOMEM;
	atomic_init(&m->refs, 1);
	rwlock_init(&m->lock, LOCK_MEMTABLE, false);
	m->first_ns = INT64_MAX;
	m->last_ns = INT64_MIN;
	enum status s =
		tables_init(&m->tables, limit_bytes, store_sample_names, store_sample_name_count);
	if (s == OK)
		s = make_secrets(m);
	size_t n = limit_bytes / 8;
	if (s == OK && !(GROW_INIT(&m->time_ns, n) && GROW_INIT(&m->value, n) &&
			       GROW_INIT(&m->series, n) && GROW_INIT(&m->node, n) &&
			       GROW_INIT(&m->set, n)))
		s = E_NOMEM;
	if (s != OK) {
		memtable_unref(m);
		return s;
	}
	atomic_store(&m->bytes, tables_bytes(&m->tables));
	*out = m;
	return OK;
}

struct memtable *memtable_ref(struct memtable *m)
{
	atomic_fetch_add(&m->refs, 1);
	return m;
}

void memtable_unref(struct memtable *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	tables_deinit(&m->tables);
	VEC_FREE(&m->batches);
	free(m->secrets);
	GROW_DEINIT(&m->time_ns);
	GROW_DEINIT(&m->value);
	GROW_DEINIT(&m->series);
	GROW_DEINIT(&m->node);
	GROW_DEINIT(&m->set);
	rwlock_destroy(&m->lock);
	free(m);
}

uint64_t memtable_estimate_bytes(const struct profile *p)
{
	return p->samples.len * 28 + p->strings.arena.used + p->strings.len * 24ull +
	       p->locations.len * 40 + p->lines.len * 12 + p->functions.len * 24 +
	       p->stack_locations.len * 16 + p->labels.len * 16;
}

static enum status map_string(struct adding *a, uint32_t id, uint32_t *out)
{
	return translate_string(&a->symbols, id, out);
}

/* ---- keys ---- */

static bool is_unset(struct hash128 k)
{
	return k.lo == 0 && k.hi == 0;
}

static struct hash128 string_key(struct adding *a, uint32_t id)
{
	struct hash128 *k = &a->string_keys[id];
	if (is_unset(*k)) {
		struct str s = profile_str(a->p, id);
		*k = hash128(s.p, s.len);
	}
	return *k;
}

/* Mixes two words into one, as XXH3 does: the xor of both halves of their product. The words
 * contain secrets, so that senders cannot choose words that collide. */
static uint64_t mix(uint64_t x, uint64_t y)
{
	unsigned __int128 product = (unsigned __int128)x * y;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static struct hash128 function_key(struct adding *a, const struct profile_function *f)
{
	const uint64_t *secret = a->m->secrets + STACK_SECRETS;
	struct hash128 name = string_key(a, f->name), system = string_key(a, f->system_name),
		       file = string_key(a, f->filename);
	return (struct hash128){
		.lo = mix(name.lo ^ secret[0], system.lo ^ secret[1]) +
		      mix(file.lo ^ secret[2], f->start_line ^ secret[3]),
		.hi = mix(name.hi ^ secret[4], system.hi ^ secret[5]) +
		      mix(file.hi ^ secret[6], f->start_line ^ secret[7]),
	};
}

static struct hash128 mapping_key(struct adding *a, uint32_t id)
{
	struct hash128 *k = &a->mapping_keys[id];
	if (is_unset(*k)) {
		const struct profile_mapping *m = &a->p->mappings.v[id];
		const struct {
			struct hash128 salt, filename, build_id;
			uint64_t start, limit, offset;
		} content = { a->m->salt, string_key(a, m->filename), string_key(a, m->build_id),
			m->start, m->limit, m->offset };
		*k = hash128(&content, sizeof(content));
	}
	return *k;
}

static struct hash128 location_key(struct adding *a, const struct profile_location *l)
{
	/* In each half, two addresses of one mapping never meet, and two of different mappings or
	 * kinds do with a probability of about 2^-64: the mapping's key is not known outside. No
	 * mixing: stack_key() needs no more than that. */
	const uint64_t *secret = a->m->secrets + STACK_SECRETS + 8;
	struct hash128 m = mapping_key(a, l->mapping);
	uint64_t kind = 2 * (uint64_t)l->kind + 1;
	struct hash128 k = { l->address + m.lo * kind, l->address + m.hi * kind };
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &a->p->lines.v[l->line_first + i];
		struct hash128 function = a->function_keys[line->function];
		uint64_t place = line->line | (uint64_t)line->column << 32;
		k.lo = mix(k.lo ^ secret[0], function.lo ^ secret[1]) +
		       mix(place ^ secret[2], secret[3]);
		k.hi = mix(k.hi ^ secret[4], function.hi ^ secret[5]) +
		       mix(place ^ secret[6], secret[7]);
	}
	return k;
}

/* Makes the keys of all locations, since most are in stacks. */
static void make_location_keys(struct adding *a)
{
	const struct profile_location *v = a->p->locations.v;
	for (size_t i = 0; i < a->p->functions.len; i++)
		a->function_keys[i] = function_key(a, &a->p->functions.v[i]);
	for (size_t i = 0; i < a->p->locations.len; i++)
		a->location_keys[i] = location_key(a, &v[i]);
}

/* NH of UMAC (RFC 4418 section 5.2.2) with words of 64 bits: once over the low halves of the
 * frames' keys, and once over the high ones with other secrets. Two stacks of one depth have equal
 * sums of a half with a probability of 2^-64 for the keys and 2^-64 for NH, so of both with 2^-126,
 * also where an attacker chose their frames. */
static struct hash128 stack_key(const struct adding *a, const struct profile_stack *st)
{
	const struct hash128 *keys = a->location_keys;
	const uint32_t *frames = a->p->stack_locations.v;
	uint32_t at = st->first;
	const uint64_t *secret = a->m->secrets;
	struct {
		unsigned __int128 sums[2];
		uint64_t count[2];
	} all = { { 0 }, { st->count } };
	for (uint32_t i = 1; i < st->count; i += 2, at += 2, secret += 4) {
		struct hash128 x = keys[frames[at]], y = keys[frames[at + 1]];
		all.sums[0] += (unsigned __int128)(x.lo + secret[0]) * (y.lo + secret[1]);
		all.sums[1] += (unsigned __int128)(x.hi + secret[2]) * (y.hi + secret[3]);
	}
	if (st->count % 2) {
		struct hash128 x = keys[frames[at]];
		all.sums[0] += (unsigned __int128)(x.lo + secret[0]) * secret[1];
		all.sums[1] += (unsigned __int128)(x.hi + secret[2]) * secret[3];
	}
	return hash128(&all, sizeof(all));
}

/* The stack that was added last: nodes[n] is that of its n outermost frames. */
struct path {
	const struct profile_stack *of; /* NULL: none yet */
	uint32_t nodes[PROFILE_STACK_MAX + 1];
};

/* How many of their outermost frames two stacks share. */
static uint32_t shared_frames(
	const struct profile *p, const struct profile_stack *a, const struct profile_stack *b)
{
	const uint32_t *v = p->stack_locations.v; /* NULL where no stack has a frame */
	size_t x = a->first + a->count, y = b->first + b->count;
	uint32_t most = MIN(a->count, b->count), n = 0;
	while (n < most && v[x - 1 - n] == v[y - 1 - n])
		n++;
	return n;
}

static enum status add_stack(struct adding *a, const struct used_stack *u, struct path *path)
{
	const struct profile_stack *st = &a->p->stacks.v[u->id];
	size_t end = st->first + st->count;
	uint32_t n = path->of ? shared_frames(a->p, path->of, st) : 0;
	enum status s = OK;
	for (; s == OK && n < st->count; n++) {
		uint32_t location;
		s = translate_location(
			&a->symbols, a->p->stack_locations.v[end - 1 - n], &location);
		if (s == OK)
			s = tables_add_node(a->t, path->nodes[n], location, &path->nodes[n + 1]);
	}
	if (s != OK)
		return s;
	path->of = st;
	a->stacks[u->id] = path->nodes[st->count];
	return tables_name_stack(a->t, u->key, path->nodes[st->count]);
}

/* Lists the stacks that samples have, in order of first use. */
static void list_stacks(struct adding *a)
{
	for (size_t i = 0; i < a->p->samples.len; i++) {
		uint32_t id = a->p->samples.v[i].stack;
		if (a->stacks[id] != UNSET)
			continue;
		a->stacks[id] = 0; /* until it is looked up */
		a->used[a->used_count++] =
			(struct used_stack){ stack_key(a, &a->p->stacks.v[id]), id };
	}
}

/* How many stacks are looked up at a time, so that the waits for memory overlap. */
#define STACKS_AT_ONCE 32

static void find_some_stacks(struct adding *a, const struct used_stack *used, size_t n)
{
	for (size_t i = 0; i < n; i++)
		tables_prefetch_stack(a->t, used[i].key);
	for (size_t i = 0; i < n; i++)
		tables_prefetch_stack_entry(a->t, used[i].key);
	for (size_t i = 0; i < n; i++)
		a->stacks[used[i].id] = tables_find_stack(a->t, used[i].key);
}

/* Looks up the stacks that the tables have already; with the lock for reading. */
static void find_known(struct adding *a)
{
	const struct profile *p = a->p;
	for (size_t i = 0; i < a->used_count; i += STACKS_AT_ONCE)
		find_some_stacks(a, a->used + i, MIN(a->used_count - i, (size_t)STACKS_AT_ONCE));
	for (size_t i = 0; i < p->labels.len; i++) {
		const uint32_t ids[] = { p->labels.v[i].name, p->labels.v[i].value };
		for (size_t k = 0; k < ARRAY_COUNT(ids); k++)
			if (a->symbols.strings[ids[k]] == UNSET)
				a->symbols.strings[ids[k]] =
					tables_find_string(a->t, profile_str(p, ids[k]));
	}
}

static int by_outermost(const void *pa, const void *pb, void *ctx)
{
	const struct profile *p = ctx;
	const struct profile_stack *a = &p->stacks.v[((const struct used_stack *)pa)->id];
	const struct profile_stack *b = &p->stacks.v[((const struct used_stack *)pb)->id];
	uint32_t n = shared_frames(p, a, b);
	if (n == a->count || n == b->count)
		return (a->count > b->count) - (a->count < b->count);
	uint32_t x = p->stack_locations.v[a->first + a->count - 1 - n];
	uint32_t y = p->stack_locations.v[b->first + b->count - 1 - n];
	return x < y ? -1 : 1;
}

/* Keeps only the stacks that were not found, ordered so that each shares many frames with the one
 * before it; the nodes of shared frames are not looked up again. */
static void keep_unknown(struct adding *a)
{
	static_assert(UNSET == MAP_NONE, "not found is not mapped yet");
	size_t kept = 0;
	for (size_t i = 0; i < a->used_count; i++)
		if (a->stacks[a->used[i].id] == UNSET)
			a->used[kept++] = a->used[i];
	a->used_count = kept;
	if (kept > 1)
		qsort_r(a->used, kept, sizeof(*a->used), by_outermost, (void *)(uintptr_t)a->p);
}

/* Adds the stacks that were not found; another batch may have added some since then. */
static enum status map_stacks(struct adding *a)
{
	struct path path;
	path.of = NULL;
	path.nodes[0] = 0;
	enum status s = OK;
	for (size_t i = 0; s == OK && i < a->used_count; i++) {
		const struct used_stack *u = &a->used[i];
		a->stacks[u->id] = tables_find_stack(a->t, u->key);
		if (a->stacks[u->id] == UNSET)
			s = add_stack(a, u, &path);
	}
	return s;
}

/* ---- labels ---- */

static struct str hex_text(const uint8_t *bytes, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	return str_make(out, 2 * len);
}

static int sample_name_find(const struct tables *t, struct str name)
{
	for (uint32_t i = 0; i < t->name_count; i++)
		if (str_eq(t->names[i], name))
			return (int)i;
	return -1;
}

/* The same as sample_name_find(), but remembered; it needs no lock, since names do not change. */
static int sample_name_slot(struct adding *a, uint32_t name)
{
	uint8_t *slot = &a->name_slots[name];
	if (*slot == 0)
		*slot = (uint8_t)(2 + sample_name_find(a->t, profile_str(a->p, name)));
	return *slot - 2;
}

static enum status add_link(struct adding *a, uint32_t link, uint32_t *values)
{
	static const uint8_t none[16];
	const struct profile_link *l = &a->p->links.v[link];
	char text[32];
	int trace = sample_name_find(a->t, STR("trace_id"));
	int span = sample_name_find(a->t, STR("span_id"));
	enum status s = OK;
	if (trace >= 0 && !values[1 + trace] && memcmp(l->trace_id, none, 16) != 0)
		s = tables_add_string(a->t, hex_text(l->trace_id, 16, text), &values[1 + trace]);
	if (s == OK && span >= 0 && !values[1 + span] && memcmp(l->span_id, none, 8) != 0)
		s = tables_add_string(a->t, hex_text(l->span_id, 8, text), &values[1 + span]);
	return s;
}

struct split {
	struct profile_label labels[2 * PROFILE_LABELS_MAX];
	uint32_t label_count;
	uint32_t values[1 + TABLES_NAMES_MAX];
};

static enum status split_label(struct adding *a, const struct profile_label *l, struct split *out)
{
	uint32_t value;
	enum status s = map_string(a, l->value, &value);
	if (s != OK)
		return s;
	int at = sample_name_slot(a, l->name);
	if (at >= 0) {
		out->values[1 + at] = value;
		return OK;
	}
	struct profile_label *added = &out->labels[out->label_count++];
	added->value = value;
	return map_string(a, l->name, &added->name);
}

/* Both sets are sorted by name: merge them, the resource's label first where both have one. */
static enum status split_labels(struct adding *a, const struct combination *c, struct split *out)
{
	const struct profile *p = a->p;
	const struct profile_labels *r = &p->label_sets.v[c->resource];
	const struct profile_labels *o = &p->label_sets.v[c->own];
	uint32_t i = 0, j = 0;
	enum status s = OK;
	while (s == OK && (i < r->count || j < o->count)) {
		const struct profile_label *x = i < r->count ? &p->labels.v[r->first + i] : NULL;
		const struct profile_label *y = j < o->count ? &p->labels.v[o->first + j] : NULL;
		int order = !x   ? 1
			    : !y ? -1
				 : str_cmp(profile_str(p, x->name), profile_str(p, y->name));
		s = split_label(a, order <= 0 ? x : y, out);
		i += order <= 0;
		j += order >= 0;
	}
	out->values[0] = a->tenant;
	return s == OK && c->link ? add_link(a, c->link, out->values) : s;
}

static bool combination_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct adding *a = ctx;
	const struct combination *c = &a->combinations.v[value], *k = key;
	return c->head == k->head && c->resource == k->resource && c->own == k->own &&
	       c->link == k->link;
}

static enum status map_combination(struct adding *a, struct combination *c)
{
	struct split split;
	split.label_count = 0;
	memset(split.values, 0, sizeof(split.values));
	enum status s = split_labels(a, c, &split);
	if (s != OK)
		return s;
	const struct profile_head *head = &a->p->heads.v[c->head];
	const struct profile_type *type = &a->p->types.v[head->type];
	struct tab_series key = {
		.tenant = a->tenant, .delta = type->delta, .period = head->period
	};
	const uint32_t parts[TABLES_TYPE_PARTS] = { type->name, type->sample_type,
		type->sample_unit, type->period_type, type->period_unit };
	for (int i = 0; i < TABLES_TYPE_PARTS && s == OK; i++)
		s = map_string(a, parts[i], &key.type[i]);
	if (s == OK)
		s = tables_add_series(a->t, &key, split.labels, split.label_count, &c->series);
	if (s == OK)
		s = tables_add_set(a->t, split.values, &c->set);
	return s;
}

/* Finds the profile of a combination; samples of a head mostly have one series. */
static enum status find_profile(struct adding *a, struct combination *c)
{
	const struct profile_head *h = &a->p->heads.v[c->head];
	uint32_t at = a->profile_of[c->head];
	if (at == UNSET || a->profiles.v[at].series != c->series) {
		struct tab_profile added = { c->series, h->time_ns, h->duration_ns, 0 };
		at = (uint32_t)a->profiles.len;
		if (!VEC_PUSH(&a->profiles, added))
			return E_NOMEM;
	}
	a->profile_of[c->head] = c->profile = at;
	return OK;
}

/* Samples with the same labels mostly agree in the rest as well, so the last combination with these
 * labels is tried first. */
static enum status find_combination(
	struct adding *a, const struct profile_sample *sample, uint32_t *out)
{
	struct combination key = { sample->head, sample->resource, sample->own, sample->link, 0, 0,
		0 };
	uint32_t at = a->last_of[sample->own];
	if (at != UNSET && combination_equal(a, at, &key)) {
		*out = at;
		return OK;
	}
	uint64_t h = hash_u64((uint64_t)key.resource << 32 | key.own) ^
		     hash_u64((uint64_t)key.head << 32 | key.link) * 3;
	at = map_find(&a->combination_index, h, combination_equal, a, &key);
	if (at == MAP_NONE) {
		at = (uint32_t)a->combinations.len;
		if (!VEC_PUSH(&a->combinations, key) || !map_insert(&a->combination_index, h, at))
			return E_NOMEM;
	}
	a->last_of[sample->own] = at;
	*out = at;
	return OK;
}

static enum status map_combinations(struct adding *a)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < a->combinations.len; i++)
		s = map_combination(a, &a->combinations.v[i]);
	for (size_t i = 0; s == OK && i < a->combinations.len; i++)
		s = find_profile(a, &a->combinations.v[i]);
	return s;
}

/* ---- rows ---- */

static uint32_t *unset_array(size_t n)
{
	uint32_t *v = malloc(MAX(n, (size_t)1) * sizeof(*v));
	for (size_t i = 0; v && i < n; i++)
		v[i] = UNSET;
	return v;
}

static void adding_deinit(struct adding *a)
{
	free(a->symbol_memory);
	free(a->name_slots);
	free(a->stacks);
	free(a->string_keys);
	free(a->function_keys);
	free(a->mapping_keys);
	free(a->location_keys);
	free(a->used);
	free(a->last_of);
	free(a->combination_of);
	VEC_FREE(&a->combinations);
	VEC_FREE(&a->profiles);
	free(a->profile_of);
	map_deinit(&a->combination_index);
}

static enum status adding_init(struct adding *a, struct memtable *m, const struct profile *p)
{
	a->m = m;
	a->t = &m->tables;
	a->p = p;
	const struct translate_from from = translate_from_profile(p);
	a->symbol_memory = malloc(translate_words(&from, true) * sizeof(*a->symbol_memory));
	if (!a->symbol_memory)
		return E_NOMEM;
	translate_init(&a->symbols, &from, &translate_to_tables, a->t, true, a->symbol_memory);
	a->name_slots = calloc(p->strings.len, 1);
	a->stacks = unset_array(p->stacks.len);
	a->last_of = unset_array(p->label_sets.len);
	a->profile_of = unset_array(p->heads.len);
	a->string_keys = calloc(p->strings.len, sizeof(struct hash128));
	a->function_keys = malloc(p->functions.len * sizeof(struct hash128));
	a->mapping_keys = calloc(p->mappings.len, sizeof(struct hash128));
	a->location_keys = malloc(p->locations.len * sizeof(struct hash128));
	a->used = malloc(MAX(MIN(p->stacks.len, p->samples.len), (size_t)1) * sizeof(*a->used));
	a->combination_of = unset_array(p->samples.len);
	bool ok = a->stacks && a->name_slots && a->last_of && a->profile_of && a->string_keys;
	ok = ok && a->function_keys && a->mapping_keys && a->location_keys && a->used &&
	     a->combination_of;
	return ok ? OK : E_NOMEM;
}

/* The step that does not need the memtable's tables. */
static enum status prepare(struct adding *a)
{
	make_location_keys(a);
	list_stacks(a);
	enum status s = OK;
	for (size_t i = 0; s == OK && i < a->p->samples.len; i++)
		s = find_combination(a, &a->p->samples.v[i], &a->combination_of[i]);
	return s;
}

static enum status reserve_rows(struct memtable *m, size_t more)
{
	size_t need = m->time_ns.len + more;
	if (need > m->time_ns.max)
		return E_LIMIT;
	return GROW_RESERVE(&m->time_ns, need) && GROW_RESERVE(&m->value, need) &&
			       GROW_RESERVE(&m->series, need) && GROW_RESERVE(&m->node, need) &&
			       GROW_RESERVE(&m->set, need)
		       ? OK
		       : E_NOMEM;
}

/* Adds the profiles whose time has samples. Nothing after this step can fail. */
static enum status add_profiles(struct adding *a)
{
	size_t before = a->t->profiles.len;
	enum status s = OK;
	for (size_t i = 0; i < a->profiles.len && s == OK; i++)
		if (a->profiles.v[i].samples)
			s = tables_add_profile(a->t, &a->profiles.v[i]);
	if (s != OK)
		a->t->profiles.len = before;
	return s;
}

/* For a delta type, a sample with its profile's time has the profile's duration. */
static bool has_duration(const struct adding *a, const struct profile_sample *sample)
{
	const struct profile_head *h = &a->p->heads.v[sample->head];
	return h->duration_ns > 0 && h->time_ns == sample->time_ns && a->p->types.v[h->type].delta;
}

static enum status add_rows(struct adding *a)
{
	struct memtable *m = a->m;
	size_t n = m->time_ns.len;
	enum status s = map_stacks(a);
	if (s == OK)
		s = map_combinations(a);
	for (size_t i = 0; s == OK && i < a->p->samples.len; i++, n++) {
		const struct profile_sample *sample = &a->p->samples.v[i];
		const struct combination *c = &a->combinations.v[a->combination_of[i]];
		m->time_ns.v[n] = sample->time_ns;
		m->value.v[n] = sample->value;
		m->series.v[n] = c->series;
		m->node.v[n] = a->stacks[sample->stack];
		m->set.v[n] = c->set;
		a->profiles.v[c->profile].samples += has_duration(a, sample);
	}
	return s == OK ? add_profiles(a) : s;
}

/* Makes the new rows visible; this cannot fail. */
static void publish_rows(struct memtable *m, size_t more)
{
	size_t from = m->time_ns.len, to = from + more;
	for (size_t i = from, end; i < to; i = end) {
		uint32_t series = m->series.v[i];
		int64_t first = m->time_ns.v[i], last = first;
		for (end = i + 1; end < to && m->series.v[end] == series; end++) {
			first = MIN(first, m->time_ns.v[end]);
			last = MAX(last, m->time_ns.v[end]);
		}
		m->first_ns = MIN(m->first_ns, first);
		m->last_ns = MAX(m->last_ns, last);
		tables_count_row(&m->tables, series, first, last, end - i);
	}
	m->time_ns.len = m->value.len = m->series.len = m->node.len = m->set.len = to;
}

enum status memtable_add(struct memtable *m, struct str tenant, const struct profile *p,
	struct batch_seen batch, struct err *e)
{
	bool has_id = batch.id.lo || batch.id.hi;
	CLEANUP(adding_deinit) struct adding a = { 0 };
	enum status s = adding_init(&a, m, p);
	if (s == OK)
		s = prepare(&a);
	if (s != OK)
		return err_set(e, s, "no memory for a batch of %zu samples", p->samples.len);
	rwlock_read(&m->lock);
	find_known(&a);
	rwlock_release(&m->lock);
	keep_unknown(&a);
	rwlock_write(&m->lock);
	s = reserve_rows(m, p->samples.len);
	if (s == OK && has_id && !VEC_RESERVE(&m->batches, m->batches.len + 1))
		s = E_NOMEM;
	if (s == OK)
		s = tables_add_string(&m->tables, tenant, &a.tenant);
	if (s == OK)
		s = add_rows(&a);
	if (s == OK) {
		publish_rows(m, p->samples.len);
		if (has_id)
			m->batches.v[m->batches.len++] = batch;
		if (!m->born_ns)
			atomic_store(&m->born_ns, clock_monotonic_ns());
	}
	atomic_store(&m->bytes,
		tables_bytes(&m->tables) + m->time_ns.len * 28 + m->batches.len * sizeof(batch));
	rwlock_release(&m->lock);
	if (s != OK)
		return err_set(
			e, s, "the table in memory takes no batch of %zu samples", p->samples.len);
	return OK;
}

void memtable_snapshot(struct memtable *m, struct memtable_snapshot *out)
{
	out->table = memtable_ref(m);
	rwlock_read(&m->lock);
	tables_view(&m->tables, &out->tabs);
	out->row_count = m->time_ns.len;
	out->first_ns = m->first_ns;
	out->last_ns = m->last_ns;
	rwlock_release(&m->lock);
}
