/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing, power-of-two size, at most 3/4 full. A slot has 32 bits of the hash with the
 * value, so that a probe rarely calls the comparison. Removal shifts the following run back, so
 * there are no tombstones.
 *
 * Two profiles of one program list the same texts in the same order. So the text after the last one
 * found is compared first, before any is hashed.
 */
#include "base/map.h"

#include "base/pages.h"

#include <stdlib.h>

#define MAP_SLOTS_MIN 16

struct map_slot {
	uint32_t hash;
	uint32_t value; /* MAP_NONE: empty */
};

void map_deinit(struct map *m)
{
	free(m->slots);
	*m = (struct map){ 0 };
}

void map_clear(struct map *m)
{
	for (uint32_t i = 0; m->slots && i <= m->mask; i++)
		m->slots[i].value = MAP_NONE;
	m->count = m->expected = 0;
}

static uint32_t short_hash(uint64_t hash)
{
	return (uint32_t)(hash ^ (hash >> 32));
}

uint32_t map_find(
	const struct map *m, uint64_t hash, map_equal_fn *equal, const void *ctx, const void *key)
{
	if (!m->slots)
		return MAP_NONE;
	uint32_t h = short_hash(hash);
	for (uint32_t i = h & m->mask;; i = (i + 1) & m->mask) {
		const struct map_slot *s = &m->slots[i];
		if (s->value == MAP_NONE)
			return MAP_NONE;
		if (s->hash == h && equal(ctx, s->value, key))
			return s->value;
	}
}

void map_prefetch(const struct map *m, uint64_t hash)
{
	if (m->slots)
		__builtin_prefetch(&m->slots[short_hash(hash) & m->mask]);
}

uint32_t map_peek(const struct map *m, uint64_t hash)
{
	return m->slots ? m->slots[short_hash(hash) & m->mask].value : MAP_NONE;
}

static void place(struct map_slot *slots, uint32_t mask, struct map_slot s)
{
	uint32_t i = s.hash & mask;
	while (slots[i].value != MAP_NONE)
		i = (i + 1) & mask;
	slots[i] = s;
}

static size_t slot_count(const struct map *m)
{
	return m->slots ? (size_t)m->mask + 1 : 0;
}

static bool rehash(struct map *m, size_t size)
{
	size_t old = slot_count(m);
	if (size > (size_t)1 << 31)
		return false;
	struct map_slot *slots = malloc(size * sizeof(*slots));
	if (!slots)
		return false;
	pages_prefer_large(slots, size * sizeof(*slots));
	for (size_t i = 0; i < size; i++)
		slots[i] = (struct map_slot){ 0, MAP_NONE };
	for (size_t i = 0; i < old; i++)
		if (m->slots[i].value != MAP_NONE)
			place(slots, (uint32_t)(size - 1), m->slots[i]);
	free(m->slots);
	m->slots = slots;
	m->mask = (uint32_t)(size - 1);
	return true;
}

bool map_reserve(struct map *m, uint32_t count)
{
	size_t size = MAX(slot_count(m), (size_t)MAP_SLOTS_MIN);
	while (size / 4 * 3 < count)
		size *= 2;
	return size == slot_count(m) || rehash(m, size);
}

bool map_insert(struct map *m, uint64_t hash, uint32_t value)
{
	assert(value != MAP_NONE);
	if (m->count >= slot_count(m) / 4 * 3)
		if (!rehash(m, MAX(slot_count(m) * 2, (size_t)MAP_SLOTS_MIN)))
			return false;
	place(m->slots, m->mask, (struct map_slot){ short_hash(hash), value });
	m->count++;
	return true;
}

bool map_remove(struct map *m, uint64_t hash, uint32_t value)
{
	if (!m->slots)
		return false;
	uint32_t i = short_hash(hash) & m->mask;
	while (m->slots[i].value != value) {
		if (m->slots[i].value == MAP_NONE)
			return false;
		i = (i + 1) & m->mask;
	}
	/* Closes the gap: moves back each later entry of the run that may be in it. */
	for (uint32_t j = (i + 1) & m->mask; m->slots[j].value != MAP_NONE; j = (j + 1) & m->mask) {
		uint32_t home = m->slots[j].hash & m->mask;
		if (((j - home) & m->mask) >= ((j - i) & m->mask)) {
			m->slots[i] = m->slots[j];
			i = j;
		}
	}
	m->slots[i].value = MAP_NONE;
	m->count--;
	return true;
}

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct strtab *t = ctx;
	return str_eq(t->v[value], *(const struct str *)key);
}

enum status strtab_init(struct strtab *t, size_t limit_bytes)
{
	*t = (struct strtab){ 0 };
	arena_init(&t->arena, limit_bytes);
	enum status s = strtab_clear(t);
	if (s != OK)
		strtab_deinit(t);
	return s;
}

void strtab_deinit(struct strtab *t)
{
	free(t->v);
	map_deinit(&t->index);
	arena_deinit(&t->arena);
	*t = (struct strtab){ 0 };
}

enum status strtab_clear(struct strtab *t)
{
	t->len = 0;
	map_clear(&t->index);
	arena_clear(&t->arena);
	uint32_t id;
	return strtab_intern(t, STR(""), &id);
}

uint32_t strtab_find(const struct strtab *t, struct str s)
{
	return map_find(&t->index, hash64(s.p, s.len), text_equal, t, &s);
}

static enum status grow_texts(struct strtab *t, uint32_t cap)
{
	if (cap > UINT32_MAX / 2)
		return E_LIMIT;
	struct str *v = realloc(t->v, cap * sizeof(*v));
	if (!v)
		return E_NOMEM;
	t->v = v;
	t->cap = cap;
	return OK;
}

enum status strtab_reserve(struct strtab *t, uint32_t more)
{
	uint32_t need = t->len + more;
	if (need < more)
		return E_LIMIT;
	enum status s = need > t->cap ? grow_texts(t, need) : OK;
	return s == OK && !map_reserve(&t->index, need) ? E_NOMEM : s;
}

enum status strtab_intern(struct strtab *t, struct str s, uint32_t *out_id)
{
	uint32_t id = t->index.expected;
	uint64_t h = 0;
	if (!strtab_expects(t, s)) {
		h = hash64(s.p, s.len);
		id = map_find(&t->index, h, text_equal, t, &s);
	}
	if (id != MAP_NONE) {
		t->index.expected = id + 1;
		*out_id = id;
		return OK;
	}
	if (t->len == t->cap) {
		enum status st = grow_texts(t, t->cap ? t->cap * 2 : 64);
		if (st != OK)
			return st;
	}
	char *copy = arena_copy(&t->arena, s.p, s.len);
	if (!copy)
		return arena_status(&t->arena);
	if (!map_insert(&t->index, h, t->len))
		return E_NOMEM;
	t->v[t->len] = str_make(copy, s.len);
	*out_id = t->len++;
	t->index.expected = t->len;
	return OK;
}
