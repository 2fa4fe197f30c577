/* SPDX-License-Identifier: Apache-2.0 */
/* Properties: a file made to look like Lua's or LuaJIT's, with calls, an index of functions and
 * symbols anywhere, is read without leaving it; what is found is the runtime that its symbols
 * name, and its loop has an end behind its begin. */
#include "fuzz/fuzz.h"

#include "base/reader.h"
#include "runtimes/runtimes.h"
#include "tests/runtimes/made_elf.h"

#define TEXT_BYTES_MAX 64
#define CALLS_MAX 64u
#define INDEX_MAX 64u
#define INDEX (MADE_CONSTANTS + 0x1000)

struct index {
	uint8_t head[4];
	int32_t frame;
	uint32_t count;
	struct {
		int32_t at, entry;
	} v[INDEX_MAX];
};

static int32_t place(struct reader *r)
{
	return MADE_TEXT + reader_u16(r) % (4 * MADE_TEXT_BYTES);
}

static void put_calls(struct reader *r, uint8_t code[MADE_TEXT_BYTES])
{
	for (unsigned n = reader_u8(r) % CALLS_MAX; n > 0; n--) {
		uint16_t from = reader_u16(r) % (MADE_TEXT_BYTES - 6);
		int32_t distance = place(r) - (MADE_TEXT + from + 5);
		code[from] = reader_u8(r);
		memcpy(code + from + 1, &distance, sizeof(distance));
	}
}

static void put_index(struct reader *r, struct index *x)
{
	static const uint8_t head[4] = { 1, 0x1b, 0x03, 0x3b };
	memcpy(x->head, head, sizeof(head));
	x->head[0] ^= reader_u8(r) >> 7;
	x->count = reader_u8(r);
	for (unsigned i = 0; i < MIN(x->count, INDEX_MAX); i++)
		x->v[i].at = place(r) - INDEX;
}

static void check(const struct runtime_record *r, bool is_jit)
{
	FUZZ_CHECK(r->kind == (is_jit ? RUNTIME_LUAJIT : RUNTIME_LUA));
	FUZZ_CHECK(r->text_bytes > 0);
	const uint32_t *loop = is_jit ? r->layout.luajit.vm : r->layout.lua.loop;
	FUZZ_CHECK(loop[0] < loop[1] && (is_jit || loop[2] <= loop[3]));
	if (is_jit)
		return;
	const struct lua_layout *l = &r->layout.lua;
	FUZZ_CHECK(l->frame_bytes <= LUA_FRAME_BYTES && l->frame_pc < l->frame_bytes);
	FUZZ_CHECK(l->frame_status < l->frame_bytes);
	FUZZ_CHECK(l->proto_source + 8u <= LUA_PROTO_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct reader r = reader_over(bytes, size);
	uint8_t data[1024] = { 0 }, code[MADE_TEXT_BYTES] = { 0 };
	char text[TEXT_BYTES_MAX + 1] = { 0 };
	struct index x = { 0 };
	uint8_t how = reader_u8(&r);
	bool is_jit = how & 1;
	struct str ident = reader_str(&r, reader_u8(&r) % TEXT_BYTES_MAX);
	memcpy(text, ident.p ? ident.p : "", ident.len);
	memcpy(data, text, sizeof(text));
	uint64_t call = (uint64_t)place(&r), loop = (uint64_t)place(&r);
	uint16_t call_bytes = reader_u16(&r), loop_bytes = reader_u16(&r);
	put_calls(&r, code);
	put_index(&r, &x);
	struct made_elf m = { .constants = text,
		.code = code,
		.data = data,
		.index = how & 2 ? &x : NULL,
		.index_bytes = how & 4 ? sizeof(x) - 200 : sizeof(x),
		.symbols = { { is_jit ? "luaJIT_setmode" : "lua_ident", MADE_DATA, 128 },
			{ how & 8 ? "lua_call" : "lua_callk", call, call_bytes },
			{ "lua_pcall", loop, loop_bytes } } };
	if (how & 16)
		m.locals[0] = (struct made_symbol){ "luaV_execute", loop, loop_bytes };
	if (how & 16 && how & 32)
		m.locals[1] = (struct made_symbol){ "luaV_execute.cold", call, call_bytes };
	struct runtime_record found = { 0 };
	if (made_elf_find(&m, &found, NULL) == OK)
		check(&found, is_jit);
	return 0;
}
