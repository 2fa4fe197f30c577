/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen: the frames of stacks that the BPF program will from now on name by their hash only.
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

/* Above this a generation is full (seen_is_full()): no more stacks should be sent by hash. */
#define SEEN_STACKS_MAX 32768
#define SEEN_FRAMES_MAX (1u << 20) /* 8 MiB */

struct seen_stack {
	uint64_t hash;
	uint32_t first_frame; /* in frames */
	uint16_t kernel_count;
	uint16_t user_count;
};

struct seen_generation {
	struct map index; /* hash to stacks */
	VEC(struct seen_stack) stacks;
	VEC(uint64_t) frames;
};

struct seen {
	struct seen_generation current;
	struct seen_generation before;
};

void seen_deinit(struct seen *s); /* all zero is empty */
/* Keep a stack's frames; false when there is no memory. */
NODISCARD bool seen_keep(struct seen *s, const struct event_sample *sample);
/* The frames of `hash`; NULL when they are not kept. Valid until the next call of another. */
const struct seen_stack *seen_find(
	const struct seen *s, uint64_t hash, const uint64_t **out_frames);
bool seen_is_full(const struct seen *s);
/* The current generation becomes the one before, which is forgotten. */
void seen_turn(struct seen *s);
