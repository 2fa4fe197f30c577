/* SPDX-License-Identifier: Apache-2.0 */
/* What Erlang's emulator registers of the code of a module. */
#include "jit/jit.h"

#include "test.h"

static struct jit_map *map;
static uint8_t object[1 << 16];
static size_t len;

static void put(const void *p, size_t n)
{
	CHECK(len + n <= sizeof(object));
	memcpy(object + len, p, n);
	len += n;
}

static void put_u32(uint32_t v)
{
	put(&v, sizeof(v));
}

/* With its NUL, and as many bytes of anything behind it. */
static void put_text(const char *s, size_t padding)
{
	uint16_t n = (uint16_t)(strlen(s) + 1);
	put(&n, sizeof(n));
	put(s, n);
	put("\xff\xff\xff\xff\xff\xff", padding);
}

static void put_range(uint32_t from, uint32_t to, uint32_t lines, const char *name)
{
	put_u32(from);
	put_u32(to);
	put_u32(lines);
	put_text(name, 2);
}

static void put_line(uint32_t from, uint32_t line)
{
	put_u32(from);
	put_u32(line);
	put_text("fib.erl", 2);
}

/* Code at 0x100000. */
static void put_head(void)
{
	uint64_t base = 0x100000;
	len = 0;
	put_u32(1);
	put_u32(0x7f18);
	put(&base, sizeof(base));
	put_u32(4);
	put_u32(0x500);
	put_text("fib", 6);
}

static int begin(void **state)
{
	(void)state;
	put_head();
	put_range(0, 0x100, 0, "fib::codeHeader");
	put_range(0x100, 0x130, 0, "fib:fib/1-CodeInfoPrologue");
	put_range(0x130, 0x230, 2, "fib:fib/1");
	put_line(0xfe, 3);
	put_line(0x172, 4);
	put_range(0x230, 0x300, 0, "fib:'-loop/1-fun-0-'/2");
	return jit_map_new(&map) != OK;
}

static int end(void **state)
{
	(void)state;
	jit_map_free(map);
	return 0;
}

static enum status read(size_t bytes)
{
	uint32_t next = 0;
	enum status s = jit_object_read(map, str_make(object, bytes), 5, &next, NULL);
	assert_int_equal(next, 0);
	return s;
}

static struct jit_found found_at(uint64_t address)
{
	struct jit_found f = { .name = STR("none") };
	(void)jit_map_find(map, address, 5, &f);
	return f;
}

static void has_functions_and_lines(void **state)
{
	(void)state;
	CHECK(read(len) == OK);
	assert_int_equal(jit_map_bad(map), 0);
	assert_int_equal(jit_map_len(map), 3);
	CHECK_STR(found_at(0x100000).name, "none");
	CHECK_STR(found_at(0x100100).name, "fib:fib/1-CodeInfoPrologue");
	CHECK_STR(found_at(0x100130).name, "fib:fib/1");
	assert_int_equal(found_at(0x100130).line, 3);
	CHECK_STR(found_at(0x100130).file, "fib.erl");
	assert_int_equal(found_at(0x100171).line, 3);
	assert_int_equal(found_at(0x100172).line, 4);
	CHECK_STR(found_at(0x10022f).name, "fib:fib/1");
	CHECK_STR(found_at(0x1002ff).name, "fib:'-loop/1-fun-0-'/2");
	assert_int_equal(found_at(0x1002ff).line, 0);
	CHECK_STR(found_at(0x100300).name, "none");
}

/* Cut anywhere: what is whole is there, and the rest is bad. */
static void reads_what_is_whole(void **state)
{
	(void)state;
	for (size_t n = 0; n < len; n++) {
		enum status s = read(n);
		CHECK(n >= 36 ? s == OK : s == E_CORRUPT);
		CHECK(jit_map_len(map) < 3);
		jit_map_free(map);
		CHECK(jit_map_new(&map) == OK);
	}
}

static void refuses_what_is_none(void **state)
{
	(void)state;
	object[0] = 2;
	CHECK(read(len) == E_CORRUPT);
	object[0] = 1;
	put_head();
	put_range(0x200, 0x100, 0, "fib:fib/1");
	CHECK(read(len) == OK);
	put_head();
	put_range(0x100, 0x200, UINT32_MAX, "fib:fib/1");
	put_line(0x100, 1);
	CHECK(read(len) == OK);
	assert_int_equal(jit_map_bad(map), 3);
	assert_int_equal(jit_map_len(map), 0);
}

/* As a module with many functions. */
static void reads_many_in_pieces(void **state)
{
	(void)state;
	uint32_t next = 0, calls = 0;
	put_head();
	for (uint32_t i = 0; i < JIT_OBJECT_SYMBOLS_MAX + 1; i++)
		put_range(i * 16, i * 16 + 16, 0, i % 2 ? "a:b/1" : "a:c/1");
	do {
		struct str bytes = str_make(object, len);
		CHECK(jit_object_read(map, bytes, 5, &next, NULL) == OK);
	} while (++calls < 10 && next);
	assert_int_equal(calls, 2);
	assert_int_equal(jit_map_len(map), JIT_OBJECT_SYMBOLS_MAX + 1);
	CHECK_STR(found_at(0x100010).name, "a:b/1");
	next = UINT32_MAX;
	CHECK(jit_object_read(map, str_make(object, len), 5, &next, NULL) == OK);
	assert_int_equal(next, 0);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(has_functions_and_lines, begin, end),
	cmocka_unit_test_setup_teardown(reads_what_is_whole, begin, end),
	cmocka_unit_test_setup_teardown(refuses_what_is_none, begin, end),
	cmocka_unit_test_setup_teardown(reads_many_in_pieces, begin, end))
