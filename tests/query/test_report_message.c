/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as text: each is walked by its field numbers, as query.proto has them. */
#include "fake.h"

#include "pb/pb.h"

static struct query_report_request request(const char *selector)
{
	return (struct query_report_request){
		.side = { .selector = str_of(selector), .to_ns = INT64_MAX },
	};
}

/* The n-th field of that number. */
static struct pb_field find(struct str message, uint32_t number, size_t n)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == number && n-- == 0)
			return f;
	CHECK(!r.failed);
	return (struct pb_field){ 0 };
}

static size_t count_of(struct str message, uint32_t number)
{
	size_t n = 0;
	while (find(message, number, n).number)
		n++;
	return n;
}

static void samples(void)
{
	fake_sample(HEAP, 1, 3000, 0, "", "main@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 500, 0, "", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 1, 0, "", "main@/bin/x;small@/bin/x;leaf@/lib/y");
}

static void lists_functions(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	struct query_report_request r = request(HEAP);
	buf_init(&out, 1 << 20);
	samples();
	CHECK_OK(query_top_message(&fake_engine, &r, &out, &info, &e), &e);
	struct str top = buf_view(&out), first = find(top, 1, 0).bytes;
	CHECK(count_of(top, 1) == 6 && find(top, 2, 0).u64 == 6 && info.total == 3501);
	CHECK_STR(find(top, 4, 0).bytes, "bytes");
	CHECK(find(first, 2, 0).u64 == 3000 && find(first, 3, 0).u64 == 3000);
	struct str meta = find(first, 1, 0).bytes;
	CHECK_STR(find(find(meta, 3, 0).bytes, 3, 0).bytes, "g");
	CHECK_STR(find(find(meta, 2, 0).bytes, 5, 0).bytes, "/lib/y");
	CHECK(find(find(meta, 4, 0).bytes, 2, 0).u64 == 11);
	CHECK(find(find(meta, 1, 0).bytes, 2, 0).u64 != 0);
}

static struct str name_of_node(struct str node)
{
	return find(find(find(node, 2, 0).bytes, 3, 0).bytes, 3, 0).bytes;
}

/* "small" is below half a percent, has one caller and a callee: its edge is joined. */
static void draws_a_graph(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_report info;
	struct err e = { 0 };
	struct query_report_request r = request(HEAP);
	buf_init(&out, 1 << 20);
	samples();
	CHECK_OK(query_callgraph_message(&fake_engine, &r, &out, &info, &e), &e);
	struct str graph = buf_view(&out);
	CHECK(count_of(graph, 1) == 5 && count_of(graph, 2) == 4);
	CHECK(find(graph, 3, 0).u64 == 3501);
	for (size_t i = 0; i < 5; i++)
		CHECK(!str_eq(name_of_node(find(graph, 1, i).bytes), STR("small")));
	size_t joined = 0;
	int64_t sum = 0;
	for (size_t i = 0; i < 4; i++) {
		struct str edge = find(graph, 2, i).bytes;
		joined += find(edge, 5, 0).u64;
		sum += (int64_t)find(edge, 4, 0).u64;
	}
	/* main to f, f to g, f to inner, main to leaf through small */
	CHECK(joined == 1 && sum == 3500 + 3000 + 500 + 1);
}

/* "name total[…]" of the nested nodes, by the message's own tables. */
static void put_node(struct buf *b, struct str message, struct str node, uint32_t children)
{
	struct str meta = find(node, 1, 0).bytes;
	uint64_t number = find(meta, 5, 0).u64, line = find(meta, 6, 0).u64;
	struct str location = find(message, 6, number - 1).bytes;
	struct str at = find(location, 6, line).bytes;
	struct str function = find(message, 8, find(at, 3, 0).u64 - 1).bytes;
	buf_str(b, find(message, 5, find(function, 6, 0).u64).bytes);
	buf_printf(b, " %llu", (unsigned long long)find(node, 2, 0).u64);
	for (size_t i = 0; i < count_of(node, children); i++) {
		buf_cstr(b, i ? ", " : " [");
		put_node(b, message, find(node, children, i).bytes, 4);
		if (i + 1 == count_of(node, children))
			buf_u8(b, ']');
	}
}

static void nests_calls(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out, b;
	struct query_report info;
	struct err e = { 0 };
	struct query_report_request r = request(HEAP);
	buf_init(&out, 1 << 20);
	buf_init(&b, 1 << 20);
	samples();
	CHECK_OK(query_flame_message(&fake_engine, &r, &out, &info, &e), &e);
	struct str flame = buf_view(&out), root = find(flame, 1, 0).bytes;
	CHECK(find(root, 1, 0).u64 == 3501 && find(flame, 2, 0).u64 == 3501);
	CHECK(find(flame, 4, 0).u64 == 4 && find(flame, 9, 0).u64 == 3501);
	CHECK(count_of(root, 3) == 1);
	put_node(&b, flame, find(root, 3, 0).bytes, 4);
	CHECK_STR(buf_view(&b), "main 3501 [f 3500 [g 3000, inner 500], small 1 [leaf 1]]");
	CHECK_STR(find(find(flame, 5, 0).bytes, 0, 0).bytes, "");
	r.trim = 0.2;
	buf_clear(&out);
	buf_clear(&b);
	CHECK_OK(query_flame_message(&fake_engine, &r, &out, &info, &e), &e);
	flame = buf_view(&out);
	put_node(&b, flame, find(find(flame, 1, 0).bytes, 3, 0).bytes, 4);
	CHECK_STR(buf_view(&b), "main 3501 [f 3500 [g 3000]]");
	CHECK(info.trimmed == 501 && find(flame, 10, 0).u64 == 501);
}

static void takes_deep_stacks(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out, stack;
	struct query_report info;
	struct err e = { 0 };
	struct query_report_request r = request(HEAP);
	buf_init(&out, 1 << 20);
	buf_init(&stack, 1 << 20);
	for (int i = 0; i < 2000; i++)
		buf_printf(&stack, "%sf@x", i ? ";" : "");
	buf_u8(&stack, 0);
	fake_sample(HEAP, 1, 1, 0, "", (const char *)stack.data);
	CHECK_OK(query_flame_message(&fake_engine, &r, &out, &info, &e), &e);
	CHECK(info.height == 2001);
	buf_clear(&out); /* a ring of functions */
	CHECK_OK(query_callgraph_message(&fake_engine, &r, &out, &info, &e), &e);
	CHECK(count_of(buf_view(&out), 1) == 1 && count_of(buf_view(&out), 2) == 1);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(lists_functions), TEST(draws_a_graph), TEST(nests_calls), TEST(takes_deep_stacks))
