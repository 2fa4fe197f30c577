/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

struct folded {
	struct arena work;
	struct query_tree t;
	struct query_fold f;
};

static void begin(struct folded *x)
{
	struct query_request r = fake_request(HEAP);
	struct err e = { 0 };
	arena_init(&x->work, 64 << 20);
	CHECK_OK(query_tree_make(&x->t, &fake_engine, &r, &x->work, &e), &e);
}

static void end(struct folded *x)
{
	query_fold_deinit(&x->f);
	query_tree_deinit(&x->t);
	arena_deinit(&x->work);
}

static bool give_up(void *ctx)
{
	(void)ctx;
	return true;
}

/* A parent comes first, then its children by descending total, each with all that is below it. */
static void check_order(const struct query_fold *f)
{
	int64_t *last = calloc(f->nodes.len, sizeof(*last)); /* total of the last child so far */
	int64_t *sum = calloc(f->nodes.len, sizeof(*sum));
	CHECK(last && sum);
	for (uint32_t i = 1; i < f->nodes.len; i++) {
		const struct query_fold_node *n = &f->nodes.v[i];
		uint32_t before = i - 1;
		while (before > n->parent)
			before = f->nodes.v[before].parent;
		CHECK(before == n->parent);
		CHECK(last[n->parent] == 0 || last[n->parent] >= n->total);
		last[n->parent] = n->total;
		sum[n->parent] += n->total;
	}
	for (uint32_t i = 0; i < f->nodes.len; i++)
		CHECK(sum[i] + f->nodes.v[i].self <= f->nodes.v[i].total);
	free(last);
	free(sum);
}

/* One chain of 1,000 frames, one node with 3,000 children. */
static void is_deep_and_wide(void **state)
{
	(void)state;
	struct folded x;
	struct err e = { 0 };
	char stack[16000] = "";
	size_t len = 0;
	for (int i = 0; i < 1000; i++)
		len += (size_t)snprintf(stack + len, sizeof(stack) - len, "f%d@x;", i);
	fake_sample(HEAP, 1, 10, 0, "", stack);
	for (int i = 0; i < 3000; i++) {
		snprintf(stack, sizeof(stack), "f0@x;g%d@x", i);
		fake_sample(HEAP, 1, 1 + i % 7, 0, "", stack);
	}
	begin(&x);
	CHECK_OK(query_fold_down(&x.f, &x.t, 1, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4001 && x.f.nodes.v[0].total == x.t.total[0]);
	CHECK(x.f.nodes.v[2].total == 10 && x.f.nodes.v[1000].self == 10);
	check_order(&x.f);
	query_fold_deinit(&x.f);
	CHECK_OK(query_fold_up(&x.f, &x.t, 1, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 1 + 1000 + 2 * 3000);
	check_order(&x.f);
	query_fold_deinit(&x.f);
	/* Only what is large enough is opened. */
	CHECK_OK(query_fold_down(&x.f, &x.t, 8, 64 << 20, &e), &e);
	CHECK(x.f.nodes.len == 1001);
	query_fold_deinit(&x.f);
	x.t.stop.cancel = give_up;
	query_fold_deinit(&x.f);
	CHECK(query_fold_down(&x.f, &x.t, 1, 64 << 20, &e) == E_CANCELED);
	query_fold_deinit(&x.f);
	CHECK(query_fold_up(&x.f, &x.t, 1, 64 << 20, &e) == E_CANCELED);
	query_fold_deinit(&x.f);
	x.t.stop.cancel = NULL;
	x.t.stop.deadline_ns = 1;
	CHECK(query_fold_down(&x.f, &x.t, 1, 64 << 20, &e) == E_TIMEOUT);
	query_fold_deinit(&x.f);
	x.t.stop.deadline_ns = 0;
	CHECK(query_fold_down(&x.f, &x.t, 1, 100000, &e) == E_LIMIT);
	CHECK(strstr(e.text, "choose a shorter time range"));
	query_fold_deinit(&x.f);
	CHECK(query_fold_up(&x.f, &x.t, 1, 100000, &e) == E_LIMIT);
	end(&x);
}

/* The same frames by other addresses, called or inlined: one node each. */
static void joins_places(void **state)
{
	(void)state;
	struct folded x;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 1, 0, "", "a@x;b@x;c@x");
	fake_sample(HEAP, 1, 2, 0, "", "a>b@x;c@x");
	fake_sample(HEAP, 1, 4, 0, "", "a>b>c@x");
	fake_sample(HEAP, 1, 8, 0, "", "a@x;b>c@x");
	begin(&x);
	CHECK_OK(query_fold_down(&x.f, &x.t, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4);
	CHECK(x.f.nodes.v[3].self == 15 && x.f.nodes.v[1].self == 0);
	CHECK(!x.f.nodes.v[2].inlined && !x.f.nodes.v[3].inlined);
	query_fold_deinit(&x.f);
	CHECK_OK(query_fold_up(&x.f, &x.t, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 4);
	CHECK(x.f.nodes.v[3].self == 15 && x.f.nodes.v[1].total == 15);
	end(&x);
}

static void leaves_out_what_sums_to_nothing(void **state)
{
	(void)state;
	struct folded x;
	struct err e = { 0 };
	fake_sample(HEAP, 1, 5, 0, "", "a@x;b@x");
	fake_sample(HEAP, 1, -5, 0, "", "a@x;c@x");
	fake_sample(HEAP, 1, -3, 0, "", "d@x");
	fake_sample(HEAP, 1, 9, 0, "", "");
	begin(&x);
	CHECK_OK(query_fold_down(&x.f, &x.t, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.len == 2 && x.f.nodes.v[0].self == 9 && x.f.nodes.v[0].total == 6);
	CHECK(x.f.nodes.v[1].total == -3);
	query_fold_deinit(&x.f);
	CHECK_OK(query_fold_up(&x.f, &x.t, 1, 1 << 20, &e), &e);
	CHECK(x.f.nodes.v[0].self == 9 && x.f.nodes.v[1].total == 5);
	CHECK(x.f.nodes.len == 6);
	end(&x);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(is_deep_and_wide), WITH_STORE(joins_places),
	WITH_STORE(leaves_out_what_sums_to_nothing))
