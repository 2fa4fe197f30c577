/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that Go has cut: which get back what others have, and which stay as they are. */
#include "test.h"

#include "pyroscope/repair.h"
#include "pyroscope/types.h"

#include <stdio.h>

#define MEMORY ((size_t)64 << 20)
#define STACKS_MAX 6

/* Frames inner, inner - 1, …, outer; with a period, each modulo it. `branch`: frames below it are
 * of another kind. */
struct run {
	uint32_t inner, outer, period, branch;
};
struct repair_case {
	const char *name, *type, *file;
	struct run stacks[STACKS_MAX];
	uint32_t outer[STACKS_MAX]; /* what each reaches to afterwards */
};

static uint32_t add_frame(struct profile *p, const char *file, uint32_t number)
{
	char text[16];
	uint32_t name, filename, function, location;
	snprintf(text, sizeof(text), "f%u", number);
	CHECK(profile_add_string(p, str_of(text), &name) == OK);
	CHECK(profile_add_string(p, str_of(file), &filename) == OK);
	CHECK(profile_add_function(p,
		      &(struct profile_function){ .name = name, .filename = filename },
		      &function) == OK);
	CHECK(profile_add_location(p, &(struct profile_location){ .address = number },
		      &(struct profile_line){ .function = function }, 1, &location) == OK);
	return location;
}

static uint32_t number_at(const struct run *r, uint32_t i)
{
	if (r->period)
		return i % r->period;
	return i < r->branch ? i + 1000 : i;
}

static uint32_t add_run(struct profile *p, const char *file, const struct run *r)
{
	uint32_t frames[128], count = 0, stack;
	for (uint32_t i = r->inner + 1; i-- > r->outer;)
		frames[count++] = add_frame(p, file, number_at(r, i));
	CHECK(profile_add_stack(p, frames, count, &stack) == OK);
	return stack;
}

static void add_head(struct profile *p, const char *sample_type, uint32_t *out)
{
	struct profile_type t = { 0 };
	struct profile_head h = { 0 };
	CHECK(profile_add_string(p, str_of(sample_type), &t.sample_type) == OK);
	CHECK(profile_add_type(p, &t, &h.type) == OK);
	CHECK(profile_add_head(p, &h, out) == OK);
}

static const struct repair_case cases[] = {
	{ "heap", "inuse_space", "a.go", { { 29, 0 }, { 35, 4 } }, { 0, 0 } },
	{ "cpu", "cpu", "a.go", { { 59, 0 }, { 71, 8 } }, { 0, 0 } },
	{ "in another order", "cpu", "a.go", { { 71, 8 }, { 59, 0 } }, { 0, 0 } },
	{ "deeper than the limit", "cpu", "a.go", { { 99, 0 }, { 71, 8 } }, { 0, 0 } },
	{ "a chain", "cpu", "a.go", { { 63, 0 }, { 70, 7 }, { 78, 15 }, { 86, 23 } },
		{ 0, 0, 0, 0 } },
	{ "equal tails", "cpu", "a.go", { { 63, 0 }, { 66, 3 }, { 80, 3 } }, { 0, 0, 0 } },
	{ "the longer of two", "cpu", "a.go", { { 63, 2 }, { 67, 4 }, { 63, 0 } }, { 0, 0, 0 } },
	{ "a short one too", "cpu", "a.go", { { 59, 0 }, { 31, 8 } }, { 0, 0 } },
	{ "shorter than a tail", "cpu", "a.go", { { 59, 0 }, { 30, 8 } }, { 0, 8 } },
	{ "more is missing than is looked for", "cpu", "a.go", { { 59, 0 }, { 72, 9 } }, { 0, 9 } },
	{ "other frames", "cpu", "a.go", { { 59, 0 }, { .inner = 71, .outer = 8, .branch = 9 } },
		{ 0, 8 } },
	{ "recursion", "cpu", "a.go",
		{ { .inner = 70, .outer = 6, .period = 3 },
			{ .inner = 71, .outer = 7, .period = 3 },
			{ .inner = 72, .outer = 8, .period = 3 } },
		{ 6, 7, 8 } },
	{ "not deep enough", "cpu", "a.go", { { 58, 0 }, { 60, 8 } }, { 0, 8 } },
	{ "heap of Go 1.23", "alloc_space", "a.go", { { 32, 0 }, { 35, 4 } }, { 0, 4 } },
	{ "another type", "delay", "a.go", { { 59, 0 }, { 71, 8 } }, { 0, 8 } },
	{ "not Go", "cpu", "a.py", { { 59, 0 }, { 71, 8 } }, { 0, 8 } },
	{ "empty", "cpu", "a.go", { { 0 } }, { 0 } },
};

static void puts_back(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		CHECK(profile_init(&p, MEMORY) == OK);
		struct added a;
		uint32_t first;
		add_head(&p, "cpu", &first);
		add_head(&p, c->type, &a.head);
		/* One of a file before it stays out of it. */
		uint32_t before = add_run(&p, c->file, &(struct run){ 71, 8, 0, 0 });
		CHECK(profile_add_sample(&p,
			      &(struct profile_sample){ .head = first, .stack = before }) == OK);
		a.sample = p.samples.len;
		for (size_t i = 0; i < STACKS_MAX && c->stacks[i].inner; i++)
			for (int twice = 0; twice < 2; twice++)
				CHECK(profile_add_sample(&p, &(struct profile_sample){ .value = 5,
								     .head = a.head,
								     .stack = add_run(&p, c->file,
									     &c->stacks[i]) }) ==
					OK);
		CHECK_CASE(c, repair_go_stacks(&p, a) == OK);
		CHECK(profile_validate(&p, NULL) == OK);
		CHECK(p.samples.v[0].stack == before);
		for (size_t i = a.sample; i < p.samples.len; i++) {
			struct run want = c->stacks[(i - a.sample) / 2];
			want.outer = c->outer[(i - a.sample) / 2];
			CHECK_CASE(c, p.samples.v[i].stack == add_run(&p, c->file, &want));
			CHECK(p.samples.v[i].value == 5);
		}
		profile_deinit(&p);
	}
}

TEST_MAIN(cmocka_unit_test(puts_back))
