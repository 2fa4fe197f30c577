/* SPDX-License-Identifier: Apache-2.0 */
/* Classes and fields, as they are written down; what a file may get wrong with them. */
#include "test.h"

#include "jfr/internal.h"
#include "maker.h"

static void reads_classes(void **state)
{
	(void)state;
	struct maker m;
	struct jfr_chunk c;
	size_t length;
	struct err e = { 0 };
	maker_begin(&m);
	CHECK_OK(jfr_chunk_open(&c, maker_end(&m), NULL, &length, &e), &e);
	CHECK(c.classes.len == ARRAY_COUNT(maker_classes));
	const struct jfr_class *k = &c.classes.v[jfr_class_find(&c, ID_STACK)];
	CHECK_STR(k->name, "jdk.types.StackTrace");
	CHECK(k->kind == JFR_OBJECT && k->field_count == 2);
	const struct jfr_field *f = &c.fields.v[k->first_field + 1];
	CHECK_STR(f->name, "frames");
	CHECK(f->is_array && !f->is_constant && f->class == jfr_class_find(&c, ID_FRAME));
	CHECK(c.classes.v[jfr_class_find(&c, ID_DOUBLE)].kind == JFR_DOUBLE);
	CHECK(c.string_class == jfr_class_find(&c, ID_STRING));
	jfr_chunk_deinit(&c);
	maker_deinit(&m);
}

/* One class "name" of an id with a field of a class, by hand. */
struct tree_case {
	const char *name; /* of the sentence */
	const char *id, *field_class;
	int copies;
	uint32_t fields;
	enum status want;
};

static void refuses_classes(void **state)
{
	(void)state;
	static const struct tree_case cases[] = {
		{ "has no id of its own", "x", "1", 1, 1, E_INVALID },
		{ "has no id of its own", "1", "1", 2, 1, E_INVALID },
		{ "has no class", "1", "", 1, 1, E_INVALID },
		{ "is not there", "1", "2", 1, 1, E_INVALID },
		{ "more than 256 fields", "1", "1", 1, 300, E_LIMIT },
		{ "", "1", "1", 1, 256, OK },
	};
	FOR_EACH_CASE (c, cases) {
		struct maker m;
		struct jfr_chunk chunk;
		size_t length;
		struct err e = { 0 };
		maker_begin(&m);
		size_t at = m.out.len;
		maker_element(&m, "root", NULL, 0, 1);
		maker_element(&m, "metadata", NULL, 0, (size_t)c->copies);
		for (int i = 0; i < c->copies; i++) {
			const char *pairs[] = { "name", "A", "id", c->id };
			maker_element(&m, "class", pairs, 2, c->fields);
			for (uint32_t k = 0; k < c->fields; k++) {
				const char *field[] = { "name", "f", "class", c->field_class };
				maker_element(&m, "field", field, 2, 0);
			}
		}
		struct buf *b = maker_event(&m, 0);
		buf_put(b, "\1\1\1", 3);
		maker_packed(b, m.text_count);
		for (size_t i = 0; i < m.text_count; i++)
			maker_text(b, m.texts[i]);
		buf_str(b, buf_view(&m.tree));
		maker_event_end(&m);
		maker_patch(&m.out, 8, m.out.len);
		maker_patch(&m.out, 24, at);
		enum status s = jfr_chunk_open(&chunk, buf_view(&m.out), NULL, &length, &e);
		CHECK_CASE(c, s == c->want);
		CHECK_CASE(c, strstr(e.text, c->name));
		jfr_chunk_deinit(&chunk);
		maker_deinit(&m);
	}
}

TEST_MAIN(cmocka_unit_test(reads_classes), cmocka_unit_test(refuses_classes))
