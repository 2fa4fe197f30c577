/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/stack_cache.h"
#include "test.h"

static struct event_sample *make_sample(uint64_t hash, uint16_t kernel, uint16_t user)
{
	size_t count = (size_t)kernel + user;
	struct event_sample *s = calloc(1, sizeof(*s) + count * sizeof(uint64_t));
	assert_non_null(s);
	s->stack_hash = hash;
	s->kernel_count = kernel;
	s->user_count = user;
	for (size_t i = 0; i < count; i++)
		s->frames[i] = hash * 1000 + i;
	return s;
}

static void keep(struct stack_cache *seen, uint64_t hash, uint16_t kernel, uint16_t user)
{
	struct event_sample *s = make_sample(hash, kernel, user);
	CHECK(stack_cache_keep(seen, s));
	free(s);
}

static void check_kept(
	const struct stack_cache *seen, uint64_t hash, uint16_t kernel, uint16_t user)
{
	const uint64_t *frames;
	const struct cached_stack *stack = stack_cache_find(seen, hash, &frames);
	assert_non_null(stack);
	CHECK(stack->kernel_count == kernel && stack->user_count == user);
	for (uint64_t i = 0; i < (uint64_t)kernel + user; i++)
		CHECK(frames[i] == hash * 1000 + i);
}

static void gives_frames_back(void **state)
{
	(void)state;
	struct stack_cache seen = { 0 };
	const uint64_t *frames;
	CHECK(!stack_cache_find(&seen, 1, &frames));
	for (uint64_t hash = 1; hash < 500; hash++)
		keep(&seen, hash, (uint16_t)(hash % 3), (uint16_t)(hash % 40));
	keep(&seen, 7, 1, 7); /* twice: once is enough */
	CHECK(seen.current.stacks.len == 499);
	for (uint64_t hash = 1; hash < 500; hash++)
		check_kept(&seen, hash, (uint16_t)(hash % 3), (uint16_t)(hash % 40));
	stack_cache_deinit(&seen);
}

static void forgets_after_two_turns(void **state)
{
	(void)state;
	struct stack_cache seen = { 0 };
	const uint64_t *frames;
	keep(&seen, 1, 0, 5);
	stack_cache_turn(&seen);
	keep(&seen, 2, 2, 0);
	check_kept(&seen, 1, 0, 5);
	check_kept(&seen, 2, 2, 0);
	stack_cache_turn(&seen);
	CHECK(!stack_cache_find(&seen, 1, &frames));
	check_kept(&seen, 2, 2, 0);
	stack_cache_turn(&seen);
	CHECK(!stack_cache_find(&seen, 2, &frames));
	stack_cache_deinit(&seen);
}

static void says_when_it_is_full(void **state)
{
	(void)state;
	struct stack_cache seen = { 0 };
	for (uint64_t hash = 1; !stack_cache_is_full(&seen); hash++)
		keep(&seen, hash, 0, 1);
	CHECK(seen.current.stacks.len == STACK_CACHE_STACKS_MAX);
	keep(&seen, 1u << 30, 0, 3); /* what was on its way is kept all the same */
	check_kept(&seen, 1u << 30, 0, 3);
	stack_cache_turn(&seen);
	CHECK(!stack_cache_is_full(&seen));
	for (uint64_t hash = 1; !stack_cache_is_full(&seen); hash++)
		keep(&seen, hash, 127, 1024);
	CHECK(seen.current.frames.len >= STACK_CACHE_FRAMES_MAX);
	CHECK(seen.current.frames.len < STACK_CACHE_FRAMES_MAX + 1151);
	stack_cache_deinit(&seen);
}

TEST_MAIN(cmocka_unit_test(gives_frames_back), cmocka_unit_test(forgets_after_two_turns),
	cmocka_unit_test(says_when_it_is_full))
