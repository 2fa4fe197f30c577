/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Lua program of known shape on the real kernel: recursion, a callback through a function in C, a
 * protected call that has caught, a coroutine that another one has resumed.
 */
#include "scripts.h"

static const char text[] = "local function leaf()\n"                      /* 1 */
			   "    local x = 0\n"                            /* 2 */
			   "    for i = 1, 3000 do x = x + i % 7 end\n"   /* 3 */
			   "    return x\n"                               /* 4 */
			   "end\n"                                        /* 5 */
			   "local function catcher()\n"                   /* 6 */
			   "    pcall(error, 'x')\n"                      /* 7 */
			   "    local r = leaf()\n"                       /* 8 */
			   "    return r\n"                               /* 9 */
			   "end\n"                                        /* 10 */
			   "local function work()\n"                      /* 11 */
			   "    while true do\n"                          /* 12 */
			   "        pcall(function()\n"                   /* 13 */
			   "            local r = catcher()\n"            /* 14 */
			   "        end)\n"                               /* 15 */
			   "    end\n"                                    /* 16 */
			   "end\n"                                        /* 17 */
			   "local function resumed()\n"                   /* 18 */
			   "    local r = coroutine.wrap(work)()\n"       /* 19 */
			   "    return r\n"                               /* 20 */
			   "end\n"                                        /* 21 */
			   "local function again(n)\n"                    /* 22 */
			   "    local r\n"                                /* 23 */
			   "    if n > 0 then r = again(n - 1) else\n"    /* 24 */
			   "        r = coroutine.wrap(resumed)()\n"      /* 25 */
			   "    end\n"                                    /* 26 */
			   "    return r\n"                               /* 27 */
			   "end\n"                                        /* 28 */
			   "local s = string.gsub('a', 'a', function()\n" /* 29 */
			   "    local r = again(2)\n"                     /* 30 */
			   "    return r\n"                               /* 31 */
			   "end)\n";

/* Functions are known by the line they begin at: see script_frame. */
static const struct script_frame shape[] = {
	{ "main chunk", 0, 29 },
	{ NULL, 29, 30 },
	{ NULL, 22, 24 },
	{ NULL, 22, 24 },
	{ NULL, 22, 25 },
	{ NULL, 18, 19 },
	{ NULL, 11, 13 },
	{ NULL, 13, 14 },
	{ NULL, 6, 8 },
	{ NULL, 1, 0 },
};

static void shows_functions_and_lines(void **state)
{
	(void)state;
	const struct script script = { .interpreters = "/usr/bin/lua5.[1-4]",
		.text = text,
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_LUA,
		.deep = 70 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (!script_check_all(&script))
		SKIP("no Lua here");
}

static void shows_those_of_luajit(void **state)
{
	(void)state;
	static const char *const interpreted[] = { "-joff", NULL };
	struct script script = { .interpreters = "/usr/bin/luajit",
		.text = text,
		.args = interpreted,
		.shape = shape,
		.depth = ARRAY_COUNT(shape),
		.kind = RUNTIME_LUAJIT,
		.deep = 70 };
	if (probe_sampling(NULL) != OK)
		SKIP("cannot sample here");
	if (!script_check_all(&script))
		SKIP("no LuaJIT here");
}

TEST_MAIN(cmocka_unit_test(shows_functions_and_lines), cmocka_unit_test(shows_those_of_luajit))
