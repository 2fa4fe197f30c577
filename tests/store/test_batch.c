/* SPDX-License-Identifier: Apache-2.0 */
#include "store/log/batch.h"

#include "tests/store/model.h"

static void encode(const struct profile *p, struct buf *out)
{
	buf_init(out, 1 << 20);
	batch_encode(out, STR("tenant x"), p);
	CHECK(buf_status(out) == OK);
}

static void round_trips(void **state)
{
	(void)state;
	struct model m = { .random = 4 };
	struct profile p, q;
	struct buf a, b;
	struct str tenant;
	struct err e = { 0 };
	model_batch(&m, &p, 300, T0, 100 * SEC);
	struct profile_link link = { .trace_id = { 1, 2, 3 }, .span_id = { 9 } };
	uint32_t id;
	CHECK(profile_add_link(&p, &link, &id) == OK);
	p.samples.v[5].link = id;
	encode(&p, &a);
	CHECK(profile_init(&q, 1 << 20) == OK);
	CHECK_OK(batch_decode(buf_view(&a), &q, &tenant, &e), &e);
	CHECK_STR(tenant, "tenant x");
	CHECK(q.samples.len == 300 && q.samples.v[5].link == id);
	CHECK(q.links.v[id].trace_id[2] == 3);
	encode(&q, &b); /* nothing to intern a second time: the same bytes */
	CHECK(str_eq(buf_view(&a), buf_view(&b)));
	buf_deinit(&a);
	buf_deinit(&b);
	profile_deinit(&p);
	profile_deinit(&q);
	VEC_FREE(&m.samples);
}

/* Numbers of each length, and stacks of more frames and of higher numbers than are written at once.
 */
static void numbers_of_each_length(void **state)
{
	(void)state;
	enum { LOCATIONS = 20000, DEEP = 200 };
	struct profile p, q;
	struct buf a;
	struct str tenant;
	struct err e = { 0 };
	struct model m = { .random = 5 };
	uint32_t ids[DEEP], id, stacks[3];
	model_batch(&m, &p, 2, T0, SEC);
	uint64_t first = p.locations.len, first_stack = p.stacks.len;
	for (uint32_t i = 0; i < LOCATIONS; i++) {
		struct profile_location l = { .kind = FRAME_NATIVE,
			.address =
				i < 192 ? ((uint64_t)1 << i / 3) - 1 + i % 3 : (uint64_t)i << 40 };
		CHECK(profile_add_location(&p, &l, NULL, 0, &id) == OK);
	}
	const uint32_t from[3] = { 100, 16250, 16390 };
	for (int k = 0; k < 3; k++) {
		for (uint32_t i = 0; i < DEEP; i++)
			ids[i] = from[k] + i;
		CHECK(profile_add_stack(&p, ids, DEEP - (uint32_t)k * 67, &stacks[k]) == OK);
	}
	CHECK(p.locations.len > 16600 && stacks[0] == first_stack);
	p.samples.v[0].value = INT64_MIN;
	p.samples.v[1].time_ns = INT64_MAX;
	encode(&p, &a);
	CHECK(profile_init(&q, 64 << 20) == OK);
	CHECK_OK(batch_decode(buf_view(&a), &q, &tenant, &e), &e);
	CHECK(q.locations.len == p.locations.len && q.stacks.len == p.stacks.len);
	for (size_t i = first; i < p.locations.len; i++)
		CHECK(q.locations.v[i].address == p.locations.v[i].address);
	for (int k = 0; k < 3; k++) {
		const struct profile_stack *x = &p.stacks.v[stacks[k]], *y = &q.stacks.v[stacks[k]];
		CHECK(x->count == y->count);
		CHECK(memcmp(p.stack_locations.v + x->first, q.stack_locations.v + y->first,
			      x->count * sizeof(uint32_t)) == 0);
	}
	CHECK(q.samples.v[0].value == INT64_MIN && q.samples.v[1].time_ns == INT64_MAX);
	buf_deinit(&a);
	profile_deinit(&p);
	profile_deinit(&q);
	VEC_FREE(&m.samples);
}

static void refuses_what_is_cut_or_changed(void **state)
{
	(void)state;
	struct model m = { .random = 4 };
	struct profile p, q;
	struct buf a;
	struct str tenant;
	model_batch(&m, &p, 20, T0, 100 * SEC);
	encode(&p, &a);
	for (size_t n = 0; n < a.len; n++) {
		struct err e = { 0 };
		CHECK(profile_init(&q, 1 << 20) == OK);
		CHECK(batch_decode(str_make(a.data, n), &q, &tenant, &e) == E_CORRUPT);
		CHECK(strstr(e.text, "batch") != NULL);
		profile_deinit(&q);
	}
	for (size_t n = 0; n < a.len; n++) {
		a.data[n] ^= 0x41; /* whatever comes out is a sound profile, or refused */
		CHECK(profile_init(&q, 1 << 20) == OK);
		enum status s = batch_decode(buf_view(&a), &q, &tenant, NULL);
		CHECK(s == OK ? profile_validate(&q, NULL) == OK : s == E_CORRUPT || s == E_LIMIT);
		profile_deinit(&q);
		a.data[n] ^= 0x41;
	}
	buf_deinit(&a);
	profile_deinit(&p);
	VEC_FREE(&m.samples);
}

TEST_MAIN(cmocka_unit_test(round_trips), cmocka_unit_test(numbers_of_each_length),
	cmocka_unit_test(refuses_what_is_cut_or_changed))
