/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of places of two versions of V8, as they lay in memory; positions; newlines. */
#include "runtimes/runtimes.h"
#include "test.h"

/* Of one function, of 13.6 and of 14.1; its instructions are 154 bytes. */
static const uint8_t table_13[] = { 0x01, 0x04, 0x03, 0x00, 0x44, 0x00, 0x33, 0xc4, 0x07, 0x04,
	0xdc, 0x03, 0x23, 0x00, 0x04, 0x8c, 0x03, 0x09 };
static const uint8_t table_14[] = { 0x02, 0x04, 0x06, 0x00, 0x8b, 0x01, 0x00, 0x66, 0xc4, 0x07,
	0x0b, 0xdc, 0x03, 0x46, 0x00, 0x0b, 0x8c, 0x03, 0x12 };

static struct v8_told whole(size_t table)
{
	struct v8_told t = { .source = 77, .table_bytes = table };
	t.slots[0] = 0x123401; /* the name */
	t.slots[1] = ~0ULL << 32;
	t.slots[2] = 0x567801;
	t.slots[3] = 174ULL << 32;
	t.slots[4] = 240ULL << 32;
	return t;
}

static bool told(uint16_t version, const struct v8_told *t, const uint8_t *table, size_t bytes,
	struct v8_function *out)
{
	static uint8_t all[4096];
	memcpy(all, t, sizeof(*t));
	if (bytes)
		memcpy(all + sizeof(*t), table, bytes);
	return v8_function_told(version, str_make(all, sizeof(*t) + bytes), out);
}

static void finds_places(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t index, position;
	} cases[] = { { "first", 0, 0 }, { "in the first", 30, 0 }, { "at a place", 59, 241 },
		{ "behind one", 60, 241 }, { "next", 61, 360 }, { "last", 80, 459 },
		{ "behind the last", 153, 459 } };
	FOR_EACH_CASE (c, cases) {
		struct v8_function f;
		uint32_t at = 0;
		struct v8_told t = whole(sizeof(table_13) - 1);
		CHECK_CASE(c, told(13 << 8 | 6, &t, table_13, sizeof(table_13) - 1, &f));
		CHECK_CASE(c, v8_source_position(&f, c->index, &at) && at == c->position);
	}
	struct v8_function f;
	uint32_t at = 0;
	struct v8_told t = whole(sizeof(table_14) - 1);
	CHECK(told(14 << 8 | 1, &t, table_14, sizeof(table_14) - 1, &f));
	CHECK(v8_source_position(&f, 70, &at) && at == 360);
	CHECK(v8_source_position(&f, 170, &at) && at == 459);
}

static void says_nothing_of_what_was_cut_or_broken(void **state)
{
	(void)state;
	struct v8_function f;
	uint32_t at = 5;
	struct v8_told t = whole(1000);
	CHECK(told(13 << 8, &t, table_13, sizeof(table_13) - 1, &f) && f.is_cut);
	CHECK(v8_source_position(&f, 60, &at) && at == 241);
	CHECK(!v8_source_position(&f, 153, &at) && at == 241);
	CHECK(told(13 << 8, &t, NULL, 0, &f) && !v8_source_position(&f, 0, &at));
	/* Numbers without an end. */
	uint8_t endless[64];
	memset(endless, 0xff, sizeof(endless));
	t.table_bytes = sizeof(endless);
	CHECK(told(13 << 8, &t, endless, sizeof(endless), &f));
	CHECK(!v8_source_position(&f, 7, &at));
	CHECK(!v8_function_told(13 << 8, str_make(&t, sizeof(t) - 1), &f));
}

static void finds_positions_of_the_function(void **state)
{
	(void)state;
	struct v8_function f;
	struct v8_told t = whole(0);
	CHECK(told(11 << 8, &t, NULL, 0, &f) && f.begin == 174 && f.end == 240 && f.source == 77);
	t.first_line = 9ULL << 32;
	t.positions[0] = 5ULL << 32;
	t.positions[1] = 6ULL << 32;
	CHECK(told(13 << 8, &t, NULL, 0, &f) && f.begin == 5 && f.end == 6 && f.first_line == 9);
	t.positions[1] = 4ULL << 32; /* before it begins: the slots have it */
	CHECK(told(13 << 8, &t, NULL, 0, &f) && f.begin == 174);
	t.slots[4] = 0x11;
	CHECK(!told(13 << 8, &t, NULL, 0, &f));
	t = whole(0);
	t.source = 0;
	CHECK(!told(13 << 8, &t, NULL, 0, &f));
}

static void finds_newlines(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1024);
	CHECK(v8_newlines(&b, STR("a\nbc\n\n"), 1) && b.len == 6);
	struct str all = str_make(b.data, b.len);
	CHECK(v8_newlines_before(all, 1) == 0 && v8_newlines_before(all, 2) == 1);
	CHECK(v8_newlines_before(all, 5) == 2 && v8_newlines_before(all, 4096) == 3);
	CHECK(v8_newlines_before(all, 4) == 1 && v8_newlines_before(all, 0) == 0);
	CHECK(v8_newlines_before(str_make(NULL, 0), 7) == 0);
	buf_clear(&b);
	CHECK(v8_newlines(&b, str_make("a\0\n\0\n\1\n\0", 8), 2) && b.len == 4);
	all = str_make(b.data, b.len);
	CHECK(v8_newlines_before(all, 2) == 1 && v8_newlines_before(all, 4) == 2);
	CHECK(!v8_newlines(&b, STR("x"), 4) && !v8_newlines(&b, STR("x"), 8));
	buf_deinit(&b);
}

/* Code of function 1 with 2 put into it, and 3 put into 2. */
struct made_code {
	struct v8_code_told told;
	uint64_t numbers[V8_INLINED_MAX];
	struct {
		int64_t place;
		uint32_t function, pad;
	} inlining[2];
	uint8_t table[64];
};

#define PLACE(character, inlining) \
	((int64_t)((character) + 1) << 1 | (int64_t)((inlining) + 1) << 31)

static size_t put_signed(uint8_t *out, int64_t x)
{
	uint64_t n = (uint64_t)x << 1 ^ (uint64_t)(x >> 63);
	size_t len = 0;
	do {
		out[len++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
		n >>= 7;
	} while (n);
	return len;
}

static size_t make_code(struct made_code *m)
{
	static const struct {
		int64_t at, place;
	} places[] = { { 0, PLACE(10, -1) }, { 8, PLACE(30, 1) }, { 16, PLACE(20, 0) } };
	memset(m, 0, sizeof(*m));
	m->told = (struct v8_code_told){
		.function = 101, .functions = 2, .inlining_bytes = sizeof(m->inlining)
	};
	m->numbers[0] = 102;
	m->numbers[1] = 103;
	m->inlining[0].place = PLACE(11, -1);
	m->inlining[0].function = 0;
	m->inlining[1].place = PLACE(21, 0);
	m->inlining[1].function = 1;
	size_t len = 0;
	int64_t at = -1, place = 0;
	for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
		len += put_signed(m->table + len, places[i].at - at);
		len += put_signed(m->table + len, places[i].place - place);
		at = places[i].at;
		place = places[i].place;
	}
	m->told.table_bytes = len;
	return sizeof(*m) - sizeof(m->table) + len;
}

static void finds_functions_in_code(void **state)
{
	(void)state;
	struct made_code m;
	size_t len = make_code(&m);
	struct v8_code c;
	struct v8_code_frame f[V8_CODE_FRAMES_MAX];
	CHECK(v8_code_told(11 << 8, str_make(&m, len), &c) && !c.is_cut && c.functions == 2);
	CHECK(v8_code_frames(&c, 3, f) == 1 && f[0].function == 101 && f[0].character == 10);
	CHECK(v8_code_frames(&c, 9, f) == 3);
	CHECK(f[0].function == 103 && f[0].character == 30);
	CHECK(f[1].function == 102 && f[1].character == 21);
	CHECK(f[2].function == 101 && f[2].character == 11);
	CHECK(v8_code_frames(&c, 99, f) == 2 && f[0].function == 102 && f[0].character == 20);
	/* What leads to itself ends. */
	m.inlining[1].place = PLACE(21, 1);
	CHECK(v8_code_told(11 << 8, str_make(&m, len), &c) && v8_code_frames(&c, 9, f) == 2);
	CHECK(f[1].function == 101 && f[1].character == V8_CHARACTER_NONE);
	/* A function that is none of it; a place behind the end; a table that is cut. */
	m.inlining[1].function = 2;
	m.inlining[1].place = PLACE(21, 5);
	CHECK(v8_code_told(11 << 8, str_make(&m, len), &c));
	CHECK(v8_code_frames(&c, 9, f) == 2 && f[0].function == 0);
	m.told.table_bytes++;
	CHECK(v8_code_told(11 << 8, str_make(&m, len), &c) && c.is_cut);
	CHECK(v8_code_frames(&c, 99, f) == 1 && f[0].character == V8_CHARACTER_NONE);
	m.told.functions = V8_INLINED_MAX + 1;
	CHECK(!v8_code_told(11 << 8, str_make(&m, len), &c));
	m.told.functions = 1;
	m.told.inlining_bytes = 4096;
	CHECK(!v8_code_told(11 << 8, str_make(&m, len), &c));
	CHECK(!v8_code_told(11 << 8, str_make(&m, 100), &c));
}

TEST_MAIN(cmocka_unit_test(finds_places), cmocka_unit_test(says_nothing_of_what_was_cut_or_broken),
	cmocka_unit_test(finds_positions_of_the_function), cmocka_unit_test(finds_newlines),
	cmocka_unit_test(finds_functions_in_code))
