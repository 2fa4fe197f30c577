/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and values are interned, since the containers of a pod share most of them. The table cannot
 * remove texts: when it is three quarters full, those that records still use are copied to a new
 * one.
 */
#include "container/records.h"
#include "base/clock.h"
#include "container/labels.h"

#include <stdlib.h>

#define RETRY_MIN_NS (250 * NS_PER_MS)
#define RETRY_MAX_NS (60 * NS_PER_SEC)
/* While room for texts is scarce, longer values are left out. */
#define SCARCE_VALUE_BYTES_MAX 128

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct container_records *c = ctx;
	return c->all.v[value].key == *(const uint32_t *)key;
}

static void forget_all(struct container_records *c)
{
	metric_add(&c->metrics->evicted, c->all.len);
	for (size_t i = 0; i < c->all.len; i++)
		free(c->all.v[i].labels);
	VEC_CLEAR(&c->all);
	map_clear(&c->index);
	c->carried_bytes = 0;
	if (strtab_clear(&c->texts) != OK)
		UNREACHABLE(); /* an empty text always fits */
	c->forgotten++;
}

struct container_record *container_record_find(struct container_records *c, struct str key)
{
	uint32_t id = strtab_find(&c->texts, key);
	if (id == MAP_NONE)
		return NULL;
	uint32_t at = map_find(&c->index, hash_u64(id), key_equal, c, &id);
	return at == MAP_NONE ? NULL : &c->all.v[at];
}

static void record_changed(struct container_records *c, struct container_record *r)
{
	r->version = atomic_fetch_add(&c->generation, 1) + 1;
}

static bool is_kept(const struct container_records *c, struct str value)
{
	return !c->scarce || value.len <= SCARCE_VALUE_BYTES_MAX;
}

/* Copies a record's texts from `c->texts` to another table. */
static bool record_carry(struct container_records *c, struct container_record *r, struct strtab *to)
{
	uint32_t kept = 0;
	if (strtab_intern(to, strtab_get(&c->texts, r->key), &r->key) != OK)
		return false;
	for (uint32_t i = 0; i < r->label_count; i++) {
		struct container_text_pair x = r->labels[i];
		struct str value = strtab_get(&c->texts, x.value);
		if (!is_kept(c, value))
			continue;
		if (strtab_intern(to, strtab_get(&c->texts, x.name), &x.name) != OK ||
			strtab_intern(to, value, &x.value) != OK)
			return false;
		r->labels[kept++] = x;
	}
	if (kept != r->label_count) {
		metric_add(&c->metrics->cut, 1);
		r->label_count = kept;
		record_changed(c, r);
	}
	return true;
}

/* Replaces the table by one without the texts that no record uses. */
static void carry_texts(struct container_records *c)
{
	struct strtab fresh;
	if (strtab_init(&fresh, CONTAINERS_TEXT_BYTES_MAX) != OK)
		return;
	bool good = true;
	map_clear(&c->index);
	for (uint32_t i = 0; good && i < c->all.len; i++)
		good = record_carry(c, &c->all.v[i], &fresh) &&
		       map_insert(&c->index, hash_u64(c->all.v[i].key), i);
	strtab_deinit(&c->texts);
	c->texts = fresh;
	if (!good)
		forget_all(c);
}

void container_records_make_room(struct container_records *c)
{
	const struct arena *a = &c->texts.arena;
	if (a->used <= MAX(a->limit / 4 * 3, c->carried_bytes + a->limit / 16))
		return;
	carry_texts(c);
	c->scarce = c->scarce && a->used > a->limit / 4;
	if (a->used > a->limit / 2 && !c->scarce) {
		c->scarce = true;
		carry_texts(c);
	}
	c->carried_bytes = a->used;
	if (a->used > a->limit / 4 * 3)
		forget_all(c);
}

static void evict_longest_unused(struct container_records *c)
{
	uint32_t oldest = 0;
	for (uint32_t i = 1; i < c->all.len; i++)
		if (c->all.v[i].touched_ns < c->all.v[oldest].touched_ns)
			oldest = i;
	struct container_record *r = &c->all.v[oldest], *last = &c->all.v[c->all.len - 1];
	uint32_t last_at = (uint32_t)c->all.len - 1;
	free(r->labels);
	(void)map_remove(&c->index, hash_u64(r->key), oldest);
	if (r != last) {
		(void)map_remove(&c->index, hash_u64(last->key), last_at);
		*r = *last;
		/* Cannot fail: two entries were removed, one is added. */
		bool back = map_insert(&c->index, hash_u64(r->key), oldest);
		assert(back);
	}
	c->all.len--;
	metric_add(&c->metrics->evicted, 1);
}

struct container_record *container_record_new(struct container_records *c, struct str key)
{
	uint32_t id;
	if (c->all.len == CONTAINERS_MAX)
		evict_longest_unused(c);
	if (strtab_intern(&c->texts, key, &id) != OK)
		return NULL;
	uint32_t at = (uint32_t)c->all.len;
	if (!VEC_PUSH(&c->all, (struct container_record){ .key = id,
				       .state = CONTAINER_WANTED,
				       .touched_ns = clock_monotonic_ns() }))
		return NULL;
	if (!map_insert(&c->index, hash_u64(id), at)) {
		c->all.len--;
		return NULL;
	}
	metric_set(&c->metrics->known, c->all.len);
	return &c->all.v[at];
}

static bool same_labels(
	const struct container_record *r, const struct container_text_pair *v, uint32_t count)
{
	return r->state == CONTAINER_KNOWN && r->label_count == count &&
	       (count == 0 || memcmp(r->labels, v, count * sizeof(*v)) == 0);
}

bool container_record_fill(
	struct container_records *c, struct container_record *r, const struct container_labels *l)
{
	struct container_text_pair *v = malloc(MAX(l->count, 1u) * sizeof(*v));
	bool good = v != NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; good && i < l->count; i++) {
		if (!is_kept(c, l->v[i].value))
			continue;
		good = strtab_intern(&c->texts, l->v[i].name, &v[count].name) == OK &&
		       strtab_intern(&c->texts, l->v[i].value, &v[count].value) == OK;
		count++;
	}
	if (!good) {
		free(v);
		return false;
	}
	if (l->cut || count != l->count)
		metric_add(&c->metrics->cut, 1);
	bool same = same_labels(r, v, count);
	free(r->labels);
	r->labels = v;
	r->label_count = count;
	r->state = CONTAINER_KNOWN;
	r->retry_ns = 0;
	r->touched_ns = clock_monotonic_ns();
	r->due_ns = r->touched_ns + c->ttl_ns;
	if (!same)
		record_changed(c, r);
	return true;
}

void container_record_nobody(struct container_records *c, struct container_record *r)
{
	r->retry_ns = MIN(MAX(2 * r->retry_ns, RETRY_MIN_NS), RETRY_MAX_NS);
	r->due_ns = clock_monotonic_ns() + r->retry_ns;
	if (r->state == CONTAINER_KNOWN)
		return; /* the container or the engine is ending: its processes keep their labels */
	if (r->state == CONTAINER_WANTED)
		record_changed(c, r);
	r->state = CONTAINER_NOBODY;
}

void container_record_look_again_soon(struct container_record *r, int64_t retry_ns)
{
	r->retry_ns = MIN(MAX(2 * retry_ns, NS_PER_SEC), RETRY_MAX_NS);
	r->due_ns = clock_monotonic_ns() + r->retry_ns;
}

void container_record_put(const struct container_records *c, struct container_labels *l,
	const struct container_record *r)
{
	for (uint32_t i = 0; i < r->label_count; i++) {
		/* Texts of a strtab end in a NUL. */
		container_put(l, strtab_get(&c->texts, r->labels[i].name).p,
			strtab_get(&c->texts, r->labels[i].value));
	}
}

const struct container_record *container_records_next_due(
	const struct container_records *c, int64_t *out_wake_ns)
{
	int64_t now = clock_monotonic_ns();
	const struct container_record *found = NULL;
	*out_wake_ns = now + CONTAINER_UNUSED_NS;
	for (size_t i = 0; i < c->all.len; i++) {
		const struct container_record *r = &c->all.v[i];
		bool looked_for = r->used_ns && now - r->used_ns < CONTAINER_UNUSED_NS;
		if (!looked_for && (r->state != CONTAINER_WANTED || !r->used_ns))
			continue;
		/* A record that was never asked for comes first. */
		bool better = !found ||
			      (found->state != CONTAINER_WANTED && r->state == CONTAINER_WANTED);
		if (r->due_ns <= now && better)
			found = r;
		*out_wake_ns = MIN(*out_wake_ns, r->due_ns);
	}
	return found;
}

uint64_t container_records_unknown(const struct container_records *c)
{
	uint64_t unknown = 0;
	for (size_t i = 0; i < c->all.len; i++)
		unknown += c->all.v[i].state == CONTAINER_NOBODY;
	return unknown;
}

/* ---- life ---- */

enum status container_records_init(
	struct container_records *c, int64_t ttl_ns, struct containers_metrics *metrics)
{
	*c = (struct container_records){ .ttl_ns = ttl_ns, .metrics = metrics };
	return strtab_init(&c->texts, CONTAINERS_TEXT_BYTES_MAX);
}

void container_records_deinit(struct container_records *c)
{
	for (size_t i = 0; i < c->all.len; i++)
		free(c->all.v[i].labels);
	VEC_FREE(&c->all);
	map_deinit(&c->index);
	strtab_deinit(&c->texts);
}
