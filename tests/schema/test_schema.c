/* SPDX-License-Identifier: Apache-2.0 */
/* Each table is one that JSON can work with, and descriptors name what they should. What a real
 * protobuf implementation makes of the descriptors: schema_check.py. */
#include "test.h"

#include "schema/schema.h"

static void check_message(const struct pb_desc *d)
{
	CHECK(d->count <= PB_MEMBERS_MAX);
	for (size_t i = 0; i < d->count; i++) {
		const struct pb_member *m = &d->members[i];
		CHECK(pb_desc_find(d, m->number) == m);
		CHECK(pb_desc_find_name(d, str_of(m->name)) == m);
		CHECK((m->kind == PB_KIND_MESSAGE) == (m->message != NULL));
		CHECK((m->kind == PB_KIND_ENUM) == (m->values != NULL));
		CHECK(m->oneof <= ARRAY_COUNT(d->oneofs));
		CHECK(m->oneof == 0 || d->oneofs[m->oneof - 1]);
		if (m->flags & PB_MAP)
			CHECK(pb_desc_find(m->message, 1) && pb_desc_find(m->message, 2));
	}
}

static void tables_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; schema_files[i]; i++) {
		const struct pb_file *f = schema_files[i];
		CHECK(schema_find_file(str_of(f->name)) == f);
		for (size_t k = 0; k < f->message_count; k++) {
			check_message(f->messages[k]);
			CHECK(str_starts(str_of(f->messages[k]->name), str_of(f->package)));
			CHECK(schema_find_symbol(str_of(f->messages[k]->name)) == f);
		}
		for (size_t k = 0; k < f->enum_count; k++)
			CHECK(f->enums[k]->values[0].number == 0);
		/* Before those that import it, so that one pass loads them all. */
		for (size_t k = 0; k < f->import_count; k++)
			for (size_t n = i; schema_files[n]; n++)
				CHECK(schema_files[n] != f->imports[k]);
	}
}

static void finds_symbols(void **state)
{
	(void)state;
	const struct pb_file *query = schema_find_file(STR("parca/query/v1alpha1/query.proto"));
	CHECK(query);
	CHECK(schema_find_symbol(STR("parca.query.v1alpha1.QueryService")) == query);
	CHECK(schema_find_symbol(STR("parca.query.v1alpha1.QueryService.Query")) == query);
	CHECK(schema_find_symbol(STR("parca.query.v1alpha1.QueryRequest.Mode")) == query);
	CHECK(!schema_find_symbol(STR("parca.query.v1alpha1.QueryService.None")));
	CHECK(!schema_find_symbol(STR("parca.query.v1alpha1.QueryServiceX")));
	CHECK(!schema_find_symbol(STR("")));
	CHECK(!schema_find_file(STR("a.proto")));
}

TEST_MAIN(cmocka_unit_test(tables_are_sound), cmocka_unit_test(finds_symbols))
