/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts as libraries write them, and what is not believed of them. */
#include "test.h"

#include "otlp/otlp.h"
#include "pb/pb.h"

#include <stdio.h>

static struct buf b;
static char told[8192];

static int setup(void **state)
{
	(void)state;
	buf_init(&b, 1 << 20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_deinit(&b);
	return 0;
}

static void tell(void *ctx, struct str key, struct str value)
{
	size_t at = strlen(told);
	*(int *)ctx += 1;
	snprintf(told + at, sizeof(told) - at, "%.*s=%.*s;", STR_ARG(key), STR_ARG(value));
}

static const char *read_all(int *count)
{
	struct err e = { 0 };
	told[0] = 0;
	*count = 0;
	CHECK_OK(otlp_decode_process_context(buf_view(&b), tell, count, &e), &e);
	return told;
}

static void put_text(struct str key, struct str value)
{
	size_t a = pb_begin(&b, 1);
	pb_put_str(&b, 1, key);
	size_t any = pb_begin(&b, 2);
	pb_put_str(&b, 1, value);
	pb_end(&b, any);
	pb_end(&b, a);
}

static void put_number(const char *key, uint32_t field, uint64_t value)
{
	size_t a = pb_begin(&b, 1);
	pb_put_str(&b, 1, str_of(key));
	size_t any = pb_begin(&b, 2);
	pb_put_u64_always(&b, field, value);
	pb_end(&b, any);
	pb_end(&b, a);
}

static void tells_the_resource(void **state)
{
	int count;
	(void)state;
	size_t resource = pb_begin(&b, 1);
	put_text(STR("service.name"), STR("orders"));
	put_text(STR("deployment.environment.name"), STR(" production "));
	put_number("process.parent_pid", 3, 17);
	put_number("x.bool", 2, 1);
	put_number("x.number", 3, (uint64_t)-2);
	pb_put_u64(&b, 2, 9); /* dropped_attributes_count */
	pb_end(&b, resource);
	size_t extra = pb_begin(&b, 2); /* attributes of its own: not the resource's */
	pb_put_str(&b, 1, STR("threadlocal.schema_version"));
	pb_end(&b, extra);
	CHECK(strcmp(read_all(&count), "service.name=orders;deployment.environment.name=production;"
				       "process.parent_pid=17;x.bool=true;x.number=-2;") == 0);
	CHECK(count == 5);
}

static void leaves_out_what_is_no_label(void **state)
{
	static char text[OTLP_CONTEXT_VALUE_BYTES_MAX + 1];
	int count;
	(void)state;
	memset(text, 'a', sizeof(text));
	size_t resource = pb_begin(&b, 1);
	put_text(STR("a"), STR("\xff"));
	put_text(STR("\xff"), STR("b"));
	put_text(STR("nul"), str_make("x\0y", 3));
	put_text(STR("long"), str_make(text, sizeof(text)));
	put_text(str_make(text, OTLP_CONTEXT_KEY_BYTES_MAX + 1), STR("b"));
	put_text(STR(""), STR("b"));
	put_text(STR("empty"), STR(""));
	put_number("double", 4, 3); /* of another wire type than a double's */
	put_text(STR("fits"), str_make(text, 3));
	pb_end(&b, resource);
	CHECK(strcmp(read_all(&count), "fits=aaa;") == 0);
	buf_clear(&b);
	resource = pb_begin(&b, 1);
	for (int i = 0; i < OTLP_CONTEXT_ATTRIBUTES_MAX + 3; i++)
		put_text(STR("k"), STR("v"));
	pb_end(&b, resource);
	(void)read_all(&count);
	CHECK(count == OTLP_CONTEXT_ATTRIBUTES_MAX);
}

static void refuses_torn_ones(void **state)
{
	struct err e = { 0 };
	int count = 0;
	(void)state;
	size_t resource = pb_begin(&b, 1);
	put_text(STR("service.name"), STR("orders"));
	pb_end(&b, resource);
	told[0] = 0;
	for (size_t n = 1; n < b.len; n++)
		CHECK(otlp_decode_process_context(str_make(b.data, n), tell, &count, &e) ==
				E_INVALID &&
			e.text[0]);
	/* The lengths inside lie. */
	for (size_t i = 1; i < 7; i += 2) {
		uint8_t was = b.data[i];
		b.data[i] = 0x7f;
		CHECK(otlp_decode_process_context(buf_view(&b), tell, &count, &e) == E_INVALID);
		b.data[i] = was;
	}
	CHECK(count == 0);
	CHECK_OK(otlp_decode_process_context(STR(""), tell, &count, &e), &e);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(tells_the_resource, setup, teardown),
	cmocka_unit_test_setup_teardown(leaves_out_what_is_no_label, setup, teardown),
	cmocka_unit_test_setup_teardown(refuses_torn_ones, setup, teardown))
