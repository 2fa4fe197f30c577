/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A LuaJIT is recognized by luaJIT_setmode, and its version is among its constants. Its interpreter
 * is one piece of assembly with call frame information of its own, which has no name in a stripped
 * file: it is the code that lua_call and lua_pcall call not at its first byte, but somewhere behind
 * it. The fields of its structures are at the same offsets in all builds of 2.1 with 64-bit
 * references (GC64, the default since 2022); other builds have no state that the walk accepts
 * (agent/bpf/luajit.h).
 *
 * Source: LuaJIT, lj_obj.h, lj_frame.h, vm_x64.dasc.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <stdio.h>

#define INTERPRETER_BYTES_LEAST 8192

enum symbol {
	SYMBOL_MODE,
	SYMBOL_CALL,
	SYMBOL_PCALL,
	SYMBOL_COUNT,
};

enum status luajit_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	struct runtime_symbol symbols[SYMBOL_COUNT] = {
		[SYMBOL_MODE] = { .name = "luaJIT_setmode" },
		[SYMBOL_CALL] = { .name = "lua_call" },
		[SYMBOL_PCALL] = { .name = "lua_pcall" },
	};
	struct runtime_record r = { .kind = RUNTIME_LUAJIT };
	char text[16];
	unsigned minor = 0;
	enum status s = symbols_find(obj, SHT_DYNSYM, symbols, SYMBOL_COUNT, e);
	if (s != OK)
		return s;
	if (!symbols[SYMBOL_MODE].address || !symbols[SYMBOL_CALL].address)
		return err_set(e, E_NOTFOUND, "%s: no LuaJIT", objfile_name(obj));
	s = version_in_constants(obj, "LuaJIT 2.", text, e);
	if (s != OK || sscanf(text, "%3u", &minor) != 1)
		return err_set(e, E_UNSUPPORTED, "%s: a LuaJIT that does not say its version",
			objfile_name(obj));
	if (minor != 1)
		return err_set(
			e, E_UNSUPPORTED, "%s: LuaJIT 2.%u is not known", objfile_name(obj), minor);
	struct runtime_symbol vm =
		called_inside(obj, &symbols[SYMBOL_CALL], INTERPRETER_BYTES_LEAST);
	if (!vm.address)
		vm = called_inside(obj, &symbols[SYMBOL_PCALL], INTERPRETER_BYTES_LEAST);
	place_function(obj, &vm, r.layout.luajit.vm);
	if (r.layout.luajit.vm[0] >= r.layout.luajit.vm[1])
		return err_set(e, E_UNSUPPORTED, "%s: LuaJIT 2.1 without its interpreter",
			objfile_name(obj));
	r.version = 2 << 8 | 1;
	s = place_root(obj, vm.address, vm.address, &r, e);
	if (s == OK)
		*out = r;
	return s;
}
