/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_cache: the frames of stacks that the BPF program will from now on send by their hash only.
 * Private to agent/ (sampler.c).
 *
 * Two generations: the stacks of this epoch and of the one before, whose hashes may still be on
 * their way. Not thread safe.
 */
#pragma once

#include "agent/bpf/layout.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"

/* Above this a generation is full (stack_cache_is_full()): no more stacks should be sent by hash.
 */
#define STACK_CACHE_STACKS_MAX 32768
#define STACK_CACHE_FRAMES_MAX (1u << 20) /* 8 MiB */

struct cached_stack {
	uint64_t hash;
	uint32_t first_frame; /* in frames */
	uint16_t kernel_count;
	uint16_t user_count;
};

struct stack_cache_generation {
	struct map index; /* hash to stacks */
	VEC(struct cached_stack) stacks;
	VEC(uint64_t) frames;
};

struct stack_cache {
	struct stack_cache_generation current;
	struct stack_cache_generation before;
};

void stack_cache_deinit(struct stack_cache *s); /* all zero is empty */
/* Keeps a stack's frames. False: there is no memory. */
NODISCARD bool stack_cache_keep(struct stack_cache *s, const struct event_sample *sample);
/* Finds the frames of `hash`; NULL: they are not kept. Valid until another function is called. */
const struct cached_stack *stack_cache_find(
	const struct stack_cache *s, uint64_t hash, const uint64_t **out_frames);
bool stack_cache_is_full(const struct stack_cache *s);
/* The current generation becomes the one before, which is forgotten. */
void stack_cache_turn(struct stack_cache *s);
