/* SPDX-License-Identifier: Apache-2.0 */
/* A generation has three growing arrays; a later generation reuses them, and they never shrink. */
#include "agent/sample/stack_cache.h"

static void generation_deinit(struct stack_cache_generation *g)
{
	map_deinit(&g->index);
	VEC_FREE(&g->stacks);
	VEC_FREE(&g->frames);
}

void stack_cache_deinit(struct stack_cache *s)
{
	generation_deinit(&s->current);
	generation_deinit(&s->before);
}

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct stack_cache_generation *g = ctx;
	const uint64_t *hash = key;
	return g->stacks.v[value].hash == *hash;
}

static const struct cached_stack *generation_find(
	const struct stack_cache_generation *g, uint64_t hash, const uint64_t **out_frames)
{
	uint32_t i = map_find(&g->index, hash, stack_equal, g, &hash);
	if (i == MAP_NONE)
		return NULL;
	*out_frames = g->frames.v + g->stacks.v[i].first_frame;
	return &g->stacks.v[i];
}

bool stack_cache_keep(struct stack_cache *s, const struct event_sample *sample)
{
	struct stack_cache_generation *g = &s->current;
	const uint64_t *kept;
	if (generation_find(g, sample->stack_hash, &kept))
		return true;
	size_t count = (size_t)sample->kernel_count + sample->user_count;
	if (g->frames.len + count > UINT32_MAX || g->stacks.len >= MAP_NONE ||
		!VEC_RESERVE(&g->frames, g->frames.len + count) ||
		!VEC_RESERVE(&g->stacks, g->stacks.len + 1) ||
		!map_insert(&g->index, sample->stack_hash, (uint32_t)g->stacks.len))
		return false;
	g->stacks.v[g->stacks.len++] = (struct cached_stack){
		.hash = sample->stack_hash,
		.first_frame = (uint32_t)g->frames.len,
		.kernel_count = sample->kernel_count,
		.user_count = sample->user_count,
	};
	if (count > 0)
		memcpy(g->frames.v + g->frames.len, sample->frames, count * sizeof(uint64_t));
	g->frames.len += count;
	return true;
}

const struct cached_stack *stack_cache_find(
	const struct stack_cache *s, uint64_t hash, const uint64_t **out_frames)
{
	const struct cached_stack *stack = generation_find(&s->current, hash, out_frames);
	return stack ? stack : generation_find(&s->before, hash, out_frames);
}

bool stack_cache_is_full(const struct stack_cache *s)
{
	return s->current.stacks.len >= STACK_CACHE_STACKS_MAX ||
	       s->current.frames.len >= STACK_CACHE_FRAMES_MAX;
}

void stack_cache_turn(struct stack_cache *s)
{
	struct stack_cache_generation forgotten = s->before;
	map_clear(&forgotten.index);
	VEC_CLEAR(&forgotten.stacks);
	VEC_CLEAR(&forgotten.frames);
	s->before = s->current;
	s->current = forgotten;
}
