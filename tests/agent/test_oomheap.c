/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/oom/oomheap.h"

#include "otlp/otlp.h"
#include "profile/profile.h"
#include "test.h"

#define CODE 0x401000
#define NOW 1700000000000000000ll

static uint32_t functions[] = { 0, 0x100 << 1, 0x200 << 1 | 1 };
static const struct oomprogram program = {
	.code_vaddr = CODE, .code_bytes = 0x1000, .functions = functions, .function_count = 3
};

struct got {
	struct profile profile;
	uint32_t messages, samples;
};

static void keep(void *ctx, struct buf *message, uint32_t sample_count)
{
	struct got *g = ctx;
	struct otlp_rejects rejects = { 0 };
	struct err e;
	CHECK_OK(otlp_decode(buf_view(message), &g->profile, &rejects, &e), &e);
	CHECK(rejects.profiles == 0 && message->len <= 4 << 20);
	g->messages++;
	g->samples += sample_count;
}

static struct oomheap *begin(struct got *g, bool allocs, uint64_t rate)
{
	const struct relabel_label labels[] = { { STR("comm"), STR("heap") },
		{ STR("job"), STR("another") } };
	const struct oom_begin b = { .o = { .pid = 77 }, .rate = rate, .program = 1 };
	const struct oomheap_config c = { allocs, &program, "abcd", "/bin/heap", &b, labels, 2, NOW,
		keep, g };
	struct oomheap *h;
	struct err e;
	memset(g, 0, sizeof(*g));
	CHECK(profile_init(&g->profile, 64 << 20) == OK);
	CHECK_OK(oomheap_new(&c, &h, &e), &e);
	return h;
}

static void finish(struct oomheap *h)
{
	uint32_t lost = 1;
	CHECK(oomheap_finish(h, &lost) == OK && lost == 0);
	oomheap_free(h);
}

static struct oom_bucket bucket(uint64_t allocs, uint64_t frees, uint64_t each)
{
	return (struct oom_bucket){ .o = { .stack_count = 2 },
		.allocs = allocs,
		.frees = frees,
		.alloc_bytes = allocs * each,
		.free_bytes = frees * each,
		.stack = { CODE + 0x11, CODE + 0x111 } };
}

/* Of the samples of a type, their sum; 0: there is none. */
static int64_t sum_of(const struct profile *p, const char *type)
{
	int64_t sum = 0;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		const struct profile_head *h = &p->heads.v[s->head];
		CLEANUP(buf_deinit) struct buf text;
		buf_init(&text, 4096);
		profile_type_write(&text, p, &p->types.v[h->type]);
		if (str_eq(buf_view(&text), str_of(type)))
			sum += s->value;
	}
	return sum;
}

static bool has_label(const struct profile *p, uint32_t set, const char *name, const char *value)
{
	const struct profile_labels *l = &p->label_sets.v[set];
	for (uint32_t i = 0; i < l->count; i++) {
		const struct profile_label *x = &p->labels.v[l->first + i];
		if (str_eq(profile_str(p, x->name), str_of(name)))
			return str_eq(profile_str(p, x->value), str_of(value));
	}
	return false;
}

static void sends_what_is_in_use(void **state)
{
	(void)state;
	struct got g;
	struct oomheap *h = begin(&g, false, 1);
	struct oom_bucket a = bucket(10, 4, 64), freed = bucket(3, 3, 8);
	CHECK(oomheap_add(h, &a) == OK && oomheap_add(h, &freed) == OK);
	finish(h);
	const struct profile *p = &g.profile;
	CHECK(g.messages == 1 && g.samples == 2 && p->samples.len == 2);
	CHECK(sum_of(p, "memory:inuse_objects:count:space:bytes") == 6);
	CHECK(sum_of(p, "memory:inuse_space:bytes:space:bytes") == 6 * 64);
	const struct profile_sample *s = &p->samples.v[0];
	CHECK(p->heads.v[s->head].period == 1 && p->heads.v[s->head].time_ns == NOW);
	CHECK(has_label(p, s->resource, "job", "oomprof"));
	CHECK(has_label(p, s->resource, "comm", "heap"));
	CHECK(has_label(p, s->own, "pid", "77"));
	const struct profile_stack *stack = &p->stacks.v[s->stack];
	CHECK(stack->count == 2);
	for (uint32_t i = 0; i < 2; i++) {
		const struct profile_location *l =
			&p->locations.v[p->stack_locations.v[stack->first + i]];
		CHECK(l->address == CODE + 0x10 + 0x100 * i && l->kind == FRAME_NATIVE);
		CHECK(str_eq(profile_str(p, p->mappings.v[l->mapping].build_id), STR("abcd")));
		CHECK(str_eq(profile_str(p, p->mappings.v[l->mapping].filename), STR("/bin/heap")));
	}
	profile_deinit(&g.profile);
}

static void sends_what_was_allocated(void **state)
{
	(void)state;
	struct got g;
	struct oomheap *h = begin(&g, true, 1);
	struct oom_bucket a = bucket(10, 4, 64), freed = bucket(3, 3, 8);
	CHECK(oomheap_add(h, &a) == OK && oomheap_add(h, &freed) == OK);
	finish(h);
	CHECK(sum_of(&g.profile, "memory:alloc_objects:count:space:bytes") == 13);
	CHECK(sum_of(&g.profile, "memory:alloc_space:bytes:space:bytes") == 10 * 64 + 3 * 8);
	CHECK(sum_of(&g.profile, "memory:inuse_objects:count:space:bytes") == 6);
	profile_deinit(&g.profile);
}

/* Numbers of runtime/pprof's scaleHeapSample(). */
static void scales_as_go_does(void **state)
{
	(void)state;
	static const struct {
		uint64_t rate, count, bytes, scaled_count, scaled_bytes;
	} cases[] = {
		{ 524288, 0, 100, 0, 0 },
		{ 524288, 1, 0, 0, 0 },
		{ 0, 3, 300, 3, 300 },
		{ 1, 3, 300, 3, 300 },
		{ 524288, 1, 524288, 1, 829411 },
		{ 524288, 2, 32, 65537, 1048592 },
		{ 524288, 4, 4 * 4194304, 4, 16782846 },
	};
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		uint64_t count = cases[i].count, bytes = cases[i].bytes;
		oomheap_scale(cases[i].rate, &count, &bytes);
		CHECK(count == cases[i].scaled_count && bytes == cases[i].scaled_bytes);
	}
}

static void takes_gos_rate_where_none_is_known(void **state)
{
	(void)state;
	static const uint64_t rates[] = { 0, UINT64_MAX };
	for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
		struct got g;
		struct oomheap *h = begin(&g, false, rates[i]);
		struct oom_bucket b = bucket(2, 0, 16);
		CHECK(oomheap_add(h, &b) == OK);
		finish(h);
		CHECK(g.profile.heads.v[g.profile.samples.v[0].head].period == OOMHEAP_RATE_BYTES);
		CHECK(sum_of(&g.profile, "memory:inuse_space:bytes:space:bytes") == 1048592);
		profile_deinit(&g.profile);
	}
}

/* Whatever a victim's memory holds. */
static void takes_any_numbers(void **state)
{
	(void)state;
	struct got g;
	struct oomheap *h = begin(&g, true, 524288);
	struct oom_bucket b = {
		.o = { .stack_count = 0 }, .allocs = UINT64_MAX, .alloc_bytes = UINT64_MAX
	};
	CHECK(oomheap_add(h, &b) == OK);
	b = (struct oom_bucket){ .o = { .stack_count = UINT16_MAX },
		.allocs = 1,
		.frees = 2,
		.alloc_bytes = 1,
		.free_bytes = UINT64_MAX };
	for (unsigned i = 0; i < OOM_STACK_MAX; i++)
		b.stack[i] = i % 3 ? UINT64_MAX - i : CODE + i;
	CHECK(oomheap_add(h, &b) == OK);
	finish(h);
	CHECK(g.messages == 1);
	profile_deinit(&g.profile);
}

static void cuts_messages(void **state)
{
	(void)state;
	struct got g;
	struct oomheap *h = begin(&g, false, 1);
	for (uint64_t i = 0; i < 50000; i++) {
		struct oom_bucket b = bucket(1, 0, 16);
		b.stack[0] = CODE + 1 + i % 0x200;
		b.stack[1] = CODE + 0x201 + i / 0x200;
		CHECK(oomheap_add(h, &b) == OK);
	}
	finish(h);
	CHECK(g.messages > 1 && g.samples == 100000);
	CHECK(sum_of(&g.profile, "memory:inuse_objects:count:space:bytes") == 50000);
	profile_deinit(&g.profile);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_what_is_in_use),
		cmocka_unit_test(sends_what_was_allocated),
		cmocka_unit_test(scales_as_go_does),
		cmocka_unit_test(takes_gos_rate_where_none_is_known),
		cmocka_unit_test(takes_any_numbers),
		cmocka_unit_test(cuts_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
