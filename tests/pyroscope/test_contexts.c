/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "pyroscope/contexts.h"
#include "say.h"

#define MIB ((size_t)1 << 20)

static void put_text(struct buf *b, uint64_t id, const char *text)
{
	size_t at = pb_begin(b, 2);
	pb_put_u64(b, 1, id);
	pb_put_str(b, 2, str_of(text));
	pb_end(b, at);
}

/* Context 7: controller=slow, and a pair whose value is not there. */
static void put_snapshot(struct buf *b)
{
	size_t at = pb_begin(b, 1);
	pb_put_u64(b, 1, 7);
	size_t context = pb_begin(b, 2);
	say_pair(b, 1, 1, 2);
	say_pair(b, 1, 1, 9);
	say_pair(b, 1, 3, 2);
	pb_end(b, context);
	pb_end(b, at);
	put_text(b, 1, "controller");
	put_text(b, 2, "slow");
	put_text(b, 3, "__hidden");
	put_text(b, 4, "GET /");
	put_text(b, 2, "twice");
}

static void names_contexts(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t context, span, span_name;
	} cases[] = { { "controller=slow,", 7, 0, 0 },
		{ "controller=slow,span_id=000000000000beef,span_name=GET /,", 7, 0xBEEF, 4 },
		{ "span_id=ffffffffffffffff,", 8, UINT64_MAX, 8 } };
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	struct contexts c;
	struct err e = { 0 };
	buf_init(&b, 4096);
	buf_init(&text, 4096);
	put_snapshot(&b);
	FOR_EACH_CASE (k, cases) {
		struct profile p;
		struct profile_label labels[8];
		uint32_t count, set;
		CHECK_OK(profile_init(&p, 1 << 20), &e);
		CHECK_OK(contexts_read(buf_view(&b), &c, &e), &e);
		for (int times = 0; times < 2; times++)
			CHECK_OK(contexts_labels(&c, k->context, k->span, k->span_name, &p, labels,
					 8, &count),
				&e);
		CHECK_OK(profile_add_labels(&p, labels, count, &set), &e);
		buf_clear(&text);
		say_labels(&text, &p, set);
		CHECK_STR(buf_view(&text), k->name);
		CHECK(contexts_labels(&c, 7, 0, 0, &p, labels, 1, &count) == E_LIMIT);
		profile_deinit(&p);
		contexts_deinit(&c);
	}
}

/* Ten thousand events of a context that is long, and whose text is: each by itself would take
 * minutes. */
static void makes_contexts_once(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct contexts c;
	struct profile p;
	struct profile_label labels[JFR_CONTEXT_LABELS_MAX];
	struct err e = { 0 };
	uint32_t count;
	char *text = malloc(MIB + 1);
	CHECK(text);
	memset(text, 'x', MIB);
	text[MIB] = 0;
	buf_init(&b, 3 * MIB);
	size_t at = pb_begin(&b, 1);
	pb_put_u64(&b, 1, 7);
	size_t context = pb_begin(&b, 2);
	say_pair(&b, 1, 1, 2);
	for (int i = 0; i < 100000; i++)
		say_pair(&b, 1, 9, 2); /* a name that is not there */
	pb_end(&b, context);
	pb_end(&b, at);
	put_text(&b, 1, "name");
	put_text(&b, 2, text);
	CHECK_OK(profile_init(&p, 8 * MIB), &e);
	CHECK_OK(contexts_read(buf_view(&b), &c, &e), &e);
	for (uint64_t i = 1; i <= 10000; i++)
		CHECK(contexts_labels(&c, 7, 1, 2, &p, labels, JFR_CONTEXT_LABELS_MAX, &count) ==
				OK &&
			count == 3);
	CHECK(c.labels.len == 1);
	contexts_deinit(&c);
	profile_deinit(&p);
	free(text);
}

static void refuses_torn_snapshots(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	int refused = 0;
	buf_init(&b, 4096);
	put_snapshot(&b);
	for (size_t i = 0; i < b.len; i++) {
		struct contexts c;
		refused += contexts_read(str_make(b.data, i), &c, &e) == E_INVALID;
		contexts_deinit(&c);
	}
	CHECK(refused > (int)b.len / 2);
}

TEST_MAIN(cmocka_unit_test(names_contexts), cmocka_unit_test(makes_contexts_once),
	cmocka_unit_test(refuses_torn_snapshots))
