/* SPDX-License-Identifier: Apache-2.0 */
/* Headers, and constants that name each other. */
#include "test.h"

#include "jfr/internal.h"
#include "maker.h"

struct header_case {
	const char *name; /* a part of the sentence */
	size_t at;
	uint64_t value;
	enum status want;
};

static void reads_headers(void **state)
{
	(void)state;
	static const struct header_case cases[] = {
		{ "does not begin", 0, 0, E_INVALID },
		{ "version 3.0", 0, 0x464C520000030000, E_UNSUPPORTED },
		{ "not finished", 8, 0, E_INVALID },
		{ "a chunk of 99999999 bytes", 8, 99999999, E_INVALID },
		{ "a chunk of 60 bytes", 8, 60, E_INVALID },
		{ "mean nothing", 24, 3, E_INVALID },
		{ "mean nothing", 24, 99999999, E_INVALID },
		{ "mean nothing", 32, UINT64_MAX, E_INVALID },
		{ "mean nothing", 56, 0, E_INVALID },
		{ "not compressed", 60, 0xF4240ULL << 32, E_UNSUPPORTED },
		{ "metadata: malformed", 24, 68, E_INVALID },
	};
	FOR_EACH_CASE (c, cases) {
		struct maker m;
		struct jfr_chunk chunk;
		size_t length;
		struct err e = { 0 };
		maker_begin(&m);
		maker_constants(&m);
		maker_end(&m);
		maker_patch(&m.out, c->at, c->value);
		CHECK_CASE(
			c, jfr_chunk_open(&chunk, buf_view(&m.out), NULL, &length, &e) == c->want);
		CHECK_CASE(c, strstr(e.text, c->name));
		jfr_chunk_deinit(&chunk);
		maker_deinit(&m);
	}
	CHECK(jfr_is(STR("FLR\0..")) && !jfr_is(STR("FLR")) && !jfr_is(STR("PK\3\4")));
}

static void finds_constants(void **state)
{
	(void)state;
	struct maker m;
	struct jfr_chunk c;
	size_t length;
	struct err e = { 0 };
	maker_begin(&m);
	maker_constants(&m);
	struct str bytes = maker_end(&m);
	CHECK_OK(jfr_chunk_open(&c, bytes, NULL, &length, &e), &e);
	CHECK(length == bytes.len && c.constants.len == 14);
	CHECK(c.start_ns == MAKER_START && c.duration_ns == 5000000000);
	uint32_t symbol = jfr_class_find(&c, ID_SYMBOL);
	CHECK(jfr_constant_find(&c, symbol, 3) && !jfr_constant_find(&c, symbol, 4));
	CHECK(jfr_class_find(&c, 1000) == MAP_NONE);
	jfr_chunk_deinit(&c);
	maker_deinit(&m);
}

/* One more than there may be, in three checkpoints. */
static void limits_constants(void **state)
{
	(void)state;
	struct maker m;
	struct jfr_chunk c;
	size_t length;
	struct err e = { 0 };
	maker_begin(&m);
	for (uint64_t k = 0, total = JFR_CONSTANTS_MAX + 1ull; k < total;) {
		uint64_t n = MIN(total - k, (uint64_t)1000000);
		struct buf *b = maker_event(&m, 1);
		buf_zero(b, 4);
		maker_packed(b, 1);
		maker_pool(b, ID_INT, n);
		for (; n; n--) {
			maker_packed(b, ++k);
			buf_u8(b, 0);
		}
		maker_event_end(&m);
	}
	struct str bytes = maker_end(&m);
	CHECK(buf_status(&m.out) == OK);
	CHECK(jfr_chunk_open(&c, bytes, NULL, &length, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text), "more than 2000000 constants");
	jfr_chunk_deinit(&c);
	maker_deinit(&m);
}

TEST_MAIN(cmocka_unit_test(reads_headers), cmocka_unit_test(finds_constants),
	cmocka_unit_test(limits_constants))
