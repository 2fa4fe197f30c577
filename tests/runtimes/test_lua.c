/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like Lua's, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

#define IDENT                               \
	{                                   \
		"lua_ident", MADE_DATA, 128 \
	}
#define CALL                                      \
	{                                         \
		"lua_callk", MADE_TEXT + 16, 0x20 \
	}
#define LOOP                                             \
	{                                                \
		"luaV_execute", MADE_TEXT + 0x100, 0x200 \
	}
#define INDEX (MADE_CONSTANTS + 0x1000)

static enum status find(
	struct made_elf m, const char *ident, struct runtime_record *out, struct err *e)
{
	uint8_t data[1024] = { 0 };
	memcpy(data, ident, strlen(ident));
	m.data = data;
	return made_elf_find(&m, out, e);
}

static void knows_its_version_by_its_text(void **state)
{
	(void)state;
	static const struct {
		const char *name, *ident;
		uint16_t version, proto_source;
	} cases[] = {
		{ "5.1", "$Lua: Lua 5.1.5 Copyright (C) 1994-2012", 0x501, 64 },
		{ "5.1 without a release", "$Lua: Lua 5.1 Copyright (C)", 0x501, 64 },
		{ "5.2", "$LuaVersion: Lua 5.2.4  Copyright (C)", 0x502, 72 },
		{ "5.3", "$LuaVersion: Lua 5.3.6  Copyright (C)", 0x503, 104 },
		{ "5.4", "$LuaVersion: Lua 5.4.3  Copyright (C)", 0x504, 112 },
		{ "5.5", "$LuaVersion: Lua 5.5.1  Copyright (C)", 0x505, 112 },
	};
	FOR_EACH_CASE (c, cases) {
		const struct made_elf m = { .symbols = { IDENT, CALL }, .locals = { LOOP } };
		struct runtime_record r = { 0 };
		struct err e = { 0 };
		CHECK_OK(find(m, c->ident, &r, &e), &e);
		const struct lua_layout *l = &r.layout.lua;
		CHECK_CASE(c, r.kind == RUNTIME_LUA && r.version == c->version);
		CHECK_CASE(c, l->proto_source == c->proto_source);
		CHECK_CASE(
			c, l->loop[0] == r.text_from + 0x100 && l->loop[1] == l->loop[0] + 0x200);
		CHECK_CASE(c, (l->proto_marks != 0) == (c->version >= 0x504));
		CHECK_CASE(c, (l->thread_pc != 0) == (c->version == 0x501));
	}
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct made_elf made;
		const char *ident;
		enum status want;
		const char *text;
	} cases[] = {
		{ "no Lua", { .symbols = { CALL } }, "", E_NOTFOUND, "no runtime" },
		{ "no version", { .symbols = { IDENT, CALL } }, "$LuaVersion: Moon", E_UNSUPPORTED,
			"not say" },
		{ "5.4.0", { .symbols = { IDENT, CALL } }, "$LuaVersion: Lua 5.4.0  Copyright",
			E_UNSUPPORTED, "5.4.0 is not known" },
		{ "5.9", { .symbols = { IDENT, CALL } }, "$LuaVersion: Lua 5.9.0  Copyright",
			E_UNSUPPORTED, "5.9.0 is not known" },
		{ "no loop", { .symbols = { IDENT, CALL } }, "$LuaVersion: Lua 5.4.6  Copyright",
			E_UNSUPPORTED, "luaV_execute" },
		{ "a loop of no bytes",
			{ .symbols = { IDENT, CALL },
				.locals = { { "luaV_execute", MADE_TEXT + 0x100, 0 } } },
			"$LuaVersion: Lua 5.4.6  Copyright", E_UNSUPPORTED, "luaV_execute" },
	};
	FOR_EACH_CASE (c, cases) {
		struct runtime_record r = { .version = 77 };
		struct err e = { 0 };
		enum status s = find(c->made, c->ident, &r, &e);
		if (s != c->want || !strstr(e.text, c->text))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == c->want && strstr(e.text, c->text) && r.version == 77);
	}
}

static void call(uint8_t *code, uint32_t from, uint8_t how, uint32_t to)
{
	int32_t distance = (int32_t)to - (int32_t)(from + 5);
	code[from] = how;
	memcpy(code + from + 1, &distance, sizeof(distance));
}

/* Of a file without symbols: lua_callk calls a function that jumps to another, which calls the
 * longest one. */
static void finds_the_loop_by_calls(void **state)
{
	(void)state;
	enum { FIRST = 16, SECOND = 0x40, THIRD = 0x80, LONGEST = 0x100, LAST = 0x1100, COUNT = 5 };
	static const uint32_t at[COUNT] = { FIRST, SECOND, THIRD, LONGEST, LAST };
	struct {
		uint8_t head[4];
		int32_t frame;
		uint32_t count;
		struct {
			int32_t at, entry;
		} v[COUNT];
	} x = { .head = { 1, 0x1b, 0x03, 0x3b }, .count = COUNT };
	for (size_t i = 0; i < COUNT; i++)
		x.v[i].at = (int32_t)(MADE_TEXT + at[i]) - INDEX;
	for (unsigned calls = 0; calls < 4; calls++) {
		uint8_t code[MADE_TEXT_BYTES] = { 0 };
		if (calls > 0)
			call(code, FIRST + 3, 0xe8, SECOND);
		if (calls > 1)
			call(code, SECOND + 7, 0xe9, THIRD);
		if (calls > 2)
			call(code, THIRD, 0xe8, LONGEST);
		const struct made_elf m = { .code = code,
			.index = &x,
			.index_bytes = sizeof(x),
			.symbols = { IDENT, CALL } };
		struct runtime_record r = { 0 };
		enum status s = find(m, "$LuaVersion: Lua 5.3.6  Copyright", &r, NULL);
		CHECK(s == (calls > 2 ? OK : E_UNSUPPORTED));
		CHECK(s != OK || (r.layout.lua.loop[0] == r.text_from + LONGEST &&
					 r.layout.lua.loop[1] == r.text_from + LAST));
	}
}

TEST_MAIN(cmocka_unit_test(knows_its_version_by_its_text),
	cmocka_unit_test(refuses_what_it_does_not_know), cmocka_unit_test(finds_the_loop_by_calls))
