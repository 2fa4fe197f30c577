/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each runtime is asked in turn, until one knows the file. If a file has two, the first one wins.
 */
#include "runtimes/internal.h"

static const struct {
	const char *name;
	enum status (*find)(const struct objfile *obj, struct runtime_record *out, struct err *e);
} runtimes[] = {
	[RUNTIME_CPYTHON] = { "cpython", cpython_find },
	[RUNTIME_HOTSPOT] = { "hotspot", hotspot_find },
	[RUNTIME_PHP] = { "php", php_find },
	[RUNTIME_PERL] = { "perl", perl_find },
	[RUNTIME_V8] = { "v8", v8_find },
	[RUNTIME_RUBY] = { "ruby", ruby_find },
	[RUNTIME_GO] = { "go", go_find },
	[RUNTIME_LUA] = { "lua", lua_find },
	[RUNTIME_LUAJIT] = { "luajit", luajit_find },
	[RUNTIME_BEAM] = { "beam", beam_find },
	[RUNTIME_DOTNET] = { "dotnet", dotnet_find },
};
static_assert(ARRAY_COUNT(runtimes) == RUNTIME_KIND_COUNT, "each kind has a row");
static_assert(sizeof(struct cpython_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct hotspot_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct perl_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct v8_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct lua_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct go_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct ruby_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");
static_assert(sizeof(struct php_layout) <= RUNTIME_LAYOUT_WORDS * 8, "it fits a record");

const char *runtime_name(unsigned kind)
{
	return kind > RUNTIME_NONE && kind < RUNTIME_KIND_COUNT ? runtimes[kind].name : "";
}

enum status runtimes_find(const struct objfile *obj, struct runtime_record *out, struct err *e)
{
	for (size_t i = RUNTIME_NONE + 1; i < ARRAY_COUNT(runtimes); i++) {
		enum status s = runtimes[i].find(obj, out, e);
		if (s != E_NOTFOUND)
			return s;
	}
	return err_set(e, E_NOTFOUND, "%s: no runtime", objfile_name(obj));
}
