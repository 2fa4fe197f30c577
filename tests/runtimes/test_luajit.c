/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like LuaJIT's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define INDEX (MADE_CONSTANTS + 0x1000)

enum { CALL = 16, OTHER = 0x60, INTERPRETER = 0x100, LAST = 0x2200, COUNT = 4 };

struct index {
	uint8_t head[4];
	int32_t frame;
	uint32_t count;
	struct {
		int32_t at, entry;
	} v[COUNT];
};

/* lua_call calls another function, and then what is at `to`. */
static enum status find(const char *version, uint32_t to, struct runtime_record *out, struct err *e)
{
	static const uint32_t at[COUNT] = { CALL, OTHER, INTERPRETER, LAST };
	uint8_t code[MADE_TEXT_BYTES] = { 0 };
	struct index x = { .head = { 1, 0x1b, 0x03, 0x3b }, .count = COUNT };
	for (size_t i = 0; i < COUNT; i++)
		x.v[i].at = (int32_t)(MADE_TEXT + at[i]) - INDEX;
	const uint32_t calls[] = { OTHER, to };
	for (uint32_t i = 0; i < 2; i++) {
		uint32_t from = CALL + 8 + 16 * i;
		int32_t distance = (int32_t)calls[i] - (int32_t)(from + 5);
		code[from] = 0xe8;
		memcpy(code + from + 1, &distance, sizeof(distance));
	}
	const struct made_elf m = { .constants = version,
		.code = code,
		.index = &x,
		.index_bytes = sizeof(x),
		.symbols = { { "luaJIT_setmode", MADE_TEXT + 0x40, 8 },
			{ "lua_call", MADE_TEXT + CALL, 0x40 } } };
	return made_elf_find(&m, out, e);
}

static void finds_its_interpreter(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find("LuaJIT control. LuaJIT 2.1.0-beta3", INTERPRETER + 0x900, &r, &e), &e);
	CHECK(r.kind == RUNTIME_LUAJIT && r.version == (2 << 8 | 1));
	CHECK(r.layout.luajit.vm[0] == r.text_from + INTERPRETER);
	CHECK(r.layout.luajit.vm[1] == r.text_from + LAST);
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name, *version;
		uint32_t to;
		const char *text;
	} cases[] = {
		{ "2.0", "LuaJIT 2.0.5", INTERPRETER + 4, "2.0 is not known" },
		{ "no version", "LuaJIT control", INTERPRETER + 4, "not say" },
		{ "no interpreter", "LuaJIT 2.1.1", INTERPRETER, "without its interpreter" },
		{ "code that is too short", "LuaJIT 2.1.1", OTHER + 4, "without its interpreter" },
	};
	FOR_EACH_CASE (c, cases) {
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		CHECK_CASE(c, find(c->version, c->to, &r, &e) == E_UNSUPPORTED);
		CHECK_CASE(c, strstr(e.text, c->text) && r.version == 77);
	}
}

TEST_MAIN(cmocka_unit_test(finds_its_interpreter), cmocka_unit_test(refuses_what_it_does_not_know))
