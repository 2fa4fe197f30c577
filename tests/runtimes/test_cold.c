/* SPDX-License-Identifier: Apache-2.0 */
/* The cold part of a loop in a file without symbols, found by its jumps. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define LOOP_AT 0x100
#define LOOP_BYTES 0x200
#define COLD_AT 0x800
#define COLD_BYTES 0x40
#define INDEX (MADE_CONSTANTS + 0x1000)

struct index {
	uint8_t head[4];
	int32_t frame;
	uint32_t count;
	struct {
		int32_t at, entry;
	} v[4];
};

static void jump(uint8_t *code, uint32_t from, uint32_t to)
{
	int32_t distance = (int32_t)to - (int32_t)(from + 6);
	code[from] = 0x0f;
	code[from + 1] = 0x84;
	memcpy(code + from + 2, &distance, sizeof(distance));
}

/* `jumps` into the part, the first of them behind its first byte. */
static void find(unsigned jumps, uint32_t first, struct index *x, struct runtime_record *out)
{
	static uint8_t code[MADE_TEXT_BYTES];
	struct err e = { 0 };
	memset(code, 0, sizeof(code));
	for (unsigned i = 0; i < jumps; i++)
		jump(code, LOOP_AT + 16 * i, COLD_AT + (i ? 4 * i : first));
	jump(code, LOOP_AT + 0x1f0, LOOP_AT + 0x20); /* within */
	jump(code, LOOP_AT + 0x1e0, 0x920);          /* once into another function */
	const struct made_elf m = { .constants = "X-Powered-By: PHP/8.2.1",
		.code = code,
		.index = x,
		.index_bytes = sizeof(*x),
		.symbols = { { "execute_ex", MADE_TEXT + LOOP_AT, LOOP_BYTES },
			{ "executor_globals", MADE_DATA, 8 } } };
	CHECK_OK(made_elf_find(&m, out, &e), &e);
}

static struct index make_index(void)
{
	struct index x = { .head = { 1, 0x1b, 0x03, 0x3b }, .count = 4 };
	const uint32_t at[] = { LOOP_AT, COLD_AT, COLD_AT + COLD_BYTES, 0xa00 };
	for (size_t i = 0; i < 4; i++)
		x.v[i].at = (int32_t)(MADE_TEXT + at[i]) - INDEX;
	return x;
}

static void finds_it_by_jumps(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct index x = make_index();
	find(5, 4, &x, &r);
	CHECK(r.layout.php.loop[2] == r.text_from + COLD_AT);
	CHECK(r.layout.php.loop[3] == r.text_from + COLD_AT + COLD_BYTES);
}

static void finds_none_without(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct index x = make_index();
	find(3, 4, &x, &r); /* too few */
	CHECK(r.layout.php.loop[2] == 0 && r.layout.php.loop[3] == 0);
	find(4, 0, &x, &r); /* one of them to the function's first byte: a call */
	CHECK(r.layout.php.loop[2] == 0);
	x.head[0] = 2; /* another format */
	find(8, 4, &x, &r);
	CHECK(r.layout.php.loop[2] == 0);
	x = make_index();
	x.count = UINT32_MAX; /* more than there are */
	find(8, 4, &x, &r);
	CHECK(r.layout.php.loop[2] == r.text_from + COLD_AT);
	x.count = 0;
	find(8, 4, &x, &r);
	CHECK(r.layout.php.loop[2] == 0);
}

TEST_MAIN(cmocka_unit_test(finds_it_by_jumps), cmocka_unit_test(finds_none_without))
