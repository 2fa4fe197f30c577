/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Known stacks are kept in two profiles, `fresh` and `old`, whose tables have each string, function
 * and location once. A stack that is found in the old one is copied to the fresh one; when that is
 * full it becomes the old one, and the old one is freed. So stacks that are used stay, without a
 * list of ages.
 */
#include "parca/parca.h"

#include "base/lock.h"
#include "profile/translate.h"

struct generation {
	struct profile p;
	struct map index; /* of keys */
	VEC(struct known {
		struct hash128 key;
		uint32_t stack;
	}) known;
};

struct parca_stacks {
	struct lock lock;
	struct generation *fresh;
	struct generation *old; /* NULL: none yet */
	size_t bytes_max;       /* the limit of one generation */
};

static struct generation *generation_new(size_t bytes_max)
{
	struct generation *g = calloc(1, sizeof(*g));
	if (g && profile_init(&g->p, bytes_max) != OK) {
		free(g);
		return NULL;
	}
	return g;
}

static void generation_free(struct generation *g)
{
	if (!g)
		return;
	profile_deinit(&g->p);
	map_deinit(&g->index);
	VEC_FREE(&g->known);
	free(g);
}

enum status parca_stacks_new(size_t memory_bytes, struct parca_stacks **out)
{
	struct parca_stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return E_NOMEM;
	/* Two generations, each with texts and tables. */
	s->bytes_max = memory_bytes / 4;
	s->fresh = generation_new(s->bytes_max);
	if (!s->fresh) {
		free(s);
		return E_NOMEM;
	}
	lock_init(&s->lock, LOCK_PARCA_STACKS);
	*out = s;
	return OK;
}

void parca_stacks_free(struct parca_stacks *s)
{
	if (!s)
		return;
	generation_free(s->fresh);
	generation_free(s->old);
	lock_destroy(&s->lock);
	free(s);
}

static bool known_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct generation *g = ctx;
	return hash128_eq(g->known.v[value].key, *(const struct hash128 *)key);
}

static bool find(const struct generation *g, struct hash128 key, uint32_t *out)
{
	uint32_t at = g ? map_find(&g->index, key.lo, known_equal, g, &key) : MAP_NONE;
	if (at == MAP_NONE)
		return false;
	*out = g->known.v[at].stack;
	return true;
}

/* ---- copying a stack from one profile's tables to another's ---- */

static enum status copy_stack(
	struct profile *to, const struct profile *from, uint32_t id, uint32_t *out)
{
	const struct profile_stack *stack = &from->stacks.v[id];
	const struct translate_from symbols = translate_from_profile(from);
	uint32_t locations[PROFILE_STACK_MAX];
	struct translate t;
	enum status s = OK;
	translate_init(&t, &symbols, &translate_to_profile, to, false, NULL);
	for (uint32_t i = 0; s == OK && i < stack->count; i++)
		s = translate_location(
			&t, from->stack_locations.v[stack->first + i], &locations[i]);
	return s == OK ? profile_add_stack(to, locations, stack->count, out) : s;
}

/* ---- known stacks ---- */

static enum status remember(
	struct generation *g, struct hash128 key, const struct profile *from, uint32_t stack)
{
	struct known k = { .key = key };
	enum status s = copy_stack(&g->p, from, stack, &k.stack);
	/* The limit includes the list of keys. */
	if (s == OK && (g->known.len + 1) * 2 * sizeof(k) > g->p.strings.arena.limit)
		s = E_LIMIT;
	if (s == OK && (!VEC_RESERVE(&g->known, g->known.len + 1) ||
			       !map_insert(&g->index, key.lo, (uint32_t)g->known.len)))
		s = E_NOMEM;
	if (s == OK)
		g->known.v[g->known.len++] = k;
	return s;
}

static void add_locked(
	struct parca_stacks *c, struct hash128 key, const struct profile *from, uint32_t stack)
{
	if (remember(c->fresh, key, from, stack) == OK)
		return;
	struct generation *g = generation_new(c->bytes_max);
	if (!g)
		return; /* an unknown stack is requested again */
	/* Copied before the old one is freed, as `from` may be its profile. */
	(void)remember(g, key, from, stack);
	generation_free(c->old);
	c->old = c->fresh;
	c->fresh = g;
}

void parca_stacks_add(
	struct parca_stacks *c, struct hash128 key, const struct profile *from, uint32_t stack)
{
	uint32_t there;
	lock_take(&c->lock);
	if (!find(c->fresh, key, &there))
		add_locked(c, key, from, stack);
	lock_release(&c->lock);
}

bool parca_stacks_find(
	struct parca_stacks *c, struct hash128 key, struct profile *to, uint32_t *out)
{
	uint32_t stack, copy;
	enum status s = E_NOTFOUND;
	lock_take(&c->lock);
	if (find(c->fresh, key, &stack)) {
		s = copy_stack(to, &c->fresh->p, stack, &copy);
	} else if (find(c->old, key, &stack)) {
		s = copy_stack(to, &c->old->p, stack, &copy);
		add_locked(c, key, &c->old->p, stack);
	}
	lock_release(&c->lock);
	if (s == OK)
		*out = copy;
	return s == OK;
}

uint64_t parca_stacks_count(struct parca_stacks *c)
{
	lock_take(&c->lock);
	uint64_t n = c->fresh->known.len + (c->old ? c->old->known.len : 0);
	lock_release(&c->lock);
	return n;
}
