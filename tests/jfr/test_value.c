/* SPDX-License-Identifier: Apache-2.0 */
/* Packed integers, texts in each form, and objects that hold each other. */
#include "test.h"

#include "jfr/internal.h"
#include "maker.h"

static void reads_integers(void **state)
{
	(void)state;
	static const uint64_t values[] = { 0, 1, 127, 128, 300, UINT32_MAX, (uint64_t)1 << 56,
		UINT64_MAX - 1, UINT64_MAX };
	for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 16);
		maker_packed(&b, values[i]);
		struct reader r = reader_over(b.data, b.len);
		CHECK(jfr_varint(&r) == values[i] && !r.failed && r.at == r.end);
		CHECK(b.len <= 9);
		r = reader_over(b.data, b.len - 1);
		jfr_varint(&r);
		CHECK(r.failed);
	}
}

static void reads_texts(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct str bytes;
		enum status want;
	} cases[] = {
		{ "", STR("\0"), OK },
		{ "", STR("\1"), OK },
		{ "", STR("\2\5"), OK }, /* a constant that is not there */
		{ "ab", STR("\3\2ab"), OK },
		{ "a\u00e9\u20ac\U0001f600", STR("\4\5a\xE9\1\xAC\x41\xBD\xB0\x03\x80\xBC\x03"),
			OK },
		{ "\u00e9t\u00e9", STR("\5\3\xE9t\xE9"), OK },
		{ "torn", STR("\3\5ab"), E_INVALID },
		{ "torn", STR("\4\5ab"), E_INVALID },
		{ "form", STR("\6\1a"), E_INVALID },
		{ "long", STR("\3\x81\x80\x80\x01"), E_LIMIT },
	};
	FOR_EACH_CASE (k, cases) {
		struct maker m;
		struct jfr_chunk c;
		size_t length;
		struct err e = { 0 };
		struct str text;
		maker_begin(&m);
		CHECK_OK(jfr_chunk_open(&c, maker_end(&m), NULL, &length, &e), &e);
		struct reader r = reader_over(k->bytes.p, k->bytes.len);
		enum status s = jfr_text(&c, &r, &text);
		CHECK_CASE(k, s == k->want);
		if (s == OK)
			CHECK_STR(text, k->name);
		jfr_chunk_deinit(&c);
		maker_deinit(&m);
	}
}

/* An object whose fields are objects of its own class would never end; one without fields takes no
 * byte, and a list of them no end either. */
static void bounds_objects(void **state)
{
	(void)state;
	struct maker m;
	struct jfr_chunk c;
	size_t length;
	struct err e = { 0 };
	maker_begin(&m);
	CHECK_OK(jfr_chunk_open(&c, maker_end(&m), NULL, &length, &e), &e);
	uint32_t class = jfr_class_find(&c, ID_FRAME);
	struct jfr_class *k = &c.classes.v[class];
	struct jfr_field *f = &c.fields.v[k->first_field];
	*f = (struct jfr_field){ .name = STR("self"), .class = class };
	k->varints = 0;
	struct reader r = jfr_at(&c, 0);
	CHECK(jfr_skip(&c, &r, class) == E_INVALID);
	k->field_count = 0;
	class = jfr_class_find(&c, ID_STACK);
	static const uint8_t list[] = { 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
	r = reader_over(list, sizeof(list));
	CHECK(jfr_skip(&c, &r, class) == E_INVALID);
	jfr_chunk_deinit(&c);
	maker_deinit(&m);
}

TEST_MAIN(cmocka_unit_test(reads_integers), cmocka_unit_test(reads_texts),
	cmocka_unit_test(bounds_objects))
