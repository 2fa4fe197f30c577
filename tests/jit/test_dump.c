/* SPDX-License-Identifier: Apache-2.0 */
#include "jit/jit.h"

#include "base/buf.h"
#include "test.h"

#include <elf.h>

#define SECOND 1000000000ull

static void header(struct buf *b, uint32_t machine, uint64_t flags)
{
	buf_u32(b, 0x4A695444);
	buf_u32(b, 1);
	buf_u32(b, 40);
	buf_u32(b, machine);
	buf_u32(b, 0);
	buf_u32(b, 1234);
	buf_u64(b, 1);
	buf_u64(b, flags);
}

static void record(struct buf *b, uint32_t kind, size_t bytes, uint64_t time_ns)
{
	buf_u32(b, kind);
	buf_u32(b, (uint32_t)(16 + bytes));
	buf_u64(b, time_ns);
}

static void load(struct buf *b, uint64_t time_ns, uint64_t at, const char *name, uint32_t size)
{
	static const char code[4096];
	size_t name_len = strlen(name) + 1;
	record(b, 0, 40 + name_len + size, time_ns);
	buf_u32(b, 1234);
	buf_u32(b, 1234);
	buf_u64(b, at);
	buf_u64(b, at);
	buf_u64(b, size);
	buf_u64(b, 7);
	buf_put(b, name, name_len);
	buf_put(b, code, size);
}

static void move(struct buf *b, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size)
{
	record(b, 1, 48, time_ns);
	buf_u32(b, 1234);
	buf_u32(b, 1234);
	buf_u64(b, to);
	buf_u64(b, from);
	buf_u64(b, to);
	buf_u64(b, size);
	buf_u64(b, 7);
}

/* Two lines: of `file`, and of the same again. */
static void places(struct buf *b, uint64_t at, uint64_t first, uint64_t second, const char *file)
{
	record(b, 2, 16 + 16 + strlen(file) + 1 + 16 + 2, 1);
	buf_u64(b, at);
	buf_u64(b, 2);
	buf_u64(b, first);
	buf_u32(b, 10);
	buf_u32(b, 0);
	buf_put(b, file, strlen(file) + 1);
	buf_u64(b, second);
	buf_u32(b, 20);
	buf_u32(b, 0);
	buf_put(b, "\xff", 2);
}

/* As a file that grows is read: `step` bytes more each time. */
static enum status feed(struct jit_map *m, struct str bytes, size_t step, struct err *e)
{
	struct jit_dump d = { 0 };
	uint64_t at = 0;
	for (size_t end = step; at < bytes.len; end += step) {
		uint64_t taken;
		size_t there = MIN(end, bytes.len);
		if (at > there)
			continue;
		enum status s = jit_dump_read(
			&d, m, str_sub(bytes, at, there - at), 77 * SECOND, &taken, e);
		if (s != OK)
			return s;
		at += taken;
		if (there == bytes.len && taken == 0)
			break;
	}
	return OK;
}

static struct str name_at(struct jit_map *m, uint64_t address, uint64_t time_ns)
{
	struct jit_found f;
	return jit_map_find(m, address, time_ns, &f) ? f.name : STR("none");
}

static void example(struct buf *b)
{
	buf_init(b, 1 << 20);
	header(b, EM_X86_64, 0);
	load(b, 1 * SECOND, 0x1000, "old", 256);
	places(b, 0x2000, 0x2000, 0x2010, "/a.jl");
	load(b, 2 * SECOND, 0x2000, "lined", 64);
	record(b, 4, 100, 2 * SECOND);
	static const char unwinding[100];
	buf_put(b, unwinding, sizeof(unwinding));
	places(b, 0x3000, 0x3040, 0x3050, "/v8.js");
	load(b, 3 * SECOND, 0x3000, "JS:*f /v8.js:9:1", 64);
	load(b, 10 * SECOND, 0x1080, "new", 16);
	move(b, 20 * SECOND, 0x2000, 0x4000, 64);
	move(b, 20 * SECOND, 0x9000, 0x5000, 64);
	record(b, 3, 0, 30 * SECOND);
}

static void reads_records_however_they_come(void **state)
{
	(void)state;
	static const size_t steps[] = { 1, 7, 40, 1000, 1 << 20 };
	CLEANUP(buf_deinit) struct buf b;
	example(&b);
	assert_int_equal(buf_status(&b), OK);
	for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
		struct err e;
		struct jit_map *m;
		struct jit_found f;
		assert_int_equal(jit_map_new(&m), OK);
		CHECK_OK(feed(m, buf_view(&b), steps[i], &e), &e);
		CHECK_STR(name_at(m, 0x1080, 5 * SECOND), "old");
		CHECK_STR(name_at(m, 0x1080, 10 * SECOND), "new");
		CHECK_STR(name_at(m, 0x10ff, 5 * SECOND), "old");
		CHECK_STR(name_at(m, 0x4000, 20 * SECOND), "lined");
		CHECK(jit_map_find(m, 0x2011, 5 * SECOND, &f) && f.line == 20);
		CHECK_STR(f.file, "/a.jl");
		CHECK(jit_map_find(m, 0x400f, 25 * SECOND, &f) && f.line == 10);
		CHECK(jit_map_find(m, 0x3000, 5 * SECOND, &f) && f.line == 10);
		CHECK(jit_map_find(m, 0x3010, 5 * SECOND, &f) && f.line == 20);
		CHECK_STR(f.file, "/v8.js");
		assert_int_equal(jit_map_len(m), 5);
		assert_int_equal(jit_map_bad(m), 1); /* what was moved from nowhere */
		jit_map_free(m);
	}
}

static void takes_the_time_of_reading_for_another_clock(void **state)
{
	(void)state;
	struct err e;
	struct jit_map *m;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	header(&b, EM_X86_64, 1);
	load(&b, 123456789, 0x1000, "f", 16);
	assert_int_equal(jit_map_new(&m), OK);
	CHECK_OK(feed(m, buf_view(&b), 1 << 20, &e), &e);
	CHECK_STR(name_at(m, 0x1000, 70 * SECOND), "none");
	CHECK_STR(name_at(m, 0x1000, 77 * SECOND), "f");
	jit_map_free(m);
}

/* As Node 20 writes them: 16 bytes of a name are others by then. */
static void finds_lines_beside_names_that_are_none(void **state)
{
	(void)state;
	struct err e;
	struct jit_map *m;
	struct jit_found f;
	static const char name[] = "\x01\x02\0\0\0\0\0\0\x03\0\0\0\0\0\0\0ib.js";
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	header(&b, EM_X86_64, 0);
	record(&b, 2, 16 + 3 * (16 + sizeof(name)) + 2, 1);
	buf_u64(&b, 0x1000);
	buf_u64(&b, 3);
	for (uint32_t i = 0; i < 3; i++) {
		buf_u64(&b, 0x1040 + 8 * i);
		buf_u32(&b, 10 + i);
		buf_u32(&b, 1);
		buf_put(&b, name, sizeof(name));
	}
	buf_u16(&b, 0);
	load(&b, 1, 0x1000, "JS:*f /home/user/fib.js:9:1", 64);
	assert_int_equal(jit_map_new(&m), OK);
	CHECK_OK(feed(m, buf_view(&b), 1 << 20, &e), &e);
	CHECK(jit_map_find(m, 0x1009, 1, &f) && f.line == 11 && f.file.len == 0);
	CHECK(jit_map_find(m, 0x103f, 1, &f) && f.line == 12);
	assert_int_equal(jit_map_bad(m), 0);
	jit_map_free(m);
}

static void cuts_a_long_name(void **state)
{
	(void)state;
	struct err e;
	struct jit_map *m;
	static char name[3000];
	CLEANUP(buf_deinit) struct buf b;
	memset(name, 'n', sizeof(name) - 1);
	buf_init(&b, 1 << 20);
	header(&b, EM_X86_64, 0);
	load(&b, 1, 0x1000, name, 16);
	load(&b, 1, 0x2000, "next", 16);
	assert_int_equal(jit_map_new(&m), OK);
	CHECK_OK(feed(m, buf_view(&b), 1 << 20, &e), &e);
	assert_int_equal(name_at(m, 0x1000, 1).len, JIT_NAME_BYTES_MAX);
	CHECK_STR(name_at(m, 0x2000, 1), "next");
	jit_map_free(m);
}

static void refuses_what_is_none(void **state)
{
	(void)state;
	struct err e;
	struct jit_map *m;
	CLEANUP(buf_deinit) struct buf b;
	assert_int_equal(jit_map_new(&m), OK);
	buf_init(&b, 1 << 20);
	header(&b, EM_AARCH64, 0);
	assert_int_equal(feed(m, buf_view(&b), 1 << 20, &e), E_UNSUPPORTED);
	buf_clear(&b);
	header(&b, EM_X86_64, 0);
	b.data[0] = 'x';
	assert_int_equal(feed(m, buf_view(&b), 1 << 20, &e), E_CORRUPT);
	buf_clear(&b);
	header(&b, EM_X86_64, 0);
	buf_u32(&b, 0);
	buf_u32(&b, 8); /* shorter than its own head */
	buf_u64(&b, 0);
	assert_int_equal(feed(m, buf_view(&b), 1 << 20, &e), E_CORRUPT);
	assert_int_equal(jit_map_len(m), 0);
	jit_map_free(m);
}

TEST_MAIN(cmocka_unit_test(reads_records_however_they_come),
	cmocka_unit_test(takes_the_time_of_reading_for_another_clock),
	cmocka_unit_test(finds_lines_beside_names_that_are_none),
	cmocka_unit_test(cuts_a_long_name), cmocka_unit_test(refuses_what_is_none))
