/* SPDX-License-Identifier: Apache-2.0 */
/* sample_type_config; what types become by it, test_ingest.c. */
#include "test.h"

#include "pyroscope/types.h"

static void reads_configs(void **state)
{
	(void)state;
	struct type_configs c;
	struct err e = { 0 };
	CHECK_OK(type_configs_read(STR("{\"goroutine\":{\"units\":\"goroutines\",\"aggregation\":"
				       "\"average\",\"display-name\":\"goroutines\",\"new\":[1]},"
				       "\"x\":{\"sampled\":true}}"),
			 &c, &e),
		&e);
	CHECK(c.count == 2);
	CHECK_STR(c.v[0].type, "goroutine");
	CHECK_STR(c.v[0].display_name, "goroutines");
	CHECK(c.v[0].average && !c.v[1].average && c.v[1].display_name.len == 0);
	buf_deinit(&c.text);
}

static void refuses_configs(void **state)
{
	(void)state;
	static const struct {
		const char *name;
	} bad[] = { { "" }, { "[]" }, { "{\"a\":1}" }, { "{\"a\":{}} x" },
		{ "{\"a\":{}},\"b\":{" } };
	FOR_EACH_CASE (b, bad) {
		struct type_configs c;
		struct err e = { 0 };
		CHECK_CASE(b, type_configs_read(str_of(b->name), &c, &e) == E_INVALID);
		CHECK_CASE(b, e.text[0]);
		buf_deinit(&c.text);
	}
	struct type_configs c;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf many;
	buf_init(&many, 65536);
	for (int i = 0; i <= TYPE_CONFIGS_MAX; i++)
		buf_printf(&many, "%s\"t%d\":{}", i ? "," : "{", i);
	buf_cstr(&many, "}");
	CHECK(type_configs_read(buf_view(&many), &c, &e) == E_LIMIT);
	buf_deinit(&c.text);
}

TEST_MAIN(cmocka_unit_test(reads_configs), cmocka_unit_test(refuses_configs))
