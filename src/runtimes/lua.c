/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Lua is recognized by lua_ident, a text that every build exports and that has the version with
 * the release. The interpreter's loop, luaV_execute, is hidden: if no symbol names it, it is the
 * longest function that lua_callk (lua_call to 5.1) reaches by two or three calls. Offsets are
 * fixed from the releases named here on.
 *
 * Source: Lua, lstate.h, lobject.h, lgc.h, ldo.c.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>

#define VERSION(major, minor) ((uint16_t)((major) << 8 | (minor)))
#define IDENT_BYTES 32
#define CALLS_MAX 3

static const struct row {
	uint16_t version;
	uint16_t release_min, release_max;
	struct lua_layout layout;
} rows[] = {
	{ VERSION(5, 1), 0, 5,
		{ .thread_frame = 40,
			.thread_base = 80,
			.thread_pc = 48,
			.thread_stack = 64,
			.thread_status = 10,
			.thread_protected = 168,
			.thread_global = 32,
			.global_main = 176,
			.frame_bytes = 40,
			.frame_function = 8,
			.frame_pc = 24,
			.function_proto = 32,
			.proto_source = 64,
			.proto_first_line = 96,
			.proto_code = 24,
			.proto_code_count = 80,
			.proto_lines = 40,
			.proto_lines_count = 84 } },
	{ VERSION(5, 2), 1, 4,
		{ .thread_frame = 32,
			.thread_base = 128,
			.thread_stack = 56,
			.thread_status = 10,
			.thread_protected = 112,
			.thread_global = 24,
			.global_main = 264,
			.frame_bytes = 64,
			.frame_previous = 16,
			.frame_status = 34,
			.status_last = { 4, 0 },
			.frame_pc = 56,
			.function_proto = 24,
			.proto_source = 72,
			.proto_first_line = 104,
			.proto_code = 24,
			.proto_code_count = 88,
			.proto_lines = 40,
			.proto_lines_count = 92 } },
	{ VERSION(5, 3), 2, 6,
		{ .thread_frame = 32,
			.thread_base = 96,
			.thread_stack = 56,
			.thread_status = 12,
			.thread_protected = 88,
			.thread_global = 24,
			.global_main = 200,
			.frame_bytes = 72,
			.frame_previous = 16,
			.frame_status = 66,
			.status_last = { 8, 8 },
			.frame_pc = 40,
			.function_proto = 24,
			.proto_source = 104,
			.proto_first_line = 40,
			.proto_code = 56,
			.proto_code_count = 24,
			.proto_lines = 72,
			.proto_lines_count = 28 } },
	{ VERSION(5, 4), 3, 9,
		{ .thread_frame = 32,
			.thread_base = 96,
			.thread_stack = 48,
			.thread_status = 10,
			.thread_protected = 88,
			.thread_global = 24,
			.global_main = 264,
			.frame_bytes = 64,
			.frame_previous = 16,
			.frame_status = 62,
			.status_last = { 4, 4 },
			.frame_pc = 32,
			.function_proto = 24,
			.proto_source = 112,
			.proto_first_line = 44,
			.proto_code = 64,
			.proto_code_count = 24,
			.proto_lines = 88,
			.proto_lines_count = 28,
			.proto_marks = 96,
			.proto_marks_count = 40 } },
	{ VERSION(5, 5), 0, 1,
		{ .thread_frame = 32,
			.thread_base = 96,
			.thread_stack = 48,
			.thread_status = 11,
			.thread_protected = 88,
			.thread_global = 24,
			.global_main = 1416,
			.holds_main = 1,
			.frame_bytes = 64,
			.frame_previous = 16,
			.frame_status = 62,
			.status_last = { 1, 1 },
			.frame_pc = 32,
			.function_proto = 24,
			.text_length = 11,
			.proto_source = 112,
			.proto_first_line = 44,
			.proto_code = 64,
			.proto_code_count = 24,
			.proto_lines = 88,
			.proto_lines_count = 28,
			.proto_marks = 96,
			.proto_marks_count = 40 } },
};

enum symbol {
	SYMBOL_IDENT,
	SYMBOL_CALL,
	SYMBOL_CALL_OLD,
	SYMBOL_LOOP,
	SYMBOL_COLD,
	SYMBOL_COUNT,
};

/* "$LuaVersion: Lua 5.4.6  Copyright", "$Lua: Lua 5.1.5 Copyright"; The first release of 5.1 has no
 * third number. */
static enum status find_row(
	const struct objfile *obj, uint64_t ident, const struct row **out, struct err *e)
{
	char text[IDENT_BYTES + 1] = { 0 };
	unsigned minor = 0, release = 0;
	enum status s = bytes_at(obj, ident, text, IDENT_BYTES, e);
	if (s != OK)
		return s;
	if (sscanf(text, "$LuaVersion: Lua 5.%3u.%3u", &minor, &release) < 1 &&
		sscanf(text, "$Lua: Lua 5.%3u.%3u", &minor, &release) < 1)
		return err_set(e, E_UNSUPPORTED, "%s: a Lua that does not say its version",
			objfile_name(obj));
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		if (rows[i].version != VERSION(5, minor) || release < rows[i].release_min ||
			release > rows[i].release_max)
			continue;
		*out = &rows[i];
		return OK;
	}
	return err_set(e, E_UNSUPPORTED, "%s: Lua 5.%u.%u is not known", objfile_name(obj), minor,
		release);
}

static void place_loop(
	const struct objfile *obj, struct runtime_symbol *symbols, struct lua_layout *out)
{
	struct runtime_symbol *loop = &symbols[SYMBOL_LOOP];
	if (!loop->address)
		*loop = largest_called(obj,
			&symbols[symbols[SYMBOL_CALL].address ? SYMBOL_CALL : SYMBOL_CALL_OLD],
			CALLS_MAX);
	place_function(obj, loop, out->loop);
	place_function(obj, &symbols[SYMBOL_COLD], out->loop + 2);
	if (!out->loop[2])
		place_cold(obj, loop, out->loop + 2);
}

enum status lua_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_IDENT] = { .name = "lua_ident" },
		[SYMBOL_CALL] = { .name = "lua_callk" },
		[SYMBOL_CALL_OLD] = { .name = "lua_call" },
		[SYMBOL_LOOP] = { .name = "luaV_execute" },
		[SYMBOL_COLD] = { .name = "luaV_execute.cold" },
	};
	struct runtime_record r = { .kind = RUNTIME_LUA };
	const struct row *row = NULL;
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_IDENT].address ||
		(!symbols[SYMBOL_CALL].address && !symbols[SYMBOL_CALL_OLD].address))
		return err_set(e, E_NOTFOUND, "%s: no Lua", objfile_name(obj));
	s = find_row(obj, symbols[SYMBOL_IDENT].address, &row, e);
	if (s != OK)
		return s;
	s = symbols_find(obj, SHT_SYMTAB, symbols, SYMBOL_COUNT, e);
	if (s != OK && s != E_LIMIT)
		return s;
	r.version = row->version;
	r.layout.lua = row->layout;
	place_loop(obj, symbols, &r.layout.lua);
	if (r.layout.lua.loop[0] >= r.layout.lua.loop[1])
		return err_set(e, E_UNSUPPORTED, "%s: Lua 5.%u without its loop, luaV_execute",
			objfile_name(obj), row->version & 0xff);
	s = place_root(obj, symbols[SYMBOL_IDENT].address, symbols[SYMBOL_LOOP].address, &r, e);
	if (s == OK)
		*out = r;
	return s;
}
